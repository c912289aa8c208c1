"""The stepper: a world's stage with the bar under it, which is the same in every lab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mqlab.errors import LearnerError
from mqlab_widgets import controls, panels
from mqlab_widgets.boards.board import Board
from mqlab_widgets.links import is_link, link_of, open_link
from mqlab_widgets.machine import machine_html
from mqlab_widgets.older import tell_when_older
from mqlab_widgets.scene.picture import STAGE, Picture
from mqlab_widgets.session import Session
from mqlab_widgets.sharing import reopened, save_shared, shared_at
from mqlab_widgets.stations import stations_html
from mqlab_widgets.timeline import timeline_html
from mqlab_widgets.viewer import Frame, FramePump, Viewer, answer_beside_cells
from mqlab_widgets.words import clock

if TYPE_CHECKING:
    from mqlab import Lab

PLAYING_SECONDS = 0.3
"""So often what stands around the story is drawn anew while the world is played."""

RENEW_SECONDS = 0.3
"""So long a page that comes waits for the picture of now, while another thread plays the world."""


class Screen(NamedTuple):
    """How a page shows a view: the room of the stage in px, and whether it is there alone (projector mode)."""

    width: float
    height: float
    big: bool


class Stepper(Viewer):
    """A live view of a lab: `Stepper(lab)` as the last line of a cell.

    Without a front end (or on a page) it is the picture of the last frame, as it was when the cell ended. With
    `play=True` the world begins to play as soon as a page shows it, with `projector=True` the page shows the stage
    alone, in projector mode, until Escape. `close()` takes the view off the page and off the
    world, which goes on without it.
    """

    picture: ClassVar[Picture] = STAGE
    """What is seen of the world; another kind of stepper says another one."""

    def __init__(
        self, lab: Lab, boards: Sequence[type[Board]] = (), *, play: bool = False, projector: bool = False
    ) -> None:
        if not hasattr(lab, "world"):
            raise LearnerError(f"{lab!r} is not a lab", "write Stepper(lab)")
        given = boards if isinstance(boards, list | tuple) else [None]
        if not all(isinstance(board, type) and issubclass(board, Board) for board in given):
            raise LearnerError(f"{boards!r} is no list of boards", "write Stepper(lab, [RoutesBoard]), with its class")
        self.session = Session(
            lab, boards, changed=self._changed, on_story=self._tell, around=self._words, picture=self.picture
        )
        self.session.watched = False
        self._tabs = [name for name in controls.TABS if name != "boards" or boards]
        self._tab = self._tabs[0]
        self._about_link = False
        """Whether the menu of faults is about the link that was clicked, and not about a machine."""
        self._to_play = play
        self._to_project = projector
        self._drawn_for: Screen | None = None
        """How large the stage was drawn last; a story changes what is in it, and not its size."""
        self._stepped = False
        """Whether the page was told the last step as a story, and shows its end or soon will."""
        self._pages: dict[str, Screen] = {}
        """The pages that show this view, as each said last; it is drawn for the one that was heard last, which comes
        last. Nobody draws for none.
        """
        self._whole = False
        """Whether a page has to be sent all of it."""
        super().__init__(self._command)
        self._pump = FramePump(self._show, self._post)
        self._around = FramePump(self._show, self._post, PLAYING_SECONDS)
        answer_beside_cells(self)
        self._pump.send()
        tell_when_older(self.session, self._is_older)

    @classmethod
    def reopen(
        cls, shared: str | PurePath, boards: Sequence[type[Board]] = (), *, allow_source: bool = False
    ) -> Stepper:
        """A stepper of the world in a shared text, link or file, at its event (`mqlab_widgets.sharing`)."""
        if isinstance(shared, str) and is_link(shared):
            lab, notes = open_link(shared)
            stepper = cls(lab, boards)
            stepper.session.said = " ".join(notes)
            return stepper
        return cls(reopened(shared, allow_source=allow_source), boards)

    def share(self, path: str | PurePath | None = None) -> str:
        """What brings back this world at this event: a line of text, also written to a file if `path` is given."""
        if path is not None:
            save_shared(self.session.lab, path)
        shared = shared_at(self.session.lab, self.session.lab.history.cursor)
        return shared.text or shared.link

    def link(self, base: str | None = None) -> str:
        """The address that opens this world at this event in a browser alone, on the site at `base`, or at the one that
        MQLAB_SITE names (`mqlab_widgets.links`).
        """
        return link_of(self.session.lab, base=base)

    def close(self) -> None:
        """Take the view off the page and off its worlds."""
        if self.comm is not None:
            self.session.close()
            self._pump.close()
            self._around.close()
        super().close()

    def _is_older(self, name: str) -> None:
        """A cell has made another world under the name of this one."""
        self.session.player.in_turn(partial(self._say_older, name))

    def _say_older(self, name: str) -> None:
        self.session.older = name
        self.session.said = (
            f"This view shows an older world: {name} is another one since a cell was run again. "
            "Run the cell of this view again to see that one."
        )
        self._changed()

    # -- what the page says -----------------------------------------------------------------------------------------

    def _take(self, widget: Any, content: Any, buffers: Any) -> None:
        self.session.player.in_turn(partial(super()._take, widget, content, buffers))

    def _command(self, command: dict[str, Any]) -> None:
        session = self.session
        page = str(command.get("view", ""))
        command = {name: value for name, value in command.items() if name != "view"}
        match command["do"]:
            case "shown":
                self._shown(page, command)
            case "hidden":
                self._hidden(page)
            case "here":
                # Who asks wants to know whether it can be asked.
                pass
            case "tab" if command.get("name") in self._tabs:
                self._tab = command["name"]
                session.taken += 1
                self._changed()
            case name:
                if name in ("choose", "choose_link"):
                    self._about_link = name == "choose_link"
                self._draw_for(page)
                session.do(command)

    def _shown(self, page: str, said: dict[str, Any]) -> None:
        """A page shows this view, has another size or mode, or has missed something: it gets all of it, drawn anew."""
        session = self.session
        try:
            session.page.seen(**{name: said[name] for name in Screen._fields if name in said})
        except (LearnerError, TypeError, ValueError) as error:
            session.said = str(error)
        self._pages.pop(page, None)
        self._pages[page] = self._screen()
        session.watched = True
        self._whole, self._stepped = True, False
        if self._to_play:
            self._to_play = False
            session.do({"do": "play"})
        self._changed()
        if self._to_project:
            self._to_project = False
            self.say({"project": page})

    def _hidden(self, page: str) -> None:
        """A page shows this view no more."""
        self._pages.pop(page, None)
        self.session.watched = bool(self._pages)
        if self._pages:
            self._draw_for(next(reversed(self._pages)))

    def _draw_for(self, page: str) -> None:
        """Draw in the size of this page, which does something; others show the same picture, enlarged or reduced."""
        screen = self._pages.get(page)
        if screen is not None and screen != self._screen():
            self._shown(page, screen._asdict())

    # -- frames and stories -----------------------------------------------------------------------------------------

    def _changed(self) -> None:
        """The session did something, or somebody else did."""
        if self._pages:
            # The page shows the step already; what is below waits until it has painted that.
            self._pump.show(soon=self._stepped)

    def _tell(self, beats: list[dict[str, Any]], began: int) -> None:
        self._stepped = self.session.player.stepped
        self.tell(beats, began, self._step() if self._stepped else None)
        if not self._stepped:
            self._around.ask()

    def _words(self) -> Frame:
        """What is said at the cursor of the followed message, and in front of a class of all of it."""
        session = self.session
        caption = session.caption()
        return {
            "stations": stations_html(session.cursor.lives(), session.page.followed, session.cursor.now_us),
            "caption": escape(caption.words) if caption is not None else "",
        }

    def _post(self, function: Callable[[], None]) -> None:
        self.session.lab.world.door.post(function)

    def _show(self) -> None:
        """Draw, and send what has changed, or all of it where a page needs that."""
        session, whole, self._whole = self.session, self._whole, False
        frame, screen = self._draw(), self._screen()
        if whole or not session.playing or screen != self._drawn_for:
            scene = session.scene()
            if self._stepped and screen == self._drawn_for and scene.parts == session.story.parts:
                self.told({"stage": scene.svg()})
            self._drawn_for, self._stepped = screen, False
            session.story.shown(scene)
            frame |= self._picture()
        if whole:
            self.show_whole({"said": panels.said(session), **frame})
        else:
            self.show(frame)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """What a page begins with; when it asks for all of it, the picture is that of now."""
        if key is None and self.comm is not None:
            self.session.player.in_turn(partial(self._post, self._renew), RENEW_SECONDS)
        state: dict[str, Any] = super().get_state(key, drop_defaults)
        return state

    def _renew(self) -> None:
        self.frame = {**self.frame, **self._draw(), **self._picture()}

    def _screen(self) -> Screen:
        return Screen(self.session.page.width, self.session.page.height, self.session.page.big)

    def _now(self) -> Frame:
        """Where the world stands."""
        session = self.session
        return {
            "_length": str(len(session.lab.history)),
            "_world": str(session.worlds.now),
            "_taken": str(session.taken),
            "_playing": "true" if session.playing else "false",
            "_tab": self._tab,
            "bar": controls.bar_html(session),
        }

    def _place(self) -> Frame:
        """Where the cursor stands."""
        session = self.session
        return {
            "_place": str(session.cursor.place()),
            "_us": str(session.cursor.now_us),
            "_clock": clock(session.cursor.now_us),
            "_past": "true" if session.cursor.past else "false",
        }

    def _picture(self) -> Frame:
        """What the story shows, as a whole."""
        return {**self._place(), "stage": self.session.scene().svg(), **self._words()}

    def _step(self) -> Frame:
        """What a step shows at once beside its story."""
        return {**self._now(), **self._place(), "said": panels.said(self.session)}

    def _draw(self) -> Frame:
        """What stands around the stage as it is now; while the world is played, what the story does not show itself."""
        session = self.session
        frame = {
            **self._now(),
            "more": controls.more_html(session),
            "menu": controls.menu_html(session, link=self._about_link),
            "handles": controls.handles_html(session),
            "timeline": timeline_html(session.cursor, session.worlds, session.page.width),
            "tabs": controls.tabs_html(self._tabs, self._tab),
            self._tab: self._panel(),
        }
        if session.said or not session.playing:
            frame["said"] = panels.said(session)
        return frame

    def _panel(self) -> str:
        """What stands in the tab that is open."""
        session = self.session
        match self._tab:
            case "boards":
                return _boards_html(session.cursor.boards()[1:])
            case "text":
                return _text_twin(session.cursor.boards())
            case "machine":
                return machine_html(session)
            case "next":
                return panels.next_html(session)
            case "worlds":
                return panels.worlds_html(session)
        return panels.step_html(session)

    # -- without a front end ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        history = self.session.lab.history
        return f"<Stepper: event {history.cursor} of {len(history)}>"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and beside it the picture and the text of this moment, which are what a page keeps."""
        self.session.cursor.be_there()
        self._pump.send()
        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        boards = self.session.cursor.boards()
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
