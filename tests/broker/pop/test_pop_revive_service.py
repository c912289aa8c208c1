"""The reviver of a revive queue: what it reads when, what it brings back, and what it leaves alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker.pop import revive_log
from mqlab.broker.pop.revive_rounds import MOST_EMPTY_READS, NextRead
from mqlab.protocol.pop_check_point import REVIVE_GROUP, AckMsg, BatchAckMsg, PopCheckPoint, revive_topic
from mqlab.store import MessageExtBrokerInner
from mqlab.trace.events import pop as events

REVIVE_TOPIC = revive_topic("DefaultCluster")
INVISIBLE_MS = 10_000


class Reviving:
    """A broker whose revive queue 0 is given check points and acks at the moment when a timer would deliver them."""

    def __init__(self, make_cluster: Callable[..., Any], messages: int = 8, **settings: Any) -> None:
        self.cluster = make_cluster(**settings)
        self.cluster.topic("T")
        self.client = self.cluster.client()
        for i in range(messages):
            self.client.send("T", f"body {i}".encode(), properties={"TAGS": "TagA", "UNIQ_KEY": f"key-{i}"})
        self.broker = self.cluster.broker
        self.broker.subscription_group_manager.find_subscription_group_config("G")
        self.service = self.broker.pop.ack_message_processor.revive_services[0]

    def point(self, start: int = 0, num: int = 1, **changes: Any) -> PopCheckPoint:
        """A check point of messages that are popped now."""
        values: dict[str, Any] = {
            "start_offset": start,
            "num": num,
            "queue_offset_diff": list(range(num)),
            "pop_time": self.cluster.broker_node.now_ms(),
            "invisible_time": INVISIBLE_MS,
            "topic": "T",
            "group": "G",
            "broker_name": "broker-a",
            **changes,
        }
        return PopCheckPoint(**values)

    def ack(self, point: PopCheckPoint, offset: int, **changes: Any) -> AckMsg:
        """An ack of one message of a check point."""
        values: dict[str, Any] = {
            "ack_offset": offset,
            "start_offset": point.start_offset,
            "group": point.group,
            "topic": point.topic,
            "queue_id": point.queue_id,
            "pop_time": point.pop_time,
            "broker_name": point.broker_name,
            **changes,
        }
        return AckMsg(**values)

    def put(self, message: MessageExtBrokerInner) -> Any:
        """Let a timer message come into its queue now."""
        message.properties["TIMER_OUT_MS"] = message.properties["TIMER_DELIVER_MS"]
        message.properties_string = None
        return self.broker.message_store.put_message(message)

    def deliver(self, point: PopCheckPoint, *acks: AckMsg) -> None:
        """Let a check point come when it is due, and its acks a second later; the time is then that of the acks."""
        self.until_ms(point.revive_time - 1_000)
        self.put(revive_log.ck_message(self.broker, point, 0))
        self.until_ms(point.revive_time)
        for ack in acks:
            self.put(revive_log.ack_message(self.broker, ack, 0, point.revive_time))

    def until_ms(self, wall_ms: int) -> None:
        """Play until the broker's clock says so."""
        self.cluster.world.run_for(self.cluster.broker_node.us_until(wall_ms))

    def seen(self, kind: type[Any]) -> list[Any]:
        """The events of a kind, with the broker's clock (ms) when each happened."""
        rows = [row for row in self.cluster.events if row[7] == kind.__name__]
        return [kind(*row[8:]) for row in rows]

    def times(self, kind: type[Any]) -> list[int]:
        """When events of a kind happened, by the broker's clock (ms)."""
        epoch = self.cluster.world.epoch_ms
        return [epoch + row[2] // 1_000 for row in self.cluster.events if row[7] == kind.__name__]

    def offset(self) -> int:
        """What the revive group has committed for queue 0."""
        committed: int = self.broker.consumer_offset_manager.query_offset(REVIVE_GROUP, REVIVE_TOPIC, 0)
        return committed

    def retry(self, topic: str = "%RETRY%G_T") -> list[Any]:
        """What lies in the retry topic."""
        from mqlab.protocol.record import decode_record

        self.cluster.run(5)
        found = self.broker.message_store.get_message("X", topic, 0, 0, 32)
        return [decode_record(record) for record in found.messages] if found is not None else []


@pytest.fixture
def reviving(make_cluster: Callable[..., Any]) -> Reviving:
    """A broker with its defaults and 8 messages in T."""
    return Reviving(make_cluster)


# -- the stop rule ----------------------------------------------------------------------------------------------------


def test_a_lone_check_point_is_settled_two_seconds_behind_its_revive_time(reviving: Reviving) -> None:
    late = []
    for phase_ms in (0, 130, 777, 2_500):
        reviving.cluster.run(phase_ms)
        point = reviving.point()
        reviving.deliver(point)
        reviving.cluster.run(3_000)
        late.append(reviving.times(events.MessageRevived)[-1] - point.revive_time)
    assert all(2_000 < ms <= 2_101 for ms in late), late
    assert [event.late_ms for event in reviving.seen(events.MessageRevived)] == late


def test_acked_messages_stay_away_and_the_others_come_back(reviving: Reviving) -> None:
    point = reviving.point(num=5)
    reviving.deliver(point, *(reviving.ack(point, offset) for offset in (0, 2, 3)))
    reviving.cluster.run(4_000)
    assert [message.body for message in reviving.retry()] == [b"body 1", b"body 4"]
    (settled,) = reviving.seen(events.CheckPointSettled)
    assert (settled.messages, settled.acked, settled.reason) == (5, 3, "revived")
    assert [event.bits for event in reviving.seen(events.ReviveAckRead)] == ["0", "2", "3"]
    assert reviving.offset() == 0


def test_a_check_point_with_all_acks_brings_nothing_back(reviving: Reviving) -> None:
    point = reviving.point(num=3)
    together = BatchAckMsg(-1, 0, "G", "T", 0, point.pop_time, "", ack_offset_list=[0, 1, 2])
    reviving.deliver(point, together)
    reviving.cluster.run(5_000)
    assert reviving.seen(events.MessageRevived) == []
    assert [event.reason for event in reviving.seen(events.CheckPointSettled)] == ["all acked"]
    assert "%RETRY%G_T" not in reviving.broker.topic_config_manager.topic_config_table


@pytest.mark.parametrize(("after_ms", "revived"), [(500, 0), (1_900, 0), (2_300, 1)])
def test_an_ack_up_to_two_seconds_late_still_counts(reviving: Reviving, after_ms: int, revived: int) -> None:
    point = reviving.point()
    reviving.deliver(point)
    reviving.cluster.run(after_ms)
    reviving.put(revive_log.ack_message(reviving.broker, reviving.ack(point, 0), 0, point.revive_time))
    reviving.cluster.run(5_000)
    assert len(reviving.seen(events.MessageRevived)) == revived


def test_a_check_point_whose_acks_may_still_come_waits_for_the_next_round(reviving: Reviving) -> None:
    points = []
    for offset, pause_ms in enumerate((1_500, 1_700, 0)):
        points.append(reviving.point(offset))
        reviving.cluster.run(pause_ms)
    for point in points:
        reviving.until_ms(point.revive_time - 1_000)
        reviving.put(revive_log.ck_message(reviving.broker, point, 0))
    reviving.cluster.run(6_000)
    # The third came due 2.2 s behind the revive time of the first, whose acks are therefore all there, but only 0.7 s
    # behind that of the second.
    waited = reviving.seen(events.CheckPointWaits)[0]
    assert (waited.start_offset, waited.revive_offset) == (1, 1)
    assert waited.end_time - waited.revive_time == 700
    assert [event.from_offset for event in reviving.seen(events.ReviveScanBegun)] == [0, 1]
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0, 1, 2]
    assert reviving.times(events.MessageRevived)[1] - points[1].revive_time <= 5_100


def test_while_the_timer_is_behind_the_reviver_does_not_trust_the_clock(reviving: Reviving) -> None:
    reviving.broker.timer_behind = lambda: True
    point = reviving.point()
    reviving.deliver(point)
    reviving.cluster.run(2_900)
    assert reviving.seen(events.ReviveScanEnded) == []
    assert [event.reason for event in reviving.seen(events.ReviveScanWaits)] == ["the timer"]
    reviving.cluster.run(4_000)
    # It gives up, and nothing is settled: the check point is read again in each round.
    assert reviving.seen(events.ReviveScanEnded)[0].reason == "nothing more"
    assert reviving.seen(events.CheckPointSettled) == []
    reviving.broker.timer_behind = lambda: False
    reviving.cluster.run(5_000)
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0]


def test_a_round_of_more_than_ten_seconds_ends(reviving: Reviving) -> None:
    reviving.broker.timer_behind = lambda: True
    point = reviving.point()
    for offset in range(8):
        same_time = reviving.point(offset, pop_time=point.pop_time)
        reviving.put(revive_log.ck_message(reviving.broker, same_time, 0))
        reviving.cluster.run(2_000)
    ended = reviving.seen(events.ReviveScanEnded)[0]
    assert ended.reason == "scan time over"
    # What was read last is not counted: the next round reads it again.
    assert ended.check_points == ended.to_offset == 6
    begun, ended_at = reviving.times(events.ReviveScanBegun)[0], reviving.times(events.ReviveScanEnded)[0]
    assert 10_000 < ended_at - begun <= 12_100


# -- what comes back --------------------------------------------------------------------------------------------------


def test_a_revived_message_says_how_often_and_since_when(reviving: Reviving) -> None:
    point = reviving.point(3)
    reviving.deliver(point)
    reviving.cluster.run(3_000)
    (message,) = reviving.retry()
    assert (message.topic, message.queue_id, message.body, message.tags) == ("%RETRY%G_T", 0, b"body 3", "TagA")
    assert message.reconsume_times == 1
    assert message.properties["1ST_POP_TIME"] == str(point.pop_time)
    assert message.properties["UNIQ_KEY"] == "key-3"
    assert message.born_host == message.store_host == reviving.broker.store_host
    topic = reviving.broker.topic_config_manager.topic_config_table["%RETRY%G_T"]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)
    assert reviving.broker.consumer_offset_manager.query_offset("G", "%RETRY%G_T", 0) == 0

    again = reviving.point(0, topic="%RETRY%G_T")
    reviving.deliver(again)
    reviving.cluster.run(4_000)
    _, twice = reviving.retry()
    assert (twice.topic, twice.body, twice.reconsume_times) == ("%RETRY%G_T", b"body 3", 2)
    assert twice.properties["1ST_POP_TIME"] == str(point.pop_time)


def test_the_second_form_of_a_retry_topic_is_used_when_it_is_switched_on(make_cluster: Callable[..., Any]) -> None:
    reviving = Reviving(make_cluster, enable_retry_topic_v2=True)
    reviving.deliver(reviving.point())
    reviving.cluster.run(3_000)
    assert [message.body for message in reviving.retry("%RETRY%G+T")] == [b"body 0"]


def test_a_compressed_message_comes_back_as_it_is(reviving: Reviving) -> None:
    import zlib

    packed = zlib.compress(b"long " * 50)
    reviving.client.send("T", packed, sys_flag=0x1, properties={"UNIQ_KEY": "packed"})
    reviving.deliver(reviving.point(8))
    reviving.cluster.run(3_000)
    result = reviving.broker.message_store.get_message("X", "%RETRY%G_T", 0, 0, 1)
    assert packed in result.messages[0]
    assert reviving.retry()[0].body == b"long " * 50


@pytest.mark.parametrize("gone", ["topic", "group"])
def test_without_topic_or_group_a_check_point_is_passed_over(make_cluster: Callable[..., Any], gone: str) -> None:
    reviving = Reviving(make_cluster, auto_create_subscription_group=False)
    point = reviving.point(topic="Gone") if gone == "topic" else reviving.point(group="Gone")
    reviving.deliver(point)
    reviving.cluster.run(3_000)
    assert [event.reason for event in reviving.seen(events.CheckPointSettled)] == [f"{gone} gone"]
    assert reviving.offset() == 0


def test_a_message_that_is_gone_needs_nothing(reviving: Reviving) -> None:
    reviving.deliver(reviving.point(99))
    reviving.cluster.run(3_000)
    assert [event.reason for event in reviving.seen(events.MessageNotRevived)] == ["it is no longer there"]
    assert reviving.offset() == 0


def test_a_message_whose_entry_points_into_the_middle_of_a_record_needs_nothing(reviving: Reviving) -> None:
    """A loss of power can leave such an entry; it must not stop the reviver."""
    queue = reviving.broker.message_store.find_consume_queue("T", 0)
    unit = queue.get(2)
    entry = struct.pack(">qiq", unit.pos + 50, unit.size, unit.tags_code)
    queue.mapped_file_queue.mapped_files[0].file.write(2 * len(entry), entry)
    reviving.deliver(reviving.point(2))
    reviving.cluster.run(3_000)
    assert [event.reason for event in reviving.seen(events.MessageNotRevived)] == ["it is no longer there"]
    assert reviving.offset() == 0


def test_a_message_with_a_damaged_body_comes_back_as_it_is(reviving: Reviving) -> None:
    """Nobody but recovery looks at the CRC of a body, in RocketMQ: who gets the message has to."""
    record = reviving.broker.message_store.get_message("X", "T", 0, 2, 1).messages[0]
    unit = reviving.broker.message_store.find_consume_queue("T", 0).get(2)
    log = reviving.broker.message_store.commit_log.mapped_file_queue.mapped_files[0]
    log.file.write(unit.pos, record.replace(b"body 2", b"body ?"))
    reviving.deliver(reviving.point(2))
    reviving.cluster.run(3_000)
    assert [message.body for message in reviving.retry()] == [b"body ?"]
    assert reviving.seen(events.MessageNotRevived) == []


# -- putting off ------------------------------------------------------------------------------------------------------


def putting_off(reviving: Reviving, times: str | None) -> tuple[PopCheckPoint, list[Any]]:
    """A check point of a message on another broker, put off `times` times; and the events of its being put off."""
    point = reviving.point(num=2, broker_name="broker-b", re_put_times=times)
    reviving.deliver(point, reviving.ack(point, 0))
    reviving.cluster.run(4_000)
    return point, reviving.seen(events.CheckPointPutAgain)


@pytest.mark.parametrize(
    ("times", "seconds"), [(None, 10), ("1", 20), ("16", 7_200), ("17", 7_200), ("nonsense", 7_200)]
)
def test_what_cannot_be_revived_now_gets_a_check_point_of_its_own_later(
    reviving: Reviving, times: str | None, seconds: int
) -> None:
    before = reviving.broker.message_store.max_phy_offset
    point, (again,) = putting_off(reviving, times)
    assert (again.queue_offset, again.pop_time) == (1, point.pop_time)
    assert again.invisible_ms == INVISIBLE_MS + seconds * 1_000
    assert again.reason == "it lies on broker-b"
    assert reviving.offset() == 0
    assert reviving.broker.message_store.max_phy_offset > before


def test_a_check_point_that_was_put_off_too_often_is_dropped_only_where_that_is_asked_for(
    make_cluster: Callable[..., Any],
) -> None:
    reviving = Reviving(make_cluster, skip_when_ck_re_put_reach_max_times=True)
    _, again = putting_off(reviving, "17")
    assert again == []
    assert [event.reason for event in reviving.seen(events.MessageNotRevived)] == [
        "its check point was put again 17 times"
    ]


def test_with_a_full_disk_the_message_is_lost_as_it_is_on_a_real_broker(reviving: Reviving) -> None:
    reviving.deliver(reviving.point())
    reviving.broker.message_store.running_flags.set(2)
    assert not reviving.broker.message_store.running_flags.is_writeable
    reviving.cluster.run(3_000)
    (lost,) = reviving.seen(events.MessageNotRevived)
    assert lost.reason == "its new check point was not stored: SERVICE_NOT_AVAILABLE"
    assert reviving.offset() == 0


# -- acks without a check point, and other odd things -----------------------------------------------------------------


def test_acks_behind_the_last_check_point_are_read_again_and_change_nothing(reviving: Reviving) -> None:
    point = reviving.point(num=2)
    reviving.deliver(point, reviving.ack(point, 0), reviving.ack(point, 1))
    reviving.cluster.run(4_000)
    assert reviving.offset() == 0
    slices = reviving.cluster.world.slice_no
    reviving.cluster.run(20_000)
    idle = reviving.cluster.world.slice_no - slices
    later = reviving.point(2)
    reviving.deliver(later)
    reviving.cluster.run(3_000)
    # With acks at the end a loop that always turns reads once in 4 s (interval 1 + rest 3), and not every 100 ms.
    begun = reviving.times(events.ReviveScanBegun)
    assert begun[-1] - later.revive_time <= 3_000
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [2]
    assert reviving.offset() == 3
    assert idle < 60


@pytest.mark.parametrize(
    "wrong", [{"group": "H"}, {"pop_time": 5}, {"start_offset": 1}, {"queue_id": 1}, {"topic": "U"}]
)
def test_an_ack_of_something_else_settles_nothing(reviving: Reviving, wrong: dict[str, Any]) -> None:
    point = reviving.point(num=1)
    reviving.deliver(point, reviving.ack(point, 0, **wrong))
    reviving.cluster.run(4_000)
    assert [event.bits for event in reviving.seen(events.ReviveAckRead)] == [""]
    assert len(reviving.seen(events.MessageRevived)) == 1


def test_an_ack_twice_or_of_an_offset_that_the_batch_has_not_changes_nothing(reviving: Reviving) -> None:
    point = reviving.point(num=3, queue_offset_diff=[0, 2, 4])
    acks = [reviving.ack(point, offset) for offset in (2, 2, 3, 99)]
    reviving.deliver(point, *acks)
    reviving.cluster.run(4_000)
    assert [event.bits for event in reviving.seen(events.ReviveAckRead)] == ["1", "1", "", ""]
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0, 4]


def test_an_ack_that_waited_too_long_for_its_check_point_is_passed_where_that_is_asked_for(
    make_cluster: Callable[..., Any],
) -> None:
    reviving = Reviving(make_cluster, enable_skip_long_awaiting_ack=True, revive_ack_wait_ms=30_000)
    point = reviving.point()
    reviving.until_ms(point.revive_time)
    reviving.put(revive_log.ack_message(reviving.broker, reviving.ack(point, 0), 0, point.revive_time))
    reviving.cluster.run(29_000)
    assert reviving.offset() == -1
    reviving.cluster.run(6_000)
    assert reviving.offset() == 0


def test_what_cannot_be_read_stops_its_queue_and_no_other(reviving: Reviving) -> None:
    point = reviving.point()
    message = revive_log.ck_message(reviving.broker, point, 0)
    message.body = b"{not json"
    reviving.put(message)
    reviving.deliver(point)
    reviving.cluster.run(5_000)
    assert {event.reason[:10] for event in reviving.seen(events.ReviveScanEnded)} == {"unreadable"}
    assert reviving.seen(events.MessageRevived) == []
    reviving.put(revive_log.ck_message(reviving.broker, point, 1))
    reviving.cluster.run(8_000)
    assert len(reviving.seen(events.MessageRevived)) == 1


def test_a_torn_record_is_passed_over(reviving: Reviving) -> None:
    torn = reviving.put(revive_log.ck_message(reviving.broker, reviving.point(5), 0))
    file = reviving.broker.message_store.commit_log.mapped_file_queue.find(torn.wrote_offset)
    file.file.write(torn.wrote_offset - file.file_from_offset + 90, bytes(8))
    reviving.deliver(reviving.point())
    reviving.cluster.run(6_000)
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0]
    assert reviving.offset() == 1


def test_an_offset_behind_the_queue_is_corrected_whenever_the_queue_grows(reviving: Reviving) -> None:
    """A loss of power can take the newest entries of the queue, and keep the offset that was noted behind them. As in
    RocketMQ the corrected offset is written down, and the one in memory is kept: what comes in between is passed over.
    """
    reviving.deliver(reviving.point())
    reviving.cluster.run(5_000)
    reviving.broker.consumer_offset_manager.commit_offset(REVIVE_GROUP, REVIVE_TOPIC, 0, 9)
    reviving.service.revive_offset = 9
    corrected = []
    for start in (3, 4):
        reviving.cluster.run(20_000)
        corrected.append(reviving.offset())
        reviving.deliver(reviving.point(start))
    reviving.cluster.run(20_000)
    assert [*corrected, reviving.offset()] == [9, 1, 2], "noted behind the end, and then at each new one"
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0]


def test_an_offset_before_the_queue_is_corrected_by_the_next_round(reviving: Reviving) -> None:
    reviving.service.should_run_pop_revive = False
    for offset in range(3):
        reviving.put(revive_log.ck_message(reviving.broker, reviving.point(offset), 0))
    reviving.cluster.run(10)
    reviving.broker.message_store.find_consume_queue(REVIVE_TOPIC, 0).min_logic_offset = 2 * 20
    reviving.service.should_run_pop_revive = True
    reviving.service.arrived()
    reviving.cluster.run(20_000)
    assert [event.from_offset for event in reviving.seen(events.ReviveScanBegun)][:2] == [0, 2]
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [2]


def test_a_slave_revives_nothing(make_cluster: Callable[..., Any]) -> None:
    reviving = Reviving(make_cluster, broker_id=1)
    reviving.deliver(reviving.point())
    reviving.cluster.run(10_000)
    assert reviving.seen(events.ReviveScanBegun) == []


# -- rounds and sleep -------------------------------------------------------------------------------------------------


def always_turning(begin_ms: int, slow: int, most: int, until_ms: int, alone: bool) -> NextRead:
    """When PopReviveService.run reads first behind `until_ms`, told by letting its loop turn without anything to read;
    `alone`: the queue ends with acks without check points, so that a round does not wait.
    """
    now = begin_ms
    while True:
        now += 1_000
        empty = 0
        while True:
            if now > until_ms:
                return NextRead(now * 1_000, empty, slow)
            if alone:
                break
            empty += 1
            now += 100
            if empty * 100 > 4_000:
                break
        now += slow * 1_000
        slow = min(slow + 1, most)


@pytest.mark.parametrize("alone", [False, True])
def test_the_next_read_is_that_of_a_loop_that_always_turns(reviving: Reviving, alone: bool) -> None:
    service = reviving.service
    service._lone_acks_from_ms = int(alone)
    for slow in (1, 2, 3):
        service.slow = slow
        for until_ms in [*range(0, 60_000, 87), 999, 1_000, 5_000, 5_100, 5_099, 6_100, 3_600_000, 3_601_234]:
            expected = always_turning(0, slow, 3, until_ms, alone)
            assert service.next_read(0, until_ms * 1_000) == expected, (slow, until_ms)


def test_a_reviver_without_anything_to_read_sleeps_and_yet_reads_in_time(reviving: Reviving) -> None:
    cluster = reviving.cluster
    cluster.run(1_000)
    slices = cluster.world.slice_no
    cluster.run(60_000)
    idle_slices = cluster.world.slice_no - slices
    assert reviving.seen(events.ReviveScanBegun) == []
    assert idle_slices < 120
    origin_ms = cluster.world.epoch_ms + reviving.broker.start_us // 1_000
    point = reviving.point()
    reviving.until_ms(point.revive_time - 1_000)
    put_ms = cluster.broker_node.now_ms() - origin_ms
    reviving.put(revive_log.ck_message(reviving.broker, point, 0))
    reviving.cluster.run(9_000)
    expected = always_turning(0, 1, 3, put_ms + 1, alone=False)
    assert reviving.times(events.ReviveScanBegun)[0] - origin_ms == expected.at_us // 1_000
    assert expected.empty_reads < MOST_EMPTY_READS


def test_a_clock_that_jumps_ahead_ends_the_wait(reviving: Reviving) -> None:
    point = reviving.point(invisible_time=3_600_000)
    reviving.put(revive_log.ck_message(reviving.broker, point, 0))
    reviving.cluster.run(6_000)
    revived = len(reviving.seen(events.MessageRevived))
    reviving.cluster.broker_node.set_drift(0, 3_600_000)
    reviving.cluster.run(6_000)
    assert revived == 0
    assert len(reviving.seen(events.MessageRevived)) == 1


def test_a_restarted_broker_goes_on_where_it_was(reviving: Reviving) -> None:
    reviving.deliver(reviving.point(0))
    reviving.cluster.run(3_000)
    reviving.put(revive_log.ck_message(reviving.broker, reviving.point(1), 0))
    reviving.cluster.world.wait_for(reviving.cluster.broker_node.spawn(reviving.broker.shutdown(), "stop").join())
    reviving.cluster.do("crash", node="broker-a")
    reviving.cluster.restart(20_000)
    assert reviving.cluster.broker is not reviving.broker
    assert [event.queue_offset for event in reviving.seen(events.MessageRevived)] == [0, 1]
