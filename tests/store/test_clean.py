"""Deleting: expired files, files that go because space is short, and what only pointed to them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mqlab.store import GetMessageStatus
from mqlab.trace.events.store import DiskFullChanged, FileDeleted

HOUR_MS = 3_600_000


def _deleted(sw: Any) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    sw.world.hooks.attach(
        lambda row: found.append((row[2] // 1_000, *row[8:])) if row[7] == FileDeleted.__name__ else None
    )
    return found


def test_expired_files_go_at_four_in_the_morning(store_world: Any) -> None:
    """A world begins at midnight UTC; with 2 hours to live the files have expired by 4, and the newest one stays."""
    sw = store_world(file_reserved_time=2)
    sw.put(200, size=1_000)
    deleted = _deleted(sw)
    sw.run(4 * HOUR_MS - 1_000)
    assert deleted == []
    sw.run(20_000)
    files = sw.store.commit_log.mapped_file_queue.mapped_files
    assert [file.file_from_offset for file in files] == [196608]
    assert [reason for _, path, reason in deleted if "commitlog" in path] == ["expired"] * 3
    assert sw.store.min_phy_offset == 196608


def test_files_that_are_young_enough_stay(store_world: Any) -> None:
    sw = store_world(file_reserved_time=5)
    sw.put(200, size=1_000)
    sw.run(5 * HOUR_MS)
    assert sw.store.min_phy_offset == 0


def test_at_most_ten_files_go_in_one_round_and_each_takes_a_moment(store_world: Any) -> None:
    sw = store_world(file_reserved_time=0, delete_when="00")
    sw.put(1_000, size=1_000)
    deleted = _deleted(sw)
    sw.run(61_500)
    times = [at for at, path, _ in deleted if "commitlog" in path]
    assert len(times) == 10
    assert {later - earlier for earlier, later in pairwise(times)} == {100}


def test_queue_and_index_files_follow_the_commit_log(store_world: Any) -> None:
    sw = store_world(file_reserved_time=0, delete_when="00")
    sw.put(600, size=1_000)
    sw.store.build_index()
    queue = sw.store.find_consume_queue("TopicTest", 0)
    index_files = len(sw.store.index_service.files)
    sw.run(75_000)
    first = next(queue.units())
    assert first.pos >= sw.store.min_phy_offset
    assert first.queue_offset == queue.min_offset_in_queue > 0
    assert queue.mapped_file_queue.min_offset > 0
    assert len(sw.store.index_service.files) < index_files
    result = sw.store.get_message("group", "TopicTest", 0, 0, 32)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.OFFSET_TOO_SMALL, first.queue_offset)


def test_a_queue_that_lost_all_its_messages_begins_at_its_end(store_world: Any) -> None:
    sw = store_world(file_reserved_time=0, delete_when="00")
    sw.put(5, topic="Old")
    sw.put(200, size=1_000)
    sw.run(75_000)
    assert sw.store.get_min_offset_in_queue("Old", 0) == sw.store.get_max_offset_in_queue("Old", 0) == 5
    assert sw.store.get_message("group", "Old", 0, 0, 32).status is GetMessageStatus.OFFSET_TOO_SMALL
    assert sw.put(1, topic="Old")[0].logics_offset == 5


def test_when_space_is_short_files_go_before_their_time(sw: Any) -> None:
    sw.put(600, size=1_000)
    deleted = _deleted(sw)
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes * 100 // 87
    sw.run(70_000)
    assert [reason for _, path, reason in deleted if "commitlog" in path]
    assert {reason for _, path, reason in deleted if "commitlog" in path} == {"space"}


def test_over_ninety_percent_messages_are_refused_until_files_are_gone(sw: Any) -> None:
    sw.put(600, size=1_000)
    changes: list[tuple[Any, ...]] = []
    sw.world.hooks.attach(lambda row: changes.append(row[8:]) if row[7] == DiskFullChanged.__name__ else None)
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes * 100 // 95
    sw.run(60_050)
    assert not sw.store.put_message(sw.message()).is_stored
    sw.run(20_000)
    assert sw.store.put_message(sw.message()).is_ok
    assert [full for full, _ in changes] == [True, False]


def test_the_newest_file_is_never_deleted(store_world: Any) -> None:
    sw = store_world(file_reserved_time=0, delete_when="00")
    sw.put(10)
    sw.run(200_000)
    assert sw.store.min_phy_offset == 0
    assert sw.store.get_message("group", "TopicTest", 0, 0, 32).status is GetMessageStatus.FOUND


def test_who_asks_for_it_has_expired_files_deleted_at_any_hour(store_world: Any) -> None:
    sw = store_world(file_reserved_time=1)
    sw.put(200, size=1_000)
    sw.run(2 * HOUR_MS)
    assert sw.store.min_phy_offset == 0
    sw.store.execute_delete_files_manually()
    sw.run(11_000)
    assert sw.store.min_phy_offset == 196608


def test_what_was_asked_for_ends_after_twenty_rounds(store_world: Any) -> None:
    sw = store_world(file_reserved_time=1)
    sw.put(200, size=1_000)
    sw.store.execute_delete_files_manually()
    sw.run(2 * HOUR_MS)
    assert sw.store.min_phy_offset == 0


def test_queues_whose_messages_are_all_gone_are_deleted_when_asked_and_begin_again(store_world: Any) -> None:
    sw = store_world(file_reserved_time=0, delete_when="00")
    sw.put(5, topic="Old")
    sw.put(200, size=1_000)
    sw.run(75_000)
    deleted = _deleted(sw)
    sw.store.clean_expired_consumer_queue()
    assert [(path.rpartition("consumequeue/")[2], reason) for _, path, reason in deleted] == [
        ("Old/0", "below the commit log")
    ]
    assert sw.store.find_consume_queue("Old", 0) is None
    assert sw.store.find_consume_queue("TopicTest", 0) is not None
    assert sw.put(1, topic="Old")[0].logics_offset == 0
