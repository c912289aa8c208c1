"""The filter of one group for one topic, as a broker keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mqlab.filter import BloomFilterData, MQFilterException, compile_filter, is_filter_type
from mqlab.protocol.errors import BodyError
from mqlab.protocol.heartbeat import ExpressionType

if TYPE_CHECKING:
    from mqlab.filter import Expression


@dataclass(slots=True)
class ConsumerFilterData:
    """An expression with the time in which it was valid (org.apache.rocketmq.broker.filter.ConsumerFilterData).

    Times are ms. It is dead from `dead_time` on, unless that is before `born_time` (0: alive). Messages that were
    stored before it was born are not to be looked up in bit maps. `client_version` is the subscription's version;
    `bloom_filter_data` are the bits of group and topic. One that was read from a file and cannot be compiled has no
    `compiled_expression`, and wants everything.
    """

    consumer_group: str
    topic: str
    expression: str
    expression_type: str
    compiled_expression: Expression | None
    born_time: int
    client_version: int
    dead_time: int = 0
    bloom_filter_data: BloomFilterData | None = None

    @property
    def is_dead(self) -> bool:
        """Is nobody there who wants this?"""
        return self.dead_time >= self.born_time

    def is_msg_in_live(self, msg_store_time: int) -> bool:
        """Was a message stored when this was there already?"""
        return msg_store_time > self.born_time

    def to_json(self) -> dict[str, Any]:
        """As it stands in consumerFilter.json."""
        bloom = self.bloom_filter_data
        return {
            **({} if bloom is None else {"bloomFilterData": {"bitNum": bloom.bit_num, "bitPos": bloom.bit_pos}}),
            "bornTime": self.born_time,
            "clientVersion": self.client_version,
            "consumerGroup": self.consumer_group,
            "dead": self.is_dead,
            "deadTime": self.dead_time,
            "expression": self.expression,
            "expressionType": self.expression_type,
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, value: Any) -> ConsumerFilterData:
        """Of such an object, compiled if that can be done; BodyError for another."""
        try:
            bloom = value.get("bloomFilterData")
            positions = None if bloom is None else tuple(int(position) for position in bloom["bitPos"])
            data = cls(
                str(value["consumerGroup"]),
                str(value["topic"]),
                str(value["expression"]),
                str(value["expressionType"]),
                None,
                int(value.get("bornTime", 0)),
                int(value.get("clientVersion", 0)),
                int(value.get("deadTime", 0)),
                None if positions is None else BloomFilterData(positions, int(bloom["bitNum"])),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BodyError("consumerFilter.json", f"{value!r} is no filter of a consumer ({error!r})") from None
        data.compiled_expression = compiled(data.expression_type, data.expression)
        return data


def compiled(expression_type: str, expression: str) -> Expression | None:
    """The expression, ready to judge messages; None for one that cannot be read, and for a language without filters."""
    if not is_filter_type(expression_type):
        return None
    try:
        return compile_filter(expression_type, expression)
    except MQFilterException:
        return None


def build_filter_data(
    topic: str, group: str, expression: str, expression_type: str | None, client_version: int, now_ms: int
) -> ConsumerFilterData | None:
    """The data of a filter that is born now; None for tags, and for an expression that cannot be read.

    Java: org.apache.rocketmq.broker.filter.ConsumerFilterManager.build.
    """
    if expression_type is None or ExpressionType.is_tag_type(expression_type):
        return None
    condition = compiled(expression_type, expression)
    if condition is None:
        return None
    return ConsumerFilterData(group, topic, expression, expression_type, condition, now_ms, client_version)
