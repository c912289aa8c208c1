"""What a viewer does to a world: plays, steps, jumps and looks (`breaking.py` breaks, `worlds.py` goes back)."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MqlabError
from mqlab.scenarios.captions import Storyboard
from mqlab_widgets import timeline
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.boards.lives import Lives
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.breaking import Breaking
from mqlab_widgets.player import Player, player_of
from mqlab_widgets.scene.picture import STAGE, Picture
from mqlab_widgets.scene.scene import Look, Scene
from mqlab_widgets.search import Search
from mqlab_widgets.sharing import Shared, shared_text
from mqlab_widgets.story import Beat, Story
from mqlab_widgets.telling import NOTHING_LEFT
from mqlab_widgets.verbs import LINKS, MACHINES
from mqlab_widgets.words import clock, line_at
from mqlab_widgets.worlds import Branch, Worlds

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.scenarios.registry import Caption
    from mqlab.trace.record import Record

SEARCH_MS, STORY_MS = 60_000, 300_000
"""So much of the world's time a search plays before it asks whether to go on."""
EVENTS_PER_PIECE = 500
MOST_DRAWN = 8
"""How many of the choices that were drawn last are shown."""
LEAST_PX, MOST_PX = 320, 4_000
"""Sides of a stage."""

PAUSING = (
    *("step_event", "step_slice", "back", "start", "goto", "now", "next_kind", "previous_kind", "to_time"),
    *("next_caption", "previous_caption"),
    *("to_breakpoint", "back_to", "pick", "hold", "take_back", "override", "branch"),
)
"""The commands that end playing, because they say themselves where to go."""
LOOKING = ("choose", "choose_link", "follow", "open_kind", "pace", "set_kind", "cancel")
"""The commands that touch no world."""


class Session(Worlds, Breaking):
    """A world under a viewer: its boards at the cursor, what is chosen, what was said, and its branches.

    `do(command)` carries out {"do": name, ...}; whatever goes wrong becomes the sentence `said`, never an error in the
    page. `changed` is called after everything that may have changed the picture; `on_story` gets the beats while the
    world is played (see `story.py`), and the number of the play that they belong to; `around()` draws the small parts
    of the page that go with a beat. None are drawn unless `watched`.
    """

    def __init__(
        self,
        lab: Lab,
        boards: Iterable[type[Board]] = (),
        *,
        changed: Callable[[], None],
        on_story: Callable[[list[Beat], int], None] | None = None,
        around: Callable[[], dict[str, str]] = dict,
        picture: Picture = STAGE,
    ) -> None:
        self.picture = picture
        self._kinds_of_boards = list(boards)
        self._changed = changed
        self._on_story = on_story
        self._around = around
        self._watched = on_story is not None
        self.branches = [Branch(0, -1, 0, "the first world", lab)]
        self.now = 0
        self.kind = "MessageStored"
        self.chosen = ""
        self.other = ""
        self.followed = ""
        """The message whose way is lit: its unique key."""
        self.width, self.height = 1000.0, 0.0
        """px of the stage on the page; its height counts in projector mode."""
        self.big = False
        """Projector mode: the stage alone, large."""
        self.opened_kinds: set[str] = set()
        """The kinds of machines of which all are drawn, however many there are."""
        self.opened: set[str] = set()
        """Paths of the parts that are opened in the generic inspector."""
        self.queue: tuple[str, int, int] = ("", 0, -1)
        """(topic, queue id, offset) of the message whose bytes are shown; -1: the newest."""
        self.said = ""
        self.taken = 0
        """How many commands have been taken, by which a page sees that it is heard."""
        self.shared: Shared | None = None
        """What to send to somebody, after `do_share` and until the next command."""
        self.older = ""
        """The name under which a cell has made another world since; "" as long as none has."""
        self.back_offer: tuple[int, str] | None = None
        """After a search has gone far: the place where it began, and "back to 20.1 s"."""
        self._search: Search | None = None
        self._at: int | None = None
        """Behind how many events what is shown stands, while it cannot follow a cell."""
        self._compared: dict[frozenset[int], int] = {}
        self._scene: Scene
        self._drawn: tuple[Fold, int, Look] | None = None
        """Of which stage, at which place and how looked at `scene` was drawn last."""
        self._lines: tuple[Fold | None, int, list[str], list[str]] = (None, 0, [], [])
        """Of which stage and place these are the lines of all boards, and those that were new there."""
        self._show(0)

    def _show(self, number: int) -> None:
        if hasattr(self, "player"):
            self.player.leave(self)
        self.now = number
        lab = self.lab
        self._stage = Fold(lab.history, [self.picture.board(lab)])
        self._lives = Fold(lab.history, [Lives(lab)])
        self._fold = Fold(lab.history, [kind(lab) for kind in self._kinds_of_boards])
        self._storyboard = Storyboard(lab)
        self._at = None
        if lab.world.choices.log is None:
            lab.world.choices.log = deque(maxlen=MOST_DRAWN)
        lab.watchers.add(self)
        self.player: Player = player_of(lab)
        self.story = Story(self)
        self.player.join(self)

    # -- what is shown ----------------------------------------------------------------------------------------------

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        return self.branches[self.now].lab

    @property
    def playing(self) -> bool:
        """Whether the world passes, for this view and all others of it."""
        return self.player.playing

    @property
    def searching(self) -> str:
        """What is being looked for, in words; "" if nothing is."""
        return "" if self._search is None else self._search.what

    @property
    def moving(self) -> bool:
        """Whether time passes in the world at this moment: it is being played here, or by a cell."""
        return self.playing or self._search is not None or self.lab.world.door.is_playing

    @property
    def at_end(self) -> bool:
        """Whether what is shown is the world's present: the cursor stands at the newest event."""
        return self.place() >= len(self.lab.history)

    @property
    def past(self) -> bool:
        """Whether what is shown is over: the world has gone on since."""
        return self.lab.history.cursor < len(self.lab.history) and not self.player.live

    @property
    def over(self) -> bool:
        """Whether the world has gone on since, or something was done to it: not so in the middle of the newest slice,
        which nothing from outside can divide.
        """
        if not self.past:
            return False
        history, place = self.lab.history, self.lab.history.cursor
        newest = history.row(len(history) - 1)[0]
        return place == 0 or history.row(place - 1)[0] != newest or self._done_later(self.event()) > 0

    @property
    def now_us(self) -> int:
        """The world's time at the cursor: 0 before the first event."""
        event = self.event()
        if self.at_end:
            return self.lab.world.now_us
        return 0 if event is None else event.ts_us

    @property
    def watched(self) -> bool:
        """Whether a page shows this view; nobody draws beats for none."""
        return self._watched

    @watched.setter
    def watched(self, watched: bool) -> None:
        if watched and not self._watched:
            self._at = None
        self._watched = watched

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

    def caption(self) -> Caption | None:
        """What a scenario tells of itself at the cursor, which is shown in projector mode alone."""
        return self._storyboard.at(self.place()) if self.big else None

    def seen(
        self, width: float | str | None = None, height: float | str | None = None, big: bool | str | None = None
    ) -> None:
        """How large the stage is on the page, in px, and whether it is there alone, in letters for a hall (projector
        mode); what is not told stays as it is.
        """
        wide = self.width if width is None else _px(width, LEAST_PX)
        high = self.height if height is None else _px(height, 0)
        self.width, self.height = wide, high
        self.big = self.big if big is None else big in (True, 1, "true", "1", "on")

    def look(self) -> Look:
        """How this viewer looks at the stage."""
        caption = self.caption()
        return Look(
            width=self.width,
            big=self.big,
            height=self.height,
            chosen=self.chosen,
            other=self.other,
            pointed=caption.points_to if caption is not None else "",
            followed=self.followed,
            opened=frozenset(self.opened_kinds),
            now_us=self.now_us,
            past=self.past,
        )

    def stage(self) -> StageBoard:
        """The stage at the cursor."""
        self._stage.go_to(self.place())
        (board,) = self._stage.boards
        assert isinstance(board, StageBoard)
        return board

    def scene(self) -> Scene:
        """What is to be seen of the stage at the cursor; the same object as long as nothing has changed."""
        drawn = (self._stage, self.place(), self.look())
        if self._drawn != drawn:
            before = self._scene if self._drawn is not None and self._drawn[0] is self._stage else None
            self._scene, self._drawn = self.picture.scene_of(self.stage(), drawn[-1], before), drawn
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
        stage, at, lines, new = self._lines
        if (stage, at) != (self._stage, place):
            # Who steps on knows already how it was before.
            before = set(lines if (stage, at) == (self._stage, place - 1) else self._lines_at(place - 1))
            lines = self._lines_at(place)
            new = [line for line in lines if line not in before]
            self._lines = self._stage, place, lines, new
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

    def around(self) -> dict[str, str]:
        """The small parts of the page around the stage, at the cursor."""
        return self._around()

    def line(self) -> str:
        """What is said of the shown world at the cursor, in plain words."""
        return line_at(self.lab, self.place())

    def offers(self) -> set[str]:
        """The commands that can be done now."""
        history, world = self.lab.history, self.lab.world
        goes_on = not self.at_end or world.next_due_us() is not None
        offered = {
            "play": goes_on or self.playing or world.door.is_playing,
            "step_event": goes_on,
            "step_slice": goes_on,
            "next_kind": goes_on,
            "to_time": True,
            "to_breakpoint": goes_on and bool(self.lab.breakpoints),
            "back": history.cursor > 0,
            "start": history.cursor > 0,
            "previous_kind": history.cursor > 0,
            "now": not self.at_end,
            "cancel": self._search is not None,
            "back_to": self.back_offer is not None,
        }
        names = {name for name, possible in offered.items() if possible}
        return names | self._faults_offered() | self._worlds_offered()

    # -- commands ---------------------------------------------------------------------------------------------------

    def do(self, command: dict[str, Any]) -> None:
        """Carry out a command of the page or of a control."""
        self.taken += 1
        name, arguments = command["do"], {key: value for key, value in command.items() if key != "do"}
        if name in PAUSING:
            self.player.pause()
            self._end_search()
            self._at = None
            self.back_offer = self.back_offer if name == "back_to" else None
        self.said, self.shared = "", None
        if self._command(name) is None:
            self.said = f"There is no command {name!r}."
        elif self._another_plays() and name != "play":
            self._while_another_plays(name, arguments)
        else:
            self._act(name, arguments)
        self._tell_all()

    def _tell_all(self) -> None:
        if self.player.watch is not None:
            self.player.watch.note()
        for watcher in list(self.lab.watchers):
            watcher.changed()

    def _command(self, name: str) -> Callable[..., None] | None:
        """What carries out the command of that name; None where there is none."""
        if name in MACHINES:
            return partial(self._machine, name)
        if name in LINKS:
            return partial(self._link, name)
        return getattr(self, f"do_{name}", None)

    def _act(self, name: str, arguments: dict[str, Any]) -> None:
        command = self._command(name)
        assert command is not None
        try:
            command(**arguments)
        except (MqlabError, TypeError, ValueError) as error:
            self.said = str(error)
        except KeyboardInterrupt:
            self.said = "Stopped."

    def _another_plays(self) -> bool:
        """Whether a cell is playing the world at this moment (it can only be seen from another thread)."""
        return self.lab.world.door.is_playing

    def _while_another_plays(self, name: str, arguments: dict[str, Any]) -> None:
        if name in (*MACHINES, *LINKS) and arguments.get("where") != "new":
            self.lab.world.door.post(lambda: self._act(name, arguments))
        elif name in LOOKING:
            self._act(name, arguments)
        else:
            self.said = "A cell is playing this world. Wait for it, or press the notebook's stop button."

    def close(self) -> None:
        """Leave the worlds: stop playing, and be told nothing any more."""
        self._watched = False
        self._end_search()
        self.player.leave(self)
        for lab in (branch.lab for branch in self.branches):
            lab.watchers.discard(self)

    def changed(self) -> None:
        """Something was done to the world, by this view or by another one of it."""
        self._changed()

    # -- playing ----------------------------------------------------------------------------------------------------

    def do_play(self) -> None:
        """Play from the cursor on, or pause: in the past the record is played, and then the world."""
        if self.playing:
            self.player.pause()
        elif self._another_plays():
            self.lab.world.door.post(self.lab.world.request_stop)
        else:
            self._end_search()
            self.back_offer = None
            self.player.play()

    def do_pace(self, value: str | float) -> None:
        """At story pace, or at so many seconds of the world per second."""
        self.player.pace = "story" if value == "story" else float(value)

    def tell(self, beats: list[Beat]) -> None:
        """Show these beats."""
        if self._on_story is not None:
            self._on_story(beats, self.player.began)

    def stopped(self, words: str) -> None:
        """The player has stopped; `words` say why, "" if somebody wanted it."""
        if words:
            self.said = words
        self._changed()

    # -- stepping and jumping ---------------------------------------------------------------------------------------

    def do_step_event(self) -> None:
        """One event on; at the end the world is played for it."""
        with self.player.stepping():
            self.lab.step_event()

    def do_step_slice(self) -> None:
        """One slice on; at the end it is played."""
        history = self.lab.history
        if not self.at_end:
            place = history.cursor
            slice_no = history.row(place)[0]
            while place < len(history) and history.row(place)[0] == slice_no:
                place += 1
            with self.player.stepping():
                history.move_to(place)
        else:
            with self.player.stepping():
                played = self.lab.step() or self.lab.world.pending()
            if not played:
                self.said = NOTHING_LEFT

    def do_back(self) -> None:
        """One event back."""
        if self.lab.history.cursor == 0:
            self.said = "This is the beginning: nothing has happened before it."
        self.lab.history.move_to(self.lab.history.cursor - 1)

    def do_start(self) -> None:
        """Before the first event."""
        self.lab.history.move_to(0)

    def do_now(self) -> None:
        """To the newest event."""
        self.lab.history.move_to(len(self.lab.history))

    def do_goto(self, place: int | str) -> None:
        """Behind so many events."""
        self.lab.history.move_to(int(place))

    def do_set_kind(self, kind: str) -> None:
        """The event kind that the next and previous buttons look for."""
        self.kind = kind

    def do_previous_kind(self) -> None:
        """To the event of the chosen kind before this one."""
        if self.lab.history.back(self.kind) is None:
            self.said = f"No {self.kind} happened before this."

    # -- searching: what may play for long --------------------------------------------------------------------------

    def do_next_kind(self) -> None:
        """To the next event of the chosen kind, playing the world when none has happened yet."""
        if self.lab.history.forward(self.kind) is None:
            kind = self.kind
            self._begin_search(Search(self.lab, f"the next {kind}", SEARCH_MS, kind=kind))

    def do_next_caption(self) -> None:
        """To the next sentence of the scenario's story, playing the world when its event has not happened yet."""
        board, here = self._storyboard, self.place()
        place = board.after(here)
        if place is not None:
            self.do_goto(place)
        elif board.told:
            self.said = "The story is told; what comes now is not in it."
        else:
            self._begin_search(Search(self.lab, "the next caption", STORY_MS, place=lambda: board.after(here)))

    def do_previous_caption(self) -> None:
        """To the sentence of the scenario's story before this one."""
        place = self._storyboard.before(self.place())
        if place is None:
            self.said = "This is where the story begins."
        else:
            self.do_goto(place)

    def do_to_breakpoint(self) -> None:
        """Play up to the next breakpoint of the lab."""
        if not self.lab.breakpoints:
            raise LearnerError("this lab has no breakpoint", "set one in a cell: lab.add_breakpoint('PullHeld')")
        self._begin_search(Search(self.lab, "a breakpoint", SEARCH_MS, breakpoints=True))

    def do_to_time(self, ms: float | str) -> None:
        """To a time of the world: back by the cursor, forward by playing."""
        lab, ms = self.lab, float(ms)
        if ms > lab.now_ms:
            self._begin_search(Search(lab, clock(round(ms * 1_000)), ms - lab.now_ms))
        else:
            lab.history.move_to(lab.history.place_after(ms))

    def do_cancel(self) -> None:
        """Stop what is looked for, where it has come to."""
        if self._search is not None:
            self._search.cancel()

    def do_back_to(self, place: int | str) -> None:
        """Back to where a search began."""
        self.back_offer = None
        self.do_goto(place)

    def _begin_search(self, search: Search) -> None:
        from_us, place = self.now_us, self.lab.history.cursor
        self.do_now()
        self._search = search
        offer = (place, f"back to {from_us / 1_000_000:,.1f} s")

        def ended(words: str) -> None:
            self._search, self.said, self.back_offer = None, words, offer
            self._tell_all()

        search.run(ended, self._tell_all)

    def _end_search(self) -> None:
        if self._search is not None:
            self._search.drop()
            self._search = None

    # -- looking ----------------------------------------------------------------------------------------------------

    def do_follow(self, message: str) -> None:
        """Light the way of a message, by its unique key; "" or the same again: of none."""
        self.followed = "" if message == self.followed else message

    def do_open_kind(self, kind: str) -> None:
        """Draw all machines of a kind, or sum the most of them up again."""
        self.opened_kinds ^= {kind}

    def do_open_part(self, path: str) -> None:
        """Open a part in the generic inspector, or close it."""
        self.opened ^= {path}

    def do_show_queue(self, topic: str, queue_id: int | str, offset: int | str = -1) -> None:
        """The queue, and the message in it, whose bytes are shown."""
        self.queue = (topic, int(queue_id), int(offset))

    def do_share(self, place: int | str | None = None) -> None:
        """Show the text that brings back this world at this event, or behind so many events: while a world is played,
        what is seen on the page is a little older than what is known here.
        """
        here = self.lab.history.cursor
        at = here if place is None or place == "" else min(max(int(place), 0), len(self.lab.history))
        self.shared = Shared(shared_text(self.lab, at), at)


def _px(side: float | str, least: float) -> float:
    """A side of a stage, within its bounds."""
    if not math.isfinite(float(side)):
        raise LearnerError(f"a stage cannot be {side} px large", "give a number of px")
    return min(max(float(side), least), MOST_PX)
