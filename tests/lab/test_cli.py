"""The command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.scenarios import get
from mqlab.trace.recorded import read_json_lines


def test_scenarios_are_listed_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios"]) == 0
    assert "first-message" in capsys.readouterr().out
    assert main(["scenarios", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    first = next(s for s in listed if s["name"] == "first-message")
    assert first["parameters"] == [{"name": "queues", "type": "int", "default": 1, "words": []}]


def test_trace_prints_a_hash_that_depends_on_the_seed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    hashes = []
    for seed in ("7", "7", "8"):
        assert main(["trace", "first-message", "--seed", seed, "--hash"]) == 0
        hashes.append(capsys.readouterr().out.strip())
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(hashes[0]) == 32


def test_trace_prints_events_of_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "first-message", "--kind", "MessageStored"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "TopicTest" in lines[0]


def test_trace_writes_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "out" / "t.jsonl")
    assert main(["trace", "first-message", "--seed", "7", "--out", path]) == 0
    assert list(read_json_lines(path)) == list(get("first-message").play(7).history.rows())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace", "no-such"], "mqlab scenarios"),
        (["trace", "first-message", "-p", "queues"], "NAME=VALUE"),
        (["trace", "first-message", "--kind", "Nothing"], "no event kind"),
        (["trace", "first-message", "--out", "x.txt"], ".parquet"),
        (["replay", "no-such-file"], "there is no file"),
        (["demo", "no-such"], "mqlab scenarios"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("mqlab: ")
    assert words in error


def test_replay_says_whether_the_hash_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "bug.mqlab")
    get("first-message").play(7).report(path)
    assert main(["replay", path]) == 0
    assert "the trace hash agrees" in capsys.readouterr().out
    report = json.loads(Path(path).read_text())
    report["trace_hash"] = "0" * 32
    Path(path).write_text(json.dumps(report))
    assert main(["replay", path]) == 1
    assert "DIFFERS" in capsys.readouterr().out


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "scenarios" in capsys.readouterr().out
