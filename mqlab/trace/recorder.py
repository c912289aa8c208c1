"""Recorders write a trace to a file, event by event: as JSON lines for reading, as Parquet for analysis.

JSON lines: the first line is a header, `{"mqlab_trace": 1, "mqlab": "0.1.0", "metadata": {...}}`, where the first
number is the schema version. Every other line is one event, an object with the common columns and the fields of its
kind only: `{"slice": 3, "i": 0, ..., "kind": "PullHeld", "group": "readers", ...}`.

Parquet: the common columns, then the union of the fields of all kinds, null where a kind has no such field. The header
is in the file's own metadata under the key `mqlab`, as the same JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from json.encoder import encode_basestring_ascii
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import LearnerError, MissingExtraError, ProtocolError
from .bus import Row
from .catalogue import CATALOGUE, COMMON_TYPES, SCHEMA_VERSION, check_row, columns_of, field_types

Metadata = Mapping[str, Any]
"""What the caller wants to keep with a trace: scenario, seed, parameters. JSON-able."""

BATCH_ROWS = 10_000
LINES_BATCH_ROWS = 500
"""Texts are made event by event, which is fastest while the events are still in the processor's cache."""

PARQUET_KEY = b"mqlab"


class Recorder:
    """A sink that writes events in batches; close it (or use it in a `with` block) to write the last ones."""

    batch_rows = BATCH_ROWS

    def __init__(self) -> None:
        self._pending: list[Row] = []
        self.count = 0
        self.closed = False

    def __call__(self, row: Row) -> None:
        pending = self._pending
        pending.append(row)
        if len(pending) >= self.batch_rows:
            self._drain()

    def _drain(self) -> None:
        rows, self._pending = self._pending, []
        self.count += len(rows)
        self._write(rows)

    def _write(self, rows: list[Row]) -> None:
        raise NotImplementedError

    def _close_file(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left and close the file; closing twice changes nothing. `count` says how many events it has."""
        if self.closed:
            return
        self.closed = True
        try:
            if self._pending:
                self._drain()
        finally:
            self._close_file()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Quoted(dict[str, str]):
    """Texts as JSON, each worked out once: a batch of events repeats the same few names."""

    def __missing__(self, text: str) -> str:
        self[text] = quoted = encode_basestring_ascii(text)
        return quoted


class JsonLinesRecorder(Recorder):
    """Writes a trace as JSON lines: a header, then one object per event."""

    batch_rows = LINES_BATCH_ROWS

    def __init__(self, path: str | Path, metadata: Metadata | None = None) -> None:
        super().__init__()
        header = header_text(metadata)
        self._file = Path(path).open("w", encoding="ascii", newline="\n")  # noqa: SIM115  closed by close()
        self._file.write(header + "\n")

    def _write(self, rows: list[Row]) -> None:
        templates = _TEMPLATES
        quoted = _Quoted()
        lines = []
        for row in rows:
            template = templates.get(row[7]) or _template(row[7])
            lines.append(
                template
                % tuple(
                    [
                        v if type(v) is int else quoted[v] if type(v) is str else _bool(v, row)
                        for v in row
                    ]
                )
            )
        self._file.write("".join(lines))

    def _close_file(self) -> None:
        self._file.close()


class ParquetRecorder(Recorder):
    """Writes a trace as Parquet (zstd), in row groups of 10,000 events. MissingExtraError without pyarrow."""

    def __init__(self, path: str | Path, metadata: Metadata | None = None) -> None:
        super().__init__()
        self._arrow = _pyarrow()
        self._schema = parquet_schema(metadata)
        self._writer = self._arrow.parquet.ParquetWriter(str(path), self._schema, compression="zstd")

    def _write(self, rows: list[Row]) -> None:
        columns = _columns(rows)
        nothing = len(rows)
        arrays = [
            self._arrow.array(columns[field.name], field.type)
            if field.name in columns
            else self._arrow.nulls(nothing, field.type)
            for field in self._schema
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema), row_group_size=BATCH_ROWS)

    def _close_file(self) -> None:
        self._writer.close()


def parquet_schema(metadata: Metadata | None = None) -> Any:
    """The Arrow schema of recorded traces, with the header as its metadata."""
    arrow = _pyarrow()
    types = {"int": arrow.int64(), "str": arrow.string(), "bool": arrow.bool_()}
    common = [arrow.field(name, types[kind], nullable=False) for name, kind in COMMON_TYPES.items()]
    fields = [arrow.field(name, types[kind]) for name, kind in field_types().items()]
    return arrow.schema([*common, *fields], metadata={PARQUET_KEY: header_text(metadata).encode()})


def header_text(metadata: Metadata | None = None) -> str:
    """The header of a trace as JSON: schema version, version of mqlab, the caller's metadata."""
    from .. import __version__

    try:
        return json.dumps({"mqlab_trace": SCHEMA_VERSION, "mqlab": __version__, "metadata": dict(metadata or {})})
    except TypeError as error:
        raise LearnerError(
            f"the metadata of a trace must be JSON: {error}", "use texts, numbers, lists and dicts"
        ) from None


def check_header(text: str | bytes, path: str | Path) -> dict[str, Any]:
    """The header as a dict. ProtocolError if it is none, or if it is of another schema version."""
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict) or "mqlab_trace" not in header:
        raise ProtocolError(f"{path} is not a trace of mqlab: it does not begin with a header")
    if header["mqlab_trace"] != SCHEMA_VERSION:
        raise ProtocolError(
            f"{path} has trace schema version {header['mqlab_trace']} (written by mqlab {header.get('mqlab')}), "
            f"this mqlab reads version {SCHEMA_VERSION}: record the trace again"
        )
    return header


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a recorded trace (.parquet, else JSON lines): `mqlab_trace`, `mqlab`, `metadata`."""
    return _parquet_header(path) if str(path).endswith(".parquet") else _json_header(path)


def _json_header(path: str | Path) -> dict[str, Any]:
    with _open_text(path) as file:
        return check_header(file.readline(), path)


def _parquet_header(path: str | Path) -> dict[str, Any]:
    with _open_parquet(path) as file:
        return check_header((file.schema_arrow.metadata or {}).get(PARQUET_KEY, b""), path)


def read_json_lines(path: str | Path) -> Iterator[Row]:
    """The rows of a JSON lines trace, lazily. ProtocolError for another schema version or a line that is no event."""
    _json_header(path)
    return _json_rows(path)


def _json_rows(path: str | Path) -> Iterator[Row]:
    with _open_text(path) as file:
        file.readline()
        for number, line in enumerate(file, 2):
            yield _row_of(line, f"{path}, line {number}")


def _row_of(line: str, place: str) -> Row:
    try:
        event = json.loads(line)
        kind = event["kind"]
    except (ValueError, KeyError, TypeError):
        raise ProtocolError(f"{place}: this is not an event: {line[:80].rstrip()!r}") from None
    if kind not in CATALOGUE:
        raise ProtocolError(f"{place}: this mqlab knows no event kind {kind!r}: record the trace again")
    columns = columns_of(kind)
    if event.keys() != set(columns):
        differing = ", ".join(sorted(event.keys() ^ set(columns)))
        raise ProtocolError(f"{place}: the fields of {kind} are not those of this mqlab ({differing}): record it again")
    return tuple([event[column] for column in columns])


def read_parquet(path: str | Path) -> Iterator[Row]:
    """The rows of a Parquet trace, lazily. ProtocolError for another schema version; needs the extra `trace`."""
    _parquet_header(path)
    return _parquet_rows(path)


def _parquet_rows(path: str | Path) -> Iterator[Row]:
    with _open_parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            for n, kind in enumerate(columns["kind"]):
                if kind not in CATALOGUE:
                    raise ProtocolError(f"{path}: this mqlab knows no event kind {kind!r}: record the trace again")
                yield tuple([columns[column][n] for column in columns_of(kind)])


def json_lines_to_parquet(source: str | Path, target: str | Path) -> int:
    """Write a JSON lines trace as Parquet, with the same metadata; returns the number of events."""
    rows = read_json_lines(source)
    with ParquetRecorder(target, _json_header(source)["metadata"]) as recorder:
        for row in rows:
            recorder(row)
    return recorder.count


_TEMPLATES: dict[str, str] = {}


def _template(kind: str) -> str:
    return _TEMPLATES.setdefault(kind, "{" + ",".join(f'"{column}":%s' for column in columns_of(kind)) + "}\n")


def _bool(value: Any, row: Row) -> str:
    if type(value) is not bool:
        check_row(row)
    return "true" if value else "false"


def _columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """The rows as columns: those that occur, None where a row's kind has no such field."""
    by_kind: dict[str, tuple[list[int], list[Row]]] = {}
    count = 0
    for count, row in enumerate(rows, 1):
        places, same = by_kind.setdefault(row[7], ([], []))
        places.append(count - 1)
        same.append(row)
    columns: dict[str, list[Any]] = {}
    for kind, (places, same) in by_kind.items():
        for name, values in zip(columns_of(kind), zip(*same, strict=True), strict=True):
            column = columns.get(name)
            if column is None:
                column = columns[name] = [None] * count
            for place, value in zip(places, values, strict=True):
                column[place] = value
    return columns


def _open_text(path: str | Path) -> Any:
    try:
        return Path(path).open(encoding="ascii", errors="backslashreplace")
    except FileNotFoundError:
        raise _no_such_file(path) from None


def _open_parquet(path: str | Path) -> Any:
    arrow = _pyarrow()
    try:
        return arrow.parquet.ParquetFile(str(path))
    except FileNotFoundError:
        raise _no_such_file(path) from None
    except arrow.ArrowInvalid as error:
        raise ProtocolError(f"{path} is not a Parquet file, or was not closed: {error}") from None


def _no_such_file(path: str | Path) -> LearnerError:
    return LearnerError(f"there is no file {path}", "write one: mqlab trace SCENARIO --out FILE")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "trace") from None
    return pyarrow
