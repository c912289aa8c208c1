"""What a broker asks of its clients on behalf of administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.errors import RemotingException, RemotingTimeoutException
from mqlab.protocol.bodies import GetConsumerStatusBody, ResetOffsetBody
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import BodyError
from mqlab.protocol.headers import GetConsumerStatusRequestHeader, ResetOffsetRequestHeader
from mqlab.protocol.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts

CALL_TIMEOUT_MS = 10_000
RESET_TIMEOUT_MS = 5_000
STATUS_TIMEOUT_MS = 5_000
NO_CODE_SET = "not set any response code"
"""What stands in an answer of RocketMQ that got its code and no text."""

NO_GROUP = (
    'java.lang.NullPointerException: Cannot invoke "org.apache.rocketmq.broker.client.ConsumerGroupInfo.'
    'getChannelInfoTable()" because the return value of "org.apache.rocketmq.broker.client.ConsumerManager.'
    'getConsumerGroupInfo(String)" is null, '
    "org.apache.rocketmq.broker.client.net.Broker2Client.getConsumeStatus(Broker2Client.java:246)"
)
"""RocketMQ itself stumbles over a group of which nobody is online, and this is what the administrator gets to read."""


class Broker2Client:
    """Hands questions on to the members of consumer groups (org.apache.rocketmq.broker.client.net.Broker2Client).

    Differs from RocketMQ: clients of before 3.1.8 are asked like all others, and offsets go to clients in C++ in the
    form that all others read.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._server = broker.remoting_server

    async def call_consumer(self, request: RemotingCommand, group: str, client_id: str | None) -> RemotingCommand:
        """Ask one member, and give back what it answers.

        Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor.callConsumer.
        """
        member = self._broker.consumer_manager.find_channel(group, client_id or "")
        who = f"<{group}> <{client_id if client_id is not None else 'null'}>"
        if member is None:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"The Consumer {who} not online")
        asked = RemotingCommand.request(request.code, request.header, request.body)
        try:
            return await self._server.invoke_sync(member.channel, asked, CALL_TIMEOUT_MS)
        except RemotingTimeoutException as error:
            text = f"org.apache.rocketmq.remoting.exception.RemotingTimeoutException: {error}"
            return RemotingCommand.response(ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer {who} Timeout: {text}")
        except RemotingException as error:
            text = f"org.apache.rocketmq.remoting.exception.{type(error).__name__}: {error}"
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"invoke consumer {who} Exception: {text}")

    async def get_consume_status(self, topic: str, group: str, client_id: str | None) -> RemotingCommand:
        """How far the members of a group are in a topic, or one of them; who does not answer in 5 s is left out."""
        members = self._broker.consumer_manager.get_consumer_group_info(group)
        if members is None:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, NO_GROUP)
        body = GetConsumerStatusBody()
        for channel, info in list(members.channel_info_table.items()):
            if client_id and client_id.strip() and client_id != info.client_id:
                continue
            request = RemotingCommand.request(
                RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, GetConsumerStatusRequestHeader(topic, group)
            )
            try:
                answer = await self._server.invoke_sync(channel, request, STATUS_TIMEOUT_MS)
                if answer.code == ResponseCode.SUCCESS and answer.body is not None:
                    table = GetConsumerStatusBody.decode(answer.body).message_queue_table
                    body.consumer_table[info.client_id] = table
            except (RemotingException, BodyError):
                continue
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_CODE_SET, body=body.encode())

    def reset_offset(self, topic: str, group: str, timestamp_ms: int, is_force: bool) -> RemotingCommand:
        """Tell all members of a group where to go on: at the offset of a time, -1 for the end.

        Without `is_force` nobody goes forward. What is committed here stays as it is until the members write it.
        """
        broker = self._broker
        topic_config = broker.topic_config_manager.select_topic_config(topic)
        if topic_config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, remark)
        body = ResetOffsetBody()
        store = broker.message_store
        for queue_id in range(topic_config.write_queue_nums):
            consumed = broker.consumer_offset_manager.query_offset(group, topic, queue_id)
            if consumed == -1:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            if timestamp_ms == -1:
                target = store.get_max_offset_in_queue(topic, queue_id)
            else:
                target = store.get_offset_in_queue_by_time(topic, queue_id, timestamp_ms)
            target = max(0, target)
            queue = MessageQueue(topic, broker.broker_config.broker_name, queue_id)
            body.offset_table[queue] = target if is_force or target < consumed else consumed
        members = broker.consumer_manager.get_consumer_group_info(group)
        if members is None or not members.channel_info_table:
            remark = (
                f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} Timestamp: {timestamp_ms}"
            )
            raise RequestError(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        for channel in list(members.channel_info_table):
            header = ResetOffsetRequestHeader(group, topic, timestamp_ms, False)
            request = RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, body.encode())
            try:
                self._server.invoke_oneway(channel, request, RESET_TIMEOUT_MS)
            except RemotingException:
                continue
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_CODE_SET, body=body.encode())
