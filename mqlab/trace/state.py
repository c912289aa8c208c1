"""What a history has come to: a state that is folded from events, one after the other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from mqlab.errors import LearnerError
from mqlab.trace.bus import COMMON_FIELDS
from mqlab.trace.catalogue import CATALOGUE, positions
from mqlab.trace.record import Record

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEVERAL = {"on_process_ended": ("NodeCrashed", "PowerLost")}
"""Methods that take several kinds: `target` of these is a process that is no more, with all that it knew."""


class State:
    """Has a method `on_message_stored(self, record)` for each event kind that it wants (here `MessageStored`).

    `on_process_ended` takes a crash as well as a loss of power, for all to which both are the same.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Set the state as it is before the first event."""

    def handlers(self) -> dict[str, Callable[[Record], None]]:
        """Event kind -> the method that takes it."""
        names = (name for name in dir(self) if name.startswith("on_"))
        return {kind: getattr(self, name) for name in names for kind in _SEVERAL.get(name) or (_kind_of(name),)}

    def follow(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records, each when the state has taken it."""
        handlers = self.handlers()
        for record in records:
            if record.kind in handlers:
                handlers[record.kind](record)
            yield record


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
