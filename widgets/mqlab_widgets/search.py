"""A search: plays a world towards what may be far, in pieces, so that clicks are heard and it can be ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mqlab.errors import MqlabError
from mqlab_widgets.telling import NOTHING_LEFT

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.breakpoints import Breakpoint

FIRST_PIECE_MS, LONGEST_PIECE_MS = 50.0, 10_000.0
PIECE_SECONDS = 0.03
"""How long a piece shall take."""
AT_ONCE_SECONDS = 0.1
"""A search that ends within this time is one click like any other."""


class Search:
    """Plays a world for at most `ms` of its time, up to the next event of a kind, to a breakpoint, to the `place` that
    is asked for after each piece, or to the end.

    `run(ended, moved)` plays a first piece at once and the rest from the asyncio loop (all of it where there is none);
    `ended` gets the words for how it came out, `moved` is called after each piece.
    """

    def __init__(
        self,
        lab: Lab,
        what: str,
        ms: float,
        *,
        kind: str = "",
        breakpoints: bool = False,
        place: Callable[[], int | None] | None = None,
    ) -> None:
        self.lab = lab
        self.what = what
        self._until_ms = lab.now_ms + ms
        self._asked_ms = ms
        self._kind = kind
        self._to_breakpoint = breakpoints
        self._place = place
        self._piece_ms = FIRST_PIECE_MS
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self._stack = ExitStack()
        self._awaited: Breakpoint | None = None

    def run(self, ended: Callable[[str], None], moved: Callable[[], None]) -> None:
        """Begin the search: a short one ends at once, a longer one goes on while the page is served."""
        if self._kind:
            self._awaited = self._stack.enter_context(self.lab.break_on(self._kind))
        began = time.monotonic()
        words = self._play()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        while words is None and (loop is None or time.monotonic() - began < AT_ONCE_SECONDS):
            words = self._play()
        if words is not None or loop is None:
            self._end(words or "", ended)
        else:
            self._task = loop.create_task(self._go_on(ended, moved))

    async def _go_on(self, ended: Callable[[str], None], moved: Callable[[], None]) -> None:
        words = None
        while words is None:
            moved()
            await asyncio.sleep(0.005)
            words = self._play()
        self._end(words, ended)

    def _end(self, words: str, ended: Callable[[str], None]) -> None:
        self._stack.close()
        ended(words)

    def cancel(self) -> None:
        """End it, where it has come to."""
        self._cancelled = True

    def drop(self) -> None:
        """End it without a word: something else is done."""
        if self._task is not None:
            self._task.cancel()
        self._stack.close()

    def _play(self) -> str | None:
        """Play a piece; the words for the end if it came."""
        lab = self.lab
        if self._cancelled:
            return f"Stopped at {lab.now_ms / 1_000:,.3f} s."
        if lab.world.door.is_playing:
            return None
        if lab.world.next_due_us() is None:
            return NOTHING_LEFT
        began = time.monotonic()
        try:
            with lab.noting_sources():
                lab.run_for(ms=min(self._piece_ms, self._until_ms - lab.now_ms))
            lab.forget_sources()
        except MqlabError as error:
            return str(error)
        if time.monotonic() - began < PIECE_SECONDS:
            self._piece_ms = min(2 * self._piece_ms, LONGEST_PIECE_MS)
        elif time.monotonic() - began > 2 * PIECE_SECONDS:
            self._piece_ms /= 2
        return self._found()

    def _found(self) -> str | None:
        lab = self.lab
        if self._awaited is not None and self._awaited.first_hit is not None:
            lab.history.move_to(lab.history.index_of(self._awaited.first_hit.at) + 1)
            return ""
        if self._place is not None and (place := self._place()) is not None:
            lab.history.move_to(place)
            return ""
        if lab.stopped_at is not None and not self._kind:
            return f"Stopped at a breakpoint: {lab.stopped_at}"
        if lab.now_ms < self._until_ms:
            return None
        if self._kind or self._to_breakpoint or self._place is not None:
            missed = self.what.removeprefix("the next ")
            return f"Not found in {self._asked_ms / 1_000:g} s of the world: {missed}. Once more goes on from here."
        return ""
