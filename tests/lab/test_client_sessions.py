"""The recorded sessions of real clients: each plays as it went, and shows what lab 30 says of it."""

from __future__ import annotations

import json
from importlib import metadata
from itertools import pairwise

import pytest

from mqlab.errors import LearnerError, MissingExtraError
from mqlab.exercises.client_sessions import DIRECTORY, SESSIONS, calls, recorded
from mqlab.exercises.for_real import RealClient, missing, play_for_real, shop
from mqlab.lab import Lab
from mqlab.replay import read_report, replay


def seconds(lab: Lab, kind: str, **fields: str) -> list[float]:
    """When events of a kind happened, in seconds from the first call."""
    first_ms = calls(lab)[0].ms
    return [(event.ts_ms - first_ms) / 1_000 for event in lab.history.find(kind, **fields) if event.ts_ms > first_ms]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_plays_as_it_went(name: str) -> None:
    """What does not agree any more is recorded anew: python -m tests.clients.record_sessions."""
    report = read_report(str(DIRECTORY / f"{name}.mqlab"))
    assert {key: report["parameters"][key] for key in SESSIONS[name]} == SESSIONS[name]
    played = replay(report)
    assert played.agrees, played
    assert calls(recorded(name)) == calls(played.lab)


def test_each_thread_of_a_client_of_5_has_its_clock() -> None:
    session = calls(recorded("python-begins"))
    at = {name: [round(call.at_s) for call in session if call.name == name] for name in ("Heartbeat", "QueryRoute")}
    assert at == {"Heartbeat": [1, 11, 21, 31, 41, 51, 61, 71], "QueryRoute": [0, 10, 40, 70]}


def test_a_client_of_4_sends_a_heartbeat_every_30_seconds() -> None:
    at_s = [call.at_s for call in calls(recorded("java-4")) if call.name == "HEART_BEAT"]
    assert [round(later - earlier) for earlier, later in pairwise(at_s) if earlier > 0.5] == [30, 30]


def test_each_send_of_5_is_tried_three_times_while_the_broker_is_away() -> None:
    lab = recorded("python-outages")
    sends = [call.at_s for call in calls(lab) if call.name == "SendMessage"]
    killed_s, back_s = seconds(lab, "NodeCrashed")[0], seconds(lab, "BrokerStarted")[0]
    assert [round(at_s) for at_s in sends if killed_s < at_s < back_s] == [4, 4, 4, 6, 6, 6, 8, 8, 8, 10, 10, 10]


def test_the_first_outage_ends_with_the_next_order_and_the_second_when_the_proxy_has_forgotten() -> None:
    lab = recorded("python-outages")
    back_s, stored_s = seconds(lab, "BrokerStarted"), seconds(lab, "MessageStored", topic="Orders")
    first, second = (min(at_s for at_s in stored_s if at_s > since_s) - since_s for since_s in back_s)
    assert first < 2
    assert 30 < second < 42
    refused = list(dict.fromkeys(event.status for event in lab.history.find("RpcRefused")))
    assert refused == ["INTERNAL_SERVER_ERROR", "TOPIC_NOT_FOUND", "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"]


def test_with_a_client_of_4_an_outage_ends_with_the_next_order() -> None:
    lab = recorded("java-4")
    (back_s,) = seconds(lab, "BrokerStarted")
    assert min(at_s for at_s in seconds(lab, "MessageStored", topic="Uses") if at_s > back_s) - back_s < 3


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
