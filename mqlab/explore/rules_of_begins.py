"""Rules of where to go on: a member begins where its group stood, and goes where it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from mqlab.client import MessageModel
from mqlab.explore.ledger.consumption import SET_ANEW
from mqlab.explore.places import Kept, Place, QueueKey
from mqlab.explore.pop_ledger import Queue
from mqlab.explore.readers import Reader, progress, push_consumer_of, readers_of
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_delivery import PASSED, why_gone, why_never_given
from mqlab.explore.rules_of_offsets import OUTSIDE, PERSIST_US, RESETS, TAKES_US, Update, of_consumer
from mqlab.explore.rules_of_order import TAKEN_ANEW
from mqlab.explore.stale_entries import STALE
from mqlab.protocol.codes import ResponseCode
from mqlab.trace.record import Record

BEHIND = "a slave that is behind its master"
BEHIND_TEXT = (
    "A slave that is asked for an offset which it has not got yet does not correct it, since its master may have it: "
    "the consumer is told to ask again at once, and does so without a pause while it knows no master (in RocketMQ: "
    "PULL_RETRY_IMMEDIATELY, then executePullRequestImmediately). One that checks offsets (offsetCheckInSlave) sends "
    "the consumer back to its own end, as often as its master sends the consumer to it."
)
ASKED_US = 20_000_000
"""A member asks for an offset at most so long before it has the queue: a call takes 5 s at most, and is made again."""
MOST_TOLD = 4
"""How often a group may pull from one and the same offset outside of a queue: once for each member, and once more."""


class CorrectedOffsetsFit(Rule):
    """A pull from outside of a queue is told an offset that lies within it, and the group keeps to that.

    From in front of the queue that is its begin, from behind it its end.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "PullRequested": "_requested", "PullAnswered": "_answered", "PullFinished": "_finished",
        "NodeStarted": "_started", "OffsetReset": "_reset",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {BEHIND: BEHIND_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._asked: dict[tuple[str, QueueKey], int] = {}
        """(process, queue) -> the offset of its last pull."""
        self._told: dict[QueueKey, list[int]] = {}
        """The offsets outside of a queue for which members of a group were told another one."""
        self._sent_back: dict[tuple[QueueKey, int], None] = {}
        """The offsets for which members were last told another one by a slave that checks offsets."""

    def _started(self, record: Record) -> None:
        self._told.clear()

    def _reset(self, record: Record) -> None:
        # Whoever pulls next is told the offset of the reset, wherever that pull begins.
        self._told.pop((record.group, record.node, record.topic, record.queue_id), None)

    def _requested(self, record: Record) -> None:
        self._asked[of_consumer(record)] = record.queue_offset

    def _finished(self, record: Record) -> None:
        if record.pull_status == "OFFSET_ILLEGAL":
            self._heard(record)

    def _heard(self, record: Record) -> None:
        """An answer that came too late was heard by nobody: those of pulls that piled up at a broker that hung."""
        queue = self.case.ledger.names.queue_of(record)
        asked = self._asked.get(of_consumer(record))
        if asked is None or (queue, asked) in self._sent_back:
            return
        self.judged += 1
        told = self._told.setdefault(queue, [])
        told.append(asked)
        if told.count(asked) == MOST_TOLD:
            at = f"{queue[1]} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.group} pulled {MOST_TOLD} times from {asked} of {at}")

    def _answered(self, record: Record) -> None:
        """Compare the offset with the queue as it is at this moment."""
        is_moved, is_outside = record.code == ResponseCode.PULL_OFFSET_MOVED, record.status in OUTSIDE
        if not self.case.is_live or not (is_moved or is_outside):
            return
        master = self.case.ledger.names.original_of(record.node)
        asked = (record.group, master, record.topic, record.queue_id), record.queue_offset
        self._sent_back.pop(asked, None)
        if master != record.node and is_moved and self._checks_offsets(record.node):
            self._sent_back[asked] = None
        if not is_outside:
            return
        self.judged += 1
        if master != record.node:
            if is_moved and asked not in self._sent_back:
                at = f"{record.node} {record.topic} queue {record.queue_id}"
                self.found(record.row, f"a slave that may be behind corrects a pull from {record.queue_offset} of {at}")
            else:
                self.excuse(BEHIND)
            return
        store = self.case.broker(record.node).running().message_store
        least = store.get_min_offset_in_queue(record.topic, record.queue_id)
        most = store.get_max_offset_in_queue(record.topic, record.queue_id)
        lowest = most if record.status == "OFFSET_OVERFLOW_BADLY" else least
        highest = least if record.status == "OFFSET_TOO_SMALL" else most
        if not lowest <= record.next_offset <= highest:
            at = f"{record.node} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"a pull of {at}, which is [{least}, {most}), is told {record.next_offset}")

    def _checks_offsets(self, slave: str) -> bool:
        return self.case.broker(slave).running().message_store_config.offset_check_in_slave


class BeginsWhereItStood(Rule):
    """A member that gets a queue begins at the offset that its broker has noted for the group.

    What was noted within the last 20 s counts, since it asks before it has the queue. Where nothing is noted the group
    begins as it wants.
    """

    LOOKS: ClassVar[dict[str, str]] = {"OffsetCommitted": "_committed", "QueueAllocated": "_allocated"}
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._noted: dict[QueueKey, list[Update]] = {}

    def _committed(self, record: Record) -> None:
        noted = self._noted.setdefault((record.group, record.node, record.topic, record.queue_id), [])
        noted.append(Update(record.ts_us, record.queue_offset))

    def _allocated(self, record: Record) -> None:
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        broker_name = self.case.ledger.names.broker_of(record.broker_name)
        broker = self.case.ledger.names.broker(broker_name)
        if not self.case.is_live or consumer is None or consumer.impl.message_model is not MessageModel.CLUSTERING:
            return
        if broker is None or not broker.is_up() or len(self.case.ledger.names.copies_of(broker_name)) > 1:
            # A slave may answer in place of its master, and not know as much.
            return
        now = broker.running().consumer_offset_manager.query_offset(record.group, record.topic, record.queue_id)
        if now < 0:
            return
        noted = self._noted.get(self.case.ledger.names.queue_of(record), [])
        long_ago_us = record.ts_us - ASKED_US
        before = [update.offset for update in noted if update.ts_us < long_ago_us][-1:]
        may_be = {now, *before, *(update.offset for update in noted if update.ts_us >= long_ago_us)}
        if not before:
            # What it asked for may not have been noted then.
            return
        self.judged += 1
        if record.queue_offset not in may_be:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            begins = f"{record.node} begins at {record.queue_offset}"
            self.found(record.row, f"{record.group} stood at {now} in {at}, and {begins}")


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
        "OffsetReset", "PullReceived", "PullAnswered", "PullFinished", "OffsetCommitted", "QueueDropped", "QueueSought",
        "BrokerStarted", "SubscriptionGroupDeleted", "ClientStopped", "NodeCrashed", "PowerLost",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = PASSED

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._waits: dict[QueueKey, int] = {}
        """Queue -> the offset of a reset that its group was not told of yet."""
        self._answered: dict[QueueKey, int] = {}
        """The same of which the answer to a pull tells. One held for a client that has ended tells nobody, and
        neither does one held since before the queue was given up.
        """
        self._pulls_us: dict[tuple[str, str, int], int] = {}
        """(broker, address of a consumer, number of its request) -> when its pull came."""
        self._dropped_us: dict[QueueKey, int] = {}
        """When a member has last given the queue up."""
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
        elif record.kind in ("PullFinished", "QueueDropped", "QueueSought"):
            self._at_member(record, self.case.ledger.names.queue_of(record))
        else:
            self._at_broker(record, (record.group, record.node, record.topic, record.queue_id))

    def _at_broker(self, record: Record, key: QueueKey) -> None:
        if record.kind == "OffsetReset":
            self._told.pop(key, None)
            self._answered.pop(key, None)
            self._waits[key] = record.queue_offset
        elif record.kind == "PullReceived":
            self._pulls_us.setdefault((record.node, record.remote, record.opaque), record.ts_us)
        elif record.kind == "PullAnswered":
            came_us = self._pulls_us.pop((record.node, record.remote, record.opaque), record.ts_us)
            if record.status == "OFFSET_RESET" and key in self._waits:
                offset = self._waits.pop(key)
                if self._dropped_us.get(key, -1) < came_us:
                    self._answered[key] = offset
        elif key not in self._waits:
            return
        elif record.origin in RESETS:
            self._told[key] = _Reset(self._waits.pop(key), record.ts_us)

    def _at_member(self, record: Record, key: QueueKey) -> None:
        if record.kind == "PullFinished":
            if record.pull_status == "OFFSET_ILLEGAL" and self._answered.get(key) == record.next_offset:
                self._told[key] = _Reset(self._answered.pop(key), record.ts_us)
            return
        if record.kind == "QueueSought":
            self._told.pop(key, None)
            return
        self._dropped_us[key] = record.ts_us
        if record.reason == SET_ANEW:
            moved_to = self.case.ledger.consumption.moved_to(record.group, Place(*key[1:], 0))
            self._told[key] = _Reset(moved_to, record.ts_us)
        elif record.reason not in TAKEN_ANEW:
            self._lost([key], record.ts_us)

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
        reason = why_gone(self.case, place) or (STALE if self.case.is_stale(place) else "")
        if reason := reason or why_never_given(self.case, reader, place):
            self.excuse(reason)
        else:
            text = f"{reader.name} was set to offset {reset.offset}, and never got the message at {place} again"
            self.found(kept.row, text)
