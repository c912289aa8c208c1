"""`mqlab explore`: what it prints, how a failure is played again, and its exit status."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.explore import Trial
from mqlab.explore.rules_of_flushing import TablesAreWritten

from .broken.variants import broker_commits_one_more, failed_send_back_drops


def test_seeds_that_hold_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "push-clustering", "--seeds", "5", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 passed, 0 failed"


def test_several_processes_say_the_same_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for jobs in ("1", "2"):
        assert main(["explore", "async-send", "--seeds", "12", "--first-seed", "3", "--jobs", jobs, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert answers[0]["passed"] == 12


def test_a_failure_names_its_reason_and_the_command_that_plays_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_commits_one_more(monkeypatch)
    assert main(["explore", "push-clustering", "--seeds", "1", "-p", "messages=5", "--jobs", "1"]) == 1
    seed, command, *_, last = capsys.readouterr().out.splitlines()
    assert seed.startswith("seed 0: readers committed an offset behind broker-a Orders queue")
    assert last == "0 passed, 1 failed"
    assert command == "  mqlab explore push-clustering --seed 0 -p messages=5 --faults none"
    assert main(shlex.split(command)[1:]) == 1
    assert "BROKEN: A committed offset never passes" in capsys.readouterr().out


def test_a_failure_is_shrunk_to_the_faults_that_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_send_back_drops(monkeypatch)
    for first in range(60):
        arguments = ["retry-and-dead-letters", "--first-seed", str(first), "--seeds", "1", "-j", "1", "--json"]
        if main(["explore", *arguments]) == 1:
            break
        capsys.readouterr()
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    drawn = Trial("retry-and-dead-letters", failure["seed"]).plan
    assert 0 < len(failure["faults"]) < len(drawn)
    assert set(failure["faults"]) < set(drawn)
    assert main([*shlex.split(failure["command"])[1:], "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert again["faults"] == failure["faults"]
    assert again["breaches"] == failure["breaches"]


def test_a_seed_is_reported_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "seed.mqlab")
    faults = "at 3s: crash broker-a for 2s; at 9s: freeze consumer-1 for 1s"
    assert main(["explore", "push-clustering", "--seed", "4", "--faults", faults, "--report", path]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == faults.split("; ")
    assert printed[-1] == "1 passed, 0 failed"
    assert main(["replay", path]) == 0
    assert "the trace hash agrees" in capsys.readouterr().out


def test_a_scenario_that_expects_no_faults_is_played_without_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "steady-load", "--seeds", "2", "--jobs", "1", "-p", "messages=10"]) == 0
    answer = capsys.readouterr()
    assert "no faults are drawn for steady-load" in answer.err
    assert answer.out.endswith("\n2 passed, 0 failed\n")


def test_a_rule_that_had_nothing_to_judge_is_said_to_be_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "push-clustering", "--seeds", "2", "--jobs", "1", "-p", "messages=5"]) == 0
    words = capsys.readouterr().out.replace("\n  ", " ")
    assert "rules had nothing to judge: AckedStaysAway, AttemptsGoOn, BeginsWhereItStood, " in words
    assert "CommittedIsConsumed" not in words
    assert main(["explore", "push-clustering", "--seeds", "2", "--jobs", "1", "-p", "messages=5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["silent"] == sorted(rule for rule, times in answer["judged"].items() if not times)
    assert answer["judged"]["CommittedIsConsumed"] > 0
    assert answer["ends_not_judged"] == 0


def test_one_seed_says_how_much_each_rule_judged(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explore", "push-clustering", "--seed", "2", "-p", "messages=5", "--faults", "none"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    judged = Trial("push-clustering", 2, {"messages": 5}, ()).outcome.judged
    assert f"judged {judged['SendsEnd']} times: SendsEnd" in lines
    assert sum(line.startswith("judged ") for line in lines) == sum(times > 0 for times in judged.values())


@pytest.mark.parametrize("method", ["at_end", "on_event"])
def test_a_rule_that_fails_itself_is_named_and_the_others_still_judge(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def divides(self: TablesAreWritten, *record: object) -> None:
        raise ZeroDivisionError("nothing to divide by")

    right = Trial("one-way", 0, {"messages": 3}, ()).outcome
    monkeypatch.setattr(TablesAreWritten, method, divides)
    outcome = Trial("one-way", 0, {"messages": 3}, ()).outcome
    (breach,) = outcome.breaches
    words = r"TablesAreWritten itself failed, at test_explore_command\.py:\d+: ZeroDivisionError: nothing to divide by"
    assert re.fullmatch(words, breach.reason)
    assert outcome.judged["NothingIsLeftOver"] == right.judged["NothingIsLeftOver"] > 0
    assert outcome.judged["CallsEnd"] == right.judged["CallsEnd"] > 0


def test_a_load_that_has_no_end_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "owner-killed", "--seeds", "1", "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert "the end of 1 seed was not judged, since messages were still being sent" in said
    assert "the load of this scenario has no end" in said


def test_the_old_name_still_works_and_says_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "one-way", "--seeds", "1", "--jobs", "1"]) == 0
    answer = capsys.readouterr()
    assert "'mqlab check' is called 'mqlab explore' now" in answer.err
    assert answer.out.endswith("1 passed, 0 failed\n")


def test_the_scenarios_that_bear_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "--faulty"]) == 0
    listed = capsys.readouterr().out.split()
    assert "push-clustering" in listed
    assert "first-message" not in listed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such"], "mqlab scenarios"),
        (["push-clustering", "-p", "messages"], "NAME=VALUE"),
        (["push-clustering", "-p", "letters=3"], "it has:"),
        (["push-clustering", "--faults", "at 3s: explode broker-a"], "use one of"),
        (["push-clustering", "--seed", "1", "--faults", "at 3s: crash broker-z"], "there is no node"),
        (["one-way", "--seed", "1", "--faults", "at 3s: crash broker-a; at 4s: crash broker-a"], "is down already"),
        (["push-clustering", "--report", "x.mqlab"], "add --seed"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("mqlab: ")
    assert words in error
