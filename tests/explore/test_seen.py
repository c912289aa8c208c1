"""What a world has shown, as a set of names."""

from __future__ import annotations

from mqlab.explore import Trial, plan_from_text
from mqlab.explore.seen import PAIR, could_be_seen, kind_of, seen_in
from mqlab.scenarios import get

WORLD = (
    "name-server n; broker broker-a flush_disk_type=SYNC_FLUSH; topic Orders queues=2; producer p messages=5; "
    "push w pull_batch_size=4; at 3000ms: suspend w for_ms=500"
)


def test_a_world_shows_its_events_settings_operations_and_faults() -> None:
    parameters = {"world": WORLD}
    trial = Trial("drawn", 3, parameters, plan_from_text("at 4s: crash broker-a for 2s"))
    seen = seen_in(trial, parameters)
    assert {f"event {kind}" for kind in ("MessageStored", "PullHeld", "NodeCrashed")} <= seen
    assert {"value PullAnswered status=FOUND", "value RequestSent oneway=no", "value StoreRecovered clean=no"} <= seen
    assert {"setting push pull_batch_size=4", "setting broker flush_disk_type=SYNC_FLUSH"} <= seen
    assert {"setting topic queues=2", "operation suspend", "fault crash"} <= seen
    assert "operation seek" not in seen
    judged = {f"rule {rule}" for rule, times in trial.outcome.judged.items() if times}
    assert judged == {name for name in seen if kind_of(name) == "rule"}
    assert {f"exception {name}" for name in trial.outcome.excused} == {n for n in seen if kind_of(n) == "exception"}
    assert {f"goal {name}" for name in trial.outcome.goals} == {n for n in seen if kind_of(n) == "goal"} != set()


def test_pairs_are_what_came_next_on_the_same_machine() -> None:
    trial = Trial("drawn", 3, {"world": WORLD}, ())
    assert trial.lab is not None
    last: dict[str, str] = {}
    pairs = set()
    for record in trial.lab.history:
        if record.node in last:
            pairs.add(f"{PAIR} {last[record.node]} > {record.kind}")
        last[record.node] = record.kind
    assert pairs == {name for name in seen_in(trial, {"world": WORLD}) if kind_of(name) == PAIR}


def test_reasons_are_without_what_differs_in_each_world() -> None:
    trial = Trial("drawn", 3, {"world": WORLD}, plan_from_text("at 4s: crash broker-a for 9s"))
    reasons = [name for name in seen_in(trial, {}) if " reason=" in name]
    assert "value BrokerUnregistered reason=channel closed" in reasons
    assert [name for name in reasons if "send request to <#> failed" in name]
    assert not [name for name in reasons if any(letter.isdigit() for letter in name.partition("reason=")[2])]


def test_what_is_seen_of_a_drawn_world_is_on_the_lists() -> None:
    could = could_be_seen(get("drawn"))
    for seed in (4, 6, 7, 9):
        for name in seen_in(Trial("drawn", seed), {}):
            assert kind_of(name) not in could or name in could[kind_of(name)]


def test_a_world_that_has_a_text_needs_no_seed_and_another_scenario_no_settings() -> None:
    could = could_be_seen(get("one-way"))
    assert not could["setting"]
    assert not could["operation"]
    seen = seen_in(Trial("one-way", 0, {"messages": 3}, ()), {"messages": 3})
    assert {kind_of(name) for name in seen} <= {"event", "value", "pair", "rule", "exception", "goal"}
    assert "event MessageStored" in seen
