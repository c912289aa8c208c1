"""Giving a message back: the broker delivers it again later, from the group's retry topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.message import Message, MessageConst, MessageExt
from mqlab.protocol.topics import retry_topic
from mqlab.trace.events.client import MessageGivenBack, SendBackFailed

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import ConsumerImpl
    from mqlab.client.mq_client_instance import MQClientInstance

SEND_BACK_TIMEOUT_MS = 5_000
DEFAULT_MAX_RECONSUME_TIMES = 16

_FAILURES = (RemotingException, MQBrokerException, MQClientException)


async def send_message_back(
    owner: ConsumerImpl, message: MessageExt, delay_level: int, max_reconsume_times: int
) -> bool:
    """Give a message back to the broker that holds it, or else send a copy to the retry topic; False if both fail.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.sendMessageBack.
    """
    try:
        await _to_its_broker(owner, message, delay_level, max_reconsume_times)
    except _FAILURES:
        try:
            await send_copy_to_retry_topic(owner.instance, owner.group_name, message, max_reconsume_times)
        except _FAILURES as error:
            _report_failure(owner, message, error)
            return False
    _report_given_back(owner, message, delay_level)
    return True


async def _to_its_broker(
    owner: ConsumerImpl, message: MessageExt, delay_level: int, max_reconsume_times: int
) -> None:
    broker_name = message.broker_name
    address: str | None = message.store_host
    if broker_name is not None:
        address = owner.instance.routes.find_broker_address_in_publish(broker_name)
    if not address:
        raise MQClientException(f"Broker[{broker_name}] master node does not exist")
    await owner.instance.api.consumer_send_message_back(
        address,
        broker_name,
        message,
        owner.group_name,
        delay_level,
        SEND_BACK_TIMEOUT_MS,
        max_reconsume_times,
    )


async def send_orderly_to_retry_topic(owner: ConsumerImpl, message: MessageExt, max_reconsume_times: int) -> bool:
    """Send an orderly message that was tried too often to the retry topic, which the broker turns into a dead letter.

    False if that was not possible.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService.sendMessageBack.
    """
    try:
        await send_copy_to_retry_topic(owner.instance, owner.group_name, message, max_reconsume_times)
    except _FAILURES as error:
        _report_failure(owner, message, error)
        return False
    _report_given_back(owner, message, 0)
    return True


async def send_copy_to_retry_topic(
    instance: MQClientInstance, group: str, message: MessageExt, max_reconsume_times: int
) -> None:
    """Send a copy of a message to the group's retry topic, as an ordinary message with a delay level.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.sendMessageBackAsNormalMessage.
    """
    copy = Message(retry_topic(group), message.body, flag=message.flag)
    properties = dict(message.properties)
    properties.setdefault(MessageConst.ORIGIN_MESSAGE_ID, message.msg_id)
    properties[MessageConst.RETRY_TOPIC] = message.topic
    properties[MessageConst.RECONSUME_TIME] = str(message.reconsume_times + 1)
    properties[MessageConst.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    properties.pop(MessageConst.TRANSACTION_PREPARED, None)
    copy.properties = properties
    copy.delay_time_level = 3 + message.reconsume_times
    inner = instance.inner_producer
    await inner.send.inside(inner, copy)


def _report_given_back(owner: ConsumerImpl, message: MessageExt, delay_level: int) -> None:
    hooks = owner.node.hooks
    if hooks.on:
        hooks.emit(MessageGivenBack(*_which(owner, message), delay_level, message.reconsume_times))


def _report_failure(owner: ConsumerImpl, message: MessageExt, error: Exception) -> None:
    hooks = owner.node.hooks
    if hooks.on:
        hooks.emit(SendBackFailed(*_which(owner, message), str(error)))


def _which(owner: ConsumerImpl, message: MessageExt) -> tuple[str, str, str, int, int, str]:
    """The group and the message, as both events have them."""
    broker_name = message.broker_name or ""
    return owner.group_name, message.topic, broker_name, message.queue_id, message.queue_offset, message.msg_id
