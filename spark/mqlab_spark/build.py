"""Building the tables: from recorded traces to bronze, silver and gold, in steps that can be repeated.

What is new among the traces is a batch. Every table has a directory for each batch: all that tables say is said within
one world, and a world is of one batch, so one more trace costs its own share. A batch is made anew when one of its
files has changed, and a table of it when the code of the table has, or a table that it is made from.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from pyarrow import fs, parquet
from pyspark.sql import DataFrame, SparkSession

from mqlab.data_sets.named_worlds import NAME, TRACE_HASH
from mqlab.errors import LearnerError, ProtocolError
from mqlab.progress import say
from mqlab.trace.catalogue import SCHEMA_VERSION
from mqlab_spark.bronze import Source, write_events
from mqlab_spark.code_keys import code_key
from mqlab_spark.contract import read_header
from mqlab_spark.place import CATALOGUE, TABLES_VERSION, Place, saying_no_room
from mqlab_spark.reading import events_at, table_at
from mqlab_spark.schema import WORLD, trace_schema, world_id
from mqlab_spark.storage import File, Folder
from mqlab_spark.tables import ALL, BRONZE, EVENTS, GOLD, SILVER, TRACES, Table
from mqlab_spark.tables.table import TEXT, TRACE_COLUMNS, WHOLE
from mqlab_spark.traces import READERS, listed, row_of

LAYERS = (BRONZE, SILVER, GOLD)
LAYOUT = {"compression": "zstd", "parquet.page.row.count.limit": "2000"}
"""Small pages, each with its least and its greatest value: who asks for one world reads few of them."""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"
LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
DIRECTORIES_LISTED_HERE = 1_000
"""Spark would start a job to list more than 32 directories, and events have one for each kind."""

TRACE_BYTES_PER_SHUFFLE_PARTITION = 16 * 1024 * 1024
"""About 800,000 events: what a table sorts or hashes of them is some ten MB."""

MOST_BATCHES = 32
"""With more, all of them become one: a query opens a file of each."""

TABLES_AT_ONCE = 3

MOST_TOLD = 20
"""So many files that were set aside are named on the terminal."""

END_BYTES = 65_536

Progress = Callable[[str, int, float], None]
"""Told of each table when it is there: its name, its rows, and how many seconds it took (0: it was there already)."""

Made = dict[str, Any]
"""What a place has, as its catalogue says it."""


def build(
    spark: SparkSession,
    traces: str | Path,
    out: str | Path,
    progress: Progress | None = None,
    *,
    strict: bool = False,
    only: Collection[str] | None = None,
) -> Place:
    """Make all tables of the traces in a directory (or of one trace, or of a pattern) at a place.

    With `only` it is these tables, those that they are made from, and those that are there already: the others come
    with a later build. The events are always there.

    What is there already, of the same traces and by the same code, is left alone, so a build that was killed goes on
    where it was, and a trace that has come since costs its own share. A file that is not whole and true is set aside
    with a reason, and the build goes on without it: `Place.read()["set_aside"]`; `strict` has it stop there.
    LearnerError when there is no trace that is whole and true, for a table that nobody knows, or when somebody else
    builds there.
    """
    place = Place(out)
    tables_to_make(only)
    with place.alone():
        reading, found = listed(traces)
        made = _Making(spark, reading, found, place, strict=strict, only=only)
        with _tasks_for(spark, sum(info.size for info in found.values())):
            made.take_in()
            if not made.good:
                aside = made.set_aside
                raise LearnerError(
                    f"there is no whole trace at {traces}",
                    f"{aside[0]['file']}: {aside[0]['reason']}" if aside else "record one: mqlab trace",
                )
            made.make_tables(progress)
        made.finish()
    return place


def tables_to_make(only: Collection[str] | None, there: Collection[str] = ()) -> tuple[Table, ...]:
    """All tables; or `only` these, those that they are made from, and those that are `there`.

    LearnerError for a table that nobody knows.
    """
    if only is None:
        return ALL
    known = [EVENTS, TRACES, *(table.name for table in ALL)]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise LearnerError(f"there is no table {unknown[0]!r}", f"there are: {', '.join(known)}")
    wanted = {*only, *there}
    for table in reversed(ALL):
        if table.name in wanted:
            wanted.update(table.made_from, table.besides)
    return tuple(table for table in ALL if table.name in wanted)


def is_little(trace_bytes: int) -> bool:
    """Whether traces of so many bytes cost less than planning what is done with them."""
    return trace_bytes < TRACE_BYTES_PER_SHUFFLE_PARTITION


@contextmanager
def _tasks_for(spark: SparkSession, trace_bytes: int) -> Iterator[None]:
    """Shuffles in so many parts that each fits into memory, however much there is; not fewer than are set already.

    Little data is one part, and its queries are planned once: what Spark learns on the way changes nothing of them, and
    planning is most of their cost.
    """
    before = {name: spark.conf.get(name) for name in (SHUFFLE_PARTITIONS, LISTING_THRESHOLD, ADAPTIVE)}
    try:
        if is_little(trace_bytes):
            spark.conf.set(SHUFFLE_PARTITIONS, 1)
            spark.conf.set(ADAPTIVE, "false")
        else:
            parts = max(int(before[SHUFFLE_PARTITIONS] or 1), -(-trace_bytes // TRACE_BYTES_PER_SHUFFLE_PARTITION))
            spark.conf.set(SHUFFLE_PARTITIONS, parts)
        spark.conf.set(LISTING_THRESHOLD, DIRECTORIES_LISTED_HERE)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


class _Making:
    """One build: what was there, what comes in, and what is made of it."""

    def __init__(
        self,
        spark: SparkSession,
        reading: Folder,
        found: Mapping[str, File],
        place: Place,
        *,
        strict: bool,
        only: Collection[str] | None,
    ) -> None:
        self.spark = spark
        self.reading = reading
        self.found = found
        self.place = place
        self.strict = strict
        self.reader = code_key("mqlab_spark.bronze", "mqlab_spark.contract") + f"-{SCHEMA_VERSION}"
        self.before = place.read()
        begun = self.before.get("building")
        source = next((each for each in (begun, self.before) if each and each.get("reader") == self.reader), {})
        self.files: dict[str, Made] = {
            file: about
            for file, about in source.get("files", {}).items()
            if file in found and about["state"] == found[file].state
        }
        self.tables: dict[str, dict[str, Made]] = {
            name: dict(table["batches"]) for name, table in source.get("tables", {}).items()
        }
        self.wanted = tables_to_make(only, self.tables.keys() | self.before["tables"].keys())
        self._members: dict[str, list[str]] = defaultdict(list)
        for file, about in source.get("files", {}).items():
            if about["batch"]:
                self._members[about["batch"]].append(file)
        # Here, since Python 3.11 reads code in one thread at a time or not at all.
        self.codes = {table.name: code_key(table.query.__module__) for table in self.wanted}
        self.seconds: dict[str, float] = defaultdict(float)
        self._writing = Lock()
        self.good: dict[str, Made] = {}
        """The files that come in, as far as is known."""
        self.set_aside: list[dict[str, str]] = []
        """The files that do not come in, each with the reason why."""
        self.batches: list[str] = []
        """The batches of which all files are as they were."""

    # -- traces --------------------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Say anew which files come in, which do not, and which batches are as they were: something has changed."""
        reasons = {file: about["problem"] for file, about in self.files.items() if about["problem"]}
        reasons |= _twins({file: about for file, about in self.files.items() if file not in reasons})
        self.set_aside = [{"file": file, "reason": reason} for file, reason in sorted(reasons.items())]
        self.good = {file: about for file, about in sorted(self.files.items()) if file not in reasons}
        self.batches = sorted(
            batch
            for batch, files in self._members.items()
            if batch in self.tables.get(EVENTS, {})
            and all(file in self.good and self.good[file]["batch"] == batch for file in files)
        )

    def take_in(self) -> None:
        """Write what is new among the traces to bronze."""
        self._read_headers()
        while todo := self._new():
            self._stop_if_strict()
            began = time.monotonic()
            self._write_batch(todo)
            self.seconds[EVENTS] += time.monotonic() - began
        self._stop_if_strict()

    def _stop_if_strict(self) -> None:
        aside = self.set_aside
        if self.strict and aside:
            others = f", and {len(aside) - 1} others" if len(aside) > 1 else ""
            raise LearnerError(
                f"not every trace is whole and true: {aside[0]['file']}: {aside[0]['reason']}{others}",
                "take the files away, or build without --strict",
            )

    def _read_headers(self) -> None:
        unknown = [file for file in self.found if file not in self.files]
        with ThreadPoolExecutor(READERS) as pool:
            self.files.update(zip(unknown, pool.map(self._about, unknown), strict=True))
        self._look_again()

    def _about(self, file: str) -> Made:
        about: Made = {"state": self.found[file].state, "batch": None, "problem": None, "events": 0}
        try:
            header = read_header(self.reading, file)
        except ProtocolError as problem:
            return {**about, "header": None, "problem": str(problem)}
        told = header["metadata"].get(TRACE_HASH)
        return {**about, "header": header, "fingerprint": told or self._end_of(file)}

    def _end_of(self, file: str) -> str:
        """What tells a file whose header has no hash from others: its size and its end."""
        size = self.found[file].size
        with self.reading.open(file) as stream:
            stream.seek(max(0, size - END_BYTES))
            return hashlib.blake2b(f"{size}".encode() + stream.read(), digest_size=8).hexdigest()

    def _new(self) -> list[str]:
        """The files that are in no batch; all, where these would make too many batches."""
        known = {file for batch in self.batches for file in self._members[batch]}
        new = [file for file in self.good if file not in known]
        if new and len(self.batches) >= MOST_BATCHES:
            self._members.clear()
            return list(self.good)
        return new

    def _write_batch(self, files: list[str]) -> None:
        states = "".join(f"{file}|{self.files[file]['state']}\n" for file in files)
        batch = hashlib.blake2b(f"{self.reader}\n{states}".encode(), digest_size=8).hexdigest()
        path = self._free_path(BRONZE, EVENTS, batch)
        sources = [Source(file, self.found[file].size, world_id(self._name(file))) for file in files]
        with saying_no_room(f"the table {EVENTS!r} cannot be written to {self.place.where}"):
            taken = write_events(self.spark, self.reading, sources, self.place, path)
        for file, reason in taken.aside.items():
            self.files[file]["problem"] = reason
        for file, events in taken.events.items():
            self.files[file].update(batch=batch, events=events)
        self._members[batch] = list(taken.events)
        if taken.events:
            self._note(EVENTS, batch, path, sum(taken.events.values()), self.reader)
            self._write_traces(batch)
        else:
            del self._members[batch]
        self._look_again()
        self._write_catalogue()

    def _write_traces(self, batch: str) -> None:
        rows = [row_of(file, self._name(file), self.files[file]["header"]) for file in self._members[batch]]
        path = self._free_path(BRONZE, TRACES, batch)
        kinds = {WHOLE: pa.int64(), TEXT: pa.string()}
        columns = {
            name: pa.array([row[name] for row in rows], kinds[column.type]) for name, column in TRACE_COLUMNS.items()
        }
        self.place.files.create_dir(f"{self.place.root}/{path}", recursive=True)
        with (
            saying_no_room(f"the table {TRACES!r} cannot be written to {self.place.where}"),
            self.place.files.open_output_stream(f"{self.place.root}/{path}/part-00000.parquet") as stream,
        ):
            parquet.write_table(pa.table(columns), stream, compression="zstd", store_schema=False)
        self._note(TRACES, batch, path, len(rows), self.reader)

    def _name(self, file: str) -> str:
        return world_name(file, self.files[file]["header"])

    # -- tables --------------------------------------------------------------------------------------------------------

    def make_tables(self, progress: Progress | None) -> None:
        """Make what is missing of the tables, of little data several at a time: planning them is most of the work."""
        batches = self.batches
        made = {batch: self._bronze(batch) for batch in batches}
        little = is_little(sum(file.size for file in self.found.values()))
        coming: dict[tuple[str, str], Future[DataFrame]] = {}

        def make(table: Table, batch: str) -> DataFrame:
            names = [name for name in (*table.made_from, *table.besides) if name not in made[batch]]
            sources = {name: coming[batch, name].result() for name in names}
            return self._ensure(table, batch, {**made[batch], **sources})

        self._tell(EVENTS, batches, progress)
        self._tell(TRACES, batches, progress)
        with ThreadPoolExecutor(TABLES_AT_ONCE if little else 1) as pool:
            try:
                # Each stands behind those that it is made from, so none waits for one that waits for a thread.
                for table in self.wanted:
                    for batch in batches:
                        coming[batch, table.name] = pool.submit(make, table, batch)
                for table in self.wanted:
                    for batch in batches:
                        coming[batch, table.name].result()
                    self._tell(table.name, batches, progress)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _bronze(self, batch: str) -> dict[str, DataFrame]:
        events, traces = (self.tables[name][batch]["path"] for name in (EVENTS, TRACES))
        return {
            EVENTS: events_at(self.spark, self.place, [events]),
            TRACES: table_at(self.spark, self.place, [traces], types_of(TRACES)),
        }

    def _ensure(self, table: Table, batch: str, tables: Mapping[str, DataFrame]) -> DataFrame:
        """The table of a batch as it lies at the place; it is made and written first when it is missing."""
        sources = [self.tables[name][batch]["key"] for name in (*table.made_from, *table.besides)]
        key = hashlib.blake2b("|".join([batch, self.codes[table.name], *sources]).encode(), digest_size=8).hexdigest()
        known = self.tables.get(table.name, {}).get(batch)
        if known is None or known["key"] != key:
            began = time.monotonic()
            path = self._free_path(table.layer, table.name, batch)
            for part in table.make_parts(tables):
                with saying_no_room(f"the table {table.name!r} cannot be written to {self.place.where}"):
                    part.write.mode("append").options(**LAYOUT).parquet(self.place.address(path))
            rows = _rows(self.place, path)
            with self._writing:
                known = self._note(table.name, batch, path, rows, key)
                self.seconds[table.name] += time.monotonic() - began
                # So that a build that is killed goes on behind this table.
                self._write_catalogue()
        return table_at(self.spark, self.place, [known["path"]], types_of(table.name))

    def _note(self, name: str, batch: str, path: str, rows: int, key: str) -> Made:
        known = self.tables.setdefault(name, {})[batch] = {"path": path, "rows": rows, "key": key}
        return known

    def _tell(self, name: str, batches: Sequence[str], progress: Progress | None) -> None:
        if progress is not None:
            progress(name, sum(self.tables[name][batch]["rows"] for batch in batches), self.seconds[name])

    # -- the catalogue -------------------------------------------------------------------------------------------------

    def _catalogue(self) -> Made:
        names = (EVENTS, TRACES, *(table.name for table in self.wanted))
        tables = {}
        for name in names:
            parts = {batch: part for batch, part in self.tables.get(name, {}).items() if batch in self.batches}
            if parts:
                # As JSON has it, in the order in which the table has its columns.
                tables[name] = {"columns": [list(pair) for pair in types_of(name).items()], "batches": parts}
        return {
            "version": TABLES_VERSION, "reader": self.reader, "files": self.files, "tables": tables,
            "set_aside": self.set_aside,
        }  # fmt: skip

    def _write_catalogue(self) -> None:
        """Note how far the build is; who reads meanwhile has the old tables, all of them."""
        self.place.write({**self.before, "building": self._catalogue()})

    def finish(self) -> None:
        """Name the new tables, all at once, and remove what no table needs any more."""
        made = self._catalogue()
        if made != self.before:
            self.place.write(made)
        self.place.remove_others(LAYERS)

    def _free_path(self, layer: str, name: str, batch: str) -> str:
        """A directory for a table of a batch; with a number behind it, when there is one from before."""
        path = f"{layer}/{name}/batch_key={batch}"
        return next(
            tried for number in count() if not self.place.exists(tried := path if not number else f"{path}-{number}")
        )  # fmt: skip


def world_name(file: str, header: Mapping[str, Any]) -> str:
    """What a trace's world is called: as its header says, else as its file."""
    return str(header["metadata"].get(NAME) or file)


def _twins(files: Mapping[str, Made]) -> dict[str, str]:
    """Which files cannot come in beside others, and why: copies, those of one world with other events, and those of a
    world whose name has the number of another one's.

    Of copies, and of worlds with one number, the one stays that is in a batch, else the first by name. Of different
    events that are said to be one world's, nobody knows which are.
    """
    reasons: dict[str, str] = {}
    first_of: dict[str, str] = {}
    in_turn = sorted(files, key=lambda file: (not files[file]["batch"], file))
    for file in in_turn:
        first = first_of.setdefault(files[file]["fingerprint"], file)
        if first != file:
            reasons[file] = f"it has the same events as {first}: it is a copy, or the same world recorded twice"
    by_name: dict[str, list[str]] = defaultdict(list)
    for file in sorted(files.keys() - reasons.keys()):
        by_name[world_name(file, files[file]["header"])].append(file)
    for name, several in by_name.items():
        for file in several if len(several) > 1 else ():
            other = next(each for each in several if each != file)
            reasons[file] = f"it is said to be of the world {name!r}, as {other} is, and their events are not the same"
    names: dict[int, str] = {}
    for file in in_turn:
        name = world_name(file, files[file]["header"])
        known = names.setdefault(world_id(name), name) if file not in reasons else name
        if known != name:
            reasons[file] = (
                f"its world {name!r} has the number of the world {known!r}, {world_id(name)}, so tables could not tell "
                "them apart: build it at another place, or record it under another name"
            )
    return reasons


def _rows(place: Place, path: str) -> int:
    """The rows of a table that was just written, as the footers of its files say."""
    selector = fs.FileSelector(f"{place.root}/{path}")
    parts = [info.path for info in place.files.get_file_info(selector) if info.extension == "parquet"]

    def rows(part: str) -> int:
        with place.files.open_input_file(part) as stream:
            return int(parquet.read_metadata(stream).num_rows)

    if len(parts) == 1:
        return rows(parts[0])
    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(rows, parts))


def types_of(name: str) -> dict[str, str]:
    """The columns of a table and their types, in Spark's words."""
    if name == EVENTS:
        return {WORLD: WHOLE, **{field.name: field.dataType.simpleString() for field in trace_schema()}}
    columns = TRACE_COLUMNS if name == TRACES else next(table.columns for table in ALL if table.name == name)
    return {column: told.type for column, told in columns.items()}


def tell(name: str, rows: int, seconds: float) -> None:
    """Say on the terminal that a table is there."""
    took = f"in {seconds:.1f} s" if seconds >= 0.05 else "was there already"
    say(f"{name:<20} {rows:>12,} rows  {took}")


def tell_traces(place: Place) -> None:
    """Say on the terminal which traces the tables have and which not, and why."""
    catalogue = place.read()
    aside = catalogue["set_aside"]
    taken = [about["events"] for about in catalogue["files"].values() if about["batch"]]
    say(f"taken: {len(taken):,} traces, {sum(taken):,} events; set aside: {len(aside):,}")
    for each in aside[:MOST_TOLD]:
        say(f"set aside: {each['file']}: {each['reason']}")
    if len(aside) > MOST_TOLD:
        say(f"and {len(aside) - MOST_TOLD:,} more: {CATALOGUE} of the tables names all, as `set_aside`")
