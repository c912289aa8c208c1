"""Finding a queue offset by time: a binary search over the store times of a queue's messages."""

from __future__ import annotations

from enum import Enum

from .commit_log import CommitLog
from .consume_queue import ConsumeQueue


class BoundaryType(Enum):
    """Which of the messages around a time is meant (org.apache.rocketmq.common.BoundaryType)."""

    LOWER = "lower"
    """The first one stored at that time or later."""

    UPPER = "upper"
    """The last one stored at that time or earlier."""


def offset_in_queue_by_time(queue: ConsumeQueue, log: CommitLog, timestamp: int, boundary: BoundaryType) -> int:
    """The queue offset of the message that the boundary means, clamped to the queue (ms since 1970).

    Behind the newest message LOWER gives the end of the queue and UPPER the newest message; before the oldest both give
    it.

    Java: org.apache.rocketmq.store.ConsumeQueue.getOffsetInQueueByTime.
    """
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
