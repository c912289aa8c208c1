"""More time for a popped message, or less: a new check point for it, and an ack for the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.pop import revive_log
from mqlab.broker.pop.ack_requests import check_queue, handle_in, lock_queue, put_ack, records_in_use, unlock_queue
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import ChangeInvisibleTimeRequestHeader, ChangeInvisibleTimeResponseHeader
from mqlab.protocol.pop_check_point import AckMsg, PopCheckPoint
from mqlab.remoting import RequestProcessor
from mqlab.sim import DiskFull
from mqlab.sim.eager import play_at_once
from mqlab.trace.events.pop import CheckPointNotMade, CheckPointStored, InvisibleTimeChanged

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.extra_info import ReceiptHandle
    from mqlab.remoting import Channel
    from mqlab.remoting.processor import Processed

NO_TEXT = "not set any response code"
"""What stands in an answer to which RocketMQ has given no text of its own, also where all went well."""
NOTHING = ChangeInvisibleTimeResponseHeader(0, 0, 0)


class ChangeInvisibleTimeProcessor(RequestProcessor):
    """CHANGE_MESSAGE_INVISIBLETIME (org.apache.rocketmq.broker.processor.ChangeInvisibleTimeProcessor).

    Nothing in the store can be changed, so the message gets a check point of its own from now on, and then the old one
    an ack for it, whatever became of the message. If the new one cannot be stored the old one stays as it is.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._node = broker.node

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Answer with what the new handle is made of; a coroutine when a flush or a lock has to be waited for."""
        return play_at_once(self._process(channel, request))

    async def _process(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(ChangeInvisibleTimeRequestHeader)
        try:
            least, end = check_queue(self._broker, channel, header.topic, header.queue_id)
            if not least <= header.offset < end:
                raise RequestError(ResponseCode.NO_MESSAGE, NO_TEXT)
            handle = handle_in(header.extra_info, header.queue_id, header.offset)
            if handle.is_order:
                answer = await self._change_in_order(header, handle)
            else:
                answer = await self._change(header, handle)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.header = NOTHING
            return response
        if answer is not NOTHING and self._node.hooks.on:
            self._node.hooks.emit(
                InvisibleTimeChanged(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.offset,
                    handle.pop_time,
                    answer.pop_time,
                    answer.invisible_time,
                    answer.revive_qid,
                    request.opaque,
                    channel.remote_address,
                )
            )
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_TEXT, answer)

    async def _change(
        self, header: ChangeInvisibleTimeRequestHeader, handle: ReceiptHandle
    ) -> ChangeInvisibleTimeResponseHeader:
        """Write the new check point, then ack the old one (appendCheckPointThenAckOrigin, ackOrigin).

        With records a new one takes the place of the old one.
        """
        broker, group = self._broker, header.consumer_group
        now_ms = self._node.now_ms()
        service = records_in_use(broker)
        if service is not None:
            from mqlab.broker.pop.kv.record_requests import change

            try:
                await change(service, header, handle, now_ms)
            except DiskFull:
                raise RequestError(ResponseCode.SYSTEM_ERROR, NO_TEXT) from None
            return ChangeInvisibleTimeResponseHeader(now_ms, header.invisible_time, handle.revive_qid)
        point = PopCheckPoint(
            start_offset=header.offset,
            pop_time=now_ms,
            invisible_time=header.invisible_time,
            num=1,
            queue_id=header.queue_id,
            topic=header.topic,
            group=group,
            queue_offset_diff=[0],
            broker_name=handle.broker_name,
        )
        result = await broker.message_store.put_and_wait(revive_log.ck_message(broker, point, handle.revive_qid))
        place = (group, header.topic, header.queue_id, header.offset, now_ms)
        if not result.is_stored:
            if self._node.hooks.on:
                self._node.hooks.emit(CheckPointNotMade(*place, 1, result.status.value))
            raise RequestError(ResponseCode.SYSTEM_ERROR, NO_TEXT)
        if self._node.hooks.on:
            self._node.hooks.emit(CheckPointStored(*place, handle.revive_qid, "invisible time changed"))
        ack = AckMsg(
            header.offset,
            handle.start_offset,
            group,
            header.topic,
            header.queue_id,
            handle.pop_time,
            handle.broker_name,
        )
        if not broker.pop.pop_buffer_merge_service.add_ak(handle.revive_qid, ack):
            await put_ack(broker, ack, handle.revive_qid, handle.expires_ms)
        return ChangeInvisibleTimeResponseHeader(now_ms, header.invisible_time, handle.revive_qid)

    async def _change_in_order(
        self, header: ChangeInvisibleTimeRequestHeader, handle: ReceiptHandle
    ) -> ChangeInvisibleTimeResponseHeader:
        """Note when the message can be seen again; NOTHING when the group is past it.

        Java: org.apache.rocketmq.broker.processor.ChangeInvisibleTimeProcessor.processChangeInvisibleTimeForOrder.
        """
        broker, group, topic, queue_id = self._broker, header.consumer_group, header.topic, header.queue_id
        offsets = broker.consumer_offset_manager
        if header.offset < offsets.query_offset(group, topic, queue_id):
            return NOTHING
        await lock_queue(broker, topic, group, queue_id)
        try:
            if header.offset < offsets.query_offset(group, topic, queue_id):
                return NOTHING
            visible_ms = self._node.now_ms() + header.invisible_time
            broker.pop.consumer_order_info_manager.update_next_visible_time(
                topic, group, queue_id, header.offset, handle.pop_time, visible_ms
            )
            return ChangeInvisibleTimeResponseHeader(handle.pop_time, visible_ms - handle.pop_time, handle.revive_qid)
        finally:
            unlock_queue(broker, topic, group, queue_id)
