"""What one pop has found so far, queue by queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord, RetryType
from mqlab.protocol.extra_info import msg_offset_info, start_offset_info
from mqlab.store import GetMessageResult


class Found(NamedTuple):
    """The messages that were found in one queue; `start_offset` is where the group stood in it."""

    topic: str
    queue_id: int
    retry_type: RetryType
    start_offset: int
    result: GetMessageResult


@dataclass(slots=True)
class PopConsumerContext:
    """One pop under way, and in the end what its answer says (org.apache.rocketmq.broker.pop.PopConsumerContext).

    `rest_count` counts what was left over. `failed` says that what was found could not be noted, so that there must be
    no answer.
    """

    pop_time: int
    invisible_time: int
    group: str
    topic: str
    fifo: bool
    init_mode: int
    attempt_id: str | None
    rest_count: int = 0
    failed: bool = False
    order_count_info: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)

    @property
    def message_count(self) -> int:
        """How many messages were found."""
        return sum(one.result.message_count for one in self.found)

    @property
    def is_found(self) -> bool:
        """Whether any queue had a message for this pop."""
        return bool(self.found)

    def start_offset_infos(self) -> list[str]:
        """Where each queue's messages begin, as the answer says it."""
        return [start_offset_info(one.topic, one.queue_id, one.start_offset) for one in self.found]

    def msg_offset_infos(self) -> list[str]:
        """The offsets of each queue's messages, as the answer says them."""
        return [msg_offset_info(one.topic, one.queue_id, one.result.queue_offsets) for one in self.found]

    def records(self) -> list[PopConsumerRecord]:
        """One record for each message."""
        return [
            PopConsumerRecord(
                self.pop_time,
                self.group,
                one.topic,
                one.queue_id,
                one.retry_type,
                self.invisible_time,
                offset,
                attempt_id=self.attempt_id,
            )
            for one in self.found
            for offset in one.result.queue_offsets
        ]
