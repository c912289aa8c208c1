"""The check of lab 03: a retry rule against a naive one, over the bad days of two brokers."""

from __future__ import annotations

from functools import lru_cache

from mqlab.check import Right, Wrong, lab_check
from mqlab.errors import MQBrokerException
from mqlab.protocol.codes import ResponseCode
from mqlab.scenarios.bad_day import BadDay, RetryRule, naive_rule


@lru_cache(maxsize=256)
def _naive_day(seed: int) -> tuple[int, int]:
    """What the naive rule makes of a day: messages delivered, duplicates."""
    day = BadDay(naive_rule, seed).play()
    return day.delivered, day.duplicates


@lab_check("03/retry-rule", points=3)
def retry_rule(answer: RetryRule, *, seed: int) -> Right | Wrong:
    """On a bad day of two brokers every legal message is delivered in 3 s, with no more copies than the naive rule."""
    day = BadDay(answer, seed).play()
    wrong = _asked_too_much(day) or _gave_up(day) or _in_vain(day) or _too_many_duplicates(day)
    if wrong is None:
        _, naively = _naive_day(seed)
        return Right({"copies too many": {"yours": day.duplicates, "naive_rule": naively}})
    explanation, number = wrong
    return Wrong(
        f"{explanation}. To open this day: day = BadDay(your_rule, {seed}).play(), "
        f"then day.story({number}) and day.budget({number})",
        day.story(number),
    )


def _asked_too_much(day: BadDay) -> tuple[str, int] | None:
    """Did the rule ask for something that cannot be?"""
    order = next((order for order in day.orders if order.mistake), None)
    return None if order is None else (f"message {order.number}: {order.mistake}", order.number)


def _gave_up(day: BadDay) -> tuple[str, int] | None:
    """Is there a message that could have been delivered and was not?"""
    lost = day.not_delivered
    if not lost:
        return None
    naively, _ = _naive_day(day.seed)
    count = f"{len(lost)} messages were" if len(lost) > 1 else "a message was"
    told = f"{count} given up: {day.delivered} were delivered, {naively} by the naive rule, "
    first = lost[0].number
    return f"{told}and {day.delivered + len(lost)} could be. See message {first}", first


def _too_many_duplicates(day: BadDay) -> tuple[str, int] | None:
    """Is more stored twice than the naive rule stores twice?"""
    _, naively = _naive_day(day.seed)
    if day.duplicates <= naively:
        return None
    first = next(order for order in day.orders if order.stored > 1)
    told = f"{day.duplicates} copies too many are stored, and the naive rule makes only {naively}"
    return f"{told}: whoever stops waiting does not stop the broker. See message {first.number}", first.number


def _in_vain(day: BadDay) -> tuple[str, int] | None:
    """Was a message tried again that no broker will ever take?"""
    for order in day.orders:
        answers = [past.error for past in order.failed if isinstance(past.error, MQBrokerException)]
        refusals = sum(answer.response_code == ResponseCode.MESSAGE_ILLEGAL for answer in answers)
        if refusals > 1:
            told = f"message {order.number} is illegal (CODE: 13), brokers said so {refusals} times"
            return f"{told}, and no broker will ever take it", order.number
    return None
