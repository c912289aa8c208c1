"""Monitors: each of them holds on a good trace and is broken by the trace that breaks its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.trace.events.client import ConsumeFinished, ConsumeStarted, OffsetUpdated, QueueDropped, SendSucceeded
from mqlab.trace.events.store import MessageStored, StoreRecovered
from mqlab.trace.events.world import NodeCrashed
from mqlab.trace.history import History
from mqlab.trace.monitors import (
    GROUND_RULES,
    AcknowledgedIsStored,
    Monitor,
    NothingConsumedThatWasNotStored,
    OffsetNeverPassesUnconsumed,
    judge,
)

Play = Callable[[Any], History]
QUEUE = ("readers", "TopicTest", "broker-a", 0)


def stored(key: str, at: int = 0, node: str = "broker-a") -> tuple[str, Any]:
    return node, MessageStored("TopicTest", 0, 0, at, 100, key)


def acknowledged(key: str, status: str = "SEND_OK") -> tuple[str, Any]:
    return "producer-1", SendSucceeded("TopicTest", "broker-a", 0, 0, key, status)


def recovered(end: int) -> tuple[str, Any]:
    return "broker-a", StoreRecovered(False, 1, 1, 0, end, 0, "")


def started(offset: int, key: str = "M", reconsume_times: int = 0) -> tuple[str, Any]:
    return "consumer-1", ConsumeStarted(*QUEUE, offset, key, 1, reconsume_times)


def finished(offset: int) -> tuple[str, Any]:
    return "consumer-1", ConsumeFinished(*QUEUE, offset, "M", "CONSUME_SUCCESS", 0)


def offset_at(offset: int) -> tuple[str, Any]:
    return "consumer-1", OffsetUpdated(*QUEUE, offset)


DROPPED = ("consumer-1", QueueDropped("c", *QUEUE, "rebalance"))
CRASHED = ("world", NodeCrashed("consumer-1", 1))


def reasons(play: Play, monitor: Monitor, script: list[tuple[str, Any]]) -> list[str]:
    for row in play([(n + 1, node, event) for n, (node, event) in enumerate(script)]).rows():
        monitor(row)
    return [violation.reason for violation in monitor.violations]


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        ([stored("A"), acknowledged("A")], []),
        ([acknowledged("A"), stored("A")], ["message A was acknowledged and is in no store"]),
        ([stored("A"), acknowledged("A,B")], ["message B was acknowledged and is in no store"]),
        ([acknowledged("A", "FLUSH_DISK_TIMEOUT")], []),
        ([stored("A", 0), acknowledged("A"), recovered(100)], []),
        ([stored("A", 100), acknowledged("A"), recovered(100)], ["message A was acknowledged and is lost"]),
        ([stored("A", 100), recovered(100)], []),
        ([stored("A", 100), stored("A", 100, "broker-b"), acknowledged("A"), recovered(100)], []),
        ([stored("A", 100), acknowledged("A"), recovered(0), recovered(0)], ["message A was acknowledged and is lost"]),
    ],
)
def test_what_was_acknowledged_is_stored(play: Play, script: list[Any], broken: list[str]) -> None:
    assert reasons(play, AcknowledgedIsStored(), script) == broken


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        ([stored("A"), started(0, "A"), started(0, "A")], []),
        ([started(0, "A"), stored("A")], ["message A was given to a listener and never stored"]),
    ],
)
def test_what_is_consumed_was_stored(play: Play, script: list[Any], broken: list[str]) -> None:
    assert reasons(play, NothingConsumedThatWasNotStored(), script) == broken


@pytest.mark.parametrize(
    ("script", "broken"),
    [
        ([started(0), finished(0), offset_at(1)], []),
        ([started(0), started(1), finished(1), offset_at(0), finished(0), offset_at(2)], []),
        (
            [started(0), started(1), finished(1), offset_at(2)],
            ["the listener of the message at offset 0 is still running"],
        ),
        ([started(0), DROPPED, offset_at(1)], []),
        ([started(0), CRASHED, offset_at(1)], []),
        ([started(0, reconsume_times=1), offset_at(1)], []),
    ],
)
def test_the_offset_waits_for_the_listeners(play: Play, script: list[Any], broken: list[str]) -> None:
    assert reasons(play, OffsetNeverPassesUnconsumed(), script) == broken


def test_a_verdict_names_the_rule_and_shows_the_events_that_broke_it(play: Play) -> None:
    history = play([(1, *acknowledged("A"))])
    stored_first, consumed, _ = judge(history.rows(), *(rule() for rule in GROUND_RULES))
    assert not stored_first.holds
    assert str(stored_first).splitlines() == [
        "BROKEN 1 times: A message that a producer was told is stored is in a broker's store, "
        "and survives every restart of it.",
        "message A was acknowledged and is in no store",
        f"  {history[0]}",
    ]
    assert str(consumed) == "holds: No listener is given a message that no broker had stored before."
