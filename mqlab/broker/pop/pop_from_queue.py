"""Popping one queue for one group: under its lock, with a check point for what is handed out."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_offsets import PopOffsets
from mqlab.broker.pop.retry_message import under_plain_topic
from mqlab.protocol.extra_info import ReceiptHandle, msg_offset_info, retry_flag, start_offset_info
from mqlab.protocol.pop_check_point import PopCheckPoint
from mqlab.protocol.record import RECORD_MIN_BYTES, SYS_FLAG_OFFSET
from mqlab.store import GetMessageResult, GetMessageStatus
from mqlab.trace.events.pop import MessagePopped, OrderBlocked, PopQueueBusy

if TYPE_CHECKING:
    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.broker.pop.pop_work import PopWork
    from mqlab.sim import Node

_WRONG_OFFSET = (
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
)
"""What reading says of an offset that is behind the queue's beginning or end, or in a file that is gone."""

_NOTHING_OF_USE = (
    GetMessageStatus.NO_MATCHED_MESSAGE,
    GetMessageStatus.OFFSET_FOUND_NULL,
    GetMessageStatus.MESSAGE_WAS_REMOVING,
)
"""What reading says when it went on without finding a message. A queue that nobody knows is not among them, as in
RocketMQ asking for one makes it, and then it is empty."""

_WORD = struct.Struct(">i")
_HOST_BITS = 0x30
_LONGER_HOST = 12
_RECONSUME_TIMES_OFFSET = 72


class PopFromQueue:
    """Takes messages out of one queue (org.apache.rocketmq.broker.processor.PopMessageProcessor.popMsgFromQueue).

    Differs from RocketMQ: what goes wrong here ends the request with an error; there it is noted in a log, the request
    is never answered, and its client waits for the time-out.
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self._services = services
        self._node = broker.node
        self._config = broker.broker_config
        self._store = broker.message_store
        self._stats = broker.stats
        self._committed = broker.consumer_offset_manager
        self._locks = services.locks
        self._in_flight = services.pop_inflight_message_counter
        self._offsets: PopOffsets = services.pop_offsets

    async def pop(self, work: PopWork, topic: str, queue_id: int, *, is_retry: bool) -> None:
        """Add to a pop what a queue has for it, unless another pop of the group is at that queue."""
        lock_key = f"{topic}@{work.group}@{queue_id}"
        if not self._locks.try_lock_key(lock_key):
            if not work.order:
                self._leave_all(work, topic, queue_id, lock_key)
            if self._node.hooks.on:
                self._node.hooks.emit(PopQueueBusy(work.group, topic, queue_id))
            return
        try:
            await self._pop_locked(work, topic, queue_id, lock_key, is_retry)
        finally:
            self._locks.unlock_key(lock_key)

    def _leave_all(self, work: PopWork, topic: str, queue_id: int, lock_key: str) -> None:
        """Count as left what a queue has, without changing anything."""
        offset = self._offsets.get_pop_offset(
            topic, work.group, queue_id, work.header.init_mode, init=False, lock_key=lock_key, check_reset=False
        )
        work.rest += self._store.get_max_offset_in_queue(topic, queue_id) - offset

    async def _pop_locked(self, work: PopWork, topic: str, queue_id: int, lock_key: str, is_retry: bool) -> None:
        if (
            self._config.enable_pop_message_threshold
            and self._in_flight.number(topic, work.group, queue_id) > self._config.pop_inflight_message_threshold
        ):
            self._leave_all(work, topic, queue_id, lock_key)
            return
        offset = self._offsets.get_pop_offset(
            topic, work.group, queue_id, work.header.init_mode, init=True, lock_key=lock_key, check_reset=True
        )
        if work.order:
            header = work.header
            if self._services.consumer_order_info_manager.check_block(
                header.attempt_id, topic, work.group, queue_id, header.invisible_time
            ):
                if self._node.hooks.on:
                    self._node.hooks.emit(
                        OrderBlocked(work.group, topic, queue_id, header.attempt_id or "", work.pop_time)
                    )
                return
            self._in_flight.clear(topic, work.group, queue_id)
        if work.room <= 0:
            work.rest += self._store.get_max_offset_in_queue(topic, queue_id) - offset
            return
        result = self._read(work, topic, queue_id, offset)
        if result is not None and result.status in _WRONG_OFFSET:
            offset = result.next_begin_offset
            self._committed.commit_offset(work.group, topic, queue_id, offset, "pop corrected")
            result = self._read(work, topic, queue_id, offset)
        if result is None:
            work.rest += self._store.get_max_offset_in_queue(topic, queue_id) - offset
            return
        if not await self._hand_out(work, topic, queue_id, offset, result, is_retry):
            work.rest += result.message_count
            return
        work.rest += result.max_offset - result.next_begin_offset
        self._add_records(work, topic, queue_id, offset, result, is_retry)
        self._in_flight.increment(topic, work.group, queue_id, result.message_count)

    def _read(self, work: PopWork, topic: str, queue_id: int, offset: int) -> GetMessageResult | None:
        wanted = work.message_filter
        result = self._store.get_message(work.group, topic, queue_id, offset, work.room, wanted)
        if result is not None and wanted is not None and self._node.hooks.on:
            wanted.tell_read(self._node.hooks, topic, queue_id, offset, result)
        return result

    async def _hand_out(
        self, work: PopWork, topic: str, queue_id: int, offset: int, result: GetMessageResult, is_retry: bool
    ) -> bool:
        """Note that the messages found are given away; False when that could not be noted, so that they stay."""
        group, header = work.group, work.header
        if not result.messages:
            self._move_on(work, topic, queue_id, offset, result)
            return True
        self._stats.got(group, topic, result.message_count, result.buffer_total_size, header.topic)
        if work.order:
            self._services.consumer_order_info_manager.update(
                header.attempt_id, is_retry, topic, group, queue_id, work.pop_time, header.invisible_time,
                result.queue_offsets, work.order_count_info,
            )  # fmt: skip
            self._committed.commit_offset(group, topic, queue_id, offset, "pop in order")
        elif not await self._append_check_point(work, topic, queue_id, offset, result):
            return False
        work.start_offset_info.append(start_offset_info(topic, queue_id, offset))
        work.msg_offset_info.append(msg_offset_info(topic, queue_id, result.queue_offsets))
        if self._node.hooks.on:
            tell_popped(self._node, work, topic, queue_id, offset, result)
        return True

    def _move_on(self, work: PopWork, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> None:
        """Let the group's offset pass what was read and is of no use to it, each in its turn."""
        if result.status not in _NOTHING_OF_USE or result.next_begin_offset < 0:
            return
        if work.order:
            self._committed.commit_offset(work.group, topic, queue_id, result.next_begin_offset, "pop in order")
            return
        self._services.pop_buffer_merge_service.add_ck_mock(
            work.group,
            topic,
            queue_id,
            offset,
            work.header.invisible_time,
            work.pop_time,
            work.revive_qid,
            result.next_begin_offset,
            self._config.broker_name,
        )

    async def _append_check_point(
        self, work: PopWork, topic: str, queue_id: int, offset: int, result: GetMessageResult
    ) -> bool:
        """Note in a check point what is handed out: in memory if that can be, else in the revive topic."""
        ck = PopCheckPoint(
            start_offset=offset,
            pop_time=work.pop_time,
            invisible_time=work.header.invisible_time,
            num=len(result.messages),
            queue_id=queue_id,
            topic=topic,
            group=work.group,
            queue_offset_diff=[queue_offset - offset for queue_offset in result.queue_offsets],
            broker_name=self._config.broker_name,
        )
        buffer = self._services.pop_buffer_merge_service
        if buffer.add_ck(ck, work.revive_qid, -1, result.next_begin_offset):
            return True
        made = buffer.add_ck_just_offset(ck, work.revive_qid, -1, result.next_begin_offset)
        return made if isinstance(made, bool) else await made

    def _add_records(
        self, work: PopWork, topic: str, queue_id: int, offset: int, result: GetMessageResult, is_retry: bool
    ) -> None:
        work.messages += result.message_count
        if not is_retry or self._config.pop_response_return_actual_retry_topic:
            work.records += result.messages
            return
        header, broker_name, flag = work.header, self._config.broker_name, retry_flag(topic)
        for record, queue_offset in zip(result.messages, result.queue_offsets, strict=True):
            handle = ReceiptHandle(
                offset, work.pop_time, header.invisible_time, work.revive_qid, flag, broker_name, queue_id, queue_offset
            )
            work.records.append(under_plain_topic(record, header.topic, handle))


def tell_popped(node: Node, work: PopWork, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> None:
    """Tell of each message that a pop takes out of one queue."""
    emit, header, remote = node.hooks.emit, work.header, work.channel.remote_address
    for record, queue_offset in zip(result.messages, result.queue_offsets, strict=True):
        emit(
            MessagePopped(
                work.group,
                topic,
                queue_id,
                queue_offset,
                _unique_key(record),
                offset,
                work.pop_time,
                header.invisible_time,
                work.revive_qid,
                _reconsume_times(record),
                remote,
            )
        )


def _unique_key(record: bytes) -> str:
    """The unique key in a record, without reading the rest of it: properties stand at its end."""
    begin = record.rfind(b"UNIQ_KEY\x01")
    if begin < 0:
        return ""
    begin += 9
    end = record.find(b"\x02", begin)
    return record[begin : end if end >= 0 else len(record)].decode("utf-8", "replace")


def _reconsume_times(record: bytes) -> int:
    """How often the message in a record was consumed before; 0 for an entry of zeros, which has no record."""
    if len(record) < RECORD_MIN_BYTES:
        return 0
    long_hosts = (_WORD.unpack_from(record, SYS_FLAG_OFFSET)[0] & _HOST_BITS).bit_count()
    times: int = _WORD.unpack_from(record, _RECONSUME_TIMES_OFFSET + long_hosts * _LONGER_HOST)[0]
    return times
