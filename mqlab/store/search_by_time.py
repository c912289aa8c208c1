"""Finding a queue offset by time: a binary search over the store times of a queue's messages."""

from __future__ import annotations

from enum import Enum

from mqlab.store.batch_consume_queue import BatchConsumeQueue
from mqlab.store.commit_log import CommitLog
from mqlab.store.consume_queue import ConsumeQueue


class BoundaryType(Enum):
    """Which of the messages around a time is meant (org.apache.rocketmq.common.BoundaryType)."""

    LOWER = "lower"
    """The first one stored at that time or later."""

    UPPER = "upper"
    """The last one stored at that time or earlier."""


def batch_offset_in_queue_by_time(queue: BatchConsumeQueue, timestamp: int, boundary: BoundaryType) -> int:
    """The queue offset at which the batch begins that the boundary means (ms since 1970), -1 when none is found.

    The times are those in the entries. Only one file is searched: the newest whose first batch is not younger, the
    first one for earlier times. At and behind the newest batch of that file both boundaries give that batch. Between
    two batches LOWER gives the later one, UPPER the later one or none, as its search happens to end.

    Java: org.apache.rocketmq.store.queue.BatchConsumeQueue.getOffsetInQueueByTime.
    """
    files = queue.mapped_file_queue.mapped_files
    heads = [(file, queue.entries_of(file)) for file in files if file.wrote_position >= queue.unit_size]
    if not heads:
        return -1
    early = [entries for _, entries in heads if entries[0][0] <= timestamp]
    if not early and heads[0][0] is not files[0]:
        return -1
    entries = early[-1] if early else heads[0][1]
    if timestamp >= entries[-1][0]:
        return entries[-1][1]
    found = _search_right([stored for stored, _ in entries], timestamp, boundary)
    return entries[found][1] if found >= 0 else -1


def _search_right(times: list[int], timestamp: int, boundary: BoundaryType) -> int:
    """RocketMQ's search among the times of a file's batches, with its ways at the ends: an index, -1 for none.

    Java: org.apache.rocketmq.store.queue.BatchConsumeQueue.binarySearchRight.
    """
    left, right = 0, len(times) - 1
    while left <= right:
        middle = (left + right) // 2
        if middle in (left, right):
            if times[middle] >= timestamp:
                return middle
            if middle == right:
                return -1
            left = middle + 1
        elif boundary is BoundaryType.LOWER:
            if times[middle] < timestamp:
                left = middle + 1
            else:
                right = middle
        elif times[middle] <= timestamp:
            left = middle
        else:
            right = middle - 1
    return -1


def offset_in_queue_by_time(queue: ConsumeQueue, log: CommitLog, timestamp: int, boundary: BoundaryType) -> int:
    """The queue offset of the message that the boundary means, clamped to the queue (ms since 1970).

    Behind the newest message LOWER gives the end of the queue and UPPER the newest message; before the oldest both give
    it.

    Java: org.apache.rocketmq.store.ConsumeQueue.getOffsetInQueueByTime.
    """
    if isinstance(queue, BatchConsumeQueue):
        return batch_offset_in_queue_by_time(queue, timestamp, boundary)
    first = queue.min_logic_offset // queue.unit_size
    end = queue.mapped_file_queue.max_offset // queue.unit_size
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        unit = queue.offset_of_unit(middle)
        stored = log.store_time(unit.pos, unit.size) if unit is not None else -1
        if stored > timestamp or (stored == timestamp and boundary is BoundaryType.LOWER):
            high = middle
        else:
            low = middle + 1
    if boundary is BoundaryType.UPPER:
        low = max(low - 1, first)
    unit = queue.offset_of_unit(low)
    return unit.queue_offset if unit is not None else queue.max_offset_in_queue
