"""A broker that leads one partition of a topic for one share group, and a consumer of that group.

What is simpler here than in Kafka: there is one broker, one topic with one partition, and one group. So nobody is
elected, no group coordinator assigns partitions, and what is written to a disk counts as replicated. A fetch that finds
nothing is answered at once, where Kafka holds it. The broker reads records and acknowledges them one by one. A record
is its body. The dead-letter topic of KIP-1191 is left out: what is archived stays in the log, and nobody gets it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.cousins.calls import CallClient, CallRefused, CallServer, Handler
from mqlab.cousins.share_partition import AcknowledgeType, InvalidRecordState, RecordState, SharePartition
from mqlab.cousins.share_state import ShareGroupState
from mqlab.sim import public_call
from mqlab.trace.events.cousins import (
    AcknowledgementRefused,
    RecordAcknowledged,
    RecordAcquired,
    RecordLetGo,
    RecordProduced,
    ShareStateRead,
    ShareStateWritten,
    StartOffsetMoved,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mqlab.sim import Node, Transport

PORT = 9092
LOG = "orders-0.log"


class ShareBroker:
    """The leader of a partition (kafka.server.share.SharePartitionManager and what it uses), as the program of a node.

    A member that closes its connection has left its share session: what it held is let go at once (since Kafka 4.1,
    KAFKA-19015). One that says nothing on an open connection loses its records when their locks end.
    """

    def __init__(self, node: Node, topic: str, group: str, partition: SharePartition) -> None:
        self.node = node
        self.topic = topic
        self.group = group
        self.partition = partition
        self._log = node.disk.open(LOG)
        self._log_end = self._log.data_end()
        self._records = [json.loads(line) for line in self._log.read(0, self._log_end).splitlines()]
        self._sessions: dict[Transport, str] = {}
        """The member of each connection."""
        self._state = ShareGroupState(node.disk)
        self.leader_epoch = self._state.leader_epoch + 1

    def start(self) -> None:
        """Read the durable state, and answer from now on."""
        durable = self._state.read(self.leader_epoch)
        self.partition.restore(durable.start_offset, durable.batches)
        if self.node.hooks.on:
            states = _told(durable.batches)
            self.node.hooks.emit(
                ShareStateRead(self.group, self.topic, self.partition.start_offset, states, self.leader_epoch)
            )
        handlers: dict[str, Handler] = {
            "produce": self._produce,
            "fetch": self._fetch,
            "acknowledge": self._acknowledge,
        }
        CallServer(self.node, PORT, handlers, self._gone)

    @property
    def records(self) -> list[str]:
        """The bodies of the records in the log, by offset."""
        return self._records

    # -- requests ---------------------------------------------------------------------------------------------------

    def _produce(self, transport: Transport, arguments: dict[str, Any]) -> int:
        line = json.dumps(arguments["body"]).encode() + b"\n"
        self._log.write(self._log_end, line)
        self._log.flush()
        self._log_end += len(line)
        self._records.append(arguments["body"])
        offset = len(self._records) - 1
        if self.node.hooks.on:
            self.node.hooks.emit(RecordProduced(self.topic, offset, arguments["body"]))
        return offset

    def _fetch(self, transport: Transport, arguments: dict[str, Any]) -> list[tuple[int, int, str]]:
        """ShareFetch: what the member now holds, as (offset, delivery count, body)."""
        member = self._sessions[transport] = arguments["member"]
        acquired = self.partition.acquire(member, arguments["most"], len(self._records), self._now_ms())
        if acquired:
            self._take_back_later()
        if self.node.hooks.on:
            for offset, delivery_count in acquired:
                lock_ms = self.partition.lock_duration_ms
                self.node.hooks.emit(
                    RecordAcquired(self.group, self.topic, offset, member, delivery_count, lock_ms)
                )
        return [(offset, count, self._records[offset]) for offset, count in acquired]

    def _acknowledge(self, transport: Transport, arguments: dict[str, Any]) -> str:
        """ShareAcknowledge: what has become of the record. It is safe on the disk before it is answered."""
        member, offset = arguments["member"], arguments["offset"]
        kind = AcknowledgeType[arguments["type"]]
        inside = offset >= self.partition.start_offset
        try:
            state = self.partition.acknowledge(member, offset, kind, self._now_ms())
        except InvalidRecordState as error:
            if self.node.hooks.on:
                self.node.hooks.emit(AcknowledgementRefused(self.group, self.topic, offset, member, str(error)))
            raise CallRefused("INVALID_RECORD_STATE", str(error)) from error
        if self.node.hooks.on:
            self.node.hooks.emit(
                RecordAcknowledged(self.group, self.topic, offset, member, kind.name, state.name)
            )
        if kind is AcknowledgeType.RENEW:
            self._take_back_later()
        elif inside:
            self._write([offset])
        return state.name

    # -- time, and the end of sessions ------------------------------------------------------------------------------

    def _take_back_later(self) -> None:
        self.node.call_later(self.partition.lock_duration_ms, self._time_out, name="AcquisitionLockTimerTask")

    def _time_out(self) -> None:
        self._let_go(self.partition.time_out(self._now_ms()), "time-out")

    def _gone(self, transport: Transport) -> None:
        member = self._sessions.pop(transport, "")
        if member:
            self._let_go(self.partition.release_all(member), "session ended")

    def _let_go(self, offsets: list[int], reason: str) -> None:
        if not offsets:
            return
        if self.node.hooks.on:
            for offset in offsets:
                state = self.partition.state_of(offset)
                self.node.hooks.emit(RecordLetGo(self.group, self.topic, offset, state.name, reason))
        self._write(offsets)

    def _now_ms(self) -> int:
        return self.node.now_us() // 1_000

    # -- what survives ----------------------------------------------------------------------------------------------

    def _write(self, offsets: Iterable[int]) -> None:
        """Write the new states, then move the window: the durable start offset is one write behind."""
        before = self.partition.start_offset
        batches = self.partition.batches_of(offsets)
        snapshot = self._state.write(self.leader_epoch, before, batches)
        after = self.partition.advance()
        if self.node.hooks.on:
            self.node.hooks.emit(ShareStateWritten(self.group, self.topic, before, _told(batches), snapshot))
            if after != before:
                self.node.hooks.emit(StartOffsetMoved(self.group, self.topic, before, after))


class Fetched(NamedTuple):
    """A record that a consumer holds."""

    offset: int
    delivery_count: int
    body: str


class ShareConsumer:
    """A member of the share group, in explicit mode: it says of each record what has become of it.

    Its calls raise CallRefused: INVALID_RECORD_STATE for a record that it does not hold.
    """

    call_name = "consumer"

    def __init__(self, node: Node, address: str) -> None:
        self.node = node
        self._client = CallClient(node, address)

    @public_call
    async def produce(self, body: str) -> int:
        """Store a record, and say its offset."""
        offset: int = await self._client.call("produce", body=body)
        return offset

    @public_call
    async def fetch(self, most: int) -> list[Fetched]:
        """Acquire up to `most` records."""
        fetched = await self._client.call("fetch", member=self.node.name, most=most)
        return [Fetched(*one) for one in fetched]

    @public_call
    async def acknowledge(self, offset: int, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> RecordState:
        """Say what has become of a record; the state in which it is then."""
        answer = await self._client.call("acknowledge", member=self.node.name, offset=offset, type=kind.name)
        return RecordState[answer]


def _told(batches: Iterable[tuple[int, int, RecordState, int]]) -> str:
    return ", ".join(
        f"{first if first == last else f'{first}-{last}'} {RecordState(state).name} x{count}"
        for first, last, state, count in batches
    )
