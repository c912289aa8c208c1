"""Rules of reviving: what Pop has handed out and nobody has done is brought back, in its time, and by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mqlab.explore.places import Place
from mqlab.explore.pop_ledger import Point, Queue
from mqlab.explore.rule import Case
from mqlab.explore.rules_of_delivery import USED_TWICE, USED_TWICE_TEXT
from mqlab.explore.rules_of_pop import (
    ACK_NOT_FLUSHED,
    ACK_NOT_FLUSHED_TEXT,
    FORGOTTEN,
    FORGOTTEN_TEXT,
    IN_ORDER_NO_MORE,
    IN_ORDER_NO_MORE_TEXT,
    REVIVE_SLACK_MS,
    REVIVER_AHEAD,
    REVIVER_AHEAD_TEXT,
    PopRule,
)
from mqlab.explore.rules_of_replication import PREFERS, PREFERS_TEXT
from mqlab.explore.rules_of_storing import DELETED, DELETED_TEXT
from mqlab.explore.rules_of_timers import GIVEN_UP, GIVEN_UP_TEXT
from mqlab.explore.stale_entries import STALE, STALE_TEXT
from mqlab.explore.stopped_timer import TORN, TORN_TEXT, WHEEL_AHEAD, WHEEL_AHEAD_TEXT
from mqlab.protocol.pop_check_point import ACK_TAG, ACK_TIME_INTERVAL_MS, BATCH_ACK_TAG
from mqlab.protocol.topics import RETRY_GROUP_TOPIC_PREFIX, is_retry_topic, pop_retry_topic
from mqlab.trace.record import TS_US, Record

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess

TIMER = "TimerDequeueService"
"""The thread that stores timer messages whose time has come."""
AT_A_SLAVE = "a pop that a slave answers"
AT_A_SLAVE_TEXT = (
    "A slave that is asked to pop, as by a proxy that knows no route to the master, hands messages out although it can "
    "store no check point; how far the group is it has from its master, and the next pop gets the same ones."
)
RESTS_US = 20_000_000
"""A reviver that has found nothing for a while looks again by then."""
LONE_ACKS = "acks without their check point"
LONE_ACKS_TEXT = (
    "A reviver does not pass acknowledgements whose check point it has dealt with already: they stay in front of it "
    "until a later check point takes it past them (enableSkipLongAwaitingAck, which ends that, is off). It has read "
    "each of them."
)


class RevivedInTime(PopRule):
    """Nobody gets a message that another one of the group may still be at: it is invisible until its time is over.

    A group that is reset begins anew, whoever is at what.
    """

    kinds = ("MessageRevived", "MessagePopped", "ReviveCheckPointRead", "ReviveAckRead")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        FORGOTTEN: FORGOTTEN_TEXT, WHEEL_AHEAD: WHEEL_AHEAD_TEXT, IN_ORDER_NO_MORE: IN_ORDER_NO_MORE_TEXT,
        AT_A_SLAVE: AT_A_SLAVE_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._came_early: dict[tuple[str, str], None] = {}
        """(broker, reviver) of those who have read a check point, or an acknowledgement, that was not due yet."""

    def on_event(self, record: Record) -> None:
        """Compare with the times of those who have it."""
        if not self.case.is_live:
            return
        if record.kind in ("ReviveCheckPointRead", "ReviveAckRead"):
            self._read(record)
            return
        at = f"{record.node} {record.topic} queue {record.queue_id} offset {record.queue_offset}"
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        if record.kind == "MessageRevived":
            self.judged += 1
            early_ms = record.pop_time + record.invisible_ms - now_ms
            if early_ms > 0 and (record.node, record.task) in self._came_early:
                self.excuse(WHEEL_AHEAD)
            elif early_ms > 0:
                self.found(record.row, f"the message at {at} is revived {early_ms} ms before its time is over")
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        *before, this = self.case.pops.handed[queue, record.queue_offset]
        self.judged += len(before)
        for handed in before:
            if self.case.pops.is_before_a_reset(handed):
                continue
            is_out = handed.until_ms > now_ms and not handed.changed and handed.acked_us < 0
            # In order an attempt that asks again gets the same messages.
            if is_out and not this.in_order and handed.unique_key == this.unique_key:
                # The one that is out may have got its time after the start, from a handle of before.
                times = [handed, *(each for each in before if each.changed)]
                if any(self.started_since(record.node, each.popped_us) for each in times):
                    self.excuse(FORGOTTEN)
                elif handed.in_order and self.is_popped_otherwise(record.node, record.group):
                    self.excuse(IN_ORDER_NO_MORE)
                elif self.case.ledger.names.original_of(record.node) != record.node:
                    self.excuse(AT_A_SLAVE)
                else:
                    self.found(record.row, f"{record.group} gets the message at {at}, which somebody still has")

    def _read(self, record: Record) -> None:
        """Note who has read something before it was due: a reviver takes the newest that it has read for the time."""
        if not any(broker == record.node for broker, _ in self.case.ledger.stores.taken_over):
            return
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        times = [
            self.case.pops.find(queue, offset, record.pop_time)
            for offset in self.case.pops.named.get((queue, record.pop_time), {})
        ]
        ahead_ms = ACK_TIME_INTERVAL_MS if record.kind == "ReviveCheckPointRead" else 0
        now_ms = self.case.lab.world.nodes[record.node].now_ms()
        if any(handed is not None and handed.until_ms - ahead_ms > now_ms for handed in times):
            self._came_early[record.node, record.task] = None


class RevivedIsNamed(PopRule):
    """What a reviver brings back, and what a pop hands out, is what a check point of its group names."""

    kinds = ("MessageRevived", "MessagePopped")
    EXCEPTIONS: ClassVar[dict[str, str]] = {USED_TWICE: USED_TWICE_TEXT, TORN: TORN_TEXT, STALE: STALE_TEXT}

    def on_event(self, record: Record) -> None:
        """Look the message up in the check points of its pop."""
        self.judged += 1
        pops = self.case.pops
        queue = Queue(record.node, record.group, record.topic, record.queue_id)
        at = f"{queue} offset {record.queue_offset}"
        handed = pops.find(queue, record.queue_offset, record.pop_time)
        if (handed is None or not handed.in_order) and not self._is_named(record, queue):
            self.found(record.row, f"no check point of {record.group} names the message at {at}")
        if record.kind == "MessagePopped":
            return
        if not record.retry_topic.startswith(f"{RETRY_GROUP_TOPIC_PREFIX}{record.group}"):
            self.found(record.row, f"{record.group} gets the message at {at} back in {record.retry_topic}")
        if handed is not None and record.unique_key != handed.unique_key:
            place = Place(record.node, record.topic, record.queue_id, record.queue_offset)
            if place in self.case.ledger.stores.used_twice:
                self.excuse(USED_TWICE)
            elif "\0" in record.unique_key or not record.unique_key:
                self.excuse(TORN)
            elif self.case.is_stale(place) or self._has_moved(place, record.unique_key):
                self.excuse(STALE)
            else:
                self.found(record.row, f"{record.group} popped {handed.unique_key} at {at}, and gets another one back")

    def _has_moved(self, place: Place, unique_key: str) -> bool:
        """Has the queue moved up after a loss of power, so that its entry at this place is that of a message behind?"""
        ledger = self.case.ledger
        if place.broker not in ledger.processes.power_lost_us or not self.case.is_live:
            return False
        store = self.case.broker(place.broker).store
        queue = store.find_consume_queue(place.topic, place.queue_id)
        unit = queue.get(place.queue_offset) if queue is not None else None
        message = store.look_message_by_offset(unit.pos) if unit is not None else None
        return (
            message is not None
            and (message.topic, message.queue_id, message.msg_id) == (place.topic, place.queue_id, unique_key)
            and message.queue_offset > place.queue_offset
        )

    def _is_named(self, record: Record, queue: Queue) -> bool:
        """Does a check point name it? Of one whose broker ended as it was stored nothing is told before it is read."""
        pops, batch = self.case.pops, (queue, record.pop_time)
        if record.queue_offset in pops.named.get(batch, {}):
            return True
        popped_us = (record.pop_time - self.case.lab.world.epoch_ms) * 1_000
        return record.queue_offset in pops.read.get(batch, {}) and self.started_since(record.node, popped_us)


class RevivedOnce(PopRule):
    """A reviver stores one copy of what it brings back, and knows that it did, whatever it waited for.

    A copy that was not flushed in time, or has not reached a slave, is stored (PopReviveService.reviveRetry asks for
    the AppendMessageStatus alone); only a broker that ends in between does not know.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "MessageStored": "_stored", "MessageRevived": "_told", "MessageParked": "_waits",
        "TimerMessageEnqueued": "_waits", "NodeCrashed": "_ended", "PowerLost": "_ended", "BrokerShutDown": "_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._parked: dict[tuple[str, str], None] = {}
        """(broker, unique key) of what waits for its time, or did: a copy of it waits once more, and is told before."""
        self._untold: dict[tuple[str, str, str], list[Record]] = {}
        """(broker, retry topic, unique key) -> the copies that were stored and not told yet."""

    def _ended(self, record: Record) -> None:
        node = record.node if record.kind == "BrokerShutDown" else record.target
        self._untold = {at: copies for at, copies in self._untold.items() if at[0] != node}

    def _waits(self, record: Record) -> None:
        self._parked[record.node, record.unique_key] = None

    def _told(self, record: Record) -> None:
        copies = self._untold.get((record.node, record.retry_topic, record.unique_key))
        if copies:
            copies.pop()

    def _stored(self, record: Record) -> None:
        """Note what is stored in the retry topics of Pop, to which revivers alone write, and after a loss of power the
        timer: what it has noted may lie where another message is by now.
        """
        if record.task == TIMER:
            return
        if self.case.pops.groups and is_retry_topic(record.topic) and self._is_of_pop(record):
            self.judged += 1
            self._untold.setdefault((record.node, record.topic, record.unique_key), []).append(record)

    def _is_of_pop(self, record: Record) -> bool:
        if (record.node, record.unique_key) in self._parked:
            return False
        return any(
            record.topic in (pop_retry_topic(topic, group), pop_retry_topic(topic, group, version_2=True))
            for (broker, group), topics in self.case.pops.groups.items()
            for topic in topics
            if broker == record.node
        )

    def at_end(self) -> None:
        """Look which copies nobody knows of."""
        for (node, topic, unique_key), copies in self._untold.items():
            for record in copies:
                self.found(record.row, f"{node} has stored {unique_key} in {topic}, and its reviver does not know")


class ReviversKeepUp(PopRule):
    """In the end every reviver has dealt with all that lies in its queue.

    A slave's reviver does nothing: it has its master's progress, as of the last minute.
    """

    kinds = ("TimerMessageDropped",)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LONE_ACKS: LONE_ACKS_TEXT, ACK_NOT_FLUSHED: ACK_NOT_FLUSHED_TEXT, FORGOTTEN: FORGOTTEN_TEXT,
        GIVEN_UP: GIVEN_UP_TEXT, TORN: TORN_TEXT, STALE: STALE_TEXT, WHEEL_AHEAD: WHEEL_AHEAD_TEXT,
        REVIVER_AHEAD: REVIVER_AHEAD_TEXT, PREFERS: PREFERS_TEXT, DELETED: DELETED_TEXT,
    }  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._given_up: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Note when a broker's timer gave something up: it may have been a check point."""
        self._given_up[record.node] = record.ts_us

    def at_end(self) -> None:
        """Look at what lies behind the offset of each reviver."""
        for broker in self.case.lab.masters:
            self._look_at_records(broker)
            for at, behind in self.revive_queues(broker):
                self.judged += max(1, len(behind))
                behind = [place for place in behind if not self._is_new(place)]
                reason = self.stands(broker, behind) if behind else ""
                if reason:
                    self.excuse(reason)
                else:
                    self._judge(behind, f"the reviver stands at {at}")

    def _look_at_records(self, broker: BrokerProcess) -> None:
        """Look for what the key-value engine should have brought back a while ago."""
        made = broker.running().made_pop if broker.is_up() else None
        service = made.pop_consumer_service if made is not None else None
        if service is None:
            return
        due_ms = broker.node.now_ms() - REVIVE_SLACK_MS
        left = service.records.store.scan_expired_records(0, due_ms, 1)
        self.judged += 1
        for record in left:
            at = f"{broker.name} {record.topic} queue {record.queue_id} offset {record.offset}"
            late_ms = broker.node.now_ms() - record.visibility_timeout
            self.found(None, f"the message of {record.group} at {at} is {late_ms} ms due, and its record still there")

    def _is_new(self, place: Place) -> bool:
        """Was this stored so lately that its reviver may rest, four times reviveInterval at the most?"""
        kept = self.case.ledger.stores.stored.get(place)
        return kept is not None and self.case.lab.world.now_us - kept.row[TS_US] < RESTS_US

    def _judge(self, behind: list[Place], text: str) -> None:
        reasons: dict[str, None] = {}
        never_read = self.never_read()
        for place in behind:
            reason = self._reason(place, never_read)
            if not reason:
                self.found(None, f"{text}, and has not dealt with offset {place.queue_offset}")
                return
            reasons[reason] = None
        for reason in reasons:
            self.excuse(reason)

    def _was_popped_at_a_slave(self, point: Point) -> bool:
        """Was the pop that these acknowledgements belong to one of a slave, which stores no check point?"""
        names, pops = self.case.ledger.names, self.case.pops
        return any(
            handed.pop_time == point.pop_time and queue[1:] == point.queue[1:]
            for (queue, _), times in pops.handed.items()
            if queue.broker != point.queue.broker and names.original_of(queue.broker) == point.queue.broker
            for handed in times
        )

    def _reason(self, place: Place, never_read: dict[Point, None]) -> str:
        """Why a reviver need not get past what lies here: it has read that this is an acknowledgement, and its check
        point is dealt with, or can never come.
        """
        found, pops = self.case.contents.found.get(place), self.case.pops
        if place in self.case.ledger.stores.deleted:
            return DELETED
        point = pops.acks_read.get((place.broker, place.queue_id, place.queue_offset))
        if found is None or self.case.is_stale(place):
            return STALE if self.case.is_stale(place) else ""
        if self.is_never_read(place) or (point is not None and point in never_read):
            return REVIVER_AHEAD
        if found.tags not in (ACK_TAG, BATCH_ACK_TAG) or point is None:
            return ""
        if point in pops.settled:
            return LONE_ACKS
        if self._was_popped_at_a_slave(point):
            return PREFERS
        popped_us = (point.pop_time - self.case.lab.world.epoch_ms) * 1_000
        if self.lost_power_since(place.broker, popped_us):
            return ACK_NOT_FLUSHED
        if self.started_since(place.broker, popped_us):
            return FORGOTTEN
        return GIVEN_UP if self._given_up.get(place.broker, -1) > popped_us else ""
