"""A live trace: a directory of small Parquet files, each written whole while the world plays.

`segment-000001.parquet` and those that follow it have the events of one stretch of the world's time each; a file gets
its name when it is whole, so whoever follows the directory reads no half of one. `_live.json` says which world it is,
and `_end.json`, which comes last, how many segments and events there are: without it the world goes on, or its
recording was broken off. The last two segments have no event but a row that says so, with a time behind all others: the
first one moves a stream's watermark past everything, and with the second one the stream puts out what waited for that.

The events of a machine can come late, as they do where each machine ships its own log: while its shipper hangs, they
are kept, and all of them come in the segment of the moment at which it goes on.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.arguments import check_number
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.errors import LearnerError, ProtocolError
from mqlab.lab import Lab
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import COMMON_TYPES
from mqlab.trace.recorded import check_header, check_whole
from mqlab.trace.recorder import END_MARK, PARQUET_KEY, arrow_arrays, parquet_schema, pyarrow
from mqlab_spark.schema import WORLD
from mqlab_spark.world_source import events_schema

HEADER, END = "_live.json", "_end.json"
TIME, MACHINE = 2, 3
"""The places of `ts_us` and `node` in a row."""
ENDED = "TraceEnded"
"""What stands for the kind in the row of a segment that ends a trace."""
ENDED_US = 10 * 365 * 86_400 * 1_000_000
"""Its time, ten years after the world began."""
FIRST_TIME_S = 1_000_000_000
"""Segment n has been changed n seconds after this (2001): Spark takes files in the order of their times, and two that
were written in the same millisecond would have none.
"""


class Hang(NamedTuple):
    """A machine whose log comes late: what happens there between two moments (s) is shipped at the second one."""

    machine: str
    from_s: float
    to_s: float


class LiveTrace:
    """Writes a world's events into a directory while it plays; see `live_trace`."""

    def __init__(self, lab: Lab, directory: Path, world: str, segment_ms: int, hangs: Sequence[Hang]) -> None:
        self.directory = directory
        self.world = world
        self.about = f"to {directory}"
        self.segments = self.events = 0
        self._lab = lab
        self._hangs = hangs
        self._segment_us = segment_ms * 1_000
        self._waiting: dict[int, list[Row]] = defaultdict(list)
        """By the stretch of time at whose end they are shipped."""
        self._now = 0
        self._open = True
        arrow = pyarrow()
        trace = parquet_schema({"world": world, "segment_ms": segment_ms})
        self._schema = arrow.schema([arrow.field(WORLD, arrow.string(), nullable=False), *trace], trace.metadata)
        (directory / HEADER).write_bytes(trace.metadata[PARQUET_KEY])

    def __call__(self, row: Row) -> None:
        stretch = row[TIME] // self._segment_us
        if stretch > self._now:
            self._ship(stretch)
            self._now = stretch
        self._waiting[self._shipped_in(row)].append(row)

    def _shipped_in(self, row: Row) -> int:
        at_us: int = row[TIME]
        for machine, from_s, to_s in self._hangs:
            if row[MACHINE] == machine and from_s * 1_000_000 <= at_us < to_s * 1_000_000:
                at_us = round(to_s * 1_000_000)
        return at_us // self._segment_us

    def _ship(self, before: float) -> None:
        """Write what is to be shipped in the stretches before this one, each in a segment of its own."""
        for stretch in sorted(self._waiting):
            if stretch < before:
                self._write(self._waiting.pop(stretch))

    def _write(self, rows: list[Row], *, ended: bool = False) -> None:
        arrow = pyarrow()
        number = self.segments + 1
        path = segment_path(self.directory, number)
        unfinished = path.with_name(f"_{path.name}.unfinished")
        own = arrow.schema(list(self._schema)[1:])
        if ended:
            row = {**dict.fromkeys(self._schema.names), **dict.fromkeys(COMMON_TYPES, -1), "node": "", "task": ""}
            table = arrow.Table.from_pylist(
                [row | {"world": self.world, "ts_us": ENDED_US, "kind": ENDED}], self._schema
            )
        else:
            columns = [arrow.array([self.world] * len(rows), arrow.string()), *arrow_arrays(rows, own)]
            table = arrow.Table.from_arrays(columns, schema=self._schema)
        with arrow.parquet.ParquetWriter(str(unfinished), self._schema, compression="zstd") as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({END_MARK: str(table.num_rows)})
        os.utime(unfinished, (FIRST_TIME_S + number, FIRST_TIME_S + number))
        unfinished.replace(path)
        self.segments, self.events = number, self.events + len(rows)

    def flush(self) -> Self:
        """Write what has happened up to now, also the beginning of a stretch that is not over; what hangs, hangs on."""
        self._ship(self._now + 1)
        return self

    def close(self) -> None:
        """Write all that is left, also what hangs, and the end mark; the world may go on without being recorded."""
        if self._open:
            self._ship(float("inf"))
            self._stop()
            for _ in range(2):
                self._write([], ended=True)
            end = {END_MARK: self.events, "segments": self.segments}
            (self.directory / END).write_text(json.dumps(end), encoding="ascii")

    def abandon(self) -> None:
        """Stop without the end mark: who follows knows that the recording was broken off."""
        self._stop()

    def _stop(self) -> None:
        self._open = False
        self._lab.world.hooks.detach(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def __repr__(self) -> str:
        return f"<LiveTrace of {self.world}: {self.segments} segments, {self.events:,} events>"


def live_trace(
    lab: Lab,
    directory: str | Path,
    *,
    world: str | None = None,
    segment_ms: int = 1_000,
    hangs: Sequence[tuple[str, float, float]] = (),
) -> LiveTrace:
    """Let a world write its trace while it plays, a segment for each `segment_ms` of its time with any event.

    `hangs` are (machine, from, to) in seconds: the machine's events of that time come at its end. What has happened
    before is written, too, if the lab keeps history. A view that goes back moves its own cursor; the trace has what the
    world did. A world that is played again is another Lab, with a live trace of its own. LearnerError if the directory
    holds a trace already.
    """
    place = Path(directory)
    check_number("segment_ms", segment_ms, "write live_trace(lab, 'shop/', segment_ms=1_000)", least=1)
    known = [name for name in [*lab.world.nodes] if name]
    checked = [_checked(hang, known) for hang in hangs]
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise LearnerError(f"{place} is not empty: two worlds in one live trace would be one to whoever follows",
                           "name a new directory for each world that is played")  # fmt: skip
    place.mkdir(parents=True, exist_ok=True)
    trace = LiveTrace(lab, place, world or _name_of(lab), int(segment_ms), checked)
    if lab._history is not None:
        for row in lab.history.rows():
            trace(row)
    lab.world.hooks.attach(trace)
    return trace


def _checked(hang: tuple[str, float, float], machines: list[str]) -> Hang:
    try:
        machine, from_s, to_s = hang
        right = machine in machines and 0 <= from_s < to_s
    except (TypeError, ValueError):
        right = False
    if not right:
        raise LearnerError(
            f"{hang!r} is no hang of a machine of this world ({', '.join(machines)})",
            "write ('consumer-1', 10, 25): what happens there from 10 s to 25 s comes at 25 s",
        )
    return Hang(machine, from_s, to_s)


def _name_of(lab: Lab) -> str:
    if lab.origin is None:
        return f"lab --seed {lab.seed}"
    return WorldSpec(lab.origin.scenario, lab.seed, lab.origin.parameters).name


# -- reading ----------------------------------------------------------------------------------------------------------


def segment_path(directory: Path, number: int) -> Path:
    """The file of a segment; the first has the number 1."""
    return directory / f"segment-{number:06}.parquet"


def segments_of(directory: Path) -> int:
    """How many segments there are now. ProtocolError if one is missing among them."""
    found = sorted(directory.glob("segment-*.parquet"))
    if found and found[-1] != segment_path(directory, len(found)):
        missing = next(n for n in range(1, len(found) + 1) if not segment_path(directory, n).exists())
        raise ProtocolError(
            f"{directory}: {segment_path(directory, missing).name} is missing, and later ones are there: it is cut"
        )
    return len(found)


def end_of(directory: Path) -> dict[str, int] | None:
    """What the end mark says, `segments` and events; None if there is none (yet)."""
    try:
        end: dict[str, int] = json.loads((directory / END).read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    return end


def check_live(directory: str | Path) -> Path:
    """The directory; LearnerError if there is no live trace in it, ProtocolError if it is of another schema version."""
    place = Path(directory)
    header = place / HEADER
    if not header.exists():
        what = "has no live trace" if place.is_dir() else "does not exist"
        raise LearnerError(f"{place} {what}", f"let a world write one first: live_trace(lab, {str(place)!r})")
    check_header(header.read_bytes(), header)
    return place


def check_end(directory: Path) -> None:
    """ProtocolError if there are not as many segments as the end mark says, or one is missing among them."""
    count, end = segments_of(directory), end_of(directory)
    if end is not None and end["segments"] != count:
        raise ProtocolError(f"{directory} has {count} segments, but its end mark counts {end['segments']}: it is cut")


def check_segments(directory: Path) -> None:
    """The same, and ProtocolError that names the first segment that is cut; each is opened for that."""
    check_end(directory)
    for number in range(1, segments_of(directory) + 1):
        check_whole(segment_path(directory, number))


def recorded(spark: SparkSession, directory: str | Path, *, whole: bool = True) -> DataFrame:
    """The events of a live trace as a DataFrame that does not grow: `world`, then the columns of every trace.

    ProtocolError if a segment is missing or cut, or if there is no end mark (`whole=False` reads what is there).
    """
    place = check_live(directory)
    check_segments(place)
    if whole and end_of(place) is None:
        raise ProtocolError(
            f"{place} has no end mark: its world still plays, or its recording was broken off. "
            "Close the live trace, or read what is there with whole=False."
        )
    return spark.read.schema(events_schema()).parquet(str(place)).where(F.col("kind") != ENDED)
