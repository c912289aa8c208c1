"""The check of lab 09: a listener that books each payment exactly once, although messages come twice."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mqlab.check import Wrong, lab_check
from mqlab.scenarios.payment_day import Ledger, PaymentDay


@lab_check("09/idempotent-listener", points=3)
def idempotent_listener(answer: Callable[[Ledger], Any], *, seed: int) -> Wrong | None:
    """Each payment is booked once, whatever is killed or sent twice; what nobody can read becomes a dead letter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an error of the listener is told in the story
        day = PaymentDay(answer, seed).play()
    return _booked(day) or _dead(day)


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
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
