"""Which messages a consumer wants by their tags, decided by the broker in two stages."""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.broker.filter.message_filter import MessageFilter
from mqlab.protocol.heartbeat import SUB_ALL, SubscriptionData


class ExpressionMessageFilter(MessageFilter):
    """The filter of a subscription to tags (org.apache.rocketmq.broker.filter.ExpressionMessageFilter).

    First stage: the queue entry alone, by the hash of the tag, without reading the message. Two tags can share a
    hash, so the consumer looks at the tag itself again. Second stage: the message with its properties, which tags do
    not need.
    """

    __slots__ = ("_codes", "subscription")

    def __init__(self, subscription: SubscriptionData) -> None:
        self.subscription = subscription
        wants_all = subscription.class_filter_mode or subscription.sub_string == SUB_ALL
        self._codes = None if wants_all else subscription.code_set

    @property
    def wants_all(self) -> bool:
        """True when no message can fail."""
        return self._codes is None

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """First stage: does the tag hash of a queue entry fit? None, an unknown hash, fits."""
        codes = self._codes
        return codes is None or tags_code is None or tags_code in codes

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Second stage, for a record that was read: for tags everything was said in the first stage."""
        return True

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Second stage, for a message that has just arrived: for tags everything was said in the first stage."""
        return True
