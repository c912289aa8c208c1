"""Tables as CSV files: read as spreadsheets write them, and written so that nothing in them does anything."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.printable import printable

_PARTED = ",;\t"
_GUARDED = ("=", "+", "-", "@", "\t", "\r")


def read_rows(path: Path, hint: str) -> list[list[str]]:
    """The rows of a CSV file that are not empty. Between fields stands what the first line has most of: , ; or tab.

    LearnerError, with the hint, when it can't be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise LearnerError(f"{path} can't be read: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise LearnerError(f"{path} is no text in UTF-8", "save it as CSV in UTF-8") from None
    parted = max(_PARTED, key=lines[0].count) if lines else _PARTED[0]
    try:
        return [row for row in csv.reader(lines, delimiter=parted) if any(field.strip() for field in row)]
    except csv.Error as error:
        raise LearnerError(f"{path} is no CSV file: {error}", hint) from None


def read_columns(
    path: Path, known: Mapping[str, Sequence[str]], needed: Sequence[str], hint: str
) -> list[tuple[int, dict[str, str]]]:
    """The rows below the head with their numbers, by the names of `known`: a name -> the heads that mean it, in small
    letters, the first one found counts.

    Columns that nobody knows are passed over, and a row has only what stands in it. LearnerError without a needed one.
    """
    head, *rows = read_rows(path, hint) or [[]]
    heads = [field.strip().lower() for field in head]
    places = {name: heads.index(each) for name, own in known.items() for each in reversed(own) if each in heads}
    for name in needed:
        if name not in places:
            raise LearnerError(f"{path} has no column `{name}`; it has {', '.join(heads) or 'none'}", hint)
    return [
        (number, {name: row[at].strip() for name, at in places.items() if at < len(row) and row[at].strip()})
        for number, row in enumerate(rows, 2)
    ]


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
