"""Replays: a report brings back the same world, whatever was chosen or done in it."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab, Message, scenarios
from mqlab.errors import LearnerError, ProtocolError, SimulationError
from mqlab.replay import read_report, replay, replay_to, report_of
from mqlab.scenarios import registry
from mqlab.sim import Node


def test_a_world_in_which_ties_are_choices_can_be_played_again() -> None:
    scenario = scenarios.get("first-message")
    lab = scenario.play(7, tie_is_choice=True)
    assert any(point.startswith("ties/") for point in lab.world.choices.drawn())
    assert lab.trace_hash() != scenario.play(7).trace_hash()
    again = replay(report_of(lab))
    assert again.agrees
    assert again.lab.world.tie_is_choice


def test_what_a_person_picks_goes_next_also_where_ties_are_choices() -> None:
    lab = scenarios.get("first-message").build(7, tie_is_choice=True)
    for _ in range(10):
        pending = lab.world.pending()
        index = max(n for n, offered in enumerate(pending) if offered.frame is None)
        target, token, _ = pending[index].entry
        lab.act("pick", index=index)
        lab.world.step()
        assert target.token != token
    assert replay(report_of(lab)).agrees


def test_a_world_in_which_a_policy_chose_can_be_played_again_without_it() -> None:
    scenario = scenarios.get("first-message")

    def last_first(point: str, k: int, n: int, drawn: int) -> int:
        return n - 1 if point.startswith("ties/") else drawn

    lab = scenario.play(7, tie_is_choice=True, policy=last_first)
    assert lab.trace_hash() != scenario.play(7, tie_is_choice=True).trace_hash()
    assert replay(report_of(lab)).agrees


def test_a_report_from_before_ties_could_be_choices_still_replays() -> None:
    lab = scenarios.get("first-message").play(7)
    report = report_of(lab)
    del report["tie_is_choice"]
    assert replay_to(report, lab.world.slice_no).trace_hash() == lab.trace_hash()


def refuses_to_start(node: Node) -> None:
    raise LearnerError(f"{node.name} finds a damaged file", "mend it")


async def failing(lab: Lab) -> None:
    """One task dies by itself, another one cannot be ended in peace, and nothing of it starts again."""
    node = lab.node("app")
    node.boot = refuses_to_start

    async def dies() -> None:
        await node.sleep(5)
        raise ValueError("boom")

    async def fails_at_its_end() -> None:
        try:
            await node.sleep(1_000)
        finally:
            if node.life.over:
                raise LookupError("no file to close")

    node.spawn(dies(), "dies")
    node.spawn(fails_at_its_end(), "fails at its end")


def test_a_world_that_has_told_of_an_error_can_be_played_again_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._SCENARIOS, "failing", registry.Scenario("failing", failing, 1))
    lab = scenarios.get("failing").build(7)
    with pytest.raises(SimulationError, match="task 'dies' on app died: ValueError: boom"):
        lab.run_for(ms=10)
    assert replay(report_of(lab)).agrees
    with pytest.raises(SimulationError, match="task 'fails at its end' refused to end with its process: LookupError"):
        lab.crash("app")
    lab.run_for(ms=10)
    assert replay(report_of(lab)).agrees
    assert replay_to(report_of(lab), lab.world.slice_no).world.nodes["app"].life.over
    lab.restart("app")
    with pytest.raises(LearnerError, match="app finds a damaged file"):
        lab.run_for(ms=10)
    lab.run_for(ms=10)
    assert replay(report_of(lab)).agrees
    # The task that refuses to end tells of it when it is collected: here, not in the next test.
    del lab
    gc.collect()


async def meddling(lab: Lab) -> None:
    """A listener kills another process and lets it start again, and so does the scenario itself."""
    lab.name_server()
    lab.broker("broker-a")
    lab.broker("broker-b")
    lab.create_topic("TopicTest", 1, brokers="broker-a")
    lab.crash("broker-b")
    lab.restart("broker-b")
    producer, consumer = lab.producer("orders"), lab.consumer("readers")
    consumer.subscribe("TopicTest", "*")

    def listener(messages: object, context: object) -> ConsumeConcurrentlyStatus:
        lab.crash("broker-b")
        lab.restart("broker-b")
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.register_message_listener(listener)
    await producer.start()
    await consumer.start()
    await producer.send(Message("TopicTest", b"hello"))


def test_what_a_scenario_and_its_listeners_do_themselves_is_not_done_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._SCENARIOS, "meddling", scenarios.Scenario("meddling", meddling, 30))
    lab = scenarios.get("meddling").play(7)
    lab.freeze("broker-a")
    lab.run_for(seconds=1)
    assert len(list(lab.history.find("ActionTaken", verb="crash"))) == 2
    report = report_of(lab)
    assert [action[2] for action in report["actions"]] == ["freeze"]
    assert replay(report).agrees


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("seed", [7], "seed must be a whole number or a text, not [7]"),
        ("wire", "morse", 'wire must be "objects" or "bytes", not \'morse\''),
        ("slice", "12", "slice must be a whole number from 0 up, not '12'"),
        ("now_us", -1, "now_us must be a whole number"),
        ("parameters", [], "parameters must be an object"),
        ("scenario", 3, "scenario must be a text, not 3"),
        ("overrides", [["ties", 0, 1], ["ties", "x", 1]], "a list of [point, k, value], not ['ties', 'x'"),
        ("actions", [[1, 2, "explode", {"node": "broker-a"}]], "a verb of mqlab, {arguments}], not [1, 2, 'explode'"),
        ("actions", [[1, 2, "crash"]], "actions must be a list of [slice, time in us"),
        ("actions", "crash", "actions must be a list"),
        ("source", 1, "source must be a text or null"),
        ("trace_hash", None, "trace_hash must be a text"),
        ("tie_is_choice", "yes", "tie_is_choice must be true or false"),
    ],
)
def test_a_report_with_a_wrong_part_is_refused_with_its_name(part: str, value: object, says: str) -> None:
    report = report_of(scenarios.get("first-message").build(7))
    with pytest.raises(ProtocolError, match=re.escape(says)):
        replay({**report, part: value})


def test_a_world_whose_choices_come_out_slower_takes_its_time_to_the_same_slice() -> None:
    lab = scenarios.get("first-message").build(0)
    lab.step(8)
    report = report_of(lab)
    report["overrides"] = [["link:broker-a>namesrv-1", 0, 199]]
    slower = replay_to(report, report["slice"])
    assert slower.world.slice_no == report["slice"]
    assert slower.world.now_us > report["now_us"]


def test_a_report_with_a_slice_that_its_world_never_had_comes_to_an_end() -> None:
    report = report_of(scenarios.get("first-message").build(7))
    with pytest.raises(SimulationError, match=f"before slice {10**18}"):
        replay({**report, "slice": 10**18})


def test_a_report_of_other_code_says_that_the_code_may_be_the_reason() -> None:
    report = report_of(scenarios.get("first-message").build(7))
    assert "mqlab 0.0.1, this is" in str(replay({**report, "mqlab": "0.0.1", "trace_hash": "other"}))
    assert "the same state of the code?" in str(replay({**report, "trace_hash": "other"}))


def test_a_file_of_brackets_is_not_a_report(tmp_path: Path) -> None:
    path = tmp_path / "deep.mqlab"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ProtocolError, match=r"deep\.mqlab is not a report of mqlab"):
        read_report(str(path))


@pytest.mark.parametrize("seed", [1.5, None, [1], True, "\ud800"])
def test_a_seed_that_no_report_could_hold_is_refused(seed: Any) -> None:
    with pytest.raises(LearnerError, match="seed="):
        Lab(seed=seed)


def test_an_action_on_a_node_that_the_world_does_not_have_is_an_error() -> None:
    lab = scenarios.get("first-message").play(7)
    lab.freeze("broker-a")
    report = report_of(lab)
    report["actions"][0][3] = {"node": "broker-z"}
    with pytest.raises(LearnerError, match="there is no node 'broker-z'"):
        replay(report)
