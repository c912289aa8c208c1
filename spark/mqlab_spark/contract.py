"""The input contract: a trace comes in whole and true, or not at all.

A file is read once, batch by batch, and given as narrow Arrow tables, one for each kind of event with that kind's own
columns. ProtocolError says what is wrong with it, by the rules of Python's own reader (`mqlab.trace.recorded`) and by
what only all events of a world together can show: a place (slice, i) that comes twice, and a clock that goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import TextIOWrapper
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import parquet

from mqlab.errors import ProtocolError
from mqlab.trace.catalogue import CATALOGUE, COMMON_TYPES, FIRST, columns_of, field_types
from mqlab.trace.record import KIND
from mqlab.trace.recorded import check_footer, check_header, check_lines, header_of, json_rows
from mqlab.trace.recorder import arrow_arrays
from mqlab_spark.storage import Folder

BATCH_ROWS = 32_768
ARROW_TYPES = {"int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}
IN_ORDER = ("slice", "i", "ts_us", "node")
"""The columns that say where an event belongs."""


class Batch(NamedTuple):
    """Some events of a file: where each belongs, in the order of the file, and a table for each kind of them."""

    order: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


@cache
def kind_schema(kind: str) -> pa.Schema:
    """The columns of a kind of event, without that of the kind itself, which is the same in all rows."""
    types = {**COMMON_TYPES, **field_types()}
    return pa.schema([(name, ARROW_TYPES[types[name]]) for name in columns_of(kind) if name != "kind"])


def read_header(there: Folder, path: str, *, whole: bool = True) -> dict[str, Any]:
    """The header of a trace, at a path below a folder; ProtocolError if it is not what it should be, or the schema, or,
    unless `whole` is False, the end.

    Of JSON lines only the first line is read here: whether they are whole, and whether each of them is an event, turns
    out as they are read.
    """
    with _saying_where(path):
        if not path.endswith(".jsonl"):
            with there.open(path) as stream:
                file = parquet.ParquetFile(stream)
                return check_footer(file, path) if whole else header_of(file, path)
        with there.open(path) as stream, _as_text(stream) as text:
            return check_header(text.readline(), path)


def check_whole(there: Folder, path: str) -> dict[str, Any]:
    """The header of a trace, as `read_header` gives it; ProtocolError also for JSON lines that are not whole."""
    header = read_header(there, path)
    if path.endswith(".jsonl"):
        with _saying_where(path), there.open(path) as stream:
            check_lines(stream, header, path)
    return header


def read_events(there: Folder, path: str) -> Iterator[Batch]:
    """All events of a trace; ProtocolError, sooner or later, if the file is not whole and true."""
    seen = _Order(path)
    with _saying_where(path):
        for batch in _read(there, path):
            seen.follow(batch.order)
            yield batch
        if seen.shuffled:
            # Sorting needs all places at once: they are read again, alone, since nearly every file is in order.
            several = [batch.order for batch in _read(there, path, IN_ORDER)]
            seen.check_sorted({name: pa.chunked_array([each[name] for each in several]) for name in IN_ORDER})


@contextmanager
def _saying_where(path: str) -> Iterator[None]:
    """ProtocolError for what Arrow and the file system say of a file that is damaged or cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise ProtocolError(f"{path} is no longer there") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ProtocolError(
            f"{path} is not a Parquet file, or is damaged or was not closed: {reason}. Record it again"
            if not path.endswith(".jsonl")
            else f"{path} cannot be read: {reason}"
        ) from None


def _as_text(stream: Any) -> TextIOWrapper:
    return TextIOWrapper(stream, encoding="ascii", errors="backslashreplace", newline="\n")


def _read(there: Folder, path: str, only: tuple[str, ...] = ()) -> Iterator[Batch]:
    return _read_lines(there, path) if path.endswith(".jsonl") else _read_parquet(there, path, only)


# -- JSON lines --------------------------------------------------------------------------------------------------------


def _read_lines(there: Folder, path: str) -> Iterator[Batch]:
    places = {name: place for place, name in enumerate(COMMON_TYPES) if name in IN_ORDER}
    with there.open(path) as stream, _as_text(stream) as text:
        rows = json_rows(text, path)
        while several := list(islice(rows, BATCH_ROWS)):
            order = {name: pa.array([row[at] for row in several]) for name, at in places.items()}
            of_kinds: dict[str, list[Any]] = {}
            for row in several:
                of_kinds.setdefault(row[KIND], []).append(row)
            tables = {
                kind: pa.Table.from_arrays(arrow_arrays(own, kind_schema(kind)), schema=kind_schema(kind))
                for kind, own in of_kinds.items()
            }
            yield Batch(order, tables)


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _read_parquet(there: Folder, path: str, only: tuple[str, ...]) -> Iterator[Batch]:
    with there.open(path) as stream:
        file = parquet.ParquetFile(stream)
        check_footer(file, path)
        count = 0
        for batch in file.iter_batches(BATCH_ROWS, columns=list(only) or _columns_with_values(file)):
            columns = {name: batch.column(name) for name in batch.schema.names}
            _check_common(columns, path, count)
            order = {name: columns[name] for name in IN_ORDER}
            yield Batch(order, {} if only else _split(batch, path, count))
            count += batch.num_rows


def _columns_with_values(file: parquet.ParquetFile) -> list[str]:
    """The columns that are not null in every row, as far as the footer tells: most kinds never occur in a world."""
    about = file.metadata
    empty = set(range(about.num_columns))
    for group in (about.row_group(number) for number in range(about.num_row_groups)):
        for column in sorted(empty):
            told = group.column(column).statistics
            if told is None or not told.has_null_count or told.null_count < group.num_rows:
                empty.discard(column)
    names = [about.schema.column(column).path for column in range(about.num_columns) if column not in empty]
    known = {**COMMON_TYPES, **field_types()}
    return [name for name in names if name in known] or list(COMMON_TYPES)


def _check_common(columns: Mapping[str, Any], path: str, count: int) -> None:
    for name, values in columns.items():
        if name in COMMON_TYPES and values.null_count:
            at = count + 1 + values.is_null().index(True).as_py()
            raise ProtocolError(f"{path}, event {at}: its {name} is null. Record the trace again")


def _split(batch: pa.RecordBatch, path: str, count: int) -> dict[str, pa.Table]:
    """A table for each kind, with that kind's columns."""
    kinds = batch.column("kind")
    kinds = kinds if isinstance(kinds, pa.DictionaryArray) else kinds.dictionary_encode()
    codes = kinds.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(kinds.dictionary)))
    names = set(batch.schema.names)
    tables = {}
    for kind, begin, end in zip(kinds.dictionary.to_pylist(), [0, *ends], ends, strict=False):
        if kind not in CATALOGUE:
            raise ProtocolError(f"{path}: this mqlab knows no event kind {kind!r}: record the trace again")
        if begin == end:
            continue
        schema = kind_schema(kind)
        missing = [name for name in schema.names if name not in names]
        if missing:
            raise ProtocolError(f"{path} has no {missing[0]} for {kind}: record the trace again")
        rows = batch.select(schema.names).take(pa.array(order[begin:end]))
        for name, values in zip(schema.names[FIRST - 1 :], rows.columns[FIRST - 1 :], strict=True):
            if values.null_count:
                at = count + 1 + int(order[begin + values.is_null().index(True).as_py()])
                raise ProtocolError(f"{path}, event {at}: {kind}.{name} is null. Record the trace again")
        table = pa.Table.from_batches([rows])
        tables[kind] = table if table.schema.equals(schema) else table.cast(schema)
    return tables


# -- places and clocks -------------------------------------------------------------------------------------------------


class _Order:
    """What the places and times of a file's events must keep to, followed from batch to batch."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.shuffled = False
        self._last = (-1, -1)
        self._time_of: dict[str, int] = {}

    def follow(self, order: Mapping[str, Any]) -> None:
        """ProtocolError for a place that comes twice or for a clock that goes back; rows out of order are noted."""
        if self.shuffled or not len(order["slice"]):
            return
        slices, places = _numbers(order["slice"]), _numbers(order["i"])
        steps = self._steps(np.append(self._last[0], slices), np.append(self._last[1], places))
        if (steps < 0).any():
            self.shuffled = True
            return
        self._last = int(slices[-1]), int(places[-1])
        self._check_clocks(order["node"], _numbers(order["ts_us"]))

    def check_sorted(self, order: Mapping[str, Any]) -> None:
        """The same of all events of a file, whatever their order."""
        slices, places = _numbers(order["slice"]), _numbers(order["i"])
        sort = np.lexsort((places, slices))
        self._steps(slices[sort], places[sort])
        self._time_of.clear()
        self._check_clocks(order["node"].take(pa.array(sort)), _numbers(order["ts_us"])[sort])

    def _steps(self, slices: Any, places: Any) -> Any:
        """From each place to the next: positive where it is a later one, negative where it is an earlier one."""
        step = np.diff(slices)
        steps = np.where(step == 0, np.diff(places), step)
        if (steps == 0).any():
            at = int(np.argmax(steps == 0))
            raise ProtocolError(
                f"{self.path} has two events at one place, slice {slices[at]}, i {places[at]}: rows of it were copied, "
                "or it is of two worlds. Record the trace again"
            )
        return steps

    def _check_clocks(self, nodes: Any, times: Any) -> None:
        """Within one machine time does not go back."""
        plain = nodes.combine_chunks() if isinstance(nodes, pa.ChunkedArray) else nodes
        encoded = plain if isinstance(plain, pa.DictionaryArray) else pc.dictionary_encode(plain)
        names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        sort = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))
        for name, begin, end in zip(names, [0, *ends], ends, strict=False):
            if begin == end:
                continue
            own = times[sort[begin:end]]
            before = np.append(self._time_of.get(name, own[0]), own[:-1])
            if (own < before).any():
                at = int(np.argmax(own < before))
                raise ProtocolError(
                    f"{self.path}: the clock of {name} goes back from {before[at]} to {own[at]} us. "
                    "Record the trace again"
                )
            self._time_of[name] = int(own[-1])


def _numbers(column: Any) -> Any:
    return column.to_numpy().astype(np.int64, copy=False)
