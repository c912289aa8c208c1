"""Acknowledgements of popped messages: ticked off in memory, or written as messages of the revive topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.pop.ack_requests import (
    check_queue,
    emit_ack_lost,
    handle_in,
    lock_queue,
    put_ack,
    records_in_use,
    unlock_queue,
)
from mqlab.broker.pop.pop_revive_service import PopReviveService
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle, real_topic
from mqlab.protocol.headers import AckMessageRequestHeader
from mqlab.protocol.pop_check_point import (
    AckMsg,
    BatchAck,
    BatchAckMessageRequestBody,
    BatchAckMsg,
    revive_topic,
)
from mqlab.remoting import RequestProcessor
from mqlab.sim import DiskFull
from mqlab.sim.eager import play_at_once
from mqlab.trace.events.pop import AckReceived, OrderAcked

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed
    from mqlab.store.dispatch_request import DispatchRequest

NOT_OF_THIS_POP = -2
NOT_IN_THE_LIST = -1


class AckMessageProcessor(RequestProcessor):
    """ACK_MESSAGE and BATCH_ACK_MESSAGE (org.apache.rocketmq.broker.processor.AckMessageProcessor).

    An ack that the buffer does not take is written to the revive queue that its handle names, due when the message
    could be seen again. As in RocketMQ one that cannot be written is answered with success all the same: the message
    will be delivered again. It owns the revivers of all revive queues.
    """

    def __init__(self, broker: WholeBroker, notify_queue_is_free: Callable[[str, str, int], bool]) -> None:
        self._notify_queue_is_free = notify_queue_is_free
        self._broker = broker
        self._node = broker.node
        self._revive_topic = revive_topic(broker.broker_config.broker_cluster_name)
        queues = broker.broker_config.revive_queue_num
        self.revive_services = [PopReviveService(broker, queue_id) for queue_id in range(queues)]

    # -- revivers ---------------------------------------------------------------------------------------------------

    def start_pop_revive_service(self) -> None:
        """Let the revivers begin, and tell each of what comes into its queue."""
        self._broker.message_store.dispatcher_list.append(self._dispatched)
        for service in self.revive_services:
            service.start()

    def shutdown_pop_revive_service(self) -> None:
        """Stop the reviver of every revive queue."""
        for service in self.revive_services:
            service.shutdown()

    def _dispatched(self, request: DispatchRequest) -> None:
        if request.topic == self._revive_topic and request.queue_id < len(self.revive_services):
            self.revive_services[request.queue_id].arrived()

    # -- requests ---------------------------------------------------------------------------------------------------

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Answer an ack, or several; a coroutine when a flush or a lock has to be waited for."""
        return play_at_once(self._process(channel, request))

    async def _process(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        try:
            if request.code == RequestCode.ACK_MESSAGE:
                await self._ack(channel, request, request.header_as(AckMessageRequestHeader))
            else:
                await self._batch_ack(channel, request)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.remark = response.remark or None
            return response
        return RemotingCommand.response(ResponseCode.SUCCESS)

    async def _ack(self, channel: Channel, request: RemotingCommand, header: AckMessageRequestHeader) -> None:
        topic, queue_id, offset = header.topic, header.queue_id, header.offset
        least, end = check_queue(self._broker, channel, topic, queue_id)
        if not least <= offset <= end:
            remark = f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{least}~{end}"
            raise RequestError(ResponseCode.NO_MESSAGE, remark)
        handle = handle_in(header.extra_info, queue_id, offset)
        self._emit_received(channel, request, header.consumer_group, topic, handle)
        if handle.is_order:
            await self._ack_orderly(channel, header.consumer_group, topic, handle)
            return
        ack = AckMsg(
            offset, handle.start_offset, header.consumer_group, topic, queue_id, handle.pop_time, handle.broker_name
        )
        await self._append(ack, handle.revive_qid, handle.expires_ms)

    async def _batch_ack(self, channel: Channel, request: RemotingCommand) -> None:
        body = BatchAckMessageRequestBody.decode(request.body) if request.body else None
        if body is None or not body.acks:
            raise RequestError(ResponseCode.NO_MESSAGE, "")
        refused: list[RequestError] = []
        for batch in body.acks:
            refused += await self._ack_batch(channel, request, batch, body.broker_name or "")
        if refused:
            raise refused[-1]

    async def _ack_batch(
        self, channel: Channel, request: RemotingCommand, batch: BatchAck, broker_name: str
    ) -> list[RequestError]:
        """Acknowledge what one batch names; offsets that the queue does not have are left out.

        Gives an error for each message that was popped in order and is not out: as in RocketMQ it hinders no other one,
        and the last of them is what the request is answered with.
        """
        group = batch.group or ""
        topic, queue_id = real_topic(batch.topic or "", group, batch.retry or ""), batch.queue_id
        store = self._broker.message_store
        least, end = store.get_min_offset_in_queue(topic, queue_id), store.get_max_offset_in_queue(topic, queue_id)
        if least == -1:
            emit_ack_lost(
                self._broker, AckMsg(-1, batch.start_offset, group, topic, queue_id, batch.pop_time), "no such queue"
            )
            return []
        acked: list[int] = []
        refused: list[RequestError] = []
        for offset in batch.offsets():
            if not least <= offset <= end:
                ack = AckMsg(offset, batch.start_offset, group, topic, queue_id, batch.pop_time)
                emit_ack_lost(self._broker, ack, f"the queue has the offsets {least} to {end}")
                continue
            handle = ReceiptHandle(
                batch.start_offset,
                batch.pop_time,
                batch.invisible_time,
                batch.revive_queue_id,
                batch.retry or "",
                broker_name,
                queue_id,
                offset,
            )
            self._emit_received(channel, request, group, topic, handle)
            if not handle.is_order:
                acked.append(offset)
                continue
            try:
                await self._ack_orderly(channel, group, topic, handle)
            except RequestError as error:
                refused.append(error)
        if acked:
            together = BatchAckMsg(
                -1, batch.start_offset, group, topic, queue_id, batch.pop_time, broker_name, ack_offset_list=acked
            )
            await self._append(together, batch.revive_queue_id, batch.pop_time + batch.invisible_time)
        return refused

    # -- in no order ------------------------------------------------------------------------------------------------

    async def _append(self, ack: AckMsg, revive_qid: int, deliver_ms: int) -> None:
        """Let the buffer have an ack, or write it (AckMessageProcessor.appendAck); with records delete those."""
        service = records_in_use(self._broker)
        if service is not None:
            from mqlab.broker.pop.kv.record_requests import ack_all

            try:
                await ack_all(service, ack, deliver_ms - ack.pop_time)
            except DiskFull:
                raise RequestError(ResponseCode.SYSTEM_ERROR, "RuntimeException: Delete record error") from None
            return
        if self._broker.pop.pop_buffer_merge_service.add_ak(revive_qid, ack):
            self._count_down(ack)
        elif not self._broker.broker_config.append_ack_async:
            await self._put(ack, revive_qid, deliver_ms)
        elif (waits := play_at_once(self._put(ack, revive_qid, deliver_ms))) is not None:
            self._node.spawn(waits, "the rest of an ack")

    async def _put(self, ack: AckMsg, revive_qid: int, deliver_ms: int) -> None:
        await put_ack(self._broker, ack, revive_qid, deliver_ms)
        self._count_down(ack)

    def _count_down(self, ack: AckMsg) -> None:
        counter = self._broker.pop.pop_inflight_message_counter
        counter.decrement(ack.topic or "", ack.group or "", ack.pop_time, ack.queue_id, len(ack.offsets()))

    # -- in order ---------------------------------------------------------------------------------------------------

    async def _ack_orderly(self, channel: Channel, group: str, topic: str, handle: ReceiptHandle) -> None:
        """Tick off a message that was popped in order; RequestError when the batch on its way has no such message.

        Java: org.apache.rocketmq.broker.processor.AckMessageProcessor.ackOrderly and .ackOrderlyNew. Differs from
        RocketMQ: who finds the queue locked asks again each millisecond.
        """
        services, offsets = self._broker.pop, self._broker.consumer_offset_manager
        queue_id, offset = handle.queue_id, handle.queue_offset
        ack = AckMsg(offset, handle.start_offset, group, topic, queue_id, handle.pop_time, handle.broker_name)
        if offset < offsets.query_offset(group, topic, queue_id):
            emit_ack_lost(self._broker, ack, "the group is past it")
            return
        await lock_queue(self._broker, topic, group, queue_id)
        try:
            old_offset = offsets.query_offset(group, topic, queue_id)
            if offset < old_offset:
                emit_ack_lost(self._broker, ack, "the group is past it")
                return
            order_info = services.consumer_order_info_manager
            next_offset = order_info.commit_and_next(topic, group, queue_id, offset, handle.pop_time)
            if next_offset == NOT_IN_THE_LIST:
                with_records = records_in_use(self._broker) is not None
                key = f"{group} {topic} {queue_id}" if with_records else f"{topic}@{group}@{queue_id}"
                raise RequestError(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"offset is illegal, key:{key}, old:{old_offset}, commit:{offset}, next:{next_offset}, "
                    f"/{channel.remote_address}",
                )
            if next_offset == NOT_OF_THIS_POP:
                emit_ack_lost(self._broker, ack, "it was popped again since")
            else:
                self._emit_order_acked(ack, next_offset)
                if not offsets.has_offset_reset(group, topic, queue_id):
                    offsets.commit_offset(group, topic, queue_id, next_offset, "acked in order")
                if not order_info.check_block(None, topic, group, queue_id, handle.invisible_time):
                    self._notify_queue_is_free(topic, group, queue_id)
        finally:
            unlock_queue(self._broker, topic, group, queue_id)
        self._count_down(ack)

    # -- events -----------------------------------------------------------------------------------------------------

    def _emit_received(
        self, channel: Channel, request: RemotingCommand, group: str, topic: str, handle: ReceiptHandle
    ) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                AckReceived(
                    group,
                    topic,
                    handle.queue_id,
                    handle.queue_offset,
                    handle.start_offset,
                    handle.pop_time,
                    handle.invisible_time,
                    handle.revive_qid,
                    request.opaque,
                    channel.remote_address,
                )
            )

    def _emit_order_acked(self, ack: AckMsg, next_offset: int) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                OrderAcked(ack.group or "", ack.topic or "", ack.queue_id, ack.ack_offset, ack.pop_time, next_offset)
            )
