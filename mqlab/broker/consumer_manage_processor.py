"""Who is in a consumer group, and how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import HeaderError
from mqlab.protocol.group_bodies import GetConsumerListByGroupResponseBody
from mqlab.protocol.headers import (
    GetConsumerListByGroupRequestHeader,
    GetConsumerListByGroupResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
    UpdateConsumerOffsetResponseHeader,
)
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts

_OFFSET_FIELDS = {"queue_id": "QueueId", "commit_offset": "Offset"}


class ConsumerManageProcessor(RequestProcessor):
    """GET_CONSUMER_LIST_BY_GROUP, UPDATE_CONSUMER_OFFSET and QUERY_CONSUMER_OFFSET.

    Java: org.apache.rocketmq.broker.processor.ConsumerManageProcessor.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Answer one of the three."""
        if request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return self._get_consumer_list_by_group(request)
        if request.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            return self._update_consumer_offset(request)
        return self._query_consumer_offset(request)

    def _get_consumer_list_by_group(self, request: RemotingCommand) -> RemotingCommand:
        group = request.header_as(GetConsumerListByGroupRequestHeader).consumer_group
        members = self._broker.consumer_manager.get_consumer_group_info(group)
        client_ids = members.all_client_ids() if members is not None else []
        if not client_ids:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        body = GetConsumerListByGroupResponseBody(client_ids).encode()
        return RemotingCommand.response(ResponseCode.SUCCESS, None, GetConsumerListByGroupResponseHeader(), body)

    def _update_consumer_offset(self, request: RemotingCommand) -> RemotingCommand:
        try:
            header = request.header_as(UpdateConsumerOffsetRequestHeader)
        except HeaderError as error:
            if error.field not in _OFFSET_FIELDS:
                raise
            remark = f"{_OFFSET_FIELDS[error.field]} is null, topic is {request.ext_field('topic')}"
            return RemotingCommand.response(ResponseCode.INVALID_PARAMETER, remark)
        broker = self._broker
        group, topic = header.consumer_group, header.topic
        if not broker.subscription_group_manager.contains_subscription_group(group):
            return RemotingCommand.response(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!"
            )
        if topic not in broker.topic_config_manager.topic_config_table:
            return RemotingCommand.response(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        offsets = broker.consumer_offset_manager
        if offsets.has_offset_reset(group, topic, header.queue_id):
            return RemotingCommand.response(ResponseCode.SUCCESS, "Offset has been previously reset")
        offsets.commit_offset(group, topic, header.queue_id, header.commit_offset)
        return RemotingCommand.response(ResponseCode.SUCCESS, None, UpdateConsumerOffsetResponseHeader())

    def _query_consumer_offset(self, request: RemotingCommand) -> RemotingCommand:
        """The stored offset; for a group without one 0 if the queue is young, so that the group misses nothing."""
        header = request.header_as(QueryConsumerOffsetRequestHeader)
        topic, queue_id = header.topic, header.queue_id
        offset = self._broker.consumer_offset_manager.query_offset(header.consumer_group, topic, queue_id)
        if offset >= 0:
            return _offset(offset)
        if header.set_zero_if_not_found is False:
            return RemotingCommand.response(
                ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
            )
        store = self._broker.message_store
        if store.get_min_offset_in_queue(topic, queue_id) <= 0 and store.check_in_mem_by_consume_offset(
            topic, queue_id, 0
        ):
            return _offset(0)
        return RemotingCommand.response(
            ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
        )


def _offset(offset: int) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, None, QueryConsumerOffsetResponseHeader(offset))
