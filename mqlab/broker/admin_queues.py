"""What clients and administrators ask about queues: their bounds, their times, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.group_bodies import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from mqlab.store import BoundaryType

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts, Handler
    from mqlab.remoting import Channel


class AdminQueues:
    """The queue requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor.

    Differs from RocketMQ: a lock is decided by this broker alone, as with lockInStrictMode=false.
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

    def _lock_batch_mq(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = LockBatchRequestBody.decode(request.body)
        locked = self._broker.rebalance_lock_manager.try_lock_batch(body.consumer_group, body.mq_set, body.client_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=LockBatchResponseBody(locked).encode())

    def _unlock_batch_mq(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        body = UnlockBatchRequestBody.decode(request.body)
        self._broker.rebalance_lock_manager.unlock_batch(body.consumer_group, body.mq_set, body.client_id)
        return RemotingCommand.response(ResponseCode.SUCCESS)
