"""What push and simple consumers of 5.x have in common: receiving, acknowledging, changing invisible times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.v5.client_impl import ClientImpl
from mqlab.client.v5.errors import ClientException, check_status
from mqlab.client.v5.filter_expression import FilterExpression
from mqlab.client.v5.message import MessageView
from mqlab.protocol.topics import check_group
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import (
    Code,
    MessageQueue,
    Resource,
    RetryPolicy,
    Settings,
    Status,
    Subscription,
    SubscriptionEntry,
)
from mqlab.protocol.v2.protobuf import Duration, name_of
from mqlab.rpc import RpcError
from mqlab.trace.events.proxy import MessageSettled, ReceiveFinished, ReceiveRequested

if TYPE_CHECKING:
    from mqlab.client.v5.client_configuration import ClientConfiguration
    from mqlab.sim import Node


class ConsumerImpl(ClientImpl):
    """A member of a group (org.apache.rocketmq.client.java.impl.consumer.ConsumerImpl)."""

    def __init__(
        self, node: Node, config: ClientConfiguration, group: str, subscriptions: dict[str, FilterExpression]
    ) -> None:
        super().__init__(node, config, group)
        self.subscriptions = subscriptions
        self.subscription_settings = Subscription()
        self.retry_policy = RetryPolicy()

    def topics(self) -> list[str]:
        """The names of the topics that the consumer has subscribed to."""
        return list(self.subscriptions)

    async def start(self) -> None:
        """Start the consumer; MQClientException for a group that may not have this name."""
        check_group(self.group)
        await super().start()

    def _subscription(self, long_polling_timeout: Duration | None) -> Settings:
        entries = tuple(
            SubscriptionEntry(Resource(name=topic), expression.to_protobuf())
            for topic, expression in self.subscriptions.items()
        )
        return Settings(
            client_type=self.client_type,
            access_point=self.endpoints,
            request_timeout=Duration(self.config.request_timeout),
            subscription=Subscription(
                group=self.group_resource, subscriptions=entries, long_polling_timeout=long_polling_timeout
            ),
        )

    def take_settings(self, settings: Settings) -> None:
        """What a proxy has decided: order, size of a batch, how long to wait, after which time to try again."""
        if settings.subscription is not None:
            self.subscription_settings = settings.subscription
        if settings.backoff_policy is not None:
            self.retry_policy = settings.backoff_policy

    # -- receiving --------------------------------------------------------------------------------------------------

    async def receive_message(self, request: service.ReceiveMessageRequest, await_ms: int) -> list[MessageView]:
        """Ask for messages and wait for the whole answer; none when nothing came in `await_ms`.

        Java: org.apache.rocketmq.client.java.impl.consumer.ConsumerImpl.receiveMessage.
        """
        queue = request.message_queue
        hooks = self.node.hooks
        where = (self.group, queue.topic.name, queue.broker.name, queue.id)
        if hooks.on:
            hooks.emit(ReceiveRequested(*where, request.batch_size, request.attempt_id or ""))
        status, messages = Status(Code.INTERNAL_SERVER_ERROR, "status was not set by server"), []
        timeout_ms = await_ms + self.config.request_timeout
        delivery_timestamp = None
        try:
            said = await self.rpc.server_stream(
                str(queue.broker.endpoints), service.RECEIVE_MESSAGE, request, timeout_ms
            )
        except RpcError as error:
            if hooks.on:
                hooks.emit(ReceiveFinished(*where, error.code.name, 0))
            raise ClientException(str(error)) from error
        for part in said:
            if part.status is not None:
                status = part.status
            elif part.message is not None:
                messages.append(part.message)
            else:
                delivery_timestamp = part.delivery_timestamp
        if hooks.on:
            hooks.emit(ReceiveFinished(*where, name_of(status.code), len(messages)))
        check_status(status)
        return [MessageView(message, queue.broker, delivery_timestamp) for message in messages]

    def receive_request(
        self,
        queue: MessageQueue,
        expression: FilterExpression,
        batch_size: int,
        await_ms: int,
        *,
        invisible_ms: int | None = None,
        attempt_id: str | None = None,
    ) -> service.ReceiveMessageRequest:
        """A wish for messages; without an invisible time the proxy keeps them invisible for as long as it takes."""
        return service.ReceiveMessageRequest(
            group=Resource(name=self.group),
            message_queue=queue,
            filter_expression=expression.to_protobuf(),
            batch_size=batch_size,
            invisible_duration=Duration(invisible_ms) if invisible_ms is not None else None,
            auto_renew=invisible_ms is None,
            long_polling_timeout=Duration(await_ms),
            attempt_id=attempt_id,
        )

    # -- settling ---------------------------------------------------------------------------------------------------

    async def ack_message(self, message: MessageView) -> None:
        """Say that a message is done; ClientException when that does not count."""
        entry = service.AckMessageEntry(message.message_id, message.receipt_handle)
        request = service.AckMessageRequest(Resource(name=self.group), Resource(name=message.topic), (entry,))
        response = await self.call(message.endpoints, service.ACK_MESSAGE, request)
        check_status(response.status)
        self.tell_settled(message, "ack", 0)

    async def change_invisible_duration(self, message: MessageView, invisible_ms: int, settled_as: str) -> None:
        """Let a message be invisible from now on for so long; it has a new handle then."""
        request = service.ChangeInvisibleDurationRequest(
            Resource(name=self.group),
            Resource(name=message.topic),
            message.receipt_handle,
            Duration(invisible_ms),
            message.message_id,
        )
        response = await self.call(message.endpoints, service.CHANGE_INVISIBLE_DURATION, request)
        check_status(response.status)
        message.receipt_handle = response.receipt_handle
        self.tell_settled(message, settled_as, invisible_ms)

    async def forward_message_to_dead_letter_queue(self, message: MessageView) -> None:
        """Give a message up."""
        request = service.ForwardMessageToDeadLetterQueueRequest(
            Resource(name=self.group),
            Resource(name=message.topic),
            message.receipt_handle,
            message.message_id,
            message.delivery_attempt,
            self.retry_policy.max_attempts,
        )
        rpc = service.FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE
        response = await self.call(message.endpoints, rpc, request)
        check_status(response.status)
        self.tell_settled(message, "dead letter", 0)

    def tell_settled(self, message: MessageView, settled_as: str, invisible_ms: int) -> None:
        """Note what became of a delivery."""
        if self.node.hooks.on:
            self.node.hooks.emit(
                MessageSettled(
                    self.group, message.topic, message.broker_name, message.queue_id, message.queue_offset,
                    message.message_id, settled_as, invisible_ms, message.delivery_attempt,
                )
            )  # fmt: skip
