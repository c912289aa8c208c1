"""Recorders write a trace to a file, event by event: as JSON lines for reading, as Parquet for analysis.

JSON lines: the first line is a header, `{"mqlab_trace": 1, "mqlab": "0.1.0", "end_mark": true, "metadata": {...}}`,
where the first number is the schema version. Every other line is one event, an object with the common columns and the
fields of its kind only: `{"slice": 3, "i": 0, ..., "kind": "PullHeld", "group": "readers", ...}`. The last line is the
end mark with the number of events: `{"mqlab_end": 1703}`.

Parquet: the common columns, then the union of the fields of all kinds, null where a kind has no such field. The header
is in the file's own metadata under the key `mqlab`, as the same JSON, the number of events under `mqlab_end`. A
Parquet file has its name only when it is whole: until then it is called `_NAME.unfinished`, which Spark passes over.

A recording that an error or the stop button ended keeps what it has, without the end mark; `recorded.py` reads files
and says what is not whole.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring_ascii
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mqlab.errors import LearnerError, MissingExtraError
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import ATOMS, COMMON_TYPES, FIRST, SCHEMA_VERSION, check_row, columns_of, field_types

Metadata = Mapping[str, Any]
"""What the caller wants to keep with a trace: scenario, seed, parameters. JSON-able."""

BATCH_ROWS = 10_000
LINES_BATCH_ROWS = 500
"""Texts are made event by event, which is fastest while the events are still in the processor's cache."""

PARQUET_KEY = b"mqlab"
END_MARK = "mqlab_end"


class Recorder:
    """A sink that writes events in batches; close it (or use it in a `with` block) to write the last ones.

    A `with` block that an error leaves abandons the recording: what it has is kept, and does not look whole.
    """

    batch_rows = BATCH_ROWS

    def __init__(self, path: str | Path) -> None:
        self.about = f"to {path}"
        self._pending: list[Row] = []
        self._lost_rows = False
        self.count = 0
        self.closed = False

    def __call__(self, row: Row) -> None:
        pending = self._pending
        pending.append(row)
        if len(pending) >= self.batch_rows:
            self._drain()

    def _drain(self) -> None:
        rows, self._pending = self._pending, []
        # Until they are written: whatever breaks that off, the trace never looks whole again.
        lost_before, self._lost_rows = self._lost_rows, True
        self._write(rows)
        self._lost_rows = lost_before
        self.count += len(rows)

    def _write(self, rows: list[Row]) -> None:
        raise NotImplementedError

    def _mark_end(self) -> None:
        """Write the end mark: all `count` events are there."""
        raise NotImplementedError

    def _close_file(self, *, whole: bool) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left with the end mark, unless events were lost before; closing twice changes nothing.

        `count` says how many events it has.
        """
        self._close(whole=True)

    def abandon(self) -> None:
        """Write what is left without the end mark: the trace ends before its world did."""
        self._close(whole=False)

    def _close(self, *, whole: bool) -> None:
        if self.closed:
            return
        self.closed = True
        marked = False
        try:
            if self._pending:
                self._drain()
            if whole and not self._lost_rows:
                self._mark_end()
                marked = True
        finally:
            self._close_file(whole=marked)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()


# -- JSON lines --------------------------------------------------------------------------------------------------------


class _AsJson(dict[Any, str]):
    """Texts and truth values as JSON, each worked out once: a batch of events repeats the same few names."""

    def __init__(self) -> None:
        super().__init__({True: "true", False: "false"})

    def __missing__(self, text: str) -> str:
        self[text] = quoted = encode_basestring_ascii(text)
        return quoted


class JsonLinesRecorder(Recorder):
    """Writes a trace as JSON lines: a header, then one object per event, then the end mark."""

    batch_rows = LINES_BATCH_ROWS

    def __init__(self, path: str | Path, metadata: Metadata | None = None) -> None:
        super().__init__(path)
        header = header_text(metadata)
        self._file = Path(path).open("w", encoding="ascii", newline="\n")  # noqa: SIM115  closed by close()
        self._file.write(header + "\n")

    def _write(self, rows: list[Row]) -> None:
        as_json = _AsJson()
        formatters = _FORMATTERS
        self._file.write("".join([formatters[row[7]](row, as_json) for row in rows]))

    def _mark_end(self) -> None:
        self._file.write(json.dumps({END_MARK: self.count}) + "\n")

    def _close_file(self, *, whole: bool) -> None:
        self._file.close()


_Formatter = Callable[[Row, Mapping[Any, str]], str]


def _formatter(kind: str) -> _Formatter:
    r"""A function of its own for each kind, since one that has to look what each value is takes twice as long.

    Of a kind with the fields `topic` and `queue_id` it is:

        def line(row, as_json):
            slice, i, ..., topic, queue_id = row
            if not (type(slice) is type(i) is ... is type(queue_id) is int and type(node) is ... is type(topic) is str):
                check_row(row)
            return f'{{"slice":{slice},"i":{i},...,"topic":{as_json[topic]},"queue_id":{queue_id}}}\n'
    """
    columns = columns_of(kind)
    type_of = {column: COMMON_TYPES.get(column) or field_types()[column] for column in columns}
    tests, values = [], []
    for wanted in ATOMS.values():
        same = [f"type({column})" for column in columns if type_of[column] == wanted]
        tests += [f"{' is '.join(same)} is {wanted}"] if same else []
    for column in columns:
        value = column if type_of[column] == "int" else f"as_json[{column}]"
        values.append(f'"{column}":{{{value}}}')
    source = (
        "def line(row, as_json):\n"
        f"    {', '.join(columns)} = row\n"
        f"    if not ({' and '.join(tests)}):\n"
        "        check_row(row)\n"
        f"    return f'{{{{{','.join(values)}}}}}\\n'\n"
    )
    scope: dict[str, Any] = {"check_row": check_row}
    exec(source, scope)  # noqa: S102  the names are those of the catalogue
    line: _Formatter = scope["line"]
    return line


class _Formatters(dict[str, _Formatter]):
    """The formatters of the kinds that occurred."""

    def __missing__(self, kind: str) -> _Formatter:
        self[kind] = line = _formatter(kind)
        return line


_FORMATTERS = _Formatters()


# -- Parquet -----------------------------------------------------------------------------------------------------------


class ParquetRecorder(Recorder):
    """Writes a trace as Parquet (zstd), in row groups of 10,000 events. MissingExtraError without pyarrow.

    A file of that name that is there already is removed at once: it is not this recording.
    """

    def __init__(self, path: str | Path, metadata: Metadata | None = None) -> None:
        super().__init__(path)
        self._arrow = pyarrow()
        self._schema = parquet_schema(metadata)
        self._path = Path(path)
        self._unfinished = self._path.with_name(f"_{self._path.name}.unfinished")
        self._writer = self._arrow.parquet.ParquetWriter(str(self._unfinished), self._schema, compression="zstd")
        self._path.unlink(missing_ok=True)

    def _write(self, rows: list[Row]) -> None:
        table = self._arrow.Table.from_arrays(arrow_arrays(rows, self._schema), schema=self._schema)
        self._writer.write_table(table, row_group_size=BATCH_ROWS)

    def _mark_end(self) -> None:
        self._writer.add_key_value_metadata({END_MARK: str(self.count)})

    def _close_file(self, *, whole: bool) -> None:
        self._writer.close()
        if whole:
            self._unfinished.replace(self._path)


def arrow_arrays(rows: Sequence[Row], schema: Any) -> list[Any]:
    """Rows of a trace as Arrow arrays, one for each field of the schema; MissingExtraError without pyarrow."""
    arrow = pyarrow()
    columns = _columns(rows, frozenset(schema.names))
    return [
        _arrow_array(arrow, columns[field.name], field.type)
        if field.name in columns
        else arrow.nulls(len(rows), field.type)
        for field in schema
    ]


def _arrow_array(arrow: Any, values: Sequence[Any], kind: Any) -> Any:
    try:
        return arrow.array(values, kind)
    except UnicodeEncodeError:
        # Half of a surrogate pair has no form in UTF-8; Java writes it as a question mark.
        whole = [None if text is None else text.encode("utf-8", "replace").decode() for text in values]
        return arrow.array(whole, kind)


def _columns(rows: Sequence[Row], wanted: frozenset[str]) -> dict[str, Sequence[Any]]:
    """The rows as columns: those of `wanted` that occur, None where a row's kind has no such field."""
    columns: dict[str, Any] = dict(zip(COMMON_TYPES, islice(zip(*rows, strict=False), FIRST), strict=True))
    places: dict[str, list[int]] = {kind: [] for kind in dict.fromkeys(columns["kind"])}
    for place, kind in enumerate(columns["kind"]):
        places[kind].append(place)
    for kind, here in places.items():
        own = columns_of(kind)
        if wanted.isdisjoint(own[FIRST:]):
            continue
        same = zip(*[rows[place] for place in here], strict=True)
        for name, values in islice(zip(own, same, strict=True), FIRST, None):
            if name not in wanted:
                continue
            column = columns.get(name)
            if column is None:
                column = columns[name] = [None] * len(rows)
            _exhaust(map(column.__setitem__, here, values))
    return columns


_exhaust = deque[None](maxlen=0).extend
"""Runs through an iterator without a loop of Python."""


def parquet_schema(metadata: Metadata | None = None) -> Any:
    """The Arrow schema of recorded traces, with the header as its metadata."""
    arrow = pyarrow()
    types = {"int": arrow.int64(), "str": arrow.string(), "bool": arrow.bool_()}
    common = [arrow.field(name, types[kind], nullable=False) for name, kind in COMMON_TYPES.items()]
    fields = [arrow.field(name, types[kind]) for name, kind in field_types().items()]
    return arrow.schema([*common, *fields], metadata={PARQUET_KEY: header_text(metadata).encode()})


def header_text(metadata: Metadata | None = None) -> str:
    """The header of a trace as JSON: schema version, version of mqlab, that there is an end mark, metadata."""
    from mqlab import __version__

    header = {"mqlab_trace": SCHEMA_VERSION, "mqlab": __version__, "end_mark": True, "metadata": dict(metadata or {})}
    try:
        return json.dumps(header)
    except TypeError as error:
        raise LearnerError(
            f"the metadata of a trace must be JSON: {error}", "use texts, numbers, lists and dicts"
        ) from None


def pyarrow() -> Any:
    """The package pyarrow; MissingExtraError without it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "trace") from None
    return pyarrow
