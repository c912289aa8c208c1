"""What each call over gRPC needs.

Java: org.apache.rocketmq.auth.authorization.builder.DefaultAuthorizationContextBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.auth.acl import PUB, SUB, Resource
from mqlab.auth.authorization import Need
from mqlab.auth.errors import AuthorizationException
from mqlab.errors import MqlabError
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import ClientType

if TYPE_CHECKING:
    from mqlab.protocol.v2.definition import Resource as Named

CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER)


def rpc_code(request: tuple[Any, ...]) -> str:
    """The full name of a request's message, which a white list names."""
    return f"apache.rocketmq.v2.{type(request).__name__}"


def needs_of_call(request: Any) -> list[Need]:  # a case for each kind of call
    """What a call needs, all of it; AuthorizationException when it does not say what it is about."""
    match request:
        case service.SendMessageRequest():
            if not request.messages:
                raise AuthorizationException("message is null.")
            return [_topic(request.messages[0].topic, PUB)]
        case service.RecallMessageRequest() | service.EndTransactionRequest():
            return [_topic(request.topic, PUB)]
        case service.HeartbeatRequest():
            return [_group(request.group)] if request.client_type in CONSUMERS else []
        case service.ReceiveMessageRequest():
            return [_group(request.group), _topic(request.message_queue.topic, SUB)]
        case (
            service.AckMessageRequest()
            | service.ForwardMessageToDeadLetterQueueRequest()
            | service.QueryAssignmentRequest()
        ):
            return [_group(request.group), _topic(request.topic, SUB)]
        case service.NotifyClientTerminationRequest():
            return [_group(request.group)] if request.group is not None and request.group.name.strip() else []
        case service.ChangeInvisibleDurationRequest():
            return [_group(request.group)]
        case service.QueryRouteRequest():
            return [_topic(request.topic, PUB, SUB)]
        case service.TelemetryCommand():
            return [] if request.settings is None else _settings(request.settings)
    return []


def _settings(settings: Any) -> list[Need]:
    if settings.publishing is not None:
        return [_topic(topic, PUB) for topic in settings.publishing.topics]
    if settings.subscription is None:
        raise MqlabError("settings command doesn't have publishing or subscription.")
    topics = [_topic(entry.topic, SUB) for entry in settings.subscription.subscriptions]
    return [_group(settings.subscription.group), *topics]


def _topic(topic: Named | None, *actions: str) -> Need:
    if topic is None or not topic.name.strip():
        raise AuthorizationException("topic is null.")
    return Need(Resource.topic(topic.name), actions)


def _group(group: Named | None) -> Need:
    if group is None or not group.name.strip():
        raise AuthorizationException("group is null.")
    return Need(Resource.group(group.name), (SUB,))
