"""When failed and delayed messages come again, compared with a real RocketMQ 5.3.3."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, Message, MessageQueue
from mqlab.protocol import RequestCode

SHORT_LEVELS = "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s 18s"
LATE_MS = 105
"""Up to 100 ms until the level is looked at, and then the way to the consumer."""


def failing_consumer(scene: Any, deliveries: list[tuple[float, Any]], **settings: Any) -> Any:
    """A consumer whose listener always says RECONSUME_LATER; deliveries are noted with their time."""

    def listener(messages: list[Any], context: Any) -> ConsumeConcurrentlyStatus:
        deliveries.extend((scene.now_ms, message) for message in messages)
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    consumer = scene.consumer(**settings)
    consumer.register_message_listener(listener)
    return consumer


def play_failures(stage: Any, *, group_is_known: bool, **settings: Any) -> Any:
    """The recorded scenario: the first message 4 s after the start, five deliveries, the dead letter queue."""
    scene = stage(message_delay_level=SHORT_LEVELS, **settings)
    scene.deliveries = []
    if group_is_known:
        known = scene.consumer("Z")
        scene.lab.run(known.start())
        scene.lab.run_for(ms=30_000)
        scene.lab.run(known.shutdown())
        scene.start_us = scene.lab.world.now_us
    consumer = failing_consumer(scene, scene.deliveries, max_reconsume_times=4)
    scene.lab.run(consumer.start())
    scene.returned_ms = scene.now_ms
    scene.at(4_000)
    scene.send(scene.producer(), "m0")
    scene.at(70_000)
    return scene


def recorded_deliveries(run: list[Any]) -> list[tuple[str, int, str]]:
    """Topic that the listener sees, reconsume times and delay level of each recorded delivery."""
    events = [event for event in run if event["event"] == "deliver"]
    return [(e["topic"], e.get("reconsumeTimes", 0), e.get("delay", "")) for e in events]


def send_backs(scene: Any) -> list[float]:
    return [event["t_ms"] for event in scene.requests("A", RequestCode.CONSUMER_SEND_MSG_BACK)]


def test_a_message_that_always_fails_is_delivered_as_often_and_with_the_levels_of_the_recording(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    scene = play_failures(stage, group_is_known=True, phase_ms=phase_ms)
    ours = [
        (message.topic, message.reconsume_times, message.properties.get("DELAY", "")) for _, message in scene.deliveries
    ]
    for run in recorded("retry.concurrent-reconsume-later")["runs"]:
        assert ours == recorded_deliveries(run)


def test_the_next_attempt_comes_its_level_after_the_message_was_given_back(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    timeline = recorded("retry.concurrent-reconsume-later")
    scene = play_failures(stage, group_is_known=True, phase_ms=phase_ms)
    given_back = send_backs(scene)
    assert len(given_back) == 5
    for number, (sent_ms, (delivered_ms, _)) in enumerate(zip(given_back, scene.deliveries[1:], strict=False), 1):
        level_ms = (number + 2) * 1_000
        assert level_ms <= delivered_ms - sent_ms <= level_ms + LATE_MS
        real_ms = smallest(timeline, f"send-back request {number} ->")
        assert level_ms - 5 <= real_ms <= level_ms + LATE_MS + 60


def test_after_the_last_attempt_the_message_is_in_the_dead_letter_queue_at_once(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    scene = play_failures(stage, group_is_known=True, phase_ms=phase_ms)
    (stored,) = scene.events("MessageStored", topic="%DLQ%G")
    assert 0 < stored["t_ms"] - scene.deliveries[-1][0] <= 5
    store = scene.lab.brokers[0].store
    dead = store.look_message_by_offset(store.find_consume_queue("%DLQ%G", 0).get(0).pos)
    for run in recorded("retry.concurrent-reconsume-later")["runs"]:
        (real,) = [event for event in run if event["event"] == "dlq_arrival"]
        assert dead.keys == real["key"]
        assert dead.reconsume_times == real["reconsumeTimes"]
        assert dead.properties["RETRY_TOPIC"] == real["retryTopic"]
        assert dead.properties["REAL_TOPIC"] == real["realTopic"]
        assert dead.properties["DELAY"] == real["delay"]


def test_a_new_group_pulls_its_retry_queue_only_after_the_second_rebalance(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    """The retry topic is made by the first heartbeat, and the first rebalance does not know its route yet."""
    timeline = recorded("retry.concurrent-new-group")
    (step,) = [s for s in timeline["summary"] if s["step"].startswith("start returned -> first PULL_MESSAGE of")]
    assert sorted(step["per_run_ms"])[1:] == [20_939, 21_443]
    scene = play_failures(stage, group_is_known=False, phase_ms=phase_ms)
    first = scene.events("PullRequested", topic="%RETRY%G")[0]["t_ms"] - scene.returned_ms
    assert 20_490 <= first <= 21_560
    # The second attempt was due 3 s after the first failed, and had to wait until somebody pulled it.
    attempts = [at for at, _ in scene.deliveries]
    assert len(attempts) == 5
    assert attempts[1] == pytest.approx(scene.events("PullRequested", topic="%RETRY%G")[0]["t_ms"], abs=5)
    for number, (earlier, later) in enumerate(list(pairwise(attempts))[1:], 4):
        assert number * 1_000 <= later - earlier <= number * 1_000 + LATE_MS
    ours = [(m.topic, m.reconsume_times, m.properties.get("DELAY", "")) for _, m in scene.deliveries]
    for run in timeline["runs"]:
        assert ours == recorded_deliveries(run)


def test_with_the_default_levels_sixteen_retries_take_nearly_five_hours(stage: Any) -> None:
    """10 s, 30 s, 1 min, 2 min, ... 10 min, 20 min, 30 min, 1 h, 2 h: 1 + 16 deliveries, then the dead letter queue."""
    waits_s = [10, 30, *(60 * n for n in range(1, 11)), 1_200, 1_800, 3_600, 7_200]
    scene = stage()
    deliveries: list[tuple[float, Any]] = []
    scene.lab.run(failing_consumer(scene, deliveries).start())
    scene.at(30_000)
    scene.send(scene.producer(), "m0")
    scene.at(30_000 + sum(waits_s) * 1_000 + 3_000)
    assert [message.reconsume_times for _, message in deliveries] == list(range(17))
    for waited_s, ((earlier, _), (later, _)) in zip(waits_s, pairwise(deliveries), strict=True):
        assert waited_s * 1_000 <= later - earlier <= waited_s * 1_000 + LATE_MS
    given_back = send_backs(scene)
    assert len(given_back) == 17
    (dead,) = scene.events("MessageStored", topic="%DLQ%G")
    assert dead["t_ms"] - given_back[-1] <= 5


@pytest.mark.parametrize("offset_ms", [0, 371, 740])
def test_delay_levels_are_late_by_up_to_100_ms_and_never_early(
    stage: Any, recorded: Any, smallest: Any, offset_ms: int
) -> None:
    timeline = recorded("delay.levels-and-timers")
    scene = stage(queues=4, phase_ms=1_700)
    scene.lab.run(scene.consumer().start())
    producer = scene.producer()
    scene.at(30_000 + offset_ms)
    sent_ms = {}
    for level in (1, 2, 3, 4):
        message = Message("T", b"x", keys=f"level{level}", delay_level=level)
        sent_ms[f"level{level}"] = scene.now_ms
        scene.lab.run(producer.send(message, queue=MessageQueue("T", "broker-a", level - 1)))
    scene.at(61_000 + offset_ms)
    delivered = [(key, queue_id, at) for at, _, key, queue_id in scene.delivered]
    assert [(key, queue_id) for key, queue_id, _ in delivered] == [(f"level{n}", n - 1) for n in (1, 2, 3, 4)]
    for (key, _, at), requested_ms in zip(delivered, (1_000, 5_000, 10_000, 30_000), strict=True):
        assert requested_ms <= at - sent_ms[key] <= requested_ms + LATE_MS
        assert requested_ms - 5 <= smallest(timeline, f"{key}: requested") <= requested_ms + LATE_MS
    for run in timeline["runs"]:
        order = [e["key"] for e in run if e["event"] == "deliver" and e["key"].startswith("level")]
        assert order == [key for key, _, _ in delivered]


@pytest.mark.parametrize("run", [0, 1, 2])
def test_timer_messages_come_out_a_tick_after_their_slot_as_the_real_ones_did(
    stage: Any, recorded: Any, run: int
) -> None:
    """Sent at the recorded milliseconds of a second: same slots, and out of the wheel 1.0 to 1.2 s after them."""
    events = recorded("delay.levels-and-timers")["runs"][run]
    phase_ms = next(e["millisecondOfSecond"] for e in events if e["event"] == "start")
    called = [e for e in events if e["event"] == "send_called" and e["key"].startswith("timer")]
    real = {e["key"]: e for e in events if e["event"] == "deliver" and e["key"].startswith("timer")}
    scene = stage(queues=4, phase_ms=1_700)
    scene.lab.run(scene.consumer().start())
    producer = scene.producer()
    start_ms = 30_000 + phase_ms + (-(scene.start_us // 1_000)) % 1_000
    sent_ms = {}
    for event in called:
        scene.at(start_ms + event["t_ms"])
        message = Message("T", b"x", keys=event["key"])
        if event["key"] == "timer_sec_2":
            message.delay_time_sec = 2
        elif "deliver_at" in event["key"]:
            message.deliver_time_ms = scene.lab.world.epoch_ms + scene.lab.world.now_us // 1_000 + event["requestedMs"]
        else:
            message.delay_time_ms = event["requestedMs"]
        sent_ms[event["key"]] = scene.now_ms
        result = scene.lab.run(producer.send(message, queue=MessageQueue("T", "broker-a", 0)))
        assert result.recall_handle
    scene.at(start_ms + 33_000)
    delivered = {key: at - sent_ms[key] for at, _, key, _ in scene.delivered}
    accepted = scene.events("TimerMessageAccepted")
    slots = {e["key"]: a["slot_ms"] - scene.lab.world.epoch_ms for e, a in zip(called, accepted, strict=True)}
    assert delivered.keys() == real.keys() == slots.keys()
    for key, event in real.items():
        slot_ms = slots[key] - scene.start_us / 1_000 - sent_ms[key]
        assert abs(slot_ms - event["timerOutMs"]) <= 5, key
        assert slot_ms + 1_000 <= delivered[key] <= slot_ms + 1_200, key
        assert event["timerOutMs"] + 1_000 <= event["storedAgainMs"] <= event["timerOutMs"] + 1_210, key
