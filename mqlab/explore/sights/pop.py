"""Goals of Pop: what happens to messages that are out, to their check points and to their acknowledgements."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.pop_ledger import Point, Queue
from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX, is_retry_topic
from mqlab.trace.record import Record

LATE_MS = 5_000


class SightsOfPop(Sights):
    """Pop: handing out, holding requests, acknowledging, and other invisible times."""

    SUBJECT = "Pop"
    SEEN = (
        seen("held-pop-is-woken", "PopWoken", "A pop that is held is answered since a message has come.",
             reason="arrived"),
        seen("held-pop-times-out", "PopWoken", "A pop that is held is answered since its time is up.",
             reason="timed out"),
        seen("pop-finds-a-queue-busy", "PopQueueBusy", "A pop leaves a queue out that another pop of the group is at."),
        seen(
            "pop-is-not-held-for-want-of-room", "PopNotHeld",
            "A broker that holds as many pops as it may answers one at once.", reason="polling full",
        ),
        seen(
            "revived-message-is-popped", "MessagePopped", "A message that was brought back is handed out again.",
            lambda r: r.reconsume_times > 0 and is_retry_topic(r.topic),
        ),
        seen(
            "message-is-popped-a-third-time", "MessagePopped", "A message is handed out for the third time.",
            lambda r: r.reconsume_times >= 2,
        ),
        seen("invisible-time-changes", "InvisibleTimeChanged", "A message gets another invisible time."),
        seen(
            "invisible-time-cannot-be-changed", "InvisibleTimeNotChanged",
            "A wish for another invisible time does not get through, or is refused.",
        ),
        seen("ack-does-not-get-through", "AckFailed", "A consumer does not know whether its acknowledgement counts."),
        seen("ack-has-no-effect", "AckLost", "A broker takes an acknowledgement that has no effect."),
        seen(
            "consumer-gives-popped-messages-up", "PopGivenUp",
            "A consumer is done with popped messages too late, or when they are no more its own, and tells nobody.",
        ),
        seen("broker-hands-a-topic-to-pop", "MessageRequestModeSet", "An administrator lets a group pop a topic.",
             mode="POP"),
        seen(
            "pop-assignment-ends", "PopUnassigned", "A consumer that runs does not pop a topic there any more.",
            reason="it is no longer assigned",
        ),
        seen(
            "check-point-cannot-be-made", "CheckPointNotMade",
            "A batch is not handed out, since its check point cannot be noted.",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "ack-comes-too-late": "An acknowledgement comes when the invisible time of its message is over.",
        "ack-comes-after-a-restart": "An acknowledgement comes to a broker that was started again since the pop.",
        "message-is-handed-out-twice-at-once": (
            "A message is handed out although it is invisible, as its broker has forgotten that it was popped."
        ),
    }
    FOLLOWS = ("AckReceived", "MessagePopped")

    def follow(self, record: Record) -> None:
        """Compare with what the ledger of Pop knows of the message."""
        if not self.case.is_live:
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        if record.kind == "AckReceived":
            handed = self.case.pops.find(queue, record.queue_offset, record.pop_time)
            if handed is None:
                return
            if now_ms >= handed.until_ms:
                self.reach("ack-comes-too-late", record)
            if self.case.ledger.processes.started_us.get(record.node, -1) > handed.popped_us:
                self.reach("ack-comes-after-a-restart", record)
            return
        # The ledger has noted this pop already: the last one is the pop itself.
        before = self.case.pops.handed.get((queue, record.queue_offset), [])[:-1]
        same = [handed for handed in before if handed.unique_key == record.unique_key and not handed.changed]
        if any(now_ms < handed.until_ms and not handed.said_done for handed in same):
            self.reach("message-is-handed-out-twice-at-once", record)


class SightsOfBuffers(Sights):
    """The merge buffer: check points and acknowledgements that meet in memory."""

    SUBJECT = "Pop's merge buffer"
    SEEN = (
        seen(
            "check-point-is-settled-in-memory", "CheckPointMerged",
            "All messages of a check point are acknowledged in memory, and nothing is stored.", in_store=False,
        ),
        seen(
            "check-point-is-stored-since-it-is-due-soon", "CheckPointStored",
            "A check point leaves the buffer for the store, since its messages are visible soon.",
            reason="visible soon",
        ),
        seen(
            "buffer-takes-nothing-in", "MergeBufferClosed",
            "The buffer takes nothing in until it is empty, as a scan took too long or its broker ends.",
        ),
        seen("buffer-opens-again", "MergeBufferOpened", "The buffer is empty, and takes check points in again."),
        seen(
            "check-point-passes-the-closed-buffer", "CheckPointStored",
            "A check point is stored at once, since the buffer is closed.", reason="buffer closed",
        ),
        seen(
            "buffer-is-full", "CheckPointStored", "A check point is stored at once, since the buffer is full.",
            lambda r: r.reason in ("buffer full", "queue of offsets full"),
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "check-point-is-stored-after-its-ack": (
            "A message of a check point is acknowledged in memory, and then the check point is stored all the same."
        ),
        "buffered-acks-are-lost": (
            "A broker is killed while its buffer has acknowledgements that are in no store."
        ),
    }
    FOLLOWS = ("AckBuffered", "AckStored", "CheckPointStored", "CheckPointMerged", "NodeCrashed", "PowerLost")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._acked: dict[Point, int] = {}
        """The check points with acknowledgements in memory, and how many of these."""

    def follow(self, record: Record) -> None:
        """Follow which acknowledgements are in memory alone."""
        if record.kind in ("NodeCrashed", "PowerLost"):
            here = [point for point in self._acked if point.queue.broker == record.target]
            for point in here:
                del self._acked[point]
            if here:
                self.reach("buffered-acks-are-lost", record)
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        point = Point(queue, record.start_offset, record.pop_time)
        if record.kind == "AckBuffered":
            self._acked[point] = self._acked.get(point, 0) + 1
        elif record.kind == "CheckPointStored":
            if point in self._acked:
                self.reach("check-point-is-stored-after-its-ack", record)
        else:
            self._acked.pop(point, None)


class SightsOfRevival(Sights):
    """Reviving: what comes back, what waits, and what cannot be brought back."""

    SUBJECT = "Pop's reviving"
    SEEN = (
        seen(
            "check-point-goes-to-the-timer", "TimerMessageAccepted",
            "A check point, or an acknowledgement, waits in the timer until it is due.",
            lambda r: r.topic.startswith(REVIVE_TOPIC_PREFIX),
        ),
        seen("message-is-revived", "MessageRevived", "A message that nobody acknowledged in time is brought back."),
        seen(
            "message-is-revived-late", "MessageRevived",
            "A message is brought back five seconds late or more.", lambda r: r.late_ms >= LATE_MS,
        ),
        seen(
            "reviver-finds-all-acknowledged", "CheckPointSettled",
            "A reviver reads a check point, and all acknowledgements for it.", reason="all acked",
        ),
        seen(
            "reviver-revives-a-part", "CheckPointSettled",
            "A reviver brings some messages of a check point back, and others were acknowledged.",
            lambda r: 0 < r.acked < r.messages,
        ),
        seen(
            "reviver-leaves-a-check-point-for-later", "CheckPointWaits",
            "A reviver leaves a check point to its next round, as acknowledgements may still come.",
        ),
        seen(
            "reviver-waits-for-the-timer", "ReviveScanWaits",
            "A reviver has read all that is there, and waits since the timer is behind.", reason="the timer",
        ),
        seen(
            "reviver-reads-an-ack-alone", "ReviveAckRead",
            "A reviver reads an acknowledgement without having read its check point.", bits="",
        ),
        seen(
            "check-point-is-put-again", "CheckPointPutAgain",
            "A message cannot be brought back now, and gets another check point.",
        ),
        seen("message-is-not-revived", "MessageNotRevived", "A message is not brought back though nobody has it."),
        seen(
            "reviver-has-no-time-left", "ReviveScanEnded",
            "A reviver stops reading in the midst, since its round takes too long.", reason="scan time over",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "reviver-reads-a-check-point-twice": (
            "A reviver reads a check point again that it has settled, as its broker was started again."
        ),
    }
    FOLLOWS = ("ReviveCheckPointRead",)

    def follow(self, record: Record) -> None:
        """Compare with what was settled."""
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        if Point(queue, record.start_offset, record.pop_time) in self.case.pops.settled:
            self.reach("reviver-reads-a-check-point-twice", record)


class SightsOfOrderedPops(Sights):
    """Pop in order: attempts that are turned away, and queues that are free again."""

    SUBJECT = "Pop in order"
    SEEN = (
        seen("ordered-pop-is-turned-away", "OrderBlocked", "A pop gets nothing, as the last batch is not done."),
        seen("ordered-queue-is-done", "OrderFreed", "All that was popped in order is done.", reason="settled"),
        seen(
            "ordered-messages-are-visible-again", "OrderFreed",
            "What was popped in order was not done in time, and can be popped again.", reason="visible again",
        ),
        seen("held-ordered-pop-is-unblocked", "PopWoken", "A held pop is answered since its queue is free again.",
             reason="unblocked"),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "ordered-attempt-comes-again": "An attempt that had its messages asks again, and gets them once more.",
    }
    FOLLOWS = ("OrderTaken",)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._attempts: dict[tuple[Queue, str], None] = {}

    def follow(self, record: Record) -> None:
        """Note the attempts."""
        attempt = (Queue(record.node, record.group, record.topic, record.queue_id), record.attempt_id)
        if record.attempt_id and attempt in self._attempts:
            self.reach("ordered-attempt-comes-again", record)
        self._attempts[attempt] = None


class SightsOfPopRecords(Sights):
    """The key-value engine: notes of what is out."""

    SUBJECT = "Pop's key-value engine"
    SEEN = (
        seen("pop-record-is-written", "PopRecordWritten", "The engine notes on the disk what a group has in hand.",
             held_in="store"),
        seen("pop-record-stays-in-memory", "PopRecordWritten", "The engine keeps a note in its cache.",
             held_in="cache"),
        seen("pop-record-is-acknowledged", "PopRecordDeleted", "A note goes since its message is done.",
             reason="acked"),
        seen("pop-record-is-revived", "PopRecordDeleted", "A note goes since its message is brought back.",
             reason="revived"),
        seen("pop-record-changes", "PopRecordDeleted", "A note goes since its message gets another invisible time.",
             reason="changed"),
        seen("pop-record-is-rolled-back", "PopRecordDeleted", "A note goes since its message is not handed out.",
             reason="rolled back"),
        seen("pop-record-cannot-be-written", "PopRecordsNotWritten", "A full disk has no room for a note."),
        seen(
            "pop-records-are-recovered", "PopRecordsRecovered",
            "A broker that starts again finds notes of what is out.", lambda r: r.records > 0,
        ),
        seen(
            "pop-record-is-torn", "PopRecordsRecovered",
            "The log of the notes ends with a part of one.", lambda r: r.torn_bytes > 0,
        ),
        seen(
            "pop-record-is-missing", "AckLost", "An acknowledgement comes for which there is no note.",
            reason="there is no record of this delivery",
        ),
    )  # fmt: skip
