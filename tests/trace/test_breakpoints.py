"""Breakpoints on events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import World
from mqlab.trace.breakpoints import Breakpoint
from mqlab.trace.events.broker import PullHeld, PullWoken
from mqlab.trace.history import History
from mqlab.trace.record import Record

HELD = PullHeld("readers", "TopicTest", 0, 0, 15_000, 1, "10.0.0.9:4000")
OTHER = PullHeld("readers", "Other", 1, 0, 15_000, 2, "10.0.0.9:4000")
WOKEN = PullWoken("readers", "TopicTest", 0, 0, "arrived", 2_000, 1, "10.0.0.9:4000")


@pytest.mark.parametrize(
    ("kind", "fields", "hits"),
    [
        ("PullHeld", {}, [HELD, OTHER]),
        (PullHeld, {"topic": "Other"}, [OTHER]),
        ((PullHeld, "PullWoken"), {"opaque": 1}, [HELD, WOKEN]),
        (None, {"queue_id": 1, "node": "broker-a"}, [OTHER]),
        (lambda record: record.kind == "PullWoken" and record.held_us > 1_000, {}, [WOKEN]),
    ],
)
def test_a_breakpoint_calls_back_for_the_events_it_waits_for(
    play: Callable[[Any], History], kind: Any, fields: dict[str, Any], hits: list[Any]
) -> None:
    history = play([(1, "broker-a", HELD), (2, "broker-a", OTHER), (3, "broker-a", WOKEN)])
    seen: list[Record] = []
    breakpoint_ = Breakpoint(kind, seen.append, **fields)
    for row in history.rows():
        breakpoint_(row)
    assert [record.event for record in seen] == hits
    assert breakpoint_.hits == len(hits)


def test_a_breakpoint_stops_the_world_after_the_slice() -> None:
    world = World(7)
    node = world.node("broker-a")
    for n in range(5):
        node.call_later(n + 1, node.hooks.emit, PullHeld("readers", "TopicTest", n, 0, 15_000, n, "10.0.0.9:4000"))
    world.hooks.attach(Breakpoint(PullHeld, lambda record: world.request_stop(), queue_id=2))
    world.run_for(10_000)
    assert world.now_us == 3_000


def test_a_breakpoint_says_what_it_waits_for() -> None:
    assert repr(Breakpoint(PullHeld, topic="T")) == "<Breakpoint PullHeld topic='T': 0 hits>"
    assert repr(Breakpoint(("PullHeld", "PullWoken"))) == "<Breakpoint PullHeld or PullWoken: 0 hits>"
    assert repr(Breakpoint(None, node="broker-a")) == "<Breakpoint any event node='broker-a': 0 hits>"


def test_a_breakpoint_that_can_never_hit_is_refused() -> None:
    with pytest.raises(LearnerError, match="did you mean PullHeld"):
        Breakpoint("PullHold")
    with pytest.raises(LearnerError, match="does not have a field 'colour'"):
        Breakpoint(PullHeld, colour="red")
    with pytest.raises(LearnerError, match="test the fields inside the function"):
        Breakpoint(lambda record: True, queue_id=1)
