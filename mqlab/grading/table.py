"""A table as a CSV file that is whole or not there, and in which nothing that a student wrote does anything."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mqlab.grading.printable import printable

_GUARDED = ("=", "+", "-", "@", "\t", "\r")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows under their columns; the file gets its name when it is whole."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.DictWriter(sink, columns, restval="")
        writer.writeheader()
        writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    unfinished.replace(path)


def _harmless(value: Any) -> Any:
    """A text with what can't be seen written out; what a spreadsheet would take for a formula gets an apostrophe."""
    if isinstance(value, str):
        value = printable(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_GUARDED) else value
