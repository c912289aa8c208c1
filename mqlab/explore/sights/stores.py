"""Goals of stores: what is flushed, lost, recovered, cleaned, and refused for want of room."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.trace.record import Record

SOON_US = 5_000_000


class SightsOfStores(Sights):
    """Stores: losses of power, recovery, full disks, and files that go."""

    SUBJECT = "stores"
    SEEN = (
        seen("flush-is-not-waited-for-any-longer", "FlushTimedOut", "A put has waited too long for its flush."),
        seen("power-cut-loses-pages", "PowerLost", "A machine that loses power loses pages that were not flushed.",
             lambda r: r.pages_lost > 0),
        seen("power-cut-keeps-some-pages", "PowerLost",
             "A machine that loses power loses some pages that were not flushed, and keeps others.",
             lambda r: r.pages_lost > 0 and r.pages_kept > 0),
        seen("store-stops-unclean", "StoreLoaded", "A store begins that was not stopped in good order.", clean=False),
        seen("log-is-cut", "StoreRecovered", "Recovery drops the end of the log.", lambda r: r.cut_bytes > 0),
        seen("record-is-torn", "StoreRecovered", "Recovery ends at a record of which only a part is there.",
             lambda r: r.reason.startswith("its parts take")),
        seen("recovery-dispatches-again", "StoreRecovered", "Recovery writes queue entries that were lost.",
             lambda r: not r.clean and r.dispatched > 0),
        seen("next-log-file-begins", "CommitLogFileCreated",
             "A file of the commit log is full, and the next one begins.", lambda r: r.commit_log_offset > 0),
        seen("log-file-is-deleted-for-space", "FileDeleted", "A file of the commit log goes, since the disk is full.",
             reason="space"),
        seen("log-file-expires", "FileDeleted", "A file of the commit log goes, since it is too old.",
             reason="expired"),
        seen("queue-file-is-deleted", "FileDeleted", "A file of a queue or index goes, as its messages are gone.",
             reason="below the commit log"),
        seen("index-file-is-thrown-away", "FileDeleted",
             "A file of the index that is newer than the checkpoint goes at the start.",
             reason="newer than the checkpoint"),
        seen("disk-is-full", "DiskFullChanged", "A broker notices that its disk is full.", full=True),
        seen("disk-has-room-again", "DiskFullChanged", "A broker notices that its disk has room again.", full=False),
        seen("queue-has-no-room", "DispatchStalled",
             "A message is in the log, and there is no room for its queue entry."),
        seen("table-cannot-be-written", "ConfigNotPersisted", "A broker cannot write one of its tables."),
        seen("put-holds-the-lock-long", "PutHeldLock", "On a slow disk others wait for the lock of the commit log.",
             lambda r: r.waiting > 0),
        seen("topic-is-deleted-with-its-queues", "FileDeleted", "The queues of a topic that is gone are deleted.",
             reason="topic deleted"),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "machine-loses-power-twice": "A machine loses power for the second time.",
        "broker-dies-soon-after-its-start": "A broker dies within five seconds of its start after a fault.",
        "offset-is-used-twice": "What is stored after a loss of power gets the offset of a message that was lost.",
    }
    FOLLOWS = ("PowerLost", "NodeCrashed", "MessageStored")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._lost_power: dict[str, None] = {}

    def follow(self, record: Record) -> None:
        """Look what happens to a machine more than once."""
        if record.kind == "MessageStored":
            if self._lost_power and self._is_used_twice(record):
                self.reach("offset-is-used-twice", record)
            return
        started_us = self.case.ledger.processes.started_us.get(record.target, -1)
        if self.case.ledger.names.broker(record.target) is not None and 0 < started_us > record.ts_us - SOON_US:
            self.reach("broker-dies-soon-after-its-start", record)
        if record.kind == "PowerLost":
            if record.target in self._lost_power:
                self.reach("machine-loses-power-twice", record)
            self._lost_power[record.target] = None

    def _is_used_twice(self, record: Record) -> bool:
        place = Place(record.node, record.topic, record.queue_id, record.queue_offset)
        return place in self.case.ledger.stores.used_twice
