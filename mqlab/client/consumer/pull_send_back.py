"""Giving a pulled message back: the broker delivers it again later, from the group's retry topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.message import Message, MessageConst, MessageExt
from mqlab.protocol.topics import retry_topic
from mqlab.trace.events.client import MessageGivenBack

if TYPE_CHECKING:
    from .default_mq_pull_consumer_impl import DefaultMQPullConsumerImpl

SEND_BACK_TIMEOUT_MS = 3_000


async def send_pulled_message_back(
    owner: DefaultMQPullConsumerImpl, message: MessageExt, delay_level: int, broker_name: str | None, group: str
) -> None:
    """Give a message back to its broker, or else send a copy to the retry topic; the error if both fail.

    Java: DefaultMQPullConsumerImpl.sendMessageBack.
    """
    try:
        await _to_its_broker(owner, message, delay_level, broker_name, group)
    except (RemotingException, MQBrokerException, MQClientException):
        await _as_a_normal_message(owner, message)
    hooks = owner.node.hooks
    if hooks.on:
        queue = (message.topic, message.broker_name or "", message.queue_id)
        hooks.emit(
            MessageGivenBack(group, *queue, message.queue_offset, message.msg_id, delay_level, message.reconsume_times)
        )


async def _to_its_broker(
    owner: DefaultMQPullConsumerImpl, message: MessageExt, delay_level: int, broker_name: str | None, group: str
) -> None:
    instance = owner.instance
    address: str | None = message.store_host
    if broker_name is not None:
        address = instance.routes.find_broker_address_in_publish(broker_name)
    if not address:
        raise MQClientException(f"Broker[{broker_name}] master node does not exist")
    await instance.api.consumer_send_message_back(
        address,
        broker_name,
        message,
        group,
        delay_level,
        SEND_BACK_TIMEOUT_MS,
        owner.consumer.max_reconsume_times,
    )


async def _as_a_normal_message(owner: DefaultMQPullConsumerImpl, message: MessageExt) -> None:
    copy = Message(retry_topic(owner.group_name), message.body, flag=message.flag)
    copy.properties = {
        MessageConst.ORIGIN_MESSAGE_ID: message.msg_id,
        **message.properties,
        MessageConst.RETRY_TOPIC: message.topic,
        MessageConst.RECONSUME_TIME: str(message.reconsume_times + 1),
        MessageConst.MAX_RECONSUME_TIMES: str(owner.consumer.max_reconsume_times),
    }
    copy.delay_time_level = 3 + message.reconsume_times
    inner = owner.instance.inner_producer
    await inner.send.inside(inner, copy)  # type: ignore[attr-defined]  # public_call's plain coroutine
