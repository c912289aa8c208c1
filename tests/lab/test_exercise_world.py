"""The world of an exercise: what is planned happens in its time and is told, and a story has what concerns somebody."""

from __future__ import annotations

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
