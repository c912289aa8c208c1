"""The ledger of Pop: every message that was handed out, to which group, until when, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Place
from mqlab.protocol.pop_check_point import POP_ORDER_REVIVE_QUEUE
from mqlab.protocol.topics import REVIVE_TOPIC_PREFIX
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, KIND, NODE, TS_US

if TYPE_CHECKING:
    from mqlab.lab import Lab

MEMORY, STORE, ORDER = "memory", "store", "order"
"""How a broker noted an acknowledgement."""


class Queue(NamedTuple):
    """A queue that a group pops: the broker's process, the group, the topic (a retry topic, too), the queue."""

    broker: str
    group: str
    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.broker} {self.topic} queue {self.queue_id}"


class Point(NamedTuple):
    """A check point, by what an acknowledgement says of it: where its batch begins, and when it was popped."""

    queue: Queue
    start_offset: int
    pop_time: int


class Handed:
    """A message that was handed out once: `until_ms` on the broker's clock nobody else of the group gets it."""

    __slots__ = (
        "ack_read", "acked_by", "acked_us", "changed", "point", "popped_us", "queue_offset", "revive_qid", "said_done",
        "unique_key", "until_ms",
    )  # fmt: skip

    def __init__(
        self, point: Point, queue_offset: int, unique_key: str, until_ms: int, revive_qid: int, popped_us: int
    ) -> None:
        self.point = point
        self.queue_offset = queue_offset
        self.unique_key = unique_key
        self.until_ms = until_ms
        self.revive_qid = revive_qid
        self.popped_us = popped_us
        self.acked_us = -1
        """When an acknowledgement came in time and was noted; -1: none."""
        self.acked_by = ""
        self.ack_read = False
        """Has the reviver seen the acknowledgement?"""
        self.said_done = False
        """Did its consumer say that it is done, whenever that was?"""
        self.changed = False
        """Did it get another invisible time, and with it another check point?"""

    @property
    def pop_time(self) -> int:
        """When it was popped, ms since 1970."""
        return self.point.pop_time

    @property
    def in_order(self) -> bool:
        """Was it popped in order, and so without a check point?"""
        return self.revive_qid == POP_ORDER_REVIVE_QUEUE

    @property
    def counts_as_acked(self) -> bool:
        """Must it not come again?"""
        return self.acked_us >= 0 and not self.changed


class PopLedger:
    """Reads the events of one world, and keeps what the rules of Pop ask for."""

    def __init__(self, lab: Lab, is_live: Callable[[], bool]) -> None:
        self._lab = lab
        self._is_live = is_live
        self.handed: dict[tuple[Queue, int], list[Handed]] = {}
        """(queue, offset) -> how often it was handed out, in the order of that."""
        self.named: dict[tuple[Queue, int], dict[int, None]] = {}
        """(queue, pop time) -> the offsets that the check points of that pop name."""
        self.read: dict[tuple[Queue, int], dict[int, None]] = {}
        """The same of the check points that a reviver has read."""
        self.settled: dict[Point, None] = {}
        """The check points that a reviver has dealt with."""
        self.acks_alone: dict[Point, None] = {}
        """Those of which a reviver has read acknowledgements without having read them."""
        self.acks_read: dict[tuple[str, int, int], Point] = {}
        """(broker, revive queue, offset) of the acknowledgements that its reviver has read, and their check point."""
        self.behind_revivers: dict[Place, None] = {}
        """What was stored in a revive queue where its reviver had been already, as the queue had got shorter."""
        self.reads_from: dict[tuple[str, int], int] = {}
        """(broker, revive queue) -> the offset at which its reviver last began to read."""
        self._offsets: dict[Point, list[int]] = {}
        """The offsets that a check point names, in the order of its bits."""
        self._dealt_with: dict[tuple[Queue, int, int], None] = {}
        """(queue, offset, pop time) of what a reviver has put back, or does not have to; that can be told before a pop
        is that waits for a slow disk.
        """
        self.groups: dict[tuple[str, str], dict[str, None]] = {}
        """(broker, group) -> the topics that were popped for it."""
        self.began: dict[Queue, int] = {}
        """The offset at which a group that had none began to pop a queue."""
        self.began_again: dict[Queue, int] = {}
        """The same when it had begun before, and has none any more."""
        self.attempts: dict[tuple[str, str], str] = {}
        """(broker, address of a consumer) -> the attempt that its last pop belongs to."""
        self.orders: dict[tuple[str, str], dict[bool, None]] = {}
        """(broker, group) -> whether it was popped for in order, and whether without."""
        self.in_order: dict[tuple[str, str], bool] = {}
        """(broker, group) -> was the last pop in order?"""
        self.deleted_groups: dict[tuple[str, str], int] = {}
        """(broker, group) of the groups that were deleted -> when that was last."""
        self._written_us: dict[tuple[Queue, int, int], int] = {}
        """(queue, offset, pop time) -> when the key-value engine noted what it hands out once the disk has that."""
        self._began_us: dict[Queue, int] = {}
        """When a group that had no offset last began to pop a queue."""
        self.reset_us: dict[Queue, int] = {}
        """When a pop of this queue last began elsewhere, since somebody had reset the group."""
        self.handlers: dict[str, Callable[[Row], None]] = {
            "OffsetCommitted": self._committed,
            "SubscriptionGroupDeleted": self._group_deleted,
            "PopReceived": self._asked,
            "CheckPointMade": self._made,
            "PopRecordWritten": self._record_written,
            "PopRecordDeleted": self._record_deleted,
            "MessagePopped": self._popped,
            "AckReceived": self._ack_received,
            "AckBuffered": self._ack_buffered,
            "AckStored": self._ack_stored,
            "OrderAcked": self._order_acked,
            "InvisibleTimeChanged": self._changed,
            "CheckPointPutAgain": self._put_again,
            "ReviveCheckPointRead": self._check_point_read,
            "ReviveAckRead": self._ack_read,
            "ReviveScanBegun": self._scan_begun,
            "MessageStored": self._stored,
            "MessageRevived": self._revived,
            "MessageNotRevived": self._not_revived,
            "CheckPointSettled": self._settled,
            "NodeStarted": self._node_started,
        }

    def __call__(self, row: Row) -> None:
        handler = self.handlers.get(row[KIND])
        if handler is not None:
            handler(row)

    def find(self, queue: Queue, queue_offset: int, pop_time: int) -> Handed | None:
        """The handing out of a message that a handle names."""
        for handed in reversed(self.handed.get((queue, queue_offset), [])):
            if handed.pop_time == pop_time:
                return handed
        return None

    def is_before_a_reset(self, handed: Handed) -> bool:
        """Was this handed out before the group was last reset in this queue?"""
        reset_us = self.reset_us.get(handed.point.queue)
        if reset_us is None:
            return False
        named = (handed.point.queue, handed.queue_offset, handed.pop_time)
        return self._written_us.get(named, handed.popped_us) < reset_us

    def is_dealt_with(self, handed: Handed) -> bool:
        """Has a reviver put this message back, or found that it does not have to?"""
        return (handed.point.queue, handed.queue_offset, handed.pop_time) in self._dealt_with

    def is_popped(self, broker: str, group: str, topic: str) -> bool:
        """Has the group ever popped this topic from this broker?"""
        return topic in self.groups.get((broker, group), ())

    # -- events -----------------------------------------------------------------------------------------------------

    def _committed(self, row: Row) -> None:
        group, topic, queue_id, offset, origin = row[FIRST_FIELD:]
        if origin == "pop init":
            queue = Queue(row[NODE], group, topic, queue_id)
            if queue in self.began:
                self.began_again[queue] = offset
                if self.deleted_groups.get((row[NODE], group), -1) > self._began_us[queue]:
                    self.reset_us[queue] = row[TS_US]
            else:
                self.began[queue] = offset
            self._began_us[queue] = row[TS_US]
        if origin in ("reset", "pop reset"):
            self.reset_us[Queue(row[NODE], group, topic, queue_id)] = row[TS_US]

    def _group_deleted(self, row: Row) -> None:
        (group,) = row[FIRST_FIELD:]
        self.deleted_groups[row[NODE], group] = row[TS_US]
        for queue, _ in self.handed:
            if (queue.broker, queue.group) == (row[NODE], group):
                self.reset_us[queue] = row[TS_US]

    def _asked(self, row: Row) -> None:
        group, topic, _, _, _, _, in_order, attempt_id, _, remote, _ = row[FIRST_FIELD:]
        self.attempts[row[NODE], remote] = attempt_id
        self.groups.setdefault((row[NODE], group), {})[topic] = None
        self.orders.setdefault((row[NODE], group), {})[in_order] = None
        self.in_order[row[NODE], group] = in_order

    def _made(self, row: Row) -> None:
        group, topic, queue_id, start_offset, pop_time, _, _, text, _, _ = row[FIRST_FIELD:]
        queue = Queue(row[NODE], group, topic, queue_id)
        self._offsets[Point(queue, start_offset, pop_time)] = offsets = _numbers(text)
        self.named.setdefault((queue, pop_time), {}).update(dict.fromkeys(offsets))

    def _record_written(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, *_ = row[FIRST_FIELD:]
        queue = Queue(row[NODE], group, topic, queue_id)
        self.named.setdefault((queue, pop_time), {})[queue_offset] = None
        self._written_us[queue, queue_offset, pop_time] = row[TS_US]

    def _record_deleted(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, reason = row[FIRST_FIELD:]
        if reason == "acked":
            self._acked(row, Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time, MEMORY)

    def _popped(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, key, start_offset, pop_time, invisible_ms, revive_qid, _, _ = row[
            FIRST_FIELD:
        ]
        queue = Queue(row[NODE], group, topic, queue_id)
        point = Point(queue, start_offset, pop_time)
        handed = Handed(point, queue_offset, key, pop_time + invisible_ms, revive_qid, row[TS_US])
        self.handed.setdefault((queue, queue_offset), []).append(handed)
        self.groups.setdefault((row[NODE], group), {})[topic] = None

    def _ack_received(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, _, pop_time, *_ = row[FIRST_FIELD:]
        handed = self.find(Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time)
        if handed is not None:
            handed.said_done = True

    def _ack_buffered(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, _, pop_time, _ = row[FIRST_FIELD:]
        self._acked(row, Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time, MEMORY)

    def _ack_stored(self, row: Row) -> None:
        group, topic, queue_id, offsets, _, pop_time, _ = row[FIRST_FIELD:]
        for queue_offset in map(int, offsets.split(",")):
            self._acked(row, Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time, STORE)

    def _order_acked(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, _ = row[FIRST_FIELD:]
        self._acked(row, Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time, ORDER)

    def _acked(self, row: Row, queue: Queue, queue_offset: int, pop_time: int, how: str) -> None:
        handed = self.find(queue, queue_offset, pop_time)
        if handed is None:
            return
        node = self._lab.world.nodes[row[NODE]]
        if handed.acked_us >= 0 or (self._is_live() and node.now_ms() < handed.until_ms):
            if handed.acked_us < 0:
                handed.acked_us = row[TS_US]
            handed.acked_by = how

    def _changed(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, new_pop_time, invisible_ms, revive_qid, _, _ = row[FIRST_FIELD:]
        queue = Queue(row[NODE], group, topic, queue_id)
        handed = self.find(queue, queue_offset, pop_time)
        if handed is None:
            return
        if handed.in_order:
            handed.until_ms = pop_time + invisible_ms
            return
        handed.changed = True
        point = Point(queue, queue_offset, new_pop_time)
        until_ms = new_pop_time + invisible_ms
        again = Handed(point, queue_offset, handed.unique_key, until_ms, revive_qid, row[TS_US])
        self.handed[queue, queue_offset].append(again)
        self._offsets[point] = [queue_offset]
        self.named.setdefault((queue, new_pop_time), {})[queue_offset] = None

    def _put_again(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, invisible_ms, *_ = row[FIRST_FIELD:]
        queue = Queue(row[NODE], group, topic, queue_id)
        handed = self.find(queue, queue_offset, pop_time)
        if handed is not None:
            handed.until_ms = pop_time + invisible_ms

    def _check_point_read(self, row: Row) -> None:
        group, topic, queue_id, start_offset, pop_time, _, _, text, _, _ = row[FIRST_FIELD:]
        queue = Queue(row[NODE], group, topic, queue_id)
        read = self.read.setdefault((queue, pop_time), {})
        offsets = _numbers(text)
        # One that was put again for its first message has the same name.
        self._offsets.setdefault(Point(queue, start_offset, pop_time), offsets)
        for offset in offsets:
            read[offset] = None
            handed = self.find(queue, offset, pop_time)
            if handed is not None:
                # A check point that comes twice begins anew: what was read before it does not count.
                handed.ack_read = False

    def _ack_read(self, row: Row) -> None:
        group, topic, queue_id, start_offset, pop_time, bits, revive_qid, revive_offset = row[FIRST_FIELD:]
        point = Point(Queue(row[NODE], group, topic, queue_id), start_offset, pop_time)
        self.acks_read[row[NODE], revive_qid, revive_offset] = point
        offsets = self._offsets.get(point, [])
        if not bits:
            self.acks_alone[point] = None
        for bit in _numbers(bits):
            handed = self.find(point.queue, offsets[bit], pop_time) if bit < len(offsets) else None
            if handed is not None:
                handed.ack_read = True

    def _scan_begun(self, row: Row) -> None:
        revive_qid, from_offset = row[FIRST_FIELD:]
        self.reads_from[row[NODE], revive_qid] = from_offset
        read = [p for p in self.behind_revivers if p[::2] == (row[NODE], revive_qid) and p.queue_offset >= from_offset]
        for place in read:
            del self.behind_revivers[place]

    def _stored(self, row: Row) -> None:
        topic, queue_id, queue_offset, *_ = row[FIRST_FIELD:]
        if topic.startswith(REVIVE_TOPIC_PREFIX) and queue_offset < self.reads_from.get((row[NODE], queue_id), 0):
            self.behind_revivers[Place(row[NODE], topic, queue_id, queue_offset)] = None

    def _revived(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, _, pop_time, _, retry_topic, _, _ = row[FIRST_FIELD:]
        self.groups.setdefault((row[NODE], group), {})[retry_topic] = None
        self._dealt_with[Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time] = None

    def _not_revived(self, row: Row) -> None:
        group, topic, queue_id, queue_offset, pop_time, _ = row[FIRST_FIELD:]
        self._dealt_with[Queue(row[NODE], group, topic, queue_id), queue_offset, pop_time] = None

    def _settled(self, row: Row) -> None:
        group, topic, queue_id, start_offset, pop_time, *_ = row[FIRST_FIELD:]
        self.settled[Point(Queue(row[NODE], group, topic, queue_id), start_offset, pop_time)] = None

    def _node_started(self, row: Row) -> None:
        """A new process reads everything again that its reviver has not got past."""
        node = row[FIRST_FIELD]
        self.acks_read = {at: point for at, point in self.acks_read.items() if at[0] != node}
        self.reads_from = {at: offset for at, offset in self.reads_from.items() if at[0] != node}


def _numbers(text: str) -> list[int]:
    """The numbers of a text that joins them by commas."""
    return list(map(int, text.split(","))) if text else []
