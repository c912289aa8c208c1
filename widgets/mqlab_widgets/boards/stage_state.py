"""What the stage notes of each thing on it: frames, queues, commit logs, producers, consumers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC

RUNNING, FROZEN, DOWN = "running", "frozen", "down"
DELAYED = RMQ_SYS_SCHEDULE_TOPIC
HIDDEN, ASKED, MOVED, COMMIT, ROLLBACK, ASIDE = "hidden", "asked", "moved", "commit", "rollback", "aside"
"""What a half message is: hidden, asked about, stored again at another place, let go, forgotten, put aside."""
ENDS = {"COMMIT_MESSAGE": COMMIT, "ROLLBACK_MESSAGE": ROLLBACK}
"""What a producer says of a transaction -> what the half message is then, and the kind of the frame that says so."""
MOST_CELLS = 24
MOST_BLOCKS = 40
MOST_RANGES = 64
MOST_TOLD = 4
"""The keys of so many messages in a frame are known."""
BACK, ENDED = "back", "ended"
"""What may have become of a message that a cousin of Pop has handed out: there for whoever asks, or done with."""
COPY, REPORT = "copy", "report"
"""Kinds of flights between a master and its slave."""

Queue = tuple[str, str, int]
"""(machine of the broker, topic, queue id)"""


OUTSIDE = "programs outside"
"""Who is at the other end of connections that come from no machine of the world: one card stands for all of them."""


class Flight(NamedTuple):
    """A frame on its way. `kind` is "send", "pull", "back", "ack", "answer", "refusal", "copy" (a piece of the commit
    log), "report" (a slave says what it has) or "other", and of transactions "commit", "rollback" or "question"; `keys`
    are the unique keys of the first few of the `messages` in it, or of the one that it is about; `queue` is the one
    that a pull is about.
    """

    source: str
    target: str
    name: str
    kind: str
    response: bool
    keys: tuple[str, ...]
    messages: int
    queue: Queue | None
    since_us: int


class Held(NamedTuple):
    """A pull that a broker holds."""

    topic: str
    queue_id: int
    since_us: int
    hold_ms: int
    consumer: str


class Cell(NamedTuple):
    """An entry of a queue: the message's offset in it, its offset in the commit log, its unique key."""

    offset: int
    log_offset: int
    key: str


class Out(NamedTuple):
    """A message that was popped: from when until when nobody else sees it, and whether it is "out" still, "acked", or
    was "revived" since nobody acknowledged it; of Pop's cousins also "back" or "ended".
    """

    since_us: int
    until_us: int
    state: str = "out"


@dataclass(slots=True)
class Strip:
    """A queue: where it ends, its newest entries, which consumers pull from it for which group, how far each of them is
    as it knows itself (`read`), how far each group is as the broker knows (`committed`), up to where each group has
    popped it (`handed`), and which of the entries were popped by the group that did so last. Of the queue of half
    messages: what became of each (`halves`, by offset), and of copies that have no entry yet the place of the one
    before (`moving`). In a queue that `lapses` a message is back when its time is over, and no event says so. `letter`
    begins its name.
    """

    end: int = 0
    cells: list[Cell] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    popped: dict[int, Out] = field(default_factory=dict)
    handed: dict[str, int] = field(default_factory=dict)
    halves: dict[int, str] = field(default_factory=dict)
    moving: dict[int, int] = field(default_factory=dict)
    lapses: bool = False
    letter: str = "q"

    def is_out(self, offset: int, now_us: int) -> bool:
        """Whether a message is hidden from others."""
        out = self.popped[offset]
        return out.state == "out" and not (self.lapses and out.until_us <= now_us)

    def half(self, offset: int, state: str) -> None:
        """Note what a half message is now. All that are open are known, of the others the newest."""
        self.halves[offset] = state
        if state in (HIDDEN, ASKED) and offset in self.moving:
            self.halves[self.moving[offset]] = state
        if len(self.halves) > 2 * MOST_CELLS:
            ended = next((one for one, was in self.halves.items() if was not in (HIDDEN, ASKED)), None)
            if ended is not None:
                del self.halves[ended]

    def hidden(self) -> int:
        """How many half messages nobody has ended, as far as the events say."""
        # While a copy has no entry yet, the one before it stands for it.
        before = set(self.moving.values())
        return sum(state in (HIDDEN, ASKED) for offset, state in self.halves.items() if offset not in before)

    def hand_out(self, group: str, offset: int) -> None:
        """A group gets a message; the broker commits that later, when the check points before it are done with."""
        self.handed[group] = max(offset + 1, self.handed.get(group, 0))

    def pop(self, offset: int, since_us: int, until_us: int) -> None:
        """A message is handed out, perhaps anew."""
        self.popped[offset] = Out(since_us, until_us)
        if len(self.popped) > MOST_CELLS:
            del self.popped[min(self.popped)]

    def settle(self, offset: int, state: str) -> None:
        """A popped message is acknowledged or revived."""
        if offset in self.popped:
            self.popped[offset] = self.popped[offset]._replace(state=state)

    def append(self, offset: int, log_offset: int, key: str) -> None:
        """One more entry (or one that is written again after a recovery)."""
        while self.cells and self.cells[-1].offset >= offset:
            self.cells.pop()
        self.cells.append(Cell(offset, log_offset, key))
        if len(self.cells) > MOST_CELLS:
            del self.cells[0]
        self.end = offset + 1
        if offset in self.moving:
            self.halves[self.moving.pop(offset)] = MOVED

    def cut(self, log_end: int) -> None:
        """Entries of messages that are not in the commit log any more are gone."""
        while self.cells and self.cells[-1].log_offset >= log_end:
            self.end = self.cells.pop().offset
        self.handed = {group: min(end, self.end) for group, end in self.handed.items()}
        self.moving = {}
        self.halves = {offset: state for offset, state in self.halves.items() if offset < self.end}

    def groups(self) -> list[str]:
        """The groups that read it."""
        return sorted({*self.committed, *self.owners.values(), *self.handed})

    def read_by(self, group: str) -> int:
        """Up to where a group has consumed: as its slowest owner knows, or as the broker does when nobody owns it; a
        group that pops, up to where messages were handed out.
        """
        owners = [self.read[name] for name, of in self.owners.items() if of == group and name in self.read]
        return min(owners) if owners else max(self.committed.get(group, 0), self.handed.get(group, 0))

    def give_up(self, consumer: str) -> None:
        """A consumer pulls from it no more: what it knew is gone."""
        self.owners.pop(consumer, None)
        self.read.pop(consumer, None)

    def waiting(self) -> int:
        """How many messages the slowest group has not consumed, or not popped."""
        return max(0, self.end - min((self.read_by(group) for group in self.groups()), default=0))

    def unnoted(self) -> int:
        """How many messages are consumed (or handed out), and the group's offset does not say so yet; of the group with
        the most.
        """
        return max((max(0, self.read_by(group) - self.committed.get(group, 0)) for group in self.groups()), default=0)


def words_of_waiting(strips: Collection[Strip]) -> str:
    """How many messages of some queues the slowest group has not got yet, in words."""
    how = "popped" if any(strip.handed for strip in strips) else "consumed"
    return f"{sum(strip.waiting() for strip in strips):,} not {how}"


class Block(NamedTuple):
    """A record in the commit log."""

    offset: int
    size: int
    key: str


@dataclass(slots=True)
class Log:
    """A commit log: where it ends, up to where it is flushed, its newest records; `dark` while what was not flushed has
    been lost with the power.
    """

    end: int = 0
    flushed: int = 0
    blocks: list[Block] = field(default_factory=list)
    dark: bool = False

    def append(self, offset: int, size: int, key: str) -> None:
        """Add a record to the log of a broker."""
        self.blocks.append(Block(offset, size, key))
        if len(self.blocks) > MOST_BLOCKS:
            del self.blocks[0]
        self.end = offset + size

    def cut(self, end: int) -> None:
        """A recovery has found that the log ends here."""
        self.blocks = [block for block in self.blocks if block.offset < end]
        self.end = end
        self.flushed = min(self.flushed, end)
        self.dark = False

    def between(self, begin: int, end: int) -> list[Block]:
        """Those of the newest records that begin in this part of it."""
        return [block for block in self.blocks if begin <= block.offset < end]

    def shown(self) -> list[Block]:
        """The records that are there, as far as one can know."""
        return [block for block in self.blocks if not self.dark or block.offset + block.size <= self.flushed]


@dataclass(slots=True)
class Producer:
    """What a producer is sending (unique key -> attempts), and how it went; `given_up` is the message that it could not
    send last, until another is sent; `local` has the half messages whose local part it does.
    """

    under_way: dict[str, int] = field(default_factory=dict)
    local: dict[str, None] = field(default_factory=dict)
    sent: int = 0
    failures: int = 0
    last: str = ""
    given_up: str = ""

    def attempt(self, key: str) -> None:
        """A message is handed to remoting, perhaps not for the first time."""
        self.under_way[key] = self.under_way.get(key, 0) + 1

    def succeeded(self, key: str) -> None:
        """It is stored. The answer to a batch names each of its messages, so its own key may not be among them."""
        if self.under_way.pop(key, 0) == 0 and self.under_way:
            self.under_way.pop(next(iter(self.under_way)))
        self.sent += 1
        self.last = self.given_up = ""

    def failed(self, key: str, reason: str) -> None:
        """The producer gives up."""
        self.under_way.pop(key, None)
        self.failures += 1
        self.last, self.given_up = reason, key

    def forget(self) -> None:
        """The process has ended."""
        self.under_way = {}
        self.local = {}
        self.last = self.given_up = ""


@dataclass(slots=True)
class Hand:
    """What a worker has in hand: unique key -> which delivery it is, from 1 (0: nobody says). `came` are the keys in
    the last frame with messages; `answer` is the last one, if it was no "OK".
    """

    held: dict[str, int] = field(default_factory=dict)
    came: tuple[str, ...] = ()
    done: int = 0
    answer: str = ""

    def take(self, key: str, delivery: int = 0) -> None:
        """It has a message (more)."""
        if key:
            self.held[key] = delivery

    def receive(self, keys: tuple[str, ...]) -> None:
        """A frame with popped messages came in."""
        self.came = keys
        for key in keys:
            self.take(key)

    def put_down(self, key: str, answer: str = "OK") -> None:
        """It has said that a message is done."""
        self.answer = "" if answer == "OK" else answer
        if self.held.pop(key, None) is not None and answer == "OK":
            self.done += 1


@dataclass(slots=True)
class Consumer:
    """What a consumer holds: `ranges` of offsets per queue that wait in its process queues, `listening` what its
    listener has: (queue, first offset) -> messages.
    """

    ranges: dict[Queue, list[tuple[int, int]]] = field(default_factory=dict)
    counts: dict[Queue, int] = field(default_factory=dict)
    listening: dict[tuple[Queue, int], int] = field(default_factory=dict)
    keys: dict[tuple[Queue, int], str] = field(default_factory=dict)
    """Place of the first message of a listener's call -> its unique key."""
    popped: list[str] = field(default_factory=list)
    """Unique keys of popped messages that wait for the listener."""
    pops: dict[str, None] = field(default_factory=dict)
    """The topics that it pops, of which it owns no queue."""
    owed: int = 0
    """How many popped messages it has not acknowledged."""
    limited: str = ""
    pulled: int = 0
    done: int = 0

    @property
    def cached(self) -> int:
        """How many messages it holds, those in the listener included."""
        return sum(self.counts.values()) + self.owed

    @property
    def busy(self) -> int:
        """How many calls of the listener are under way."""
        return len(self.listening)

    def cache(self, queue: Queue, first: int, count: int, cached: int) -> None:
        """So many messages from this offset on came in; the process queue holds `cached` now."""
        ranges = self.ranges.setdefault(queue, [])
        if ranges and ranges[-1][1] == first:
            ranges[-1] = (ranges[-1][0], first + count)
        elif len(ranges) < MOST_RANGES:
            ranges.append((first, first + count))
        self.counts[queue] = cached

    def has(self, queue: Queue, offset: int) -> bool:
        """Whether the message at a place waits in the cache or is in the listener."""
        waits = any(low <= offset < high for low, high in self.ranges.get(queue, ()))
        return waits or (queue, offset) in self.listening

    def take(self, keys: tuple[str, ...]) -> None:
        """Popped messages came in."""
        self.popped = [*self.popped, *keys][-MOST_CELLS:]

    def begin(self, queue: Queue, first: int, count: int, key: str = "") -> None:
        """The listener is called with these messages, of which the first has this unique key."""
        self.listening[queue, first] = count
        self.keys[queue, first] = key
        if key in self.popped:
            place = self.popped.index(key)
            del self.popped[place : place + count]
        end, left = first + count, []
        for low, high in self.ranges.get(queue, ()):
            left += [piece for piece in ((low, min(high, first)), (max(low, end), high)) if piece[0] < piece[1]]
        self.ranges[queue] = left

    def end(self, queue: Queue, first: int) -> None:
        """The listener has returned."""
        count = self.listening.pop((queue, first), 0)
        self.keys.pop((queue, first), None)
        self.done += count
        if queue in self.counts:
            self.counts[queue] = max(0, self.counts[queue] - count)

    def drop(self, queue: Queue) -> None:
        """The queue was given up."""
        self.ranges.pop(queue, None)
        self.counts.pop(queue, None)

    def waiting(self, most: int) -> list[tuple[Queue, int]]:
        """Places of the first messages that wait, at most so many."""
        found: list[tuple[Queue, int]] = []
        for queue, ranges in self.ranges.items():
            for low, high in ranges:
                found += [(queue, offset) for offset in range(low, min(high, low + most - len(found)))]
                if len(found) >= most:
                    return found
        return found
