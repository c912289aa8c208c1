"""Owning and taking beside each other: where each order is for the group that owns queues, and for the group that pops.

The groups are those of the scenario `take-or-own`; `mqlab_widgets.scene.side_by_side` draws them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from mqlab.scenarios.membership import TOPIC
from mqlab.scenarios.take_or_own import OWNERS, TAKERS
from mqlab.trace.record import Record
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import FROZEN, Queue

INTERVAL_US = 500_000
"""So much of the world's time is one bar of what was packed."""
INTERVALS = 40
"""So many bars are kept."""
LATE_US = 300_000
"""An order that is pulled at once has long been begun with after so much."""
MOST_MARKS = 8
SUCCESS = "CONSUME_SUCCESS"


@dataclass(slots=True)
class Waiting:
    """An order that no listener of a group has: its place, since when, and whether it came back (for the owners, was
    pulled before and has a new owner; for the takers, was not acknowledged in time).
    """

    queue_id: int
    queue_offset: int
    since_us: int
    again: bool = False


@dataclass(slots=True)
class Member:
    """Who packs: the orders (unique keys) that its listener has, with where each waited before; those that it was given
    by a pop and with which its listener was not called yet; and how many it has packed.
    """

    packs: dict[str, Waiting] = field(default_factory=dict)
    given: dict[str, None] = field(default_factory=dict)
    packed: int = 0


class Mark(NamedTuple):
    """Something that was done to a group."""

    us: int
    words: str


@dataclass(slots=True)
class Side:
    """One of the two groups."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    packed: int = 0
    twice: int = 0
    """How many orders were begun that somebody had packed before."""
    bars: dict[int, int] = field(default_factory=dict)
    """Number of an interval of the world's time -> how many orders were packed in it."""
    marks: list[Mark] = field(default_factory=list)

    def mark(self, us: int, words: str) -> None:
        """Note what was done."""
        self.marks = [*self.marks, Mark(us, words)][-MOST_MARKS:]


class OwnAndTakeBoard(StageBoard):
    """Where each order is, for both groups."""

    title: ClassVar[str] = "Push and Pop side by side"

    def begin(self) -> None:
        """Nobody is there, and no order."""
        super().begin()
        self.sides: dict[str, Side] = {OWNERS: Side(), TAKERS: Side()}
        self.queue_ids: dict[int, None] = {}
        self.done: dict[str, dict[str, None]] = {OWNERS: {}, TAKERS: {}}
        """Group -> the newest orders that it has packed."""
        self.seen_us = 0
        """The time of the newest event that was taken."""

    # -- orders -----------------------------------------------------------------------------------------------------

    def on_message_stored(self, record: Record) -> None:
        super().on_message_stored(record)
        self.seen_us = record.ts_us
        if record.topic == TOPIC:
            self.queue_ids[record.queue_id] = None
            for side in self.sides.values():
                side.waiting[record.unique_key] = Waiting(record.queue_id, record.queue_offset, record.ts_us)

    def on_message_popped(self, record: Record) -> None:
        super().on_message_popped(record)
        member = self._member(record.group, self.name_of(record.remote))
        if member is not None:
            member.given[record.unique_key] = None

    def on_message_revived(self, record: Record) -> None:
        super().on_message_revived(record)
        side = self.sides.get(record.group)
        if side is None:
            return
        for member in side.members.values():
            member.given.pop(record.unique_key, None)
            member.packs.pop(record.unique_key, None)
        side.waiting[record.unique_key] = Waiting(record.queue_id, record.queue_offset, record.ts_us, again=True)

    def on_consume_started(self, record: Record) -> None:
        super().on_consume_started(record)
        member = self._member(record.group, record.node)
        if member is None:
            return
        side = self.sides[record.group]
        place = Waiting(record.queue_id, record.queue_offset, record.ts_us)
        member.packs[record.msg_id] = side.waiting.pop(record.msg_id, place)
        member.given.pop(record.msg_id, None)
        side.twice += record.msg_id in self.done[record.group]

    def on_consume_finished(self, record: Record) -> None:
        super().on_consume_finished(record)
        self.seen_us = record.ts_us
        member = self._member(record.group, record.node)
        if member is None or record.msg_id not in member.packs:
            return
        side, done = self.sides[record.group], self.done[record.group]
        place = member.packs.pop(record.msg_id)
        if record.status != SUCCESS:
            side.waiting[record.msg_id] = replace(place, again=True)
            return
        member.packed += 1
        side.packed += 1
        done[record.msg_id] = None
        if len(done) > 1_000:
            del done[next(iter(done))]
        interval = record.ts_us // INTERVAL_US
        side.bars[interval] = side.bars.get(interval, 0) + 1
        while min(side.bars) <= interval - INTERVALS:
            del side.bars[min(side.bars)]

    # -- members ----------------------------------------------------------------------------------------------------

    def _member(self, group: str, node: str) -> Member | None:
        side = self.sides.get(group)
        return None if side is None else side.members.setdefault(node, Member())

    def on_client_started(self, record: Record) -> None:
        super().on_client_started(record)
        member = self._member(record.group, record.node)
        if member is not None and any(side.packed for side in self.sides.values()):
            self.sides[record.group].mark(record.ts_us, f"{record.node} joins")

    def on_node_frozen(self, record: Record) -> None:
        super().on_node_frozen(record)
        for side in self.sides.values():
            if record.target in side.members:
                side.mark(record.ts_us, f"{record.target} hangs")

    def _forget_client(self, node: str) -> None:
        super()._forget_client(node)
        for side in self.sides.values():
            member = side.members.get(node)
            if member is not None:
                side.waiting |= {key: replace(place, again=True) for key, place in member.packs.items()}
                member.packs, member.given = {}, {}

    # -- summed up --------------------------------------------------------------------------------------------------

    def _queue(self, queue_id: int) -> Queue | None:
        """A queue of the orders, with its broker."""
        return next((queue for queue in self.strips if queue[1:] == (TOPIC, queue_id)), None)

    def owner_of(self, queue_id: int) -> str:
        """Who owns a queue for the group `owners`; "" if nobody does."""
        queue = self._queue(queue_id)
        owners = {} if queue is None else self.strips[queue].owners
        return next((name for name, group in owners.items() if group == OWNERS), "")

    def owned_by(self, member: str) -> list[int]:
        """The queues that a member owns."""
        return [queue_id for queue_id in sorted(self.queue_ids) if self.owner_of(queue_id) == member]

    def holder_of(self, group: str, key: str) -> str:
        """The member that has a waiting order in its memory and has not begun with it; "" if only the broker has it."""
        side = self.sides[group]
        if group == TAKERS:
            return next((name for name, member in side.members.items() if key in member.given), "")
        order = side.waiting[key]
        queue, owner = self._queue(order.queue_id), self.owner_of(order.queue_id)
        pulled = queue is not None and owner in self.consumers and self.consumers[owner].has(queue, order.queue_offset)
        return owner if pulled else ""

    def hidden(self, place: Waiting) -> tuple[int, int]:
        """From when until when an order is hidden from the other takers; (0, 0) if it is not."""
        queue = self._queue(place.queue_id)
        out = None if queue is None else self.strips[queue].popped.get(place.queue_offset)
        return (out.since_us, out.until_us) if out is not None and out.state == "out" else (0, 0)

    def longest_us(self, group: str, now_us: int) -> int:
        """For how long the order has waited that has waited the longest; 0 if none waits."""
        return max((now_us - order.since_us for order in self.sides[group].waiting.values()), default=0)

    def hidden_until(self, key: str) -> int:
        """Until when an order that was popped is hidden from the others; 0 if it is not."""
        for (_, topic, _), strip in self.strips.items():
            if topic == TOPIC or topic.startswith("%RETRY%"):
                for cell in strip.cells:
                    out = strip.popped.get(cell.offset) if cell.key == key else None
                    if out is not None and out.state == "out":
                        return out.until_us
        return 0

    def facts(self, group: str, now_us: int) -> str:
        """A group in numbers."""
        side = self.sides[group]
        waits = f"{len(side.waiting):,} wait" + ("s" if len(side.waiting) == 1 else "")
        longest = self.longest_us(group, now_us) / 1_000_000
        told = f"{side.packed:,} packed; {waits}" + (f", the longest for {longest:.1f} s" if side.waiting else "")
        return told + (f"; {side.twice:,} packed twice" if side.twice else "")

    def why(self, group: str) -> str:
        """What keeps a group from its work at this moment, or how it works."""
        return " ".join(self._owners() if group == OWNERS else self._takers())

    def _owners(self) -> Iterator[str]:
        side = self.sides[OWNERS]
        members = list(side.members)
        for name in members:
            queues = self.owned_by(name)
            if self.states.get(name) == FROZEN and queues:
                waits = sum(order.queue_id in queues for order in side.waiting.values())
                yield f"{name} hangs and keeps {_queues(queues)}: {_orders(waits)} for it, and for nobody else."
        free = [queue_id for queue_id in sorted(self.queue_ids) if not self.owner_of(queue_id)]
        if free and members:
            waits = sum(order.queue_id in free for order in side.waiting.values())
            yield f"{_queues(free)} {_belong(free)} to nobody now: {_orders(waits)}."
        for name in members:
            queues = self.owned_by(name)
            late = [order for order in side.waiting.values() if order.queue_id in queues and self._is_late(order)]
            if late and self.states.get(name) != FROZEN:
                yield f"{name} owns {_queues(queues)} and has not come to them yet: {_orders(len(late))}."
        idle = [name for name in members if not self.owned_by(name)]
        if idle and not free and self.queue_ids:
            yield f"{', '.join(idle)} {'own' if len(idle) > 1 else 'owns'} no queue and has nothing to do."

    def _is_late(self, order: Waiting) -> bool:
        """Whether an order waits for longer than it takes to be pulled."""
        return self.seen_us - order.since_us > LATE_US

    def _takers(self) -> Iterator[str]:
        members = self.sides[TAKERS].members
        hanging = [name for name in members if self.states.get(name) == FROZEN]
        for name in hanging:
            has = len(members[name].given) + len(members[name].packs)
            told = "1 order hidden until its" if has == 1 else f"{has:,} orders hidden until their"
            hides = f"{told} time is over" if has else "nothing"
            yield f"{name} hangs, and has {hides}. The others go on with all queues."
        if members and not hanging:
            yield "Nobody owns anything: whoever is free takes the next order, from any queue."

    def text(self) -> list[str]:
        """Two or three lines for each group."""
        lines = []
        for group, words in ((OWNERS, "push"), (TAKERS, "Pop")):
            lines.append(f"{words}: {self.facts(group, self.seen_us)}")
            if self.why(group):
                lines.append(f"  {self.why(group)}")
            members = (f"{name}: {member.packed:,}" for name, member in self.sides[group].members.items())
            lines.append(f"  packed by {', '.join(members) or 'nobody'}")
        return lines


def _queues(numbers: list[int]) -> str:
    shown = ", ".join(f"q{number}" for number in numbers[:6])
    return shown + (f" and {len(numbers) - 6} more" if len(numbers) > 6 else "")


def _belong(numbers: list[int]) -> str:
    return "belong" if len(numbers) > 1 else "belongs"


def _orders(count: int) -> str:
    return "1 order waits" if count == 1 else f"{count:,} orders wait"
