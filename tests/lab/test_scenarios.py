"""Scenarios: one registry, checked parameters, and worlds that can be played again from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from mqlab import Message, scenarios
from mqlab.errors import LearnerError, ProtocolError
from mqlab.replay import read_report, replay, replay_to
from mqlab.scenarios.source import add_from_source
from tests.worlds import started_producer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mqlab import Lab


def test_every_scenario_has_a_summary_and_typed_parameters() -> None:
    for name in scenarios.names():
        scenario = scenarios.get(name)
        assert scenario.summary.endswith(".")
        for parameter in scenario.parameters:
            assert parameter.type in ("int", "str", "bool", "float")


def test_an_unknown_scenario_is_answered_with_the_near_ones() -> None:
    with pytest.raises(LearnerError, match="first-message"):
        scenarios.get("first-mesage")


def test_parameters_from_a_command_line_become_numbers() -> None:
    assert scenarios.get("first-message").check({"queues": "3"}) == {"queues": 3}


def test_a_wrong_parameter_is_a_clear_error() -> None:
    scenario = scenarios.get("first-message")
    with pytest.raises(LearnerError, match="it has: queues"):
        scenario.check({"queue": 3})
    with pytest.raises(LearnerError, match="is not a int"):
        scenario.check({"queues": "many"})


def test_every_text_that_a_scenario_takes_is_one_of_its_words_or_free() -> None:
    texts = [(name, one) for name in scenarios.names() for one in scenarios.get(name).parameters if one.type == "str"]
    free = {"acl", "also", "condition", "faults", "levels", "settings", "topics", "world"}
    assert {one.name for _, one in texts if not one.words} == free
    for name, one in texts:
        assert one.default in (one.words or one.default), name


@pytest.mark.parametrize("name", ["museum-3787", "power-cuts", "orders-cut-off", "slow-listener", "rivals"])
def test_a_scenario_takes_each_of_its_words_and_no_other(name: str) -> None:
    scenario = scenarios.get(name)
    for parameter in scenario.parameters:
        for word in parameter.words:
            scenario.build(7, parameters={parameter.name: word})
        if parameter.words:
            with pytest.raises(LearnerError, match=f"choose among {', '.join(parameter.words)}"):
                scenario.build(7, parameters={parameter.name: "sideways"})


def test_a_type_that_names_no_words_leaves_a_parameter_free() -> None:
    async def chatty(lab: Lab, *, way: Literal["up", "down"] = "up", said: Sequence[str] = "x") -> None:
        """`Sequence` is known to the type checker alone."""

    parameters = scenarios.Scenario("chatty", chatty, 1.0).parameters
    assert [parameter.words for parameter in parameters] == [("up", "down"), ()]


def test_a_report_is_played_again_with_its_actions(tmp_path: Path) -> None:
    lab = scenarios.get("steady-load").build(seed=3, parameters={"messages": 20})
    lab.run_for(seconds=1)
    lab.freeze("broker-a")
    lab.run_for(ms=700)
    lab.thaw("broker-a")
    lab.run_for(seconds=2)
    path = str(tmp_path / "bug.mqlab")
    lab.report(path)
    result = replay(read_report(path))
    assert result.agrees, str(result)
    assert result.lab.world.now_us == lab.world.now_us


def test_a_world_can_be_taken_back_to_any_slice() -> None:
    lab = scenarios.get("first-message").play(seed=3)
    from mqlab.replay import report_of

    middle = lab.world.slice_no // 2
    past = replay_to(report_of(lab), middle)
    assert past.world.slice_no == middle
    assert list(past.history.rows()) == list(lab.history.rows(0, len(past.history)))


def test_a_replay_that_differs_says_so(tmp_path: Path) -> None:
    lab = scenarios.get("first-message").play(seed=3)
    path = tmp_path / "bug.mqlab"
    lab.report(str(path))
    report = json.loads(path.read_text())
    report["seed"] = 4
    assert not replay(report).agrees


def test_an_override_changes_one_choice_and_is_part_of_the_report(tmp_path: Path) -> None:
    scenario = scenarios.get("first-message")
    plain = scenario.play(seed=3)
    point, _ = next(iter(plain.world.choices.drawn().items()))
    changed = scenario.play(seed=3, overrides={(point, 0): 0})
    path = str(tmp_path / "bug.mqlab")
    changed.report(path)
    assert replay(read_report(path)).agrees


def test_a_world_built_cell_by_cell_says_why_it_cannot_be_replayed(tmp_path: Path) -> None:
    from mqlab import Lab

    with pytest.raises(LearnerError, match="built cell by cell"):
        Lab().report(str(tmp_path / "x"))


def test_a_world_changed_from_a_cell_says_why_it_cannot_be_replayed(tmp_path: Path) -> None:
    lab = scenarios.get("first-message").build(seed=3)
    started_producer(lab, "other")
    with pytest.raises(LearnerError, match="changed from outside"):
        lab.report(str(tmp_path / "x"))


def test_a_file_that_is_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there is no file"):
        read_report(str(tmp_path / "none"))
    path = tmp_path / "text"
    path.write_text("hello")
    with pytest.raises(ProtocolError, match="is not a report"):
        read_report(str(path))


CELL = """
lab.name_server()
lab.broker("broker-a")
producer = lab.producer("orders")
await producer.start()
await producer.send(Message("TopicTest", body.encode()))
"""


def test_a_scenario_of_a_cell_can_be_replayed_only_when_its_source_is_allowed(tmp_path: Path) -> None:
    add_from_source("of-a-cell", CELL, {"body": "hello"})
    lab = scenarios.get("of-a-cell").play(seed=5)
    path = str(tmp_path / "cell.mqlab")
    lab.report(path)
    report = read_report(path)
    with pytest.raises(LearnerError, match="allow-source"):
        replay(report)
    assert replay(report, allow_source=True).agrees
    assert (
        lab.queue("TopicTest", 0).max_offset
        + sum(lab.brokers[0].store.get_max_offset_in_queue("TopicTest", q) for q in (1, 2, 3))
        == 1
    )
    assert isinstance(Message("T", b"x"), Message)


def test_a_cell_that_is_not_python_names_its_line() -> None:
    with pytest.raises(LearnerError, match="line 2"):
        add_from_source("bad", "x = 1\ny = = 2\n")
