"""The recorded sessions of real clients: each plays as it went, and shows what lab 30 says of it."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from mqlab.errors import LearnerError, MissingExtraError
from mqlab.exercises.client_sessions import DIRECTORY, SESSIONS, calls, recorded
from mqlab.exercises.for_real import RealClient, missing, play_for_real, shop
from mqlab.replay import read_report

CALLS = {
    "python-begins": 15, "python-outages": 98, "python-ack-lost": 24, "python-answer-lost": 24, "java-4": 145
}  # fmt: skip
"""How many calls and requests came in each session."""


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_plays_as_it_went(name: str) -> None:
    report = read_report(str(DIRECTORY / f"{name}.mqlab"))
    assert {key: report["parameters"][key] for key in SESSIONS[name]} == SESSIONS[name]
    assert len(calls(recorded(name))) == CALLS[name]


def test_no_session_lies_there_that_nobody_plays() -> None:
    assert sorted(path.stem for path in DIRECTORY.iterdir()) == sorted(SESSIONS)


def test_a_session_takes_less_than_100_kilobytes() -> None:
    assert max(path.stat().st_size for path in DIRECTORY.iterdir()) < 100_000


def test_a_session_that_nobody_recorded() -> None:
    with pytest.raises(LearnerError, match="no session 'go' was recorded"):
        recorded("go")


def test_a_client_of_5_asks_for_the_way_before_it_says_anything() -> None:
    names = [call.name for call in calls(recorded("python-begins"))]
    assert names[:3] == ["QueryRoute", "Telemetry", "SendMessage"]


def test_an_order_comes_again_only_when_the_broker_has_not_heard_of_its_ack() -> None:
    lost = ("python-ack-lost", "python-answer-lost")
    assert [sum(1 for _ in recorded(name).history.find("MessagePopped")) for name in lost] == [2, 1]


@pytest.fixture
def no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which RocketMQ's client is not installed."""

    def gone(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("mqlab.exercises.for_real.version", gone)


@pytest.mark.usefixtures("no_client")
def test_without_the_client_a_sentence_says_so() -> None:
    assert missing().startswith("RocketMQ's client is not installed")
    assert play_for_real(recorded) == missing()
    lab = shop(7)
    with lab.serve() as serving, pytest.raises(MissingExtraError):
        RealClient("send", serving)


def test_sessions_name_no_machine() -> None:
    for path in DIRECTORY.iterdir():
        actions = json.loads(path.read_text(encoding="utf-8"))["actions"]
        assert {action[3]["came_to"] for action in actions if action[2] == "come_in"} == {"127.0.0.1"}
