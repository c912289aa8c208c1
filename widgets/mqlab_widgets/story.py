"""The story of a world as one view tells it: beats, each with what has changed and what moves.

A beat is what a page is sent (`viewer.js` plays it): a dict of texts and numbers.

    {"at": 1250, "us": 6098040, "place": 1700,     when on the screen clock (ms), the world's time, and the cursor
     "gap": "+ 98 ms",                             if a silence went before
     "say": "broker-a stored message 60",          the line at that place, if it is another one
     "after": 250,                                 its picture is shown so many ms later, when the tokens are there
     "parts": {"card:broker-a": "<g ...>"},        the parts of the scene that have changed; "" is gone
     "acts": [{"act": "fly", ...}],                what moves (`scene.acts`)
     "past": "false",                              whether this is the past, where that has changed
     "stations": "<html>", "clock": "6.098 s"}     small parts around the stage that have changed

What has changed is what differs from what the page was sent last: by a beat, or as a whole picture (`shown`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mqlab_widgets.scene.acts import Act, Moves
from mqlab_widgets.words import clock

if TYPE_CHECKING:
    from mqlab.trace.record import Record
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.cursor import Cursor
    from mqlab_widgets.scene.picture import Picture
    from mqlab_widgets.scene.scene import Scene

Beat = dict[str, Any]


class Told(Protocol):
    """A view, as far as its story is concerned."""

    picture: Picture
    cursor: Cursor

    @property
    def watched(self) -> bool:
        """Whether a page shows it."""

    def scene(self) -> Scene:
        """What is to be seen at the cursor."""

    def around(self) -> dict[str, str]:
        """The small parts of the page around the stage, at the cursor."""


class Story:
    """What one view is told: the events of a beat are gathered, then its picture is drawn once and compared."""

    def __init__(self, view: Told) -> None:
        self._view = view
        self._parts: dict[str, str] = {}
        self._past: bool | None = None
        self.begin()

    def begin(self) -> None:
        """A play begins where the cursor stands."""
        self._scene = self._view.scene()
        self._around: dict[str, str] = {}
        self._beats: list[Beat] = []
        self._shown_at = 0
        self._open_at: int | None = None
        self._after_ms = 0
        self._gap_us = 0
        self._line = ""
        self._acts: list[Act] = []

    def shown(self, scene: Scene) -> None:
        """The page was sent this scene as a whole: what was to be told before is in it."""
        self._scene, self._parts = scene, scene.parts
        self._past = scene.look.past
        self._around, self._beats = {}, []

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the scene as the page shows them when it has come to the end of what it was told."""
        return self._parts

    def moves(self, record: Record, stage: StageBoard) -> Moves:
        """What moves on this view's stage with an event that `stage` has just taken."""
        return self._view.picture.moves_of(record, stage, self._scene)

    def tell(self, at: int, moves: Moves, silence_us: int = 0) -> None:
        """An event belongs to the beat at this time of the screen."""
        self.open(at, silence_us)
        self._acts += moves.acts
        self._after_ms = max(self._after_ms, moves.after_ms)

    def flow(self, at: int, acts: list[Act]) -> None:
        """Much has happened up to this time of the screen; what moved is told as streams."""
        self.open(at)
        self._acts += acts

    def open(self, at: int, silence_us: int = 0) -> None:
        """The beat at this time of the screen begins, if it has not begun yet."""
        if self._open_at is None:
            self._open_at, self._gap_us = at, silence_us

    def close(self, us: int = 0) -> None:
        """The beat is complete: draw what is to be seen at the cursor, at this time of the world if it is later."""
        at, self._open_at = self._open_at, None
        if at is None or not self._view.watched:
            self._acts = []
            return
        self._scene = self._view.scene()
        before, now = self._parts, self._scene.parts
        changed = {key: svg for key, svg in now.items() if before.get(key) != svg}
        self._parts = now
        # A picture must not be overtaken by the next one.
        self._shown_at = max(self._shown_at, at + self._after_ms)
        us = max(us, self._view.cursor.now_us)
        beat: Beat = {
            "at": at,
            "us": us,
            "place": self._view.cursor.place(),
            "after": self._shown_at - at,
            "parts": {**changed, **dict.fromkeys(before.keys() - now.keys(), "")},
            "acts": [act._asdict() for act in self._acts],
            "clock": clock(us),
        }
        around = self._view.around()
        beat |= {part: html for part, html in around.items() if self._around.get(part) != html}
        self._around = around
        if self._past != self._view.cursor.past:
            self._past = self._view.cursor.past
            beat["past"] = "true" if self._past else "false"
        if self._gap_us:
            beat["gap"] = gap_text(self._gap_us)
        line = self._view.cursor.line()
        if line != self._line:
            beat["say"] = self._line = line
        self._beats.append(beat)
        self._acts, self._after_ms = [], 0

    def beats(self) -> list[Beat]:
        """The beats that are complete, once."""
        beats, self._beats = self._beats, []
        return beats


def gap_text(us: int) -> str:
    """A silence: "+ 98 ms"."""
    if us < 10_000:
        return f"+ {us / 1_000:.1f} ms"
    return f"+ {us / 1_000:.0f} ms" if us < 1_000_000 else f"+ {us / 1_000_000:.1f} s"
