"""Which messages a consumer wants by their properties, decided by the broker in two stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqlab.broker.filter.message_filter import MessageFilter
from mqlab.filter import BitsArray, FilterEvaluationError
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import is_retry_topic, parse_group
from mqlab.trace.events.filter import MessagesFilteredByBroker

if TYPE_CHECKING:
    from mqlab.broker.filter.consumer_filter_data import ConsumerFilterData
    from mqlab.broker.filter.consumer_filter_manager import ConsumerFilterManager
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.store import GetMessageResult
    from mqlab.trace.bus import Bus

PROPERTY_RETRY_TOPIC = "RETRY_TOPIC"


class PropertyMessageFilter(MessageFilter):
    """The filter of a subscription by SQL92: the other half of RocketMQ's ExpressionMessageFilter.

    First stage: the bits that the message got when it was dispatched, if it got any while this filter was known. They
    may say yes where the answer is no, never the other way. Second stage: the expression. What it does not find true
    is not wanted; and without `data` (an expression that could not be read) everything is.

    Java: org.apache.rocketmq.broker.filter.ExpressionMessageFilter. Differs from RocketMQ: an entry of zeros, as a loss
    of power may leave one, fulfils no condition. In 5.3.3 each pull that comes to it fails
    (MessageDecoder.decodeProperties reads behind the end of nothing).
    """

    __slots__ = ("_bits_are_known", "_by_bit_map", "_by_expression", "_data", "_filters", "_group", "_not_judged",
                 "subscription")  # fmt: skip

    def __init__(
        self,
        group: str,
        subscription: SubscriptionData,
        data: ConsumerFilterData | None,
        filters: ConsumerFilterManager,
    ) -> None:
        self.subscription = subscription
        self._group = group
        self._data = data
        self._filters = filters
        self._bits_are_known = data is not None and filters.bloom_filter.is_valid(data.bloom_filter_data)
        self._by_bit_map = 0
        self._by_expression = 0
        self._not_judged = 0

    @property
    def wants_all(self) -> bool:
        """True when no message can fail."""
        return self.subscription.class_filter_mode or self._data is None or self._data.compiled_expression is None

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """First stage: may the message be wanted, by the bits of those filters that it has passed?"""
        data = self._data
        if filter_bit_map is None or data is None or data.compiled_expression is None or not self._bits_are_known:
            return True
        bloom, bits = self._filters.bloom_filter, data.bloom_filter_data
        if bits is None or not data.is_msg_in_live(msg_store_time) or len(filter_bit_map) * 8 != bits.bit_num:
            return True
        if bloom.is_hit(bits, BitsArray(filter_bit_map)):
            return True
        self._by_bit_map += 1
        return False

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Second stage, for a record that was read; an entry of zeros has none."""
        if not record:
            return False
        return self.is_matched_by_properties(decode_record(record, decompress=False, read_body=False).properties)

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Second stage, for a message that has just arrived."""
        return self._is_true(self._data, properties)

    def _is_true(self, data: ConsumerFilterData | None, properties: Mapping[str, str]) -> bool:
        if self.subscription.class_filter_mode or data is None or data.compiled_expression is None:
            return True
        try:
            if data.compiled_expression.evaluate(properties) is True:
                return True
        except FilterEvaluationError:
            self._not_judged += 1
        self._by_expression += 1
        return False

    def tell_read(self, hooks: Bus, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> None:
        """Say in the trace what was held back since this was told last."""
        if hooks.on and (self._by_bit_map or self._by_expression):
            hooks.emit(
                MessagesFilteredByBroker(
                    self._group,
                    topic,
                    queue_id,
                    offset,
                    result.next_begin_offset,
                    result.message_count,
                    self._by_bit_map,
                    self._by_expression,
                    self._not_judged,
                    self.subscription.sub_string,
                )
            )
        self._by_bit_map = self._by_expression = self._not_judged = 0


class ExpressionForRetryMessageFilter(PropertyMessageFilter):
    """For a retry topic: each message is judged by what its group wants of the topic from which it came.

    Java: org.apache.rocketmq.broker.filter.ExpressionForRetryMessageFilter, which `filter_support_retry` sets in. It
    concerns who subscribes to a retry topic by SQL92 itself; push consumers subscribe to theirs by `*`.
    """

    __slots__ = ()

    @property
    def wants_all(self) -> bool:
        """True when no message can fail."""
        return super().wants_all and not is_retry_topic(self.subscription.topic)

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Second stage, for a message that has just arrived."""
        topic = self.subscription.topic
        if not is_retry_topic(topic):
            return super().is_matched_by_properties(properties)
        origin = properties.get(PROPERTY_RETRY_TOPIC, "")
        return self._is_true(self._filters.get(origin, parse_group(topic)), properties)
