"""The player: lets a world pass before the eyes of all who look at it, at story pace or at a pace of its own.

There is one for each world, shared by its views. It says when, `telling.py` what.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Event
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet, ref

from mqlab.errors import LearnerError, MqlabError
from mqlab_widgets.telling import Pace, Telling, View
from mqlab_widgets.watching import Watch

if TYPE_CHECKING:
    from mqlab import Lab

AHEAD_MS = 300
"""So far is told ahead of the screen, for what comes late and what has to be drawn."""
WAKE_SECONDS = 0.1
"""So often the player looks what there is to tell."""
STORY: Pace = "story"

_players: WeakKeyDictionary[Lab, Player] = WeakKeyDictionary()


def player_of(lab: Lab) -> Player:
    """The one player of a world."""
    player = _players.get(lab)
    if player is None:
        player = _players[lab] = Player(lab)
    return player


class Player:
    """Plays a world for its views, from where the cursor stands, until it is paused or something stops it.

    A view that is gone is forgotten; when all are gone, the world stands still. `clock` (seconds) and `sleep` are the
    real ones unless a test gives others.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = ref(lab)
        self.views: WeakSet[View] = WeakSet()
        self.watch: Watch | None = None
        self.clock: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self.stepped = False
        """Whether what is told at this moment is a step."""
        self.began = 0
        """How often playing has begun: the screen clock of each play begins at 0."""
        self._pace = STORY
        self._task: asyncio.Task[None] | None = None
        self._telling: Telling | None = None

    @property
    def playing(self) -> bool:
        """Whether the world passes. Where its loop has ended (that of a page that is gone), it stands still."""
        return self._task is not None and not self._task.get_loop().is_closed()

    def is_live(self) -> bool:
        """Whether it plays the world's present, and not its record."""
        return self._telling is not None and self._telling.live

    @property
    def follows(self) -> bool:
        """Whether it tells what happens in a world that is served, and passes by itself."""
        return self._telling is not None and self._telling.follows

    @property
    def left_out(self) -> int:
        """How many events of a served world this play has left out, because more happens than can be told."""
        return self._telling.left_out if self._telling is not None else 0

    def hold(self) -> None:
        """Let the cursor stand where the story of a served world stands, which goes on meanwhile."""
        if self._telling is not None and self._telling.follows:
            self._telling.hold()

    @property
    def pace(self) -> Pace:
        """ "story", or seconds of the world per second."""
        return self._pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        if pace != STORY and not (isinstance(pace, int | float) and 0 < pace < float("inf")):
            raise LearnerError(f"{pace!r} is no pace", 'use "story", or seconds of the world per second, such as 0.1')
        self._pace = pace
        if self._telling is not None:
            self._telling.keep(pace)

    def play(self) -> None:
        """Begin, from where the cursor stands. LearnerError where there is no asyncio loop to play in."""
        lab = self._lab()
        if self.playing or lab is None or not self.views:
            return
        loop = _running_loop()
        if loop is None:
            raise LearnerError(
                "here is no loop in which a world could pass by itself", "use lab.run_for(seconds=5)"
            )
        self.began += 1
        with lab.world.door:
            self._telling = Telling(lab, self.views, self._pace, follows=lab.world.outside.passes)
            self.hold()
        if self.watch is not None:
            self.watch.paused = True
        self._task = loop.create_task(self._run(self._telling))

    def pause(self) -> None:
        """Stop; what has been played already is told to its end."""
        if self._task is not None:
            self._task.cancel()
            self._stop("")

    def in_turn(self, act: Callable[[], None], wait_seconds: float = 0) -> None:
        """Do it between two pieces of the play: each page speaks from a thread of its own (a subshell), and only one at
        a time may be at what is shown. Whoever needs what comes of it waits so long at most.
        """
        loop = self._task.get_loop() if self._task is not None else None
        if loop is None or not loop.is_running() or loop is _running_loop():
            act()
            return
        done = Event()

        def now() -> None:
            try:
                act()
            finally:
                done.set()

        loop.call_soon_threadsafe(now)
        done.wait(wait_seconds)

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Tell the few events that happen (or that the cursor passes) meanwhile at story pace, all at once."""
        lab = self._lab()
        watched = [view for view in self.views if view.watched]
        if lab is None or not watched or any(view.cursor.large for view in watched):
            yield
            return
        telling = Telling(lab, self.views, STORY)
        yield
        self.began += 1
        self.stepped = True
        telling.tell_step(lab.history.cursor)
        telling.send()
        self.stepped = False

    async def _run(self, telling: Telling) -> None:
        began = self.clock()
        words: str | None = "The view failed; what went wrong stands in the kernel's log."
        try:
            while True:
                words = self._tell(telling, round((self.clock() - began) * 1_000))
                if words is not None:
                    break
                await self.sleep(WAKE_SECONDS)
        except asyncio.CancelledError:
            raise
        except MqlabError as error:
            words = _plain(error)
        except KeyboardInterrupt:
            words = "Stopped."
        finally:
            if self._telling is telling:
                self._stop(words or "")

    def _tell(self, telling: Telling, now_ms: int) -> str | None:
        """Tell what is due on the screen; if it ends there, why."""
        lab = self._lab()
        try:
            # What is followed waits a moment; what is played holds the door itself.
            with lab.world.door if lab is not None and telling.follows else nullcontext():
                return telling.tell(now_ms, now_ms + AHEAD_MS, self.clock)
        finally:
            telling.send()

    def _stop(self, words: str) -> None:
        telling, self._telling, self._task = self._telling, None, None
        if telling is not None:
            telling.finish()
            telling.send()
        if self.watch is not None:
            self.watch.paused = False
            self.watch.note()
        for view in list(self.views):
            view.stopped(words)

    def join(self, view: View) -> None:
        """A view shows this world from now on."""
        lab = self._lab()
        if not self.views and lab is not None:
            self.watch = Watch(lab, self.views)
        self.views.add(view)

    def leave(self, view: View) -> None:
        """A view shows this world no more."""
        self.views.discard(view)
        if not self.views:
            self.pause()
            if self.watch is not None:
                self.watch.detach()
                self.watch = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _plain(error: MqlabError) -> str:
    """Why the world stopped, in one sentence or two."""
    words = str(error).splitlines()[0]
    if " died: " in words:
        who, _, why = words.partition(" died: ")
        return f"{who[0].upper()}{who[1:]} has ended with an error: {why}. Play goes on without it."
    return words
