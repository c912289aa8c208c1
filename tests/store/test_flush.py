"""When what was written becomes safe: asynchronous and synchronous flush, the checkpoint, and a disk that hangs."""

from __future__ import annotations

from typing import Any

from mqlab.sim import Future
from mqlab.store import FlushDiskType, PutMessageStatus, StoreCheckpoint
from mqlab.trace.events.store import CommitLogFlushed, FlushTimedOut

SYNC = {"flush_disk_type": FlushDiskType.SYNC_FLUSH}


def _flushed(sw: Any) -> int:
    return sw.store.commit_log.mapped_file_queue.flushed_where


def _events(sw: Any, kind: type) -> list[Any]:
    """The events of one kind from now on, as (time in us, fields...)."""
    found: list[Any] = []
    sw.world.hooks.attach(lambda row: found.append((row[2], *row[8:])) if row[7] == kind.__name__ else None)
    return found


def test_asynchronous_flush_waits_for_four_pages_or_ten_seconds(sw: Any) -> None:
    """The first turn, after 500 ms, flushes whatever there is; the next such turn comes 10 s later."""
    flushed = _events(sw, CommitLogFlushed)
    sw.run(1_000)
    sw.put(1)
    sw.run(11_000)
    assert [(at, thorough) for at, _, thorough in flushed] == [(10_500_000, True)]
    sw.put(1, size=17_000)
    sw.run(1_000)
    assert [(at, thorough) for at, _, thorough in flushed[1:]] == [(12_500_000, False)]
    assert _flushed(sw) == sw.store.max_phy_offset


def test_an_idle_store_plays_no_slices(sw: Any) -> None:
    sw.put(10)
    sw.run(120_000)
    before = sw.world.slice_no
    sw.run(600_000)
    assert sw.world.slice_no == before


def test_synchronous_flush_answers_when_the_disk_has_it(store_world: Any) -> None:
    sw = store_world(**SYNC)
    sw.node.disk.flush_us = 700
    future = sw.store.put_message(sw.message())
    assert isinstance(future, Future)
    sw.run(0.6)
    assert not future.done
    sw.run(0.1)
    assert future.result().status is PutMessageStatus.PUT_OK
    assert _flushed(sw) == sw.store.max_phy_offset


def test_puts_that_wait_together_share_a_flush(store_world: Any) -> None:
    sw = store_world(**SYNC)
    flushed = _events(sw, CommitLogFlushed)
    sw.node.disk.flush_us = 1_000
    futures = [sw.store.put_message(sw.message(i)) for i in range(50)]
    sw.run(5)
    assert all(future.result().is_ok for future in futures)
    assert len(flushed) <= 2


def test_with_synchronous_flush_only_what_is_safe_can_be_read(store_world: Any) -> None:
    sw = store_world(**SYNC)
    sw.node.disk.hang()
    sw.store.put_message(sw.message())
    sw.run(100)
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 0
    sw.node.disk.unhang()
    sw.run(2)
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 1


def test_a_producer_waits_five_seconds_for_a_flush(store_world: Any) -> None:
    sw = store_world(**SYNC)
    timeouts = _events(sw, FlushTimedOut)
    sw.node.disk.hang()
    future = sw.store.put_message(sw.message())
    sw.run(4_999)
    assert not future.done
    sw.run(2)
    assert future.result().status is PutMessageStatus.FLUSH_DISK_TIMEOUT
    assert future.result().is_stored
    assert len(timeouts) == 1
    sw.node.disk.unhang()
    sw.run(20)
    assert _flushed(sw) == sw.store.max_phy_offset


def test_a_message_that_does_not_wait_is_answered_at_once_and_flushed_soon(store_world: Any) -> None:
    sw = store_world(**SYNC)
    message = sw.message()
    message.wait_store_msg_ok = False
    assert sw.store.put_message(message).is_ok
    sw.run(1)
    assert _flushed(sw) == sw.store.max_phy_offset


def test_a_stop_answers_those_that_wait(store_world: Any) -> None:
    sw = store_world(**SYNC)
    sw.node.disk.hang()
    future = sw.store.put_message(sw.message())
    sw.run(1)
    sw.store.shutdown()
    assert future.result().is_ok


def test_the_checkpoint_is_written_each_second_and_says_up_to_when_all_is_safe(sw: Any) -> None:
    sw.run(400)
    sw.put(1)
    stored = sw.world.epoch_ms + 400
    sw.run(1_000)
    checkpoint = StoreCheckpoint(sw.node.disk, "store/checkpoint")
    assert (checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp) == (stored, stored)
    assert checkpoint.min_timestamp == stored - 3_000
    sw.run(600)
    sw.put(1)
    sw.run(2_000)
    checkpoint = StoreCheckpoint(sw.node.disk, "store/checkpoint")
    assert checkpoint.physic_msg_timestamp == stored
    assert checkpoint.logics_msg_timestamp > stored


def test_queues_are_flushed_after_a_second_or_a_minute(store_world: Any) -> None:
    sw = store_world(mapped_file_size_consume_queue=6_000_000)
    sw.run(2_000)
    sw.put(1)
    queue = sw.store.find_consume_queue("TopicTest", 0).mapped_file_queue
    sw.run(50_000)
    assert queue.flushed_where == 0
    sw.run(10_000)
    assert queue.flushed_where == 20
    sw.put(900)
    sw.run(1_000)
    assert queue.flushed_where == 901 * 20
