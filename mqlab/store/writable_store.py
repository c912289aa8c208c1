"""A store that takes messages: what is refused, what is written, and what its dispatching is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mqlab.protocol.errors import RecordError
from mqlab.protocol.hashing import tags_code
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.sim.disk import DiskFull
from mqlab.sim.future import Future
from mqlab.store.dispatch_request import RMQ_SYS_SCHEDULE_TOPIC, DispatchRequest, inner_num, stored_tags_code
from mqlab.store.errors import RecordTooLarge
from mqlab.store.message_ext_encoder import encode_message, messages_of_batch
from mqlab.store.message_store_config import SLAVE, MessageStoreConfig
from mqlab.store.put_checks import TOPIC_MAX, check_batch, check_inner_batch, check_message, check_sizes, refused
from mqlab.store.put_message import PUT_OK, Append, MessageExtBrokerInner, PutMessageResult, PutMessageStatus
from mqlab.store.readable_store import ReadableStore
from mqlab.store.running_flags import NO_PUT, RunningFlags
from mqlab.trace.events.store import MessageStored, PutRefused

if TYPE_CHECKING:
    from mqlab.sim.node import Node
    from mqlab.store.put_message_lock import PutMessageLock
    from mqlab.store.services import StoreServices

PutMessageHook = Callable[[MessageExtBrokerInner], PutMessageResult | None]
"""Looks at a message before it is stored, may change it, and refuses it by returning a result."""

HandleHA = Callable[[MessageExtBrokerInner, PutMessageResult], Future[PutMessageStatus] | None]
"""Says whether a message that is in the log has to wait for replicas: a Future of what became of them, or None.

Java: org.apache.rocketmq.store.CommitLog.handleHA.
"""

_SHORT_TOPIC = TOPIC_MAX // 3
_SHORT_PROPERTIES = 32767 // 3
_PREPARED = 0x4
"""The bit of a message that is prepared, and of one that is rolled back: nobody may pull either."""
_INNER_BATCH = 0x80
_SHUT_DOWN = "the store is shut down"
_NEVER_UNLOCKED_MS = 10_000_000
"""From then on RocketMQ takes the time at which the lock was taken for that of a lock which nobody holds."""


class WritableStore(ReadableStore):
    """A store that messages are put into: the part of DefaultMessageStore and CommitLog that writes.

    `put_message_hooks` see each message before it is stored; `handle_ha`, if there is any, may let the answer to a put
    wait for replicas. Differs from RocketMQ: a put is one step of the world, so there is a lock only while the disk is
    slow (`put_message_lock`); it leaves a dispatch request in `commit_log.requests`, so that its bytes need not be read
    again.
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
        self.put_message_hooks: list[PutMessageHook] = []
        self.handle_ha: HandleHA | None = None
        self.services: StoreServices | None = None
        self.put_message_lock: PutMessageLock | None = None
        """Where puts wait for each other while the disk is slow; else there is none."""
        self.is_shutdown = True
        self._now_ms = node.now_ms
        self._batch_keys: set[tuple[str, int]] = set()

    # -- putting ----------------------------------------------------------------------------------------------------

    def put_message(self, message: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store a message; a Future when the answer has to wait for a flush, or for the lock of a slow disk's log.

        The message gets its store time, queue offset and commit-log offset. What is not stored has a status that says
        why.
        """
        if (
            self.is_shutdown
            or self.running_flags.bits & NO_PUT
            or self.config.broker_role is SLAVE
            or self.put_message_lock is not None
            or len(message.topic) > _SHORT_TOPIC
        ):
            refusal = self._unavailable() or check_message(message)
            if refusal is not None:
                return self._refuse(message, refusal)
        for hook in self.put_message_hooks:
            refusal = hook(message)
            if refusal is not None:
                return self._refuse(message, refusal)
        if self.put_message_lock is not None:
            return self.put_message_lock.put(message, self._append)
        return self._append(message, self._now_ms())

    async def put_and_wait(self, message: MessageExtBrokerInner) -> PutMessageResult:
        """Store a message, and wait where the answer comes only after a flush or when replicas have it."""
        outcome = self.put_message(message)
        return outcome if isinstance(outcome, PutMessageResult) else await outcome

    def put_locked(self, message: MessageExtBrokerInner, append: Append) -> PutMessageResult | Future[PutMessageResult]:
        """Append what has waited for the lock, now that it is there; the store may have been shut down meanwhile."""
        if self.is_shutdown:
            return self._refuse(message, refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, _SHUT_DOWN))
        return append(message, self.commit_log.begin_time_in_lock_ms)

    def _append(
        self, message: MessageExtBrokerInner, store_timestamp: int
    ) -> PutMessageResult | Future[PutMessageResult]:
        """Append a message that nothing speaks against, with this store time."""
        topic, body, sys_flag = message.topic, message.body, message.sys_flag
        key = topic, message.queue_id
        offsets = self.consume_queue_store.topic_queue_table
        queue_offset = offsets.get(key, -1)
        if queue_offset < 0:
            queue_offset = self._first_offset(key)
        batch_size = 0
        if (
            key in self._batch_keys
            or sys_flag & _INNER_BATCH
            or body is None
            or "INNER_NUM" in message.properties
        ):
            refusal = check_message(message) or check_inner_batch(message, key in self._batch_keys)
            if refusal is not None:
                return self._refuse(message, refusal)
            if sys_flag & _INNER_BATCH:
                batch_size = self._mark_inner_batch(message, queue_offset)
        properties = message.properties_string
        if properties is None:
            properties = encode_properties(message.properties)
        if len(body) > self.config.max_message_size or len(properties) > _SHORT_PROPERTIES:
            refusal = check_sizes(body, properties, self.config.max_message_size)
            if refusal is not None:
                return self._refuse(message, refusal)
        has_no_entry = sys_flag & _PREPARED
        if has_no_entry:
            queue_offset = 0
        encode = partial(encode_message, message, properties, queue_offset, store_timestamp)
        try:
            wrote_offset, size = self.commit_log.append(encode, store_timestamp)
        except (DiskFull, RecordTooLarge) as problem:
            return self._not_appended(message, problem)
        self._announce(message, queue_offset, wrote_offset, size, store_timestamp, batch_size)
        if not has_no_entry:
            offsets[key] = queue_offset + (batch_size or 1)
        assert self.services is not None
        return self.services.handle_disk_flush_and_ha(
            message,
            PutMessageResult(PUT_OK, wrote_offset, size, queue_offset, store_timestamp, message.store_host),
        )

    def _announce(
        self,
        message: MessageExtBrokerInner,
        queue_offset: int,
        commit_log_offset: int,
        size: int,
        store_timestamp: int,
        batch_size: int,
    ) -> None:
        """Note in a message where it was stored, and hand the reput service what it needs to dispatch it."""
        message.store_timestamp = store_timestamp
        message.queue_offset = queue_offset
        message.commit_log_offset = commit_log_offset
        message.store_size = size
        topic, queue_id, own = message.topic, message.queue_id, message.properties
        if topic == RMQ_SYS_SCHEDULE_TOPIC:
            code = stored_tags_code(topic, own, store_timestamp, self.delays_ms)
        else:
            code = tags_code(own.get("TAGS"))
        self.commit_log.requests.append(
            DispatchRequest(
                topic,
                queue_id,
                commit_log_offset,
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
            unique_key = own.get("UNIQ_KEY", "")
            self.hooks.emit(MessageStored(topic, queue_id, queue_offset, commit_log_offset, size, unique_key))

    def put_messages(self, batch: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store the messages of a batch body (CommitLog.putMessages), each as a record of its own with the batch's
        properties added.

        If one of them does not fit in the file, all go to the next file. The result has the offsets of all.
        """
        refusal = self._unavailable() or check_message(batch) or check_batch(batch, self.config.max_message_size)
        if refusal is not None:
            return self._refuse(batch, refusal)
        if self.put_message_lock is not None:
            return self.put_message_lock.put(batch, self._append_batch)
        return self._append_batch(batch, self._now_ms())

    def _append_batch(
        self, batch: MessageExtBrokerInner, store_timestamp: int
    ) -> PutMessageResult | Future[PutMessageResult]:
        try:
            messages = messages_of_batch(batch)
        except RecordError as problem:
            return self._refuse(batch, refused(PutMessageStatus.UNKNOWN_ERROR, str(problem)))
        for message in messages:
            refusal = check_sizes(message.body, message.stored_properties(), self.config.max_message_size)
            if refusal is not None:
                return self._refuse(batch, refusal)
        key = batch.topic, batch.queue_id
        offsets = self.consume_queue_store.topic_queue_table
        first = offsets.get(key, -1)
        if first < 0:
            first = self._first_offset(key)
        records: list[bytes] = []

        def encode(commit_log_offset: int) -> bytes:
            records.clear()
            for queue_offset, message in enumerate(messages, first):
                properties = message.stored_properties()
                records.append(encode_message(message, properties, queue_offset, store_timestamp, commit_log_offset))
                commit_log_offset += len(records[-1])
            return b"".join(records)

        try:
            wrote_offset, size = self.commit_log.append(encode, store_timestamp)
        except (DiskFull, RecordTooLarge) as problem:
            return self._not_appended(batch, problem)
        at = wrote_offset
        for queue_offset, (message, record) in enumerate(zip(messages, records, strict=True), first):
            self._announce(message, queue_offset, at, len(record), store_timestamp, 0)
            at += len(record)
        offsets[key] = first + len(messages)
        batch.queue_offset, batch.store_timestamp, batch.commit_log_offset = first, store_timestamp, wrote_offset
        assert self.services is not None
        return self.services.handle_disk_flush_and_ha(
            batch,
            PutMessageResult(
                PUT_OK,
                wrote_offset,
                size,
                first,
                store_timestamp,
                batch.store_host,
                tuple(message.commit_log_offset for message in messages),
            ),
        )

    def _first_offset(self, key: tuple[str, int]) -> int:
        """The queue offset of the first message that this life of the process stores in a queue."""
        if self.consume_queue_store.is_batch(*key):
            self._batch_keys.add(key)
        return 0

    def _mark_inner_batch(self, message: MessageExtBrokerInner, queue_offset: int) -> int:
        """Note in the message at which queue offset its batch begins; how many messages the batch holds."""
        message.properties["INNER_BASE"] = str(queue_offset)
        message.properties_string = encode_properties(message.properties, DECODED_MAP_CAPACITY)
        return inner_num(message.properties)

    def append_to_commit_log(self, start_offset: int, data: bytes) -> bool:
        """Store bytes of a master's commit log, as a slave does; False when they do not continue what is there.

        Java: org.apache.rocketmq.store.DefaultMessageStore.appendToCommitLog.
        """
        if self.services is None or not self.commit_log.append_data(start_offset, data):
            return False
        self.services.appended()
        return True

    def _unavailable(self) -> PutMessageResult | None:
        if self.is_shutdown:
            return refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, _SHUT_DOWN)
        if self.config.broker_role is SLAVE:
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

    def _not_appended(self, message: MessageExtBrokerInner, problem: DiskFull | RecordTooLarge) -> PutMessageResult:
        if isinstance(problem, RecordTooLarge):
            return self._refuse(message, refused(PutMessageStatus.MESSAGE_ILLEGAL, str(problem)))
        self.running_flags.set(RunningFlags.DISK_FULL)
        if self.services is not None:
            self.services.clean.wakeup_for_work()
        return self._refuse(message, refused(PutMessageStatus.SERVICE_NOT_AVAILABLE, str(problem)))

    def is_os_page_cache_busy(self) -> bool:
        """Has a put held the lock for over a second? That is so only on a slow disk.

        Java: org.apache.rocketmq.store.DefaultMessageStore.isOSPageCacheBusy.
        """
        if not self.commit_log.begin_time_in_lock_ms:
            return False
        held_ms = self._now_ms() - self.commit_log.begin_time_in_lock_ms
        return self.config.os_page_cache_busy_time_out_mills < held_ms < _NEVER_UNLOCKED_MS

    def follow_disk(self) -> None:
        """Let puts wait for each other from now on if the disk is slow; if it is quick, once nobody waits any more."""
        lock = self.put_message_lock
        if not self.disk.slow_us:
            self.put_message_lock = lock if lock is not None and lock.is_held else None
        elif lock is None:
            from mqlab.store.put_message_lock import PutMessageLock

            self.put_message_lock = PutMessageLock(self)
