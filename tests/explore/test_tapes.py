"""The tapes in this repository still fit: rare things that a world has shown once are shown again, and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.explore import plan_text
from mqlab.explore.tape import Tape, difference, play, read_tape, record, write_tape

from .broken.variants import broker_commits_one_more, retry_topic_not_subscribed
from .keep_tapes import TAPES

KEPT = sorted(TAPES.glob("*.json"))
AGAIN = "if worlds may go another way by your change: python -m tests.explore.keep_tapes --update"
SMALL = {"world": "name-server n; broker broker-a; producer p messages=3; push w"}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_tape_fits(path: Path) -> None:
    tape = read_tape(path)
    playing = play(tape)
    assert not playing.difference, f"{path.name}: {playing.difference}; {AGAIN}"
    assert not playing.lacks
    assert playing.outcome.passed, f"{plan_text(playing.outcome.plan)}: {playing.outcome.breaches[0]}"


def test_there_are_tapes_and_each_is_kept_for_something() -> None:
    assert len(KEPT) >= 12
    shown = [name for path in KEPT for name in read_tape(path).shows]
    assert len(shown) == len(set(shown)) >= 30


def test_a_tape_is_read_as_it_was_written(tmp_path: Path) -> None:
    tape = record("drawn", 5, SMALL, "at 3s: crash broker-a for 1s", ("fault crash", "event MessageStored"))
    write_tape(tape, tmp_path / "one.json")
    assert read_tape(tmp_path / "one.json") == tape
    assert len(tape.choices) > 100
    assert play(tape).difference == ""
    assert play(tape).lacks == ()


def test_a_tape_that_fits_no_more_names_the_first_choice_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = record("drawn", 5, SMALL, "", ("event PullHeld",))
    retry_topic_not_subscribed(monkeypatch)
    # The consumer no longer asks name servers for its retry topic.
    assert play(tape).difference == (
        f"choice 20 of {len(tape.choices)} differs: on the tape one of 201 at link:w-1>n, now one of 201 at link:n>p"
    )


def test_the_choice_that_differs_is_named_with_its_place() -> None:
    before = (("link:a>b", 201), ("shop/pause", 401), ("link:b>a", 201))
    assert difference(before, list(before)) == ""
    assert difference(before, [before[0], ("shop/pause", 400), before[2]]) == (
        "choice 2 of 3 differs: on the tape one of 401 at shop/pause, now one of 400 at shop/pause"
    )
    assert difference(before, list(before[:2])) == (
        "choice 3 of 3 differs: on the tape one of 201 at link:b>a, now the world has ended"
    )
    assert difference(before[:2], list(before)) == (
        "choice 3 of 2 differs: on the tape the world has ended, now one of 201 at link:b>a"
    )


def test_a_world_that_does_not_show_it_is_not_kept() -> None:
    with pytest.raises(LearnerError, match="seed 5 of drawn does not show event PopHeld"):
        record("drawn", 5, SMALL, "", ("event PopHeld", "event PullHeld"))


def test_what_a_tape_no_longer_shows_is_named() -> None:
    tape = record("drawn", 5, SMALL, "", ())
    assert play(tape._replace(shows=("event PullHeld", "event PopHeld"))).lacks == ("event PopHeld",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tape": 2}, "is a tape of format 2, and this mqlab reads 1"),
        ({"order": "0 1 9999"}, "is no tape of mqlab"),
        ({"choices": ["nothing"]}, "is no tape of mqlab"),
        ({"shows": None}, "is no tape of mqlab"),
    ],
)
def test_what_is_no_tape_is_said(tmp_path: Path, change: dict[str, object], words: str) -> None:
    path = tmp_path / "one.json"
    write_tape(Tape("drawn", 5, SMALL, "", (), (("link:a>b", 201),)), path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(LearnerError) as refused:
        read_tape(path)
    assert words in str(refused.value)


def test_the_command_keeps_a_seed_and_says_whether_it_still_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "one.json")
    words = ["explore", "drawn", "--seed", "5", "-p", f"world={SMALL['world']}", "--faults", "none", "--tape", path]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-2] == f"kept in {path}; whether it still fits: mqlab replay {path}"
    assert main(["replay", path]) == 0
    assert capsys.readouterr().out == f"all {len(read_tape(Path(path)).choices)} choices are the same\n"
    retry_topic_not_subscribed(monkeypatch)
    assert main(["replay", path]) == 1
    assert capsys.readouterr().out.startswith("choice 20 of ")


def test_a_tape_that_no_longer_shows_it_or_breaks_a_rule_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = record("drawn", 5, SMALL, "", ())
    write_tape(tape._replace(shows=("event PopHeld",)), tmp_path / "one.json")
    assert main(["replay", str(tmp_path / "one.json")]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["no longer shown: event PopHeld"]
    write_tape(tape, tmp_path / "one.json")
    broker_commits_one_more(monkeypatch)
    assert main(["replay", str(tmp_path / "one.json")]) == 1
    assert "BROKEN: A committed offset never passes" in capsys.readouterr().out


def test_a_tape_is_of_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "one-way", "--tape", str(tmp_path / "one.json")]) == 2
    assert "a tape is of one seed" in capsys.readouterr().err
    assert main(["explore", "drawn", "--until", "goal:batch-is-stored", "--tape", str(tmp_path / "t")]) == 2
    assert "a search for a goal keeps no corpus and no tape" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="cannot be read: No such file"):
        read_tape(tmp_path / "none.json")
