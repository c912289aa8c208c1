"""What the boards of Pop note: which messages are handed out until when, their check points, what revivers have read.

`PopBoard` folds the events of Pop into three tables; the boards draw them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mqlab.protocol.pop_check_point import POP_ORDER_REVIVE_QUEUE
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board
from mqlab_widgets.labels import label_of

MOST_DELIVERIES, MOST_POINTS, MOST_ENTRIES = 240, 120, 48
"""Of so many the newest are kept; what is still open stays as long as there is room."""
HIDDEN, ACKED, CHANGED, REVIVED, DROPPED, FORGOTTEN = "hidden", "acked", "changed", "revived", "dropped", "forgotten"
"""What became of a delivery: others cannot see the message; it is done; its consumer has asked for another time; it was
put into the retry topic; the reviver has passed over it; the broker has lost its note of it.
"""
OFFSETS = "consumerOffset.json"
MEMORY, STORE = "memory", "store"
"""Where an acknowledgement is noted."""


class PointKey(NamedTuple):
    """What tells one batch from all others; `pop_time` is ms since 1970."""

    broker: str
    group: str
    topic: str
    queue_id: int
    start_offset: int
    pop_time: int


class DeliveryKey(NamedTuple):
    """One delivery of one message."""

    broker: str
    group: str
    topic: str
    queue_id: int
    queue_offset: int
    pop_time: int


@dataclass(slots=True)
class Delivery:
    """A message that was handed out: with which event, to whom, from when until when nobody else sees it, and what has
    become of it.
    """

    event: tuple[int, int]
    unique_key: str
    start_offset: int
    consumer: str
    at_us: int
    until_us: int
    revive_qid: int
    reconsume_times: int
    state: str = HIDDEN
    end_us: int = 0
    """When it ceased to be hidden; 0: it is."""
    reason: str = ""

    @property
    def in_order(self) -> bool:
        """Whether it was popped in order, which needs no check point."""
        return self.revive_qid == POP_ORDER_REVIVE_QUEUE


@dataclass(slots=True)
class Point:
    """A check point: the messages of its batch, which of them are acknowledged and where that is noted, and where the
    check point itself is: in memory, in the store, read by the reviver at `revive_offset`, or done with, and why.
    """

    offsets: list[int]
    invisible_ms: int
    revive_qid: int
    at_us: int
    in_memory: bool
    stored: bool
    acked: dict[int, str] = field(default_factory=dict)
    revived: list[int] = field(default_factory=list)
    revive_offset: int = -1
    waits_for: int = 0
    """The end time that the reviver must come to before it decides, ms since 1970; 0: it has not put it off."""
    done: str = ""
    done_us: int = 0

    @property
    def is_open(self) -> bool:
        """Whether something may still become of it."""
        return not self.done


class Entry(NamedTuple):
    """A message of a revive queue that was read: a check point with the unique keys of its messages and what became of
    it ("": nothing yet), or an acknowledgement with those of its messages that are in a check point that was read.
    """

    is_point: bool
    point: PointKey
    unique_keys: tuple[str, ...]
    done: str = ""


@dataclass(slots=True)
class Reviver:
    """The reader of one revive queue: how far it is, what it has read, and why it stopped or waits.

    `end_time` is the newest time of delivery that it has seen in its round, ms since 1970.
    """

    reading: bool = False
    from_offset: int = 0
    to_offset: int = 0
    end_time: int = 0
    committed: int = -1
    reason: str = ""
    since_us: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)
    on_the_way: int = 0
    """Messages of this queue that are written and were not read yet: most wait on the timer wheel."""


class PopBoard(Board):
    """A board that knows what is handed out by Pop; who inherits from it draws."""

    def begin(self) -> None:
        """Nothing is handed out."""
        self.deliveries: dict[DeliveryKey, Delivery] = {}
        self.points: dict[PointKey, Point] = {}
        self.revivers: dict[tuple[str, int], Reviver] = {}
        self.committed: dict[tuple[str, str, str, int], int] = {}
        """(broker, group, topic, queue id) -> where the group goes on, as the broker knows; -1: it knows nothing."""
        self.persisted: dict[tuple[str, str, str, int], int] = {}
        """The same as the file says, which is written every 5 s."""

    # -- names and times --------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """The world's time: at the newest event that the board has seen, or now when there is none behind it."""
        if self.here[0] < 0:
            return 0
        history = self.lab.history
        place = history.index_of(self.here)
        return int(self.lab.now_ms * 1_000) if place == len(history) - 1 else int(history.row(place)[2])

    def us_of(self, wall_ms: int) -> int:
        """A time of the wall clock as one of the world."""
        return (wall_ms - self.lab.world.epoch_ms) * 1_000

    def label(self, unique_key: str) -> str:
        """What is written on a message."""
        return label_of(unique_key, self.lab)

    def unique_keys(self, key: PointKey) -> tuple[str, ...]:
        """The unique keys of the messages of a batch, in their order; "" for one that is not known."""
        places = (DeliveryKey(*key[:4], offset, key.pop_time) for offset in self.points[key].offsets)
        return tuple(self.deliveries[one].unique_key if one in self.deliveries else "" for one in places)

    def labels(self, unique_keys: tuple[str, ...]) -> list[str]:
        """What is written on messages; a question mark where one is not known."""
        return [self.label(key) or "?" for key in unique_keys]

    # -- messages are handed out ------------------------------------------------------------------------------------

    def on_message_popped(self, record: Record) -> None:
        key = _delivery(record)
        self.committed.setdefault(key[:4], -1)
        self._add(
            key,
            Delivery(
                *(record.at, record.unique_key, record.start_offset, self.name_of(record.remote)),
                *(record.ts_us, self.us_of(record.pop_time + record.invisible_ms)),
                *(record.revive_qid, record.reconsume_times),
            ),
        )

    def _add(self, key: DeliveryKey, delivery: Delivery) -> None:
        self.deliveries[key] = delivery
        if len(self.deliveries) > MOST_DELIVERIES:
            settled = (old for old, one in self.deliveries.items() if one.state != HIDDEN)
            del self.deliveries[next(settled, next(iter(self.deliveries)))]

    def on_check_point_made(self, record: Record) -> None:
        if record.held_in == "offset only":
            return
        in_memory = record.held_in == "buffer"
        offsets = [int(offset) for offset in record.offsets.split(",")]
        point = Point(offsets, record.invisible_ms, record.revive_qid, record.ts_us, in_memory, not in_memory)
        self._add_point(_key(record), point)

    def _add_point(self, key: PointKey, point: Point) -> None:
        self.points[key] = point
        if len(self.points) > MOST_POINTS:
            done = (old for old, one in self.points.items() if not one.is_open)
            del self.points[next(done, next(iter(self.points)))]

    def on_check_point_stored(self, record: Record) -> None:
        point = self.points.get(_key(record))
        if point is not None:
            point.stored = True
        self._reviver(record.node, record.revive_qid).on_the_way += 1

    def on_check_point_merged(self, record: Record) -> None:
        point = self.points.get(_key(record))
        if point is not None:
            point.in_memory = False
            if not record.in_store:
                point.done, point.done_us = "all acked in memory", record.ts_us

    def on_offset_committed(self, record: Record) -> None:
        queue = (record.node, record.group, record.topic, record.queue_id)
        if queue in self.committed:
            self.committed[queue] = record.queue_offset

    def on_config_persisted(self, record: Record) -> None:
        if record.file.endswith(OFFSETS):
            self.persisted |= {queue: offset for queue, offset in self.committed.items() if queue[0] == record.node}

    # -- and come back ----------------------------------------------------------------------------------------------

    def _settle(self, record: Record, offset: int, state: str, reason: str = "") -> None:
        key = DeliveryKey(record.node, record.group, record.topic, record.queue_id, offset, record.pop_time)
        delivery = self.deliveries.get(key)
        if delivery is not None and delivery.state == HIDDEN:
            delivery.state, delivery.end_us, delivery.reason = state, record.ts_us, reason

    def on_ack_buffered(self, record: Record) -> None:
        self._settle(record, record.queue_offset, ACKED)
        self._acked(record, [record.queue_offset], MEMORY)

    def on_ack_stored(self, record: Record) -> None:
        offsets = [int(offset) for offset in record.offsets.split(",")]
        for offset in offsets:
            self._settle(record, offset, ACKED)
        self._acked(record, offsets, STORE)
        self._reviver(record.node, record.revive_qid).on_the_way += 1

    def _acked(self, record: Record, offsets: list[int], where: str) -> None:
        point = self.points.get(_key(record))
        for offset in offsets if point is not None else ():
            point.acked[offset] = where  # type: ignore[union-attr]  # there are no offsets without one

    def on_order_acked(self, record: Record) -> None:
        self._settle(record, record.queue_offset, ACKED)

    def on_pop_record_deleted(self, record: Record) -> None:
        """The key-value engine has no check points: an acknowledged message has no record any more."""
        if record.reason == "acked":
            self._settle(record, record.queue_offset, ACKED)

    def on_invisible_time_changed(self, record: Record) -> None:
        """A new delivery of the same message follows the old one."""
        key = _delivery(record)
        old = self.deliveries.get(key)
        if old is None:
            return
        # Its old check point was acknowledged for it, which is no acknowledgement of the message.
        old.state, old.end_us = CHANGED, record.ts_us
        until_us = self.us_of(record.new_pop_time + record.invisible_ms)
        new = Delivery(
            *(record.at, old.unique_key, record.queue_offset, old.consumer, record.ts_us, until_us),
            *(record.revive_qid, old.reconsume_times),
        )
        self._add(key._replace(pop_time=record.new_pop_time), new)

    # -- the reviver ------------------------------------------------------------------------------------------------

    def _reviver(self, broker: str, revive_qid: int) -> Reviver:
        return self.revivers.setdefault((broker, revive_qid), Reviver())

    def on_revive_scan_begun(self, record: Record) -> None:
        reviver = self._reviver(record.node, record.revive_qid)
        reviver.reading, reviver.reason, reviver.since_us = True, "", record.ts_us
        reviver.from_offset = reviver.to_offset = record.from_offset
        reviver.end_time = 0

    def on_revive_check_point_read(self, record: Record) -> None:
        key = _key(record)
        point = self.points.get(key)
        if point is None:
            # It was made before the history that is known, or by another broker.
            offsets = [int(offset) for offset in record.offsets.split(",") if offset]
            point = Point(offsets, record.invisible_ms, record.revive_qid, record.ts_us, False, True)
            self._add_point(key, point)
        point.stored, point.revive_offset = True, record.revive_offset
        self._read(record, Entry(True, key, self.unique_keys(key), point.done))

    def on_revive_ack_read(self, record: Record) -> None:
        key = _key(record)
        point = self.points.get(key)
        marked: list[str] = []
        if point is not None and record.bits:
            keys = self.unique_keys(key)
            for bit in map(int, record.bits.split(",")):
                if bit < len(keys):
                    point.acked[point.offsets[bit]] = STORE
                    marked.append(keys[bit])
        self._read(record, Entry(False, key, tuple(marked)))

    def _read(self, record: Record, entry: Entry) -> None:
        reviver = self._reviver(record.node, record.revive_qid)
        known = reviver.entries.get(record.revive_offset)
        if known is None:
            reviver.on_the_way = max(0, reviver.on_the_way - 1)
        if known is None or entry.unique_keys:
            # An ack that is read again when its check point is settled marks nothing any more.
            reviver.entries[record.revive_offset] = entry
        reviver.to_offset = record.revive_offset + 1
        if len(reviver.entries) > MOST_ENTRIES:
            del reviver.entries[min(reviver.entries)]

    def on_revive_scan_ended(self, record: Record) -> None:
        reviver = self._reviver(record.node, record.revive_qid)
        reviver.reading, reviver.reason, reviver.since_us = False, record.reason, record.ts_us
        reviver.to_offset, reviver.end_time = record.to_offset, record.end_time

    def on_check_point_waits(self, record: Record) -> None:
        point = self.points.get(_key(record))
        if point is not None:
            point.waits_for = record.revive_time
        self._reviver(record.node, record.revive_qid).end_time = record.end_time

    def on_check_point_settled(self, record: Record) -> None:
        point = self.points.get(_key(record))
        if point is not None:
            point.done, point.done_us = record.reason, record.ts_us
        entries = self._reviver(record.node, record.revive_qid).entries
        if record.revive_offset in entries:
            entries[record.revive_offset] = entries[record.revive_offset]._replace(done=record.reason)

    def on_message_revived(self, record: Record) -> None:
        for point in self._points_of(record):
            point.revived.append(record.queue_offset)
        self._settle(record, record.queue_offset, REVIVED)

    def on_message_not_revived(self, record: Record) -> None:
        self._settle(record, record.queue_offset, DROPPED, record.reason)

    def _points_of(self, record: Record) -> Iterator[Point]:
        delivery = (record.node, record.group, record.topic, record.queue_id)
        for key, point in self.points.items():
            if key[:4] == delivery and key.pop_time == record.pop_time and record.queue_offset in point.offsets:
                yield point

    def on_revive_offset_committed(self, record: Record) -> None:
        reviver = self._reviver(record.node, record.revive_qid)
        reviver.committed = record.revive_offset
        keep = MOST_ENTRIES // 3
        behind = [offset for offset in sorted(reviver.entries) if offset <= record.revive_offset]
        for offset in behind[:-keep]:
            del reviver.entries[offset]

    # -- a crash ----------------------------------------------------------------------------------------------------

    def on_process_ended(self, record: Record) -> None:
        """What a broker had in memory alone is gone: check points, and acks of those that are stored."""
        broker = record.target
        for key, point in self.points.items():
            if key.broker != broker or not (point.is_open or self._is_unknown_on_disk(key, point)):
                continue
            lost = [offset for offset, where in point.acked.items() if where == MEMORY]
            for offset in lost:
                del point.acked[offset]
            if not point.stored:
                point.done, point.done_us = "lost in the crash", record.ts_us
            point.in_memory = False
            self._undo(key, point, lost, record.ts_us)
        for queue in self.committed:
            if queue[0] == broker:
                self.committed[queue] = self.persisted.get(queue, -1)
        for (of, _), reviver in self.revivers.items():
            if of == broker:
                reviver.reading, reviver.reason = False, "the broker is down"

    def _is_unknown_on_disk(self, key: PointKey, point: Point) -> bool:
        """Whether all was acknowledged in memory, and the offset on the disk is not behind it yet."""
        noted = point.stored or point.done.startswith("lost")
        return not noted and point.offsets[-1] >= self.persisted.get(key[:4], -1)

    def _undo(self, key: PointKey, point: Point, lost: list[int], us: int) -> None:
        """Deliveries whose note is lost are forgotten; those whose ack alone is lost are hidden again."""
        for offset in point.offsets:
            delivery = self.deliveries.get(DeliveryKey(*key[:4], offset, key.pop_time))
            if delivery is None:
                continue
            if not point.is_open and delivery.state in (HIDDEN, ACKED):
                delivery.state, delivery.end_us = FORGOTTEN, us
            elif offset in lost and delivery.state == ACKED:
                delivery.state, delivery.end_us = HIDDEN, 0


def _delivery(record: Record) -> DeliveryKey:
    return DeliveryKey(
        record.node, record.group, record.topic, record.queue_id, record.queue_offset, record.pop_time
    )


def _key(record: Record) -> PointKey:
    return PointKey(
        record.node, record.group, record.topic, record.queue_id, record.start_offset, record.pop_time
    )
