"""A bad day of two brokers: they are killed, hang, answer late and refuse, while an application sends by a rule.

`BadDay(rule, seed).play()` is one world; the rule decides each attempt of each message. Lab 15 judges rules with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from mqlab.errors import LearnerError, MQBrokerException, MQClientException, RemotingException
from mqlab.lab import Lab
from mqlab.protocol.message import Message, MessageConst, MessageQueue
from mqlab.trace.record import KIND, Record
from mqlab.views.budget_bars import BudgetBars
from mqlab.views.sends import Attempt, Sent

UNIQ_KEY = MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX
TOPIC = "Orders"
BROKERS = ("broker-a", "broker-b")
BUDGET_MS, SLACK_MS = 3_000, 5
MESSAGES, EVERY_MS = 110, 200
MOST_ATTEMPTS = 60
QUEUES = 2
QUEUE_FILE_BYTES = 20 * 1_000
"""Small files of the queues, so that a broker which starts again reads little and 50 days are judged in seconds."""
TOO_LONG = "x" * 33_000
"""A property that no broker takes: all properties together may have 32,767 bytes."""
NEVER = 4_000_000_000_000
"""A wall-clock time in ms that this world does not reach: the year 2096."""
_IN_SHORT = {
    "RemotingConnectException": "refused",
    "RemotingSendRequestException": "connection lost",
    "RemotingTimeoutException": "time-out",
}
FAILURES = (MQClientException, MQBrokerException, RemotingException)
REST_MS = 8_000
"""After the last message: late requests are stored meanwhile."""


class Try(NamedTuple):
    """What a rule asks for: wait `pause_ms`, then send to `broker` and wait at most `timeout_ms` for its answer."""

    broker: str
    timeout_ms: int
    pause_ms: int = 0


class Failed(NamedTuple):
    """An attempt that failed: where, with which error, and after how many ms."""

    broker: str
    error: Exception
    took_ms: int


RetryRule = Callable[[Sequence[Failed], int, Sequence[str]], "Try | None"]
"""rule(failed, left_ms, brokers): the next attempt, or None to give up.

`failed` are the attempts so far, `left_ms` is what is left of the budget of 3000 ms, and `brokers` names all brokers,
first the one whose turn it is.
"""


def naive_rule(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Three attempts of a second, at each broker in turn, whatever the error: sendMsgMaxTimeoutPerRequest=1000."""
    if len(failed) == 3 or left_ms <= 0:
        return None
    return Try(brokers[len(failed) % len(brokers)], min(1_000, left_ms))


class Line(NamedTuple):
    """One line of the story; number -1 concerns all messages."""

    at_ms: float
    number: int
    text: str


class Order:
    """One message of the day: its attempts, and what became of it."""

    def __init__(self, number: int, message: Message, *, legal: bool) -> None:
        self.number = number
        self.message = message
        self.legal = legal
        self.failed: list[Failed] = []
        self.attempts: list[Attempt] = []
        self.begin_ms = 0.0
        self.end_ms: float | None = None
        self.delivered = False
        self.stored = 0
        self.mistake = ""
        """What the rule asked for that cannot be."""


class BadDay:
    """One world: an application that sends a message every 200 ms for 22 s, and two brokers that have a bad day."""

    def __init__(self, rule: RetryRule, seed: int, *, history: bool = False) -> None:
        self.rule = rule
        self.seed = seed
        self.random = Random(seed)
        self.orders: list[Order] = []
        self.lines: list[Line] = []
        self._by_key: dict[str, Order] = {}
        self.lab = Lab(seed, history=history)
        self.lab.world.hooks.attach(self._note_stored)
        self.lab.name_server()
        for name in BROKERS:
            self.lab.broker(name, mapped_file_size_consume_queue=QUEUE_FILE_BYTES)
        self.lab.create_topic(TOPIC, QUEUES)
        self.producer = self.lab.producer("shop")
        self.lab.run(self.producer.start())
        for name in BROKERS:
            self.lab.run(self.producer.send(Message(TOPIC, b"warm"), queue=MessageQueue(TOPIC, name, 0)))
        self.begin_ms = self.lab.now_ms

    # -- what came of it --------------------------------------------------------------------------------------------

    @property
    def delivered(self) -> int:
        """Messages whose send went well: the application knows that they are stored."""
        return sum(order.delivered for order in self.orders)

    @property
    def duplicates(self) -> int:
        """Copies that are stored beyond the first of each message."""
        return sum(max(0, order.stored - 1) for order in self.orders)

    @property
    def not_delivered(self) -> list[Order]:
        """The legal messages that the rule gave up, or that failed for a mistake of it."""
        return [order for order in self.orders if order.legal and not order.delivered]

    def story(self, number: int, lines: int = 14) -> str:
        """What happened to a message, with the faults of the brokers around it; seconds from the first message."""
        order = self.orders[number]
        end_ms = order.begin_ms + BUDGET_MS if order.end_ms is None else order.end_ms
        told = [line for line in self.lines if line.number == number]
        told += [line for line in self.lines if line.number < 0 and line.at_ms <= end_ms][-4:]
        told.sort(key=lambda line: line.at_ms)
        return "\n".join(f"{line.at_ms / 1_000:>7.3f} s  {line.text}" for line in told[-lines:])

    def budget(self, number: int) -> BudgetBars:
        """What the attempts of a message made of its budget, as a picture."""
        order = self.orders[number]
        begin_us = round(order.begin_ms * 1_000)
        sent = Sent(order.message.properties[UNIQ_KEY], self.producer.node.name, "SYNC", begin_us, order.attempts)
        title = f"Message {number}: what its attempts made of the budget"
        return BudgetBars([(f"message {number}", sent)], BUDGET_MS, title)

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self) -> BadDay:
        """Let the day happen, to its end and a little longer; it ends early when the rule asks for what cannot be."""
        if self.orders:
            raise LearnerError("this day was played already", "make a new BadDay(rule, seed)")
        self.producer.node.spawn(self._load(), "load")
        for at_ms, text, do in sorted(self._faults(), key=lambda fault: fault[0]):
            self.lab.run_for(ms=self.begin_ms + at_ms - self.lab.now_ms)
            if any(order.mistake for order in self.orders):
                return self
            self._tell(-1, text)
            do()
        self.lab.run_for(ms=self.begin_ms + MESSAGES * EVERY_MS + REST_MS - self.lab.now_ms)
        return self

    def _faults(self) -> list[tuple[float, str, Callable[[], None]]]:
        """Five troubles, in another order and with other lengths for each seed, never two at once."""
        between = self.random.uniform
        troubles = [self._kill_one, self._kill_both, self._answer_late, self._hang, self._refuse]
        self.random.shuffle(troubles)
        faults: list[tuple[float, str, Callable[[], None]]] = []
        at_ms = between(300, 800)
        for trouble in troubles:
            made, length_ms = trouble(at_ms, self.random.choice(BROKERS))
            faults += made
            at_ms += length_ms + between(900, 1_300)
        return faults

    def _kill_one(self, at_ms: float, name: str) -> Any:
        lab, length_ms = self.lab, self.random.uniform(1_500, 2_500)
        return [
            (at_ms, f"{name} is killed", lambda: lab.crash(name)),
            (at_ms + length_ms, f"{name} starts again", lambda: lab.restart(name)),
        ], length_ms

    def _kill_both(self, at_ms: float, name: str) -> Any:
        lab, length_ms = self.lab, self.random.uniform(800, 1_600)
        other = next(broker for broker in BROKERS if broker != name)
        return [
            (at_ms, f"{name} is killed", lambda: lab.crash(name)),
            (at_ms + 20, f"{other} is killed, too", lambda: lab.crash(other)),
            (at_ms + length_ms, f"{name} starts again", lambda: lab.restart(name)),
            (at_ms + length_ms + 900, f"{other} starts again", lambda: lab.restart(other)),
        ], length_ms + 900

    def _answer_late(self, at_ms: float, name: str) -> Any:
        length_ms, late_ms = self.random.uniform(2_000, 3_000), round(self.random.uniform(1_200, 2_000))
        node = self.producer.node.name

        def delay(ms: int) -> None:
            for broker in BROKERS:
                self.lab.act("delay", source=broker, target=node, ms=ms)

        return [
            (at_ms, f"all answers take {late_ms} ms", lambda: delay(late_ms)),
            (at_ms + length_ms, "answers are quick again", lambda: delay(0)),
        ], length_ms + late_ms

    def _hang(self, at_ms: float, name: str) -> Any:
        lab, length_ms = self.lab, self.random.uniform(4_000, 5_500)
        return [
            (at_ms, f"{name} hangs", lambda: lab.freeze(name)),
            (at_ms + length_ms, f"{name} goes on", lambda: lab.thaw(name)),
        ], length_ms

    def _refuse(self, at_ms: float, name: str) -> Any:
        length_ms = self.random.uniform(1_000, 2_000)
        broker = next(broker for broker in self.lab.brokers if broker.name == name)

        def accept_from(time_ms: int) -> None:
            broker.running().broker_config.start_accept_send_request_time_stamp = time_ms

        return [
            (at_ms, f"{name} takes no messages", lambda: accept_from(NEVER)),
            (at_ms + length_ms, f"{name} takes messages again", lambda: accept_from(0)),
        ], length_ms

    # -- inside the world -------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        node = self.producer.node
        for number in range(MESSAGES):
            order = Order(number, Message(TOPIC, f"order {number}", keys=f"{number}"), legal=number % 40 != 39)
            if not order.legal:
                order.message.put_user_property("note", TOO_LONG)
            self.orders.append(order)
            self.producer.impl.kernel.set_unique_key(order.message)
            self._by_key[order.message.properties[UNIQ_KEY]] = order
            node.spawn(self._send(order), f"order {number}")
            await node.sleep(EVERY_MS)

    async def _send(self, order: Order) -> None:
        order.begin_ms = self._now_ms()
        turn = order.number % len(BROKERS)
        brokers = [*BROKERS[turn:], *BROKERS[:turn]]
        self._tell(order.number, f"message {order.number}: the budget is {BUDGET_MS} ms")
        while not order.delivered:
            left_ms = BUDGET_MS - round(self._now_ms() - order.begin_ms)
            wanted = self.rule(list(order.failed), left_ms, list(brokers))
            if wanted is None:
                self._tell(order.number, f"  the rule gives up with {left_ms} ms left")
                break
            order.mistake = _mistake(order, wanted, left_ms)
            if order.mistake:
                self._tell(order.number, f"  the rule says {wanted!r} with {left_ms} ms left")
                break
            await self._attempt(order, Try(wanted.broker, max(1, round(wanted.timeout_ms)), round(wanted.pause_ms)))
        order.end_ms = self._now_ms()

    async def _attempt(self, order: Order, wanted: Try) -> None:
        await self.producer.node.sleep(wanted.pause_ms)
        begin_ms = self._now_ms()
        attempt = Attempt(round(begin_ms * 1_000), wanted.timeout_ms, wanted.broker)
        order.attempts.append(attempt)
        paused = f"after a pause of {wanted.pause_ms} ms " if wanted.pause_ms else ""
        self._tell(order.number, f"  {paused}to {wanted.broker}, for at most {wanted.timeout_ms} ms")
        queue = MessageQueue(TOPIC, wanted.broker, order.number % QUEUES)
        send = type(self.producer).send.inside  # type: ignore[attr-defined]  # see public_call
        try:
            await send(self.producer, order.message, queue=queue, timeout=wanted.timeout_ms)
        except FAILURES as error:
            took_ms = round(self._now_ms() - begin_ms)
            order.failed.append(Failed(wanted.broker, error, took_ms))
            attempt.outcome = _IN_SHORT.get(type(error).__name__, "an error answer")
            self._tell(order.number, f"    failed after {took_ms} ms: {type(error).__name__}: {_first_words(error)}")
        else:
            order.delivered = attempt.ok = True
            attempt.outcome = "SEND_OK"
            self._tell(order.number, "    SEND_OK")
        attempt.end_us = round(self._now_ms() * 1_000)

    def _now_ms(self) -> float:
        return self.lab.now_ms - self.begin_ms

    def _tell(self, number: int, text: str) -> None:
        self.lines.append(Line(self._now_ms(), number, text))

    def _note_stored(self, row: Any) -> None:
        if row[KIND] != "MessageStored":
            return
        record = Record(row)
        order = self._by_key.get(record.unique_key)
        if order is not None:
            order.stored += 1
            copies = f" (copy {order.stored})" if order.stored > 1 else ""
            self._tell(order.number, f"    {record.node} has stored it{copies}")


def _mistake(order: Order, wanted: object, left_ms: int) -> str:
    """What a rule may not ask for, in words; empty if all is well."""
    if not isinstance(wanted, Try):
        return f"your rule returned {type(wanted).__name__}: return Try(broker, timeout_ms, pause_ms) or None"
    if wanted.broker not in BROKERS:
        return f"your rule wants to send to {wanted.broker!r}, which is none of {', '.join(BROKERS)}"
    if wanted.timeout_ms <= 0 or wanted.pause_ms < 0:
        asked = f"your rule returned {wanted!r} with {left_ms} ms left"
        return f"{asked}; a time-out is more than 0 ms, and a pause is not negative (None gives up)"
    if wanted.pause_ms + wanted.timeout_ms > left_ms + SLACK_MS:
        asked_ms = wanted.pause_ms + wanted.timeout_ms
        return f"your rule spends {asked_ms} ms with {left_ms} ms left of the budget"
    if len(order.failed) >= MOST_ATTEMPTS:
        return f"{MOST_ATTEMPTS} attempts for one message: a pause would spare the brokers most of them"
    return ""


def _first_words(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= 60 else f"{text[:58]}..."
