"""What a broker asks of the filter of a subscription, and the one place that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mqlab.broker.errors import RequestError
from mqlab.broker.filter.expression_message_filter import ExpressionMessageFilter
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ExpressionType
from mqlab.store.get_message import MessageFilter as StoreMessageFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mqlab.protocol.heartbeat import SubscriptionData


class MessageFilter(StoreMessageFilter, Protocol):
    """The filter that the store asks while it reads; a broker also asks it of messages that have just arrived."""

    @property
    def wants_all(self) -> bool:
        """Can no message fail? Then nobody needs to ask."""
        ...

    def is_matched_by_consume_queue(self, tags_code: int | None) -> bool:
        """Could a message with this tags code be wanted? None is a code that nobody knows."""
        ...

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """Is a message with these properties wanted?"""
        ...


def check_expression_type(expression_type: str | None) -> None:
    """RequestError (SYSTEM_ERROR, in RocketMQ's words) if no filter reads expressions of this type."""
    if not ExpressionType.is_tag_type(expression_type):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {expression_type}",
        )


def filter_for(subscription: SubscriptionData) -> MessageFilter:
    """The filter of a subscription; RequestError as `check_expression_type` says."""
    check_expression_type(subscription.expression_type)
    return ExpressionMessageFilter(subscription)
