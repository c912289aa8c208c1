"""The checks of lab 16: what no op speaks of, when a broker asks, what it lets go, a listener that loses no money."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.client import LocalTransactionState, TransactionListener, TransactionMQProducer
from mqlab.exercises.bank_books import EMPTY, Bookkeeping
from mqlab.exercises.bank_day import BankDay, Transfer
from mqlab.lab import Lab
from mqlab.protocol.message import Message, MessageConst
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import RMQ_SYS_TRANS_OP_HALF_TOPIC
from mqlab.sim import Node

COMMIT, ROLLBACK, UNKNOW = LocalTransactionState
TOPIC = "Transfers"
SLACK_MS, EDGE_MS = 5, 30
ROUNDS_BEGIN_MS = 100
"""So long after the broker's start the first interval begins."""


class Plan(NamedTuple):
    """How a transaction goes: what the local part says after how long, and what is said when the broker asks."""

    says: LocalTransactionState
    after_ms: int
    asked: LocalTransactionState = UNKNOW


class Teller(TransactionListener):
    """Does what it is told to: the plan is the argument."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._plans: dict[str, Plan] = {}

    async def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
        """Take the time of the plan, and say what stands there."""
        self._plans[message.keys or ""] = argument
        await self._node.sleep(argument.after_ms)
        return LocalTransactionState(argument.says)

    def check_local_transaction(self, message: Message) -> LocalTransactionState:
        """Say what the plan says."""
        return self._plans[message.keys or ""].asked


def _bank(seed: int, **broker: Any) -> tuple[Lab, TransactionMQProducer]:
    """A broker with these settings, and a machine that begins transactions."""
    lab = Lab(seed)
    lab.name_server()
    lab.broker(**broker)
    lab.create_topic(TOPIC, 1)
    producer = lab.transaction_producer("bank", topics=[TOPIC])
    producer.transaction_listener = Teller(producer.node)
    lab.run(producer.start())
    return lab, producer


def _begin(producer: TransactionMQProducer, number: int, plan: Plan, immune_s: int | None = None) -> Message:
    message = Message(TOPIC, b"100 from A to B", keys=f"transfer-{number}")
    if immune_s is not None:
        message.properties[MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(immune_s)
    producer.send_message_in_transaction(message, plan).start()
    return message


# -- what is left ---------------------------------------------------------------------------------------------------


@lab_check("16/left", points=1)
def left(answer: Callable[[int, int, list[str]], list[int]], *, seed: int) -> Wrong | None:
    """Of the half messages in a queue those are named about which a broker asks in its next round."""
    random, cases = Random(seed), Cases()
    lab, producer = _bank(seed)
    number = first_op = 0
    for _ in range(2):
        for _ in range(random.randint(4, 9)):
            says = random.choice((COMMIT, COMMIT, ROLLBACK, UNKNOW))
            _begin(producer, number, Plan(says, random.randrange(0, 900)))
            number += 1
            lab.run_for(ms=random.randrange(100, 1_500))
        ended = lab.run_until_event("TransactionRoundEnded", limit_ms=120_000)
        asked = [
            record.half_offset
            for record in lab.history.find("HalfMessageStoredAgain", reason="asked")
            if record.ts_ms >= ended.ts_ms - ended.took_ms
        ]
        first, end = ended.from_offset, ended.half_offset
        ops = _ops(lab, first_op)
        first_op = ended.op_offset
        got = answer(first, end, list(ops))
        told = f"left({first}, {end}, {ops}): the broker asks about {asked}, and yours says {got!r}"
        cases.note(tuple(asked), (isinstance(got, list | tuple) and list(got) == asked) or Wrong(told))
        lab.run_for(ms=random.randrange(500, 3_000))
    return cases.result


def _ops(lab: Lab, first: int) -> list[str]:
    """The bodies of the op messages from an offset on."""
    store = lab.brokers[0].running().message_store
    found = store.get_message("check", RMQ_SYS_TRANS_OP_HALF_TOPIC, 0, first, 32)
    return [decode_record(record).body.decode() for record in (found.messages if found is not None else ())]


# -- when it is asked -----------------------------------------------------------------------------------------------


@lab_check("16/first-asked", points=1)
def first_asked(answer: Callable[..., float], *, seed: int) -> Wrong | None:
    """Half messages that nobody ends: a broker asks about each for the first time in the round that was foretold."""
    random, cases = Random(seed), Cases()
    interval_ms, immune_ms = random.randrange(9_000, 40_000, 500), random.randrange(4_000, 15_000, 500)
    lab, producer = _bank(seed, transaction_check_interval=interval_ms, transaction_time_out=immune_ms)
    round_ms = ROUNDS_BEGIN_MS + interval_ms
    for number in range(3):
        # Each by itself: one that is older would be looked at again, in front of it.
        wait_ms = random.randrange(500, interval_ms)
        lab.run_for(ms=wait_ms + _off_the_edge(lab.now_ms + wait_ms + immune_ms - round_ms, interval_ms))
        sent_ms = round(lab.now_ms)
        foretold = answer(sent_ms, round_ms, interval_ms, immune_ms)
        _begin(producer, number, Plan(UNKNOW, 0, asked=COMMIT))
        asked_ms = round(lab.run_until_event("TransactionChecked", limit_ms=200_000).ts_ms)
        fits = is_number(foretold) and abs(foretold - asked_ms) <= SLACK_MS
        call = f"first_asked({sent_ms}, {round_ms}, {interval_ms}, {immune_ms})"
        told = f"{call} is {foretold!r}, and the broker asks at {asked_ms} ms"
        cases.note((asked_ms - sent_ms) // 1_000, fits or Wrong(told))
        # It is answered, its end is written down, and a round finds that nothing is left.
        lab.run_until_event("TransactionOpWritten", limit_ms=200_000)
        lab.run_until_event("TransactionRoundEnded", limit_ms=200_000)
        round_ms = round(lab.now_ms) + interval_ms
    return cases.result


def _off_the_edge(behind_ms: float, interval_ms: int) -> int:
    """How many ms more keep a half message from being just old enough when a round comes by."""
    over = behind_ms % interval_ms
    return 2 * EDGE_MS if min(over, interval_ms - over) < EDGE_MS else 0


# -- what is let go -------------------------------------------------------------------------------------------------


@lab_check("16/let-go", points=1)
def let_go(answer: Callable[[list[tuple[str, bool, int]], int | None], int], *, seed: int) -> Wrong | None:
    """From the ends of a transaction that reach a broker follows how many messages consumers get."""
    random, cases = Random(seed), Cases()
    lab, producer = _bank(seed, transaction_check_interval=random.randrange(10_000, 20_000, 500))
    immune: dict[str, int | None] = {}
    begun_ms: dict[str, float] = {}
    for number in range(5):
        plan = Plan(
            random.choice((COMMIT, COMMIT, ROLLBACK, UNKNOW)),
            random.choice((100, 45_000, 70_000)) + random.randrange(3_000),
            random.choice((COMMIT, COMMIT, ROLLBACK, UNKNOW)),
        )
        immune_s = random.choice((None, random.randrange(8, 30)))
        sent_ms = lab.now_ms
        message = _begin(producer, number, plan, immune_s)
        lab.run_for(ms=random.randrange(200, 3_000))
        key = message.properties[MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
        immune[key], begun_ms[key] = None if immune_s is None else immune_s * 1_000, sent_ms
    lab.run_for(seconds=100)
    for key, immune_ms in immune.items():
        ends = [
            (record.local_state, bool(record.from_check), round(record.ts_ms - begun_ms[key]))
            for record in lab.history.find("TransactionEnded", unique_key=key)
        ]
        stored = sum(1 for _ in lab.history.find("MessageStored", topic=TOPIC, unique_key=key))
        got = answer(list(ends), immune_ms)
        told = f"let_go({ends}, {immune_ms}): the broker lets {stored} go, and yours says {got!r}"
        cases.note(stored, (is_number(got) and got == stored) or Wrong(told))
    return cases.result


# -- the listener ---------------------------------------------------------------------------------------------------


@lab_check("16/bank", points=3)
def bank(answer: Callable[[Bookkeeping], Any], *, seed: int) -> Right | Wrong:
    """On a day on which machines die the sum of all accounts stays as it was, and who can pay pays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an error of the listener is told in the story
        day = BankDay(answer, seed).play()
    wrong = _money(day) or _refused(day) or _open(day)
    if wrong is not None:
        return wrong
    begun = sum(transfer.begun for transfer in day.transfers)
    return Right({"transfers": {"begun": begun, "done": sum(transfer.taken for transfer in day.transfers)}})


def _money(day: BankDay) -> Wrong | None:
    """Is there as much money in the evening as in the morning?"""
    odd = next((each for each in day.transfers if each.taken != bool(each.credited)), None)
    if day.sum_cents == day.opening_cents and odd is None:
        return None
    differs = day.sum_cents - day.opening_cents
    told = f"{abs(differs):,} cents are {'missing' if differs < 0 else 'too many'} in the evening" if differs else ""
    if odd is None:
        return Wrong(f"{told}: money was taken that belongs to no transfer", day.story())
    what = _what_became(odd)
    return Wrong(f"{told}: {what}" if told else what, day.story(odd))


def _what_became(transfer: Transfer) -> str:
    taken = {0: "not taken", 1: "taken"}.get(transfer.taken, f"taken {transfer.taken} times")
    credited = "credited to the other bank" if transfer.credited else "never credited"
    but = "but" if bool(transfer.taken) != bool(transfer.credited) else "and"
    return f"the {transfer.cents} cents of {transfer.key} were {taken}, {but} {credited}"


def _refused(day: BankDay) -> Wrong | None:
    """Was a transfer refused that could be paid, and that nothing came in the way of?"""
    for each in day.transfers:
        if each.begun and not each.taken and not each.troubled and each.account != EMPTY:
            told = f"{each.key} was refused, and {each.account} has the money, and no machine or answer failed"
            return Wrong(told, day.story(each))
    return None


def _open(day: BankDay) -> Wrong | None:
    """Is there a transfer that nobody has ended?"""
    for each in day.transfers:
        if each.begun and each.ended_ms is None:
            told = f"{each.key} has not ended when the day is over: the broker still asks about it"
            return Wrong(told, day.story(each))
    return None
