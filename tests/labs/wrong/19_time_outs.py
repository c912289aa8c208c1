"""Plausible wrong solutions of lab 19_time_outs, each of which its check catches."""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.errors import (
    MQBrokerException,
    RemotingConnectException,
    RemotingException,
    RemotingTimeoutException,
)
from mqlab.protocol.codes import ResponseCode
from mqlab.scenarios.bad_day import Failed, Try, naive_rule

RESERVE_MS = 500
PAUSE_MS = 100


def at_the_time_out(sent_ms: int, timeout_ms: int, first_ms: int) -> int:
    """Takes the time-out for an alarm clock."""
    return sent_ms + timeout_ms


def without_the_second(sent_ms: int, timeout_ms: int, first_ms: int) -> int:
    """Forgets that the scan removes what is a second older than its time-out."""
    while first_ms < sent_ms + timeout_ms:
        first_ms += 1_100
    return first_ms


def scans_once_a_second(sent_ms: int, timeout_ms: int, first_ms: int) -> int:
    """Scans every 1000 ms, as it was ordered."""
    while first_ms < sent_ms + timeout_ms + 1_000:
        first_ms += 1_000
    return first_ms


def an_error_is_an_error(error: Exception) -> bool:
    """What raises an error has not been stored."""
    return False


def only_a_time_out_is_open(error: Exception) -> bool:
    """Forgets the connection that ended, and the budget that is used up."""
    return isinstance(error, RemotingTimeoutException)


def all_that_is_remoting(error: Exception) -> bool:
    """Takes a refused connection for one of those of which nobody knows."""
    return isinstance(error, RemotingException)


def an_answer_is_unknown(error: Exception) -> bool:
    """Takes only a refused connection for a fact."""
    return not isinstance(error, RemotingConnectException)


def _next_broker(failed: Sequence[Failed], brokers: Sequence[str]) -> str:
    return brokers[len(failed) % len(brokers)]


def _is_illegal(failed: Sequence[Failed]) -> bool:
    last = failed[-1].error if failed else None
    return isinstance(last, MQBrokerException) and last.response_code == ResponseCode.MESSAGE_ILLEGAL


def _was_unanswered(failed: Sequence[Failed]) -> bool:
    return any(isinstance(past.error, RemotingTimeoutException) for past in failed)


def as_rocketmq_does(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """The defaults of RocketMQ: three attempts, each of which may take all that is left."""
    if len(failed) == 3 or left_ms <= 0:
        return None
    return Try(_next_broker(failed, brokers), left_ms)


def never_waits(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Tries until the time is over, and a refused connection costs no time: thousands of attempts."""
    if _is_illegal(failed) or left_ms <= 0:
        return None
    return Try(_next_broker(failed, brokers), max(1, left_ms - RESERVE_MS))


def fears_the_second_copy(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Gives up after a time-out, since the message might be stored: right, and the application has to ask itself."""
    pause_ms = PAUSE_MS if len(failed) > 1 else 0
    if _is_illegal(failed) or _was_unanswered(failed) or left_ms <= RESERVE_MS + PAUSE_MS:
        return None
    return Try(_next_broker(failed, brokers), left_ms - pause_ms - RESERVE_MS, pause_ms)


def many_short_attempts(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Many short attempts in place of a long one: a broker that is only slow stores a copy for each."""
    pause_ms = PAUSE_MS if len(failed) > 1 else 0
    if _is_illegal(failed) or left_ms <= pause_ms:
        return None
    return Try(_next_broker(failed, brokers), min(250, left_ms - pause_ms), pause_ms)


def stays_with_its_broker(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Tries the same broker again and again."""
    pause_ms = PAUSE_MS if failed else 0
    if _is_illegal(failed) or left_ms <= pause_ms:
        return None
    left_ms -= pause_ms
    return Try(brokers[0], left_ms if _was_unanswered(failed) else max(1, left_ms - RESERVE_MS), pause_ms)


def forgets_what_is_left(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Gives each attempt its second, although less than that is left."""
    if _is_illegal(failed) or left_ms <= 0:
        return None
    return Try(_next_broker(failed, brokers), 2_500, PAUSE_MS if len(failed) > 1 else 0)


def believes_every_answer_is_final(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Gives up whenever a broker answers with an error, also when another one would take the message."""
    pause_ms = PAUSE_MS if len(failed) > 1 else 0
    if (failed and isinstance(failed[-1].error, MQBrokerException)) or left_ms <= pause_ms:
        return None
    left_ms -= pause_ms
    return Try(_next_broker(failed, brokers), left_ms if left_ms <= RESERVE_MS else left_ms - RESERVE_MS, pause_ms)


def tries_what_is_illegal(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
    """Looks at no error at all: a message that no broker takes is sent until its time is over."""
    pause_ms = PAUSE_MS if len(failed) > 1 else 0
    if left_ms <= pause_ms:
        return None
    left_ms -= pause_ms
    return Try(_next_broker(failed, brokers), left_ms if left_ms <= RESERVE_MS else left_ms - RESERVE_MS, pause_ms)


WRONG = {
    "19/scan": [at_the_time_out, without_the_second, scans_once_a_second],
    "19/may-be-stored": [an_error_is_an_error, only_a_time_out_is_open, all_that_is_remoting, an_answer_is_unknown],
    "19/retry-rule": [
        naive_rule,
        as_rocketmq_does,
        never_waits,
        fears_the_second_copy,
        many_short_attempts,
        stays_with_its_broker,
        forgets_what_is_left,
        believes_every_answer_is_final,
        tries_what_is_illegal,
    ],
}
