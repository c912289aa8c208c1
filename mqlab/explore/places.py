"""Places of messages, and what lies there."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.trace.bus import Row

QueueKey = tuple[str, str, str, int]
"""(group, broker's process, topic, queue id)"""


class Place(NamedTuple):
    """Where a message lies: a broker's process, a topic, a queue, an offset."""

    broker: str
    topic: str
    queue_id: int
    queue_offset: int

    def __str__(self) -> str:
        return f"{self.broker} {self.topic} queue {self.queue_id} offset {self.queue_offset}"


class Kept(NamedTuple):
    """What lies there: whose message, where in the commit log, how long, and the event that tells it."""

    unique_key: str
    commit_log_offset: int
    size: int
    row: Row
