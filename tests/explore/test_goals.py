"""Goals: what worlds reach is counted, told with the seed that reached it first, and gone to."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.explore import RULES, Trial, goal_named, goals
from mqlab.explore.sights import SIGHTS
from mqlab.replay import read_report, replay
from mqlab_widgets.sharing import reopened

from .broken.variants import broker_commits_one_more

BACK = "message-is-given-back"


def test_every_goal_has_one_owner_a_subject_and_a_sentence() -> None:
    names = Counter(name for rule in (*SIGHTS, *RULES) for name in rule.GOALS)
    assert [name for name, times in names.items() if times > 1] == []
    assert names.keys() == goals().keys()
    for goal in goals().values():
        assert goal.name == goal.name.lower().replace(" ", "-")
        assert goal.words.endswith(".")
        assert goal.subject


def test_scenarios_are_there_for_goals_that_there_are() -> None:
    wanted = {goal for name in scenarios.names() for goal in scenarios.get(name).goals}
    assert wanted
    assert wanted <= goals().keys()


def test_a_goal_is_reached_at_an_event_of_the_world_and_counted() -> None:
    trial = Trial("sync-send-two-brokers", 0, plan=("at 2s: crash broker-a for 3s",))
    other = trial.first_reached["send-goes-to-another-broker"]
    assert (other.kind, other.last_broker, other.broker_name) == ("QueueSelected", "broker-a", "broker-b")
    assert trial.lab is not None
    again = [r for r in trial.lab.history.find("QueueSelected") if r.last_broker not in ("", r.broker_name)]
    assert trial.outcome.goals["send-goes-to-another-broker"] == len(again) > 1
    assert again[0] == other


def test_what_does_not_happen_is_not_reached() -> None:
    assert "send-goes-to-another-broker" not in Trial("sync-send-two-brokers", 0, plan=()).outcome.goals


def test_many_seeds_say_what_was_reached_and_what_not(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explore", "sync-send-two-brokers", "--seeds", "6", "--jobs", "1"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["goals"]
    other = told["reached"]["send-goes-to-another-broker"]
    assert other["first_seed"] == 0
    assert other["times"] > other["seeds"] > 1
    (heading,) = [line for line in lines if " goals were reached " in line]
    words = ["goals", "were", "reached", "times", "seeds", "first", "seed"]
    assert heading.split() == [str(len(told["reached"])), "of", str(len(goals())), *words]
    (line,) = [line for line in lines if "send-goes-to-another-broker" in line]
    assert line.split()[1:] == [str(other["times"]), str(other["seeds"]), "0"]
    assert "batch-is-stored" in told["not_reached"]["sending"]
    assert any(line.startswith("not reached of sending: ") for line in lines)
    assert told["not_reached"]["filters"] == [goal.name for goal in goals().values() if goal.subject == "filters"]
    (counts,) = " ".join(lines).split("nothing was reached of ")[1:]
    assert counts.startswith(f"filters ({len(told['not_reached']['filters'])}), ")


def test_goals_that_a_scenario_is_there_for_are_missed_loudly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = scenarios.get("one-way")._replace(goals=("batch-is-stored",))
    monkeypatch.setitem(scenarios.registry._SCENARIOS, "one-way", wanted)
    assert main(["explore", "one-way", "--seeds", "1", "--jobs", "1"]) == 0
    assert "NOT REACHED, though one-way is there for it: batch-is-stored" in capsys.readouterr().out


def test_until_a_goal_is_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "goal.mqlab")
    assert main(["explore", "drawn", "--until", f"goal:{BACK}", "--jobs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seed"] > 0
    assert Trial("drawn", found["seed"]).outcome.goals[BACK] == found["times"]
    assert all(BACK not in Trial("drawn", seed).outcome.goals for seed in range(found["seed"]))

    assert main([*shlex.split(found["command"])[1:], "--until", f"goal:{BACK}", "--report", path]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"seed {found['seed']} reaches {BACK}")
    assert f"first at event {found['event']:,}:\n  {found['what']}" in said
    assert all(fault in said for fault in found["faults"])
    result = replay(read_report(path))
    assert result.agrees
    assert str(result.lab.history[found["event"] - 1]).strip() == found["what"]
    assert result.lab.world.slice_no == found["slice"]
    opened = reopened(Path(path)).history
    assert str(opened.at_cursor).strip() == found["what"]


def test_what_was_found_is_told_also_where_no_report_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "no such directory" / "goal.mqlab")
    assert main(["explore", "drawn", "--seeds", "20", "--until", f"goal:{BACK}", "--report", path]) == 2
    answer = capsys.readouterr()
    assert re.match(rf"seed \d+ reaches {BACK}", answer.out)
    assert "No such file or directory" in answer.err


def test_a_seed_that_fails_on_the_way_is_told_and_the_search_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_commits_one_more(monkeypatch)
    arguments = ["explore", "push-clustering", "-p", "messages=5", "--seeds", "2", "--jobs", "1"]
    assert main([*arguments, "--until", "goal:member-without-a-queue"]) == 0
    failed, command, reached, *_ = capsys.readouterr().out.splitlines()
    assert failed.startswith("seed 0: readers committed an offset behind broker-a Orders queue")
    assert command.startswith("  mqlab explore push-clustering --seed 0 ")
    assert reached.startswith("seed 0 reaches member-without-a-queue")


def test_until_a_goal_that_is_not_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "one-way", "--until", "goal:batch-is-stored", "--seeds", "2", "--jobs", "1"]) == 1
    assert capsys.readouterr().out.startswith("of the seeds from 0 to 1 none reaches batch-is-stored: A producer is")


@pytest.mark.parametrize("text", ["goal:stored-twice", "message-is-stored-twice"])
def test_a_goal_that_there_is_not(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "one-way", "--until", text]) == 2
    assert "docs/checks.md lists" in capsys.readouterr().err


def test_names_that_come_near_are_said() -> None:
    with pytest.raises(LearnerError, match="no goal") as error:
        goal_named("stored-twice")
    assert "message-is-stored-twice" in error.value.hint


def test_what_is_lost_is_seen_in_the_end() -> None:
    faults = ("at 2054ms: fill_disk broker-a by 1818 for 11960ms", "at 18537ms: fill_disk broker-a by 13059 for 602ms")
    trial = Trial("one-way", 0, plan=faults)
    assert trial.lab is not None
    refused = sum(1 for _ in trial.lab.history.find("PutRefused"))
    assert 0 < trial.outcome.goals["one-way-message-is-lost"] <= refused
    assert trial.first_reached["one-way-message-is-lost"].kind == "SendAttempted"
