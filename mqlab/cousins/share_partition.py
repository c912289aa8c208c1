"""The state machine of a share partition: who holds which record of a partition, and how far a share group has come.

    available -> acquired      a consumer fetches it; the delivery count goes up by one
    acquired  -> acknowledged  ACCEPT
    acquired  -> archived      REJECT; or RELEASE, a time-out or the end of a session, at the last delivery
    acquired  -> available     RELEASE, a time-out or the end of a session, before the last delivery
    acquired  -> acquired      RENEW: the lock begins anew

Acknowledged and archived are ends. What is simpler here than in Kafka: each record has a state of its own, where Kafka
keeps whole batches together as long as they fare alike; a fetch gives as many records as were asked for, and not all of
a batch; nothing is compacted or deleted from the log, and nothing in it belongs to a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from mqlab.errors import MqlabError

DELIVERY_COUNT_LIMIT = 5
"""So often a record is delivered at most (group.share.delivery.count.limit)."""
RECORD_LOCK_DURATION_MS = 30_000
"""How long a consumer holds a record (group.share.record.lock.duration.ms)."""
MAX_RECORD_LOCKS = 2_000
"""How far the end of the window may be from its start (group.share.partition.max.record.locks; 200 in Kafka 4.0)."""


class RecordState(IntEnum):
    """The states of a record that is in flight, with the numbers under which Kafka stores them."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """What a consumer says of a record that it holds; RENEW came with KIP-1222."""

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


ENDS = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class InvalidRecordState(MqlabError):
    """A consumer has acknowledged a record that it does not hold (any more): INVALID_RECORD_STATE."""


class Acquired(NamedTuple):
    """A record that a consumer now holds, and how often it was delivered by now."""

    offset: int
    delivery_count: int


class StateBatch(NamedTuple):
    """Neighbouring records in the same state, as the durable state of a share partition has them."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class InFlight:
    """A record between start and end of the window; `lock_end_ms` counts while it is acquired."""

    __slots__ = ("delivery_count", "lock_end_ms", "member", "state")

    def __init__(self, state: RecordState, delivery_count: int) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member = ""
        self.lock_end_ms = 0


class SharePartition:
    """What the leader of a partition keeps in memory for one share group (kafka.server.share.SharePartition).

    Its window goes from `start_offset` (the SPSO: the first record that has not come to an end) to `end_offset` (the
    SPEO: behind the last record that was ever acquired). All times are ms of one clock that the caller reads.
    """

    def __init__(
        self,
        start_offset: int = 0,
        *,
        delivery_count_limit: int = DELIVERY_COUNT_LIMIT,
        lock_duration_ms: int = RECORD_LOCK_DURATION_MS,
        max_record_locks: int = MAX_RECORD_LOCKS,
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.delivery_count_limit = delivery_count_limit
        self.lock_duration_ms = lock_duration_ms
        self.max_record_locks = max_record_locks
        self._in_flight: dict[int, InFlight] = {}
        """The records of the window by offset, in order and without gaps."""

    # -- what consumers do ------------------------------------------------------------------------------------------

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[Acquired]:
        """Give a member up to `most` records below `log_end`, from the lowest offset on that is available."""
        acquired: list[Acquired] = []
        for offset in range(self.start_offset, min(log_end, self.start_offset + self.max_record_locks)):
            if len(acquired) == most:
                break
            record = self._in_flight.get(offset)
            if record is None:
                record = self._in_flight[offset] = InFlight(RecordState.AVAILABLE, 0)
                self.end_offset = offset + 1
            if record.state is RecordState.AVAILABLE:
                record.state = RecordState.ACQUIRED
                record.delivery_count += 1
                record.member = member
                record.lock_end_ms = now_ms + self.lock_duration_ms
                acquired.append(Acquired(offset, record.delivery_count))
        return acquired

    def acknowledge(self, member: str, offset: int, kind: AcknowledgeType, now_ms: int) -> RecordState:
        """What becomes of a record that this member holds; InvalidRecordState if it does not hold it now.

        Whatever lies before the start of the window counts as done, and is acknowledged in silence.
        """
        if offset < self.start_offset:
            return RecordState.ARCHIVED
        record = self._in_flight.get(offset)
        if record is None or record.state is not RecordState.ACQUIRED:
            raise InvalidRecordState(f"the record {offset} is not acquired")
        if record.member != member:
            raise InvalidRecordState(f"the record {offset} is held by {record.member}")
        if kind is AcknowledgeType.RENEW:
            record.lock_end_ms = now_ms + self.lock_duration_ms
        elif kind is AcknowledgeType.RELEASE:
            self._let_go(record)
        else:
            record.state = RecordState.ACKNOWLEDGED if kind is AcknowledgeType.ACCEPT else RecordState.ARCHIVED
        return record.state

    def time_out(self, now_ms: int) -> list[int]:
        """Take back the records whose lock has ended; their offsets."""
        return self._take_back(
            offset for offset, record in self._in_flight.items() if record.lock_end_ms <= now_ms
        )

    def release_all(self, member: str) -> list[int]:
        """Take back what a member holds, since its share session has ended; the offsets."""
        return self._take_back(offset for offset, record in self._in_flight.items() if record.member == member)

    def advance(self) -> int:
        """Move the start of the window past records that have come to an end; where it is then."""
        while (record := self._in_flight.get(self.start_offset)) is not None and record.state in ENDS:
            del self._in_flight[self.start_offset]
            self.start_offset += 1
        return self.start_offset

    def _take_back(self, offsets: Iterable[int]) -> list[int]:
        taken = [offset for offset in offsets if self._in_flight[offset].state is RecordState.ACQUIRED]
        for offset in taken:
            self._let_go(self._in_flight[offset])
        return taken

    def _let_go(self, record: InFlight) -> None:
        last = record.delivery_count >= self.delivery_count_limit
        record.state = RecordState.ARCHIVED if last else RecordState.AVAILABLE

    # -- what can be seen of it -------------------------------------------------------------------------------------

    def state_of(self, offset: int) -> RecordState:
        """The state of a record: before the window archived, behind it available."""
        if offset < self.start_offset:
            return RecordState.ARCHIVED
        record = self._in_flight.get(offset)
        return RecordState.AVAILABLE if record is None else record.state

    def in_flight(self) -> list[tuple[int, InFlight]]:
        """The records of the window, in the order of their offsets."""
        return sorted(self._in_flight.items())

    # -- what survives ----------------------------------------------------------------------------------------------

    def batches_of(self, offsets: Iterable[int]) -> list[StateBatch]:
        """The states of these records for the durable state; neighbours that fare alike go together."""
        batches: list[StateBatch] = []
        for offset in sorted(offsets):
            record = self._in_flight[offset]
            last = batches[-1] if batches else None
            alike = last is not None and last[1:] == (offset - 1, record.state, record.delivery_count)
            if last is not None and alike:
                batches[-1] = last._replace(last_offset=offset)
            else:
                batches.append(StateBatch(offset, offset, record.state, record.delivery_count))
        return batches

    def restore(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        """Take over the durable state. A record that it does not name was never delivered, as far as anybody knows."""
        self.start_offset = self.end_offset = start_offset
        self._in_flight = {}
        for batch in batches:
            for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
                for gap in range(self.end_offset, offset):
                    self._in_flight[gap] = InFlight(RecordState.AVAILABLE, 0)
                self._in_flight[offset] = InFlight(batch.state, batch.delivery_count)
                self.end_offset = offset + 1
        self.advance()
