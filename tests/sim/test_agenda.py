"""The agenda: what plays when, in which order, and what happens when time stands still."""

from __future__ import annotations

import pytest

from mqlab.errors import LearnerError, SimulationError
from mqlab.sim import FAULTS, Node, World


def test_entries_due_at_one_instant_play_in_the_order_in_which_they_came(world: World, node: Node) -> None:
    seen: list[str] = []
    node.call_later(5, seen.append, "first timer")
    node.timeout(5, seen.append, "time-out")
    node.call_later(5, seen.append, "second timer")
    node.call_later(3, lambda: node.call_later(2, seen.append, "came last"))
    world.run_for(5_000)
    assert seen == ["first timer", "time-out", "second timer", "came last"]


def test_what_becomes_due_now_waits_for_what_was_due_at_this_instant_before(world: World, node: Node) -> None:
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        node.call_soon(seen.append, "made by first")

    node.call_later(1, first)
    node.call_later(1, seen.append, "second")
    world.run_for(1_000)
    assert seen == ["first", "second", "made by first"]


def test_running_for_a_time_plays_what_is_due_at_its_end_and_nothing_later(world: World, node: Node) -> None:
    seen: list[int] = []
    for ms in (1, 2, 3):
        node.call_later(ms, seen.append, ms)
    assert world.run_for(2_000)
    assert (seen, world.now_us) == ([1, 2], 2_000)


def test_the_clock_stands_at_the_end_of_a_run_even_when_nothing_happened(world: World) -> None:
    assert world.run_for(1_234)
    assert (world.now_us, world.slice_no) == (1_234, 0)


def test_running_to_a_time_that_has_passed_does_not_turn_the_clock_back(world: World) -> None:
    world.run_for(5_000)
    world.run_to(1_000)
    assert world.now_us == 5_000


def test_a_step_plays_one_slice(world: World, node: Node) -> None:
    seen: list[str] = []
    node.call_later(1, seen.append, "a")
    node.call_later(2, seen.append, "b")
    assert world.step()
    assert (seen, world.now_us, world.slice_no) == (["a"], 1_000, 1)
    assert world.step()
    assert not world.step()
    assert seen == ["a", "b"]


def test_a_cancelled_timer_is_not_a_slice_and_does_not_move_the_clock(world: World, node: Node) -> None:
    node.call_later(1, pytest.fail).cancel()
    assert not world.step()
    assert (world.slice_no, world.now_us) == (0, 0)


def test_a_world_plays_up_to_a_slice(world: World, node: Node) -> None:
    for ms in range(1, 10):
        node.call_later(ms, lambda: None)
    world.run_to_slice(4)
    assert (world.slice_no, world.now_us) == (4, 4_000)


def test_playing_up_to_a_slice_that_never_comes_is_an_error(world: World, node: Node) -> None:
    node.call_soon(lambda: None)
    with pytest.raises(SimulationError, match="ended at slice 1, before slice 5"):
        world.run_to_slice(5)


def test_cancelled_timers_leave_the_heap_when_half_of_it_is_dead(world: World, node: Node) -> None:
    timers = [node.call_later(ms, lambda: None) for ms in range(1, 5_001)]
    for timer in timers[1_000:]:
        timer.cancel()
    assert len(world.heap) < 2_100
    world.run_for(5_000_000)
    assert world.slice_no == 1_000


def test_tasks_cancelled_in_their_sleep_leave_the_heap_too(world: World, node: Node) -> None:
    async def sleeper() -> None:
        await node.sleep(3_600_000)

    tasks = [node.spawn(sleeper(), "sleeper") for _ in range(5_000)]
    world.run_for(0)
    for task in tasks:
        task.cancel()
    world.run_for(0)
    assert len(world.heap) < 1_100


def test_an_instant_that_never_ends_is_an_error_that_names_the_task() -> None:
    world = World(7, max_slices_per_instant=1_000)
    node = world.node("alpha")

    async def spin() -> None:
        while True:
            await node.sleep(0)

    node.spawn(spin(), "restless")
    with pytest.raises(SimulationError, match=r"(?s)1000 slices.*at one instant.*restless on alpha"):
        world.run_for(1)


def test_many_slices_at_different_instants_are_no_endless_instant() -> None:
    world = World(7, max_slices_per_instant=100)
    node = world.node("alpha")

    async def steady() -> None:
        for _ in range(1_000):
            await node.sleep_us(1)

    node.spawn(steady(), "steady")
    assert world.run_for(2_000)


# -- picking what goes next --------------------------------------------------------------------------------------------


def test_pending_shows_the_next_timer_of_each_node(world: World, node: Node) -> None:
    other = world.node("beta")
    node.call_later(10, lambda: None, name="early")
    node.call_later(20, lambda: None, name="late")
    other.call_later(15, lambda: None, name="other")
    assert [entry.name for entry in world.pending()] == ["early", "other"]


def test_pending_shows_a_time_out_too(world: World, node: Node) -> None:
    node.timeout(10, lambda: None, name="cancelled").cancel()
    node.timeout(10, lambda: None, name="time-out")
    assert [entry.name for entry in world.pending()] == ["time-out"]


def test_picking_a_timer_plays_it_next_moves_the_clock_and_delays_what_was_due_before(world: World, node: Node) -> None:
    seen: list[tuple[str, int]] = []
    other = world.node("beta")
    node.call_later(10, lambda: seen.append(("alpha", world.now_us)))
    other.call_later(20, lambda: seen.append(("beta", world.now_us)))
    world.pick(1)
    world.step()
    assert seen == [("beta", 20_000)]
    world.step()
    assert seen == [("beta", 20_000), ("alpha", 20_000)]


def test_picking_a_time_out_plays_it_next(world: World, node: Node) -> None:
    seen: list[str] = []
    other = world.node("beta")
    node.call_later(10, seen.append, "timer")
    other.timeout(20, seen.append, "time-out")
    world.pick(1)
    world.step()
    assert (seen, world.now_us) == (["time-out"], 20_000)
    world.run_for(0)
    assert seen == ["time-out", "timer"]


def test_picking_among_what_is_due_now_changes_the_order(world: World, node: Node) -> None:
    seen: list[str] = []
    for name in "abc":
        node.call_soon(seen.append, name)
    world.pick(2)
    world.run_for(0)
    assert seen == ["c", "a", "b"]


def test_picking_what_is_not_there_is_an_error_that_says_what_is(world: World, node: Node) -> None:
    node.call_soon(lambda: None)
    with pytest.raises(LearnerError, match=r"no pending entry 3.*(?s:.*)0\.\.0"):
        world.pick(3)


def test_what_a_frozen_node_has_to_do_is_not_pending(world: World, node: Node) -> None:
    node.call_soon(lambda: None)
    node.call_later(1, lambda: None)
    FAULTS["freeze"](world, "alpha")
    assert world.pending() == []


def test_what_is_held_back_happens_later_and_the_rest_in_its_time(world: World, node: Node) -> None:
    seen: list[tuple[str, int]] = []
    world.node("beta").call_later(20, lambda: seen.append(("beta", world.now_us)))
    node.call_later(10, lambda: seen.append(("alpha", world.now_us)))
    world.hold(0, 30_000)
    world.run_for(100_000)
    assert seen == [("beta", 20_000), ("alpha", 40_000)]


def test_a_timer_that_was_held_back_can_still_be_cancelled(world: World, node: Node) -> None:
    seen: list[str] = []
    timer = node.call_later(10, seen.append, "late")
    world.hold(0, 5_000)
    timer.cancel()
    world.run_for(100_000)
    assert seen == []


def test_what_is_due_now_and_time_outs_cannot_be_held_back(world: World, node: Node) -> None:
    node.timeout(10, lambda: None, name="time-out")
    with pytest.raises(LearnerError, match="'time-out' on alpha cannot be held back"):
        world.hold(0, 1_000)
    node.call_soon(lambda: None)
    with pytest.raises(LearnerError, match="it is due now"):
        world.hold(0, 1_000)
    with pytest.raises(LearnerError, match="above 0"):
        world.hold(0, -1)


# -- ties --------------------------------------------------------------------------------------------------------------


def test_ties_are_no_choice_unless_a_policy_asks_for_it(world: World, node: Node) -> None:
    for name in "abc":
        node.call_later(1, lambda: None, name=name)
    world.run_for(1_000)
    assert world.choices.drawn() == {}


@pytest.mark.parametrize("first", ["a", "b", "c"])
def test_any_of_several_timers_due_at_one_instant_can_be_chosen_to_go_first(first: str) -> None:
    world = World(7, overrides={("ties/alpha: a | alpha: b | alpha: c", 0): "abc".index(first)})
    world.tie_is_choice = True
    node = world.node("alpha")
    seen: list[str] = []
    for name in "abc":
        node.call_later(1, seen.append, name, name=name)
    world.run_for(1_000)
    assert seen[0] == first
    assert sorted(seen) == ["a", "b", "c"]


def who_went_first(overrides: dict[tuple[str, int], int]) -> tuple[list[str], list[str]]:
    """Three are due at each of twenty times; in between x and y are, and when y goes first, so are three more."""
    world = World(7, overrides=overrides, tie_is_choice=True)
    node = world.node("alpha")
    between: list[str] = []
    seen: list[str] = []

    def y() -> None:
        between.append("y")
        if between == ["y"]:
            for name in "pqr":
                node.call_soon(between.append, name, name=name)

    for ms in range(1, 21):
        for name in "cab" if ms % 2 else "bca":
            node.call_later(ms, seen.append, name, name=name)
    node.call_later(4.5, between.append, "x", name="x")
    node.call_later(4.5, y, name="y")
    world.run_for(30_000)
    return between, seen


def test_an_override_of_one_tie_moves_no_other_tie() -> None:
    between_x, after_x = who_went_first({("ties/alpha: x | alpha: y", 0): 0})
    between_y, after_y = who_went_first({("ties/alpha: x | alpha: y", 0): 1})
    assert between_x == ["x", "y"]
    assert sorted(between_y) == ["p", "q", "r", "x", "y"]
    assert len({tuple(after_x[n : n + 3]) for n in range(0, len(after_x), 3)}) > 2
    assert after_y == after_x


def test_a_tie_that_was_decided_cannot_be_overridden_any_more() -> None:
    world = World(7, tie_is_choice=True)
    node = world.node("alpha")
    for name in "ab":
        node.call_soon(lambda: None, name=name)
    world.run_for(0)
    with pytest.raises(LearnerError, match="was made already: 1 draws"):
        world.choices.override("ties/alpha: a | alpha: b", 0, 1)


def test_cancelled_entries_take_no_part_in_a_tie(world: World, node: Node) -> None:
    world.tie_is_choice = True
    offered: list[int] = []

    def first_of(point: str, k: int, n: int, drawn: int) -> int:
        offered.append(n)
        return 0

    world.choices.policy = first_of
    timers = [node.call_soon(lambda: None) for _ in range(4)]
    timers[0].cancel()
    timers[2].cancel()
    world.run_for(0)
    assert offered == [2]


def test_the_next_due_time_is_that_of_what_is_still_wanted(world: World, node: Node) -> None:
    assert world.next_due_us() is None
    timers = [node.call_later(1, lambda: None), node.timeout(2, lambda: None), node.timeout(2, lambda: None)]
    node.call_later(3, lambda: None)
    assert world.next_due_us() == 1_000
    for timer in timers[:2]:
        timer.cancel()
    assert world.next_due_us() == 2_000
    timers[2].cancel()
    assert world.next_due_us() == 3_000
    node.call_soon(lambda: None)
    assert world.next_due_us() == 0
    world.run_for(5_000)
    assert (world.slice_no, world.next_due_us()) == (2, None)


def test_a_condition_is_asked_once_after_each_slice(world: World, node: Node) -> None:
    asked: list[int] = []

    def third() -> bool:
        asked.append(world.slice_no)
        return world.slice_no == 3

    node.schedule_at_fixed_rate(lambda: None, 1, 1, "tick")
    assert world.run_until(third)
    assert asked == [0, 1, 2, 3]
