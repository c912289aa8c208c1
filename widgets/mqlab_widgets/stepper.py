"""The stepper: a world's stage with the controls under it, which are the same in every lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MissingExtraError
from mqlab.trace.catalogue import CATALOGUE
from mqlab_widgets import panels
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.machine import machine_html
from mqlab_widgets.scene.scene import Look, scene_of
from mqlab_widgets.session import Session
from mqlab_widgets.sharing import reopened, save_shared, shared_text
from mqlab_widgets.viewer import Frame, FramePump, Viewer, answer_beside_cells
from mqlab_widgets.weak_sink import WeakSink

try:
    import ipywidgets
except ImportError:
    raise MissingExtraError("ipywidgets", "widgets") from None

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.record import Record

EVENTS_PER_LOOK = 256
"""While a cell plays the world, the viewer looks at the clock after so many events."""

FAVOURITES = ("MessageStored", "RequestSent", "PullHeld", "PullWoken", "ConsumeStarted", "RebalanceDone")
"""The event kinds on top of the list."""

SPEEDS = [(f"{speed:g} x", speed) for speed in (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 60)]


class Stepper(ipywidgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A live view of a lab: `Stepper(lab)` as the last line of a cell.

    Without a front end (or on a page) it is the picture of the last frame, as it was when the cell ended.
    `close()` takes it off the page and off the world, which goes on without it.
    """

    def __init__(self, lab: Lab, boards: Sequence[type[Board]] = ()) -> None:
        if not hasattr(lab, "world"):
            raise LearnerError(f"{lab!r} is not a lab", "write Stepper(lab)")
        given = boards if isinstance(boards, list | tuple) else [None]
        if not all(isinstance(board, type) and issubclass(board, Board) for board in given):
            raise LearnerError(f"{boards!r} is no list of boards", "write Stepper(lab, [RoutesBoard]), with its class")
        self.session = Session(lab, boards, changed=self._changed, on_story=lambda _beats, _began: self._changed())
        self.viewer = Viewer(self._command)
        self._pump = FramePump(self._draw, self.viewer, self._post)
        self._moving = False
        self._looked_at = 0
        """How many front ends show this view; nobody draws for none."""
        self._rows = 0
        self._watched: Lab | None = None
        self._sink: WeakSink | None = None
        self._make_controls()
        super().__init__([self._timeline, *self._rows_of_controls(), self.viewer])
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
            if self._sink is not None:
                self._sink.detach()
            for row in self.children:
                for control in getattr(row, "children", ()):
                    control.close()
                row.close()
        super().close()

    # -- controls ---------------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        do = self.session.do
        kinds = [*FAVOURITES, *(kind for kind in sorted(CATALOGUE) if kind not in FAVOURITES)]
        self._timeline = ipywidgets.IntSlider(
            min=0, max=0, description="event", continuous_update=True, layout={"width": "98%"}
        )
        self._timeline.observe(self._scrubbed, "value")
        self._play = _button("play", "play or pause (space)", lambda: do({"do": "play"}), "play")
        self._kind = ipywidgets.Dropdown(options=kinds, value=self.session.kind, layout={"width": "190px"})
        self._kind.observe(lambda change: do({"do": "set_kind", "kind": change.new}), "value")
        self._speed = ipywidgets.Dropdown(options=SPEEDS, value=1, layout={"width": "90px"})
        self._speed.observe(lambda change: do({"do": "pace", "value": change.new}), "value")
        self._time = ipywidgets.FloatText(value=0, description="ms", layout={"width": "180px"})
        self._whom, self._link = ipywidgets.HTML(), ipywidgets.HTML()
        for control, label in (
            (self._kind, "the event kind that next and previous look for"),
            (self._speed, "seconds of the world per second"),
            (self._time, "a time of the world in ms"),
        ):
            control.tooltip = label

    def _rows_of_controls(self) -> list[Any]:
        def to(command: str, words: str, tip: str, icon: str = "") -> Any:
            return _button(words, tip, lambda: self.session.do({"do": command}), icon)

        go = _button("go", "go to this time", lambda: self.session.do({"do": "to_time", "ms": self._time.value}))
        stepping = [
            to("start", "start", "before the first event (Home)", "fast-backward"),
            to("back", "back", "one event back (p, arrow left)", "step-backward"),
            to("step_event", "event", "one event on (n, arrow right)", "step-forward"),
            to("step_slice", "slice", "play one slice (s)", "step-forward"),
            to("now", "now", "to the newest event (End)", "fast-forward"),
            self._play,
            self._speed,
        ]
        seeking = [
            to("previous_kind", "previous", "the event of this kind before ([)", "chevron-left"),
            self._kind,
            to("next_kind", "next", "to the next event of this kind, playing if need be (])", "chevron-right"),
            to("to_breakpoint", "to a breakpoint", "play up to the next breakpoint of the lab", "flag"),
            self._time,
            go,
        ]
        breaking = [
            self._whom,
            to("crash", "crash", "kill the chosen machine's process"),
            to("power_off", "power off", "pull the plug of the chosen machine"),
            to("freeze", "freeze", "let the chosen machine's process hang"),
            to("thaw", "thaw", "let it go on"),
            to("restart", "restart", "start the chosen machine's process again"),
            self._link,
            to("cut", "cut the link", "between the two machines clicked last"),
            to("heal", "heal the link", "between the two machines clicked last"),
            to("share", "share", "a text that brings back this world at this event", "share-alt"),
        ]
        return [ipywidgets.HBox(row, layout={"flex_flow": "row wrap"}) for row in (stepping, seeking, breaking)]

    def _scrubbed(self, change: Any) -> None:
        if not self._moving:
            self.session.do({"do": "goto", "place": change.new})

    # -- frames -----------------------------------------------------------------------------------------------------

    def _command(self, command: dict[str, Any]) -> None:
        if command["do"] in ("shown", "hidden"):
            self._looked_at += 1 if command["do"] == "shown" else -1
            self._changed()
        else:
            self.session.do(command)

    def _changed(self) -> None:
        """The session did something."""
        self._watch()
        if self._looked_at > 0:
            self._pump.show()

    def _post(self, function: Callable[[], None]) -> None:
        self.session.lab.world.door.post(function)

    def _watch(self) -> None:
        """Follow the world that is shown, also while cells play it."""
        if self._watched is not self.session.lab:
            if self._sink is not None:
                self._sink.detach()
            self._watched = self.session.lab
            self._sink = WeakSink(self._watched.world.hooks, self._on_row)

    def _on_row(self, row: tuple[Any, ...]) -> None:
        self._rows += 1
        look = self._rows % EVENTS_PER_LOOK == 0
        if look:
            self.session.lab.forget_sources()
        if self._looked_at > 0:
            if look:
                self._post(self._pump.ask)
            elif not self._pump.waiting:
                self._pump.arm()

    def _draw(self) -> Frame:
        session, history = self.session, self.session.lab.history
        self._moving = True
        try:
            self._timeline.max = len(history)
            self._timeline.value = history.cursor
        finally:
            self._moving = False
        self._whom.value = f"<b>break {escape(session.chosen or 'it: click a machine')}:</b>"
        self._link.value = f"<b>{escape(f'{session.other} and {session.chosen}:')}</b>" if session.other else ""
        self._play.description = self._play.icon = "pause" if session.playing else "play"
        event = session.event()
        stage, *boards = session.boards()
        assert isinstance(stage, StageBoard)
        return {
            "_place": str(history.cursor),
            "_length": str(len(history)),
            "_world": str(session.now),
            "_taken": str(session.taken),
            "where": panels.where(session),
            "said": panels.said(session),
            "stage": scene_of(stage, self._look(event)).svg(),
            "side": panels.side(session),
            "machine": machine_html(session),
            "boards": _boards_html(boards),
            "text": _text_twin([stage, *boards]),
        }

    def _look(self, event: Record | None) -> Look:
        session = self.session
        now_us = session.lab.world.now_us if session.at_end or event is None else event.ts_us
        return Look(
            chosen=session.chosen,
            other=session.other,
            opened=frozenset(session.opened_kinds),
            now_us=now_us,
            past=not session.at_end,
        )

    # -- without a front end ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        history = self.session.lab.history
        return f"<Stepper: event {history.cursor} of {len(history)}>"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it the picture and the text of this moment, which are what a page keeps."""
        self._pump.send()
        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        lines = [line for board in self.session.boards() for line in board.text()]
        frame = self.viewer.frame
        html = f"<div>{frame['where']}</div>{frame['stage']}{frame['boards']}"
        return {**data, "text/html": html, "text/plain": "\n".join([repr(self), *lines])}, metadata


def _button(words: str, tip: str, act: Callable[[], None], icon: str = "") -> Any:
    button = ipywidgets.Button(description=words, tooltip=tip, icon=icon, layout={"width": "auto"})
    button.on_click(lambda _: act())
    return button


def _boards_html(boards: Sequence[Board]) -> str:
    shown = "".join(
        f'<section class="mq-board" data-key="{escape(board.title)}">'
        f"<h4>{escape(board.title)}</h4>{board.html()}</section>"
        for board in boards
    )
    return f'<div class="mq-boards">{shown}</div>' if shown else ""


def _text_twin(boards: Sequence[Board]) -> str:
    lines = "\n".join(escape(line) for board in boards for line in [f"{board.title}:", *board.text()])
    return f'<details data-key="text"><summary>the same as text</summary><pre>{lines}</pre></details>'
