"""Pop with records in a key-value store in place of check points and acknowledgements in a revive topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_cache import OFFSET_NOT_EXIST
from mqlab.broker.pop.kv.pop_consumer_context import Found, PopConsumerContext
from mqlab.broker.pop.kv.pop_consumer_lock_service import PopConsumerLockService
from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord, RetryType
from mqlab.broker.pop.kv.pop_consumer_records import PopConsumerRecords
from mqlab.broker.pop.kv.pop_consumer_reviver import PopConsumerReviver
from mqlab.broker.pop.kv.pop_consumer_scan import PopConsumerScan
from mqlab.protocol.topics import pop_retry_topic
from mqlab.sim import DiskFull, Future
from mqlab.store import GetMessageResult, GetMessageStatus
from mqlab.trace.events.pop import PopQueueBusy

if TYPE_CHECKING:
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.broker.pop.pop_parts import PopParts

PREFER_RETRY_ONE_IN = 5

_CORRECTED = (
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
)


class PopConsumerService:
    """The key-value engine: a record for each message that is popped, deleted when it is acknowledged.

    Java: org.apache.rocketmq.broker.pop.PopConsumerService. A scan every 500 ms takes the records whose time is over
    and puts their messages into the retry topic. How far a group was given messages is its pull offset, in memory; the
    committed offset is where its last pop began, so after a restart what the last pop of each queue took is given once
    more.

    Differs from RocketMQ: where `pop_response_return_actual_retry_topic` is set, the messages that get a handle are
    those of retry topics (5.3.3 counts queues where it means messages, gives it to others, too, and takes the queue id
    for the offset of the batch).
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self.node = broker.node
        self._broker = broker
        self._config = broker.broker_config
        self._offsets = broker.consumer_offset_manager
        self._pop_offsets = services.pop_offsets
        self._order_info = services.consumer_order_info_manager
        self._requests: dict[tuple[str, str], int] = {}
        self.locks = PopConsumerLockService(self.node.now_ms)
        self.reviver = PopConsumerReviver(broker)
        self.records = PopConsumerRecords(broker, self.locks, self.reviver)
        self.scan = PopConsumerScan(broker, self.records, self.locks, self.reviver)

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the records, and let the scans begin."""
        self.records.start()
        self.scan.start()
        self.records.on_written = self.scan.wakeup_for_work

    def shutdown(self) -> None:
        """Stop, and make the records safe. As in RocketMQ those in the cache are forgotten."""
        self.scan.shutdown()
        self.records.shutdown()

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
    ) -> PopConsumerContext | Future[PopConsumerContext]:
        """Take up to `batch_size` messages for `invisible_time` ms; queue -1 means any. A Future while the disk is
        slow.

        Java: org.apache.rocketmq.broker.pop.PopConsumerService.popAsync.
        """
        context = PopConsumerContext(pop_time, invisible_time, group, topic, fifo, init_mode, attempt_id)
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
            least = self.records.min_offset_in_cache(group, topic, queue_id)
            if least != OFFSET_NOT_EXIST:
                commit = least
        self._offsets.commit_offset(group, topic, queue_id, commit, "popped")

    def _get_message(
        self, group: str, topic: str, queue_id: int, offset: int, most: int, message_filter: MessageFilter | None
    ) -> GetMessageResult | None:
        """Read a queue, and once more where the store says that the offset was wrong."""
        result = self._read(group, topic, queue_id, offset, most, message_filter)
        if result is not None and result.status in _CORRECTED:
            self._offsets.commit_offset(group, topic, queue_id, result.next_begin_offset, "popped")
            return self._read(group, topic, queue_id, result.next_begin_offset, most, message_filter)
        return result

    def _read(
        self, group: str, topic: str, queue_id: int, offset: int, most: int, wanted: MessageFilter | None
    ) -> GetMessageResult | None:
        result = self._broker.message_store.get_message(group, topic, queue_id, offset, most, wanted)
        hooks = self._broker.node.hooks
        if result is not None and wanted is not None and hooks.on:
            wanted.tell_read(hooks, topic, queue_id, offset, result)
        return result

    def get_pop_offset(self, group: str, topic: str, queue_id: int, init_mode: int) -> int:
        """Where the group goes on in a queue: behind what it was given, or where a reset says."""
        offset = self._offsets.query_pull_offset(group, topic, queue_id)
        if offset < 0:
            offset = self._pop_offsets.get_init_offset(topic, group, queue_id, init_mode, init=True)
        reset = self._offsets.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is None:
            return offset
        self.clear_cache(group, topic, queue_id)
        self._order_info.clear_block(topic, group, queue_id)
        self._offsets.commit_offset(group, topic, queue_id, reset, "reset")
        return reset

    def is_pop_should_stop(self, group: str, topic: str, queue_id: int) -> bool:
        """Has the group so many messages of a queue in hand that it gets no more? Only those in the cache count."""
        return (
            self._config.enable_pop_message_threshold
            and self.records.in_flight(group, topic, queue_id) >= self._config.pop_inflight_message_threshold
        )

    def _pending(self, group: str, topic: str, queue_id: int) -> int:
        end = self._broker.message_store.get_max_offset_in_queue(topic, queue_id)
        return end - self._offsets.query_offset(group, topic, queue_id)

    # -- records ----------------------------------------------------------------------------------------------------

    def _note_records(self, context: PopConsumerContext) -> PopConsumerContext | Future[PopConsumerContext]:
        """Write down what was found, and free the lock when that is safe.

        When it fails RocketMQ never answers: the consumer's request times out, and the group has been moved past the
        messages.
        """
        written: Future[None] | None = None
        if context.is_found and not context.fifo and not context.failed:
            try:
                written = self.records.write(context.records())
            except DiskFull:
                context.failed = True
        if written is None:
            self.locks.unlock(context.group, context.topic)
            return context
        answer: Future[PopConsumerContext] = self.node.future("the records of a pop to be safe")

        def safe(_: Future[None]) -> None:
            self.locks.unlock(context.group, context.topic)
            answer.set_result(context)

        written.add_done_callback(safe)
        return answer

    def ack(
        self, pop_time: int, invisible_time: int, group: str, topic: str, queue_id: int, offset: int
    ) -> Future[None] | None:
        """The message of this delivery is done; one that is not known changes nothing. DiskFull when it stays in hand.

        Java: org.apache.rocketmq.broker.pop.PopConsumerService.ackAsync.
        """
        record = PopConsumerRecord(pop_time, group, topic, queue_id, RetryType.NORMAL_TOPIC, invisible_time, offset)
        return self.records.delete(record, "acked")

    def change_invisibility_duration(
        self,
        pop_time: int,
        invisible_time: int,
        changed_pop_time: int,
        changed_invisible_time: int,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
    ) -> Future[None] | None:
        """A message stays in hand for another time from now on: a new record, and the old one goes. DiskFull when the
        new one could not be written, or the old one stays beside it.

        Java: org.apache.rocketmq.broker.pop.PopConsumerService.changeInvisibilityDuration. A message that nobody has in
        hand gets a record all the same.
        """
        normal = RetryType.NORMAL_TOPIC
        changed = PopConsumerRecord(changed_pop_time, group, topic, queue_id, normal, changed_invisible_time, offset)
        self.records.write([changed], to_store=True)
        record = PopConsumerRecord(pop_time, group, topic, queue_id, normal, invisible_time, offset)
        return self.records.delete(record, "changed")

    def clear_cache(self, group: str, topic: str, queue_id: int) -> None:
        """Forget what the cache holds of a queue.

        As in RocketMQ the lock is free behind it, whoever had it: who asks for it does not wait, and gives it back.
        """
        self.records.forget_cached(group, topic, queue_id)
        self.locks.unlock(group, topic)
