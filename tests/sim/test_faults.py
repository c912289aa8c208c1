"""Faults: what each does to a machine, and what is said when it makes no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import LearnerError, SimulationError
from mqlab.sim import EPOCH_MS, FAULTS, Node, World
from mqlab.sim.faults import start
from mqlab.trace.bus import Row


def booted(node: Node, seen: list[str]) -> Node:
    """Give the machine a process that says when it starts."""
    node.boot = lambda node: seen.append(f"start of life {node.life.number + 1}")
    return node


def test_a_crash_ends_tasks_timers_and_pools_of_the_process(world: World, node: Node) -> None:
    seen: list[str] = []

    async def work() -> None:
        await node.sleep(10)
        seen.append("task")

    node.spawn(work(), "work")
    node.call_later(10, seen.append, "timer")
    node.timeout(10, seen.append, "time-out")
    node.schedule_at_fixed_rate(lambda: seen.append("periodic"), 10, 10, "periodic")
    node.pool("pool", 1).submit(seen.append, "job", service_us=10_000)
    world.run_for(5_000)
    FAULTS["crash"](world, "alpha")
    assert world.run_for(1_000_000)
    assert seen == []


def test_nothing_can_be_started_on_a_machine_that_is_down(world: World, node: Node) -> None:
    async def work() -> None:
        """Never starts."""

    FAULTS["crash"](world, "alpha")
    with pytest.raises(LearnerError, match=r"(?s)alpha is down: work cannot start.*lab\.restart\('alpha'\)"):
        node.spawn(work(), "work")


def test_crashing_a_process_that_is_down_says_what_to_do(world: World, node: Node) -> None:
    FAULTS["crash"](world, "alpha")
    with pytest.raises(LearnerError, match=r"(?s)alpha is down already.*restart\('alpha'\)"):
        FAULTS["crash"](world, "alpha")


def test_a_restart_runs_the_main_function_again_in_a_new_life(world: World, node: Node) -> None:
    seen: list[str] = []
    booted(node, seen)
    FAULTS["crash"](world, "alpha")
    world.run_for(1_000)
    FAULTS["restart"](world, "alpha")
    world.run_for(1_000)
    assert seen == ["start of life 2"]
    assert node.life.number == 1


def test_a_restart_of_a_running_process_kills_it_first(world: World, node: Node) -> None:
    seen: list[str] = []
    booted(node, seen).call_later(10, seen.append, "timer of the first life")
    FAULTS["restart"](world, "alpha")
    world.run_for(100_000)
    assert seen == ["start of life 2"]


def test_what_java_keeps_in_static_fields_ends_with_the_process(world: World, node: Node) -> None:
    booted(node, []).life.singletons["MQClientManager"] = object()
    FAULTS["restart"](world, "alpha")
    assert node.life.singletons == {}


def test_a_machine_without_a_process_cannot_be_restarted(world: World, node: Node) -> None:
    with pytest.raises(LearnerError, match=r"(?s)alpha has no process to start"):
        FAULTS["restart"](world, "alpha")


def test_a_main_function_that_fails_in_whatever_way_ends_its_process(world: World, node: Node) -> None:
    """Only errors of mqlab ended it; after any other it stood there as running, with half of its tasks."""

    def boot(booted: Node) -> None:
        booted.call_later(1, pytest.fail)
        _ = {}["no such key"]

    node.boot = boot
    start(world, "alpha")
    with pytest.raises(SimulationError, match=r"'main' on alpha raised KeyError: 'no such key'"):
        world.run_for(1_000)
    assert node.life.over
    world.run_for(5_000)
    seen: list[str] = []
    booted(node, seen)
    FAULTS["restart"](world, "alpha")
    world.run_for(0)
    assert seen == ["start of life 2"]


def test_a_machine_loses_its_power_once(world: World, node: Node) -> None:
    FAULTS["power_off"](world, "alpha")
    with pytest.raises(LearnerError, match="alpha has no power already"):
        FAULTS["power_off"](world, "alpha")


def test_power_loss_keeps_what_was_flushed(world: World, node: Node) -> None:
    booted(node, [])
    node.disk.write_bytes("store/flushed", b"safe", flush=True)
    FAULTS["power_off"](world, "alpha")
    FAULTS["restart"](world, "alpha")
    assert node.disk.read_bytes("store/flushed") == b"safe"


def test_a_crash_keeps_what_was_written_even_when_it_was_not_flushed(world: World, node: Node) -> None:
    booted(node, [])
    node.disk.write_bytes("store/written", b"in the page cache")
    FAULTS["crash"](world, "alpha")
    FAULTS["restart"](world, "alpha")
    assert node.disk.read_bytes("store/written") == b"in the page cache"


def test_a_frozen_process_does_nothing_and_then_does_all_in_order(world: World, node: Node) -> None:
    seen: list[tuple[str, int]] = []

    async def work() -> None:
        await node.sleep(2)
        seen.append(("task", world.now_us))
        await node.sleep(2)
        seen.append(("task again", world.now_us))

    node.spawn(work(), "work")
    node.call_later(1, lambda: seen.append(("timer", world.now_us)))
    node.timeout(3, lambda: seen.append(("time-out", world.now_us)))
    world.run_for(0)
    FAULTS["freeze"](world, "alpha")
    world.run_for(50_000)
    assert seen == []
    FAULTS["thaw"](world, "alpha")
    world.run_for(10_000)
    assert seen == [("timer", 50_000), ("task", 50_000), ("time-out", 50_000), ("task again", 52_000)]


def test_a_timer_cancelled_while_its_process_is_frozen_does_not_fire(world: World, node: Node) -> None:
    timers = [node.call_later(1, pytest.fail), node.timeout(1, pytest.fail)]
    FAULTS["freeze"](world, "alpha")
    world.run_for(5_000)
    for timer in timers:
        timer.cancel()
    FAULTS["thaw"](world, "alpha")
    world.run_for(5_000)


def test_a_frozen_process_can_be_killed(world: World, node: Node) -> None:
    node.call_later(1, pytest.fail)
    FAULTS["freeze"](world, "alpha")
    world.run_for(5_000)
    FAULTS["crash"](world, "alpha")
    FAULTS["thaw"](world, "alpha")
    world.run_for(5_000)


def test_a_process_that_runs_is_not_thawed_and_a_frozen_one_not_frozen_again(world: World, node: Node) -> None:
    rows: list[Row] = []
    world.hooks.attach(rows.append)
    FAULTS["thaw"](world, "alpha")
    FAULTS["freeze"](world, "alpha")
    FAULTS["freeze"](world, "alpha")
    FAULTS["thaw"](world, "alpha")
    assert [row[7] for row in rows] == ["NodeFrozen", "NodeThawed"]


def test_a_disk_that_hangs_is_not_hung_again_and_one_that_answers_is_left_alone(world: World, node: Node) -> None:
    rows: list[Row] = []
    world.hooks.attach(rows.append)
    for verb in ("unhang_disk", "hang_disk", "hang_disk", "unhang_disk", "unhang_disk"):
        FAULTS[verb](world, "alpha")
    assert [row[7] for row in rows] == ["DiskHung", "DiskUnhung"]


def test_a_flush_waits_for_a_hung_disk_also_after_a_restart_of_its_process(world: World, node: Node) -> None:
    flushed: list[tuple[int, int]] = []

    async def flush() -> None:
        await node.disk.settle()
        flushed.append((node.life.number, world.now_us))

    node.boot = lambda booted: booted.spawn(flush(), "flusher")
    FAULTS["hang_disk"](world, "alpha")
    FAULTS["restart"](world, "alpha")
    world.run_for(1_000)
    FAULTS["power_off"](world, "alpha")
    FAULTS["restart"](world, "alpha")
    world.run_for(1_000)
    assert flushed == []
    FAULTS["unhang_disk"](world, "alpha")
    world.run_for(1_000)
    assert flushed == [(2, 2_000)]


def test_a_slow_disk_is_slow_also_after_a_restart_until_it_is_quick_again(world: World, node: Node) -> None:
    done: list[tuple[str, int]] = []

    def boot(node: Node) -> None:
        async def work(what: str, wait: Callable[[], Any]) -> None:
            await wait()
            done.append((what, world.now_us))

        node.spawn(work("flush", node.disk.settle), "flush")
        node.spawn(work("write", node.disk.crawl), "write")

    node.boot = boot
    node.disk.flush_us = 7
    FAULTS["slow_disk"](world, "alpha", ms=0.5)
    start(world, "alpha")
    world.run_for(600)
    assert done == [("write", 500), ("flush", 507)]
    FAULTS["restart"](world, "alpha")
    world.run_for(100)
    FAULTS["slow_disk"](world, "alpha", ms=0)
    world.run_for(0)
    assert done[2:] == [("write", 700), ("flush", 700)]
    FAULTS["restart"](world, "alpha")
    world.run_for(100)
    assert done[4:] == [("write", 700), ("flush", 707)]


def test_a_disk_that_is_slow_as_it_was_changes_nothing(world: World, node: Node) -> None:
    rows: list[Row] = []
    world.hooks.attach(rows.append)
    for ms in (0, 20, 20, 30, 0, 0):
        FAULTS["slow_disk"](world, "alpha", ms=ms)
    assert [row[7:] for row in rows] == [
        ("DiskSlowed", "alpha", 20_000), ("DiskSlowed", "alpha", 30_000), ("DiskQuick", "alpha"),
    ]  # fmt: skip


def test_each_fault_is_an_event_of_the_trace(world: World, node: Node) -> None:
    rows: list[Row] = []
    booted(node, [])
    world.node("beta")
    world.hooks.attach(rows.append)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("partition", {"left": "alpha", "right": "beta"}),
        ("heal", {"source": "alpha", "target": "beta"}),
        ("delay", {"source": "alpha", "target": "beta", "ms": 1.5}),
        ("drift", {"node": "alpha", "ppm": 20, "jump_ms": -5}),
        ("hang_disk", {"node": "alpha"}),
        ("unhang_disk", {"node": "alpha"}),
        ("crash", {"node": "alpha"}),
        ("power_off", {"node": "alpha"}),
        ("restart", {"node": "alpha"}),
    ]
    for verb, arguments in steps:
        FAULTS[verb](world, **arguments)
    world.run_for(0)
    assert [row[7:] for row in rows] == [
        ("LinkCut", "alpha", "beta"),
        ("LinkCut", "beta", "alpha"),
        ("LinkHealed", "alpha", "beta"),
        ("LinkDelayed", "alpha", "beta", 1_500),
        ("ClockDrifted", "alpha", 20, -5),
        ("DiskHung", "alpha"),
        ("DiskUnhung", "alpha"),
        ("NodeCrashed", "alpha", 1),
        ("PowerLost", "alpha", 1, 0, 0),
        ("NodeStarted", "alpha", 2),
    ]


def test_a_fault_on_a_machine_that_does_not_exist_names_those_that_do(world: World, node: Node) -> None:
    world.node("beta")
    with pytest.raises(LearnerError, match=r"(?s)no node 'gamma'.*alpha, beta"):
        FAULTS["crash"](world, "gamma")


@pytest.mark.parametrize(
    "fault",
    [
        lambda world: FAULTS["cut"](world, "alpha", "gamma"),
        lambda world: FAULTS["delay"](world, "gamma", "alpha", 5),
        lambda world: FAULTS["partition"](world, ["alpha"], ["gamma"]),
        lambda world: FAULTS["disconnect"](world, "gamma", "alpha"),
        lambda world: FAULTS["drift"](world, "gamma", 5),
        lambda world: FAULTS["hang_disk"](world, "gamma"),
        lambda world: FAULTS["unhang_disk"](world, "gamma"),
        lambda world: FAULTS["slow_disk"](world, "gamma", 5),
    ],
)
def test_every_fault_looks_for_its_machines(world: World, node: Node, fault: Callable[[World], None]) -> None:
    with pytest.raises(LearnerError, match="no node 'gamma'"):
        fault(world)


def test_an_override_can_be_set_while_the_world_runs(world: World, node: Node) -> None:
    FAULTS["override"](world, "alpha/queue", 0, 3)
    assert node.choose("queue", 4) == 3


def test_an_override_of_a_choice_that_was_made_already_is_refused(world: World, node: Node) -> None:
    node.choose("queue", 4)
    with pytest.raises(LearnerError, match=r"(?s)choice \('alpha/queue', 0\) was made already.*1"):
        FAULTS["override"](world, "alpha/queue", 0, 3)


# -- clocks ------------------------------------------------------------------------------------------------------------


def test_every_world_begins_in_2026(world: World, node: Node) -> None:
    assert node.now_ms() == EPOCH_MS == 1_767_225_600_000
    world.run_for(1_999)
    assert node.now_ms() == EPOCH_MS + 1


def test_a_drifting_clock_gains_its_ppm_and_jumps(world: World, node: Node) -> None:
    other = world.node("beta")
    FAULTS["drift"](world, "alpha", ppm=1_000, jump_ms=500)
    world.run_for(10_000_000)
    assert node.now_ms() == EPOCH_MS + 10_000 + 10 + 500
    assert other.now_ms() == EPOCH_MS + 10_000
    assert node.now_us() == 10_000_000


def test_drifts_add_up_and_a_clock_that_runs_right_again_keeps_its_error(world: World, node: Node) -> None:
    FAULTS["drift"](world, "alpha", ppm=1_000)
    world.run_for(10_000_000)
    FAULTS["drift"](world, "alpha", ppm=-500)
    world.run_for(10_000_000)
    FAULTS["drift"](world, "alpha")
    world.run_for(10_000_000)
    assert node.now_ms() == EPOCH_MS + 30_000 + 10 - 5


def test_the_clock_of_a_machine_survives_its_process(world: World, node: Node) -> None:
    booted(node, [])
    FAULTS["drift"](world, "alpha", jump_ms=500)
    FAULTS["restart"](world, "alpha")
    assert node.now_ms() == EPOCH_MS + 500
