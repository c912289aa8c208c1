"""Goals of offsets: how the progress of groups moves, and where it is set anew."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.trace.record import Record


class SightsOfOffsets(Sights):
    """Offsets: seeks, resets, corrections, and progress that goes back."""

    SUBJECT = "offsets"
    SEEN = (
        seen("application-seeks", "QueueSought", "An application goes on at another offset of a queue."),
        seen("group-is-reset", "OffsetReset", "An administrator sets the offset of a group anew."),
        seen(
            "consumer-takes-a-reset", "ConsumerOffsetsReset",
            "A consumer that runs is told other offsets, and begins there.",
        ),
        seen(
            "offset-outside-of-the-queue", "QueueDropped",
            "A consumer asks for an offset that its queue does not have, and begins the queue anew.",
            reason="its offset was illegal: taken anew",
        ),
        seen(
            "offset-comes-with-a-pull", "OffsetCommitted", "A broker is told the offset of a group by a pull of it.",
            origin="pull",
        ),
        seen(
            "offset-cannot-be-written", "ConfigNotPersisted",
            "A broker cannot write the file of the offsets, since its disk is full.",
            lambda r: r.file.endswith("consumerOffset.json"),
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "committed-offset-goes-back": "A broker is told a smaller offset of a group than before, and takes it.",
        "offsets-are-forgotten": "A broker that starts again knows an older offset of a group than it had been told.",
        "group-begins-behind-the-first-message": "A member takes a queue over where the group has come to.",
    }
    FOLLOWS = ("OffsetCommitted", "BrokerStarted", "QueueAllocated")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._newest: dict[tuple[str, str, str, int], int] = {}
        """(broker, group, topic, queue id) -> the offset that the broker was told last."""

    def follow(self, record: Record) -> None:
        """Compare what a broker is told, or knows, with what it was told before."""
        if record.kind == "OffsetCommitted":
            key = (record.node, record.group, record.topic, record.queue_id)
            if record.queue_offset < self._newest.get(key, 0) and record.origin in ("asked", "pull"):
                self.reach("committed-offset-goes-back", record)
            self._newest[key] = record.queue_offset
        elif record.kind == "QueueAllocated":
            if record.queue_offset > 0:
                self.reach("group-begins-behind-the-first-message", record)
        elif self.case.is_live:
            self._broker_started(record)

    def _broker_started(self, record: Record) -> None:
        manager = self.case.broker(record.node).running().consumer_offset_manager
        forgotten = False
        for key, offset in self._newest.items():
            broker, group, topic, queue_id = key
            if broker == record.node:
                known = manager.query_offset(group, topic, queue_id)
                forgotten = forgotten or known < offset
                self._newest[key] = known
        if forgotten:
            self.reach("offsets-are-forgotten", record)
