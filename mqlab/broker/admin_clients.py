"""What administrators ask about single clients: the broker passes the question on."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.broker.broker2client import Broker2Client
from mqlab.broker.errors import RequestError
from mqlab.errors import ProtocolError
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.message_id import decode_message_id

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel

    Later = Coroutine[Any, Any, RemotingCommand]

NO_MESSAGE = (
    'java.lang.NullPointerException: Cannot invoke "org.apache.rocketmq.store.SelectMappedBufferResult.getSize()" '
    'because "selectMappedBufferResult" is null, org.apache.rocketmq.broker.processor.AdminBrokerProcessor.'
    "consumeMessageDirectly(AdminBrokerProcessor.java:2367)"
)
"""RocketMQ itself stumbles over the id of a message that is not there, and this is what it says."""


class AdminClients:
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS, GET_CONSUMER_RUNNING_INFO and CONSUME_MESSAGE_DIRECTLY.

    Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor. A thread waits until the client has answered, 10 s
    at most, and the client's own answer is the broker's.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._clients = Broker2Client(broker)

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self._get_consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._get_consumer_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_message_directly,
        }

    def _get_consumer_status(self, channel: Channel, request: RemotingCommand) -> Later:
        header = request.header_as(h.GetConsumerStatusRequestHeader)
        return self._clients.get_consume_status(header.topic, header.group, header.client_addr)

    def _get_consumer_running_info(self, channel: Channel, request: RemotingCommand) -> Later:
        header = request.header_as(h.GetConsumerRunningInfoRequestHeader)
        asked = RemotingCommand.request(request.code, header)
        return self._clients.call_consumer(asked, header.consumer_group, header.client_id)

    def _consume_message_directly(self, channel: Channel, request: RemotingCommand) -> Later:
        header = request.header_as(h.ConsumeMessageDirectlyResultRequestHeader)
        broker = self._broker
        header = header._replace(broker_name=broker.broker_config.broker_name)
        topic_config = broker.topic_config_manager.topic_config_table.get(header.topic) if header.topic else None
        if topic_config is not None:
            header = header._replace(topic_sys_flag=topic_config.topic_sys_flag)
        group_config = broker.subscription_group_manager.find_subscription_group_config(header.consumer_group)
        if group_config is not None:
            header = header._replace(group_sys_flag=group_config.group_sys_flag)
        try:
            offset = decode_message_id(header.msg_id or "").offset
        except ProtocolError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        body = broker.message_store.select_one_message_by_offset(offset)
        if body is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, NO_MESSAGE)
        asked = RemotingCommand.request(request.code, header, body)
        return self._clients.call_consumer(asked, header.consumer_group, header.client_id)
