"""The journey of a message: its copies, the attempts to consume it, and the two scales of time."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab, Message, scenarios
from mqlab.errors import LearnerError
from mqlab.scenarios.delivered_again import SHORT_LEVELS, add_group, never, open_shop
from mqlab.views import Journey
from tests.worlds import played, send, shop, started_producer


def sent(lab: Lab) -> str:
    """The id of the message that was sent last."""
    return str(lab.history.last("SendSucceeded").msg_id)


@pytest.fixture(scope="module")
def failing() -> Lab:
    lab = scenarios.get("always-fails").build(7, parameters={"levels": SHORT_LEVELS, "max_reconsume_times": 4})
    return lab.run_for(seconds=30)


def test_it_has_every_copy_and_every_attempt(failing: Lab) -> None:
    journey = Journey.of(failing.history, sent(failing), "billing")
    retries = ["SCHEDULE_TOPIC_XXXX", "%RETRY%billing"] * 4
    assert [copy.topic for copy in journey.copies] == ["Orders", *retries, "%DLQ%billing"]
    assert [copy.level for copy in journey.copies if copy.level] == [3, 4, 5, 6]
    assert [copy.reconsume_times for copy in journey.copies] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [attempt.reconsume_times for attempt in journey.attempts] == [0, 1, 2, 3, 4]
    assert [attempt.topic for attempt in journey.attempts] == ["Orders", *["%RETRY%billing"] * 4]
    assert not any(attempt.consumed for attempt in journey.attempts)
    waits = [row[2] for row in journey.table().rows]
    assert waits[0] is None
    assert [int(wait) for wait in waits[1:]] == [3, 4, 5, 6]


@pytest.mark.parametrize("scale", ["even", "log"])
def test_picture_and_text_say_the_same(failing: Lab, scale: str) -> None:
    journey = Journey.of(failing.history, sent(failing), "billing", scale=scale)
    svg = journey.svg()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert svg.count("<circle") == str(journey).count("  attempt ") == 5
    for topic in ("Orders", "%RETRY%billing", "SCHEDULE_TOPIC_XXXX", "%DLQ%billing"):
        assert topic in svg
        assert f"stored in {topic}" in str(journey)
    assert ("each factor of ten equally wide" in svg) is (scale == "log")
    assert journey._repr_mimebundle_() == {"text/plain": str(journey), "image/svg+xml": svg}


async def open_bad_minute(lab: Lab) -> None:
    """A message whose attempt fails while its broker is down."""
    producer = await open_shop(lab)

    async def slow_and_never(messages: object, context: object) -> object:
        await context.sleep(1_000)  # type: ignore[attr-defined]  # the context of a listener
        return never(messages, context)  # type: ignore[arg-type]  # the messages of a listener

    await add_group(lab, "billing", slow_and_never)
    lab.run_for(seconds=30)
    await producer.send(Message("Orders", b"order"))


def test_what_is_tried_again_here_stays_in_its_lane_and_the_broken_broker_is_seen() -> None:
    lab = Lab(seed=7)
    lab.finish_building(open_bad_minute(lab))
    lab.run_until_event("ConsumeStarted")
    lab.crash("broker-a")
    lab.run_for(seconds=8)
    journey = Journey.of(lab.history, sent(lab), "billing", end_ms=lab.now_ms)
    assert [attempt.topic for attempt in journey.attempts] == ["Orders", "Orders"]
    assert [attempt.reconsume_times for attempt in journey.attempts] == [0, 1]
    assert [name for *_, name in journey.downs] == ["broker-a"]
    assert "broker-a is down until" in str(journey)
    assert "the broker is down" in journey.svg()


def test_an_attempt_that_has_not_ended_runs_to_the_edge() -> None:
    lab = Lab(seed=7)
    lab.finish_building(open_bad_minute(lab))
    lab.run_until_event("ConsumeStarted")
    (attempt,) = Journey.of(lab.history, sent(lab), "billing", end_ms=lab.now_ms + 5).attempts
    assert attempt.status == "still runs"
    assert attempt.end_us - attempt.begin_us == 5_000


def test_a_delayed_message_is_parked_first() -> None:
    lab = shop(topic="Orders")
    send(started_producer(lab), b"later", topic="Orders", delay_level=1)
    lab.run_for(seconds=2)
    journey = Journey.of(lab.history, sent(lab), "billing")
    assert [copy.topic for copy in journey.copies] == ["SCHEDULE_TOPIC_XXXX", "Orders"]
    assert journey.topics == ["Orders", "SCHEDULE_TOPIC_XXXX"]
    assert not journey.attempts


def test_what_is_unknown_is_told(failing: Lab) -> None:
    with pytest.raises(LearnerError, match="no broker has stored a message 'x'"):
        Journey.of(failing.history, "x", "billing")
    with pytest.raises(LearnerError, match="scale='linear' is unknown"):
        Journey.of(failing.history, sent(failing), "billing", scale="linear")


def test_a_timer_message_waits_on_the_wheel_and_comes_into_its_own_topic() -> None:
    lab = played("timer-messages", 40)
    accepted = next(lab.history.find("TimerMessageAccepted", delay_ms=7_000))
    journey = Journey.of(lab.history, accepted.unique_key, "readers")
    assert [(copy.topic, copy.level) for copy in journey.copies] == [("rmq_sys_wheel_timer", -1), ("Orders", 0)]
    assert ", on the timer wheel" in str(journey)
    assert "the timer wheel: " in journey._repr_mimebundle_()["image/svg+xml"]
