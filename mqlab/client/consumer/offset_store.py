"""Where a consumer keeps how far it has come: on the broker (clustering) or in a file of its own (broadcasting)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from mqlab.client.consumer.offset_serialize_wrapper import OffsetSerializeWrapper
from mqlab.client.mq_client_api import OffsetNotFoundException
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.errors import BodyError
from mqlab.protocol.headers import QueryConsumerOffsetRequestHeader, UpdateConsumerOffsetRequestHeader
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.route import MASTER_ID
from mqlab.sim import DiskFull
from mqlab.trace.events.client import OffsetPersisted, OffsetUpdated

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance

CALL_TIMEOUT_MS = 5_000

NO_RECORD = -1
UNREADABLE = -2


class ReadOffsetType(Enum):
    """Where to look for an offset (org.apache.rocketmq.client.consumer.store.ReadOffsetType)."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


class ControllableOffset:
    """An offset that can be frozen (org.apache.rocketmq.client.consumer.store.ControllableOffset)."""

    __slots__ = ("_allow_to_update", "value")

    def __init__(self, value: int) -> None:
        self.value = value
        self._allow_to_update = True

    def update(self, target: int, increase_only: bool = False) -> None:
        """Set the offset, or with `increase_only` raise it; a frozen one stays."""
        if self._allow_to_update and (target > self.value or not increase_only):
            self.value = target

    def update_and_freeze(self, target: int) -> None:
        """Set the offset for good: whoever still consumes old messages cannot move it any more."""
        self.value = target
        self._allow_to_update = False


class OffsetStore:
    """Keeps the offsets of one consumer group's queues (org.apache.rocketmq.client.consumer.store.OffsetStore).

    A store of your own inherits from this and writes `load`, `read_from_store`, `persist_all` and `persist`.
    """

    def __init__(self, instance: MQClientInstance, group: str) -> None:
        self.instance = instance
        self.group = group
        self.offset_table: dict[MessageQueue, ControllableOffset] = {}

    def load(self) -> None:
        """Read what is needed at the start."""

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        """Note in memory how far the queue is consumed."""
        known = self.offset_table.get(queue)
        if known is None:
            known = self.offset_table[queue] = ControllableOffset(offset)
        else:
            known.update(offset, increase_only)
        if self.instance.node.hooks.on:
            self._report_updated(queue, known.value)

    def update_and_freeze_offset(self, queue: MessageQueue, offset: int) -> None:
        """Note an offset that nobody may change until the queue is taken anew."""
        self.offset_table.setdefault(queue, ControllableOffset(offset)).update_and_freeze(offset)
        if self.instance.node.hooks.on:
            self._report_updated(queue, offset)

    async def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """The offset, -1 without a record of it, -2 when it could not be read."""
        if kind is not ReadOffsetType.READ_FROM_STORE:
            known = self.offset_table.get(queue)
            if known is not None:
                return known.value
            if kind is ReadOffsetType.READ_FROM_MEMORY:
                return NO_RECORD
        return await self.read_from_store(queue)

    def read_from_memory(self, queue: MessageQueue) -> int:
        """The offset in memory, or -1."""
        known = self.offset_table.get(queue)
        return known.value if known is not None else NO_RECORD

    async def read_from_store(self, queue: MessageQueue) -> int:
        """The offset in the store, which is also noted in memory; -1 without a record, -2 when unreadable."""
        raise NotImplementedError(f"{type(self).__name__} must define read_from_store()")

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Write the offsets of these queues, the consumer's present ones."""
        raise NotImplementedError(f"{type(self).__name__} must define persist_all()")

    def persist(self, queue: MessageQueue) -> None:
        """Write the offset of one queue."""
        raise NotImplementedError(f"{type(self).__name__} must define persist()")

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forget a queue that was given up."""
        self.offset_table.pop(queue, None)

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """The offsets in memory, of one topic or of all."""
        return {queue: offset.value for queue, offset in self.offset_table.items() if not topic or queue.topic == topic}

    def report_persisted(self, queue: MessageQueue, offset: int) -> None:
        """Tell the listeners that an offset was written."""
        hooks = self.instance.node.hooks
        if hooks.on:
            hooks.emit(OffsetPersisted(self.group, *queue, offset))

    def _report_updated(self, queue: MessageQueue, offset: int) -> None:
        self.instance.node.hooks.emit(OffsetUpdated(self.group, *queue, offset))


class RemoteBrokerOffsetStore(OffsetStore):
    """Offsets on the broker that holds the queue, so that whoever takes the queue over finds them.

    Java: org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore.
    """

    async def read_from_store(self, queue: MessageQueue) -> int:
        """Ask the broker for the group's offset of a queue."""
        try:
            offset = await self._fetch(queue)
        except OffsetNotFoundException:
            return NO_RECORD
        except (RemotingException, MQBrokerException, MQClientException):
            return UNREADABLE
        self.update_offset(queue, offset, increase_only=False)
        return offset

    async def _fetch(self, queue: MessageQueue) -> int:
        routes = self.instance.routes
        found = routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID, False)
        if found is None:
            await routes.refresh(queue.topic)
            found = routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID, False)
        if found is None:
            raise MQClientException(f"The broker[{queue.broker_name}] not exist")
        header = QueryConsumerOffsetRequestHeader(self.group, queue.topic, queue.queue_id, bname=queue.broker_name)
        return await self.instance.api.query_consumer_offset(found.address, header, CALL_TIMEOUT_MS)

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Send the offsets of these queues to their brokers, one-way, and forget the other queues; none: do nothing."""
        wanted = set(queues)
        if not wanted:
            return
        for queue in list(self.offset_table):
            if queue in wanted:
                self.persist(queue)
            else:
                del self.offset_table[queue]

    def persist(self, queue: MessageQueue) -> None:
        """Send one offset to its broker, one-way; a failure is left to the next time."""
        offset = self.offset_table.get(queue)
        found = self.instance.routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID, False)
        if offset is None or found is None:
            return
        header = UpdateConsumerOffsetRequestHeader(
            self.group, queue.topic, queue.queue_id, offset.value, queue.broker_name
        )
        try:
            self.instance.api.update_consumer_offset_oneway(found.address, header, CALL_TIMEOUT_MS)
        except RemotingException:
            return
        self.report_persisted(queue, offset.value)


class LocalFileOffsetStore(OffsetStore):
    """Offsets in a file on the consumer's own disk: in broadcasting every consumer goes its own way.

    Java: org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore. Differs from RocketMQ: the directory
    `.rocketmq_offsets` lies at the root of the node's disk.
    """

    ROOT = ".rocketmq_offsets"

    def __init__(self, instance: MQClientInstance, group: str) -> None:
        super().__init__(instance, group)
        self.path = f"{self.ROOT}/{instance.client_id}/{group}/offsets.json"

    def load(self) -> None:
        """Read the file, or its backup when it is broken; MQClientException when that is broken, too."""
        for queue, offset in self._read().items():
            self.offset_table[queue] = ControllableOffset(offset)

    def _read(self) -> dict[MessageQueue, int]:
        disk = self.instance.node.disk
        backup = f"{self.path}.bak"
        for path in (self.path, backup):
            data = disk.read_bytes(path) if disk.exists(path) else b""
            # An empty file is what a full disk leaves; RocketMQ takes it for none.
            if data:
                try:
                    return OffsetSerializeWrapper.decode(data).offset_table
                except BodyError as error:
                    if path == backup:
                        raise MQClientException(
                            f"readLocalOffsetBak Exception: {path} is broken: {error}. "
                            f"What to do: remove {self.path} and {backup} to begin anew."
                        ) from error
        return {}

    async def read_from_store(self, queue: MessageQueue) -> int:
        """Look into the file."""
        try:
            offset = self._read().get(queue)
        except MQClientException:
            return NO_RECORD
        if offset is None:
            return NO_RECORD
        self.update_offset(queue, offset, increase_only=False)
        return offset

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Write the offsets of these queues into the file, beside what is there already."""
        written = [queue for queue in sorted(set(queues)) if queue in self.offset_table]
        if not written:
            return
        table = self._read()
        for queue in written:
            table[queue] = self.offset_table[queue].value
        disk = self.instance.node.disk
        try:
            if disk.exists(self.path):
                disk.write_bytes(f"{self.path}.bak", disk.read_bytes(self.path))
            disk.write_bytes(self.path, OffsetSerializeWrapper(table).encode_pretty())
        except DiskFull:
            # As in RocketMQ the consumer goes on with the offsets in its memory, and tries again in 5 s.
            return
        for queue in written:
            self.report_persisted(queue, table[queue])

    def persist(self, queue: MessageQueue) -> None:
        """Write the offset of one queue down, where the group keeps it."""
        self.persist_all([queue])
