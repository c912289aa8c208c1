"""Which events are meant: a kind, a node, values of fields. Breakpoints and searches say it in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mqlab.errors import LearnerError
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import CATALOGUE, check_field, columns_of, kind_name

Kinds = str | type | tuple[str | type, ...] | None
"""One event kind by name or class, several of them, or None for all."""

Checks = tuple[tuple[int, Any], ...]


def row_filter(kind: Kinds = None, **fields: Any) -> Callable[[Row], bool]:
    """A test of rows: is it one of these kinds, and do its fields (common columns too) have these values?

    Without a kind, every kind that has all of these fields is meant. LearnerError for an unknown kind or field.
    """
    by_kind = _checks_by_kind(kind, fields)

    def matches(row: Row) -> bool:
        checks = by_kind.get(row[7])
        if checks is None:
            return False
        return all(row[position] == wanted for position, wanted in checks)

    return matches


def _checks_by_kind(kind: Kinds, fields: Mapping[str, Any]) -> dict[str, Checks]:
    if kind is None:
        if not fields:
            return dict.fromkeys(CATALOGUE, ())
        for field in fields:
            check_field(field)
        names = [name for name in CATALOGUE if set(fields) <= set(columns_of(name))]
        if not names:
            raise LearnerError(f"no event kind has all the fields {', '.join(fields)}", "see docs/events.md")
    else:
        names = [kind_name(one) for one in (kind if isinstance(kind, tuple) else (kind,))]
        for name in names:
            for field in fields:
                check_field(field, name)
    if not fields:
        return dict.fromkeys(names, ())
    return {name: tuple((columns_of(name).index(field), value) for field, value in fields.items()) for name in names}
