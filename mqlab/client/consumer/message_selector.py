"""Which messages of a topic are wanted, in the language of tags or of SQL92."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.protocol.heartbeat import SUB_ALL, ExpressionType


class MessageSelector(NamedTuple):
    """An expression and its language: `MessageSelector.by_sql("amount > 100")`.

    Java: org.apache.rocketmq.client.consumer.MessageSelector.
    """

    expression_type: str
    expression: str

    @classmethod
    def by_tag(cls, tags: str = SUB_ALL) -> MessageSelector:
        """Messages with one of these tags, `"TagA || TagB"`, or all with `"*"`."""
        return cls(ExpressionType.TAG, tags)

    @classmethod
    def by_sql(cls, condition: str) -> MessageSelector:
        """Messages whose properties fulfil a condition of SQL92; the broker needs enable_property_filter."""
        return cls(ExpressionType.SQL92, condition)
