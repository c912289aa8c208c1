"""The stepper: a world's stage with the bar under it, which is the same in every lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab_widgets import controls, panels
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.boards.lives import Lives
from mqlab_widgets.machine import machine_html
from mqlab_widgets.session import Session
from mqlab_widgets.sharing import reopened, save_shared, shared_text
from mqlab_widgets.stations import stations_html
from mqlab_widgets.timeline import timeline_html
from mqlab_widgets.viewer import Frame, FramePump, Viewer, answer_beside_cells
from mqlab_widgets.weak_sink import WeakSink
from mqlab_widgets.words import clock

if TYPE_CHECKING:
    from mqlab import Lab

EVENTS_PER_LOOK = 256
"""While a cell plays the world, the viewer looks at the clock after so many events."""

PLAYING_SECONDS = 0.3
"""So often what stands around the story is drawn anew while the world is played."""


class Stepper(Viewer):
    """A live view of a lab: `Stepper(lab)` as the last line of a cell.

    Without a front end (or on a page) it is the picture of the last frame, as it was when the cell ended. With
    `play=True` the world begins to play as soon as a page shows it. `close()` takes the view off the page and off the
    world, which goes on without it.
    """

    def __init__(self, lab: Lab, boards: Sequence[type[Board]] = (), *, play: bool = False) -> None:
        if not hasattr(lab, "world"):
            raise LearnerError(f"{lab!r} is not a lab", "write Stepper(lab)")
        given = boards if isinstance(boards, list | tuple) else [None]
        if not all(isinstance(board, type) and issubclass(board, Board) for board in given):
            raise LearnerError(f"{boards!r} is no list of boards", "write Stepper(lab, [RoutesBoard]), with its class")
        self.session = Session(lab, boards, changed=self._changed, on_story=self._tell)
        self.session.watched = False
        self._tabs = [name for name in controls.TABS if name != "boards" or boards]
        self._tab = self._tabs[0]
        self._about_link = False
        """Whether the menu of faults is about the link that was clicked, and not about a machine."""
        self._to_play = play
        self._looked_at = 0
        """How many front ends show this view; nobody draws for none."""
        self._rows = 0
        self._watched: Lab | None = None
        self._sink: WeakSink | None = None
        super().__init__(self._command)
        self._pump = FramePump(self._show, self._post)
        self._around = FramePump(self._show, self._post, PLAYING_SECONDS)
        answer_beside_cells(self)
        self._watch()
        self._pump.send()

    @classmethod
    def reopen(
        cls, shared: str | PurePath, boards: Sequence[type[Board]] = (), *, allow_source: bool = False
    ) -> Stepper:
        """A stepper of the world in a shared text or file, at the event where it stood (`mqlab_widgets.sharing`)."""
        return cls(reopened(shared, allow_source=allow_source), boards)

    def share(self, path: str | PurePath | None = None) -> str:
        """What brings back this world at this event: a line of text, also written to a file if `path` is given."""
        if path is not None:
            save_shared(self.session.lab, path)
        return shared_text(self.session.lab)

    def close(self) -> None:
        """Take the view off the page and off its worlds."""
        if self.comm is not None:
            self.session.close()
            self._pump.close()
            self._around.close()
            if self._sink is not None:
                self._sink.detach()
        super().close()

    # -- what the page says -----------------------------------------------------------------------------------------

    def _command(self, command: dict[str, Any]) -> None:
        session = self.session
        match command["do"]:
            case "shown":
                self._looked_at += 1
                session.watched = True
                self.forget()
                if self._to_play:
                    self._to_play = False
                    session.do({"do": "play"})
                self._changed()
            case "hidden":
                self._looked_at -= 1
                session.watched = self._looked_at > 0
            case "tab" if command.get("name") in self._tabs:
                self._tab = command["name"]
                session.taken += 1
                self._changed()
            case name:
                if name in ("choose", "choose_link"):
                    self._about_link = name == "choose_link"
                session.do(command)

    # -- frames and stories -----------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """The session did something."""
        self._watch()
        if self._looked_at > 0:
            self._pump.show()

    def _tell(self, beats: list[dict[str, Any]], began: int) -> None:
        for beat in beats:
            beat |= self._words_at(beat["place"])
        self.tell(beats, began)
        self._around.ask()

    def _words_at(self, place: int) -> Frame:
        """What is said of the followed message behind so many events."""
        return {"stations": stations_html(self._lives_at(place), self.session.followed)}

    def _lives_at(self, place: int) -> Lives:
        self._lives.go_to(place)
        (lives,) = self._lives.boards
        assert isinstance(lives, Lives)
        return lives

    def _post(self, function: Callable[[], None]) -> None:
        self.session.lab.world.door.post(function)

    def _watch(self) -> None:
        """Follow the world that is shown, also while cells play it."""
        if self._watched is not self.session.lab:
            if self._sink is not None:
                self._sink.detach()
            lab = self._watched = self.session.lab
            self._sink = WeakSink(lab.world.hooks, self._on_row)
            self._lives = Fold(lab.history, [Lives(lab)])

    def _on_row(self, row: tuple[Any, ...]) -> None:
        self._rows += 1
        look = self._rows % EVENTS_PER_LOOK == 0
        if look:
            self.session.lab.forget_sources()
        if self._looked_at > 0 and not self.session.player.playing:
            if look:
                self._post(self._pump.ask)
            elif not self._pump.waiting:
                self._pump.arm()

    def _show(self) -> None:
        self.show(self._draw())

    def _draw(self) -> Frame:
        """The page as it is now; while the world is played, what the story does not show itself."""
        session, history = self.session, self.session.lab.history
        frame = {
            "_length": str(len(history)),
            "_world": str(session.now),
            "_taken": str(session.taken),
            "_playing": "true" if session.playing else "false",
            "_tab": self._tab,
            "bar": controls.bar_html(session, clock(session.now_us)),
            "menu": controls.menu_html(session, link=self._about_link),
            "handles": controls.handles_html(session),
            "timeline": timeline_html(session),
            "tabs": controls.tabs_html(self._tabs, self._tab),
            self._tab: self._panel(),
        }
        if session.said or not session.playing:
            frame["said"] = panels.said(session)
        if not session.playing:
            frame |= {
                "_place": str(history.cursor),
                "_us": str(session.now_us),
                "_past": "true" if session.past else "false",
                "stage": session.scene().svg(),
                **self._words_at(history.cursor),
            }
        return frame

    def _panel(self) -> str:
        """What stands in the tab that is open."""
        session = self.session
        match self._tab:
            case "boards":
                return _boards_html(session.boards()[1:])
            case "text":
                return _text_twin(session.boards())
            case "machine":
                return machine_html(session)
        return panels.side(session)

    # -- without a front end ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        history = self.session.lab.history
        return f"<Stepper: event {history.cursor} of {len(history)}>"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it the picture and the text of this moment, which are what a page keeps."""
        self._pump.send()
        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        boards = self.session.boards()
        html = f"{self.session.scene().svg()}{_boards_html(boards[1:])}"
        lines = [line for board in boards for line in board.text()]
        return {**data, "text/html": html, "text/plain": "\n".join([repr(self), *lines])}, metadata


def _boards_html(boards: Sequence[Board]) -> str:
    shown = "".join(
        f'<section class="mq-board" data-key="{escape(board.title)}">'
        f"<h4>{escape(board.title)}</h4>{board.html()}</section>"
        for board in boards
    )
    return f'<div class="mq-boards">{shown}</div>' if shown else ""


def _text_twin(boards: Sequence[Board]) -> str:
    lines = "\n".join(escape(line) for board in boards for line in [f"{board.title}:", *board.text()])
    return f"<pre>{lines}</pre>"
