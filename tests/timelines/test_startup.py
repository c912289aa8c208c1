"""What a client sends when it starts, works and ends, in the order of a real RocketMQ 5.3.3."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest


def names(sequence: list[str]) -> list[str]:
    """The request names of a recorded sequence, with the topic of route queries left out."""
    requests = [line for line in sequence if " -> " in line and not line.startswith(("[", " ", "("))]
    return [re.match(r"[A-Z_0-9]+", line)[0] for line in requests]  # type: ignore[index]  # all begin with a name


def play_push_consumer(stage: Any) -> Any:
    scene = stage(queues=2)
    consumer = scene.consumer()
    scene.lab.run(consumer.start())
    scene.returned_ms = scene.now_ms
    scene.at(4_000)
    producer = scene.producer()
    scene.send(producer, "m0")
    scene.at(9_000)
    scene.send(producer, "m1")
    scene.at(47_000)
    scene.shutdown_at = len(scene.sequence("A"))
    scene.lab.run(consumer.shutdown())
    return scene


@pytest.fixture
def scene(stage: Any, once: Any) -> Any:
    return once(play_push_consumer, stage)


def test_a_push_consumer_sends_its_first_requests_in_the_recorded_order(scene: Any, recorded: Any) -> None:
    timeline = recorded("startup.push-consumer")
    runs = [names(step["sequence"]) for step in timeline["summary"][:3]]
    ours = scene.sequence("A")
    assert any(sorted(ours[:5]) == sorted(run[:5]) for run in runs), "four route queries, then the heartbeat"
    assert ours[:5] == ["GET_ROUTEINFO_BY_TOPIC"] * 4 + ["HEART_BEAT"]
    until_pulls = ours[: ours.index("PULL_MESSAGE") + 2]
    without_heartbeats = [name for name in until_pulls if name != "HEART_BEAT"]
    assert without_heartbeats in [[name for name in run if name != "HEART_BEAT"] for run in runs]
    assert until_pulls.count("HEART_BEAT") in {run.count("HEART_BEAT") for run in runs}


def test_the_notice_of_new_members_comes_before_the_answer_to_the_heartbeat(scene: Any, recorded: Any) -> None:
    (notice, *_) = scene.events("RequestReceived", node="A")
    assert notice["request_name"] == "NOTIFY_CONSUMER_IDS_CHANGED"
    (answer, *_) = scene.events("HeartbeatAnswered", node="A")
    assert notice["t_ms"] <= answer["t_ms"] <= scene.returned_ms


def test_the_retry_queue_of_a_new_group_is_pulled_only_after_21_seconds(
    scene: Any, recorded: Any, smallest: Any
) -> None:
    """Its route is unknown at the first rebalance; the next one comes 20 s later, and the pull 500 ms after it."""
    (first, *_) = scene.events("PullRequested", topic="%RETRY%G")
    real = smallest(recorded("startup.push-consumer"), "start returned -> first PULL_MESSAGE of %RETRY%G")
    assert first["t_ms"] - scene.returned_ms == pytest.approx(real, abs=1_000)
    assert first["t_ms"] >= 1_000 + 20_000 + 500


def test_offsets_are_reported_every_5_seconds_from_the_10th_on(scene: Any, recorded: Any, smallest: Any) -> None:
    assert smallest(recorded("startup.push-consumer"), "first UPDATE_CONSUMER_OFFSET") >= 10_000
    times = [e["t_ms"] for e in scene.events("RequestSent", node="A", request_name="UPDATE_CONSUMER_OFFSET")]
    ticks = sorted({round(t, -2) for t in times if t < 46_900})
    assert ticks[0] == 10_000
    assert {b - a for a, b in pairwise(ticks)} == {5_000}


def test_members_are_asked_for_at_each_rebalance_20_seconds_apart(scene: Any, recorded: Any) -> None:
    """One query per topic: the topic and the retry topic."""
    times = [e["t_ms"] for e in scene.events("RequestSent", node="A", request_name="GET_CONSUMER_LIST_BY_GROUP")]
    real = recorded("startup.push-consumer")["summary"]
    (step,) = [s for s in real if s["step"].startswith("GET_CONSUMER_LIST_BY_GROUP")]
    assert len(times) == len(step["per_run"][0])
    rounds = times[::2]
    assert all(b - a == pytest.approx(20_000, abs=20) for a, b in pairwise(rounds))
    assert rounds[0] == pytest.approx(1_000, abs=20)


def test_heartbeats_and_route_queries_keep_their_rhythm_of_30_seconds(scene: Any, recorded: Any) -> None:
    beats = [e["t_ms"] for e in scene.events("RequestSent", node="A", request_name="HEART_BEAT")]
    assert any(b == pytest.approx(1_000, abs=5) for b in beats)
    assert any(b == pytest.approx(31_000, abs=5) for b in beats)
    (step,) = [s for s in recorded("startup.push-consumer")["summary"] if s["step"] == "HEART_BEAT times"]
    assert len(beats) == len(step["per_run"][0])
    routes = [e["t_ms"] for e in scene.events("RequestSent", node="A", request_name="GET_ROUTEINFO_BY_TOPIC")]
    assert any(t == pytest.approx(30_010, abs=5) for t in routes)


def test_a_clean_shutdown_sends_its_requests_in_the_recorded_order(scene: Any, recorded: Any) -> None:
    """Offsets first, then the group and at last the inner producer take leave."""
    ours = scene.sequence("A")[scene.shutdown_at :]
    assert ours.count("UNREGISTER_CLIENT") == 2
    assert ours.count("UPDATE_CONSUMER_OFFSET") == 3
    assert ours[0] == "UPDATE_CONSUMER_OFFSET"
    assert ours[-1] == "UNREGISTER_CLIENT"
    (step,) = [s for s in recorded("startup.push-consumer")["summary"] if s["step"] == "shutdown: order"]
    assert sorted(ours) == sorted(names(step["sequence"]))


def test_a_producer_asks_nobody_until_its_first_message(stage: Any, recorded: Any) -> None:
    timeline = recorded("startup.producer")
    scene = stage(queues=2)
    producer = scene.producer()
    assert scene.sequence("P") == []
    for at_ms in (575, 2_575, 4_575):
        scene.at(at_ms)
        scene.lab.run(producer.send(_message(at_ms)))
    scene.at(6_600)
    scene.lab.run(producer.shutdown())
    expected = names(timeline["summary"][0]["sequence"])
    assert scene.sequence("P") == expected
    beats = [e["t_ms"] for e in scene.events("RequestSent", node="P", request_name="HEART_BEAT")]
    sent = [e["t_ms"] for e in scene.events("RequestSent", node="P", request_name="SEND_MESSAGE_V2")]
    assert beats[0] == pytest.approx(sent[0], abs=5), "the channel that the first send opens brings a heartbeat"
    assert beats[1] == pytest.approx(1_000, abs=5)


def test_a_topic_that_nobody_created_is_borrowed_from_tbw102_for_30_seconds(stage: Any, recorded: Any) -> None:
    timeline = recorded("startup.auto-create-topic")
    scene = stage(queues=0)
    producer = scene.producer()
    used = []
    for number in range(16):
        scene.at(500 + number * 2_000)
        used.append(scene.lab.run(producer.send(_message(number))).message_queue.queue_id)
    first_sends = names(timeline["summary"][0]["sequence"])
    ours = scene.sequence("P")
    assert ours[:3] == first_sends[:3] == ["GET_ROUTEINFO_BY_TOPIC"] * 2 + ["SEND_MESSAGE_V2"]
    answers = scene.events("RouteQueried")
    mine = [(e["topic"], e["code"]) for e in answers if e["topic"] in ("T", "TBW102")][:2]
    assert mine == [("T", 17), ("TBW102", 0)]
    again = [e["t_ms"] for e in answers if e["topic"] == "T" and e["code"] == 0]
    assert again[0] == pytest.approx(30_010, abs=10), "the borrowed route lives until the next refresh"
    assert sorted(set(used)) == timeline["summary"][-1]["per_run"][0]


def _message(number: int) -> Any:
    from mqlab import Message

    return Message("T", b"x", keys=f"k{number}")
