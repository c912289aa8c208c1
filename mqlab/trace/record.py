"""One event as a person or a program wants to read it, and a trace as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from mqlab.trace.bus import COMMON_FIELDS, NO_CAUSE, Row
from mqlab.trace.catalogue import CATALOGUE, fields_of, positions

TS_US, NODE, KIND = COMMON_FIELDS.index("ts_us"), COMMON_FIELDS.index("node"), COMMON_FIELDS.index("kind")
FIRST_FIELD = len(COMMON_FIELDS)


class Record:
    """A typed reading of one row of a trace: what happened, where, when, and the event's own fields as attributes.

    `str(record)` is one dense line. Two records are equal when their rows are.
    """

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    @property
    def slice(self) -> int:
        """The slice in which it happened."""
        return int(self.row[0])

    @property
    def i(self) -> int:
        """Its place among the events of its slice, from 0."""
        return int(self.row[1])

    @property
    def at(self) -> tuple[int, int]:
        """Its id in the trace: (slice, i)."""
        return (self.row[0], self.row[1])

    @property
    def ts_us(self) -> int:
        """Microseconds since the world began."""
        return int(self.row[2])

    @property
    def ts_ms(self) -> float:
        """Milliseconds since the world began."""
        return int(self.row[2]) / 1_000

    @property
    def node(self) -> str:
        """The machine on which it happened."""
        return str(self.row[3])

    @property
    def task(self) -> str:
        """What was running: a task, a timer, a pool's job."""
        return str(self.row[4])

    @property
    def cause(self) -> tuple[int, int] | None:
        """The id of the event that led to this one; None if there was none (or nobody listened then)."""
        cause = (self.row[5], self.row[6])
        return None if cause == NO_CAUSE else cause

    @property
    def kind(self) -> str:
        """What happened: the name of the event's kind."""
        return str(self.row[KIND])

    @property
    def event(self) -> Any:
        """The event as it was emitted: a NamedTuple of its kind."""
        return CATALOGUE[self.row[KIND]](*self.row[FIRST_FIELD:])

    @property
    def fields(self) -> dict[str, Any]:
        """The event's own fields by name."""
        return dict(zip(fields_of(self.row[KIND]), self.row[FIRST_FIELD:], strict=True))

    def get(self, field: str, default: Any = None) -> Any:
        """A field of the event, or `default` if this kind has no such field."""
        return self.fields.get(field, default)

    def __getattr__(self, field: str) -> Any:
        row = self.row
        try:
            return row[positions()[row[KIND]][field]]
        except KeyError:
            names = ", ".join(fields_of(row[KIND])) or "no fields"
            raise AttributeError(f"{row[KIND]} has no field {field!r}; it has: {names}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *fields_of(self.row[KIND])]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.row == other.row

    def __hash__(self) -> int:
        return hash(self.row)

    def __str__(self) -> str:
        return _line(self.row)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook: what happened, then when and where, and the fields below."""
        from html import escape

        told = "&ensp; ".join(f"{name}=<b>{escape(_text(value))}</b>" for name, value in self.fields.items())
        return (
            '<div style="font-family:ui-monospace,monospace;font-size:12px;line-height:1.6">'
            '<span style="display:inline-block;width:9px;height:9px;border-radius:5px;background:#D55E00"></span> '
            f"<b>{self.kind}</b>&ensp; {self.ts_ms:.3f} ms&ensp; on {escape(self.node)}&ensp; "
            f'<span style="opacity:.7">{escape(self.task)}</span>'
            f'<div style="padding-left:16px">{told}</div></div>'
        )

    def __reduce__(self) -> tuple[type[Record], tuple[Row]]:
        return (Record, (self.row,))


@cache
def record_class(kind: str) -> type[Record]:
    """Record for events of one kind, which reads their fields several times as fast. KeyError for an unknown kind."""

    def reading(place: int) -> property:
        return property(lambda record: record.row[place])

    places = {"ts_us": TS_US, "node": NODE}
    places |= {name: positions()[kind][name] for name in fields_of(kind) if not hasattr(Record, name)}
    fields = {name: reading(place) for name, place in places.items()}
    return type(f"{kind}Record", (Record,), {"__slots__": (), "kind": kind, **fields})


def records(rows: Iterable[Row]) -> Iterator[Record]:
    """Read rows one after the other as records."""
    return map(Record, rows)


def format_trace(rows: Iterable[Row]) -> str:
    """A trace as text, one line per event, in the form of `str(record)`: what golden traces are compared by."""
    return "".join(f"{_line(row)}\n" for row in rows)


def _line(row: Row) -> str:
    kind = row[KIND]
    fields = zip(fields_of(kind), row[FIRST_FIELD:], strict=True)
    told = " ".join(f"{name}={_text(value)}" for name, value in fields)
    return f"{row[2] / 1_000:>12.3f} ms  {row[3]:<12} {row[4]:<28} {kind:<22} {told}".rstrip()


def _text(value: Any) -> str:
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, str) and (not value or any(c.isspace() or not c.isprintable() for c in value)):
        return ascii(value)
    return str(value)
