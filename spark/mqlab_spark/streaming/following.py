"""Following a live trace with Structured Streaming: the query, its numbers, its state, its end.

Every segment is one micro-batch, whatever the machine's load: so the watermark, and what is too late for it, depend on
the trace alone. What is kept stands in one directory: `lives/` (Parquet, with Spark's own log of whole batches),
`checkpoint/` (offsets and state) and `follow.json` (the options). Who follows the same trace into the same directory
goes on where the last one ended, also when it was killed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakSet

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.streaming.query import StreamingQuery

from mqlab.arguments import check_count, check_number
from mqlab.errors import LearnerError, MqlabError
from mqlab.views import Table
from mqlab_spark.streaming.lives import LIFE, OBSERVED, lives_as_they_end, with_event_time
from mqlab_spark.streaming.segments import check_end, check_live, check_segments, end_of, segments_of
from mqlab_spark.streaming.state import FINISHED, GIVEN_UP, IN_STATE, KEPT
from mqlab_spark.world_source import events_schema

LOOK_MS = 200
"""How often a query looks for new segments; it asks a directory, and a notebook's machine has more to do."""
PATIENCE_S = 0.1

SETTINGS = {
    # A batch without a segment would come or not come by the clock of this machine, and move what is too late.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    # Java code made for each plan takes longer to compile than a segment to read, and stays in memory.
    "spark.sql.codegen.wholeStage": "false",
}


TALKATIVE = (
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.util.Utils",
    "org.apache.spark.broadcast.TorrentBroadcast",
    "org.apache.spark.api.python",
)
"""Who tells of a query that fails or is stopped in the middle of a batch, each with all of Java's stack, beside the
exception that says the same.
"""


_streams: WeakSet[Following] = WeakSet()
"""Those of this process, also such that nobody stopped: each has a session of its own, which knows no others."""


class BatchNumbers(NamedTuple):
    """What one micro-batch came to. Times are the world's, in us."""

    batch: int
    events: int
    newest_us: int
    """The time of its newest event."""
    watermark_us: int
    """What is older than this is too late for it."""
    late: int
    """Marks of messages that came too late and were dropped."""
    finished: int
    given_up: int
    open: int
    """Lives that are sent and not consumed, in the state after it."""
    waiting: int
    """Lives in the state that have ended, and wait for the watermark."""
    latencies_us: tuple[int, ...]
    """Of the lives that it put out, from sent to consumed, sorted."""


class Following:
    """A query that follows a live trace (see `follow`); as a context it stops at the end."""

    def __init__(self, spark: SparkSession, trace: Path, into: Path, options: dict[str, Any]) -> None:
        self.trace = trace
        self.into = into
        self.watchers: list[Callable[[], None]] = []
        """Called when micro-batches have come, by the thread that looked."""
        self._spark = spark
        self._lock = RLock()
        self._numbers: list[BatchNumbers] = []
        self._buckets: dict[int, tuple[int, int]] = {}
        self._done = _committed(into)
        self._files = set(self._files_written())
        events = with_event_time(_segments(spark, trace), options["late_s"])
        lives = lives_as_they_end(
            events, group=options["group"], give_up_s=options["give_up_s"], buckets=options["buckets"]
        )
        self.query: StreamingQuery = (
            lives.writeStream.format("parquet")
            .option("path", str(into / "lives"))
            .option("checkpointLocation", str(into / "checkpoint"))
            .outputMode("append")
            .trigger(processingTime=f"{LOOK_MS} milliseconds")
            .start()
        )
        _streams.add(self)

    # -- how far it is ------------------------------------------------------------------------------------------------

    @property
    def numbers(self) -> list[BatchNumbers]:
        """What each micro-batch came to, since it was followed from here."""
        self.look()
        return list(self._numbers)

    @property
    def segments(self) -> int:
        """How many segments of the trace are done."""
        return self._done

    @property
    def ended(self) -> bool:
        """Whether the trace has its end mark, and all of it is done."""
        end = end_of(self.trace)
        return end is not None and self._done >= end["segments"]

    @property
    def running(self) -> bool:
        """Whether the query runs: nobody has stopped it, and it has not failed."""
        return bool(self.query.isActive)

    def catch_up(self) -> Self:
        """Wait until all segments that are there are done. ProtocolError if one is cut or missing, LearnerError if the
        query was stopped; the stop button stops it, and what is done is done.
        """
        try:
            while self._done < segments_of(self.trace):
                ended = self.query.awaitTermination(PATIENCE_S)  # type: ignore[arg-type]  # fractions are taken
                self.look()
                if ended and self._done < segments_of(self.trace):
                    raise LearnerError("the query was stopped", "follow the trace into the same directory to go on")
        except StreamingQueryException as error:
            raise self._told(error) from None
        except BaseException:
            self.stop()
            raise
        check_end(self.trace)
        return self

    def _told(self, error: StreamingQueryException) -> MqlabError:
        try:
            check_segments(self.trace)
        except MqlabError as cut:
            return cut
        return LearnerError(
            f"the query has failed: {_cause_of(error)}", "mend that, and follow into the same directory"
        )

    def look(self) -> None:
        """Take over what the query has done since somebody looked last; it waits for nothing."""
        with self._lock:
            before = self._done
            for progress in self.query.recentProgress:
                if progress.batchId >= self._done and "addBatch" in progress.durationMs:
                    self._numbers.append(self._numbers_of(progress))
                    self._done = progress.batchId + 1
            news = self._done > before
        if news:
            for watcher in self.watchers:
                watcher()

    def _numbers_of(self, progress: Any) -> BatchNumbers:
        from pyarrow import parquet

        new = [path for path in self._files_written() if path not in self._files]
        self._files.update(new)
        rows = [row for path in new for row in parquet.read_table(path).to_pylist()]
        # A bucket for which nothing came is not asked: what it holds is what it held.
        self._buckets |= {row["bucket"]: (row["open"], row["waiting"]) for row in rows if row["outcome"] == IN_STATE}
        finished = [row["latency_us"] for row in rows if row["outcome"] == FINISHED]
        # A batch that was whole but for its note is passed over, and counts nothing again.
        observed = progress.observedMetrics[OBSERVED].asDict() if OBSERVED in progress.observedMetrics else {}
        last = self._numbers[-1] if self._numbers else None
        return BatchNumbers(
            batch=progress.batchId,
            events=observed.get("events") or 0,
            newest_us=max(observed.get("newest_us") or 0, last.newest_us if last else 0),
            watermark_us=_us_of(progress.eventTime["watermark"]),
            late=sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators),
            finished=len(finished),
            given_up=sum(row["outcome"] == GIVEN_UP for row in rows),
            open=sum(still_open for still_open, _ in self._buckets.values()),
            waiting=sum(waiting for _, waiting in self._buckets.values()),
            latencies_us=tuple(sorted(finished)),
        )

    def _files_written(self) -> Iterator[str]:
        """The files of whole batches, as Spark's log names them."""
        for log in (self.into / "lives" / "_spark_metadata").glob("[0-9]*"):
            for line in log.read_text(encoding="utf-8").splitlines()[1:]:
                yield json.loads(line)["path"].removeprefix("file://")

    # -- what it has found --------------------------------------------------------------------------------------------

    def lives(self) -> DataFrame:
        """The lives that were put out so far: the columns of `lives(trace)`, then `outcome` and `watermark_us`."""
        names = [*LIFE, "outcome", "watermark_us"]
        schema = ", ".join(f"{name} {'bigint' if name.endswith('_us') else 'string'}" for name in names)
        if not (self.into / "lives" / "_spark_metadata").exists():
            return self._spark.createDataFrame([], schema)
        written = self._spark.read.schema(schema).parquet(str(self.into / "lives"))
        return written.where(F.col("outcome") != IN_STATE)

    def open(self) -> DataFrame:
        """The lives in the state that are sent and not consumed, read from the checkpoint: the columns of `lives`."""
        if _committed(self.into) == 0:
            return self.lives().select(*LIFE).limit(0)
        kept = self._spark.read.format("statestore").load(str(self.into / "checkpoint"))
        life = F.explode(F.from_json("value.groupState.lives", KEPT)).alias("life")
        ours = kept.select(life).select("life.*").where("sent_us IS NOT NULL AND consumed_us IS NULL AND NOT put_out")
        return ours.select(*LIFE[:-1], F.lit(None).cast("bigint").alias("latency_us"))

    def table(self) -> Table:
        """The micro-batches and what they came to, one row each."""
        rows = [
            (n.batch, n.events, n.newest_us / 1e6, n.watermark_us / 1e6, n.late, n.finished, n.open, n.waiting)
            for n in self.numbers
        ]
        names = ("batch", "events", "newest, s", "watermark, s", "late", "put out", "open", "waiting")
        return Table("micro-batches", names, rows)

    # -- its end ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop the query; what is done stays, and `follow` into the same directory goes on from there."""
        # One that has failed is stopped, too; `catch_up` has told why.
        with suppress(StreamingQueryException):
            self.query.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        what = "ended" if self.ended else "goes on"
        total = segments_of(self.trace)
        lines = [f"{self.trace.name}: {self._done} of {total} segments are done; the trace {what}"]
        if self._numbers:
            last, all_of = self._numbers[-1], self._numbers
            lines += [
                f"  world {last.newest_us / 1e6:g} s, watermark {last.watermark_us / 1e6:g} s",
                f"  put out {sum(n.finished for n in all_of):,} finished, {sum(n.given_up for n in all_of):,} given up",
                f"  in the state {last.open:,} open, {last.waiting:,} waiting for the watermark",
                f"  too late and dropped {sum(n.late for n in all_of):,}",
            ]
        return "\n".join(lines)


def follow(
    spark: SparkSession,
    trace: str | Path,
    into: str | Path,
    *,
    late_s: float = 10,
    group: str | None = None,
    give_up_s: float | None = None,
    buckets: int = 1,
) -> Following:
    """Follow a live trace: each message that was sent and consumed becomes one row, once.

    `late_s` is how late events may be, in seconds of the world: later ones are dropped and counted, and each life waits
    so long before it is put out. `group` counts only what its consumers took. A message that is never consumed stays in
    the state for ever, or until `give_up_s` after it was sent. `into` keeps lives and checkpoint: calling again goes on
    there. LearnerError if there is no live trace, if `into` was begun with other options, or is being followed.
    """
    place, kept = check_live(trace), Path(into)
    check_number("late_s", late_s, "say how many seconds events may be late: late_s=10")
    check_count("buckets", buckets, "write buckets=4 to keep the state in four parts")
    if give_up_s is not None:
        check_number("give_up_s", give_up_s, "say after how many seconds a message is given up: give_up_s=60")
    options = {"late_s": late_s, "group": group, "give_up_s": give_up_s, "buckets": buckets}
    if any(stream.running and stream.into.resolve() == kept.resolve() for stream in _streams):
        raise LearnerError(f"{kept} is being followed by this kernel", "stop that first: stream.stop()")
    _same_options(kept, {"trace": str(place.resolve()), **options})
    own = spark.newSession()
    _hush(own)
    for name, value in {**SETTINGS, "spark.sql.shuffle.partitions": str(buckets)}.items():
        own.conf.set(name, value)
    return Following(own, place, kept, options)


def _same_options(into: Path, options: dict[str, Any]) -> None:
    note = into / "follow.json"
    if not note.exists():
        if into.exists() and (not into.is_dir() or any(into.iterdir())):
            raise LearnerError(f"{into} is not empty, and nobody has followed a trace into it", "name a new directory")
        into.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(options), encoding="utf-8")
        return
    before = json.loads(note.read_text(encoding="utf-8"))
    other = [f"{name}={before[name]!r}" for name in options if before[name] != options[name]]
    if other:
        raise LearnerError(f"{into} was begun with {', '.join(other)}: its state would not fit",
                           "follow with the same options, or into a new directory")  # fmt: skip


def _hush(spark: SparkSession) -> None:
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # there is a JVM: the session runs
    for name in TALKATIVE:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def _segments(spark: SparkSession, trace: Path) -> DataFrame:
    reader = spark.readStream.schema(events_schema()).option("maxFilesPerTrigger", 1)
    return reader.option("pathGlobFilter", "segment-*.parquet").parquet(str(trace))


def _committed(into: Path) -> int:
    """How many micro-batches are whole, as the checkpoint says."""
    numbers = [int(file.name) for file in (into / "checkpoint" / "commits").glob("[0-9]*")]
    return max(numbers, default=-1) + 1


def _us_of(time: str) -> int:
    since = datetime.fromisoformat(time) - datetime(1970, 1, 1, tzinfo=UTC)
    return round(since.total_seconds() * 1_000_000)


def _cause_of(error: StreamingQueryException) -> str:
    """What went wrong, in a line: the last cause that Java names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes[-1] if causes else lines[0]).removeprefix("Caused by: ")
