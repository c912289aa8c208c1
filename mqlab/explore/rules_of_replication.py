"""The rule of replication: a copy is a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mqlab.explore.rule import Rule
from mqlab.explore.stopped_timer import TORN, TORN_TEXT

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store.commit_log import CommitLog

SHORTER = "a master that has lost what its slave has"
SHORTER_TEXT = (
    "A master that loses power may come back with less than it had sent to its slave. The slave drops nothing, and "
    "goes on where its log ends when the master's is longer again: from there on the logs are the same, before it not."
)


class CopiesAreTheSame(Rule):
    """In the end a slave's commit log is its master's, byte for byte and up to the same end."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {SHORTER: SHORTER_TEXT, TORN: TORN_TEXT}

    def at_end(self) -> None:
        """Compare the logs of all pairs."""
        for slave in self.case.lab.brokers:
            master = self.case.ledger.names.broker(self.case.ledger.names.original_of(slave.name))
            if slave.is_slave and master is not None and master is not slave:
                self._compare(master, slave)

    def _compare(self, master: BrokerProcess, slave: BrokerProcess) -> None:
        original, copy = master.store.commit_log, slave.store.commit_log
        reason = ""
        if copy.mapped_file_queue.mapped_files and copy.max_offset != original.max_offset:
            reason = f"the log of {slave.name} ends at {copy.max_offset}, its master's at {original.max_offset}"
        else:
            at = _first_difference(original, copy)
            if at is not None:
                reason = f"the log of {slave.name} is not its master's in the file that begins at {at}"
        lost_power = self.case.ledger.processes.power_lost_us
        if reason and master.name in lost_power:
            self.excuse(SHORTER)
        elif reason and slave.name in lost_power:
            # Recovery looks at the body of a record, and not at what stands around it.
            self.excuse(TORN)
        elif reason:
            self.found(None, reason)


def _first_difference(original: CommitLog, copy: CommitLog) -> int | None:
    """Where the first file of a copy begins that is another one than the original; None if there is none."""
    for file in copy.mapped_file_queue.mapped_files:
        begin, size = file.file_from_offset, file.wrote_position
        if begin >= original.min_offset and original.mapped_file_queue.read(begin, size) != file.file.read(0, size):
            return begin
    return None
