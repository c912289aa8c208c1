"""What a broker asks of the filter of a subscription."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.store import GetMessageResult
    from mqlab.trace.bus import Bus


class MessageFilter:
    """Which messages a subscription wants (org.apache.rocketmq.store.MessageFilter).

    The store asks it twice while it reads: with what the queue says, and with the record that was read. For a message
    that has just arrived a broker asks with what its queue got, and with the properties.
    """

    __slots__ = ()

    @property
    def wants_all(self) -> bool:
        """Can no message fail? Then nobody needs to ask."""
        raise NotImplementedError(f"{type(self).__name__} must define wants_all")

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """Could a message with this tags code be wanted? None is a code that nobody knows.

        `filter_bit_map` says which filters it passed when it was dispatched, None that nobody looked; it was stored at
        `msg_store_time` (ms).
        """
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_consume_queue()")

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Is the message with these bytes wanted?"""
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_commit_log()")

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Is a message with these properties wanted?"""
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_properties()")

    def tell_read(self, hooks: Bus, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> None:
        """The store has read from `offset` on with this filter: say in the trace what it held back, if that is told."""
