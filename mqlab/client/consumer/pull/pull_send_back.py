"""Giving a pulled message back: the broker delivers it again later, from the group's retry topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.push.send_back import send_copy_to_retry_topic
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.message import MessageExt
from mqlab.trace.events.client import MessageGivenBack

if TYPE_CHECKING:
    from mqlab.client.consumer.pull.default_mq_pull_consumer_impl import DefaultMQPullConsumerImpl

SEND_BACK_TIMEOUT_MS = 3_000


async def send_pulled_message_back(
    owner: DefaultMQPullConsumerImpl, message: MessageExt, delay_level: int, broker_name: str | None, group: str
) -> None:
    """Give a message back to its broker, or else send a copy to the retry topic; the error if both fail.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPullConsumerImpl.sendMessageBack.
    """
    try:
        await _to_its_broker(owner, message, delay_level, broker_name, group)
    except (RemotingException, MQBrokerException, MQClientException):
        await send_copy_to_retry_topic(owner.instance, owner.group_name, message, owner.consumer.max_reconsume_times)
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
