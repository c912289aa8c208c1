"""Rules of commits: an offset is noted when somebody asks for it, and one that an administrator sets is gone to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from mqlab.explore.ledger.consumption import SET_ANEW
from mqlab.explore.places import Kept, Place
from mqlab.explore.pop_ledger import Queue
from mqlab.explore.readers import Reader, progress, readers_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_delivery import (
    OTHER_UNIT,
    OTHER_UNIT_TEXT,
    SKIPPED,
    SKIPPED_TEXT,
    USED_TWICE,
    USED_TWICE_TEXT,
    why_never_given,
)
from mqlab.explore.rules_of_offsets import RESETS
from mqlab.explore.rules_of_order import TAKEN_ANEW
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT, GAP, GAP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.trace.record import Record

TAKES_US = 5_000_000
"""A consumer that is told another offset drops the queue and notes the offset at once, and pulls from there soon."""
PERSIST_US = 11_000_000
"""Brokers write offsets every 5 s, the first time after 10 s."""

QueueKey = tuple[str, str, str, int]
"""(group, broker's process, topic, queue id)"""


class CommitsAreAsked(Rule):
    """A pull commits the offset that came with it once, when it comes; one that was held commits nothing later."""

    kinds = ("PullReceived", "OffsetCommitted", "NodeStarted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._times: dict[tuple[str, str, int], int] = {}
        """(broker, remote address, opaque) -> how often the broker has dealt with this pull."""
        self._now: dict[tuple[str, str], Record] = {}
        """(broker, task) -> the pull that it deals with."""

    def on_event(self, record: Record) -> None:
        """Note the pulls, and judge what is committed with them."""
        if record.kind == "NodeStarted":
            self._times = {key: times for key, times in self._times.items() if key[0] != record.target}
        elif record.kind == "PullReceived":
            key = (record.node, record.remote, record.opaque)
            self._times[key] = self._times.get(key, 0) + 1
            self._now[record.node, record.task] = record
        elif record.origin == "pull":
            pull = self._now.get((record.node, record.task))
            if not self.case.fault_times.none_between(record.ts_us - TAKES_US, record.ts_us):
                # On a slow disk a thread begins with other pulls before it is done with one.
                return
            self.judged += 1
            of_pull = pull and (pull.group, pull.topic, pull.queue_id) == (record.group, record.topic, record.queue_id)
            if pull is None or not of_pull or self._times[record.node, pull.remote, pull.opaque] > 1:
                at = f"{record.node} {record.topic} queue {record.queue_id}"
                self.found(record.row, f"{record.group} commits {record.queue_offset} in {at}, and no pull just came")


class _Reset(NamedTuple):
    """Where a group is to go on in a queue, and since when it is told so."""

    offset: int
    told_us: int


class ResetsAreFollowed(Rule):
    """Behind an offset to which a group was set back, all that it wants is delivered to it again.

    What counts is the last reset of a queue, once the group was told of it: by the answer to a pull, by a pop, or by
    its broker. It is told once: a consumer that ends, or loses the queue, before it has taken the offset over takes
    the reset with it.
    """

    kinds = (
        "OffsetReset", "PullAnswered", "PullFinished", "OffsetCommitted", "QueueDropped", "QueueSought",
        "BrokerStarted", "SubscriptionGroupDeleted", "ClientStopped", "NodeCrashed", "PowerLost",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        USED_TWICE: USED_TWICE_TEXT, DELETED: DELETED_TEXT, GAP: GAP_TEXT, STALE: STALE_TEXT, SKIPPED: SKIPPED_TEXT,
        TORN: TORN_TEXT, OTHER_UNIT: OTHER_UNIT_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._waits: dict[QueueKey, int] = {}
        """Queue -> the offset of a reset that its group was not told of yet."""
        self._answered: dict[QueueKey, int] = {}
        """The same of which the answer to a pull tells. One held for a client that has ended meanwhile tells nobody."""
        self._told: dict[QueueKey, _Reset] = {}

    def on_event(self, record: Record) -> None:
        """Note the resets, and what makes them void."""
        if record.kind == "BrokerStarted":
            self._waits = {key: offset for key, offset in self._waits.items() if key[1] != record.node}
        elif record.kind == "SubscriptionGroupDeleted":
            gone = [key for key in (*self._waits, *self._told) if key[:2] == (record.group, record.node)]
            for key in gone:
                self._waits.pop(key, None)
                self._told.pop(key, None)
        elif record.kind in ("NodeCrashed", "PowerLost"):
            self._lost([key for key in self._told if key[1] == record.target], record.ts_us - PERSIST_US + TAKES_US)
        elif record.kind == "ClientStopped":
            self._lost([key for key in self._told if key[0] == record.group], record.ts_us)
        elif record.kind == "PullFinished":
            broker = self.case.ledger.names.broker_of(record.broker_name)
            key = (record.group, broker, record.topic, record.queue_id)
            if record.pull_status == "OFFSET_ILLEGAL" and self._answered.get(key) == record.next_offset:
                self._told[key] = _Reset(self._answered.pop(key), record.ts_us)
        elif record.kind in ("QueueDropped", "QueueSought"):
            broker = self.case.ledger.names.broker_of(record.broker_name)
            key = (record.group, broker, record.topic, record.queue_id)
            if record.kind == "QueueSought":
                self._told.pop(key, None)
            elif record.reason == SET_ANEW:
                moved_to = self.case.ledger.consumption.moved_to(record.group, Place(broker, *key[2:], 0))
                self._told[key] = _Reset(moved_to, record.ts_us)
            elif record.reason not in TAKEN_ANEW:
                self._lost([key], record.ts_us)
        else:
            self._at_broker(record, (record.group, record.node, record.topic, record.queue_id))

    def _at_broker(self, record: Record, key: QueueKey) -> None:
        if record.kind == "OffsetReset":
            self._told.pop(key, None)
            self._answered.pop(key, None)
            self._waits[key] = record.queue_offset
        elif key not in self._waits:
            return
        elif record.kind == "PullAnswered":
            if record.status == "OFFSET_RESET":
                self._answered[key] = self._waits.pop(key)
        elif record.origin in RESETS:
            self._told[key] = _Reset(self._waits.pop(key), record.ts_us)

    def _lost(self, queues: list[QueueKey], now_us: int) -> None:
        """Forget the resets that a consumer was just told of, and that go with it or with its queue."""
        for key in queues:
            if key in self._told and now_us - self._told[key].told_us < TAKES_US:
                del self._told[key]

    def at_end(self) -> None:
        """Look what was delivered since each group was told."""
        running = readers_of(self.case.lab, running=True)
        for key, reset in self._told.items():
            group, broker, topic, queue_id = key
            reader = running.get(group)
            if reader is None or topic not in reader.topics:
                continue
            if not self.case.fault_times.none_between(reset.told_us, reset.told_us + TAKES_US):
                continue
            for place, kept in self._behind(reader, Place(broker, topic, queue_id, reset.offset)):
                self.judged += 1
                self._judge(reader, place, kept, reset)

    def _behind(self, reader: Reader, begin: Place) -> Iterator[tuple[Place, Kept]]:
        """What lies from a place on, up to where the group has come, and is wanted by it."""
        end = progress(self.case.lab, reader, begin.broker, begin.topic, begin.queue_id)
        ledger = self.case.ledger
        for offset in range(begin.queue_offset, end):
            place = begin._replace(queue_offset=offset)
            kept = ledger.stores.stored.get(place)
            if kept is not None and place in self.case.contents.found and ledger.consumption.wants(reader, place):
                yield place, kept

    def _judge(self, reader: Reader, place: Place, kept: Kept, reset: _Reset) -> None:
        ledger = self.case.ledger
        if ledger.consumption.is_delivered_since(reader.name, place, kept, reset.told_us):
            return
        queue = Queue(place.broker, reader.group, place.topic, place.queue_id)
        handed = self.case.pops.handed.get((queue, place.queue_offset), ())
        if any(each.popped_us >= reset.told_us for each in handed):
            return
        if place in ledger.stores.used_twice:
            self.excuse(USED_TWICE)
        elif place in ledger.stores.gaps:
            self.excuse(GAP)
        elif place in ledger.stores.deleted:
            self.excuse(DELETED)
        elif self.case.is_stale(place):
            self.excuse(STALE)
        elif reason := why_never_given(self.case, reader, place):
            self.excuse(reason)
        else:
            text = f"{reader.name} was set to offset {reset.offset}, and never got the message at {place} again"
            self.found(kept.row, text)
