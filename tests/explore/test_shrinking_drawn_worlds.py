"""A drawn world that breaks a rule is shrunk to the lines and settings that it needs for that."""

from __future__ import annotations

import shlex

import pytest

from mqlab.commands.cli import main
from mqlab.explore import Trial, shrink
from mqlab.scenarios.drawing import world_from_text

from .broken.variants import broker_commits_one_more

WORLD = (
    "name-server n; broker broker-a flush_disk_type=SYNC_FLUSH; broker broker-b; topic Orders queues=2; topic Payments;"
    " producer shop messages=8; push workers pull_batch_size=1; lite pollers topic=Payments;"
    " at 5000ms: set broker-b short_polling_time_mills=100; at 6000ms: subscribe pollers; at 7000ms: reset pollers"
)


def test_what_the_failure_does_not_need_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broker_commits_one_more(monkeypatch)
    failed = Trial("drawn", 0, {"world": WORLD}, ()).outcome
    shortest = shrink("drawn", failed, {"world": WORLD})
    assert shortest.breaches[0].rule == failed.breaches[0].rule
    left = [part.text for part in world_from_text(shortest.world)]
    assert len(left) < 8
    words = ("at ", "pollers", "=SYNC_FLUSH", "pull_batch_size")
    assert not any(word in line for line in left for word in words)


def test_the_command_that_is_printed_plays_the_shrunk_world(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_commits_one_more(monkeypatch)
    given = ["explore", "drawn", "--seeds", "1", "--faults", "none", "--jobs", "1", "-p", f"world={WORLD}"]
    assert main(given) == 1
    _, command, *_ = capsys.readouterr().out.splitlines()
    words = shlex.split(command)
    assert words[:5] == ["mqlab", "explore", "drawn", "--seed", "0"]
    assert len([word for word in words if word.startswith("world=")]) == 1
    assert main(words[1:]) == 1
    assert "committed an offset" in capsys.readouterr().out
