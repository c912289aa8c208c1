"""The checks of lab 09: the next wait, two kinds of failure, and a listener that books each payment exactly once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mqlab import ConsumeConcurrentlyStatus
from mqlab.check import Right, Wrong, draws_for, lab_check
from mqlab.client import ConsumeConcurrentlyContext
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.scenarios.payment_day import Ledger, PaymentDay
from mqlab.sim import World

RETRY_LEVEL = 3
DEAD_LEVEL, FIVE_SECONDS_LEVEL = -1, 2


@lab_check("09/next-wait", points=1)
def next_wait(answer: Callable[[int, list[int], int], int | None], *, seed: int) -> Wrong | None:
    """The waits of one message from its first failure to the dead letter, with other levels and limits."""
    draw = draws_for(seed)
    delays_ms = [1_000 * (level + draw.between(f"level {level}", 0, 3)) for level in range(1, 19)]
    most = draw.between("most", 1, 20)
    for times in range(most + 1):
        level = min(RETRY_LEVEL + times, len(delays_ms))
        want = delays_ms[level - 1] if times < most else None
        got = answer(times, list(delays_ms), most)
        if got != want:
            told = "it becomes a dead letter (None)" if want is None else f"it waits on level {level}, {want} ms"
            return Wrong(f"reconsumeTimes {times}, at most {most} are allowed: {told}, and yours says {got}")
    return None


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
