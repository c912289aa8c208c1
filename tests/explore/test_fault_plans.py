"""Fault plans: a function of the seed, legal, and never two faults on one process or link at one time."""

from __future__ import annotations

from mqlab.explore import Trial, plan_from_text, plan_text
from mqlab.explore.fault_plan import draw_plan, faults_of
from mqlab.lab.processes import ClientProcess
from mqlab.scenarios import get
from mqlab.scenarios.registry import ANY_FAULT
from mqlab.sim import ROOM_BYTES


def test_a_plan_depends_on_the_seed_alone() -> None:
    plans = [draw_plan(get("push-clustering").build(seed), ANY_FAULT, 20_000) for seed in (3, 3, 4)]
    assert plans[0] == plans[1] != plans[2]


def test_a_trial_takes_choices_and_a_policy() -> None:
    drawn = Trial("first-message", 7, plan=(), tie_is_choice=True)
    chosen = Trial("first-message", 7, plan=(), tie_is_choice=True, policy=lambda point, k, n, value: n - 1)
    assert chosen.lab is not None
    assert drawn.lab is not None
    again = Trial("first-message", 7, plan=(), tie_is_choice=True, overrides=chosen.lab.world.choices.deviations)
    assert again.lab is not None
    assert again.lab.trace_hash() == chosen.lab.trace_hash() != drawn.lab.trace_hash()


def test_drawing_a_plan_moves_nothing_in_the_world() -> None:
    drawn, plain = get("push-clustering").build(3), get("push-clustering").build(3)
    draw_plan(drawn, ANY_FAULT, 20_000)
    assert drawn.run_for(seconds=30).trace_hash() == plain.run_for(seconds=30).trace_hash()


def test_a_plan_is_a_schedule_and_comes_back_from_its_text() -> None:
    for seed in range(30):
        plan = draw_plan(get("push-orderly").build(seed), ANY_FAULT, 20_000)
        assert plan_from_text(plan_text(plan)) == plan
        assert len(plan) <= 4


def test_a_process_has_one_fault_at_a_time() -> None:
    for seed in range(60):
        down: set[str] = set()
        for fault in faults_of(draw_plan(get("push-orderly").build(seed), ANY_FAULT, 20_000)):
            if fault.verb in ("crash", "power_off", "freeze"):
                assert fault.arguments["node"] not in down
                down.add(fault.arguments["node"])
            elif fault.verb in ("restart", "thaw"):
                down.remove(fault.arguments["node"])
        assert not down


def test_every_kind_of_fault_is_drawn() -> None:
    drawn = {
        fault.verb
        for seed in range(60)
        for fault in faults_of(draw_plan(get("push-clustering").build(seed), ANY_FAULT, 20_000))
    }
    assert set(ANY_FAULT) <= drawn


def test_servers_and_clients_are_cut_off_from_one_other_and_from_everybody() -> None:
    sides: set[tuple[str, bool]] = set()
    world = "name-server n; broker b; topic Orders; producer p; push w members=2"
    for seed in range(60):
        lab = get("drawn").build(seed, parameters={"world": world})
        for fault in faults_of(draw_plan(lab, ("partition",), 20_000)):
            if fault.verb == "partition":
                (left,), right = fault.arguments["left"], fault.arguments["right"]
                kind = "client" if isinstance(lab.processes[left], ClientProcess) else "server"
                sides.add((kind, len(right) == len(lab.processes) - 1))
    assert sides == {("server", False), ("server", True), ("client", True)}


def test_a_machine_loses_power_only_where_the_scenario_bears_it() -> None:
    for seed in range(40):
        lab = get("one-way").build(seed)
        plan = draw_plan(lab, get("one-way").faults, 20_000)
        assert all(fault.verb != "power_off" for fault in faults_of(plan))


def test_a_slow_disk_is_drawn_for_those_who_name_it_and_for_no_other() -> None:
    assert "slow_disk" not in ANY_FAULT
    plans = [draw_plan(get("slow-disks").build(seed), get("slow-disks").faults, 20_000) for seed in range(20)]
    slow = [fault for plan in plans for fault in faults_of(plan) if fault.verb == "slow_disk"]
    assert {fault.arguments["node"] for fault in slow} == {"broker-a", "broker-b"}
    assert any(fault.arguments["ms"] > 1_000 for fault in slow), "a put that takes longer than a second"
    assert [fault.arguments["ms"] for fault in slow].count(0) * 2 == len(slow), "each of them ends"


def test_a_full_disk_has_room_again_and_a_wrong_clock_runs_right() -> None:
    full, room = faults_of(("at 3s: fill_disk broker-a by 4096 for 2s",))
    assert (full.arguments["free_bytes"], room.verb, room.at_us) == (4096, "fill_disk", 5_000_000)
    assert room.arguments["free_bytes"] == ROOM_BYTES
    fast, right = faults_of(("at 3s: drift broker-a by 200 for 2s",))
    assert (fast.arguments["ppm"], right.arguments["ppm"]) == (200, 0)


def test_the_same_seed_ends_the_same() -> None:
    first, second = Trial("retry-and-dead-letters", 5), Trial("retry-and-dead-letters", 5)
    assert first.outcome == second.outcome
    assert first.lab is not None
    assert second.lab is not None
    assert first.lab.trace_hash() == second.lab.trace_hash()
