"""Who watches a world is no part of it, also when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import ObserverError, SimulationError
from mqlab.trace.bus import Row
from mqlab.trace.monitors import Monitor
from mqlab.trace.record import Record
from mqlab.trace.recorder import JsonLinesRecorder
from tests.worlds import shop, started_consumer, started_producer

KINDS = ("MessageStored", "OffsetCommitted", "MessageDispatched", "RequestReceived", "SendSucceeded", "ConsumeStarted")


def busy_lab(kind: str = "", sink: Any = None) -> Lab:
    """A lab in which a message is under way from a producer to a listener; a sink that fails may watch it."""
    lab = shop(topic="TopicTest")
    producer = started_producer(lab, "orders")
    started_consumer(lab, lambda messages, context: None, topic="TopicTest")
    lab.run_for(seconds=25)
    if kind:
        lab.world.hooks.attach(sink or failing_at(kind))
    producer.send(Message("TopicTest", b"hello")).start()
    return lab


def failing_at(kind: str) -> Any:
    """A sink that fails at each event of a kind."""

    def full_disk(row: Row) -> None:
        if row[7] == kind:
            raise OSError("No space left on device")

    return full_disk


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_a_sink_is_told_to_whoever_plays_and_to_nobody_inside(kind: str) -> None:
    lab = busy_lab(kind)
    with pytest.raises(ObserverError, match=rf"full_disk, which watches.*at an event {kind}: OSError: No space left"):
        lab.run_for(seconds=60)
    rows = list(lab.history.rows())
    assert {row[7] for row in rows}.isdisjoint({"ProcessorFailed", "RequestTimedOut", "ListenerFailed"})
    undisturbed = busy_lab()
    undisturbed.run_for(seconds=60)
    assert rows == list(undisturbed.history.rows(0, len(rows)))


def test_a_world_whose_observer_has_failed_is_broken() -> None:
    lab = busy_lab("MessageStored")
    with pytest.raises(ObserverError):
        lab.run_for(seconds=60)
    assert lab.world.broken is not None
    with pytest.raises(SimulationError, match=r"this world is broken: .*full_disk, which watches"):
        lab.run_for(seconds=1)


def test_an_observer_that_fails_at_an_action_is_told_at_once() -> None:
    with pytest.raises(ObserverError, match="at an event ActionTaken"):
        busy_lab("ActionTaken").freeze("broker-a")


def test_a_breakpoint_is_named_with_what_it_looks_for() -> None:
    def of_a_large_offset(record: Record) -> bool:
        return bool(record.no_such_field)

    lab = busy_lab()
    with pytest.raises(ObserverError, match=r"Breakpoint where of_a_large_offset\(record\), which watches"):
        lab.run_until_event(of_a_large_offset)  # type: ignore[arg-type]  # a function is fine for a breakpoint
    monitor = FailingMonitor()
    with pytest.raises(ObserverError, match=r"FailingMonitor, which watches.*ZeroDivisionError"):
        busy_lab("MessageStored", monitor).run_for(seconds=1)


class FailingMonitor(Monitor):
    """Nothing is ever stored."""

    kinds = ("MessageStored",)

    def on_event(self, record: Record) -> None:
        """Fail."""
        _ = 1 // 0


def test_a_recorder_that_cannot_write_stops_the_world_with_a_sentence(tmp_path: Path) -> None:
    with JsonLinesRecorder(tmp_path / "trace.jsonl") as recorder:
        pass
    lab = busy_lab("any", recorder)
    with pytest.raises(ObserverError, match=r"JsonLinesRecorder to .*trace\.jsonl, which watches the world, failed"):
        lab.run_for(seconds=600)
