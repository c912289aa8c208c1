"""Goals of copies: slaves that follow, fall behind, and serve who reads."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.trace.record import Record


class SightsOfCopies(Sights):
    """Copies: what producers wait for, connections to the master, and who reads from a slave."""

    SUBJECT = "copies"
    SEEN = (
        seen("slave-answers-in-time", "ReplicaPutAnswered", "A producer is answered when a slave has its message.",
             status="PUT_OK"),
        seen("slave-answers-too-late", "ReplicaPutAnswered", "A producer has waited for a slave in vain.",
             status="FLUSH_SLAVE_TIMEOUT"),
        seen("slave-goes-on-where-it-stood", "ReplicationBegun", "A slave that has a part of the log is sent the rest.",
             lambda r: r.asked_offset > 0),
        seen("slave-finds-no-master", "MasterConnectFailed", "A slave cannot connect to its master."),
        seen("slave-loses-its-master", "MasterDisconnected", "The connection of a slave to its master ends."),
        seen("silent-slave-is-cut-off", "ReplicaDisconnected",
             "A master closes the connection of a slave that is silent.", reason="no report for too long"),
        seen("slave-takes-its-masters-offsets", "SlaveSynchronized", "A slave takes over how far each group has come.",
             lambda r: r.table == "GET_ALL_CONSUMER_OFFSET" and r.entries > 0),
        seen("slave-cannot-take-over", "SlaveSynchronizeFailed", "A slave cannot get a table from its master."),
        seen("slave-hears-of-a-smaller-broker", "MinBrokerChanged",
             "A slave hears that another broker of its group has the smallest id now."),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "slave-is-read": "A slave gives a group messages.",
        "master-is-read-again": "A group that has read a queue from a slave gets messages of it from the master.",
        "slave-is-told-an-offset": "A slave is told the offset of a group.",
        "slave-is-read-while-its-master-is-down": "A slave gives a group messages while its master does not run.",
    }
    FOLLOWS = ("PullAnswered", "OffsetCommitted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._slaves: dict[str, bool] = {}
        self._read_there: dict[tuple[str, str, str, int], None] = {}
        """(master, group, topic, queue id) of what is read from a slave."""

    def follow(self, record: Record) -> None:
        """Look who gives messages, and to whom."""
        if not self._is_slave(record.node):
            key = (record.node, record.group, record.topic, record.queue_id)
            if self._read_there and key in self._read_there and record.kind == "PullAnswered" and record.messages:
                del self._read_there[key]
                self.reach("master-is-read-again", record)
        elif record.kind == "OffsetCommitted":
            self.reach("slave-is-told-an-offset", record)
        elif record.messages:
            master = self.case.ledger.names.original_of(record.node)
            self._read_there[master, record.group, record.topic, record.queue_id] = None
            self.reach("slave-is-read", record)
            if self.case.is_live and not self.case.broker(master).is_up():
                self.reach("slave-is-read-while-its-master-is-down", record)

    def _is_slave(self, node: str) -> bool:
        if node not in self._slaves:
            broker = self.case.ledger.names.broker(node)
            self._slaves[node] = broker is not None and broker.is_slave
        return self._slaves[node]
