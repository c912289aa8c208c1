"""The checks of lab 19: when an error comes, what it says, a retry rule against a naive one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.errors import (
    MQBrokerException,
    MQClientException,
    RemotingConnectException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.exercises.bad_day import BadDay, RetryRule, naive_rule
from mqlab.lab import Lab
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.message import Message

SCAN_FIRST_MS, SCAN_PERIOD_MS = 3_000, 1_100
SLACK_MS = 5


@lab_check("19/scan", points=1)
def removed_at(answer: Callable[..., float], *, seed: int) -> Wrong | None:
    """A broker hangs, and the callback of an asynchronous send is called by the scan that was foretold."""
    random = Random(seed)
    timeout_ms, pause_ms = random.randrange(500, 4_000, 50), random.randrange(1_500, 4_500)
    heard: list[Exception | None] = []
    lab = Lab(seed, history=False)
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 1)
    lab.run_for(ms=random.randrange(20_000))
    producer = lab.producer("shop", send_msg_timeout=timeout_ms)
    first_ms = round(lab.now_ms) + SCAN_FIRST_MS
    lab.run(producer.start())
    lab.run(producer.send(Message("Orders", b"the first one opens the connection")))
    # The first heartbeat is answered during the pause: one that times out would close the connection.
    pause_ms += _off_the_edge(lab.now_ms + pause_ms + timeout_ms + 1_000 - first_ms)
    lab.run_for(ms=pause_ms)
    lab.freeze("broker-a")
    sent_ms = round(lab.now_ms)
    foretold = answer(sent_ms, timeout_ms, first_ms)
    lab.run(producer.send_async(Message("Orders", b"never answered"), lambda _, error: heard.append(error)))
    lab.run_until(lambda: bool(heard))
    if not is_number(foretold) or abs(foretold - lab.now_ms) > SLACK_MS:
        asked = f"removed_at(sent_ms={sent_ms}, timeout_ms={timeout_ms}, first_ms={first_ms})"
        told = f"{asked} is {foretold!r}, and the callback was called at {lab.now_ms:.0f} ms"
        scans = range(first_ms, round(lab.now_ms) + 2 * SCAN_PERIOD_MS, SCAN_PERIOD_MS)
        steps = [f"sent at {sent_ms} ms", *(f"scan at {scan_ms} ms" for scan_ms in scans if scan_ms >= sent_ms)]
        return Wrong(told, "\n".join(steps))
    return None


def _off_the_edge(behind_ms: float) -> int:
    """How many ms more keep a request from growing old just when a scan comes by, where microseconds decide."""
    over = behind_ms % SCAN_PERIOD_MS
    return 4 * SLACK_MS if min(over, SCAN_PERIOD_MS - over) < 2 * SLACK_MS else 0


@lab_check("19/may-be-stored", points=1)
def may_be_stored(answer: Callable[[Exception], bool], *, seed: int) -> Wrong | None:
    """The errors of sends are told apart: has the attempt certainly stored nothing, or does nobody know?"""
    random, cases = Random(seed), Cases()
    address = f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}:10911"
    timeout_ms = random.randrange(500, 4_000)
    errors: list[tuple[Exception, bool]] = [
        (RemotingConnectException(address), False),
        (MQBrokerException(random.choice([2, 13, 14, 16]), "refused", address), False),
        (MQClientException(f"send request to {address} failed: executor rejected"), False),
        (RemotingSendRequestException(address), True),
        (RemotingTimeoutException(address, timeout_ms), True),
        (RemotingTooMuchRequestException(f"sendDefaultImpl call timeout, {timeout_ms}(ms)"), True),
    ]
    random.shuffle(errors)
    for error, unknown in errors:
        said = answer(error)
        name, text = type(error).__name__, str(error).partition("\n")[0]
        told = f"{name} ({text}): to be said is {unknown}, and yours says {said!r}"
        cases.note(unknown, said is unknown or Wrong(told))
    return cases.result


@lru_cache(maxsize=256)
def _naive_day(seed: int) -> tuple[int, int]:
    """What the naive rule makes of a day: messages delivered, duplicates."""
    day = BadDay(naive_rule, seed).play()
    return day.delivered, day.duplicates


@lab_check("19/retry-rule", points=3)
def retry_rule(answer: RetryRule, *, seed: int) -> Right | Wrong:
    """On a bad day of two brokers every legal message is delivered in 3 s, with no more copies than the naive rule."""
    _, naively = _naive_day(seed)  # first, so that the student's world is the last one, which the verdict opens
    day = BadDay(answer, seed).play()
    wrong = _asked_too_much(day) or _gave_up(day) or _sent_what_is_illegal(day) or _too_many_duplicates(day)
    if wrong is None:
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


def _sent_what_is_illegal(day: BadDay) -> tuple[str, int] | None:
    """Was a message tried again that no broker will ever take?"""
    for order in day.orders:
        answers = [past.error for past in order.failed if isinstance(past.error, MQBrokerException)]
        refusals = sum(answer.response_code == ResponseCode.MESSAGE_ILLEGAL for answer in answers)
        if refusals > 1:
            told = f"message {order.number} is illegal (CODE: 13), brokers said so {refusals} times"
            return f"{told}, and no broker will ever take it", order.number
    return None
