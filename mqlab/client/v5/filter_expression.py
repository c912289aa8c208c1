"""Which messages of a topic a consumer wants."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.protocol.v2 import definition as v2

SUB_ALL_EXPRESSION = "*"


class FilterExpression(NamedTuple):
    """A filter by tags, or an SQL92 condition on properties.

    Java: org.apache.rocketmq.client.apis.consumer.FilterExpression.
    """

    expression: str = SUB_ALL_EXPRESSION
    sql: bool = False

    def to_protobuf(self) -> v2.FilterExpression:
        """The filter as it travels."""
        return v2.FilterExpression(v2.FilterType.SQL if self.sql else v2.FilterType.TAG, self.expression)


def checked_filter(expression: FilterExpression | str) -> FilterExpression:
    """The filter; a text stands for tags."""
    if isinstance(expression, FilterExpression):
        return expression
    if not isinstance(expression, str):
        raise LearnerError(f"{expression!r} is no filter", 'write tags, such as "paid || shipped", or "*" for all')
    return FilterExpression(expression)
