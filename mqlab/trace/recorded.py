"""Recorded traces are read back, and one that is not whole says so.

A trace ends with a mark that counts its events (see recorder.py). Without it the recording was interrupted, or the file
was cut: reading raises ProtocolError behind the last event, unless `whole=False` asks for what is there. Traces written
before there was a mark say nothing in their header, and are read as they are: whether they are whole, nobody can tell.

Spark reads traces by these rules, too (`mqlab_spark.contract`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mqlab.errors import LearnerError, ProtocolError
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import (
    CATALOGUE,
    COMMON_TYPES,
    OLDEST_VERSION,
    SCHEMA_VERSION,
    CatalogueError,
    check_row,
    columns_of,
    field_types,
)
from mqlab.trace.recorder import BATCH_ROWS, END_MARK, PARQUET_KEY, ParquetRecorder, pyarrow

LAST_BYTES = 4_096
"""The end mark is looked for in so many bytes at the end of a file; it has some thirty."""

PIECE_BYTES = 1 << 20
HEADER_AND_MARK = 2
"""The lines of a file that are no events."""


def check_header(text: str | bytes, path: str | Path) -> dict[str, Any]:
    """The header as a dict. ProtocolError if it is none, or of a schema version that cannot be read."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or "mqlab_trace" not in header:
        raise ProtocolError(f"{path} is not a trace of mqlab: it does not begin with a header")
    version = header["mqlab_trace"]
    if type(version) is not int or not OLDEST_VERSION <= version <= SCHEMA_VERSION:
        is_newer = type(version) is int and version > SCHEMA_VERSION
        raise ProtocolError(
            f"{path} has trace schema version {version} (written by mqlab {header.get('mqlab')}), this mqlab reads "
            f"versions {OLDEST_VERSION} to {SCHEMA_VERSION}: "
            f"{'install that mqlab, or a newer one' if is_newer else 'record the trace again'}"
        )
    if not isinstance(header.get("metadata", {}), dict):
        raise ProtocolError(f"{path} has a damaged header: its metadata is no object. Record the trace again")
    return header


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a recorded trace (.parquet, else JSON lines): `mqlab_trace`, `mqlab`, `end_mark`, `metadata`."""
    return _parquet_header(path) if _is_parquet(path) else _json_header(path)


def check_whole(path: str | Path) -> dict[str, Any]:
    """The header of a recorded trace, as `read_header` gives it; ProtocolError if it should have an end mark and has
    none, or one that counts another number of events, or if a column has another type than its events have. The events
    are not read for that, lines are counted.
    """
    if _is_parquet(path):
        return _check_parquet_whole(path)
    header = _json_header(path)
    with Path(path).open("rb") as file:
        check_lines(file, header, path)
    return header


def check_lines(file: BinaryIO, header: Mapping[str, Any], path: str | Path) -> None:
    """ProtocolError as `check_whole`, for JSON lines in an open file whose header is known."""
    if not header.get("end_mark"):
        return
    file.seek(0, 2)
    file.seek(max(0, file.tell() - LAST_BYTES))
    *_, last_line, rest = ["", *file.read().decode("ascii", "replace").split("\n")]
    end = None if rest else _end_of(last_line)
    if end is None:
        raise _not_whole(path)
    file.seek(0)
    count = sum(piece.count(b"\n") for piece in iter(partial(file.read, PIECE_BYTES), b"")) - HEADER_AND_MARK
    if end != count:
        raise _counts_others(path, count, end)


def _is_parquet(path: str | Path) -> bool:
    return str(path).endswith((".parquet", ".parquet.unfinished"))


def _json_header(path: str | Path) -> dict[str, Any]:
    with _open_text(path) as file:
        return check_header(file.readline(), path)


def _parquet_header(path: str | Path) -> dict[str, Any]:
    with _open_parquet(path) as file:
        return header_of(file, path)


def header_of(file: Any, path: str | Path) -> dict[str, Any]:
    """The header of an open Parquet trace, whether or not it is whole; ProtocolError as `read_header`."""
    return check_header((file.metadata.metadata or {}).get(PARQUET_KEY, b""), path)


def _check_parquet_whole(path: str | Path) -> dict[str, Any]:
    with _open_parquet(path) as file:
        return check_footer(file, path)


def check_footer(file: Any, path: str | Path) -> dict[str, Any]:
    """The header of an open Parquet trace (a `pyarrow.parquet.ParquetFile`); ProtocolError as `check_whole`."""
    header = header_of(file, path)
    told, rows = file.metadata.metadata or {}, file.metadata.num_rows
    end = told.get(END_MARK.encode())
    if header.get("end_mark") and end is None:
        raise _not_whole(path, rows)
    if header.get("end_mark") and end != str(rows).encode():
        raise _counts_others(path, rows, (end or b"").decode("ascii", "replace"))
    types = pyarrow().types
    fits = {"int": types.is_integer, "str": _is_text, "bool": types.is_boolean}
    found = {field.name: field.type for field in file.schema_arrow}
    for name in COMMON_TYPES:
        if name not in found:
            raise ProtocolError(f"{path} has no column {name}, which every event has: record the trace again")
    for name, kind in (*COMMON_TYPES.items(), *field_types().items()):
        if name in found and not fits[kind](found[name]):
            raise ProtocolError(f"{path} has a column {name} of {found[name]}; it must be {kind}. Record it again")
    return header


def _is_text(column_type: Any) -> bool:
    types = pyarrow().types
    plain = column_type.value_type if types.is_dictionary(column_type) else column_type
    return bool(types.is_string(plain) or types.is_large_string(plain))


def _counts_others(path: str | Path, count: int, end: int | str) -> ProtocolError:
    return ProtocolError(f"{path} has {count} events, but its end mark counts {end}: record the trace again")


def _not_whole(path: str | Path, count: int | None = None) -> ProtocolError:
    has = "it has no end mark" if count is None else f"it has {count} events and no end mark"
    return ProtocolError(
        f"{path} is not whole: {has}, because its recording was interrupted or the file was cut. Record the trace "
        "again, or read what is there with whole=False."
    )


# -- JSON lines --------------------------------------------------------------------------------------------------------


def read_json_lines(path: str | Path, *, whole: bool = True) -> Iterator[Row]:
    """The rows of a JSON lines trace, lazily. ProtocolError for an unknown schema version, a line that is no event
    and, behind the last event, a trace that is not whole (unless `whole` is False).
    """
    _json_header(path)
    return _lines_of(path, whole=whole)


def _lines_of(path: str | Path, *, whole: bool) -> Iterator[Row]:
    with _open_text(path) as file:
        yield from json_rows(file, path, whole=whole)


def json_rows(lines: Iterable[str], path: str | Path, *, whole: bool = True) -> Iterator[Row]:
    """The rows of the lines of a JSON lines trace, header and end mark with them; ProtocolError as `read_json_lines`,
    which names the `path`.
    """
    reading = iter(lines)
    marked = bool(check_header(next(reading, ""), path).get("end_mark"))
    count = 0
    end: int | None = None
    for number, line in enumerate(reading, 2):
        if end is not None:
            raise ProtocolError(f"{path}, line {number}: something follows the end mark: record the trace again")
        if marked and not line.endswith("\n"):
            break
        end = _end_of(line)
        if end is None:
            yield _row_of(line, f"{path}, line {number}")
            count += 1
    if marked and whole and end is None:
        raise _not_whole(path, count)
    if end is not None and end != count:
        raise _counts_others(path, count, end)


def _end_of(line: str) -> int | None:
    """The number of events, if the line is the end mark."""
    if not line.startswith(f'{{"{END_MARK}"'):
        return None
    try:
        return int(json.loads(line)[END_MARK])
    except (ValueError, TypeError):
        return None


def _row_of(line: str, place: str) -> Row:
    try:
        event = json.loads(line)
        kind = event["kind"]
        known = kind in CATALOGUE
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProtocolError(f"{place}: this is not an event: {line[:80].rstrip()!r}") from None
    if not known:
        raise ProtocolError(f"{place}: this mqlab knows no event kind {kind!r}: record the trace again")
    columns = columns_of(kind)
    if event.keys() != set(columns):
        differing = ", ".join(sorted(event.keys() ^ set(columns)))
        raise ProtocolError(f"{place}: the fields of {kind} are not those of this mqlab ({differing}): record it again")
    row = tuple([event[column] for column in columns])
    _check_types(row, place)
    return row


def _check_types(row: Row, place: str) -> None:
    """ProtocolError where a column has a value of another type than the catalogue says."""
    try:
        check_row(row)
    except CatalogueError as error:
        raise ProtocolError(f"{place}: {error}. Record the trace again") from None


# -- Parquet -----------------------------------------------------------------------------------------------------------


def read_parquet(path: str | Path, *, whole: bool = True) -> Iterator[Row]:
    """The rows of a Parquet trace, lazily. ProtocolError for an unknown schema version or a trace that is not whole
    (unless `whole` is False); needs the extra `trace`.
    """
    if whole:
        _check_parquet_whole(path)
    else:
        _parquet_header(path)
    return _parquet_rows(path)


def _parquet_rows(path: str | Path) -> Iterator[Row]:
    count = 0
    with _open_parquet(path) as file:
        for batch in _batches(file, path):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            for n, kind in enumerate(columns.get("kind", [None] * batch.num_rows)):
                if not isinstance(kind, str) or kind not in CATALOGUE:
                    raise ProtocolError(f"{path}: this mqlab knows no event kind {kind!r}: record the trace again")
                missing = [column for column in columns_of(kind) if column not in columns]
                if missing:
                    raise ProtocolError(f"{path} has no column {missing[0]} for {kind}: record the trace again")
                row = tuple([columns[column][n] for column in columns_of(kind)])
                count += 1
                _check_types(row, f"{path}, event {count}")
                yield row


def _batches(file: Any, path: str | Path) -> Iterator[Any]:
    try:
        yield from file.iter_batches(BATCH_ROWS)
    except (pyarrow().ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def json_lines_to_parquet(source: str | Path, target: str | Path) -> int:
    """Write a JSON lines trace as Parquet, with the same metadata; returns the number of events. ProtocolError for a
    trace that is not whole.
    """
    check_whole(source)
    with ParquetRecorder(target, _json_header(source).get("metadata", {})) as recorder:
        for row in read_json_lines(source):
            recorder(row)
    return recorder.count


def _open_text(path: str | Path) -> Any:
    try:
        return Path(path).open(encoding="ascii", errors="backslashreplace")
    except FileNotFoundError:
        raise _no_such_file(path) from None


def _open_parquet(path: str | Path) -> Any:
    arrow = pyarrow()
    try:
        return arrow.parquet.ParquetFile(str(path))
    except FileNotFoundError:
        raise _no_such_file(path) from None
    except (arrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str | Path, error: Exception) -> ProtocolError:
    reason = str(error).partition("\n")[0]
    return ProtocolError(f"{path} is not a Parquet file, or is damaged or was not closed: {reason}. Record it again")


def _no_such_file(path: str | Path) -> LearnerError:
    return LearnerError(f"there is no file {path}", "write one: mqlab trace SCENARIO --out FILE")
