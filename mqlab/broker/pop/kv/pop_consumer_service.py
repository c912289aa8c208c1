"""Pop with records in a key-value store in place of check points and acknowledgements in a revive topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_cache import OFFSET_NOT_EXIST, PopConsumerCache
from mqlab.broker.pop.kv.pop_consumer_context import Found, PopConsumerContext
from mqlab.broker.pop.kv.pop_consumer_lock_service import PopConsumerLockService
from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord, RetryType
from mqlab.broker.pop.kv.pop_consumer_reviver import PopConsumerReviver
from mqlab.broker.pop.kv.pop_consumer_store import PopConsumerStore
from mqlab.protocol.topics import pop_retry_topic
from mqlab.sim import DiskFull, Future, ServiceThread
from mqlab.store import GetMessageResult, GetMessageStatus
from mqlab.trace.events.pop import (
    AckLost,
    CheckPointPutAgain,
    PopQueueBusy,
    PopRecordDeleted,
    PopRecordsNotWritten,
    PopRecordWritten,
)

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.consumer_order_info_manager import ConsumerOrderInfoManager
    from mqlab.store.get_message import MessageFilter

FOLDER = "kvStore"
PERIOD_MS = 500
PREFER_RETRY_ONE_IN = 5
LOOK_BACK_MS = 3_000
NOT_YET_MS = 50
"""A record is due only this long behind its time."""
REWRITE_INTERVALS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
CLEAN_LOCKS_MS = 60_000

_CORRECTED = (
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
)


class PopConsumerService(ServiceThread):
    """The key-value engine: a record for each message that is popped, deleted when it is acknowledged.

    Java: org.apache.rocketmq.broker.pop.PopConsumerService. A scan every 500 ms takes the records whose time is over
    and puts their messages into the retry topic; what cannot be put is tried again, 16 times in all, after 10 s to 2 h.
    How far a group was given messages is its pull offset, in memory; the committed offset is where its last pop began,
    so after a restart what the last pop of each queue took is given once more.

    Differs from RocketMQ: without records the scan sleeps; and where `pop_response_return_actual_retry_topic` is set,
    the messages of a retry topic are those that get a handle (5.3.3 counts queues where it means messages, and may
    give it to others).
    """

    def __init__(
        self,
        broker: BrokerParts,
        order_info: ConsumerOrderInfoManager,
        init_offset: Callable[[str, str, int, int], int],
    ) -> None:
        super().__init__(broker.node, "PopConsumerService", PERIOD_MS)
        self._broker = broker
        self._config = broker.broker_config
        self._offsets = broker.consumer_offset_manager
        self._order_info = order_info
        self._init_offset = init_offset
        self._requests: dict[tuple[str, str], int] = {}
        self._scanned_ms = LOOK_BACK_MS
        self._cleaned_locks_ms = self.node.now_ms()
        self._slept = False
        self.locks = PopConsumerLockService(self.node.now_ms)
        self.store = PopConsumerStore(self.node, broker.message_store_config.path(FOLDER))
        self.reviver = PopConsumerReviver(broker)
        self.cache: PopConsumerCache | None = None
        if self._config.enable_pop_buffer_merge:
            self.cache = PopConsumerCache(
                self.node, self._config, self._offsets, self.store, self.locks, self.reviver.revive
            )

    # -- life -------------------------------------------------------------------------------------------------------

    def has_work(self) -> bool:
        """Is there any record in the store?"""
        self._slept = not len(self.store)
        return not self._slept

    def start(self) -> None:
        """Read the records, and let the scans begin."""
        self.store.start()
        if self.cache is not None:
            self.cache.start()
        super().start()

    def shutdown(self) -> None:
        """Stop, and make the records safe. As in RocketMQ those in the cache are forgotten."""
        super().shutdown()
        if self.cache is not None:
            self.cache.shutdown()
        self.store.shutdown()

    # -- popping ----------------------------------------------------------------------------------------------------

    def pop(
        self,
        pop_time: int,
        invisible_time: int,
        group: str,
        topic: str,
        queue_id: int,
        batch_size: int,
        *,
        fifo: bool,
        attempt_id: str | None,
        init_mode: int,
        message_filter: MessageFilter | None = None,
        remote: str = "",
    ) -> PopConsumerContext | Future[PopConsumerContext]:
        """Take up to `batch_size` messages for `invisible_time` ms; queue -1 means any. A Future while the disk is
        slow.

        Java: org.apache.rocketmq.broker.pop.PopConsumerService.popAsync.
        """
        context = PopConsumerContext(pop_time, invisible_time, group, topic, fifo, init_mode, attempt_id, remote)
        config = self._broker.topic_config_manager.topic_config_table.get(topic)
        if config is None:
            return context
        if not self.locks.try_lock(group, topic):
            if self.node.hooks.on:
                self.node.hooks.emit(PopQueueBusy(group, topic, queue_id))
            return context
        count = self._requests.get((group, topic), 0)
        self._requests[group, topic] = count + 1
        prefer_retry = not fifo and count % PREFER_RETRY_ONE_IN == 0
        if prefer_retry:
            self._take_retries(context, batch_size, message_filter)
        if queue_id != -1:
            self._take(context, topic, queue_id, batch_size, message_filter, RetryType.NORMAL_TOPIC)
        else:
            queues = config.read_queue_nums
            for i in range(queues):
                current = (count + i) % queues
                self._take(context, topic, current, batch_size, message_filter, RetryType.NORMAL_TOPIC)
            if not fifo and not prefer_retry:
                self._take_retries(context, batch_size, message_filter)
        return self._note_records(context)

    def _take_retries(self, context: PopConsumerContext, batch_size: int, message_filter: MessageFilter | None) -> None:
        group, topic = context.group, context.topic
        if self._config.retrieve_message_from_pop_retry_topic_v1:
            retry_topic = pop_retry_topic(topic, group)
            self._take(context, retry_topic, 0, batch_size, message_filter, RetryType.RETRY_TOPIC_V1)
        if self._config.enable_retry_topic_v2:
            retry_topic = pop_retry_topic(topic, group, version_2=True)
            self._take(context, retry_topic, 0, batch_size, message_filter, RetryType.RETRY_TOPIC_V2)

    def _take(
        self,
        context: PopConsumerContext,
        topic: str,
        queue_id: int,
        batch_size: int,
        message_filter: MessageFilter | None,
        retry_type: RetryType,
    ) -> None:
        """Take what is missing in the batch out of one queue, and move the group on in it."""
        group = context.group
        if context.failed or self.is_pop_should_stop(group, topic, queue_id):
            return
        if context.fifo and self._order_info.check_block(
            context.attempt_id, topic, group, queue_id, context.invisible_time
        ):
            return
        missing = batch_size - context.message_count
        if missing <= 0:
            context.rest_count += self._pending(group, topic, queue_id)
            return
        offset = self.get_pop_offset(group, topic, queue_id, context.init_mode)
        result = self._get_message(group, topic, queue_id, offset, missing, message_filter)
        if result is None:
            context.failed = True
            return
        if result.status is GetMessageStatus.FOUND and result.queue_offsets:
            self._found(context, Found(topic, queue_id, retry_type, offset, result))
        self._move_on(context, topic, queue_id, offset, result)

    def _found(self, context: PopConsumerContext, found: Found) -> None:
        result = found.result
        if context.fifo:
            self._order_info.update(
                context.attempt_id,
                False,
                found.topic,
                context.group,
                found.queue_id,
                context.pop_time,
                context.invisible_time,
                list(result.queue_offsets),
                context.order_count_info,
            )
        context.found.append(found)
        context.rest_count += result.max_offset - result.next_begin_offset

    def _move_on(
        self, context: PopConsumerContext, topic: str, queue_id: int, offset: int, result: GetMessageResult
    ) -> None:
        """Note how far the group has come in a queue (PopConsumerService.handleGetMessageResult)."""
        group = context.group
        commit = offset
        if context.fifo:
            if result.status is not GetMessageStatus.FOUND:
                commit = result.next_begin_offset
        else:
            self._offsets.commit_pull_offset(group, topic, queue_id, result.next_begin_offset)
            if self.cache is not None:
                least = self.cache.min_offset((group, topic, queue_id))
                if least != OFFSET_NOT_EXIST:
                    commit = least
        self._offsets.commit_offset(group, topic, queue_id, commit, "popped")

    def _get_message(
        self, group: str, topic: str, queue_id: int, offset: int, most: int, message_filter: MessageFilter | None
    ) -> GetMessageResult | None:
        """Read a queue, and once more where the store says that the offset was wrong."""
        store = self._broker.message_store
        result = store.get_message(group, topic, queue_id, offset, most, message_filter)
        if result is not None and result.status in _CORRECTED:
            self._offsets.commit_offset(group, topic, queue_id, result.next_begin_offset, "popped")
            return store.get_message(group, topic, queue_id, result.next_begin_offset, most, message_filter)
        return result

    def get_pop_offset(self, group: str, topic: str, queue_id: int, init_mode: int) -> int:
        """Where the group goes on in a queue: behind what it was given, or where a reset says."""
        offset = self._offsets.query_pull_offset(group, topic, queue_id)
        if offset < 0:
            offset = self._init_offset(topic, group, queue_id, init_mode)
        reset = self._offsets.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is None:
            return offset
        # Java asks for the lock here that the pop itself holds, and goes on without it.
        self._forget(group, topic, queue_id)
        self._order_info.clear_block(topic, group, queue_id)
        self._offsets.commit_offset(group, topic, queue_id, reset, "reset")
        return reset

    def is_pop_should_stop(self, group: str, topic: str, queue_id: int) -> bool:
        """Has the group so many messages of a queue in hand that it gets no more? Only with the cache."""
        return (
            self._config.enable_pop_message_threshold
            and self.cache is not None
            and self.cache.in_flight((group, topic, queue_id)) >= self._config.pop_inflight_message_threshold
        )

    def _pending(self, group: str, topic: str, queue_id: int) -> int:
        end = self._broker.message_store.get_max_offset_in_queue(topic, queue_id)
        return end - self._offsets.query_offset(group, topic, queue_id)

    # -- records ----------------------------------------------------------------------------------------------------

    def _note_records(self, context: PopConsumerContext) -> PopConsumerContext | Future[PopConsumerContext]:
        """Write down what was found, and free the lock when it is safe.

        When that fails RocketMQ never answers: the consumer's request times out, and the group has been moved past the
        messages.
        """
        written: Future[None] | None = None
        if context.is_found and not context.fifo and not context.failed:
            records = context.records()
            in_cache = self.cache is not None and not self.cache.is_full
            try:
                written = self._write(records, in_cache=in_cache)
            except DiskFull as error:
                context.failed = True
                self._not_written(len(records), error)
        if written is None:
            self.locks.unlock(context.group, context.topic)
            return context
        answer: Future[PopConsumerContext] = self.node.future("the records of a pop to be safe")

        def safe(_: Future[None]) -> None:
            self.locks.unlock(context.group, context.topic)
            answer.set_result(context)

        written.add_done_callback(safe)
        return answer

    def _write(self, records: list[PopConsumerRecord], *, in_cache: bool) -> Future[None] | None:
        """Note that messages are in hand; DiskFull with nothing noted."""
        written: Future[None] | None = None
        if in_cache:
            assert self.cache is not None
            self.cache.write_records(records)
        else:
            written = self.store.write_records(records)
            self.wakeup_for_work()
        hooks = self.node.hooks
        if hooks.on:
            for record in records:
                hooks.emit(
                    PopRecordWritten(
                        record.group,
                        record.topic,
                        record.queue_id,
                        record.offset,
                        record.pop_time,
                        record.invisible_time,
                        record.attempt_times,
                        "cache" if in_cache else "store",
                    )
                )
        return written

    def _delete(self, record: PopConsumerRecord, reason: str) -> Future[None] | None:
        """Note that a message is no longer in hand; DiskFull with nothing changed."""
        hooks = self.node.hooks
        if self.cache is not None and self.cache.delete_record(record):
            deleted = None
        else:
            if hooks.on and record not in self.store:
                hooks.emit(
                    AckLost(
                        record.group,
                        record.topic,
                        record.queue_id,
                        record.offset,
                        record.offset,
                        record.pop_time,
                        "no record of this delivery",
                    )
                )
                return self.store.delete_records([record])
            deleted = self.store.delete_records([record])
        if hooks.on:
            hooks.emit(
                PopRecordDeleted(
                    record.group, record.topic, record.queue_id, record.offset, record.pop_time, reason
                )
            )
        return deleted

    def _not_written(self, records: int, error: DiskFull) -> None:
        if self.node.hooks.on:
            self.node.hooks.emit(PopRecordsNotWritten(records, str(error).partition("\n")[0]))

    def _forget(self, group: str, topic: str, queue_id: int) -> None:
        if self.cache is not None:
            self.cache.remove_records((group, topic, queue_id))

    def clear_cache(self, group: str, topic: str, queue_id: int) -> None:
        """Forget what the cache holds of a queue, and free the lock whoever has it, as RocketMQ does at a reset."""
        self._forget(group, topic, queue_id)
        self.locks.unlock(group, topic)
