"""The one place that makes the filter of a subscription, and refuses expressions that no filter reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.broker.filter.expression_message_filter import ExpressionMessageFilter
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ExpressionType

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.filter.consumer_filter_data import ConsumerFilterData
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.heartbeat import SubscriptionData


def check_expression_type(config: BrokerConfig, expression_type: str | None) -> None:
    """RequestError (SYSTEM_ERROR, in RocketMQ's words) where filters by anything else than tags are switched off."""
    if not config.enable_property_filter and not ExpressionType.is_tag_type(expression_type):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {expression_type}",
        )


def check_expression(subscription: SubscriptionData) -> None:
    """RequestError (SUBSCRIPTION_PARSE_FAILED, with the parser's text) for an expression that cannot be read.

    Java: org.apache.rocketmq.broker.processor.ClientManageProcessor.checkClientConfig. Differs from RocketMQ: the
    answer for a language that no filter reads says so; there it has the words of a NullPointerException.
    """
    if subscription.expression_type is None or ExpressionType.is_tag_type(subscription.expression_type):
        return
    from mqlab.filter import MQFilterException, compile_filter

    try:
        compile_filter(subscription.expression_type, subscription.sub_string)
    except MQFilterException as error:
        raise RequestError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, error.message) from None
    except LookupError:
        raise RequestError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"no filter reads {subscription.expression_type}"
        ) from None


def filter_of_pull(
    broker: BrokerParts, group: str, subscription: SubscriptionData, sub_version: int, *, in_request: bool
) -> MessageFilter:
    """The filter of a pull, whose subscription came with it (`in_request`) or stands in a heartbeat of its group.

    RequestError for a filter that is not known, or not as new as `sub_version`, and as `check_expression_type` says. An
    expression that came with the pull and cannot be read holds nothing back, as in RocketMQ, whose check of it is an
    `assert` that no broker runs.
    """
    kind = subscription.expression_type
    if ExpressionType.is_tag_type(kind):
        return ExpressionMessageFilter(subscription)
    if in_request:
        check_expression_type(broker.broker_config, kind)
        from mqlab.broker.filter.consumer_filter_data import build_filter_data

        topic, expression = subscription.topic, subscription.sub_string
        data = build_filter_data(topic, group, expression, kind, sub_version, broker.node.now_ms())
    else:
        data = broker.consumer_filters.manager.get(subscription.topic, group)
        if data is None:
            raise RequestError(
                ResponseCode.FILTER_DATA_NOT_EXIST,
                "The broker's consumer filter data is not exist!Your expression may be wrong!",
            )
        if data.client_version < sub_version:
            raise RequestError(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
        check_expression_type(broker.broker_config, kind)
    return _property_filter(broker, group, subscription, data, retry=broker.broker_config.filter_support_retry)


def filter_of_pop(broker: BrokerParts, group: str, subscription: SubscriptionData) -> MessageFilter:
    """The filter of a pop, whose subscription always comes with it.

    RequestError (SUBSCRIPTION_PARSE_FAILED) for an expression that cannot be read. As in RocketMQ nobody asks here
    whether filters other than by tags are switched on.
    """
    kind = subscription.expression_type
    if ExpressionType.is_tag_type(kind):
        return ExpressionMessageFilter(subscription)
    from mqlab.broker.filter.consumer_filter_data import build_filter_data

    now_ms = broker.node.now_ms()
    data = build_filter_data(subscription.topic, group, subscription.sub_string, kind, now_ms, now_ms)
    if data is None:
        raise RequestError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    return _property_filter(broker, group, subscription, data, retry=False)


def _property_filter(
    broker: BrokerParts, group: str, subscription: SubscriptionData, data: ConsumerFilterData | None, *, retry: bool
) -> MessageFilter:
    from mqlab.broker.filter.property_message_filter import ExpressionForRetryMessageFilter, PropertyMessageFilter

    kind = ExpressionForRetryMessageFilter if retry else PropertyMessageFilter
    return kind(group, subscription, data, broker.consumer_filters.manager)
