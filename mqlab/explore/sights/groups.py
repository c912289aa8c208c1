"""Goals of groups: who shares queues, takes them over, and locks them."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.trace.record import Record

Queue = tuple[str, str, str, int]
"""(group, topic, broker's name, queue id)"""


class SightsOfGroups(Sights):
    """Groups: queues that move, members that are lost, and locks that are refused."""

    SUBJECT = "groups"
    SEEN = (
        seen(
            "queue-belongs-to-another-member", "QueueDropped",
            "A member gives a queue up that is another member's share now.",
            reason="it belongs to another member now",
        ),
        seen(
            "late-result-of-a-listener-is-ignored", "ConsumeResultIgnored",
            "A listener ends when its queue has been given up, and its result does not count.",
        ),
        seen(
            "member-without-a-queue", "RebalanceDone",
            "A member gets no queue, since there are fewer than members.", lambda r: r.members > r.queues > 0,
        ),
        seen(
            "silent-member-expires", "ClientExpired",
            "A broker forgets a consumer that was silent for two minutes.", role="consumer",
        ),
        seen(
            "connection-of-a-member-ends", "ClientUnregistered",
            "A broker forgets a consumer since its connection has ended.", role="consumer", reason="channel closed",
        ),
        seen(
            "nobody-tells-the-members", "RebalanceSkipped",
            "A member cannot work its share out, since no broker tells it who else there is.",
            lambda r: r.reason.startswith("no broker told the members"),
        ),
        seen(
            "queue-without-a-known-offset", "RebalanceSkipped",
            "A member cannot take a queue, since the broker does not tell where to begin.",
            lambda r: r.reason.startswith("no offset to pull"),
        ),
        seen(
            "lock-is-refused", "RebalanceSkipped",
            "A member of an orderly group does not get the lock of a queue.",
            lambda r: r.reason.startswith("the lock of"),
        ),
        seen("lock-is-lost", "QueueLockLost", "A member of an orderly group no longer holds the lock of a queue."),
        seen(
            "orderly-queue-waits", "ConsumeFinished",
            "An orderly listener fails, and its queue waits for a moment.", status="SUSPEND_CURRENT_QUEUE_A_MOMENT",
        ),
        seen(
            "broker-assigns-the-queues", "AssignmentTaken",
            "A consumer follows a broker that tells it its queues.", changed=True,
        ),
        seen(
            "queues-of-a-topic-change", "TopicQueuesChanged",
            "A consumer that watches a topic finds other queues than before.",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "queue-is-given-up-while-its-listener-works": (
            "A queue becomes another member's share while a listener is at work on a message of it."
        ),
        "queue-comes-back": "A member gets a queue back that it had given up.",
        "expired-lock-is-taken-over": (
            "A broker gives the lock of a queue to another member although its owner has not given it back."
        ),
        "message-is-consumed-by-two-members": "Two members of a group that shares its queues consume one message.",
        "broadcast-reaches-two-members": "Two members of a broadcasting group get the same message.",
        "broadcasting-member-goes-on-from-its-file": (
            "A member of a broadcasting group that was started again goes on where its own file says."
        ),
    }
    FOLLOWS = (
        "ConsumeStarted", "ConsumeFinished", "QueueDropped", "QueueAllocated", "QueueLocked", "QueueUnlocked",
        "NodeCrashed", "PowerLost",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at_work: dict[tuple[str, Queue], int] = {}
        """(process, queue) -> how many of its listeners are at work."""
        self._given_up: dict[tuple[str, Queue], None] = {}
        self._locked_for: dict[Queue, str] = {}
        self._got_by: dict[tuple[Queue, int, str], str] = {}
        """(queue, offset, message) -> the first process whose listener was called with it."""

    def follow(self, record: Record) -> None:
        """Note who is at which queue."""
        kind = record.kind
        if kind in ("NodeCrashed", "PowerLost"):
            self._at_work = {at: count for at, count in self._at_work.items() if at[0] != record.target}
            self._locked_for = {key: owner for key, owner in self._locked_for.items() if key[2] != record.target}
        elif kind in ("QueueLocked", "QueueUnlocked"):
            self._lock(record)
        else:
            queue = (record.group, record.topic, record.broker_name, record.queue_id)
            if kind == "ConsumeStarted":
                self._called(record, queue)
            elif kind == "ConsumeFinished":
                at = (record.node, queue)
                self._at_work[at] = max(0, self._at_work.get(at, 0) - 1)
            elif kind == "QueueDropped":
                self._dropped(record, queue)
            else:
                self._allocated(record, queue)

    def _called(self, record: Record, queue: Queue) -> None:
        at = (record.node, queue)
        self._at_work[at] = self._at_work.get(at, 0) + 1
        first = self._got_by.setdefault((queue, record.queue_offset, record.msg_id), record.node)
        if first != record.node:
            broadcast = self._is_broadcasting(record.group)
            self.reach("broadcast-reaches-two-members" if broadcast else "message-is-consumed-by-two-members", record)

    def _dropped(self, record: Record, queue: Queue) -> None:
        self._given_up[record.node, queue] = None
        if self._at_work.get((record.node, queue)) and record.reason == "it belongs to another member now":
            self.reach("queue-is-given-up-while-its-listener-works", record)

    def _allocated(self, record: Record, queue: Queue) -> None:
        if self._given_up.pop((record.node, queue), 0) is None:
            self.reach("queue-comes-back", record)
        was_started_again = self.case.ledger.processes.started_us.get(record.node, 0) > 0
        if was_started_again and record.queue_offset > 0 and self._is_broadcasting(record.group):
            self.reach("broadcasting-member-goes-on-from-its-file", record)

    def _lock(self, record: Record) -> None:
        queue = (record.group, record.topic, record.node, record.queue_id)
        if record.kind == "QueueUnlocked":
            self._locked_for.pop(queue, None)
            return
        if self._locked_for.get(queue, record.client_id) != record.client_id:
            self.reach("expired-lock-is-taken-over", record)
        self._locked_for[queue] = record.client_id

    def _is_broadcasting(self, group: str) -> bool:
        known = self.case.ledger.names.known(group)
        return known is not None and known.member is not None
