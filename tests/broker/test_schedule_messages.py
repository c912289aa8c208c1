"""Delay levels: how messages are parked, when they are delivered, and what stops and wrong clocks do to that."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.broker.broker_config import BrokerConfig
from mqlab.broker.schedule_message_service import ScheduleMessageService
from mqlab.errors import LearnerError
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.properties import encode_properties
from mqlab.protocol.topic_config import KVTable
from mqlab.sim import EPOCH_MS
from mqlab.store import MessageExtBrokerInner
from tests.broker.conftest import messages_of

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
LEVELS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)


def send_delayed(client: Any, level: int, body: bytes = b"x", topic: str = "T", **more: Any) -> Any:
    response = client.send(topic, body, properties={"UNIQ_KEY": "U", "DELAY": str(level)}, **more)
    assert response.code == 0
    return response


def delivered(cluster: Any) -> list[dict[str, Any]]:
    return list(cluster.seen("ParkedMessageDelivered"))


def waits_ms(cluster: Any) -> list[float]:
    """How long each delivered message was parked."""
    stored = [event["ts_ms"] for event in cluster.seen("MessageStored") if event["topic"] == SCHEDULE]
    return [event["ts_ms"] - at for event, at in zip(delivered(cluster), stored, strict=True)]


# -- parking --------------------------------------------------------------------------------------------------------


def test_a_delayed_message_lies_in_the_schedule_topic_and_knows_where_it_belongs(cluster: Any, client: Any) -> None:
    cluster.topic("T3", 3)
    send_delayed(client, 4, b"later", "T3", queue_id=2)
    cluster.run(5)
    assert messages_of(client.pull("T3", queue_id=2)) == []
    (parked,) = messages_of(client.pull(SCHEDULE, queue_id=3))
    assert (parked.topic, parked.queue_id, parked.body) == (SCHEDULE, 3, b"later")
    assert parked.properties["REAL_TOPIC"] == "T3"
    assert parked.properties["REAL_QID"] == "2"
    (event,) = cluster.seen("MessageParked")
    assert (event["topic"], event["queue_id"], event["delay_level"], event["delay_ms"]) == ("T3", 2, 4, 30_000)


def test_the_producer_is_told_its_own_queue_but_the_offset_in_the_schedule_topic(cluster: Any, client: Any) -> None:
    cluster.topic("T3", 3)
    client.send("T3", queue_id=2)
    send_delayed(client, 1, topic="T3", queue_id=2)
    second = send_delayed(client, 1, topic="T3", queue_id=1)
    assert (second.ext_fields["queueId"], second.ext_fields["queueOffset"]) == ("1", "1")
    answers = cluster.seen("MessageSendAnswered")
    assert [(a["topic"], a["queue_id"], a["queue_offset"]) for a in answers] == [
        ("T3", 2, 0),
        ("T3", 2, 0),
        ("T3", 1, 1),
    ]


def test_a_level_above_the_highest_is_the_highest(cluster: Any, client: Any) -> None:
    send_delayed(client, 99)
    cluster.run(5)
    (parked,) = messages_of(client.pull(SCHEDULE, queue_id=17))
    assert parked.properties["DELAY"] == "18"


@pytest.mark.parametrize("level", ["0", "-1", "soon"])
def test_a_message_without_a_level_is_not_parked(cluster: Any, client: Any, level: str) -> None:
    client.send("T", properties={"DELAY": level})
    cluster.run(5)
    assert cluster.broker.message_store.get_max_offset_in_queue("T", 0) == 1
    assert cluster.seen("MessageParked") == []


def test_a_delay_level_overrules_the_properties_of_a_timer(cluster: Any, client: Any) -> None:
    client.send("T", properties={"DELAY": "2", "TIMER_DELAY_SEC": "9", "TIMER_DELAY_MS": "9", "TIMER_DELIVER_MS": "9"})
    cluster.run(5)
    (parked,) = messages_of(client.pull(SCHEDULE, queue_id=1))
    assert not [name for name in parked.properties if name.startswith("TIMER")]


TIMERS = {"TIMER_DELAY_SEC": "9", "TIMER_DELAY_MS": "9000", "TIMER_DELIVER_MS": str(EPOCH_MS + 9_000)}


@pytest.mark.parametrize("more", [{}, {"DELAY": "0"}])
@pytest.mark.parametrize("name", TIMERS)
def test_a_timer_message_is_not_parked(cluster: Any, client: Any, name: str, more: dict[str, str]) -> None:
    client.send("T", properties={name: TIMERS[name], **more})
    cluster.run(5)
    assert cluster.seen("MessageParked") == []
    assert cluster.broker.message_store.get_max_offset_in_queue("rmq_sys_wheel_timer", 0) == 1


def test_a_message_that_has_waited_on_a_timer_wheel_is_stored(cluster: Any, client: Any) -> None:
    assert client.send("T", properties={**TIMERS, "TIMER_OUT_MS": "1"}).code == ResponseCode.SUCCESS


# -- delivery -------------------------------------------------------------------------------------------------------


def test_each_level_waits_its_time_and_at_most_100_ms_more(cluster: Any, client: Any) -> None:
    for level in range(1, 19):
        send_delayed(client, level)
    cluster.run(7_200_200)
    assert [event["delay_level"] for event in delivered(cluster)] == list(range(1, 19))
    for waited, level_s in zip(waits_ms(cluster), LEVELS_S, strict=True):
        assert level_s * 1_000 <= waited <= level_s * 1_000 + 100


def test_a_message_is_not_delivered_together_with_an_earlier_one_before_its_own_time(cluster: Any, client: Any) -> None:
    for gap_ms in (0, 150, 450, 399, 990):
        cluster.run(gap_ms)
        send_delayed(client, 2)
    cluster.run(8_000)
    waited = waits_ms(cluster)
    assert len(waited) == 5
    assert all(5_000 <= ms <= 5_100 for ms in waited), waited


def test_all_levels_are_looked_at_every_100_ms_from_a_second_after_the_start(cluster: Any, client: Any) -> None:
    (started,) = cluster.seen("BrokerStarted")
    for _ in range(3):
        cluster.run(37)
        send_delayed(client, 1)
        send_delayed(client, 2)
    cluster.run(6_000)
    phases = {(event["ts_ms"] - started["ts_ms"]) % 100 for event in delivered(cluster)}
    assert phases == {0}
    assert len(delivered(cluster)) == 6


def test_the_first_look_comes_a_second_after_the_start(make_cluster: Any) -> None:
    cluster = make_cluster({"message_delay_level": "1s"})
    cluster.topic("T")
    client = cluster.client()
    send_delayed(client, 1)
    cluster.run(50)
    cluster.do("crash", node="broker-a")
    cluster.run(10_000)
    cluster.restart()
    began_ms = cluster.seen("BrokerStarted")[-1]["ts_ms"]
    cluster.run(2_000)
    (event,) = delivered(cluster)
    assert event["ts_ms"] == began_ms + 1_000
    assert event["late_ms"] > 9_000


def test_what_is_delivered_still_shows_that_it_was_parked(cluster: Any, client: Any) -> None:
    """The text of the properties is made before DELAY is taken out, so it stays in the stored copy."""
    sent = {"TAGS": "a", "KEYS": "k", "UNIQ_KEY": "U", "WAIT": "true", "DELAY": "1"}
    client.send("T", b"body", properties=sent, flag=5, born_timestamp=77)
    cluster.run(1_200)
    (message,) = messages_of(client.pull("T"))
    (parked,) = messages_of(client.pull(SCHEDULE))
    assert message.properties == parked.properties
    assert sent.items() <= message.properties.items()
    assert (message.properties["REAL_TOPIC"], message.properties["REAL_QID"]) == ("T", "0")
    assert (message.body, message.flag, message.born_timestamp) == (b"body", 5, 77)
    assert message.born_host == parked.born_host
    entry = cluster.broker.message_store.find_consume_queue("T", 0).get(0)
    assert entry.tags_code == ord("a")


def test_messages_of_a_level_stay_in_order(cluster: Any, client: Any) -> None:
    bodies = [b"%d" % number for number in range(40)]
    for body in bodies:
        send_delayed(client, 1, body)
    cluster.run(2_000)
    assert [m.body for m in messages_of(client.pull("T")) + messages_of(client.pull("T", 32))] == bodies


def test_a_held_pull_gets_a_message_as_soon_as_it_is_delivered(cluster: Any, client: Any) -> None:
    send_delayed(client, 1)
    answer = client.begin_pull("T", suspend=True)
    cluster.run(1_200)
    assert answer.done
    assert answer.result().code == 0


def test_synchronous_flush_does_not_change_the_times(make_cluster: Any) -> None:
    cluster = make_cluster({"flush_disk_type": "SYNC_FLUSH"})
    cluster.topic("T")
    send_delayed(cluster.client(), 2)
    cluster.run(6_000)
    (waited,) = waits_ms(cluster)
    assert 5_000 <= waited <= 5_100


def test_at_the_end_of_a_file_of_its_queue_a_level_pauses_for_100_ms(make_cluster: Any) -> None:
    cluster = make_cluster({"mapped_file_size_consume_queue": 20 * 4})
    cluster.topic("T")
    client = cluster.client()
    for _ in range(6):
        send_delayed(client, 3)
    cluster.run(11_000)
    times = [event["ts_ms"] for event in delivered(cluster)]
    assert len(set(times[:4])) == 1
    assert times[4:] == [times[0] + 100] * 2


# -- what it costs --------------------------------------------------------------------------------------------------


def test_levels_without_messages_need_no_slices(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(180_000)
    before = cluster.world.slice_no
    cluster.run(60_000)
    idle = cluster.world.slice_no - before
    send_delayed(client, 18)
    cluster.run(60_000)
    before = cluster.world.slice_no
    cluster.run(60_000)
    assert idle < 400
    assert abs(cluster.world.slice_no - before - idle) <= 10


# -- the file -------------------------------------------------------------------------------------------------------


def test_progress_is_in_the_file_after_ten_seconds_in_the_words_of_a_real_broker(cluster: Any, client: Any) -> None:
    for level in (1, 1, 3, 4):
        send_delayed(client, level)
    cluster.run(22_000)
    text = cluster.broker_node.disk.read_bytes("store/config/delayOffset.json").decode()
    assert text.startswith('{\n\t"dataVersion":{\n\t\t"counter":')
    assert text.endswith('\t},\n\t"offsetTable":{1:2,3:1,4:0\n\t}\n}')


def test_the_version_counts_what_a_loop_that_always_turns_has_noted(cluster: Any, client: Any) -> None:
    """A waiting level notes its progress every 100 ms, and each 200th note is a version: one in 20 s."""
    send_delayed(client, 18)
    service = cluster.broker.schedule_message_service
    start = service.data_version.counter
    cluster.run(201_200)
    service.wrapper()
    assert service.data_version.counter - start == 10


def test_how_far_the_levels_are_can_be_asked(cluster: Any, client: Any) -> None:
    for level in (1, 18, 18):
        send_delayed(client, level)
    cluster.run(2_000)
    info = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    levels = {name: value for name, value in info.items() if name.startswith("scheduleMessageOffset")}
    assert levels == {"scheduleMessageOffset_1": "1,1", "scheduleMessageOffset_18": "0,2"}
    assert b'"offsetTable":{1:1,18:0}' in client.call(RequestCode.GET_ALL_DELAY_OFFSET).body


# -- stops ----------------------------------------------------------------------------------------------------------


def test_a_clean_stop_forgets_nothing_and_repeats_nothing(cluster: Any, client: Any) -> None:
    send_delayed(client, 1)
    send_delayed(client, 3)
    cluster.run(1_500)
    cluster.broker.shutdown().play()
    cluster.do("crash", node="broker-a")
    cluster.restart()
    cluster.run(12_000)
    assert [event["delay_level"] for event in delivered(cluster)] == [1, 3]
    assert 10_000 <= waits_ms(cluster)[1] <= 10_100


def test_after_a_crash_what_was_delivered_since_the_file_was_written_is_delivered_again(
    cluster: Any, client: Any
) -> None:
    send_delayed(client, 1, b"before")
    cluster.run(12_000)
    send_delayed(client, 1, b"after")
    cluster.run(2_000)
    assert [event["queue_offset"] for event in delivered(cluster)] == [0, 1]
    cluster.do("crash", node="broker-a")
    cluster.restart()
    cluster.run(5_000)
    assert [event["queue_offset"] for event in delivered(cluster)] == [0, 1, 2]


def test_messages_that_were_parked_when_the_broker_died_are_delivered_in_their_time(cluster: Any, client: Any) -> None:
    send_delayed(client, 5)
    cluster.run(20_000)
    cluster.do("crash", node="broker-a")
    cluster.run(10_000)
    cluster.restart()
    cluster.run(40_000)
    (waited,) = waits_ms(cluster)
    assert 60_000 <= waited <= 60_100


def test_progress_behind_the_end_of_the_queue_is_moved_to_its_end(cluster: Any, client: Any) -> None:
    send_delayed(client, 1)
    cluster.run(11_000)
    cluster.broker.shutdown().play()
    cluster.do("crash", node="broker-a")
    disk = cluster.broker_node.disk
    text = disk.read_bytes("store/config/delayOffset.json").decode()
    disk.write_bytes("store/config/delayOffset.json", text.replace("1:1", "1:7,2:3").encode())
    cluster.restart()
    corrected = cluster.seen("DelayOffsetCorrected")
    assert [(c["delay_level"], c["from_offset"], c["to_offset"]) for c in corrected] == [(1, 7, 1), (2, 3, 0)]
    send_delayed(cluster.client(), 1)
    cluster.run(2_000)
    assert len(delivered(cluster)) == 2


def test_progress_before_the_start_of_the_queue_is_moved_to_its_start(cluster: Any, client: Any) -> None:
    """As when the first files of commit log and queue have expired, and the level's progress was lost."""
    for _ in range(3):
        send_delayed(client, 3)
    cluster.run(5)
    cluster.broker.message_store.find_consume_queue(SCHEDULE, 2).min_logic_offset = 2 * 20
    cluster.run(11_000)
    (corrected,) = cluster.seen("DelayOffsetCorrected")
    assert (corrected["delay_level"], corrected["from_offset"], corrected["to_offset"]) == (3, 0, 2)
    assert len(delivered(cluster)) == 1


def test_a_broker_does_not_start_with_a_table_that_nobody_can_read(cluster: Any) -> None:
    cluster.broker.shutdown().play()
    cluster.do("crash", node="broker-a")
    disk = cluster.broker_node.disk
    for name in ("delayOffset.json", "delayOffset.json.bak"):
        disk.write_bytes(f"store/config/{name}", b"{]")
    with pytest.raises(LearnerError, match=r"delayOffset\.json"):
        cluster.restart()


def test_a_level_with_another_delay_since_the_restart_delivers_what_lies_too_far_ahead_at_once(cluster: Any) -> None:
    send_delayed(cluster.client(), 5)
    cluster.run(1_500)
    cluster.broker.shutdown().play()
    cluster.do("crash", node="broker-a")
    cluster.store_config.message_delay_level = "1s 2s 3s 4s 5s"
    cluster.restart()
    began_ms = cluster.seen("BrokerStarted")[-1]["ts_ms"]
    cluster.run(2_000)
    assert [event["ts_ms"] - began_ms for event in delivered(cluster)] == [1_000]


# -- clocks, refusals, messages that cannot be delivered --------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", [-2_000, 30_000])
def test_a_clock_that_jumps_makes_a_message_due_at_once(cluster: Any, client: Any, jump_ms: int) -> None:
    """Forward its time has come; back, its time lies further ahead than its level may wait, which counts as due."""
    send_delayed(client, 4)
    cluster.run(1_500)
    cluster.do("drift", node="broker-a", jump_ms=jump_ms)
    cluster.run(100)
    assert len(delivered(cluster)) == 1


def test_a_clock_that_jumps_less_moves_the_delivery(cluster: Any, client: Any) -> None:
    send_delayed(client, 4)
    cluster.run(10_000)
    cluster.do("drift", node="broker-a", jump_ms=12_000)
    cluster.run(60_000)
    (waited,) = waits_ms(cluster)
    assert 18_000 <= waited <= 18_100


@pytest.mark.parametrize("ppm", [-200_000, 250_000])
def test_a_clock_that_runs_wrong_counts_its_own_seconds(cluster: Any, client: Any, ppm: int) -> None:
    cluster.do("drift", node="broker-a", ppm=ppm)
    send_delayed(client, 4)
    cluster.run(60_000)
    (waited,) = waits_ms(cluster)
    expected = 30_000 / (1 + ppm / 1_000_000)
    assert expected - 1 <= waited <= expected + 101


def test_a_message_that_the_store_does_not_take_is_tried_again_every_100_ms(cluster: Any, client: Any) -> None:
    send_delayed(client, 1)
    send_delayed(client, 1)
    flags = cluster.broker.message_store.running_flags
    flags.set(flags.DISK_FULL)
    cluster.run(2_050)
    refusals = [event["ts_ms"] for event in cluster.seen("PutRefused")]
    assert len(refusals) in (10, 11)
    assert {later - earlier for earlier, later in pairwise(refusals)} == {100}
    assert delivered(cluster) == []
    flags.set(flags.DISK_FULL, False)
    cluster.run(100)
    assert [event["queue_offset"] for event in delivered(cluster)] == [0, 1]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"}, "half messages cannot be delayed"),
        ({"REAL_QID": "0"}, "it has no REAL_TOPIC"),
        ({"REAL_TOPIC": "T", "REAL_QID": "x"}, "invalid literal for int() with base 10: 'x'"),
    ],
)
def test_what_cannot_be_delivered_is_passed_over(
    cluster: Any, client: Any, properties: dict[str, str], reason: str
) -> None:
    parked = MessageExtBrokerInner(SCHEDULE, b"x", properties_string=encode_properties(properties))
    cluster.broker.message_store.put_message(parked)
    send_delayed(client, 1)
    cluster.run(2_000)
    (dropped,) = cluster.seen("ParkedMessageDropped")
    assert (dropped["delay_level"], dropped["queue_offset"], dropped["reason"]) == (1, 0, reason)
    assert [event["unique_key"] for event in delivered(cluster)] == ["U"]


def test_a_slave_delivers_nothing(make_cluster: Any) -> None:
    cluster = make_cluster({"broker_role": "SLAVE"})
    cluster.run(20_000)
    service: ScheduleMessageService = cluster.broker.schedule_message_service
    assert service.loops == {}
    assert not cluster.broker_node.disk.exists("store/config/delayOffset.json")
    assert BrokerConfig().delay_offset_update_version_step == 200
    assert service.data_version.timestamp == EPOCH_MS
