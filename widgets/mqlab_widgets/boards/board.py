"""What a board is: one view of a world, folded from its events, drawn as text that a browser and a page both show."""

from __future__ import annotations

import copy
import difflib
import pickle
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mqlab.errors import LearnerError
from mqlab.trace.bus import COMMON_FIELDS
from mqlab.trace.catalogue import CATALOGUE, positions
from mqlab.trace.record import KIND, Record

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab.trace.bus import Row

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Board:
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
        self.begin()

    def begin(self) -> None:
        """Set the state as it is before the first event."""

    def html(self) -> str:
        """The picture, as HTML or SVG."""
        raise NotImplementedError(f"{type(self).__name__} must define html()")

    def text(self) -> list[str]:
        """The same in lines of text."""
        raise NotImplementedError(f"{type(self).__name__} must define text()")

    # -- for the fold -----------------------------------------------------------------------------------------------

    def handlers(self) -> dict[str, Callable[[Record], None]]:
        """Event kind -> the method that takes it."""
        names = (name for name in dir(self) if name.startswith("on_"))
        return {_kind_of(name): getattr(self, name) for name in names}

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


@cache
def _kinds() -> dict[str, str]:
    """ "message_stored" -> "MessageStored", for all event kinds."""
    return {_WORD.sub("_", kind).lower(): kind for kind in CATALOGUE}


def _kind_of(method: str) -> str:
    """ "MessageStored" of "on_message_stored"; LearnerError names the nearest kind if there is none."""
    asked = method.removeprefix("on_")
    if asked not in _kinds():
        near = difflib.get_close_matches(asked, _kinds(), n=1)
        hint = f"did you mean on_{near[0]}?" if near else "docs/events.md has all event kinds"
        raise LearnerError(f"{method} of a board is named for no event kind", hint)
    return _kinds()[asked]


@cache
def reader_of(kind: str) -> type[Record]:
    """A record of this kind that finds its fields at once: a fold reads millions of them."""

    def field(place: int) -> property:
        return property(lambda record: record.row[place])

    own = {name: field(place) for name, place in positions()[kind].items()}
    common = {name: field(COMMON_FIELDS.index(name)) for name in ("node", "task", "kind", "ts_us")}
    return type(kind, (Record,), {**own, **common, "__slots__": ()})


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
