"""The index of all event kinds: what can happen in a world, and which fields say it.

`python -m mqlab.trace.catalogue` writes the index as a page (docs/events.md) and as a schema (datasets/schema.json).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, get_type_hints

from mqlab.errors import LearnerError
from mqlab.trace.bus import COMMON_FIELDS, Row

SCHEMA_VERSION = 2
"""Rises when what a trace may hold changes. 1: before Pop, timers and proxies; kinds have come since, and none went."""

OLDEST_VERSION = 1
"""The oldest version that can be read: since then no field was renamed, removed or given another type."""

AREAS = (
    "world", "network", "remoting", "namesrv", "store", "timer", "broker", "filter", "ha", "pop", "transaction",
    "client", "reply", "msg_trace", "proxy", "cousins",
)  # fmt: skip
"""The files of events, from the ground up."""

ATOMS: Mapping[type, str] = MappingProxyType({int: "int", str: "str", bool: "bool"})
"""The types that a field may have, with their names in the schema. No floats: their text differs between machines."""

COMMON_TYPES: Mapping[str, str] = MappingProxyType(
    {name: "str" if name in ("node", "task", "kind") else "int" for name in COMMON_FIELDS}
)

COMMON_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "slice": "number of the slice in which it happened",
        "i": "place among the events of its slice, from 0",
        "ts_us": "microseconds since the world began",
        "node": "the machine on which it happened",
        "task": "what was running: a task, a timer, a pool's job",
        "cause_slice": "slice of the event that led to this one; -1: none",
        "cause_i": "its place in that slice; -1: none",
        "kind": "what happened",
    }
)

FIRST = len(COMMON_FIELDS)
"""The place of an event's first own field in a row."""

RECORD_NAMES = ("at", "cause", "event", "fields", "get", "row", "ts_ms")
"""What a `Record` says of every event beside the common columns; no event may have a field of such a name."""


class CatalogueError(Exception):
    """Event kinds contradict each other, or one holds what no trace can hold: a defect of the events package."""


def kinds_in(module: ModuleType) -> Iterator[type]:
    """The event kinds that a module defines, in the order of its text."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, tuple)
            and hasattr(value, "_fields")
            and value.__module__ == module.__name__
        ):
            yield value


def index(modules: Collection[ModuleType]) -> dict[str, type]:
    """Kind name -> class for all kinds of these modules. CatalogueError if two kinds share a name."""
    found: dict[str, type] = {}
    for module in modules:
        for kind in kinds_in(module):
            first = found.setdefault(kind.__name__, kind)
            if first is not kind:
                raise CatalogueError(
                    f"two event kinds are called {kind.__name__}: {_place(first)} and {_place(kind)}; rename one"
                )
    return found


def types_of_fields(kinds: Mapping[str, type]) -> dict[str, str]:
    """Field name -> "int", "str" or "bool". CatalogueError if a name has two types, naming both places."""
    types: dict[str, str] = {}
    places: dict[str, str] = {}
    for kind in kinds.values():
        for field, annotation in get_type_hints(kind).items():
            place = f"{_place(kind)}.{field}"
            if field in COMMON_TYPES or field in RECORD_NAMES:
                raise CatalogueError(f"{place}: {field!r} is a name that every event has already; rename the field")
            if annotation not in ATOMS:
                raise CatalogueError(f"{place} is a {annotation}; a field must be int, str or bool")
            atom = ATOMS[annotation]
            if types.setdefault(field, atom) != atom:
                raise CatalogueError(
                    f"the field {field!r} is {types[field]} in {places[field]} and {atom} in {place}; "
                    f"a field name has one type everywhere, so rename one"
                )
            places.setdefault(field, place)
    return types


def _place(kind: type) -> str:
    return f"{kind.__module__.rpartition('.')[2]}.py:{kind.__name__}"


@cache
def areas() -> tuple[ModuleType, ...]:
    """The modules of events, imported when somebody looks a kind up: a world loads only what its parts emit."""
    return tuple(import_module(f".events.{area}", __package__) for area in AREAS)


class Catalogue(Mapping[str, type[Any]]):
    """Every event kind by its name, in the order of the files and of their text."""

    @cached_property
    def _kinds(self) -> dict[str, type]:
        return index(areas())

    def __getitem__(self, kind: str) -> type[Any]:
        return self._kinds[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


CATALOGUE = Catalogue()


def kind_name(kind: str | type) -> str:
    """The name of an event kind given by name or class. LearnerError with the names that come near if there is none."""
    if not isinstance(kind, str | type):
        raise LearnerError(f"{kind!r} is not an event kind", "give its name, like 'MessageStored', or its class")
    name = kind if isinstance(kind, str) else kind.__name__
    if name not in CATALOGUE:
        raise LearnerError(f"there is no event kind {name!r}", _nearest(name, CATALOGUE) or "see docs/events.md")
    return name


def fields_of(kind: str | type) -> tuple[str, ...]:
    """The names of a kind's own fields, in order. LearnerError if there is no such kind."""
    fields: tuple[str, ...] = CATALOGUE[kind_name(kind)]._fields
    return fields


def columns_of(kind: str | type) -> tuple[str, ...]:
    """The names of all atoms in a row of this kind: the common columns, then its fields."""
    return COMMON_FIELDS + fields_of(kind)


@cache
def positions() -> Mapping[str, Mapping[str, int]]:
    """Kind -> field -> its place in a row."""
    return {kind: {name: place for place, name in enumerate(columns_of(kind)) if place >= FIRST} for kind in CATALOGUE}


@cache
def field_types() -> Mapping[str, str]:
    """Every field of every kind with its type, "int", "str" or "bool". CatalogueError if a name has two types."""
    return MappingProxyType(types_of_fields(CATALOGUE))


def check_field(field: str, kind: str | None = None) -> str:
    """The field's name, if this kind (or any kind) or every event has it. LearnerError with what comes near if not."""
    known: Collection[str] = field_types() if kind is None else fields_of(kind)
    if field not in COMMON_TYPES and field not in known:
        whose = "no event" if kind is None else f"{kind} does not"
        verb = "has" if kind is None else "have"
        nearest = _nearest(field, [*COMMON_FIELDS, *known])
        raise LearnerError(f"{whose} {verb} a field {field!r}", nearest or f"it has: {', '.join(known) or 'no fields'}")
    return field


def check_row(row: Row) -> None:
    """CatalogueError if a row does not hold exactly the atoms that its kind promises (an enum is not an int here)."""
    columns = columns_of(row[len(COMMON_FIELDS) - 1])
    if len(row) != len(columns):
        raise CatalogueError(f"a row of {row[7]} has {len(row)} atoms instead of {len(columns)}: {row}")
    for column, value in zip(columns, row, strict=True):
        wanted = COMMON_TYPES.get(column) or field_types()[column]
        if ATOMS.get(type(value)) != wanted:
            found = type(value).__name__
            raise CatalogueError(f"{row[7]}.{column} is {value!r}, a {found}; it must be exactly {wanted}")


def _nearest(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 3)
    return f"did you mean {' or '.join(close)}?" if close else ""


def about(kind: str | type) -> str:
    """What an event of this kind says, in one sentence or two, on one line."""
    return " ".join((CATALOGUE[kind_name(kind)].__doc__ or "").split())


def schema() -> dict[str, Any]:
    """The schema of recorded traces as JSON-able data: version, common columns, union of fields, kinds."""
    types = field_types()
    return {
        "version": SCHEMA_VERSION,
        "common": [{"name": n, "type": COMMON_TYPES[n], "about": COMMON_MEANINGS[n]} for n in COMMON_FIELDS],
        "fields": dict(types),
        "kinds": [
            {"name": kind.__name__, "area": _area(module), "about": about(kind), "fields": list(fields_of(kind))}
            for module in areas()
            for kind in kinds_in(module)
        ],
    }


def _area(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def page() -> str:
    """The index as a Markdown page."""
    import inspect

    types = field_types()
    lines = [
        "# What can happen: the event kinds",
        "",
        "This page is generated from `mqlab/trace/events/`; to change it, change an event and run "
        "`python -m mqlab.trace.catalogue`.",
        "",
        f"Schema version {SCHEMA_VERSION}, {len(CATALOGUE)} kinds. Every event has these columns first:",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
        *(f"| `{name}` | {COMMON_TYPES[name]} | {COMMON_MEANINGS[name]} |" for name in COMMON_FIELDS),
    ]
    for module in areas():
        lines += ["", f"## {_area(module)}", "", inspect.cleandoc(module.__doc__ or ""), ""]
        lines += ["| kind | what it says | fields |", "|---|---|---|"]
        for kind in kinds_in(module):
            fields = ", ".join(f"`{name}` {types[name]}" for name in fields_of(kind)) or "none"
            lines.append(f"| `{kind.__name__}` | {about(kind)} | {fields} |")
    return "\n".join(lines) + "\n"


def schema_text() -> str:
    """The schema as the text of datasets/schema.json."""
    import json

    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def main(root: str = ".") -> None:
    """Write docs/events.md and datasets/schema.json below `root`, the repository's directory."""
    from pathlib import Path

    for path, text in (("docs/events.md", page()), ("datasets/schema.json", schema_text())):
        target = Path(root, path)
        if not target.parent.is_dir():
            raise LearnerError(f"there is no directory {target.parent}", "run this in the root of the repository")
        target.write_text(text, encoding="utf-8")
        print(f"wrote {path}: {len(CATALOGUE)} kinds, {len(field_types())} fields")


if __name__ == "__main__":
    main()
