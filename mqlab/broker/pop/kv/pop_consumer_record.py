"""What is known of one message that a consumer group has in hand: when it was popped, and how long for."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mqlab.protocol.json_text import json_string

_TIME = struct.Struct(">q")
_QUEUE_AND_OFFSET = struct.Struct(">i1sq")
LATEST_MS = (1 << 63) - 1
"""Behind every time that a record can have."""


class RetryType(IntEnum):
    """From which kind of topic a message was popped (PopConsumerRecord.RetryType)."""

    NORMAL_TOPIC = 0
    RETRY_TOPIC_V1 = 1
    RETRY_TOPIC_V2 = 2


@dataclass(frozen=True, slots=True)
class PopConsumerRecord:
    """One message in the hands of one group (org.apache.rocketmq.broker.pop.PopConsumerRecord).

    `topic` is the real one, so of a redelivered message the retry topic; times are ms (since 1970 for `pop_time`).
    `attempt_times` counts how often putting it into the retry topic has failed.
    """

    pop_time: int
    group: str
    topic: str
    queue_id: int
    retry_flag: int
    invisible_time: int
    offset: int
    attempt_times: int = 0
    attempt_id: str | None = None

    @property
    def visibility_timeout(self) -> int:
        """When the message can be seen again, ms since 1970."""
        return self.pop_time + self.invisible_time

    @property
    def is_retry(self) -> bool:
        """Was it popped from a retry topic?"""
        return self.retry_flag != RetryType.NORMAL_TOPIC

    def key(self) -> bytes:
        """Time (8 bytes), group@topic@queue@offset: so what is due first comes first."""
        names = f"{self.group}@{self.topic}@".encode()
        return time_key(self.visibility_timeout) + names + _QUEUE_AND_OFFSET.pack(self.queue_id, b"@", self.offset)

    def value(self) -> bytes:
        """The record as RocketMQ's JSON, the fields in its order; an attempt id that is not there is left out."""
        attempt = f',"attemptId":{json_string(self.attempt_id)}' if self.attempt_id is not None else ""
        return (
            f'{{"popTime":{self.pop_time},"groupId":{json_string(self.group)},"topicId":{json_string(self.topic)},'
            f'"queueId":{self.queue_id},"retryFlag":{self.retry_flag},"invisibleTime":{self.invisible_time},'
            f'"offset":{self.offset},"attemptTimes":{self.attempt_times}{attempt}}}'
        ).encode()

    @staticmethod
    def decode(value: bytes) -> PopConsumerRecord:
        """The record that `value` wrote."""
        read: dict[str, Any] = json.loads(value)
        return PopConsumerRecord(
            read["popTime"],
            read["groupId"],
            read["topicId"],
            read["queueId"],
            read["retryFlag"],
            read["invisibleTime"],
            read["offset"],
            read["attemptTimes"],
            read.get("attemptId"),
        )


def time_key(ms: int) -> bytes:
    """Where the keys of a time begin."""
    return _TIME.pack(ms)
