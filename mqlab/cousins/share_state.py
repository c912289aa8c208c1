"""The durable state of share partitions: what the share coordinator writes into the topic `__share_group_state`.

Each write is a record: a ShareSnapshot holds all of the state, a ShareUpdate what has changed since. An acquired record
is never written: an acquisition ends with the leader that gave it. What is simpler here than in Kafka: the topic is one
file of lines on the disk of the broker that leads the partition, not replicated, and its old lines are never pruned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from mqlab.cousins.share_partition import RecordState, StateBatch
from mqlab.errors import MqlabError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mqlab.sim.disk import Disk

FILE = "__share_group_state"
UPDATES_PER_SNAPSHOT = 500
"""So many updates are written between two snapshots (share.coordinator.snapshot.update.records.per.snapshot)."""


class FencedLeaderEpoch(MqlabError):
    """Somebody writes who leads the partition no more: FENCED_LEADER_EPOCH."""


class DurableState(NamedTuple):
    """What is known of a share partition after all records have been read."""

    leader_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]


class ShareGroupState:
    """The share coordinator's part for one share partition (org.apache.kafka.coordinator.share.ShareCoordinatorShard).

    Whoever begins to lead the partition reads the state under a new leader epoch; from then on nobody can write under
    an older one.
    """

    def __init__(self, disk: Disk, updates_per_snapshot: int = UPDATES_PER_SNAPSHOT) -> None:
        self._file = disk.open(FILE)
        self._updates_per_snapshot = updates_per_snapshot
        self._updates = 0
        self._epoch = 0
        self._start_offset = 0
        self._states: dict[int, tuple[RecordState, int]] = {}
        self._end = 0
        self._read_file()

    @property
    def leader_epoch(self) -> int:
        """The epoch of whoever leads the partition now; 0 before anybody did."""
        return self._epoch

    def read(self, leader_epoch: int) -> DurableState:
        """The state, for a new leader; FencedLeaderEpoch if there is a newer one."""
        self._check(leader_epoch)
        self._epoch = leader_epoch
        return DurableState(leader_epoch, self._start_offset, tuple(self._batches()))

    def write(self, leader_epoch: int, start_offset: int, batches: Iterable[StateBatch]) -> bool:
        """Add what has changed, and make it safe; whether that was a snapshot. FencedLeaderEpoch from an old leader."""
        self._check(leader_epoch)
        changed = list(batches)
        self._merge(start_offset, changed)
        snapshot = self._end == 0 or self._updates >= self._updates_per_snapshot
        self._updates = 0 if snapshot else self._updates + 1
        self._append(leader_epoch, list(self._batches()) if snapshot else changed, snapshot)
        return snapshot

    def _check(self, leader_epoch: int) -> None:
        if leader_epoch < self._epoch:
            raise FencedLeaderEpoch(f"epoch {leader_epoch} is older than {self._epoch}")

    def _merge(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        self._start_offset = start_offset
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self._states[offset] = (batch.state, batch.delivery_count)
        for offset in [offset for offset in self._states if offset < start_offset]:
            del self._states[offset]

    def _batches(self) -> Iterable[StateBatch]:
        return (StateBatch(offset, offset, *state) for offset, state in sorted(self._states.items()))

    def _append(self, leader_epoch: int, batches: list[StateBatch], snapshot: bool) -> None:
        kind = "ShareSnapshot" if snapshot else "ShareUpdate"
        line = json.dumps([kind, leader_epoch, self._start_offset, batches]).encode() + b"\n"
        self._file.write(self._end, line)
        self._file.flush()
        self._end += len(line)

    def _read_file(self) -> None:
        self._end = self._file.data_end()
        for line in self._file.read(0, self._end).splitlines():
            kind, self._epoch, start_offset, batches = json.loads(line)
            if kind == "ShareSnapshot":
                self._states, self._updates = {}, 0
            else:
                self._updates += 1
            read = [StateBatch(first, last, RecordState(state), count) for first, last, state, count in batches]
            self._merge(start_offset, read)
