"""A bad day of two brokers: they are killed, hang, answer late and refuse, while an application sends by a rule.

`BadDay(rule, seed).play()` is one world; the rule decides each attempt of each message. Lab 19 judges rules with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mqlab.errors import LearnerError, MQBrokerException, MQClientException, RemotingException
from mqlab.exercises.exercise_world import ExerciseWorld
from mqlab.protocol.message import Message, MessageConst, MessageQueue
from mqlab.trace.record import Record
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


class BadDay(ExerciseWorld):
    """One world: an application that sends a message every 200 ms for 22 s, and two brokers that have a bad day."""

    def __init__(self, rule: RetryRule, seed: int, *, history: bool = False) -> None:
        super().__init__(seed, history=history)
        self.rule = rule
        self.orders: list[Order] = []
        self._by_key: dict[str, Order] = {}
        self.watch({"MessageStored": self._stored})
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
        told = [line for line in self.lines if line.about == number]
        told += self.lines_about(until_ms=end_ms)[-4:]
        return self.written(*sorted(told, key=lambda line: line.at_ms)[-lines:])

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
        self._plan()
        for _ in self.passing(MESSAGES * EVERY_MS + REST_MS):
            if any(order.mistake for order in self.orders):
                break
        return self

    def _plan(self) -> None:
        """Five troubles, in another order and with other lengths for each seed, never two at once."""
        between = self.random.uniform
        troubles = [self._kill_one, self._kill_both, self._answer_late, self._hang, self._refuse]
        self.random.shuffle(troubles)
        at_ms = between(300, 800)
        for trouble in troubles:
            at_ms += trouble(at_ms, self.random.choice(BROKERS)) + between(900, 1_300)

    def _kill_one(self, at_ms: float, name: str) -> float:
        lab, length_ms = self.lab, self.random.uniform(1_500, 2_500)
        self.at(at_ms, f"{name} is killed", partial(lab.crash, name))
        self.at(at_ms + length_ms, f"{name} starts again", partial(lab.restart, name))
        return length_ms

    def _kill_both(self, at_ms: float, name: str) -> float:
        lab, length_ms = self.lab, self.random.uniform(800, 1_600)
        other = next(broker for broker in BROKERS if broker != name)
        self.at(at_ms, f"{name} is killed", partial(lab.crash, name))
        self.at(at_ms + 20, f"{other} is killed, too", partial(lab.crash, other))
        self.at(at_ms + length_ms, f"{name} starts again", partial(lab.restart, name))
        self.at(at_ms + length_ms + 900, f"{other} starts again", partial(lab.restart, other))
        return length_ms + 900

    def _answer_late(self, at_ms: float, name: str) -> float:
        length_ms, late_ms = self.random.uniform(2_000, 3_000), round(self.random.uniform(1_200, 2_000))
        node = self.producer.node.name

        def delay(ms: int) -> None:
            for broker in BROKERS:
                self.lab.act("delay", source=broker, target=node, ms=ms)

        self.at(at_ms, f"all answers take {late_ms} ms", partial(delay, late_ms))
        self.at(at_ms + length_ms, "answers are quick again", partial(delay, 0))
        return length_ms + late_ms

    def _hang(self, at_ms: float, name: str) -> float:
        lab, length_ms = self.lab, self.random.uniform(4_000, 5_500)
        self.at(at_ms, f"{name} hangs", partial(lab.freeze, name))
        self.at(at_ms + length_ms, f"{name} goes on", partial(lab.thaw, name))
        return length_ms

    def _refuse(self, at_ms: float, name: str) -> float:
        length_ms = self.random.uniform(1_000, 2_000)
        broker = next(broker for broker in self.lab.brokers if broker.name == name)

        def accept_from(time_ms: int) -> None:
            broker.running().broker_config.start_accept_send_request_time_stamp = time_ms

        self.at(at_ms, f"{name} takes no messages", partial(accept_from, NEVER))
        self.at(at_ms + length_ms, f"{name} takes messages again", partial(accept_from, 0))
        return length_ms

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
        order.begin_ms = self.now_ms
        turn = order.number % len(BROKERS)
        brokers = [*BROKERS[turn:], *BROKERS[:turn]]
        self.tell(f"message {order.number}: the budget is {BUDGET_MS} ms", order.number)
        while not order.delivered:
            left_ms = BUDGET_MS - round(self.now_ms - order.begin_ms)
            wanted = self.rule(list(order.failed), left_ms, list(brokers))
            if wanted is None:
                self.tell(f"  the rule gives up with {left_ms} ms left", order.number)
                break
            order.mistake = _mistake(order, wanted, left_ms)
            if order.mistake:
                self.tell(f"  the rule says {wanted!r} with {left_ms} ms left", order.number)
                break
            await self._attempt(order, Try(wanted.broker, max(1, round(wanted.timeout_ms)), round(wanted.pause_ms)))
        order.end_ms = self.now_ms

    async def _attempt(self, order: Order, wanted: Try) -> None:
        await self.producer.node.sleep(wanted.pause_ms)
        begin_ms = self.now_ms
        attempt = Attempt(round(begin_ms * 1_000), wanted.timeout_ms, wanted.broker)
        order.attempts.append(attempt)
        paused = f"after a pause of {wanted.pause_ms} ms " if wanted.pause_ms else ""
        self.tell(f"  {paused}to {wanted.broker}, for at most {wanted.timeout_ms} ms", order.number)
        queue = MessageQueue(TOPIC, wanted.broker, order.number % QUEUES)
        try:
            await self.producer.send(order.message, queue=queue, timeout=wanted.timeout_ms)
        except FAILURES as error:
            took_ms = round(self.now_ms - begin_ms)
            order.failed.append(Failed(wanted.broker, error, took_ms))
            attempt.outcome = _IN_SHORT.get(type(error).__name__, "an error answer")
            self.tell(f"    failed after {took_ms} ms: {type(error).__name__}: {_first_words(error)}", order.number)
        else:
            order.delivered = attempt.ok = True
            attempt.outcome = "SEND_OK"
            self.tell("    SEND_OK", order.number)
        attempt.end_us = round(self.now_ms * 1_000)

    def _stored(self, record: Record) -> None:
        order = self._by_key.get(record.unique_key)
        if order is not None:
            order.stored += 1
            copies = f" (copy {order.stored})" if order.stored > 1 else ""
            self.tell(f"    {record.node} has stored it{copies}", order.number)


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
