"""What a broker asks of the filter of a subscription."""

from __future__ import annotations

from collections.abc import Mapping


class MessageFilter:
    """Which messages a subscription wants (org.apache.rocketmq.store.MessageFilter).

    The store asks it twice while it reads: with the tags code of the queue entry, and with the record that was read.
    For a message that has just arrived a broker asks with the tags code, and with the properties.
    """

    __slots__ = ()

    @property
    def wants_all(self) -> bool:
        """Can no message fail? Then nobody needs to ask."""
        raise NotImplementedError(f"{type(self).__name__} must define wants_all")

    def is_matched_by_consume_queue(self, tags_code: int | None) -> bool:
        """Could a message with this tags code be wanted? None is a code that nobody knows."""
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_consume_queue()")

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Is the message with these bytes wanted?"""
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_commit_log()")

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Is a message with these properties wanted?"""
        raise NotImplementedError(f"{type(self).__name__} must define is_matched_by_properties()")
