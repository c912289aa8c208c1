"""The checks of lab 09: waits, counts and kinds of failure, and a listener that books each payment exactly once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, scenarios
from mqlab.check import Cases, Right, Wrong, draws_for, lab_check
from mqlab.client import ConsumeConcurrentlyContext
from mqlab.exercises.payment_day import Ledger, PaymentDay
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import World

RETRY_LEVEL = 3
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DEAD_LEVEL, FIVE_SECONDS_LEVEL = -1, 2


@lab_check("09/next-wait", points=1)
def next_wait(answer: Callable[[int, list[int], int], int | None], *, seed: int) -> Wrong | None:
    """The waits of one message from its first failure to the dead letter, with other levels and limits."""
    draw, cases = draws_for(seed), Cases()
    delays_ms = [1_000 * (level + draw.between(f"level {level}", 0, 3)) for level in range(1, 19)]
    most = draw.between("most", 1, 20)
    for times in range(most + 1):
        level = min(RETRY_LEVEL + times, len(delays_ms))
        want = delays_ms[level - 1] if times < most else None
        got = answer(times, list(delays_ms), most)
        told = "it becomes a dead letter (None)" if want is None else f"it waits on level {level}, {want} ms"
        told = f"reconsumeTimes {times}, at most {most} are allowed: {told}, and yours says {got!r}"
        cases.note(want, got == want or Wrong(told))
    return cases.result


@lab_check("09/parked", points=1)
def parked(answer: Callable[[int, int, list[int]], tuple[int, int]], *, seed: int) -> Wrong | None:
    """Delayed messages of all levels, and of levels that there are not, lie where they were foretold and as long."""
    draw = draws_for(seed)
    delays_s = [level + draw.between(f"level {level}", 0, 3) for level in range(1, draw.between("levels", 3, 9) + 1)]
    level = draw.between("level", 1, len(delays_s) + 2)
    lab = _bank(seed, message_delay_level=" ".join(f"{delay_s}s" for delay_s in delays_s))
    shop = lab.producer("shop")
    lab.run(shop.start())
    lab.run(shop.send(Message("Orders", b"later", delay_level=level)))
    lab.run_for(ms=5)
    stored = next(lab.history.find("MessageStored", topic=SCHEDULE_TOPIC))
    queue = lab.queue(SCHEDULE_TOPIC, stored.queue_id)
    stored_ms = int(queue.record(0)["storeTimestamp"].value.split()[0])
    was = stored.queue_id, int(queue.entry(0)["tagsCode"].value.split()[0])
    got = answer(stored_ms, level, [1_000 * delay_s for delay_s in delays_s])
    if got == was:
        return None
    told = f"stored at {stored_ms} ms on level {level}; the levels are {', '.join(f'{s} s' for s in delays_s)}"
    return Wrong(f"{told}: it lies in queue {was[0]} and is due at {was[1]} ms, and yours says {got!r}")


def _bank(seed: int, **settings: Any) -> Lab:
    """A name server, a broker, and a topic of one queue."""
    lab = Lab(seed)
    lab.name_server()
    lab.broker("broker-a", **settings)
    lab.create_topic("Orders", 1)
    return lab


@lab_check("09/says-next", points=1)
def says_next(answer: Callable[[list[bool]], int], *, seed: int) -> Wrong | None:
    """Failures with a broker and without one, in any order."""
    draw, cases = draws_for(seed), Cases()
    for least, most in ((1, 4), (5, 9), (10, 16)):
        failures = draw.between(f"failures, at least {least}", least, most)
        stored = [draw.one_of(f"failure {n} of {failures}", [True, False]) for n in range(failures)]
        behind = stored[::-1].index(True) if True in stored else len(stored)
        want = sum(stored) + behind
        got = answer(list(stored))
        cases.note(want, got == want or Wrong(f"after {stored} it says {want}, and yours says {got!r}"))
    return cases.result


@lab_check("09/come-again", points=1)
def come_again(answer: Callable[[list[float], float], int], *, seed: int) -> Wrong | None:
    """Deliveries before and after the last note, and kills soon after it or late."""
    draw, cases = draws_for(seed), Cases()
    for kill in range(3):
        killed_s = 10 * draw.between(f"tens of {kill}", 1, 12) + draw.between(f"after {kill}", 1, 99) / 10
        delivered_s = sorted(
            round(max(0.05, killed_s - draw.between(f"delivery {n} before {kill}", 1, 180) / 10), 2)
            for n in range(draw.between(f"deliveries before {kill}", 1, 9))
        )
        delivered_s = [at_s for at_s in delivered_s if at_s % 10]
        noted_s = 10 * int(killed_s / 10)
        want = len([at_s for at_s in delivered_s if at_s > noted_s])
        got = answer(list(delivered_s), killed_s)
        told = f"delivered at {delivered_s}, killed at {killed_s} s: {want} come again, and yours says {got!r}"
        cases.note(want, got == want or Wrong(told))
    return cases.result


@lab_check("09/behind-poison", points=1)
def behind_poison(answer: Callable[[int, int, int], float], *, seed: int) -> Wrong | None:
    """Orders behind a bad one, in orderly groups with other limits and paces."""
    draw, cases = draws_for(seed), Cases()
    pace_ms, retries = draw.between("pace", 200, 1_200, step=50), draw.between("retries", 1, 4)
    for n in (1, draw.between("place", 2, 9), 20):
        want = max(n * pace_ms, 1_000 * retries)
        got = answer(pace_ms, retries, n)
        told = f"called_after_ms(pace_ms={pace_ms}, retries={retries}, n={n}) is {want}, and yours says {got!r}"
        cases.note(want, got == want or Wrong(told, world=partial(_poison, pace_ms, retries, seed)))
    return cases.result


def _poison(pace_ms: int, retries: int, seed: int) -> Lab:
    """Such a group, with RocketMQ's own rule."""
    day = {"messages": 20, "poison_at": 2, "orderly_times": retries, "pace_ms": pace_ms}
    return scenarios.get("poison").build(seed, parameters=day).run_for(ms=3 * pace_ms + 1_000 * retries + 500)


@lab_check("09/given-back", points=1)
def given_back(answer: Callable[[float, int], float], *, seed: int) -> Wrong | None:
    """Calls that hang, in consumers that have been running for longer or shorter, with other time-outs."""
    draw = draws_for(seed)
    timeout_min, running_min = draw.between("time-out", 2, 20), draw.between("running", 1, 50)
    looks = [timeout_min * n for n in range(1, 60)]
    want = next(look for look in looks if look - running_min >= timeout_min) - running_min
    got = answer(running_min, timeout_min)
    if got == want:
        return None
    told = f"after {running_min} min, with a time-out of {timeout_min} min: given back after {want} min"
    return Wrong(f"{told}, and yours says {got!r}", world=partial(_hanging, running_min, timeout_min, seed))


def _hanging(running_min: int, timeout_min: int, seed: int) -> Lab:
    """Such a consumer, up to the moment at which it gives the message back."""

    async def hangs(messages: object, context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        await context.sleep(60 * 60_000)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    lab = _bank(seed)
    shop, consumer = lab.producer("shop"), lab.consumer("billing", consume_timeout=timeout_min)
    consumer.subscribe("Orders", "*")
    consumer.register_message_listener(hangs)
    lab.run(shop.start())
    lab.run(consumer.start())
    lab.run_for(seconds=60 * running_min)
    lab.run(shop.send(Message("Orders", b"an order")))
    lab.run_until_event("MessageGivenBack", limit_ms=3_600_000)
    return lab


@lab_check("09/two-failures", points=1)
def two_failures(answer: Callable[[Callable[[MessageExt], None]], Any], *, seed: int) -> Wrong | None:
    """Orders that are good, that nobody can read, and for which the bank does not answer."""
    node = World(seed).node("billing")
    kinds: list[type[Exception] | None] = [None, ValueError, ConnectionError]
    for number, error in enumerate(draws_for(seed).shuffled("kinds", [*kinds, None])):
        billed: list[bytes] = []

        def bill(message: MessageExt, error: type[Exception] | None = error, billed: list[bytes] = billed) -> None:
            billed.append(message.body)
            if error is not None:
                raise error("the order is bad" if error is ValueError else "the bank does not answer")

        message = MessageExt(topic="Orders", body=b"order %d" % number)
        context = ConsumeConcurrentlyContext(node, MessageQueue("Orders", "broker-a", 0))
        status = answer(bill)([message], context)
        wrong = _of_failure(error, status, context.delay_level_when_next_consume)
        if not wrong and billed != [message.body]:
            wrong = f"`bill` is to be called once with the order, and was called {_times(len(billed))}"
        if wrong:
            return Wrong(f"when `bill` {'raises ' + error.__name__ if error else 'does its work'}: {wrong}")
    return None


def _of_failure(error: type[Exception] | None, status: Any, level: int) -> str:
    """What is wrong with a listener's answer, or nothing."""
    want = ConsumeConcurrentlyStatus.RECONSUME_LATER if error else ConsumeConcurrentlyStatus.CONSUME_SUCCESS
    if status is not want:
        return f"{want.name} is wanted, and yours returns {getattr(status, 'name', status)}"
    want_level = {ValueError: DEAD_LEVEL, ConnectionError: FIVE_SECONDS_LEVEL}.get(error) if error else None
    if want_level is not None and level != want_level:
        return f"the delay level {want_level} is wanted, and yours is {level}"
    return ""


@lab_check("09/idempotent-listener", points=3)
def idempotent_listener(answer: Callable[[Ledger], Any], *, seed: int) -> Right | Wrong | None:
    """Each payment is booked once, whatever is killed or sent twice; what nobody can read becomes a dead letter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an error of the listener is told in the story
        day = PaymentDay(answer, seed).play()
    to_book = sum(payment.readable for payment in day.payments)
    right = Right({"calls of the ledger": {"yours": day.books.calls, "payments": to_book}})
    return _booked(day) or _dead(day) or right


def _booked(day: PaymentDay) -> Wrong | None:
    """Is each payment booked once, with the right account and amount?"""
    for payment in day.payments:
        times = sum(cents == payment.cents for _, cents in day.books.entries)
        alike = day.alike(payment)
        if payment.readable and times != len(alike):
            keys = [other.key for other in alike]
            what = f"{payment.cents} cents for {payment.account}"
            how = f"booked {_times(times)}" if times else "not booked"
            told = f"{payment.key} ({what}) is {how}"
            if len(alike) > 1:
                told = f"{' and '.join(keys)} ({what} each) are two payments, and {how} in all"
            lost = ", and its message is a dead letter" if payment.key in day.dead else ""
            came = sum(day.deliveries.get(key, 0) for key in keys)
            return Wrong(f"{told}{lost}; the listener was called {_times(came)} with it", day.story(*keys))
    known = {(p.account, p.cents) for p in day.payments if p.readable}
    for entry in day.books.entries:
        if entry not in known:
            payment = next((p for p in day.payments if p.cents == entry[1]), day.payments[0])
            return Wrong(f"the books have {entry!r}, which nobody paid", day.story(payment.key))
    return None


def _dead(day: PaymentDay) -> Wrong | None:
    """Are the unreadable payments dead letters, and no others?"""
    for payment in day.payments:
        if payment.readable and payment.key in day.dead:
            told = f"{payment.key} is booked, and yet a dead letter: somebody will book it again by hand"
            return Wrong(told, day.story(payment.key))
        if not payment.readable and payment.key not in day.dead:
            came = day.deliveries.get(payment.key, 0)
            told = f"{payment.key} can be read by nobody, and is no dead letter; the listener was called {_times(came)}"
            return Wrong(told, day.story(payment.key))
    return None


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
