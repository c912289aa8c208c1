"""The merge buffer and the store: what is written when, what a slow or full store does, and how a broker ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol.pop_check_point import AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.sim import FAULTS
from mqlab.store import FlushDiskType
from tests.broker.pop.popped_batches import KEY, Popped


@pytest.fixture
def popped(make_cluster: Callable[..., Any]) -> Popped:
    """A broker with the buffer on."""
    return Popped(make_cluster)


def next_tick_ms(popped: Popped, after_ms: float) -> float:
    """The first tick behind a time, of a thread that began with the broker."""
    origin_ms = popped.cluster.broker.start_us / 1_000
    return origin_ms + ((after_ms - origin_ms) // 5 + 1) * 5


# -- when the stay in memory ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("invisible_ms", "stay_ms", "reason"), [(60_000, 10_000, "stayed long"), (12_000, 9_000, "visible soon")]
)
def test_what_stayed_too_long_is_stored_with_its_acks_at_the_first_tick_that_is_later(
    popped: Popped, invisible_ms: int, stay_ms: int, reason: str
) -> None:
    point = popped.pop(5, 3, invisible_ms)
    assert popped.ack(point, 5, 7)
    popped.cluster.run(15_000)
    # More than the stay, in whole ms of the clock.
    first_ms = next_tick_ms(popped, point.pop_time - popped.cluster.world.epoch_ms + stay_ms + 0.999)
    assert popped.at("CheckPointStored") == [first_ms]
    assert popped.fields("CheckPointStored") == [("G", "T", 0, 5, point.pop_time, 3, reason)]
    assert [row[3] for row in popped.fields("AckStored")] == ["5", "7"]
    assert popped.fields("CheckPointMerged") == [("G", "T", 0, 5, point.pop_time, 3, 2, True)]
    assert popped.committed == 8
    assert popped.service.buffer == {}
    popped.cluster.run(invisible_ms)
    check_point, *acks = popped.in_revive_topic()
    assert isinstance(check_point, PopCheckPoint)
    assert check_point.offsets() == [5, 6, 7]
    assert acks == [AckMsg(offset, 5, "G", "T", 0, point.pop_time, "broker-a") for offset in (5, 7)]


def test_with_batch_acks_one_message_names_all_that_were_acknowledged(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, enable_pop_batch_ack=True)
    point = popped.pop(5, 4)
    assert popped.ack(point, 8, 5)
    untouched = popped.pop(9, 2)
    popped.cluster.run(65_000)
    assert [row[3] for row in popped.fields("AckStored")] == ["5,8"]
    first, second, ack = popped.in_revive_topic()
    assert [first.start_offset, second.start_offset] == [point.start_offset, untouched.start_offset]
    assert ack == BatchAckMsg(0, 5, "G", "T", 0, point.pop_time, None, [5, 8]), "no broker, no offset of its own"


def test_a_batch_that_is_stored_lets_the_next_one_be_committed(popped: Popped) -> None:
    popped.pop(0, 2)
    second = popped.pop(2, 1)
    assert popped.ack(second, 2)
    popped.cluster.run(9_900)
    assert popped.committed == -1
    popped.cluster.run(200)
    assert popped.committed == 3
    assert len(popped.fields("CheckPointStored")) == 1


def test_a_longer_stay_that_was_set_meanwhile_counts(popped: Popped) -> None:
    popped.pop(0, 1)
    popped.cluster.broker.broker_config.pop_ck_stay_buffer_time = 20_000
    popped.cluster.run(19_900)
    assert popped.at("CheckPointStored") == []
    popped.cluster.run(200)
    assert len(popped.at("CheckPointStored")) == 1


def test_a_clock_that_jumps_ahead_brings_the_end_of_the_stay_forward(popped: Popped) -> None:
    popped.pop(0, 1)
    popped.cluster.run(1_000)
    popped.node.set_drift(0, 9_500)
    popped.cluster.run(5)
    assert len(popped.at("CheckPointStored")) == 1


# -- without the buffer -----------------------------------------------------------------------------------------------


def test_without_the_buffer_the_pop_itself_writes_and_the_next_tick_commits(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, enable_pop_buffer_merge=False)
    point = popped.check_point(0, 3)
    began_ms = popped.cluster.now_ms
    done = popped.begin_pop(point)
    popped.cluster.run(0.001)
    assert done.result() is True
    assert popped.at("CheckPointStored") == [began_ms]
    assert popped.committed == -1
    assert popped.service.get_latest_offset(KEY) == 3
    popped.cluster.run(5)
    assert popped.at("OffsetCommitted") == [next_tick_ms(popped, began_ms)]
    assert popped.committed == 3
    popped.cluster.run(5)
    assert popped.service.buffer == {}


def test_a_second_batch_of_the_same_key_gets_no_check_point(popped: Popped) -> None:
    point = popped.pop(0, 3)
    done = popped.begin_pop(popped.check_point(0, 3))
    popped.cluster.run(0.001)
    assert done.result() is False
    assert popped.fields("CheckPointNotMade") == [("G", "T", 0, 0, point.pop_time, 3, "same key")]


# -- slow and full stores ---------------------------------------------------------------------------------------------


def test_a_pop_waits_for_the_flush_of_its_check_point_unless_told_not_to(make_cluster: Callable[..., Any]) -> None:
    for asynchronous in (False, True):
        popped = Popped(
            make_cluster,
            {"flush_disk_type": FlushDiskType.SYNC_FLUSH},
            enable_pop_buffer_merge=False,
            append_ck_async=asynchronous,
        )
        FAULTS["hang_disk"](popped.cluster.world, node="broker-a")
        done = popped.begin_pop(popped.check_point(0, 3))
        popped.cluster.run(1_000)
        assert done.done is asynchronous
        assert popped.committed == -1, "the check point is not safe yet"
        FAULTS["unhang_disk"](popped.cluster.world, node="broker-a")
        popped.cluster.run(100)
        assert done.result() is True
        assert popped.committed == 3


def test_a_check_point_that_the_store_refuses_is_tried_again_by_each_scan(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, enable_pop_buffer_merge=False)
    popped.cluster.broker.message_store.config.timer_wheel_enable = False
    done = popped.begin_pop(popped.check_point(0, 3))
    popped.cluster.run(1_000)
    assert done.result() is True, "the messages are handed out all the same"
    assert popped.committed == -1
    popped.cluster.broker.message_store.config.timer_wheel_enable = True
    popped.cluster.run(10)
    assert len(popped.at("CheckPointStored")) == 1
    assert popped.committed == 3
    assert popped.service.buffer == {}


def test_acks_that_the_store_refuses_are_tried_again(popped: Popped) -> None:
    point = popped.pop(0, 3)
    assert popped.ack(point, 1)
    popped.cluster.broker.message_store.config.timer_wheel_enable = False
    popped.cluster.run(10_500)
    assert popped.service.buffer
    popped.cluster.broker.message_store.config.timer_wheel_enable = True
    popped.cluster.run(10)
    assert [row[3] for row in popped.fields("AckStored")] == ["1"]
    assert popped.service.buffer == {}


def test_a_scan_of_over_2_s_closes_the_buffer_until_it_is_empty(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, {"flush_disk_type": FlushDiskType.SYNC_FLUSH})
    popped.pop(0, 1)
    popped.cluster.run(9_000)
    young = popped.pop(1, 2)
    FAULTS["hang_disk"](popped.cluster.world, node="broker-a")
    popped.cluster.run(3_500)
    assert popped.fields("MergeBufferClosed") == [], "the scan still waits"
    FAULTS["unhang_disk"](popped.cluster.world, node="broker-a")
    popped.cluster.run(5)
    ((check_points, scan_ms),) = popped.fields("MergeBufferClosed")
    assert check_points == 1
    assert 2_000 < scan_ms < 3_000
    assert not popped.service.add_ck(popped.check_point(9, 1), 0, -1, 10)
    ack = AckMsg(1, 1, "G", "T", 0, young.pop_time, "broker-a")
    assert not popped.service.add_ak(3, ack)
    popped.cluster.run(50)
    assert [row[6] for row in popped.fields("CheckPointStored")] == ["stayed long", "buffer closed"]
    assert len(popped.fields("MergeBufferOpened")) == 1
    assert popped.committed == 3
    assert popped.service.add_ck(popped.check_point(9, 1), 0, -1, 10)


def test_a_scan_of_just_2_s_keeps_the_buffer_open(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, {"flush_disk_type": FlushDiskType.SYNC_FLUSH})
    popped.pop(0, 1)
    popped.cluster.run(9_000)
    FAULTS["hang_disk"](popped.cluster.world, node="broker-a")
    popped.cluster.run(2_900)
    FAULTS["unhang_disk"](popped.cluster.world, node="broker-a")
    popped.cluster.run(100)
    assert len(popped.fields("CheckPointStored")) == 1
    assert popped.fields("MergeBufferClosed") == []


# -- the end of a broker ----------------------------------------------------------------------------------------------


def test_a_broker_that_ends_in_good_order_stores_everything(popped: Popped) -> None:
    point = popped.pop(0, 3)
    assert popped.ack(point, 0)
    began_ms = popped.cluster.now_ms
    popped.cluster.broker.shutdown().play()
    assert popped.cluster.now_ms - began_ms >= 2_000
    assert [row[6] for row in popped.fields("CheckPointStored")] == ["buffer closed"]
    assert [row[3] for row in popped.fields("AckStored")] == ["0"]
    assert popped.committed == 3
    assert b'"T@G":{0:3' in popped.node.disk.read_bytes(popped.cluster.broker.consumer_offset_manager.path)


def test_a_killed_broker_forgets_what_was_in_memory(popped: Popped) -> None:
    point = popped.pop(0, 3)
    assert popped.ack(point, 0)
    popped.cluster.run(5_000)
    popped.cluster.do("crash", node="broker-a")
    popped.cluster.restart(20_000)
    assert popped.committed == -1
    assert popped.service.buffer == {}
    assert popped.fields("CheckPointStored") == []


def test_a_store_that_takes_nothing_keeps_a_broker_from_ending_for_90_s(popped: Popped) -> None:
    popped.pop(0, 3)
    popped.cluster.broker.message_store.config.timer_wheel_enable = False
    began_ms = popped.cluster.now_ms
    popped.cluster.world.wait_for(popped.node.spawn(popped.service.drain(), "end").join())
    assert popped.cluster.now_ms - began_ms == 90_000
    assert popped.service.buffer
