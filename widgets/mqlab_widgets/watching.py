"""Watching: while a cell plays a world, its views are drawn now and then, and once more when it has ended.

What a cell pays for open views is bounded: an event costs one count, drawing and folding take a tenth of the time. A
fold that cannot follow shows the world as it was a moment ago, and catches up when the cell has ended.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet, ref

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.bus import Row
    from mqlab_widgets.cursor import Cursor

EVENTS_PER_LOOK = 256
"""After so many events it is looked at the clock."""
FRAME_SECONDS = 1 / 20
MOST_BUSY = 0.1
"""The share of real time that folding and drawing may take while a cell plays."""
FOLD_SECONDS = 0.01
"""So long the boards are brought forward for one frame."""
PIECE_SECONDS = 0.03
"""So long at a stretch when the cell has ended; then clicks are heard."""


class Watcher(Protocol):
    """A view of a world that somebody else plays."""

    watched: bool
    cursor: Cursor

    def changed(self) -> None:
        """Draw the whole picture."""


class Watch:
    """A sink of a world that sees when others play it, and tells the views."""

    def __init__(self, lab: Lab, views: WeakSet[Any]) -> None:
        # Weakly, since the world has this sink, and a player, which lives no longer than its lab, has it, too.
        self._lab = ref(lab)
        self._views: WeakSet[Watcher] = views
        self.paused = False
        """Whether a player shows what it plays itself."""
        self._left = 1
        self._next_at = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._shown = -1
        """How long the history was when it was drawn last."""
        lab.world.hooks.attach(self)

    @property
    def about(self) -> str:
        """Whose events are counted, for the report of an error."""
        return "of the views of a world"

    def __call__(self, row: Row) -> None:
        self._left -= 1
        if self._left <= 0:
            self._left = EVENTS_PER_LOOK
            self._look()

    def _look(self) -> None:
        lab = self._lab()
        if lab is None or not self._views:
            self.detach()
        elif not self.paused and self._watched():
            if self._alarm is None:
                # Most that is played is short, and drawn when it is over.
                self._alarm = _call_later(FRAME_SECONDS, self._late)
                self._next_at = time.monotonic() + FRAME_SECONDS
                self._left = EVENTS_PER_LOOK if self._alarm is not None else 1
            elif time.monotonic() >= self._next_at:
                self._next_at = float("inf")
                lab.world.door.post(self._draw)

    def _watched(self) -> list[Watcher]:
        return [view for view in self._views if view.watched]

    def _draw(self) -> None:
        """Between two slices of a cell."""
        began = time.monotonic()
        for view in self._watched():
            view.cursor.catch_up(FOLD_SECONDS)
            view.changed()
        lab = self._lab()
        if lab is not None:
            # Views draw when it is their turn at the door, so this is behind them.
            lab.world.door.post(partial(self._drawn, began))

    def _drawn(self, began: float) -> None:
        ended = time.monotonic()
        self._next_at = max(began + FRAME_SECONDS, ended + (ended - began) * (1 / MOST_BUSY - 1))

    def _late(self) -> None:
        """From the loop: no cell holds it any more, though one may play in another thread."""
        self._alarm = None
        self._left = 1
        lab = self._lab()
        if lab is None or self.paused or len(lab.history) == self._shown:
            return
        if lab.world.door.is_playing:
            self._alarm = _call_later(FRAME_SECONDS, self._late)
            return
        there = [view.cursor.catch_up(PIECE_SECONDS) for view in self._watched()]
        if all(there):
            self.note()
            lab.world.door.post(self._draw)
        else:
            self._alarm = _call_later(0, self._late)

    def note(self) -> None:
        """The views are told of all that has happened so far."""
        lab = self._lab()
        if lab is not None and not lab.world.door.is_playing:
            self._shown = len(lab.history)
            self._left = 1
            for view in self._watched():
                view.cursor.be_there()

    def detach(self) -> None:
        """Count no more events."""
        lab = self._lab()
        if lab is not None:
            lab.world.hooks.detach(self)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def _call_later(seconds: float, function: Any) -> asyncio.TimerHandle | None:
    """Call a function from the loop of this thread; None if it has none (a plain script, a thread of one's own)."""
    try:
        return asyncio.get_running_loop().call_later(seconds, function)
    except RuntimeError:
        return None
