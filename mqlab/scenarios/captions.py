"""Captions in time: which sentence of a scenario's story belongs to a place of a world's history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mqlab.scenarios.registry import Caption, find
from mqlab.trace.record import KIND

if TYPE_CHECKING:
    from mqlab.lab import Lab


class Storyboard:
    """The captions of a world; `at(place)` is the one to be shown when the cursor stands there.

    It reads each event once, when it is first asked for a place behind it. A world that was built cell by cell has no
    captions. When the event of a caption comes before its turn, those in front of it are passed over.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._wanted: dict[tuple[str, int], int] = {}
        """(kind, n) -> place of the caption in the story."""
        made_by = find(lab.origin.scenario) if lab.origin is not None else None
        self._captions = made_by.captions if made_by is not None else ()
        for n, caption in enumerate(self._captions):
            self._wanted[caption.kind, caption.nth] = n
        self._seen = dict.fromkeys((caption.kind for caption in self._captions), 0)
        self._read = 0
        self._places: list[int] = []
        """Behind which events the shown captions begin, rising; which ones those are stands in `_shown`."""
        self._shown: list[int] = []

    def at(self, place: int) -> Caption | None:
        """The caption at a place of the history: that of the last event in front of it which has one."""
        if not self._captions:
            return None
        self._read_up_to(place)
        n = bisect_right(self._places, place)
        return self._captions[self._shown[n - 1]] if n else None

    def after(self, place: int) -> int | None:
        """The place at which the next caption behind this one begins; None while the history has none."""
        if self._captions:
            self._read_up_to(len(self._lab.history))
        n = bisect_right(self._places, place)
        return self._places[n] if n < len(self._places) else None

    def before(self, place: int) -> int | None:
        """The place at which the newest caption in front of this one begins; None in front of the first."""
        if self._captions:
            self._read_up_to(place)
        n = bisect_left(self._places, place)
        return self._places[n - 1] if n else None

    @property
    def told(self) -> bool:
        """Whether nothing more is to be told, or the world has no captions."""
        last = len(self._captions) - 1
        return last < 0 or self._shown[-1:] == [last]

    def _read_up_to(self, place: int) -> None:
        seen = self._seen
        if place <= self._read or not self._wanted:
            return
        for row in self._lab.history.rows(self._read, place):
            self._read += 1
            kind = row[KIND]
            if kind in seen:
                seen[kind] += 1
                n = self._wanted.pop((kind, seen[kind]), None)
                if n is not None and n > (self._shown[-1] if self._shown else -1):
                    self._places.append(self._read)
                    self._shown.append(n)
