"""The cursor: where in the record of a world what is shown stands, and what is to be seen from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mqlab.scenarios.captions import Storyboard
from mqlab.trace.record import KIND
from mqlab_widgets import timeline
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.boards.lives import Lives
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.words import line_at

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.scenarios.registry import Caption
    from mqlab.trace.record import Record
    from mqlab_widgets.scene.picture import Picture
    from mqlab_widgets.scene.scene import Look, Scene

EVENTS_PER_PIECE = 500


class Cursor:
    """Stands behind one event of a world, the cursor of its history; its boards are those of that moment.

    `live()` says whether a player plays the world's present.
    """

    def __init__(self, lab: Lab, picture: Picture, kinds: Iterable[type[Board]], live: Callable[[], bool]) -> None:
        self.lab = lab
        self.storyboard = Storyboard(lab)
        """What a scenario tells of itself."""
        self._picture = picture
        self._live = live
        self._stage = Fold(lab.history, [picture.board(lab)])
        self._lives = Fold(lab.history, [Lives(lab)])
        self._fold = Fold(lab.history, [kind(lab) for kind in kinds])
        self._at: int | None = None
        """Behind how many events what is shown stands, while it cannot follow a cell."""
        self._scene: Scene
        self._drawn: tuple[int, Look] | None = None
        """At which place and how looked at `scene` was drawn last."""
        self._lines: tuple[int, list[str], list[str]] = (0, [], [])
        """Of which place these are the lines of all boards, and those that were new there."""

    @property
    def at_end(self) -> bool:
        """Whether what is shown is the world's present: the cursor stands at the newest event."""
        return self.place() >= len(self.lab.history)

    @property
    def past(self) -> bool:
        """Whether what is shown is over: the world has gone on since."""
        return self.lab.history.cursor < len(self.lab.history) and not self._live()

    @property
    def over(self) -> bool:
        """Whether the world has gone on since, or something was done to it: not so in the middle of the newest slice,
        which nothing from outside can divide.
        """
        if not self.past:
            return False
        history, place = self.lab.history, self.lab.history.cursor
        newest = history.row(len(history) - 1)[0]
        return place == 0 or history.row(place - 1)[0] != newest or self.done_later() > 0

    @property
    def now_us(self) -> int:
        """The world's time at the cursor: 0 before the first event."""
        event = self.event()
        if self.at_end:
            return self.lab.world.now_us
        return 0 if event is None else event.ts_us

    @property
    def behind_us(self) -> int:
        """How long ago the next event behind the cursor has happened, in a world that passes by itself; 0 if all that
        has happened is shown.
        """
        place, history = self.place(), self.lab.history
        if place >= len(history) or not self.lab.world.outside.passes:
            return 0
        return max(0, self.lab.world.now_us - int(history.row(place)[2]))

    def place(self) -> int:
        """How many events lie behind what is shown: the cursor, or less while a cell plays faster than one can see."""
        cursor = self.lab.history.cursor
        return cursor if self._at is None else min(self._at, cursor)

    @property
    def known(self) -> int:
        """How many events have been taken in: all, unless a cell plays faster than one can see."""
        return len(self.lab.history) if self._at is None else self._at

    def catch_up(self, seconds: float) -> bool:
        """Bring what is shown nearer to the cursor, for about so long and by a piece at least; whether it is there."""
        until, cursor = time.monotonic() + seconds, self.lab.history.cursor
        while (at := self._stage.place) < cursor:
            at = min(cursor, at + EVENTS_PER_PIECE)
            self._stage.go_to(at, jump=False)
            timeline.follow(self.lab, at)
            if time.monotonic() >= until:
                break
        self._at = None if self._stage.place >= cursor else self._stage.place
        return self._at is None

    def be_there(self) -> None:
        """Show what stands at the cursor, however long it takes to come there."""
        self._at = None

    def done_later(self) -> int:
        """How many of the last actions were done behind the cursor, though before the next slice."""
        history, event = self.lab.history, self.event()
        slice_no = event.slice if event is not None else 0
        later = 0
        for row in history.rows(history.cursor):
            if row[0] != slice_no:
                break
            later += row[KIND] == "ActionTaken"
        done = sum(action[0] == slice_no for action in self.lab.actions)
        return min(later, done)

    def caption(self) -> Caption | None:
        """What a scenario tells of itself here."""
        return self.storyboard.at(self.place())

    def stage(self) -> StageBoard:
        """The stage at the cursor."""
        self._stage.go_to(self.place())
        (board,) = self._stage.boards
        assert isinstance(board, StageBoard)
        return board

    def scene(self, look: Look) -> Scene:
        """What is to be seen of the stage, looked at so; the same object as long as nothing has changed."""
        drawn = (self.place(), look)
        if self._drawn != drawn:
            before = self._scene if self._drawn is not None else None
            self._scene, self._drawn = self._picture.scene_of(self.stage(), look, before), drawn
        return self._scene

    @property
    def large(self) -> bool:
        """Whether the world holds so much (10,000 queues) that its states are not compared for a click."""
        return self._stage.large

    def lives(self) -> Lives:
        """The ways of the newest messages up to the cursor."""
        self._lives.go_to(self.place())
        (lives,) = self._lives.boards
        assert isinstance(lives, Lives)
        return lives

    def boards(self) -> list[Board]:
        """The boards at the cursor, the stage first."""
        self._fold.go_to(self.place())
        return [self.stage(), *self._fold.boards]

    def changes(self) -> list[str]:
        """What the newest event behind the cursor changed: the lines of the boards' text that were not there before.
        In a very large world none are looked for.
        """
        place = self.place()
        if place == 0 or self.large:
            return []
        at, lines, new = self._lines
        if at != place:
            # Who steps on knows already how it was before.
            before = set(lines if at == place - 1 else self._lines_at(place - 1))
            lines = self._lines_at(place)
            new = [line for line in lines if line not in before]
            self._lines = place, lines, new
        return new

    def _lines_at(self, place: int) -> list[str]:
        """The lines of all boards' text behind so many events."""
        folds = (self._stage, self._fold, self._lives)
        for fold in folds:
            fold.go_to(place)
        return [line for fold in folds for board in fold.boards for line in board.text()]

    def event(self) -> Record | None:
        """The newest event behind the cursor."""
        place = self.place()
        return self.lab.history.record(place - 1) if place > 0 else None

    def line(self) -> str:
        """What is said of the shown world at the cursor, in plain words."""
        return line_at(self.lab, self.place())
