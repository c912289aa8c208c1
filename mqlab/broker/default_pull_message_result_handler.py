"""From what the store found to what the consumer is answered, or to a held request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pull_request import PullRequest
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PullMessageResponseHeader
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.store import BrokerRole, GetMessageResult, GetMessageStatus
from mqlab.trace.events.broker import PullAnswered, PullHeld

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.headers import PullMessageRequestHeader
    from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicConfig
    from mqlab.remoting import Channel

RESPONSE_CODES: dict[GetMessageStatus, int] = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
"""The two states that are missing, an unknown and an empty queue, depend on the offset that was asked for."""


def response_code(status: GetMessageStatus, asked_offset: int) -> int:
    """The code for what reading found; an empty queue is no surprise to a consumer that asks for its beginning."""
    code = RESPONSE_CODES.get(status)
    if code is None:
        code = ResponseCode.PULL_OFFSET_MOVED if asked_offset else ResponseCode.PULL_NOT_FOUND
    return int(code)


class DefaultPullMessageResultHandler:
    """Answers a pull with what was found, or has it held.

    With `slave_read_enable` the answer says which broker to ask next: a slave for what lies too far back to be in the
    master's memory, else the master. A slave that has not got so far itself lets the consumer ask at once again.

    Java: org.apache.rocketmq.broker.processor.DefaultPullMessageResultHandler.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        store_config = broker.message_store_config
        self._may_be_behind = store_config.broker_role is BrokerRole.SLAVE and not store_config.offset_check_in_slave

    def handle(
        self,
        result: GetMessageResult,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        channel: Channel,
        group: SubscriptionGroupConfig,
        topic: TopicConfig,
        message_filter: MessageFilter,
        broker_allow_suspend: bool,
    ) -> RemotingCommand | None:
        """The answer, or None when the request is held."""
        code = response_code(result.status, header.queue_offset)
        if code == ResponseCode.PULL_NOT_FOUND and broker_allow_suspend and header.sys_flag & PullSysFlag.SUSPEND:
            self._hold(request, header, channel, message_filter)
            return None
        suggested_broker_id = MASTER_ID
        if self._config.slave_read_enable:
            slowly = result.suggest_pulling_from_slave
            suggested_broker_id = group.which_broker_when_consume_slowly if slowly else group.broker_id
        if code == ResponseCode.PULL_OFFSET_MOVED and self._may_be_behind:
            code, suggested_broker_id = int(ResponseCode.PULL_RETRY_IMMEDIATELY), group.broker_id
        response_header = PullMessageResponseHeader(
            suggested_broker_id,
            result.next_begin_offset,
            result.min_offset,
            result.max_offset,
            None,
            topic.topic_sys_flag,
            group.group_sys_flag,
        )
        response = RemotingCommand.response(code, result.status.value, response_header)
        if code == ResponseCode.SUCCESS:
            response.body = result.body
            self._broker.stats.got(
                header.consumer_group, header.topic, result.message_count, result.buffer_total_size
            )
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                PullAnswered(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.queue_offset,
                    result.next_begin_offset,
                    result.message_count,
                    result.buffer_total_size,
                    result.status.value,
                    code,
                    request.opaque,
                    channel.remote_address,
                )
            )
        return response

    def _hold(
        self,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        channel: Channel,
        message_filter: MessageFilter,
    ) -> None:
        config = self._config
        hold_ms = header.suspend_timeout_millis if config.long_polling_enable else config.short_polling_time_mills
        held = PullRequest(request, header, channel, hold_ms, self._node.now_us(), message_filter)
        self._broker.pull_request_hold_service.suspend_pull_request(header.topic, header.queue_id, held)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                PullHeld(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.queue_offset,
                    hold_ms,
                    request.opaque,
                    channel.remote_address,
                )
            )
