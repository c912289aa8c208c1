"""The numbers of a world against its time: throughput, backlog, what is in flight, lag and hold times.

They are folded from the events once, into intervals of equal length. When there are 300 of them, two and two become
one, so that a world of days costs no more than one of seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import is_retry_topic, is_system_topic
from mqlab.trace.record import KIND, TS_US, Record
from mqlab.trace.state import reader_of
from mqlab.views.journey import CONSUMED
from mqlab_widgets.boards.flow_control import FlowControlBoard

if TYPE_CHECKING:
    from mqlab import Lab

MOST_INTERVALS = 300
FIRST_WIDTH_US = 10_000
MOST_TIMES = 4_096
"""So many places of a queue are remembered with their times; then every second one goes."""

Queue = tuple[str, str, int]
"""(broker, topic, queue id)"""


class Interval(NamedTuple):
    """What happened in one interval, and how things stood at its end."""

    stored: int
    consumed: int
    held_ms: dict[str, float]
    """Why a pull was woken -> the longest that one was held, in ms."""
    backlog: dict[str, int]
    """Group -> messages that are stored and not consumed."""
    unnoted: dict[str, int]
    """Group -> messages that are consumed and not committed: who takes their queue over gets them again."""
    in_flight: dict[str, int]
    """Group -> messages that its consumers have pulled and not consumed."""
    lag_ms: dict[str, float]
    """Group -> for how long its oldest message that is not consumed has been waiting."""

    def joined(self, later: Interval) -> Interval:
        """This one and the one after it as one."""
        reasons = {**self.held_ms, **later.held_ms}
        held_ms = {why: max(self.held_ms.get(why, 0.0), later.held_ms.get(why, 0.0)) for why in reasons}
        return later._replace(
            stored=self.stored + later.stored, consumed=self.consumed + later.consumed, held_ms=held_ms
        )


@dataclass(slots=True)
class _Log:
    """How far a queue reaches, and when it came to be so long."""

    end: int = 0
    offsets: list[int] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)

    def add(self, offset: int, at_us: int) -> None:
        self.end = offset + 1
        while self.offsets and self.offsets[-1] >= offset:
            self.offsets.pop()
            self.times_us.pop()
        self.offsets.append(offset)
        self.times_us.append(at_us)
        if len(self.offsets) > MOST_TIMES:
            del self.offsets[1::2], self.times_us[1::2]

    def since_us(self, offset: int) -> int:
        """When the message at an offset came; nearly so in a queue of many."""
        return self.times_us[max(0, bisect_right(self.offsets, offset) - 1)]


@dataclass(slots=True)
class _Progress:
    """How far a group is in its queues: as its consumers know (`read`), and as the brokers do (`committed`)."""

    read: dict[Queue, dict[str, int]] = field(default_factory=dict)
    """Queue -> how far each consumer is that has it; normally that is one."""
    committed: dict[Queue, int] = field(default_factory=dict)
    backlog: int = 0
    unnoted: int = 0
    waiting: dict[Queue, tuple[int, int, int]] = field(default_factory=dict)
    """Queue -> (messages not consumed, consumed and not committed, first offset not consumed) as they are counted."""
    oldest: list[tuple[int, Queue, int]] = field(default_factory=list)
    """A heap of (since when, queue, first offset not consumed); what is no longer so goes when it comes to the top."""

    def consumed(self, queue: Queue) -> int:
        """The first offset that is not consumed: of its slowest consumer, or as the broker knows when nobody has it."""
        return min(self.read.get(queue, {}).values(), default=self.committed.get(queue, 0))

    def moved(self, queue: Queue, log: _Log | None) -> None:
        """Count a queue anew, which has grown or of which more is consumed or committed."""
        at = self.consumed(queue)
        waiting, unnoted = max(0, (log.end if log else 0) - at), max(0, at - self.committed.get(queue, 0))
        waited, not_noted, since = self.waiting.get(queue, (0, 0, -1))
        self.backlog += waiting - waited
        self.unnoted += unnoted - not_noted
        self.waiting[queue] = (waiting, unnoted, at)
        if waiting and log and (not waited or at != since):
            heappush(self.oldest, (log.since_us(at), queue, at))

    def lag_us(self, now_us: int) -> int:
        """For how long the oldest message that is not consumed has been waiting."""
        while self.oldest:
            since_us, queue, at = self.oldest[0]
            waiting, _, first = self.waiting[queue]
            if waiting and first == at:
                return now_us - since_us
            heappop(self.oldest)
        return 0


class WorldNumbers:
    """Folds a lab's history. `follow()` takes in what is new and closes all intervals that lie behind the world's time.

    Consumed is what lies before the offset that a queue's consumer knows; when it ends, what it had not committed comes
    again. A group counts from its first queue or commit on; one that broadcasts has no backlog here.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._place = 0
        self.width_us = FIRST_WIDTH_US
        self.intervals: list[Interval] = []
        self._stored = self._consumed = 0
        self._held_ms: dict[str, float] = {}
        self._logs: dict[Queue, _Log] = {}
        self._groups: dict[str, _Progress] = {}
        self._readers: dict[Queue, list[_Progress]] = {}
        self.groups: list[str] = []
        """The groups that share the messages, in the order in which they began."""
        self._names: dict[str, str] = {}
        """The name of a broker in routes -> its process."""
        self._in_hand = FlowControlBoard(lab)
        self._takers: dict[str, list[Callable[[Record], None]]] = {
            "MessageStored": [self._on_stored],
            "MessageDispatched": [self._on_dispatched],
            "BrokerStarted": [self._on_broker_started],
            "OffsetCommitted": [self._on_committed],
            "OffsetUpdated": [self._on_updated],
            "PullWoken": [self._on_woken],
            "QueueAllocated": [self._on_allocated],
            "QueueDropped": [self._on_dropped],
            "ClientStopped": [self._on_stopped],
            "NodeCrashed": [self._on_crashed],
            "PowerLost": [self._on_crashed],
            "ConsumeFinished": [self._on_consumed],
            "MessagesPolled": [self._on_polled],
        }
        for kind, method in self._in_hand.handlers().items():
            self._takers.setdefault(kind, []).append(method)

    def end_s(self, number: int) -> float:
        """When an interval ended, in seconds of the world."""
        return (number + 1) * self.width_us / 1_000_000

    def per_second(self, count: int) -> float:
        """What a count of one interval is in a second."""
        return count * 1_000_000 / self.width_us

    def follow(self, until: int | None = None) -> None:
        """Take in all events that are new, or those of them that stand before place `until`."""
        history = self._lab.history
        length = len(history) if until is None else until
        for row in history.rows(self._place, length):
            if row[TS_US] >= (len(self.intervals) + 1) * self.width_us:
                self._close_until(row[TS_US])
            takers = self._takers.get(row[KIND])
            if takers is not None:
                record = reader_of(row[KIND])(row)
                for take in takers:
                    take(record)
        self._place = max(self._place, length)
        if self._place == len(history):
            self._close_until(self._lab.world.now_us)

    # -- events -----------------------------------------------------------------------------------------------------

    def _on_stored(self, record: Record) -> None:
        if not is_system_topic(record.topic) and not is_retry_topic(record.topic):
            self._stored += 1

    def _on_dispatched(self, record: Record) -> None:
        topic, queue_id, offset = record.row[8:11]
        queue = (record.node, topic, queue_id)
        log = self._logs.setdefault(queue, _Log())
        log.add(offset, record.ts_us)
        for progress in self._readers.get(queue, ()):
            progress.moved(queue, log)

    def _on_broker_started(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            self._names[record.broker_name] = record.node

    def _on_allocated(self, record: Record) -> None:
        queue = self._queue_of(record)
        progress = self._progress(record.group, queue)
        if not self._broadcasts(record.node, record.group):
            self._begins(record.group)
        progress.read.setdefault(queue, {})[record.node] = record.queue_offset
        progress.committed.setdefault(queue, record.queue_offset)
        progress.moved(queue, self._logs.get(queue))

    def _on_updated(self, record: Record) -> None:
        queue = self._queue_of(record)
        progress = self._groups.get(record.group)
        if progress is not None and record.node in progress.read.get(queue, ()):
            progress.read[queue][record.node] = record.queue_offset
            progress.moved(queue, self._logs.get(queue))

    def _on_dropped(self, record: Record) -> None:
        self._gives_up(record.node, record.group, self._queue_of(record))

    def _on_stopped(self, record: Record) -> None:
        self._ends(record.node, record.group)

    def _on_crashed(self, record: Record) -> None:
        self._ends(record.target)

    def _ends(self, node: str, group: str = "") -> None:
        for name, progress in self._groups.items():
            for queue in progress.read if group in ("", name) else ():
                self._gives_up(node, name, queue)

    def _gives_up(self, node: str, group: str, queue: Queue) -> None:
        """A consumer has a queue no more: what it knew is gone."""
        progress = self._groups.get(group)
        if progress is not None and progress.read.get(queue, {}).pop(node, None) is not None:
            progress.moved(queue, self._logs.get(queue))

    def _on_committed(self, record: Record) -> None:
        group, topic, queue_id, offset = record.row[8:12]
        queue = (record.node, topic, queue_id)
        self._begins(group)
        progress = self._progress(group, queue)
        progress.committed[queue] = offset
        progress.moved(queue, self._logs.get(queue))

    def _begins(self, group: str) -> None:
        if group not in self.groups:
            self.groups.append(group)

    def _broadcasts(self, node: str, group: str) -> bool:
        """Whether the application has set up a machine's consumer so that each member gets all messages."""
        clients = getattr(self._lab.processes.get(node), "clients", ())
        models = [getattr(client, "message_model", None) for client, own, _ in clients if own == group]
        return MessageModel.BROADCASTING in models

    def _queue_of(self, record: Record) -> Queue:
        """The queue that a client's event is about."""
        return self._names.get(record.broker_name, record.broker_name), record.topic, record.queue_id

    def _progress(self, group: str, queue: Queue) -> _Progress:
        """A group's progress, which is told from now on when this queue grows."""
        progress = self._groups.setdefault(group, _Progress())
        if queue not in progress.waiting:
            self._readers.setdefault(queue, []).append(progress)
        return progress

    def _on_woken(self, record: Record) -> None:
        self._held_ms[record.reason] = max(self._held_ms.get(record.reason, 0.0), record.held_us / 1_000)

    def _on_consumed(self, record: Record) -> None:
        if record.status in CONSUMED:
            self._consumed += self._in_hand.messages_of_call(record)

    def _on_polled(self, record: Record) -> None:
        self._consumed += record.messages

    # -- intervals --------------------------------------------------------------------------------------------------

    def _close_until(self, now_us: int) -> None:
        while (len(self.intervals) + 1) * self.width_us <= now_us:
            self._close()

    def _close(self) -> None:
        end_us = (len(self.intervals) + 1) * self.width_us
        shown = {group: self._groups[group] for group in self.groups}
        in_flight: dict[str, int] = {}
        for (_, group, *_), count in self._in_hand.counts.items():
            in_flight[group] = in_flight.get(group, 0) + count
        interval = Interval(
            self._stored,
            self._consumed,
            self._held_ms,
            {group: progress.backlog for group, progress in shown.items()},
            {group: progress.unnoted for group, progress in shown.items()},
            in_flight,
            {group: progress.lag_us(end_us) / 1_000 for group, progress in shown.items()},
        )
        self._stored = self._consumed = 0
        self._held_ms = {}
        self.intervals.append(interval)
        if len(self.intervals) == MOST_INTERVALS:
            pairs = zip(self.intervals[::2], self.intervals[1::2], strict=True)
            self.intervals = [first.joined(second) for first, second in pairs]
            self.width_us *= 2
