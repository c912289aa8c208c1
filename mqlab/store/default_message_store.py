"""The store of a broker: takes messages, gives them back, and finds its way again after a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..protocol.batch import decode_batch
from ..protocol.errors import RecordError
from ..protocol.hashing import tags_code
from ..protocol.properties import DECODED_MAP_CAPACITY, decode_properties, encode_properties
from ..protocol.record import encode_record
from ..sim.disk import DiskFull
from ..sim.future import Future
from ..trace.events.store import (
    CheckpointWritten,
    CommitLogFileCreated,
    CommitLogFlushed,
    FileDeleted,
    MessageStored,
    PutRefused,
    StoreStopped,
)
from .dispatch_request import (
    RMQ_SYS_SCHEDULE_TOPIC,
    DispatchRequest,
    inner_num,
    stored_tags_code,
)
from .mapped_file import MappedFile
from .message_store_config import BrokerRole, MessageStoreConfig
from .put_checks import TOPIC_MAX, check_batch, check_inner_batch, check_message, check_sizes, refused
from .put_message import MessageExtBrokerInner, PutMessageResult, PutMessageStatus
from .readable_store import ReadableStore
from .recovery import Recovery
from .reput_message_service import Reput
from .running_flags import RunningFlags
from .services import StoreServices

if TYPE_CHECKING:
    from ..sim.node import Node

ArrivingListener = Callable[[str, int, int, int, int, None, dict[str, str]], Any]
"""(topic, queue id, queue offset + 1, tags code, store time ms, filter bitmap, properties) of a message just
dispatched.
"""

PutMessageHook = Callable[[MessageExtBrokerInner], PutMessageResult | None]
"""Looks at a message before it is stored, may change it, and refuses it by returning a result."""

_POSITION_CHECKPOINT = b'{\n\t"empty":true,\n\t"queueOffsetMap":{}\n}'
"""What a broker without compacted topics leaves in compaction/position-checkpoint at each stop."""

_SHORT_TOPIC = TOPIC_MAX // 3
_SHORT_PROPERTIES = 32767 // 3
_TRANSACTION_BITS = 0xC
_COMMIT = 0x8


class DefaultMessageStore(ReadableStore):
    """One broker's store on the disk of its node (org.apache.rocketmq.store.DefaultMessageStore).

    `load()` opens the directory and recovers; `start()` lets the threads run; `shutdown()` closes it in good order.
    `put_message_hooks` see each message before it is stored, `message_arriving_listener` hears of each one that can be
    read.

    Differs from RocketMQ: a put is one step of the world, so no lock is held; `put` hands what dispatching needs to the
    reput service; and the index catches up when it is asked.
    """

    def __init__(
        self,
        node: Node,
        config: MessageStoreConfig | None = None,
        *,
        is_batch_topic: Callable[[str], bool] = lambda topic: False,
    ) -> None:
        super().__init__(node, config, is_batch_topic=is_batch_topic)
        self.node = node
        self.reput = Reput(self)
        self.put_message_hooks: list[PutMessageHook] = []
        self.message_arriving_listener: ArrivingListener | None = None
        self.services: StoreServices | None = None
        self.is_shutdown = True
        self.checkpoint_written = self.store_checkpoint.encode()
        self._now_ms = node.now_ms
        self._batch_keys: set[tuple[str, int]] = set()

    # -- life -------------------------------------------------------------------------------------------------------

    def load(self) -> Recovery:
        """Open the directory and recover what a stop left; StoreError where RocketMQ would refuse to start."""
        recovery = super().load()
        queues = self.consume_queue_store
        self._batch_keys = {key for key in queues.consume_queue_table if queues.is_batch(*key)}
        self.reput.begin_at(self.commit_log.max_offset)
        return recovery

    def start(self) -> None:
        """Mark the directory as in use and let the threads of the store run."""
        services = StoreServices(self)
        path = self.config.path
        self.disk.write_bytes(path("lock"), b"lock", flush=True)
        self.disk.write_bytes(path("abort"), str(self.node.spec.pid).encode(), flush=True)
        # Made empty by RocketMQ's way of replacing a file, and never removed.
        self.disk.write_bytes(path("abort.bak"), b"", flush=True)
        self.services = services
        self.is_shutdown = False
        services.start()

    def shutdown(self) -> None:
        """Close the store in good order: dispatch and flush everything; then the next start sees a clean stop."""
        if self.services is None:
            return
        self.is_shutdown = True
        services, self.services = self.services, None
        services.shutdown()
        # As in RocketMQ this last flush does not move the checkpoint's physicMsgTimestamp.
        self.commit_log.mapped_file_queue.flush_all()
        services.answer_waiting()
        self.reput.do_reput()
        self.commit_log.drop_preallocated()
        self.consume_queue_store.flush(0)
        self.build_index()
        self.index_service.flush()
        self.flush_checkpoint()
        self.disk.write_bytes(self.config.path("compaction", "position-checkpoint"), _POSITION_CHECKPOINT, flush=True)
        clean = self.running_flags.is_writeable and self.dispatch_behind_bytes == 0
        if clean:
            self.disk.remove(self.config.path("abort"))
        if self.hooks.on:
            self.hooks.emit(StoreStopped(clean))

    # -- putting ----------------------------------------------------------------------------------------------------

    def put_message(self, message: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store a message; a Future when the answer has to wait for a flush.

        The message gets its store time, queue offset and commit-log offset. What is not stored has a status that says
        why.
        """
        if (
            self.is_shutdown
            or self.running_flags.bits & RunningFlags.NO_PUT
            or self.config.broker_role is BrokerRole.SLAVE
            or self.commit_log.begin_time_in_lock_ms
            or len(message.topic) > _SHORT_TOPIC
        ):
            refusal = self._unavailable() or check_message(message)
            if refusal is not None:
                return self._refuse(message, refusal)
        for hook in self.put_message_hooks:
            refusal = hook(message)
            if refusal is not None:
                return self._refuse(message, refusal)
        topic, body = message.topic, message.body
        key = topic, message.queue_id
        offsets = self.consume_queue_store.topic_queue_table
        queue_offset = offsets.get(key, -1)
        if queue_offset < 0:
            queue_offset = self._first_offset(key)
        batch_size = 0
        if key in self._batch_keys or message.sys_flag & 0xC0 or body is None:
            refusal = check_message(message) or check_inner_batch(message, key in self._batch_keys)
            if refusal is not None:
                return self._refuse(message, refusal)
            if key in self._batch_keys:
                batch_size = self._mark_inner_batch(message, queue_offset)
        properties = message.properties_string
        if properties is None:
            properties = encode_properties(message.properties)
        if len(body) > self.config.max_message_size or len(properties) > _SHORT_PROPERTIES:
            refusal = check_sizes(body, properties, self.config.max_message_size)
            if refusal is not None:
                return self._refuse(message, refusal)
        sys_flag = message.sys_flag
        transaction = sys_flag & _TRANSACTION_BITS
        has_entry = not transaction or transaction == _COMMIT
        if not has_entry:
            queue_offset = 0
        try:
            result = self._append(message, properties, queue_offset, batch_size)
        except DiskFull as problem:
            return self._disk_full(message, problem)
        if has_entry:
            offsets[key] = queue_offset + (batch_size or 1)
        return self._wait_for_flush(message, result)

    def _append(
        self, message: MessageExtBrokerInner, properties: str, queue_offset: int, batch_size: int
    ) -> PutMessageResult:
        """Write one record and hand its dispatch request to the reput service."""
        store_timestamp = self._now_ms()
        files = self.commit_log.mapped_file_queue.mapped_files
        file = files[-1] if files else self._next_file(0)
        wrote_offset = file.file_from_offset + file.wrote_position
        record = self._encode(message, properties, queue_offset, wrote_offset, store_timestamp)
        size = len(record)
        if size + 8 > file.file_size - file.wrote_position:
            file = self._next_file(size)
            wrote_offset = file.file_from_offset + file.wrote_position
            record = self._encode(message, properties, queue_offset, wrote_offset, store_timestamp)
        file.file.write(file.wrote_position, record)
        file.wrote_position += size
        file.store_timestamp = store_timestamp
        message.store_timestamp = store_timestamp
        message.queue_offset = queue_offset
        message.commit_log_offset = wrote_offset
        message.store_size = size
        topic, queue_id, own = message.topic, message.queue_id, message.properties
        if topic == RMQ_SYS_SCHEDULE_TOPIC:
            code = stored_tags_code(topic, own, store_timestamp, self.delays_ms)
        else:
            code = tags_code(own.get("TAGS"))
        self.reput.requests.append(
            DispatchRequest(
                topic,
                queue_id,
                wrote_offset,
                size,
                code,
                store_timestamp,
                queue_offset,
                message.sys_flag,
                batch_size,
                own,
            )
        )
        if self.hooks.on:
            self.hooks.emit(MessageStored(topic, queue_id, queue_offset, wrote_offset, size, own.get("UNIQ_KEY", "")))
        return PutMessageResult(
            PutMessageStatus.PUT_OK, wrote_offset, size, queue_offset, store_timestamp, message.store_host
        )

    def _encode(
        self, message: MessageExtBrokerInner, properties: str, queue_offset: int, offset: int, timestamp: int
    ) -> bytes:
        return encode_record(
            message.topic,
            message.body,
            properties,
            message.queue_id,
            queue_offset,
            offset,
            timestamp,
            message.born_timestamp,
            message.born_host,
            message.store_host,
            message.flag,
            message.sys_flag,
            message.reconsume_times,
            message.prepared_transaction_offset,
        )

    def _next_file(self, size: int) -> MappedFile:
        file = self.commit_log.file_for(size)
        if self.hooks.on and not file.wrote_position:
            self.hooks.emit(CommitLogFileCreated(file.file_from_offset))
        return file

    def put_messages(self, batch: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store the messages of a batch body (CommitLog.putMessages), each as a record of its own with the batch's
        properties added.

        If one of them does not fit in the file, all go to the next file. The result has the offsets of all.
        """
        refusal = self._unavailable() or check_message(batch) or check_batch(batch, self.config.max_message_size)
        if refusal is not None:
            return self._refuse(batch, refusal)
        try:
            singles = self._single_messages(batch)
        except RecordError as problem:
            return self._refuse(batch, refused(PutMessageStatus.UNKNOWN_ERROR, str(problem)))
        for single in singles:
            refusal = check_sizes(single.body, single.properties_string or "", self.config.max_message_size)
            if refusal is not None:
                return self._refuse(batch, refusal)
        key = batch.topic, batch.queue_id
        first = self.consume_queue_store.topic_queue_table.get(key, -1)
        if first < 0:
            first = self._first_offset(key)
        try:
            self._make_room_for(singles)
            results = [
                self._append(single, single.properties_string or "", first + i, 0) for i, single in enumerate(singles)
            ]
        except DiskFull as problem:
            return self._disk_full(batch, problem)
        self.consume_queue_store.topic_queue_table[key] = first + len(results)
        batch.queue_offset, batch.store_timestamp = first, results[0].store_timestamp
        batch.commit_log_offset = results[0].wrote_offset
        last = results[-1]
        whole = PutMessageResult(
            PutMessageStatus.PUT_OK,
            results[0].wrote_offset,
            last.wrote_offset + last.wrote_bytes - results[0].wrote_offset,
            first,
            last.store_timestamp,
            batch.store_host,
            tuple(result.wrote_offset for result in results),
        )
        return self._wait_for_flush(batch, whole)

    def _single_messages(self, batch: MessageExtBrokerInner) -> list[MessageExtBrokerInner]:
        singles = []
        shared = batch.stored_properties()
        for entry in decode_batch(batch.body):
            separator = "\x02" if entry.properties and shared and not entry.properties.endswith("\x02") else ""
            text = f"{entry.properties}{separator}{shared}"
            single = MessageExtBrokerInner(
                batch.topic,
                entry.body,
                queue_id=batch.queue_id,
                flag=entry.flag,
                sys_flag=batch.sys_flag,
                properties=decode_properties(text),
                properties_string=text,
                born_timestamp=batch.born_timestamp,
                born_host=batch.born_host,
                store_host=batch.store_host,
                reconsume_times=batch.reconsume_times,
            )
            singles.append(single)
        return singles

    def _make_room_for(self, singles: list[MessageExtBrokerInner]) -> None:
        """Begin a new file if the records do not all fit in this one."""
        total = sum(len(self._encode(single, single.properties_string or "", 0, 0, 0)) for single in singles)
        files = self.commit_log.mapped_file_queue.mapped_files
        if files and total + 8 > files[-1].file_size - files[-1].wrote_position:
            self._next_file(total)

    def _first_offset(self, key: tuple[str, int]) -> int:
        """The queue offset of the first message that this life of the process stores in a queue."""
        if self.consume_queue_store.is_batch(*key):
            self._batch_keys.add(key)
        return 0

    def _mark_inner_batch(self, message: MessageExtBrokerInner, queue_offset: int) -> int:
        """Note in the message at which queue offset its batch begins; how many messages the batch holds."""
        message.properties["INNER_BASE"] = str(queue_offset)
        message.properties_string = encode_properties(message.properties, DECODED_MAP_CAPACITY)
        return inner_num(message.sys_flag, message.properties)

    def _wait_for_flush(
        self, message: MessageExtBrokerInner, result: PutMessageResult
    ) -> PutMessageResult | Future[PutMessageResult]:
        services = self.services
        assert services is not None
        services.reput.wakeup_for_work()
        if services.group_commit is None:
            services.flush.wakeup_for_work()
            return result
        if not message.wait_store_msg_ok:
            services.group_commit.wakeup()
            return result
        return services.group_commit.put_request(result)

    def _unavailable(self) -> PutMessageResult | None:
        if self.is_shutdown:
            return refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, "the store is shut down")
        if self.config.broker_role is BrokerRole.SLAVE:
            return refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, "the broker is a slave")
        if not self.running_flags.is_writeable:
            return refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, ", ".join(self.running_flags.reasons()))
        if self.is_os_page_cache_busy():
            return refused(PutMessageStatus.OS_PAGE_CACHE_BUSY, "a put has held the lock for too long")
        return None

    def _refuse(self, message: MessageExtBrokerInner, refusal: PutMessageResult) -> PutMessageResult:
        if self.hooks.on:
            self.hooks.emit(PutRefused(message.topic, message.queue_id, refusal.status.value, refusal.remark))
        return refusal

    def _disk_full(self, message: MessageExtBrokerInner, problem: DiskFull) -> PutMessageResult:
        self.running_flags.set(RunningFlags.DISK_FULL)
        return self._refuse(message, refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, str(problem)))

    def is_os_page_cache_busy(self) -> bool:
        """Has a put held the lock for over a second? Only when a fault says so: set
        `commit_log.begin_time_in_lock_ms`.

        Java: org.apache.rocketmq.store.DefaultMessageStore.isOSPageCacheBusy. Differs from RocketMQ: a put takes no
        time here, so the lock is held that long only when a fault says so.
        """
        begin = self.commit_log.begin_time_in_lock_ms
        return begin > 0 and self._now_ms() - begin > self.config.os_page_cache_busy_time_out_mills

    # -- dispatching and flushing -----------------------------------------------------------------------------------

    def dispatch(self, request: DispatchRequest) -> None:
        """Give a stored message its queue entry (DefaultMessageStore.doDispatch); prepared and rolled-back ones get
        none.
        """
        if request.has_queue_entry:
            self.consume_queue_store.put(request)
            self.store_checkpoint.logics_msg_timestamp = request.store_timestamp
            if self.services is not None:
                self.services.dispatched()

    @property
    def dispatched_offset(self) -> int:
        """The end of what is dispatched."""
        return self.reput.reput_from_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How many bytes of the commit log are not dispatched."""
        return self.reput.behind_bytes

    def resume_dispatch(self) -> None:
        """There may be room for queue entries again."""
        if self.reput.stalled:
            self.reput.stalled = False
            if self.services is not None:
                self.services.reput.wakeup_for_work()

    def flush_commit_log(self, least_pages: int) -> None:
        """Make the commit log safe: all of it with 0, else if one file has so many dirty pages."""
        files = self.commit_log.mapped_file_queue
        moved = files.flush_all() if least_pages == 0 else files.flush(least_pages)
        if files.store_timestamp:
            self.store_checkpoint.physic_msg_timestamp = files.store_timestamp
        if moved:
            if self.hooks.on:
                self.hooks.emit(CommitLogFlushed(files.flushed_where, least_pages == 0))
            if self.services is not None:
                self.services.flushed()

    def flush_checkpoint(self) -> None:
        """Write the checkpoint file if it says something else; on a full disk it says the old until there is room."""
        encoded = self.store_checkpoint.encode()
        if encoded != self.checkpoint_written:
            try:
                self.store_checkpoint.flush()
            except DiskFull:
                # An older checkpoint only makes recovery read more, and the next turn tries again.
                return
            self.checkpoint_written = encoded
            if self.hooks.on:
                checkpoint = self.store_checkpoint
                self.hooks.emit(
                    CheckpointWritten(
                        checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp
                    )
                )

    # -- deleting ---------------------------------------------------------------------------------------------------

    def delete_topics(self, topics: list[str]) -> int:
        """Delete the queues of these topics (the commit log keeps the messages until they expire); how many queues."""
        count = 0
        for topic in topics:
            count += self.consume_queue_store.delete_topic(topic)
            self._batch_keys = {key for key in self._batch_keys if key[0] != topic}
            if self.hooks.on:
                self.hooks.emit(FileDeleted(self.config.path("consumequeue", topic), "topic deleted"))
        return count
