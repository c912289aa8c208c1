"""Telling: one play of a world, from the event where it begins to the one where it ends.

The cursor of the history moves on event by event; the world itself is played when the cursor has come to the newest
event. So play in the past shows the record, and what is shown is always the state at the cursor.

A world that is served passes by itself, as the real time does. It is followed: what has happened is told at its pace,
somewhat behind, and nothing is played. What would take longer to tell than it took to happen is shortened: first what
is routine, and when that does not help all that is not told yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakSet

from mqlab.trace.record import KIND
from mqlab.trace.state import reader_of
from mqlab_widgets.scene.acts import NOTHING, is_routine
from mqlab_widgets.story_clock import SILENCE_US, LinearClock, StoryClock

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.record import Record
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.cursor import Cursor
    from mqlab_widgets.scene.acts import Act, Moves
    from mqlab_widgets.story import Beat, Story

Pace = float | Literal["story"]
"""How fast a world passes: at story pace, or so many seconds of it per second."""

BUSY_SECONDS = 0.04
"""So long at a stretch the world is played and drawn; then clicks are heard."""
FOLLOW_SECONDS = 0.01
"""So long a served world, and with it the programs outside, waits for its story."""
LONGEST_SILENCE_US = 60_000_000
"""A world in which nothing is to be seen any more passes at this speed: so much for each tick."""
MOST_BEHIND = 1_000
"""When somebody else has played more events than this, the story goes on from the present."""
HURRY_US = 2_000_000
"""Behind a served world by more than this, its story leaves out what is routine."""
MOST_BEHIND_US, MOST_EVENTS_BEHIND = 10_000_000, 5_000
"""By more than one of these, it leaves out all that was not told, and goes on from the present."""
NO_LONGER_SERVED = "The world is no longer served. Play lets it pass here."
FRAME_US = 200
"""What a frame takes between two machines, unless told otherwise."""
LEAST_FLIGHT_MS, LONGEST_FLIGHT_MS = 16, 800
FLOW_PACE = 1.0
"""From this pace on frames are drawn as streams."""
FLOW_MS = 100
MOST_PULSES = 12
TRIED = 4
"""So many frames of a wire are looked at to find what its stream looks like."""
NOTHING_LEFT = "Nothing is left to happen in this world: start a process or send a message."
NODE, REMOTE = 3, 11
_SENT = ("RequestSent", "ResponseSent")


class View(Protocol):
    """A session that is told what is played."""

    story: Story
    watched: bool
    cursor: Cursor

    def tell(self, beats: list[Beat]) -> None:
        """Send these beats to the page, which shows them one after the other."""

    def stopped(self, words: str) -> None:
        """The player has stopped; `words` say why, "" if somebody wanted it."""

    def changed(self) -> None:
        """Draw the whole picture."""


class _Next(NamedTuple):
    """An event that was read and is not told yet, with what it moves for each view."""

    record: Record
    moves: WeakKeyDictionary[View, Moves]
    first: Moves


class Telling:
    """One play of a world for its views: reads or plays events, and says when each is seen. With `follows` it plays
    none, but waits for what happens by itself.
    """

    def __init__(self, lab: Lab, views: WeakSet[View], pace: Pace, *, follows: bool = False) -> None:
        self._lab = lab
        self._views = views
        self.follows = follows
        self.left_out = 0
        """How many events were not told, or told without what moves, since that would have taken too long."""
        self.live = False
        """Whether the newest event was reached, so that the world is played and not its record."""
        self._begin(0)
        self.keep(pace)

    def _begin(self, at: int) -> None:
        """Go on from the cursor."""
        history = self._lab.history
        self._place = self._read = history.cursor
        self.live = self._place == len(history)
        self._next: _Next | None = None
        self._quiet: list[_Next] = []
        """Events without anything to see: they are told with the next one that is seen, whose line stands then."""
        for view in self._views:
            view.story.begin()
        self._front = next(iter(self._views)).cursor.stage().twin()
        """The stage behind the event that was read last, which may be one ahead of what is told."""
        self._takers = self._front.handlers()
        self._clock: StoryClock | LinearClock = StoryClock(self._now_us, at)

    @property
    def _now_us(self) -> int:
        event = self._lab.history.at_cursor
        if self.live and (not self.follows or self._place == len(self._lab.history)):
            return self._lab.world.now_us
        return event.ts_us if event is not None else 0

    @property
    def _behind_us(self) -> int:
        """How long ago the next event to tell has happened, in a world that is followed; 0 if all is told."""
        if not self.follows or self._place >= len(self._lab.history):
            return 0
        return self._lab.world.now_us - int(self._lab.history.row(self._place)[2])

    def keep(self, pace: Pace) -> None:
        """Go on at this pace."""
        us, at = max(self._clock.us, self._now_us), self._clock.at
        self._pace = pace
        self._clock = StoryClock(us, at) if pace == "story" else LinearClock(us, at, float(pace))

    # -- telling ----------------------------------------------------------------------------------------------------

    def tell(self, now_ms: int, until_ms: int, clock: Callable[[], float]) -> str | None:
        """Tell what is to be seen up to a time of the screen; if there it ends, why."""
        if not self._views:
            return ""
        if self.follows and not any(view.watched for view in self._views):
            return None
        self._follow_others(now_ms)
        self._clock.not_before = now_ms
        deadline = clock() + (FOLLOW_SECONDS if self.follows else BUSY_SECONDS)
        try:
            if isinstance(self._clock, LinearClock) and self._clock.pace >= FLOW_PACE:
                return self._tell_streams(self._clock, now_ms, until_ms, deadline, clock)
            while clock() < deadline:
                if self._next is None:
                    if self._read == len(self._lab.history):
                        if self.follows:
                            return self._wait(now_ms)
                        if self._lab.world.next_due_us() is None:
                            return NOTHING_LEFT
                        if not self._play(until_ms):
                            break
                        continue
                    self._next = self._read_next()
                record = self._next.record
                if not self._tell_next(until_ms):
                    break
                if self._is_breakpoint(record.row):
                    return f"Stopped at a breakpoint: {record}"
            if isinstance(self._clock, LinearClock):
                self._let_time_pass(self._clock, until_ms)
        finally:
            self._close()
        return None

    def _wait(self, now_ms: int) -> str | None:
        """All that has happened in a world that is followed is told."""
        self.live = True
        if self._quiet:
            self._clock.at = max(self._clock.at, now_ms)
            for view in self._views:
                view.story.open(self._clock.at)
            self._tell_quiet()
        return None if self._lab.world.outside.served else NO_LONGER_SERVED

    def _let_time_pass(self, screen: LinearClock, until_ms: int) -> None:
        """Nothing more happens up to this time of the screen, and the clock goes on."""
        if self.follows:
            # Not beyond the present, which nobody can make come sooner.
            if screen.world_us(until_ms) > self._lab.world.now_us:
                screen.restart(self._lab.world.now_us, until_ms)
            return
        if self._next is not None or self._read == len(self._lab.history):
            self._close()
            for view in self._views:
                view.story.open(max(screen.at, until_ms))
            self._close(screen.world_us(until_ms))

    def _follow_others(self, now_ms: int) -> None:
        """A cell may have played the world, or moved the cursor."""
        history = self._lab.history
        most = MOST_EVENTS_BEHIND if self.follows else MOST_BEHIND
        far = self.live and (len(history) - self._read > most or self._behind_us > MOST_BEHIND_US)
        if far:
            self.left_out += len(history) - self._place
            history.move_to(len(history))
        if far or history.cursor not in (self._place, len(history)):
            self._begin(now_ms)
            self.keep(self._pace)
            for view in list(self._views):
                view.changed()

    def _play(self, until_ms: int) -> bool:
        """Play what is due next, if it is seen by then; False if there is nothing to do now."""
        self.live = True
        world = self._lab.world
        due_us = world.next_due_us()
        if world.door.is_playing or due_us is None:
            return False
        longest_us = self._clock.us + LONGEST_SILENCE_US
        linear = isinstance(self._clock, LinearClock)
        # What comes at once after what was seen is part of it.
        at_once = due_us - self._clock.us <= SILENCE_US and not linear
        if not at_once and self._clock.when(min(due_us, longest_us)) > until_ms:
            if isinstance(self._clock, LinearClock):
                world.run_to(min(self._clock.world_us(until_ms), due_us - 1))
            return False
        self._play_to(min(due_us, longest_us))
        if world.now_us >= longest_us and self._read == len(self._lab.history):
            seen = self._clock.take(world.now_us)
            self._close()
            for view in self._views:
                view.story.open(seen.at, seen.silence_us)
            self._tell_quiet()
        return True

    def _play_to(self, us: int) -> None:
        with self._lab.noting_sources():
            self._lab.world.run_to(us)
        self._lab.forget_sources()

    def _read_next(self) -> _Next:
        row = self._lab.history.row(self._read)
        self._read += 1
        record = reader_of(row[KIND])(row)
        taker = self._takers.get(row[KIND])
        if taker is not None:
            taker(record)
        if self.live and self._behind_us > HURRY_US and is_routine(record, self._front):
            self.left_out += 1
            return _Next(record, WeakKeyDictionary(), NOTHING)
        moves = WeakKeyDictionary({view: view.story.moves(record, self._front) for view in self._views})
        return _Next(record, moves, next(iter(moves.values())))

    def _tell_next(self, until_ms: int) -> bool:
        """Tell the event that was read, if it is seen by then."""
        assert self._next is not None
        record, _, first = self._next
        seen = first.seen or isinstance(self._clock, LinearClock) or self._is_breakpoint(record.row)
        if not seen:
            self._quiet.append(self._next)
            self._next = None
            return True
        if seen:
            if self._clock.when(record.ts_us, first.arrives) > until_ms:
                return False
            before = self._clock.at
            leave = [act.id for act in first.acts if act.act == "fly"]
            lost = [act.id for act in first.acts if act.act == "lost"]
            at, silence_us = self._clock.take(
                record.ts_us, first.rest_ms, leave=leave, arrives=first.arrives, lost=lost
            )
            if at > before:
                self._close()
            for view in self._views:
                view.story.open(at, silence_us)
            self._tell_quiet()
        self._tell_now(self._next)
        self._next = None
        return True

    def _tell_now(self, told: _Next) -> None:
        for view in self._views:
            view.story.tell(self._clock.at, self._paced(told.moves.get(view, told.first)))
        self._place += 1

    def _tell_quiet(self) -> None:
        for told in self._quiet:
            self._tell_now(told)
        self._quiet.clear()

    def _paced(self, moves: Moves) -> Moves:
        """The same at this pace: at story pace as it is, else a flight takes what it takes in the world."""
        if not isinstance(self._clock, LinearClock) or not moves.acts:
            return moves
        ms = round(min(max(FRAME_US / 1_000 / self._clock.pace, LEAST_FLIGHT_MS), LONGEST_FLIGHT_MS))
        acts = tuple(act._replace(ms=ms if act.act == "fly" else min(ms, act.ms)) for act in moves.acts)
        return moves._replace(acts=acts, after_ms=min(ms, moves.after_ms))

    def _close(self, us: int = 0) -> None:
        """What was told so far is one picture."""
        self.hold()
        for view in self._views:
            view.story.close(us)

    def hold(self) -> None:
        """Let the cursor stand behind what was told, whatever happens meanwhile."""
        if self.follows:
            self._lab.history.hold(self._place)
        else:
            self._lab.history.cursor = self._place

    def _is_breakpoint(self, row: tuple[object, ...]) -> bool:
        return any(breakpoint_.matches(row) for breakpoint_ in self._lab.breakpoints)

    # -- streams ----------------------------------------------------------------------------------------------------

    def _tell_streams(
        self, screen: LinearClock, now_ms: int, until_ms: int, deadline: float, clock: Callable[[], float]
    ) -> str | None:
        """Tell the world's time up to a time of the screen as streams, a picture each 100 ms."""
        words = None
        while words is None and screen.at + FLOW_MS <= until_ms and clock() < deadline:
            at = screen.at + FLOW_MS
            streams = _Streams()
            words = self._flow_to(screen.world_us(at), streams, deadline, clock)
            screen.take(self._now_us)
            screen.at = at
            if self.follows and screen.world_us(at) > self._lab.world.now_us:
                screen.restart(self._lab.world.now_us, at)
            for view in self._views:
                view.story.flow(at, streams.acts(view))
            self._close()
        if screen.at < now_ms:
            screen.restart(self._now_us, now_ms)
        return words

    def _flow_to(self, target_us: int, streams: _Streams, deadline: float, clock: Callable[[], float]) -> str | None:
        history, world = self._lab.history, self._lab.world
        while True:
            for row in history.rows(self._place):
                if row[2] > target_us:
                    return None
                self._place = self._read = self._place + 1
                record = reader_of(row[KIND])(row)
                taker = self._takers.get(row[KIND])
                if taker is not None:
                    taker(record)
                if row[KIND] in _SENT:
                    streams.note(record, self._front, self._views)
                if self._is_breakpoint(row):
                    self.hold()
                    return f"Stopped at a breakpoint: {record}"
            self.live = True
            if self.follows:
                return None if world.outside.served else NO_LONGER_SERVED
            due_us = world.next_due_us()
            if due_us is None:
                return NOTHING_LEFT
            if world.door.is_playing or world.now_us >= target_us or clock() >= deadline:
                return None
            self._play_to(min(target_us, max(due_us, world.now_us + (target_us - world.now_us) // 8)))

    # -- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Tell what has been played already, so that the cursor stands at the world's present. What has happened in a
        world that is followed is not told any more: the picture stands still, and the world goes on.
        """
        if self.follows:
            self._close()
        elif self.live:
            self.tell_to(len(self._lab.history))

    def tell_step(self, place: int) -> None:
        """Tell the events up to there, without the silence before the first of them."""
        if self._read < place:
            self._clock = StoryClock(self._lab.history.row(self._read)[2])
        self.tell_to(place)

    def tell_to(self, place: int) -> None:
        """Tell all events up to there, of which there are few (many are one jump)."""
        if place - self._read > MOST_BEHIND:
            self._lab.history.move_to(place)
            return
        while self._next is not None or self._read < place:
            self._next = self._next or self._read_next()
            self._tell_next(1 << 62)
        self._tell_quiet()
        self._close()

    def send(self) -> None:
        """Hand the beats to the views."""
        for view in list(self._views):
            beats = view.story.beats()
            if beats:
                view.tell(beats)


class _Streams:
    """The frames of a while, counted by wire, each wire with the picture of its heaviest frame."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._looks: WeakKeyDictionary[View, dict[tuple[str, str], Act]] = WeakKeyDictionary()

    def note(self, record: Record, stage: StageBoard, views: WeakSet[View]) -> None:
        """A frame has left."""
        wire = (record.row[NODE], record.row[REMOTE])
        count = self._counts[wire] = self._counts.get(wire, 0) + 1
        if count > TRIED:
            return
        for view in views:
            looks = self._looks.setdefault(view, {})
            for act in view.story.moves(record, stage).acts:
                if act.act == "fly" and (wire not in looks or len(act.svg) > len(looks[wire].svg)):
                    looks[wire] = act

    def acts(self, view: View) -> list[Act]:
        """A stream for each wire."""
        return [
            act._replace(act="flow", id=f"{wire[0]}>{wire[1]}", ms=FLOW_MS, n=min(self._counts[wire], MOST_PULSES))
            for wire, act in self._looks.get(view, {}).items()
        ]
