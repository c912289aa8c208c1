"""The checks of lab 30: calls on a schedule, copies of a send, what comes again, an application that loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.client.v5 import ClientException, Message, Producer, SimpleConsumer
from mqlab.exercises.packing_day import COUNT, Application, PackingDay
from mqlab.lab import Lab
from mqlab.sim import Call

TOPIC, BROKER, PROXY = "Orders", "broker-a", "proxy-1"
SCHEDULES = {"Heartbeat": (1, 10), "QueryRoute": (10, 30)}
"""What a client of 5.x does again and again: after how many seconds first, and how often."""
REQUEST_LOST, ANSWER_LOST, ANSWERED = "request lost", "answer lost", "answered"
APART_S, NEAR_S = 6, 4
"""A call without an answer takes some seconds; so near to the end of the invisible time nothing is asked."""
LONG_MS, REVIVED_MS = 60_000, 12_000
"""At the latest so long after its invisible time an order comes again."""


def _shop(seed: int, attempts: int = 3) -> Lab:
    lab = Lab(seed)
    lab.name_server()
    lab.broker(BROKER)
    lab.create_topic(TOPIC, 1)
    lab.proxy(PROXY, grpc_client_producer_max_attempts=attempts)
    return lab


def _producer(lab: Lab) -> Producer:
    producer = lab.producer_v5(topics=TOPIC)
    lab.run(producer.start())
    return producer


# -- calls on a schedule --------------------------------------------------------------------------------------------


@lab_check("30/calls", points=1)
def calls_until(answer: Callable[[float, float, float], int], *, seed: int) -> Wrong | None:
    """A client does nothing, and as many heartbeats and questions for a route reach the proxy as were foretold."""
    random, cases = Random(seed), Cases()
    lab = _shop(seed)
    _producer(lab)
    began_ms = lab.now_ms
    for _ in range(3):
        # What is called at whole seconds is not counted just then.
        until_s = int((lab.now_ms - began_ms) / 1_000) + random.randint(4, 40) + random.randint(20, 80) / 100
        until_s = round(until_s, 2)
        lab.run_for(ms=began_ms + until_s * 1_000 - lab.now_ms)
        for name, (first_s, every_s) in SCHEDULES.items():
            came = lab.history.find("RequestReceived", node=PROXY)
            # Its first question for a route is no turn of the schedule: it is asked before the start is over.
            count = sum(each.request_name == name and each.ts_ms > began_ms + 500 for each in came)
            got = answer(first_s, every_s, until_s)
            told = f"calls_until({first_s}, {every_s}, {until_s}): {count} of {name} came, and yours says {got!r}"
            cases.note((name, count), (is_number(got) and got == count) or Wrong(told))
    return cases.result


# -- copies ---------------------------------------------------------------------------------------------------------


@lab_check("30/copies", points=1)
def copies(answer: Callable[[list[str], int], tuple[int, bool]], *, seed: int) -> Wrong | None:
    """Requests and answers of a send are lost: as many copies are stored as was foretold, with or without an error."""
    random, cases = Random(seed), Cases()
    most = random.randint(2, 5)
    lab = _shop(seed, most)
    producer = _producer(lab)
    lab.run_for(ms=random.randrange(1_500, 9_000))
    for number in range(5):
        ways = [random.choice((REQUEST_LOST, ANSWER_LOST, ANSWER_LOST, ANSWERED)) for _ in range(7)]
        before = _stored(lab)
        told_so = _send(lab, producer, number, ways)
        want = (_stored(lab) - before, told_so)
        got = answer(list(ways), most)
        fits = isinstance(got, tuple | list) and tuple(got) == want and type(tuple(got)[1]) is bool
        cases.note(want, fits or Wrong(f"copies({ways}, {most}): it is {want}, and yours gives {got!r}"))
        lab.run_for(ms=random.randrange(1_000, 4_000))
    return cases.result


def _stored(lab: Lab) -> int:
    return sum(1 for _ in lab.history.find("MessageStored", topic=TOPIC))


def _send(lab: Lab, producer: Producer, number: int, ways: Sequence[str]) -> bool:
    """Send a message whose attempts go these ways; True if the application is told that it is stored."""
    sending = producer.send(Message(TOPIC, f"order {number}")).start()
    for attempt, way in enumerate(ways, _attempts(lab) + 1):
        _until_attempt(lab, sending, attempt)
        if sending.done:
            break
        _lose(lab, sending, way, "SEND_MESSAGE_V2")
    try:
        sending.play()
    except ClientException:
        return False
    return True


def _until_attempt(lab: Lab, sending: Call[Any], number: int) -> None:
    lab.run_until(lambda: sending.done or _attempts(lab) >= number)


def _attempts(lab: Lab) -> int:
    return sum(1 for _ in lab.history.find("SendAttempted", topic=TOPIC))


def _lose(lab: Lab, call: Call[Any], way: str, request_name: str) -> None:
    """Break the connection between proxy and broker while this request of the call, or its answer, is on its way."""
    if way == ANSWERED:
        return
    kind, node = ("RequestSent", PROXY) if way == REQUEST_LOST else ("RequestReceived", BROKER)

    def count() -> int:
        return sum(1 for _ in lab.history.find(kind, node=node, request_name=request_name))

    before = count()
    lab.run_until(lambda: call.done or count() > before)
    lab.act("disconnect", a=PROXY, b=BROKER)


# -- what comes again -----------------------------------------------------------------------------------------------


class Try(NamedTuple):
    """An acknowledgement: how many seconds after the order was received, and what becomes of it."""

    after_s: int
    way: str


@lab_check("30/again", points=1)
def comes_again(answer: Callable[[int, list[tuple[int, str]]], bool], *, seed: int) -> Wrong | None:
    """Acknowledgements and their answers are lost, or come late, and the order comes again when that was foretold."""
    random, cases = Random(seed), Cases()
    lab = _shop(seed)
    producer = _producer(lab)
    consumer = lab.simple_consumer("packers", await_duration=5_000)
    consumer.subscribe(TOPIC)
    lab.run(consumer.start())
    for number in range(5):
        lab.run(producer.send(Message(TOPIC, f"order {number}")))
        invisible_s = random.randint(12, 28)
        tries = _tries(random, invisible_s)
        want = _receive(lab, consumer, invisible_s, tries)
        plain = [(each.after_s, each.way) for each in tries]
        got = answer(invisible_s, list(plain))
        asked = f"comes_again({invisible_s}, {plain})"
        cases.note(want, got is want or Wrong(f"{asked} is {want}, and yours gives {got!r}"))
    return cases.result


def _tries(random: Random, invisible_s: int) -> list[Try]:
    """One or two acknowledgements, none of them just when the time is over."""
    tries, after_s = [], 0
    for _ in range(random.randint(1, 2)):
        after_s += random.randint(APART_S, 2 * APART_S)
        if abs(after_s - invisible_s) < NEAR_S:
            after_s += 2 * NEAR_S
        tries.append(Try(after_s, random.choice((REQUEST_LOST, REQUEST_LOST, ANSWER_LOST, ANSWERED))))
    return tries


def _receive(lab: Lab, consumer: SimpleConsumer, invisible_s: int, tries: Sequence[Try]) -> bool:
    """Receive an order, acknowledge it in these ways, and look whether it comes once more."""
    [order] = lab.run(consumer.receive(1, invisible_s * 1_000))
    received_ms = lab.now_ms
    for each in tries:
        lab.run_for(ms=received_ms + each.after_s * 1_000 - lab.now_ms)
        acknowledging = consumer.ack(order).start()
        _lose(lab, acknowledging, each.way, "ACK_MESSAGE")
        with suppress(ClientException):
            acknowledging.play()
    end_ms = max(lab.now_ms, received_ms + invisible_s * 1_000) + REVIVED_MS
    while lab.now_ms < end_ms:
        for again in lab.run(consumer.receive(1, LONG_MS)):
            lab.run(consumer.ack(again))
            return True
    return False


# -- the application ------------------------------------------------------------------------------------------------


@lab_check("30/application", points=3)
def application(answer: Application, *, seed: int) -> Right | Wrong:
    """On a day of ten orders, with a broker, an answer or the application itself dying, each order gets its invoice."""
    day = PackingDay(answer, seed).play()
    wrong = _lost_orders(day) or _left(day) or _needless(day)
    if wrong is not None:
        return wrong
    copies_of = sum(order.invoices - 1 for order in day.orders)
    return Right({"invoices": {"stored": COUNT + copies_of, "had to": COUNT}})


def _lost_orders(day: PackingDay) -> Wrong | None:
    """Is there an order without an invoice, or is the application over while orders come?"""
    lost = next((order for order in day.orders if not order.invoices), None)
    if lost is None:
        return Wrong(f"the application is over: {day.ended}", day.story(day.orders[-1])) if day.ended else None
    told = f"no invoice is stored for {lost.name}"
    return Wrong(f"{told}, since the application is over: {day.ended}" if day.ended else told, day.story(lost))


def _left(day: PackingDay) -> Wrong | None:
    """Does an order come again and again?"""
    for order in day.orders:
        if not day.is_settled(order):
            told = f"{order.name} was received {order.received} times, and is not acknowledged when the day is over"
            return Wrong(told, day.story(order))
    return None


def _needless(day: PackingDay) -> Wrong | None:
    """Was an invoice sent once more of which the application had been told that it is stored?"""
    order = next((order for order in day.orders if order.needless), None)
    if order is None:
        return None
    told = f"the invoice for {order.name} is sent once more, and the application had been told that it is stored"
    return Wrong(told, day.story(order))
