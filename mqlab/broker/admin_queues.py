"""What clients and administrators ask about queues: their bounds, their times, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.protocol import fastjson
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import ConsumeQueueData, QueryConsumeQueueResponseBody
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.group_bodies import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from mqlab.store import BoundaryType

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts, Handler
    from mqlab.remoting import Channel


class AdminQueues:
    """The queue requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor.

    Differs from RocketMQ: a lock is decided by this broker alone, as with lockInStrictMode=false; and of an entry of a
    queue is not told what an extended queue (enableConsumeQueueExt) knows besides.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._store = broker.message_store

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset_by_timestamp,
            RequestCode.GET_MAX_OFFSET: self._get_max_offset,
            RequestCode.GET_MIN_OFFSET: self._get_min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._get_earliest_msg_storetime,
            RequestCode.QUERY_CONSUME_QUEUE: self._query_consume_queue,
            RequestCode.LOCK_BATCH_MQ: self._lock_batch_mq,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock_batch_mq,
        }

    def _search_offset_by_timestamp(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.SearchOffsetRequestHeader)
        upper = (header.boundary_type or "").upper() == "UPPER"
        offset = self._store.get_offset_in_queue_by_time(
            header.topic, header.queue_id, header.timestamp, BoundaryType.UPPER if upper else BoundaryType.LOWER
        )
        return RemotingCommand.response(ResponseCode.SUCCESS, None, h.SearchOffsetResponseHeader(offset))

    def _get_max_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetMaxOffsetRequestHeader)
        offset = self._store.get_max_offset_in_queue(header.topic, header.queue_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, None, h.GetMaxOffsetResponseHeader(offset))

    def _get_min_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetMinOffsetRequestHeader)
        offset = self._store.get_min_offset_in_queue(header.topic, header.queue_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, "", h.GetMinOffsetResponseHeader(offset))

    def _get_earliest_msg_storetime(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetEarliestMsgStoretimeRequestHeader)
        timestamp = self._store.get_earliest_message_time(header.topic, header.queue_id)
        return RemotingCommand.response(
            ResponseCode.SUCCESS, None, h.GetEarliestMsgStoretimeResponseHeader(timestamp)
        )

    def _query_consume_queue(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Some entries of a queue; SUCCESS with nothing but a remark where the first of them is not there."""
        header = request.header_as(h.QueryConsumeQueueRequestHeader)
        topic, group = header.topic, header.consumer_group
        queue = self._store.find_consume_queue(topic, header.queue_id)
        if queue is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"{header.queue_id}@{topic} is not exist!")
        body = QueryConsumeQueueResponseBody(
            max_queue_index=queue.max_offset_in_queue, min_queue_index=queue.min_offset_in_queue
        )
        if group is not None:
            wants = body.subscription_data = self._broker.consumer_manager.find_subscription_data(group, topic)
            body.filter_data = f"{group}@{topic} is not online!" if wants is None else self._filter_data(topic, group)
        units = queue.iterate_from(header.first, header.at_most)
        if units is None:
            remark = f"Index {header.first} of {header.queue_id}@{topic} is not exist!"
            return RemotingCommand.response(ResponseCode.SUCCESS, remark)
        body.queue_data = [ConsumeQueueData(unit.pos, unit.size, unit.tags_code) for unit in units]
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _filter_data(self, topic: str, group: str) -> str:
        """What the broker has compiled of the group's condition, as text; "null" for one by tags."""
        manager = self._broker.consumer_filters.made
        found = manager.get(topic, group) if manager is not None else None
        return fastjson.dumps(found.to_json(), pretty=True) if found is not None else "null"

    def _lock_batch_mq(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = LockBatchRequestBody.decode(request.body)
        locked = self._broker.rebalance_lock_manager.try_lock_batch(body.consumer_group, body.mq_set, body.client_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=LockBatchResponseBody(locked).encode())

    def _unlock_batch_mq(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = UnlockBatchRequestBody.decode(request.body)
        self._broker.rebalance_lock_manager.unlock_batch(body.consumer_group, body.mq_set, body.client_id)
        return RemotingCommand.response(ResponseCode.SUCCESS)
