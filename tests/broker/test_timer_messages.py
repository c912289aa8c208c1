"""Messages with a time of delivery: what is accepted, when it is delivered, and what stops and full disks do to it."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.recall_message_handle import RecallMessageHandle
from mqlab.protocol.topic_config import KVTable
from mqlab.sim import EPOCH_MS
from mqlab.store import MessageExtBrokerInner
from mqlab.store.running_flags import RunningFlags
from tests.broker.conftest import messages_of

TIMER = "rmq_sys_wheel_timer"
DAY_S = 86_400


def send_timer(client: Any, key: str = "U", topic: str = "T", queue_id: int = 0, **timer: int) -> Any:
    """Send a message with TIMER_DELAY_SEC=..., TIMER_DELAY_MS=... or TIMER_DELIVER_MS=..."""
    properties = {"UNIQ_KEY": key, **{name: str(value) for name, value in timer.items()}}
    return client.send(topic, b"x", properties=properties, queue_id=queue_id)


def delivered(cluster: Any) -> dict[str, float]:
    """Unique key -> the ms of the world at which the message came into its own topic."""
    return {event["unique_key"]: event["ts_ms"] for event in cluster.seen("TimerMessageDelivered")}


# -- accepting ------------------------------------------------------------------------------------------------------


def test_a_message_for_later_lies_in_the_timers_topic_and_knows_where_it_belongs(cluster: Any, client: Any) -> None:
    cluster.topic("T3", 3)
    answer = send_timer(client, topic="T3", queue_id=2, TIMER_DELAY_SEC=30)
    assert (answer.code, answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == (0, "2", "0")
    cluster.run(5)
    assert messages_of(client.pull("T3", queue_id=2)) == []
    (waiting,) = messages_of(client.pull(TIMER))
    assert (waiting.topic, waiting.queue_id) == (TIMER, 0)
    assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == ("T3", "2")
    (accepted,) = cluster.seen("TimerMessageAccepted")
    assert (accepted["topic"], accepted["queue_id"], accepted["delay_ms"]) == ("T3", 2, 30_000)
    assert waiting.properties["TIMER_OUT_MS"] == str(accepted["slot_ms"])


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
def test_a_broker_without_a_timer_wheel_refuses_it(make_cluster: Any, name: str) -> None:
    cluster = make_cluster({"timer_wheel_enable": False})
    cluster.topic("T")
    answer = send_timer(cluster.client(), **{name: EPOCH_MS + 9_000})
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "accurate timer message is not enabled, timerWheelEnable is false",
    )
    assert [refused["status"] for refused in cluster.seen("PutRefused")] == ["WHEEL_TIMER_NOT_ENABLE"]
    assert cluster.broker.timer is None


def test_seconds_are_looked_at_first_then_ms_then_the_moment(cluster: Any, client: Any) -> None:
    moment = {"TIMER_DELIVER_MS": EPOCH_MS + 50_000}
    send_timer(client, **moment, TIMER_DELAY_MS=20_000, TIMER_DELAY_SEC=10)
    send_timer(client, **moment, TIMER_DELAY_MS=20_000)
    send_timer(client, **moment)
    now_ms = round(cluster.now_ms)
    delays = [event["delay_ms"] for event in cluster.seen("TimerMessageAccepted")]
    assert delays[:2] == [10_000, 20_000]
    assert 50_000 - now_ms <= delays[2] < 50_000


@pytest.mark.parametrize("asked", ["0", "-5", "+0"])
def test_a_message_that_is_due_already_is_stored_at_once(cluster: Any, client: Any, asked: str) -> None:
    client.send("T", properties={"UNIQ_KEY": "U", "TIMER_DELAY_MS": asked})
    cluster.run(5)
    assert cluster.broker.message_store.get_max_offset_in_queue("T", 0) == 1
    assert cluster.broker.timer is None


@pytest.mark.parametrize("asked", ["soon", "", "1.5", " 5", "9" * 30])
def test_a_time_that_is_no_number_is_refused(cluster: Any, client: Any, asked: str) -> None:
    answer = client.send("T", properties={"UNIQ_KEY": "U", "TIMER_DELIVER_MS": asked})
    if not asked:
        # An empty value does not survive the text of the properties.
        assert answer.code == ResponseCode.SUCCESS
        return
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert cluster.broker.timer is None


def test_three_days_are_the_most(cluster: Any, client: Any) -> None:
    assert send_timer(client, TIMER_DELAY_SEC=3 * DAY_S).code == ResponseCode.SUCCESS
    answer = send_timer(client, TIMER_DELAY_SEC=3 * DAY_S + 1)
    assert (answer.code, answer.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "timer message illegal, the delay time should not be bigger than the max delay 259200000ms; or if set del msg, "
        "the delay time should be bigger than the current time",
    )


def test_a_sum_that_64_bits_cannot_hold_wraps_as_in_java_and_lies_in_the_past(cluster: Any, client: Any) -> None:
    assert send_timer(client, TIMER_DELAY_SEC=(1 << 63) - 1).code == ResponseCode.SUCCESS
    assert send_timer(client, TIMER_DELAY_MS=(1 << 63) - 1).code == ResponseCode.SUCCESS
    assert cluster.seen("TimerMessageAccepted") == []


def test_a_slot_that_is_full_refuses_and_one_that_is_nearly_full_refuses_some(make_cluster: Any) -> None:
    cluster = make_cluster({"timer_congest_num_each_slot": 20})
    cluster.topic("T")
    client = cluster.client()
    answers = []
    for number in range(120):
        answers.append(send_timer(client, f"U{number}", TIMER_DELIVER_MS=EPOCH_MS + 600_500))
        cluster.run(100)
    codes = [answer.code for answer in answers]
    accepted = codes.count(ResponseCode.SUCCESS)
    assert codes[:21] == [ResponseCode.SUCCESS] * 21
    assert 25 < accepted <= 40
    assert ResponseCode.SYSTEM_ERROR in codes[21:60]
    refused = next(answer for answer in answers if answer.code)
    assert refused.remark == (
        "timer message is under flow control, max num limit is 40 or the current value is greater than 20 and less "
        "than 40, trigger random flow control"
    )


def test_a_slave_refuses_it_like_any_message(make_cluster: Any) -> None:
    cluster = make_cluster({"broker_role": "SLAVE"}, broker_id=1)
    cluster.topic("T")
    answer = send_timer(cluster.client(), TIMER_DELAY_SEC=9)
    assert answer.code == ResponseCode.SYSTEM_BUSY
    assert answer.remark.startswith("[REJECTREQUEST]")
    assert cluster.broker.timer is None


# -- delivering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase_ms", [0, 371, 740, 999])
def test_a_message_is_never_early_and_at_most_1100_ms_late(cluster: Any, client: Any, phase_ms: int) -> None:
    cluster.run(2_000 - cluster.now_ms % 1_000 + phase_ms)
    asked = {}
    for delay_ms in (1, 500, 999, 1_000, 1_500, 2_000, 7_000, 30_000):
        asked[f"U{delay_ms}"] = cluster.now_ms + delay_ms
        send_timer(client, f"U{delay_ms}", TIMER_DELAY_MS=delay_ms)
    cluster.run(40_000)
    times = delivered(cluster)
    assert times.keys() == asked.keys()
    for key, due_ms in asked.items():
        assert due_ms - 1 <= times[key] <= due_ms + 1_110, key


def test_the_delivered_message_says_when_it_waited_and_where(cluster: Any, client: Any) -> None:
    send_timer(client, TIMER_DELAY_SEC=4)
    cluster.run(6_000)
    (message,) = messages_of(client.pull("T"))
    slot_ms = cluster.seen("TimerMessageAccepted")[0]["slot_ms"]
    properties = message.properties
    assert (properties["TIMER_OUT_MS"], properties["REAL_TOPIC"]) == (str(slot_ms), "T")
    assert properties["TIMER_ENQUEUE_MS"] == str(EPOCH_MS)
    assert slot_ms + 1_000 <= int(properties["TIMER_DEQUEUE_MS"]) <= slot_ms + 1_200
    assert properties["TIMER_DELAY_SEC"] == "4"


def test_a_message_of_the_brokers_own_waits_too(cluster: Any) -> None:
    """As the check points of Pop do: put into the store by the broker, for a queue of any topic."""
    cluster.topic("T3", 3)
    inner = MessageExtBrokerInner("T3", b"x", 2, properties={"TIMER_DELIVER_MS": str(EPOCH_MS + 9_500)})
    assert cluster.broker.message_store.put_message(inner).is_ok
    cluster.run(15_000)
    (event,) = cluster.seen("TimerMessageDelivered")
    assert (event["topic"], event["queue_id"], event["slot_ms"]) == ("T3", 2, EPOCH_MS + 9_000)
    assert 10_000 <= event["ts_ms"] <= 10_110


def test_slots_are_delivered_in_their_order_and_each_oldest_first(cluster: Any, client: Any) -> None:
    for number, delay_s in enumerate((5, 3, 5, 3, 4)):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=delay_s)
    cluster.run(8_000)
    assert list(delivered(cluster)) == ["U1", "U3", "U4", "U0", "U2"]


def test_a_message_that_is_due_beyond_the_window_rolls_and_is_in_time(make_cluster: Any) -> None:
    cluster = make_cluster({"timer_roll_window_slot": 60})
    cluster.topic("T")
    client = cluster.client()
    asked = {"near": 65, "far": 119, "farther": 300, "inside": 59}
    sent_ms = cluster.now_ms
    for key, delay_s in asked.items():
        send_timer(client, key, TIMER_DELAY_SEC=delay_s)
    cluster.run(310_000)
    times = delivered(cluster)
    for key, delay_s in asked.items():
        assert sent_ms + delay_s * 1_000 <= times[key] <= sent_ms + delay_s * 1_000 + 1_200, key
    rolls = [event["unique_key"] for event in cluster.seen("TimerMessageRolled")]
    assert {key: rolls.count(key) for key in asked} == {"near": 1, "far": 1, "farther": 4, "inside": 0}
    far = [event["roll_times"] for event in cluster.seen("TimerMessageRolled") if event["unique_key"] == "farther"]
    assert far == [1, 2, 3, 4]


def test_the_window_of_two_days_leaves_half_of_it_for_the_last_roll(cluster: Any, client: Any) -> None:
    for delay_s in (2 * DAY_S - 1, 2 * DAY_S + 1, 2 * DAY_S + DAY_S // 2, 3 * DAY_S - 1):
        send_timer(client, f"U{delay_s}", TIMER_DELAY_SEC=delay_s)
    cluster.run(200)
    placed = [((e["slot_ms"] - EPOCH_MS) // 1_000, e["rolls"]) for e in cluster.seen("TimerMessageEnqueued")]
    assert placed == [(2 * DAY_S - 1, False), (DAY_S, True), (DAY_S, True), (2 * DAY_S, True)]


def test_a_clock_that_jumps_ahead_delivers_at_once_and_one_set_back_delivers_late(cluster: Any, client: Any) -> None:
    send_timer(client, "ahead", TIMER_DELAY_SEC=600)
    cluster.run(1_000)
    cluster.do("drift", node="broker-a", ppm=0, jump_ms=700_000)
    cluster.run(200)
    assert list(delivered(cluster)) == ["ahead"]
    send_timer(client, "back", TIMER_DELAY_SEC=5)
    cluster.run(1_000)
    cluster.do("drift", node="broker-a", ppm=0, jump_ms=-20_000)
    cluster.run(10_000)
    assert list(delivered(cluster)) == ["ahead"]
    cluster.run(16_000)
    assert list(delivered(cluster)) == ["ahead", "back"]


# -- cost -----------------------------------------------------------------------------------------------------------


def test_a_broker_without_timer_messages_has_nothing_of_a_timer(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(70_000)
    assert cluster.broker.timer is None
    assert not [path for path in cluster.broker_node.disk.files() if "timer" in path]


def test_a_timer_with_one_message_far_ahead_costs_no_slices(make_cluster: Any) -> None:
    slices = []
    for timer in ({}, {"TIMER_DELAY_SEC": 86_000}):
        cluster = make_cluster()
        cluster.topic("T")
        send_timer(cluster.client(), **timer)
        cluster.run(60_000)
        start = cluster.world.slice_no
        cluster.run(600_000)
        slices.append(cluster.world.slice_no - start)
    assert slices[0] == slices[1]


def test_the_wheels_file_is_large_and_takes_little(cluster: Any, client: Any) -> None:
    send_timer(client, TIMER_DELAY_SEC=1_000)
    cluster.run(3_000)
    file = cluster.broker_node.disk.open("store/timerwheel")
    assert file.size == 38_707_200
    assert file.allocated_bytes() <= 65_536
    send_timer(client, TIMER_DELAY_SEC=200_000)
    cluster.run(3_000)
    assert file.allocated_bytes() <= 2 * 65_536


def test_is_behind_says_so_until_the_wheel_has_been_read(make_cluster: Any) -> None:
    """Reading is a second behind for up to 100 ms of each second; a message that came onto the wheel counts for 2 s."""
    cluster = make_cluster(epoch_ms=EPOCH_MS + 930)
    cluster.topic("T")
    assert cluster.broker.timer_behind() is False
    send_timer(cluster.client(), TIMER_DELAY_SEC=100)
    cluster.run(1_500)
    assert cluster.broker.timer_behind()
    cluster.run(1_500)
    behind = []
    cluster.run(5_000 - cluster.now_ms)
    for at_ms in range(0, 1_000, 10):
        if cluster.broker.timer_behind():
            behind.append(at_ms)
        cluster.run(10)
    assert behind == [70, 80, 90]
    cluster.broker.message_store_config.timer_stop_dequeue = True
    cluster.run(10_000)
    assert cluster.broker.timer_behind()


# -- stops ----------------------------------------------------------------------------------------------------------


def test_a_stop_in_good_order_keeps_what_waits(cluster: Any, client: Any) -> None:
    for number in range(40):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=number + 2)
    cluster.run(20_300)
    before = set(delivered(cluster))
    assert 15 < len(before) < 20
    cluster.world.wait_for(cluster.broker_node.spawn(cluster.broker.shutdown.inside(cluster.broker), "stop").join())
    cluster.do("crash", node="broker-a")
    cluster.run(5_000)
    cluster.restart()
    cluster.run(40_000)
    keys = [event["unique_key"] for event in cluster.seen("TimerMessageDelivered")]
    assert sorted(keys) == sorted({f"U{number}" for number in range(40)})


def test_a_stop_in_good_order_writes_log_and_check_file_and_leaves_the_wheel_to_the_log(
    cluster: Any, client: Any
) -> None:
    cluster.run(1_050 - cluster.now_ms)
    send_timer(client, TIMER_DELAY_SEC=50)
    cluster.run(300)
    cluster.world.wait_for(cluster.broker_node.spawn(cluster.broker.shutdown.inside(cluster.broker), "stop").join())
    cluster.run(100)
    disk = cluster.broker_node.disk
    read_ms, log_end, offset = struct.unpack(">3q", disk.read_bytes("store/config/timercheck")[:24])
    assert (read_ms, log_end, offset) == (EPOCH_MS + 1_000, 0, 1)
    assert disk.open("store/timerlog/00000000000000000000").dirty_pages == []
    assert disk.open("store/timerwheel").data_end() == 0
    cluster.do("crash", node="broker-a")
    cluster.restart()
    assert cluster.broker.timer.timer_wheel.next_time(0) == EPOCH_MS + 51_000
    cluster.run(60_000)
    assert list(delivered(cluster)) == ["U"]


def play_stop(make_cluster: Any, at_ms: int, verb: str, **store: Any) -> tuple[Any, dict[str, float]]:
    """Twelve messages for 0.9 to 4.2 s, a stop at `at_ms`, a restart a second later; when each message was due."""
    cluster = make_cluster(store, seed=at_ms + 1)
    cluster.topic("T")
    client = cluster.client()
    due_ms = {}
    for number in range(12):
        due_ms[f"U{number}"] = cluster.now_ms + 300 * number + 900
        send_timer(client, f"U{number}", TIMER_DELAY_MS=300 * number + 900)
    cluster.run(at_ms - cluster.now_ms)
    cluster.do(verb, node="broker-a")
    cluster.run(1_000)
    cluster.restart()
    cluster.run(9_000)
    return cluster, due_ms


@pytest.mark.parametrize(
    ("verb", "store"),
    [
        ("crash", {"flush_disk_type": "ASYNC_FLUSH", "mapped_file_size_timer_log": 512}),
        ("crash", {"flush_disk_type": "SYNC_FLUSH"}),
        ("power_off", {"flush_disk_type": "SYNC_FLUSH"}),
    ],
)
def test_a_stop_at_any_moment_loses_nothing_and_delivers_at_most_twice(
    make_cluster: Any, verb: str, store: dict[str, Any]
) -> None:
    again = 0
    for at_ms in range(103, 6_000, 187):
        cluster, due_ms = play_stop(make_cluster, at_ms, verb, **store)
        keys = [event["unique_key"] for event in cluster.seen("TimerMessageDelivered")]
        assert set(keys) == set(due_ms), at_ms
        assert max(keys.count(key) for key in keys) <= 2, at_ms
        again += len(keys) - len(due_ms)
        early = [key for key, ms in delivered(cluster).items() if ms < due_ms[key]]
        assert not early, at_ms
    assert again > 0


def test_a_power_loss_at_the_end_of_a_file_of_the_timer_log_can_lose_messages_as_in_rocketmq(
    make_cluster: Any,
) -> None:
    """One file is flushed a second. When the next one is lost, no record says how far the timer's topic was on the
    wheel, and the check file is believed, which is ahead of both.
    """
    lost = []
    for seed in range(12):
        cluster = make_cluster({"flush_disk_type": "SYNC_FLUSH", "mapped_file_size_timer_log": 512}, seed=seed)
        cluster.topic("T")
        client = cluster.client()
        for number in range(12):
            send_timer(client, f"U{number}", TIMER_DELAY_SEC=20)
        cluster.run(1_500)
        cluster.do("power_off", node="broker-a")
        cluster.restart()
        cluster.run(25_000)
        lost.append(12 - len(delivered(cluster)))
    # The first file of 512 bytes holds nine records.
    assert set(lost) == {0, 3}


@pytest.mark.parametrize("skip", [False, True])
def test_with_async_flush_a_power_loss_can_leave_the_timer_log_ahead_of_the_commit_log_as_in_rocketmq(
    make_cluster: Any, skip: bool
) -> None:
    """The timer log is flushed every second, the commit log when four pages are full. What is stored next where a lost
    message was is taken for it: a message that belongs nowhere stops the timer for good, unless it may be skipped.
    """
    store = {"flush_disk_type": "ASYNC_FLUSH", "timer_skip_unknown_error": skip}
    cluster = make_cluster(store, seed=3)
    cluster.topic("T")
    client = cluster.client()
    cluster.run(1_100 - cluster.now_ms)
    send_timer(client, "lost", TIMER_DELAY_SEC=7)
    cluster.run(2_500)
    cluster.world.choices.override("broker-a/disk/store/commitlog/00000000000000000000", 0, 0)
    cluster.do("power_off", node="broker-a")
    cluster.restart()
    cluster.run(1_000)
    client = cluster.client()
    (lost,) = cluster.broker.timer.chain(cluster.broker.timer.timer_wheel.get_slot(EPOCH_MS + 8_000))
    assert (lost.offset_py, cluster.broker.message_store.max_phy_offset) == (0, 0)
    scratch = make_cluster(store)
    scratch.topic("T")
    scratch.client().send("T", b"y", properties={"UNIQ_KEY": "plain"})
    body = b"y" * (1 + lost.size_py - scratch.broker.message_store.max_phy_offset)
    client.send("T", body, properties={"UNIQ_KEY": "plain"})
    assert cluster.broker.message_store.max_phy_offset == lost.size_py
    send_timer(client, "beside", TIMER_DELIVER_MS=EPOCH_MS + 8_100)
    send_timer(client, "behind", TIMER_DELAY_SEC=12)
    cluster.run(20_000)
    # It keeps one of the three threads that store what is due.
    assert list(delivered(cluster)) == (["beside", "behind"] if skip else ["beside"])
    assert len(cluster.seen("TimerStalled")) == (0 if skip else 1)


def test_files_of_the_timer_log_go_with_the_commit_log(make_cluster: Any) -> None:
    cluster = make_cluster({"mapped_file_size_timer_log": 512, "mapped_file_size_commit_log": 8_192})
    cluster.topic("T")
    client = cluster.client()
    for number in range(60):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=5)
    cluster.run(40_000)
    disk, log = cluster.broker_node.disk, cluster.broker.message_store.commit_log.mapped_file_queue
    before = disk.list("store/timerlog")
    assert len(before) > 5
    for _ in range(len(log.mapped_files) // 4):
        log.drop_first()
    cluster.run(30_000)
    kept = disk.list("store/timerlog")
    assert 1 < len(kept) < len(before)
    assert kept == before[-len(kept) :]
    first = cluster.broker.timer.timer_log.mapped_file_queue.min_offset
    assert cluster.broker.timer.timer_log.read(first + 8 * 52).offset_py >= log.min_offset


# -- when the store does not take it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("until_success", [False, True])
def test_a_disk_that_stays_full_loses_what_is_due_unless_the_timer_shall_try_on(
    make_cluster: Any, until_success: bool
) -> None:
    cluster = make_cluster({"timer_enable_retry_until_success": until_success})
    cluster.topic("T")
    client = cluster.client()
    for number in range(5):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=10)
    cluster.run(3_000)
    cluster.broker.message_store.running_flags.set(RunningFlags.DISK_FULL)
    cluster.run(15_000)
    refused = cluster.seen("TimerPutRefused")
    assert delivered(cluster) == {}
    assert [event["attempts"] for event in refused if event["unique_key"] == "U0"][:3] == [1, 2, 3]
    cluster.broker.message_store.running_flags.set(RunningFlags.DISK_FULL, False)
    cluster.run(3_000)
    dropped = [event["unique_key"] for event in cluster.seen("TimerMessageDropped")]
    if until_success:
        assert (set(delivered(cluster)), dropped) == ({f"U{number}" for number in range(5)}, [])
    else:
        assert (delivered(cluster), sorted(dropped)) == ({}, [f"U{number}" for number in range(5)])
        assert {event["attempts"] for event in refused} == {1, 2, 3}


def test_what_is_due_when_its_broker_stops_while_the_store_refuses_it_comes_after_the_next_start(
    make_cluster: Any,
) -> None:
    cluster = make_cluster()
    cluster.topic("T")
    client = cluster.client()
    for number in range(3):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=5)
    cluster.run(3_000)
    cluster.broker.message_store.running_flags.set(RunningFlags.DISK_FULL)
    while not cluster.seen("TimerPutRefused"):
        cluster.run(10)
    stop = cluster.broker_node.spawn(cluster.broker.shutdown.inside(cluster.broker), "stop")
    cluster.world.wait_for(stop.join())
    assert (delivered(cluster), cluster.seen("TimerMessageDropped")) == ({}, [])
    cluster.restart()
    cluster.run(8_000)
    assert set(delivered(cluster)) == {"U0", "U1", "U2"}
    assert [event["unique_key"] for event in cluster.seen("TimerMessageDelivered")] == sorted(delivered(cluster))


def test_a_message_whose_record_finds_no_room_until_it_is_due_comes_out_when_there_is_room(make_cluster: Any) -> None:
    """While the wheel cannot be written its time stands still, so that reading does not pass the slot."""
    cluster = make_cluster()
    cluster.topic("T")
    client = cluster.client()
    cluster.run(1_010 - cluster.now_ms)
    assert send_timer(client, TIMER_DELAY_SEC=5).code == ResponseCode.SUCCESS
    cluster.run(5)
    disk = cluster.broker_node.disk
    disk.capacity_bytes = disk.used_bytes
    cluster.run(9_000)
    assert cluster.seen("TimerMessageEnqueued") == []
    # Who asks how far reading is lets it pass the empty slots.
    assert cluster.broker.timer_behind()
    disk.capacity_bytes = None
    cluster.run(1_500)
    assert list(delivered(cluster)) == ["U"]


def test_a_message_that_somebody_sends_to_the_timers_topic_stops_the_timer_there(make_cluster: Any) -> None:
    for skip in (False, True):
        cluster = make_cluster({"timer_skip_unknown_error": skip})
        cluster.topic("T")
        client = cluster.client()
        send_timer(client, "before", TIMER_DELAY_SEC=2)
        client.send(TIMER, properties={"UNIQ_KEY": "wrong"})
        send_timer(client, "behind", TIMER_DELAY_SEC=2)
        cluster.run(6_000)
        assert list(delivered(cluster)) == (["before", "behind"] if skip else ["before"])
        assert bool(cluster.seen("TimerStalled")) is not skip


# -- taking back ------------------------------------------------------------------------------------------------------


def test_the_answer_to_a_timer_message_says_how_to_take_it_back(cluster: Any, client: Any) -> None:
    answer = send_timer(client, "KEY", TIMER_DELAY_SEC=30)
    slot_ms = cluster.seen("TimerMessageAccepted")[0]["slot_ms"]
    handle = RecallMessageHandle.decode(answer.ext_fields["recallHandle"])
    assert handle == ("T", "broker-a", str(slot_ms + 1), "KEY")
    assert "recallHandle" not in client.send("T").ext_fields
    assert "recallHandle" not in client.send("T", properties={"DELAY": "3"}).ext_fields


def recall(client: Any, answer: Any, asked: str = "T", **changed: str) -> Any:
    """Ask the broker to take a message back, with the handle of its answer, or one that was changed."""
    handle = RecallMessageHandle.decode(answer.ext_fields["recallHandle"])._replace(**changed).encode()
    return client.call(RequestCode.RECALL_MESSAGE, h.RecallMessageRequestHeader("P", asked, handle))


@pytest.fixture
def recalling(make_cluster: Any) -> Any:
    """A cluster whose broker lets messages be taken back."""
    cluster = make_cluster(recall_message_enable=True)
    cluster.topic("T")
    return cluster


def test_a_message_that_is_taken_back_in_time_is_not_delivered_and_others_of_its_slot_are(recalling: Any) -> None:
    client = recalling.client()
    answers = {key: send_timer(client, key, TIMER_DELAY_SEC=8) for key in ("stays", "goes", "stays-too")}
    recalling.run(3_000)
    answer = recall(client, answers["goes"])
    # The text is one that RocketMQ never writes over.
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, "not set any response code")
    assert answer.ext_fields == {"msgId": "goes", "MSG_REGION": "DefaultRegion"}
    recalling.run(200)
    assert recalling.broker.timer.all_congest_num == 2
    recalling.run(10_000)
    assert list(delivered(recalling)) == ["stays", "stays-too"]
    assert [event["unique_key"] for event in recalling.seen("TimerMessageRecalled")] == ["goes"]
    assert recalling.broker.message_store.get_max_offset_in_queue("T", 0) == 2


def test_a_message_that_rolls_is_taken_back_at_the_end_of_its_way(make_cluster: Any) -> None:
    cluster = make_cluster({"timer_roll_window_slot": 20}, recall_message_enable=True)
    cluster.topic("T")
    client = cluster.client()
    goes = send_timer(client, "goes", TIMER_DELAY_SEC=90)
    send_timer(client, "stays", TIMER_DELAY_SEC=90)
    cluster.run(2_000)
    recall(client, goes)
    cluster.run(95_000)
    assert list(delivered(cluster)) == ["stays"]
    assert [event["unique_key"] for event in cluster.seen("TimerMessageRecalled")] == ["goes"]


def test_taking_back_comes_too_late_for_what_was_delivered_as_its_slot_shows(recalling: Any) -> None:
    client = recalling.client()
    answer = send_timer(client, "late", TIMER_DELAY_SEC=3)
    recalling.run(6_000)
    assert (recall(client, answer).code, list(delivered(recalling))) == (ResponseCode.ILLEGAL_OPERATION, ["late"])


@pytest.mark.parametrize(
    ("settings", "changed", "topic", "code", "remark"),
    [
        ({}, {}, "T", ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden"),
        (None, {}, "Nowhere", ResponseCode.TOPIC_NOT_EXIST, "recall failed, the topic[Nowhere] not exist"),
        (None, {"topic": "Other"}, "T", ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match"),
        (
            None,
            {"broker_name": "broker-b"},
            "T",
            ResponseCode.ILLEGAL_OPERATION,
            "recall failed, broker service not available",
        ),
        (None, {"timestamp": "soon"}, "T", ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid"),
        (None, {"timestamp": "9" * 14}, "T", ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid"),
        (
            {"recall_message_enable": True, "broker_permission": 4, "allow_recall_when_broker_not_writeable": False},
            {},
            "T",
            ResponseCode.SERVICE_NOT_AVAILABLE,
            "recall failed, broker service not available",
        ),
    ],
)
def test_what_cannot_be_taken_back_is_refused_in_rocketmqs_words(
    make_cluster: Any, settings: dict[str, Any] | None, changed: dict[str, str], topic: str, code: int, remark: str
) -> None:
    cluster = make_cluster(auto_create_topic_enable=False)
    cluster.topic("T")
    client = cluster.client()
    sent = send_timer(client, TIMER_DELAY_SEC=9)
    for name, value in ({"recall_message_enable": True} if settings is None else settings).items():
        setattr(cluster.broker_config, name, value)
    answer = recall(client, sent, topic, **changed)
    assert (answer.code, answer.remark, answer.ext_fields) == (code, remark, {"MSG_REGION": "DefaultRegion"})
    cluster.run(12_000)
    assert list(delivered(cluster)) == ["U"]


@pytest.mark.parametrize("handle", ["", "djE", "no handle", "djIgVCBicm9rZXItYSAxIEtFWQ==", "%%%"])
def test_a_text_that_is_no_handle_is_refused(recalling: Any, handle: str) -> None:
    header = h.RecallMessageRequestHeader("P", "T", handle)
    answer = recalling.client().call(RequestCode.RECALL_MESSAGE, header)
    assert (answer.code, answer.remark) == (ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid")


def test_a_handle_is_the_one_of_java() -> None:
    handle = (
        "djEgR29sZGVuVGltZXIgYnJva2VyLWEgMTc5NTIwNTMxMzAwMSBGRDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMjQzREE0RTBFMkYyQTY2"
        "MkI0NzAxMDAxNA=="
    )
    decoded = RecallMessageHandle.decode(handle)
    unique_key = "FD00000000000000000000000000000243DA4E0E2F2A662B47010014"
    assert decoded == ("GoldenTimer", "broker-a", "1795205313001", unique_key)
    assert decoded.encode() == handle
    assert RecallMessageHandle.decode(handle.rstrip("=")) == decoded


# -- what administrators see ------------------------------------------------------------------------------------------


def test_administrators_see_how_far_the_timer_is_and_what_waits_for_which_topic(cluster: Any, client: Any) -> None:
    cluster.topic("T2")
    for number in range(3):
        send_timer(client, f"U{number}", TIMER_DELAY_SEC=5 + 20 * number)
    send_timer(client, "other", "T2", TIMER_DELAY_SEC=30)
    cluster.run(9_000)
    checkpoint = client.call(RequestCode.GET_TIMER_CHECK_POINT).body
    read_ms, log_end, offset, master, state, _, counter = struct.unpack(">7q", checkpoint)
    assert (log_end, offset, master, state) == (4 * 52, 4, 4, 0)
    assert EPOCH_MS + 6_000 <= read_ms <= EPOCH_MS + 8_000
    assert counter > 1
    metrics = json.loads(client.call(RequestCode.GET_TIMER_METRICS).body)
    assert {topic: row["count"] for topic, row in metrics["timingCount"].items()} == {"T": 2, "T2": 1}
    table = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert (table["timerCongestNum"], table["timerOffsetBehind"], table["timerReadBehind"]) == ("3", "0", "0")
    client.call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("T2"))
    assert list(json.loads(client.call(RequestCode.GET_TIMER_METRICS).body)["timingCount"]) == ["T"]


def test_a_broker_without_a_timer_wheel_tells_administrators_so(make_cluster: Any) -> None:
    client = make_cluster({"timer_wheel_enable": False}).client()
    assert client.call(RequestCode.GET_TIMER_CHECK_POINT).remark == "The checkpoint is null"
    assert client.call(RequestCode.GET_TIMER_METRICS).remark == "The timer message store is null"
    assert client.call(RequestCode.GET_BROKER_RUNTIME_INFO).code == ResponseCode.SUCCESS
