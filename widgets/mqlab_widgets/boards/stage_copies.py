"""The part of the stage that follows masters and slaves: the commit log on its way, reports, and what is copied."""

from __future__ import annotations

from mqlab.trace.record import Record
from mqlab_widgets.boards.stage_notes import StageNotes
from mqlab_widgets.boards.stage_state import COPY, MOST_TOLD, REPORT, Flight, Log


def piece_id(slave: str, begin: int) -> str:
    """The flight of a piece of the commit log that a slave is sent."""
    return f"{COPY}:{slave}:{begin}"


def report_id(slave: str, end: int) -> str:
    """The flight of a slave's report that it has all before `end`."""
    return f"{REPORT}:{slave}:{end}"


class StageCopies(StageNotes):
    """Pieces of the commit log that travel to slaves, their reports, and what slaves are known to have."""

    def on_replication_begun(self, record: Record) -> None:
        self.copied[record.node, self.name_of(record.remote)] = record.asked_offset

    def on_replica_data_sent(self, record: Record) -> None:
        begin, slave = record.commit_log_offset, self.name_of(record.remote)
        log = self.logs.setdefault(record.node, Log())
        keys = [block.key for block in log.between(begin, begin + record.body_bytes)]
        name, told = "a piece of the commit log", tuple(keys[:MOST_TOLD])
        flight = Flight(record.node, slave, name, COPY, False, told, len(keys), None, record.ts_us)
        self.flights[piece_id(slave, begin)] = flight

    def on_replica_data_appended(self, record: Record) -> None:
        slave, master = record.node, self.source_of(record.node)
        begin, end = record.commit_log_offset, record.commit_log_offset + record.body_bytes
        log = self.logs.setdefault(slave, Log())
        for block in self.logs.setdefault(master, Log()).between(begin, end):
            log.append(*block)
        log.end = end
        flight = self.flights.pop(piece_id(slave, begin), None)
        if flight is not None:
            self.landed[slave] = flight
            report = Flight(slave, master, "a report", REPORT, True, (), 0, None, record.ts_us)
            self.flights[report_id(slave, end)] = report

    def on_replica_acked(self, record: Record) -> None:
        slave = self.name_of(record.remote)
        self.copied[record.node, slave] = record.ack_offset
        flight = self.flights.pop(report_id(slave, record.ack_offset), None)
        if flight is not None:
            self.landed[record.node] = flight
        for name in [name for name, one in self.flights.items() if one.source == slave and one.kind == REPORT]:
            # Of reports that come together the master reads the last one alone.
            if int(name.rpartition(":")[2]) < record.ack_offset:
                del self.flights[name]

    def on_master_connected(self, record: Record) -> None:
        self.following[record.node] = None

    def on_master_disconnected(self, record: Record) -> None:
        self.following.pop(record.node, None)
        self._unlinked(record.node)

    def on_replica_disconnected(self, record: Record) -> None:
        self._unlinked(self.name_of(record.remote))

    def _unlinked(self, slave: str) -> None:
        between = {name: one for name, one in self.flights.items() if one.kind in (COPY, REPORT)}
        self._die({name: one for name, one in between.items() if slave in (one.source, one.target)})

    def on_replica_put_waiting(self, record: Record) -> None:
        self.unanswered[record.node] = self.unanswered.get(record.node, 0) + 1

    def on_replica_put_answered(self, record: Record) -> None:
        self.unanswered[record.node] -= 1

    def copied_of(self, broker: str) -> int | None:
        """Up to where a slave of this master has its commit log, as the master was told; None if it never had one."""
        return max((end for (master, _), end in self.copied.items() if master == broker), default=None)

    def pair_words(self, broker: str) -> tuple[str, ...]:
        """What is said of a broker that has a slave, or is one, in wordings from long to short; () of any other."""
        if broker in self.slaves:
            words = f"follows {self.source_of(broker)}" if broker in self.following else "follows nobody"
            return (words,)
        copied, waiting = self.copied_of(broker), self.unanswered.get(broker, 0)
        if copied is None and not waiting:
            return ("no slave follows",) if broker in map(self.source_of, self.slaves) else ()
        wait = f"{waiting:,} answer{' waits' if waiting == 1 else 's wait'} for a copy" if waiting else ""
        less = _lacking_words(self.logs.get(broker, Log()), copied or 0)
        return (f"{less}; {wait}", wait) if wait else (less,)


def _lacking_words(log: Log, copied: int) -> str:
    """What no slave has of a log; where that is more than the log's newest records, which are known, only its size."""
    if log.end <= copied:
        return "all is copied"
    lacking = log.between(copied, log.end)
    count = f"{len(lacking):,} record{'' if len(lacking) == 1 else 's'}, " if log.blocks[0].offset <= copied else ""
    return f"not copied: {count}{log.end - copied:,} bytes"
