"""What a board is: one view of a world, folded from its events, drawn as text that a browser and a page both show."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mqlab.trace.record import KIND, Record
from mqlab.trace.state import State, reader_of
from mqlab.views import Table

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.bus import Row


class Board(State):
    """One view of a world at one event of its history.

    A board inherits from this, says its `title`, and has a method `on_message_stored(self, record)` for each event
    kind that it wants (here `MessageStored`). What it notes in plain attributes is its state: it must be a function of
    the events alone, since scrubbing back and forth reads it from a copy. `html()` draws that state, and `text()` says
    the same in lines for who cannot see it. `self.lab` is for what never changes (names, addresses), not for the
    world's present; attributes that begin with an underscore are not part of the state.
    """

    title: ClassVar[str] = ""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.here: tuple[int, int] = (-1, -1)
        """(slice, i) of the newest event that the board has seen."""
        self._names: dict[str, str] = {}
        """Address of a machine -> its name."""
        super().__init__()

    def name_of(self, address: str) -> str:
        """The machine at an address; the address itself if nobody has it."""
        host = address.partition(":")[0]
        if host not in self._names:
            self._names = {node.spec.ip: name for name, node in self.lab.world.nodes.items()}
        return self._names.get(host, address)

    def html(self) -> str:
        """The picture, as HTML or SVG."""
        raise NotImplementedError(f"{type(self).__name__} must define html()")

    def text(self) -> list[str]:
        """The same in lines of text."""
        raise NotImplementedError(f"{type(self).__name__} must define text()")

    # -- for the fold -----------------------------------------------------------------------------------------------

    def keep(self) -> bytes:
        """A copy of the state."""
        state = {name: value for name, value in vars(self).items() if name not in ("lab", "here") and name[0] != "_"}
        return pickle.dumps(state, protocol=5)

    def restore(self, kept: bytes) -> None:
        """Take a copy of the state back."""
        vars(self).update(pickle.loads(kept))  # noqa: S301  our own bytes, made by `keep`

    def twin(self) -> Self:
        """Another board in the same state; each goes its own way from here."""
        twin = copy.copy(self)
        twin.restore(self.keep())
        return twin


class TableBoard(Board):
    """A board that shows its state as one table."""

    def table(self) -> Table:
        """The table."""
        raise NotImplementedError(f"{type(self).__name__} must define table()")

    def html(self) -> str:
        """The table, as HTML."""
        return self.table()._repr_html_()

    def text(self) -> list[str]:
        """The same table."""
        return str(self.table()).splitlines()


class Fold:
    """Boards over a history: brings them to any event, forwards by taking events, backwards from a kept copy.

    A copy is kept every 2,000 events; when they take more than 6 MB, every second one is dropped and the distance
    doubles, so that memory stays flat however long a world plays, and how large it is.
    """

    EVERY = 2_000
    MOST_BYTES = 6_000_000
    LARGE_BYTES = 500_000
    NEAR = 50
    """A jump also keeps a copy at most so many events before its end, since what follows is mostly small steps."""

    def __init__(self, history: Any, boards: Iterable[Board]) -> None:
        self._history = history
        self.boards = list(boards)
        self.place = 0
        self._every = self.EVERY
        self._copies: dict[int, list[bytes]] = {0: [board.keep() for board in self.boards]}
        self._bytes = 0
        self._near: dict[int, list[bytes]] = {}
        self._takers: dict[str, tuple[Callable[[Record], None], ...]] = {}
        for board in self.boards:
            for kind, method in board.handlers().items():
                self._takers[kind] = (*self._takers.get(kind, ()), method)

    @property
    def large(self) -> bool:
        """Whether the boards hold so much that a copy of it takes longer than a click may."""
        return sum(map(len, max(self._copies.values(), key=lambda kept: sum(map(len, kept))))) > self.LARGE_BYTES

    def go_to(self, place: int, *, jump: bool = True) -> None:
        """Bring all boards behind `place` events; `jump=False` is for one step of many."""
        place = max(0, min(place, len(self._history)))
        if not 0 <= place - self.place <= self.NEAR:
            self._jump_near(place)
        near = place // self.NEAR * self.NEAR if jump and place - self.place > self.NEAR else 0
        while self.place < place:
            stop = min(place, (self.place // self._every + 1) * self._every)
            if self.place < near < stop:
                stop = near
            self._take(self._history.rows(self.place, stop))
            self.place = stop
            if stop == near:
                self._near = {stop: [board.keep() for board in self.boards]}
            if stop % self._every == 0 and stop not in self._copies:
                self._keep()
        if place:
            here = self._history.row(place - 1)[:2]
            for board in self.boards:
                board.here = here

    def _jump_near(self, place: int) -> None:
        """To the last copy before a place, if that is nearer."""
        copies = self._copies | self._near
        kept = max(kept for kept in copies if kept <= place)
        if place < self.place or kept > self.place:
            for board, state in zip(self.boards, copies[kept], strict=True):
                board.restore(state)
            self.place = kept

    def _take(self, rows: Iterable[Row]) -> None:
        takers = self._takers
        for row in rows:
            kind = row[KIND]
            methods = takers.get(kind)
            if methods is not None:
                record = reader_of(kind)(row)
                for method in methods:
                    method(record)

    def _keep(self) -> None:
        self._copies[self.place] = kept = [board.keep() for board in self.boards]
        self._bytes += sum(map(len, kept))
        while self._bytes > self.MOST_BYTES and len(self._copies) > 2:
            self._every *= 2
            self._copies = {place: kept for place, kept in self._copies.items() if place % self._every == 0}
            self._bytes = sum(len(state) for kept in self._copies.values() for state in kept)
