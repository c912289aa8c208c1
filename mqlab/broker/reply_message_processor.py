"""Taking in replies: each is pushed to the client that asked, and stored as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.put_message_answers import STORED_CODES
from mqlab.broker.send_checks import check_message
from mqlab.broker.send_message_processor import NO_BODY, answer_fields
from mqlab.errors import RemotingException
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import ReplyMessageRequestHeader, SendMessageResponseHeader, parse_send_header
from mqlab.protocol.message import MessageConst
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, decode_properties, encode_properties
from mqlab.remoting import RequestProcessor
from mqlab.store import MessageExtBrokerInner
from mqlab.trace.events.reply import ReplyNotPushed, ReplyPushed

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
    from mqlab.remoting import Channel

PUSH_TIMEOUT_MS = 10_000
REPLY_TO = MessageConst.MESSAGE_REPLY_TO_CLIENT


class ReplyMessageProcessor(RequestProcessor):
    """SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2.

    Java: org.apache.rocketmq.broker.processor.ReplyMessageProcessor. The thread waits until the client that asked has
    answered the push, 10 s at most, and stores the reply after that, whatever became of the push. As in RocketMQ the
    answer tells of the push alone: a reply that was pushed and could not be stored is answered SUCCESS with the message
    id "0", and one that was stored and could not be pushed SYSTEM_ERROR, after which its producer sends it again. A
    packed body is stored without the flag that says so.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._server = broker.remoting_server

    async def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Check, push, store and answer."""
        if not request.body:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, NO_BODY)
        config = self._config
        fields = answer_fields(config.region_id, config.trace_on)
        header = parse_send_header(request)
        try:
            start_ms = config.start_accept_send_request_time_stamp
            if start_ms and self._node.now_ms() < start_ms:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start_ms}")
            topics = self._broker.topic_config_manager
            topic_config = check_message(config, self._broker.broker_ip, topics, header, channel)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.add_ext_fields(fields)
            return response
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = self._node.choose("random-queue", topic_config.write_queue_nums)
        properties = {**decode_properties(header.properties), **fields}
        inner = MessageExtBrokerInner(
            header.topic,
            request.body,
            queue_id,
            header.flag,
            properties=properties,
            properties_string=encode_properties(properties, DECODED_MAP_CAPACITY),
            born_timestamp=header.born_timestamp,
            born_host=channel.remote_address,
            store_host=self._broker.store_host,
            reconsume_times=header.reconsume_times or 0,
        )
        reason = await self._push(header, inner)
        if reason:
            self._tell_not_pushed(inner, reason)
            response = RemotingCommand.response(ResponseCode.SYSTEM_ERROR, reason)
        else:
            # Java's client cannot decode an answer without these.
            response = RemotingCommand.response(ResponseCode.SUCCESS)
            response.header = SendMessageResponseHeader("0", queue_id, 0)
        if config.store_reply_message_enable:
            await self._store(inner, response)
        response.add_ext_fields(fields)
        return response

    async def _push(
        self, header: SendMessageRequestHeader | SendMessageRequestHeaderV2, reply: MessageExtBrokerInner
    ) -> str:
        """Push a reply to the client that asked and wait until it has taken it; "", or RocketMQ's words for why not.

        Java: org.apache.rocketmq.broker.processor.ReplyMessageProcessor.pushReplyMessage.
        """
        client_id = reply.properties.get(REPLY_TO)
        if client_id is None:
            return f"reply message properties[{REPLY_TO}] is null"
        channel = self._broker.producer_manager.find_channel(client_id)
        if channel is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        now_ms = self._node.now_ms()
        reply.properties[MessageConst.PUSH_REPLY_TIME] = str(now_ms)
        push = ReplyMessageRequestHeader(
            header.producer_group,
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            header.queue_id,
            header.sys_flag,
            header.born_timestamp,
            header.flag,
            encode_properties(reply.properties, DECODED_MAP_CAPACITY),
            header.reconsume_times,
            header.unit_mode,
            reply.born_host,
            reply.store_host,
            now_ms,
        )
        request = RemotingCommand.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, push, reply.body)
        try:
            answer = await self._server.invoke_sync(channel, request, PUSH_TIMEOUT_MS)
        except RemotingException:
            return f"push reply message to {client_id}fail."
        if answer.code != ResponseCode.SUCCESS:
            return f"push reply message to {client_id}fail."
        if self._node.hooks.on:
            correlation_id = reply.properties.get(MessageConst.CORRELATION_ID, "")
            self._node.hooks.emit(
                ReplyPushed(reply.topic, correlation_id, client_id, reply.born_host, channel.remote_address)
            )
        return ""

    def _tell_not_pushed(self, reply: MessageExtBrokerInner, reason: str) -> None:
        hooks = self._node.hooks
        if hooks.on:
            properties = reply.properties
            correlation_id, client_id = properties.get(MessageConst.CORRELATION_ID, ""), properties.get(REPLY_TO, "")
            hooks.emit(ReplyNotPushed(reply.topic, correlation_id, client_id, reply.born_host, reason))

    async def _store(self, reply: MessageExtBrokerInner, response: RemotingCommand) -> None:
        """Put a reply to the log, and its place into the answer; that it could not be stored changes no answer."""
        result = await self._broker.message_store.put_and_wait(reply)
        if result.status in STORED_CODES:
            response.header = SendMessageResponseHeader(result.msg_id, reply.queue_id, result.logics_offset)
            self._broker.stats.put(reply.topic, result.msg_num, result.wrote_bytes)
