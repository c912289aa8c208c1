"""What a viewer does to a world: a session takes the commands of a page, carries them out and tells what came of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from mqlab.errors import MqlabError
from mqlab_widgets.boards.board import Board
from mqlab_widgets.commands import COMMANDS, Command
from mqlab_widgets.cursor import Cursor
from mqlab_widgets.page_state import PageState
from mqlab_widgets.player import Player, player_of
from mqlab_widgets.scene.picture import STAGE, Picture
from mqlab_widgets.scene.scene import Look, Scene
from mqlab_widgets.story import Beat, Story
from mqlab_widgets.worlds import Worlds

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.scenarios.registry import Caption
    from mqlab_widgets.search import Search
    from mqlab_widgets.sharing import Shared

MOST_DRAWN = 8
"""How many of the choices that were drawn last are shown."""


class Session:
    """A world under a viewer: `page` is what was chosen there, `worlds` the tree of worlds that were played, `cursor`
    where in the one that is shown it stands.

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
        self.page = PageState()
        self.worlds = Worlds(lab)
        self.cursor: Cursor
        self.said = ""
        self.taken = 0
        """How many commands have been taken, by which a page sees that it is heard."""
        self.shared: Shared | None = None
        """What to send to somebody, after the command `share` and until the next one."""
        self.older = ""
        """The name under which a cell has made another world since; "" as long as none has."""
        self.back_offer: tuple[int, str] | None = None
        """After a search has gone far: the place where it began, and "back to 20.1 s"."""
        self.search: Search | None = None
        """What is being looked for."""
        self.show_world()

    def show_world(self) -> None:
        """Show the world that `worlds` says, from where its cursor stands."""
        if hasattr(self, "player"):
            self.player.leave(self)
        lab = self.lab
        if lab.world.choices.log is None:
            lab.world.choices.log = deque(maxlen=MOST_DRAWN)
        lab.watchers.add(self)
        self.player: Player = player_of(lab)
        self.cursor = Cursor(lab, self.picture, self._kinds_of_boards, self.player.is_live)
        self.story = Story(self)
        self.player.join(self)

    # -- what is shown ----------------------------------------------------------------------------------------------

    @property
    def lab(self) -> Lab:
        """The world that is shown."""
        return self.worlds.lab

    @property
    def playing(self) -> bool:
        """Whether the world passes, for this view and all others of it."""
        return self.player.playing

    @property
    def another_plays(self) -> bool:
        """Whether a cell is playing the world at this moment (it can only be seen from another thread)."""
        world = self.lab.world
        return world.door.is_playing and world.door.thread != world.outside.thread

    @property
    def searching(self) -> str:
        """What is being looked for, in words; "" if nothing is."""
        return "" if self.search is None else self.search.what

    @property
    def moving(self) -> bool:
        """Whether time passes in the world at this moment: it is being played here, or by a cell."""
        return self.playing or self.search is not None or self.another_plays

    @property
    def watched(self) -> bool:
        """Whether a page shows this view; nobody draws beats for none."""
        return self._watched

    @watched.setter
    def watched(self, watched: bool) -> None:
        if watched and not self._watched:
            self.cursor.be_there()
        self._watched = watched

    def caption(self) -> Caption | None:
        """What a scenario tells of itself at the cursor: in projector mode, and where a page has captions."""
        return self.cursor.caption() if self.page.big or self.page.captions else None

    def look(self) -> Look:
        """How this viewer looks at the stage."""
        page, caption = self.page, self.caption()
        return Look(
            width=page.width,
            big=page.big,
            height=page.height,
            chosen=page.chosen,
            other=page.other,
            pointed=caption.points_to if caption is not None else "",
            followed=page.followed,
            opened=frozenset(page.opened_kinds),
            now_us=self.cursor.now_us,
            past=self.cursor.past,
        )

    def scene(self) -> Scene:
        """What is to be seen of the stage at the cursor; the same object as long as nothing has changed."""
        return self.cursor.scene(self.look())

    def around(self) -> dict[str, str]:
        """The small parts of the page around the stage, at the cursor."""
        return self._around()

    # -- commands ---------------------------------------------------------------------------------------------------

    def do(self, asked: dict[str, Any]) -> None:
        """Carry out a command of the page or of a control."""
        self.taken += 1
        name, arguments = asked["do"], {key: value for key, value in asked.items() if key != "do"}
        command = COMMANDS.get(name)
        if command is not None and command.pauses:
            self.player.pause()
            self.end_search()
            self.cursor.be_there()
            self.back_offer = self.back_offer if name == "back_to" else None
        self.said, self.shared = "", None
        if command is None:
            self.said = f"There is no command {name!r}."
        elif self.another_plays and name != "play":
            self._while_another_plays(command, arguments)
        else:
            self._run(command, arguments)
        self._tell_all()

    def _run(self, command: Command, arguments: dict[str, Any]) -> None:
        try:
            command.run(self, **arguments)
        except (MqlabError, TypeError, ValueError) as error:
            self.said = str(error)
        except KeyboardInterrupt:
            self.said = "Stopped."

    def _while_another_plays(self, command: Command, arguments: dict[str, Any]) -> None:
        if command.breaks and arguments.get("where") != "new":
            self.lab.world.door.post(lambda: self._run(command, arguments))
        elif command.looks:
            self._run(command, arguments)
        else:
            self.said = "A cell is playing this world. Wait for it, or press the notebook's stop button."

    def _tell_all(self) -> None:
        if self.player.watch is not None:
            self.player.watch.note()
        for watcher in list(self.lab.watchers):
            watcher.changed()

    def move_to(self, place: int) -> None:
        """Show what stood behind so many events."""
        self.lab.history.move_to(place)

    def begin_search(self, search: Search) -> None:
        """Look for something from the newest event on; then where it began is offered."""
        from_us, place = self.cursor.now_us, self.lab.history.cursor
        self.move_to(len(self.lab.history))
        self.search = search
        offer = (place, f"back to {from_us / 1_000_000:,.1f} s")

        def ended(words: str) -> None:
            self.search, self.said, self.back_offer = None, words, offer
            self._tell_all()

        search.run(ended, self._tell_all)

    def end_search(self) -> None:
        """Look no further for what is being looked for, if anything is."""
        if self.search is not None:
            self.search.drop()
            self.search = None

    def close(self) -> None:
        """Leave the worlds: stop playing, and be told nothing any more."""
        self._watched = False
        self.end_search()
        self.player.leave(self)
        for lab in (branch.lab for branch in self.worlds.branches):
            lab.watchers.discard(self)

    def tell(self, beats: list[Beat]) -> None:
        """Send these beats to the page, which shows them one after the other."""
        if self._on_story is not None:
            self._on_story(beats, self.player.began)

    def stopped(self, words: str) -> None:
        """The player has stopped; `words` say why, "" if somebody wanted it."""
        if words:
            self.said = words
        self._changed()

    def changed(self) -> None:
        """Something was done to the world, by this view or by another one of it."""
        self.player.hold()
        self._changed()
