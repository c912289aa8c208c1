"""Time-outs in lanes and periodic calls."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab.sim import FAULTS, Node, Timer, World


def test_a_time_out_calls_back_after_its_time(world: World, node: Node) -> None:
    seen: list[int] = []
    node.timeout(5, lambda: seen.append(world.now_us))
    world.run_for(10_000)
    assert seen == [5_000]


def test_a_time_out_of_zero_calls_back_at_once(world: World, node: Node) -> None:
    seen: list[int] = []
    node.timeout(0, lambda: seen.append(world.now_us))
    world.run_for(0)
    assert seen == [0]


def test_a_cancelled_time_out_is_not_a_slice(world: World, node: Node) -> None:
    timers = [node.timeout(5, lambda: None) for _ in range(100)]
    kept = timers.pop()
    for timer in timers:
        timer.cancel()
        timer.cancel()
    world.run_for(10_000)
    assert world.slice_no == 1
    assert not kept.active


def test_time_outs_of_one_duration_take_one_place_in_the_heap(world: World, node: Node) -> None:
    for _ in range(1_000):
        node.timeout(5, lambda: None)
    assert len(world.heap) == 1


def test_cancelled_time_outs_behind_one_that_waits_are_thrown_out(world: World, node: Node) -> None:
    node.timeout(60_000, lambda: None)
    for _ in range(100_000):
        node.timeout(60_000, lambda: None).cancel()
    assert len(world.lane(60_000_000)) < 2_100


def test_a_time_out_in_place_of_a_cancelled_one_keeps_its_own_place_in_the_order(world: World, node: Node) -> None:
    seen: list[str] = []
    cancelled = node.timeout(5, seen.append, "cancelled")
    node.call_later(5, seen.append, "timer")
    node.timeout(5, seen.append, "time-out")
    cancelled.cancel()
    world.run_for(5_000)
    assert seen == ["timer", "time-out"]


def test_a_time_out_of_a_crashed_process_is_not_played(world: World, node: Node) -> None:
    seen: list[str] = []
    other = world.node("beta")
    node.timeout(5, seen.append, "alpha")
    other.timeout(5, seen.append, "beta")
    FAULTS["crash"](world, "alpha")
    world.run_for(5_000)
    assert seen == ["beta"]


Step = tuple[str, int, int]
verbs = st.sampled_from(["timeout", "timer", "cancel", "wait"])
steps = st.lists(st.tuples(verbs, st.integers(1, 4), st.integers(0, 30)), max_size=40)


def _played(program: list[Step], *, lanes: bool) -> list[tuple[int, int]]:
    """Which timers fired when; `lanes` decides how time-outs are made."""
    world = World(1)
    node = world.node("alpha")
    fired: list[tuple[int, int]] = []
    timers: list[Timer] = []

    def fire(number: int) -> None:
        fired.append((number, world.now_us))

    async def play() -> None:
        for verb, ms, which in program:
            if verb == "wait":
                await node.sleep(ms)
            elif verb == "cancel":
                if timers:
                    timers[which % len(timers)].cancel()
            else:
                make = node.timeout if lanes and verb == "timeout" else node.call_later
                timers.append(make(ms, fire, len(timers)))

    node.spawn(play(), "program")
    world.run_for(1_000_000)
    return fired


@settings(deadline=None, max_examples=200)
@given(steps)
def test_time_outs_in_lanes_fire_when_and_in_the_order_in_which_plain_timers_would(program: list[Step]) -> None:
    assert _played(program, lanes=True) == _played(program, lanes=False)


# -- periodic calls ----------------------------------------------------------------------------------------------------


def test_a_fixed_rate_keeps_its_grid(world: World, node: Node) -> None:
    seen: list[int] = []
    node.schedule_at_fixed_rate(lambda: seen.append(world.now_us), 10, 30, "scan")
    world.run_for(100_000)
    assert seen == [10_000, 40_000, 70_000, 100_000]


def test_a_coroutine_at_a_fixed_rate_never_runs_twice_at_once_and_catches_up_at_once(world: World, node: Node) -> None:
    """As in Java: a run that takes longer than the period delays the next ones, which then follow without a pause."""
    seen: list[int] = []
    took = iter([25, 1, 1, 1, 1, 1, 1, 1])

    async def scan() -> None:
        seen.append(world.now_us)
        await node.sleep(next(took))

    node.schedule_at_fixed_rate(scan, 0, 10, "scan")
    world.run_for(40_000)
    assert seen == [0, 25_000, 26_000, 30_000, 40_000]


def test_a_fixed_delay_counts_from_the_end_of_the_last_run(world: World, node: Node) -> None:
    seen: list[int] = []

    async def scan() -> None:
        seen.append(world.now_us)
        await node.sleep(5)

    node.schedule_with_fixed_delay(scan, 10, 30, "scan")
    world.run_for(100_000)
    assert seen == [10_000, 45_000, 80_000]


def test_a_cancelled_periodic_call_calls_no_more_even_from_inside(world: World, node: Node) -> None:
    seen: list[int] = []

    def once() -> None:
        seen.append(world.now_us)
        periodic.cancel()

    periodic = node.schedule_at_fixed_rate(once, 10, 10, "once")
    world.run_for(100_000)
    assert seen == [10_000]
    assert world.slice_no == 1
