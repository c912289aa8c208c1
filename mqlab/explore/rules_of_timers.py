"""Rules of the timer: what was accepted for a time comes out then, once, unless somebody took it back."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT, GAP, GAP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT, WHEEL_AHEAD, WHEEL_AHEAD_TEXT, standing
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.trace.record import Record

GIVEN_UP = "a due message that the store refuses three times"
GIVEN_UP_TEXT = (
    "A timer message that is due is put three times, half a second apart, and then given up "
    "(timerEnableRetryUntilSuccess is off): a disk that is full for a second loses what is due then."
)

SLOT_MS = 1_000
LATE_MS = SLOT_MS + 200
"""A slot is read within 100 ms of its end, on a thread that may lose the processor for a moment."""

RETRIES_US = 2_000_000
"""So long after a refusal the timer is still at it."""

Message = tuple[str, str, str]
"""(broker, topic, unique key)"""


class TimersComeInTime(Rule):
    """A timer message comes out when its slot is over, not before and not late, and once unless its broker crashes."""

    kinds = (
        "TimerMessageAccepted",
        "MessageStored",
        "TimerMessageEnqueued",
        "TimerMessageDelivered",
        "TimerMessageRecalled",
        "TimerMessageDropped",
        "TimerPutRefused",
        "TimerLoaded",
    )
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        GIVEN_UP: GIVEN_UP_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, TORN: TORN_TEXT, DELETED: DELETED_TEXT,
        WHEEL_AHEAD: WHEEL_AHEAD_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._accepted: dict[tuple[str, str], list[tuple[Record, int]]] = {}
        """(broker, unique key) -> what is to be stored, and when it was accepted, by the broker's clock; what was sent
        again may wait for the store beside it.
        """
        self._waiting: dict[Message, Counter[int]] = {}
        """What waits -> how many copies for each slot; those that came out too often are below 0."""
        self._held_at: dict[Message, list[Record]] = {}
        """Where it was stored to wait, and the messages that take it back with it, which have its key."""
        self._refused_us: dict[str, int] = {}
        """Broker -> when its store last refused what was due."""
        self._given_up: Counter[Message] = Counter()
        """How often the store has refused a message that was due, until that was over."""
        self._begun_us: dict[str, int] = {}
        """Broker -> when its timer last began with what its files held."""

    def on_event(self, record: Record) -> None:
        """Note what waits, and judge what comes out."""
        kind = record.kind
        if kind == "TimerMessageAccepted":
            now_ms = self.case.lab.world.nodes[record.node].now_ms()
            self._accepted.setdefault((record.node, record.unique_key), []).append((record, now_ms))
        elif kind == "MessageStored":
            self._stored(record)
        elif kind == "TimerPutRefused":
            self._refused_us[record.node] = record.ts_us
        elif kind == "TimerLoaded":
            self._begun_us[record.node] = record.ts_us
        elif kind == "TimerMessageDelivered":
            self._delivered(record)
        elif kind == "TimerMessageRecalled" or (kind == "TimerMessageEnqueued" and record.recalls and not record.rolls):
            self._out(record, record.slot_ms)
        elif kind == "TimerMessageDropped":
            self._dropped(record)

    def _stored(self, record: Record) -> None:
        waits = self._accepted.get((record.node, record.unique_key)) if record.topic == TIMER_TOPIC else None
        if not waits:
            return
        accepted, accepted_ms = waits.pop(0)
        message = (record.node, accepted.topic, accepted.unique_key)
        self._waiting.setdefault(message, Counter())[accepted.slot_ms] += 1
        self._held_at.setdefault(message, []).append(record)
        if self.case.is_live:
            self._compare(accepted, accepted_ms, record)

    def _compare(self, accepted: Record, accepted_ms: int, record: Record) -> None:
        """Compare the slot of a message with the time that it asks for: it is over at that time, or one slot later."""
        store = self.case.broker(record.node).store
        message = store.look_message_by_offset(record.commit_log_offset)
        deliver_ms = _deliver_ms(message.properties, accepted_ms) if message is not None else None
        if deliver_ms is None:
            return
        self.judged += 1
        precision_ms = store.config.timer_precision_ms
        slot_ms = (deliver_ms - 1) // precision_ms * precision_ms
        if accepted.slot_ms != slot_ms:
            early_ms = slot_ms - accepted.slot_ms
            self.found(record.row, f"timer message {record.unique_key} waits in a slot that is {early_ms} ms too early")

    def _out(self, record: Record, slot_ms: int) -> None:
        message = (record.node, record.topic, record.unique_key)
        self.judged += 1
        waiting = self._waiting.setdefault(message, Counter())
        waiting[slot_ms] -= 1
        stored = self._held_at.get(message, [])
        if waiting[slot_ms] < 0 and self._given_up[message]:
            # A slot that was not done with when its broker stopped is read again, with what was given up of it.
            self._given_up[message] -= 1
            waiting[slot_ms] = 0
        # What went onto the wheel, or came out, since the timer was last written does so again when the broker was
        # stopped hard: any of the copies that there were then.
        stopped_us = self.case.ledger.processes.stopped_hard_us.get(record.node, -1)
        if waiting[slot_ms] < 0 and stored and stopped_us <= stored[0].ts_us:
            taken_over = self.case.ledger.stores.taken_over
            if any((record.node, each.commit_log_offset) in taken_over for each in stored):
                self.excuse(WHEEL_AHEAD)
            else:
                self.found(record.row, f"timer message {record.unique_key} came out twice")

    def _delivered(self, record: Record) -> None:
        self._out(record, record.slot_ms)
        self.judged += 1
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        late_ms = now_ms - record.slot_ms if self.case.is_live else record.late_ms
        if late_ms < SLOT_MS:
            self.found(record.row, f"timer message {record.unique_key} came {SLOT_MS - late_ms} ms early")
        since_us = record.ts_us - late_ms * 1_000
        # Whatever is due waits for those that are tried again.
        refused_us = self._refused_us.get(record.node, -1) + RETRIES_US
        begun_us = max(self._begun_us.get(record.node, 0), refused_us)
        late = late_ms > LATE_MS and record.from_wheel and begun_us < since_us
        if late and self.case.fault_times.none_between(since_us, record.ts_us):
            self.found(record.row, f"timer message {record.unique_key} came {late_ms} ms after its slot began")

    def _dropped(self, record: Record) -> None:
        message = (record.node, record.topic, record.unique_key)
        waiting = self._waiting.get(message, Counter())
        if "refused" in record.reason:
            self.judged += 1
            self.excuse(GIVEN_UP)
            self._given_up[message] += 1
        for slot_ms in [slot_ms for slot_ms, copies in waiting.items() if copies > 0][:1]:
            waiting[slot_ms] -= 1

    def at_end(self) -> None:
        """Say what should have come out."""
        for message, waiting in self._waiting.items():
            broker, topic, unique_key = message
            now_ms = self.case.broker(broker).node.now_ms()
            overdue = [slot_ms for slot_ms, n in waiting.items() if n > 0 and slot_ms + LATE_MS < now_ms]
            if unique_key in self.case.ledger.stores.lost_keys:
                continue
            self.judged += 1
            if not overdue:
                continue
            exception = self._reason(message, overdue[0])
            if exception:
                self.excuse(exception)
            else:
                late_ms = now_ms - overdue[0]
                text = f"timer message {unique_key} for {topic} has not come out {late_ms} ms after its slot began"
                self.found(self._held_at[message][-1].row, text)

    def _reason(self, message: Message, slot_ms: int) -> str:
        """Why the timer's topic does not have a message that is stored, where RocketMQ does not promise that."""
        ledger, (broker, _, unique_key) = self.case.ledger, message
        stands = standing(ledger.stores, self.case.broker(broker))
        held = self._held_at[message][-1]
        if stands is not None and stands.holds(slot_ms, held.queue_offset):
            return stands.reason
        if unique_key in ledger.stores.in_gaps:
            return GAP
        if unique_key in ledger.stores.in_passed_over:
            return STALE
        found = self.case.contents.found.get(Place(broker, TIMER_TOPIC, held.queue_id, held.queue_offset))
        if found is not None and found.is_torn:
            return TORN
        return DELETED if any(place.broker == broker for place in ledger.stores.deleted) else ""


def _deliver_ms(properties: dict[str, str], now_ms: int) -> int | None:
    """When a message asks to be delivered, ms since 1970; None when it does not say so in numbers.

    Java: org.apache.rocketmq.broker.util.HookUtils.transformTimerMessage.
    """
    for name, unit_ms, since_ms in (
        (MessageConst.TIMER_DELAY_SEC, 1_000, now_ms),
        (MessageConst.TIMER_DELAY_MS, 1, now_ms),
        (MessageConst.TIMER_DELIVER_MS, 1, 0),
    ):
        text = properties.get(name)
        if text is not None:
            return since_ms + int(text) * unit_ms if text.isdigit() else None
    return None
