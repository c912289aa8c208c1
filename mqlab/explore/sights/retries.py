"""Goals of messages that come later: given back, delayed by a level, or sent for a moment of their own."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.topics import is_dlq_topic
from mqlab.trace.record import Record

LATE_MS = 1_000
TIMER_LATE_MS = 5_000
"""A timer message comes up to about two seconds behind its slot when nothing is wrong."""


class SightsOfRetries(Sights):
    """Retries: messages that are given back, come again, and end among the dead letters."""

    SUBJECT = "retries"
    SEEN = (
        seen("message-is-given-back", "MessageGivenBack", "A listener fails, and the message is given back."),
        seen(
            "message-cannot-be-given-back", "SendBackFailed",
            "No broker takes a message that is given back, and its consumer keeps it.",
        ),
        seen(
            "message-becomes-a-dead-letter", "SendBackStored",
            "A message that was tried too often goes to the dead letters.", lambda r: is_dlq_topic(r.topic),
        ),
        seen(
            "message-is-tried-a-third-time", "ConsumeStarted",
            "A listener has failed with a message twice, and it comes once more.", lambda r: r.reconsume_times >= 2,
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "retry-succeeds": "A message with which a listener has failed comes again, and is consumed.",
        "retry-goes-to-another-member": "A message that one member gave back comes to another member.",
    }
    FOLLOWS = ("ConsumeStarted", "ConsumeFinished", "MessageGivenBack")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._again: dict[tuple[str, str, str, int], None] = {}
        """(process, group, message, offset) of what has come again, and whose listener is at work."""
        self._given_back_by: dict[tuple[str, str], str] = {}

    def follow(self, record: Record) -> None:
        """Follow what was given back."""
        at = (record.node, record.group, record.msg_id, record.queue_offset)
        if record.kind == "MessageGivenBack":
            self._given_back_by[record.group, record.msg_id] = record.node
        elif record.kind == "ConsumeFinished":
            if self._again.pop(at, 0) is None and record.status in ("CONSUME_SUCCESS", "SUCCESS"):
                self.reach("retry-succeeds", record)
        elif record.reconsume_times:
            self._again[at] = None
            if self._given_back_by.get((record.group, record.msg_id), record.node) != record.node:
                self.reach("retry-goes-to-another-member", record)


class SightsOfDelays(Sights):
    """Delay levels: messages that are parked until their time has come."""

    SUBJECT = "delay levels"
    SEEN = (
        seen("message-is-parked", "MessageParked", "A message is parked for its delay level."),
        seen(
            "parked-message-comes-late", "ParkedMessageDelivered",
            "A parked message is delivered a second late or more.", lambda r: r.late_ms >= LATE_MS,
        ),
        seen(
            "parked-message-cannot-be-delivered", "ParkedMessageDropped",
            "A parked message cannot be delivered, and is passed over.",
        ),
        seen(
            "delay-level-is-set-right", "DelayOffsetCorrected",
            "The progress of a delay level lies outside of its queue, and is moved to an end of it.",
        ),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "parked-message-outlives-its-broker": "A message is parked, its broker is started again, and then it is due.",
        "levels-overtake-each-other": "A message that was parked later comes earlier, since its level is shorter.",
    }
    FOLLOWS = ("MessageParked", "ParkedMessageDelivered")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._parked: dict[tuple[str, str], Record] = {}
        """(broker, message) -> when it was parked, in the order of that."""

    def follow(self, record: Record) -> None:
        """Follow what is parked."""
        if record.kind == "MessageParked":
            self._parked.pop((record.node, record.unique_key), None)
            self._parked[record.node, record.unique_key] = record
        elif record.kind == "ParkedMessageDelivered":
            parked = self._parked.pop((record.node, record.unique_key), None)
            if parked is None:
                return
            if self.case.ledger.processes.started_us.get(record.node, 0) > parked.ts_us:
                self.reach("parked-message-outlives-its-broker", record)
            older = next((other for (node, _), other in self._parked.items() if node == record.node), None)
            if older is not None and older.at < parked.at and older.delay_level != parked.delay_level:
                self.reach("levels-overtake-each-other", record)


class SightsOfTimers(Sights):
    """Timers: the wheel, what is due already, and what is put off, recalled, refused and given up."""

    SUBJECT = "timers"
    SEEN = (
        seen(
            "timer-message-waits-in-the-wheel", "TimerMessageDelivered",
            "A timer message comes out of the wheel.", from_wheel=True,
        ),
        seen(
            "timer-message-is-due-already", "TimerMessageDelivered",
            "A timer message is due before the wheel has taken it, and goes past the wheel.", from_wheel=False,
        ),
        seen(
            "timer-message-comes-late", "TimerMessageDelivered",
            "A timer message comes five seconds late or more.", lambda r: r.late_ms >= TIMER_LATE_MS,
        ),
        seen(
            "slot-holds-several", "TimerSlotDequeued",
            "A slot of the wheel holds more than one message.", lambda r: r.messages > 1,
        ),
        seen(
            "timer-message-is-rolled", "TimerMessageRolled",
            "A timer message is due later than the wheel reaches, and is put back.",
        ),
        seen("timer-message-is-recalled", "TimerMessageRecalled", "A timer message is recalled before it is due."),
        seen(
            "store-refuses-what-is-due", "TimerPutRefused",
            "The store refuses a timer message that is due, and the timer tries again.",
        ),
        seen(
            "timer-gives-up", "TimerMessageDropped",
            "The timer gives up a message that the store has refused too often.",
            lambda r: r.reason.startswith("the store has refused it"),
        ),
        seen(
            "timer-misses-a-message", "TimerMessageDropped",
            "The wheel names a message that the commit log does not have any more.",
            lambda r: r.reason.startswith("the commit log does not have"),
        ),
        seen(
            "wheel-goes-on-after-a-restart", "TimerLoaded",
            "A timer begins with slots that wait to be read.", lambda r: r.slots > 0,
        ),
        seen("timer-stands-still", "TimerStalled", "The timer cannot get past a message."),
    )  # fmt: skip
