"""The world of an exercise: what is planned happens in its time and is told, and a story has what concerns somebody."""

from __future__ import annotations

import asyncio

import pytest

from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.exercise_world import ExerciseWorld, Line
from mqlab.trace.record import Record


def test_what_is_planned_happens_at_its_time_and_is_told_before() -> None:
    world = ExerciseWorld(1)
    world.lab.run_for(seconds=2)
    world.begin_ms = world.lab.now_ms
    world.at(300.0, "the second", lambda: world.tell("done", "order 1"))
    world.at(100.0, "the first", lambda: None)
    world.at(200.0, "", lambda: world.tell("in silence", "order 2"))
    world.at(900.0, "never reached", lambda: None)
    world.pass_to(500.0)
    assert world.now_ms == 500.0
    assert world.lines == [
        Line(100.0, "the first"),
        Line(200.0, "in silence", "order 2"),
        Line(300.0, "the second"),
        Line(300.0, "done", "order 1"),
    ]
    assert [line.text for line in world.lines_about("order 1", until_ms=250.0)] == ["the first"]
    end = "  0.100 s  the first\n  0.200 s  in silence\n  0.250 s  too late   <- this one"
    assert world.story_to(250.0, "too late", "order 2") == end


def test_whoever_looks_while_time_passes_may_end_it_before_something_happens() -> None:
    world = ExerciseWorld(1)
    world.at(100.0, "a crash", lambda: world.tell("it happened"))
    for _ in world.passing(500.0):
        break
    assert (world.now_ms, world.lines) == (100.0, [])


def test_only_the_events_that_are_wanted_are_seen() -> None:
    world, seen = ExerciseWorld(1), list[Record]()
    world.watch({"NodeCrashed": seen.append})
    world.lab.name_server()
    world.lab.crash("namesrv-1")
    world.lab.run_for(seconds=1)
    assert [(record.kind, record.target) for record in seen] == [("NodeCrashed", "namesrv-1")]


def test_worlds_of_one_seed_draw_for_themselves() -> None:
    drawn = [ExerciseWorld(seed, draws=name).random.random() for seed in (1, 2) for name in ("", "packing", "waiting")]
    assert len(set(drawn)) == 6
    assert ExerciseWorld(1, draws="packing").random.random() == drawn[1]


def test_a_long_story_has_its_first_lines_and_its_last_ones() -> None:
    world = ExerciseWorld(1)
    for number in range(world.LINES + 4):
        world.tell(f"line {number}", "order 1")
        world.tell("of somebody else", "order 2")
    told = [line.split("  ", 2)[-1].strip() for line in world.both_ends("order 1").splitlines()]
    half = world.LINES // 2
    assert told[:half] == [f"line {number}" for number in range(half)]
    assert told[half] == "... 4 lines more"
    assert told[half + 1 :] == [f"line {number}" for number in range(half + 4, world.LINES + 4)]
    assert ExerciseWorld(1).both_ends("order 1") == ""


def test_an_object_lives_as_long_as_its_process() -> None:
    world = ExerciseWorld(1)
    node = world.lab.name_server().node
    first, still = world.of_life(node, object), world.of_life(node, object)
    world.kill(node.name, 500)
    assert first is still
    assert world.of_life(node, object) is not first
    assert world.lines == [Line(0.0, "namesrv-1 is killed"), Line(500.0, "namesrv-1 starts again")]


@pytest.mark.parametrize(
    ("error", "raised", "told"),
    [(None, None, "A returns well"), (KeyError("x"), KeyError, "A raises KeyError: UNKNOW"),
     (LearnerError("no", "do it"), SimulationError, "")],
)  # fmt: skip
def test_what_a_listener_returns_is_told_and_what_it_raises(
    error: Exception | None, raised: type[Exception] | None, told: str
) -> None:
    async def listen() -> str:
        if error is not None:
            raise error
        return "well"

    world = ExerciseWorld(1)
    asked = world.told("A", listen, "order 1", "UNKNOW")
    if raised is None:
        assert asyncio.run(asked) == "well"
    else:
        with pytest.raises(raised):
            asyncio.run(asked)
    assert [line.text for line in world.lines] == [told] * bool(told)
