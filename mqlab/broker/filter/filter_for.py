"""The one place that makes the filter of a subscription, and refuses expressions that no filter reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.broker.filter.expression_message_filter import ExpressionMessageFilter
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ExpressionType

if TYPE_CHECKING:
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.heartbeat import SubscriptionData


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
