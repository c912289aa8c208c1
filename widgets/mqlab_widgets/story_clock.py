"""The story clock: when the events of a world are seen on the screen.

RocketMQ lives in bursts of 0.2 ms between silences of 100 ms, so no speed shows it. The story clock gives each event
the time that an eye needs: a frame flies for half a second whatever its length in the world, an event rests as long as
there is something to see, and a silence is one tick however long it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

FLIGHT_MS = 500
"""How long a frame flies when it is alone in the air."""
SHORT_FLIGHT_MS = 400
"""How long a frame flies at least when there are others."""
LONGEST_FLIGHT_MS = 800
ROOM_MS = 300
"""So long after a frame left, others may still leave, and arrive before it: then nothing rests until it is there."""
TICK_MS = 280
"""What a silence takes on the screen."""
SILENCE_US = 1_000
"""Longer than this without anything to see is a silence, and a frame that is longer on its way is slow."""
GRID_MS = 50
"""Events are seen at multiples of this, so that those close together are drawn as one picture."""


class Seen(NamedTuple):
    """When an event is seen (ms on the screen clock), and the silence before it (us of the world; 0: none)."""

    at: int
    silence_us: int


class StoryClock:
    """Turns times of the world into times of the screen, one event after the other; it never goes back.

    Given is what the clock must know of an event with something to see: its time in the world, how long it rests, and
    which frames leave and arrive with it. While frames are in the air rests become shorter, so that in a dense world
    many events are seen at once and no frame hangs in the air for long. A slow frame (of a slow link) may: what happens
    meanwhile is seen.
    """

    def __init__(self, us: int, at: int = 0) -> None:
        self.at = at
        """When the last event was seen."""
        self.not_before = 0
        """Nothing is seen before this time of the screen: then the kernel was busy with something else."""
        self.us = us
        """The world's time when there was something to see last."""
        self._rest_ms = 0
        self._air: dict[str, tuple[int, int]] = {}
        """Frames on their way -> when each left: on the screen, and in the world."""

    def when(self, us: int, arrives: str = "") -> int:
        """When an event would be seen that comes next."""
        rested = self.at + self._rest_ms
        if us - self.us > SILENCE_US:
            at = rested + TICK_MS
        else:
            left = min((at for at, sent_us in self._air.values() if us - sent_us <= SILENCE_US), default=rested)
            at = max(self.at, min(rested, left + ROOM_MS))
        if arrives in self._air:
            others = any(us - sent_us <= SILENCE_US for key, (_, sent_us) in self._air.items() if key != arrives)
            at = max(at, self._air[arrives][0] + (SHORT_FLIGHT_MS if others else FLIGHT_MS))
        return -(-max(at, self.not_before) // GRID_MS) * GRID_MS

    def take(
        self, us: int, rest_ms: int = 0, *, leave: Iterable[str] = (), arrives: str = "", lost: Iterable[str] = ()
    ) -> Seen:
        """The next event is seen; `leave` and `lost` are the frames that begin and end their flight with it."""
        silence_us = us - self.us if us - self.us > SILENCE_US else 0
        self.at = self.when(us, arrives)
        self.us = us
        self._rest_ms = rest_ms
        for frame in (arrives, *lost):
            self._air.pop(frame, None)
        for frame in leave:
            self._air[frame] = (self.at, us)
        return Seen(self.at, silence_us)


class LinearClock:
    """The screen clock at a pace of so many seconds of the world per second: the world's time, stretched."""

    def __init__(self, us: int, at: int, pace: float) -> None:
        self.at = at
        self.not_before = 0
        self.us = us
        self.pace = pace
        self._from = (us, at)

    def when(self, us: int, arrives: str = "") -> int:
        """When an event at this time of the world is seen."""
        from_us, from_at = self._from
        at = from_at + (us - from_us) / 1_000 / self.pace
        return max(self.at, round(max(at, self.not_before) / GRID_MS) * GRID_MS)

    def world_us(self, at: int) -> int:
        """The world's time at a time of the screen."""
        from_us, from_at = self._from
        return from_us + round((at - from_at) * 1_000 * self.pace)

    def take(
        self, us: int, rest_ms: int = 0, *, leave: Iterable[str] = (), arrives: str = "", lost: Iterable[str] = ()
    ) -> Seen:
        """The next event is seen, whatever there is to see of it."""
        self.at, self.us = self.when(us), us
        return Seen(self.at, 0)

    def restart(self, us: int, at: int) -> None:
        """The kernel is behind: go on from here at the same pace."""
        self.at, self._from = max(self.at, at), (us, at)
