"""Every event of a world, kept in bounded memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import World
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import CatalogueError
from mqlab.trace.events.broker import PullHeld, PullReceived, PullWoken
from mqlab.trace.history import KEEP_ROWS, History

EVENTS = 250_000


def row(n: int) -> Row:
    """The n-th event of a long trace: two in each slice, each the effect of the one before."""
    kind, fields = ("PullHeld", (15_000, n, "c")) if n % 2 else ("PullWoken", ("arrived", 70, n, "c"))
    cause = ((n - 1) // 2, (n - 1) % 2) if n else (-1, -1)
    return (n // 2, n % 2, n * 10, "broker-a", "pull", *cause, kind, "readers", "TopicTest", n % 7, n // 7, *fields)


def fill(history: History, make: Callable[[int], Row]) -> None:
    """Give a history as many events as it keeps in memory."""
    for n in range(KEEP_ROWS):
        history(make(n))


@pytest.fixture(scope="module")
def long() -> History:
    """A history that is longer than memory keeps."""
    history = History()
    for n in range(EVENTS):
        history(row(n))
    return history


def test_a_long_history_counts_and_reads_every_event(long: History) -> None:
    assert len(long) == EVENTS
    for n in (0, 1, 999, 1_000, EVENTS - KEEP_ROWS, EVENTS - KEEP_ROWS + 10_001, EVENTS - 1):
        assert long.row(n) == row(n)
        assert long[n - EVENTS].row == row(n)


def test_a_long_history_reads_stretches(long: History) -> None:
    assert list(long.rows(149_990, 150_020)) == [row(n) for n in range(149_990, 150_020)]
    assert [r.row for r in long[995:1_005]] == [row(n) for n in range(995, 1_005)]
    assert [r.row for r in long[4:0:-2]] == [row(4), row(2)]
    assert long[-3:] == long.records(EVENTS - 3)
    assert list(long.rows(10, 10)) == list(long.rows(EVENTS)) == []
    assert all(read == row(n) for n, read in enumerate(long.rows()))


@pytest.mark.parametrize("n", [EVENTS, -EVENTS - 1])
def test_an_event_that_is_not_there_is_an_error(long: History, n: int) -> None:
    with pytest.raises(IndexError, match=f"the history has {EVENTS} events, so there is no event {n}"):
        _ = long[n]


def test_memory_does_not_grow_with_the_history() -> None:
    history = History()
    tracemalloc.start()
    try:
        fill(history, row)
        full, _ = tracemalloc.get_traced_memory()
        for n in range(KEEP_ROWS, EVENTS):
            history(row(n))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.15 * full


def test_keeping_an_event_costs_less_than_a_microsecond() -> None:
    rows = [row(n) for n in range(EVENTS)]

    def us_per_event() -> float:
        history = History()
        start = time.process_time()
        for one in rows:
            history(one)
        return (time.process_time() - start) * 1e6 / EVENTS

    assert min(us_per_event() for _ in range(3)) < 1


def test_finding_an_event_by_its_id(long: History) -> None:
    for n in (0, 1, 999, 1_000, 1_001, 149_999, 150_000, EVENTS - 1):
        assert long.index_of(row(n)[:2]) == n
    for at in ((-1, 0), (5, 2), (EVENTS, 0)):
        with pytest.raises(KeyError):
            long.index_of(at)


def test_the_chain_of_causes_goes_back_to_the_first(long: History) -> None:
    chain = long.chain(long[2_500])
    assert [r.row for r in chain] == [row(n) for n in range(2_501)]
    assert long.cause_of(long[0]) is None


def test_a_cause_from_before_the_history_is_none(play: Callable[[Any], History]) -> None:
    history = History()
    history((7, 0, 0, "broker-a", "pull", 3, 0, "PullHeld", "g", "t", 0, 0, 1, 1, "c"))
    assert history.cause_of(history[0]) is None
    assert history.chain(history[0]) == [history[0]]


def test_a_stretch_of_time_is_found_without_reading_the_rest(long: History) -> None:
    assert [r.row for r in long.between(9.985, 10.01)] == [row(999), row(1_000), row(1_001)]
    assert list(long.between(0.001, 0.009)) == []
    assert [r.row for r in long.between(-5, 0)] == [row(0)]
    assert sum(1 for _ in long.between(2_499, 9_999)) == 100


def test_find_is_lazy_and_filters_by_kind_and_fields(long: History) -> None:
    found = long.find(PullHeld, queue_id=3)
    assert next(found).row == row(3)
    assert next(found).row == row(17)
    last = long.last("PullWoken", queue_id=5, before=100)
    assert last is not None
    assert last.row == row(max(n for n in range(0, 100, 2) if n % 7 == 5))
    assert sum(1 for _ in long.find(queue_id=3, start=240_000)) == len(
        [n for n in range(240_000, EVENTS) if n % 7 == 3]
    )
    assert list(long.find(("PullHeld", PullWoken), node="broker-b")) == []


def test_the_cursor_moves_over_events(play: Callable[[Any], History]) -> None:
    held = PullHeld("readers", "TopicTest", 0, 0, 15_000, 1, "10.0.0.9:4000")
    other = PullHeld("readers", "TopicTest", 1, 0, 15_000, 2, "10.0.0.9:4000")
    woken = PullWoken("readers", "TopicTest", 0, 0, "arrived", 2_000, 1, "10.0.0.9:4000")
    history = play([(1, "broker-a", held), (2, "broker-a", other), (3, "broker-a", woken)])
    assert history.at_cursor is None
    assert history.forward().event == held  # type: ignore[union-attr]
    assert history.forward("PullWoken").event == woken  # type: ignore[union-attr]
    assert (history.cursor, history.forward()) == (3, None)
    assert history.back(PullHeld, queue_id=0).event == held  # type: ignore[union-attr]
    assert history.cursor == 1
    assert history.back() is None
    assert history.cursor == 1
    assert history.move_to(99) == history[-1]
    assert history.move_to(-1) is None
    assert repr(history) == "<History: 3 events, cursor at 0>"


@pytest.mark.parametrize(
    ("kind", "fields", "hint"),
    [
        ("PullHold", {}, "there is no event kind 'PullHold'"),
        (PullHeld, {"queue": 1}, "PullHeld does not have a field 'queue'"),
        (None, {"topik": "x"}, "no event has a field 'topik'"),
        (None, {"hold_ms": 1, "reason": "x"}, "no event kind has all the fields hold_ms, reason"),
    ],
)
def test_a_search_for_what_cannot_be_there_is_an_error(kind: Any, fields: dict[str, Any], hint: str) -> None:
    with pytest.raises(LearnerError, match=hint):
        History().find(kind, **fields)


def test_an_event_that_no_trace_can_hold_stops_the_world_by_name() -> None:
    with pytest.raises(CatalogueError, match=r"PullHeld\.opaque is"):
        fill(History(), lambda n: (n, 0, 0, "broker-a", "pull", -1, -1, "PullHeld", "g", "t", 0, 0, 1, object(), "c"))


def test_a_full_temporary_directory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(LearnerError, match="set TMPDIR"):
        fill(History(), row)


def test_the_cause_of_an_event_is_what_scheduled_its_slice() -> None:
    world = World(7)
    history = History()
    world.hooks.attach(history)
    node = world.node("broker-a")

    def first() -> None:
        node.hooks.emit(PullReceived("readers", "TopicTest", 0, 0, 1, "10.0.0.9:4000", True))
        node.hooks.emit(PullHeld("readers", "TopicTest", 0, 0, 15_000, 1, "10.0.0.9:4000"))
        node.call_later(
            5, node.hooks.emit, PullWoken("readers", "TopicTest", 0, 0, "arrived", 5_000, 1, "10.0.0.9:4000")
        )

    node.call_later(1, first)
    world.run_for(10_000)
    assert [r.kind for r in history.chain(history[-1])] == ["PullReceived", "PullHeld", "PullWoken"]
