"""One Spark job for the worlds of fifty seeds: how an answer that is a function from DataFrame to DataFrame is judged.

A check judges one seed at a time, and Spark takes a second for each job. So the first seed of a block asks for all of
them, and the others find their rows there. Playing the worlds of a block takes several seconds: they are not counted as
the answer's.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mqlab.check import Wrong
from mqlab.check.patience import not_counted
from mqlab.lab import Lab
from mqlab.trace.recorder import ParquetRecorder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer = Callable[["DataFrame"], "DataFrame"]
Truth = TypeVar("Truth")

WORLDS_IN_ONE_JOB = 50
MEMORY = "512m"
"""Of a Spark that is started for the judge alone."""


class ManyWorlds(Generic[Truth]):
    """The worlds of many seeds, as one trace for Spark, and what is true of each for the judge.

    `play` makes the world of a seed, and `truth` says what a judge has to know of it: the worlds themselves are not
    kept, since fifty of them are a hundred megabytes and more.
    """

    def __init__(self, play: Callable[[int], Lab], truth: Callable[[Lab], Truth]) -> None:
        self._play = play
        self._truth = truth
        self._truths: dict[int, Truth] = {}
        self._key: tuple[str, range] | None = None
        self._frame: DataFrame | None = None
        self._answer: Answer | None = None
        self._left: dict[int, list[Any] | Wrong] = {}

    def lab(self, seed: int) -> Lab:
        """The world of a seed, played again: for the story of what went wrong."""
        return self._play(seed)

    def truth(self, seed: int) -> Truth:
        """What is true of the world of a seed."""
        if seed not in self._truths:
            self._truths[seed] = self._truth(self._play(seed))
        return self._truths[seed]

    def rows(self, answer: Answer, seed: int, columns: Sequence[str]) -> list[Any] | Wrong:
        """What an answer says of the world of a seed; asked for the same one again, the job runs again.

        `columns` are those that the answer must have.
        """
        if answer != self._answer or seed not in self._left:
            self._answer, self._left = answer, {}
            self._left = self._run(answer, (seed - 1) // WORLDS_IN_ONE_JOB, columns)
        return self._left.pop(seed)

    def _run(self, answer: Answer, block: int, columns: Sequence[str]) -> dict[int, list[Any] | Wrong]:
        """The answer's rows for each seed of a block; what is wrong with all of them stands at every seed."""
        from pyspark.errors import PySparkException

        from mqlab_spark import session

        spark = session(driver_memory=MEMORY)
        try:
            wrong = _wrong_shape(answer(_empty_trace(spark)), columns)
            if wrong is None:
                rows = answer(self._trace(spark, block)).select(*columns).collect()
                return _by_seed(rows, block)
        except PySparkException as error:
            wrong = Wrong(f"Spark refuses your transform: {_first_line(error)}")
        return dict.fromkeys(_seeds_of(block), wrong)

    def _trace(self, spark: SparkSession, block: int) -> DataFrame:
        """The worlds of a block: the last block that was asked for."""
        key = (spark.sparkContext.applicationId, _seeds_of(block))
        if self._frame is None or self._key != key:
            with not_counted():
                self._key, self._frame = key, self._recorded(spark, key[1])
        return self._frame

    def _recorded(self, spark: SparkSession, seeds: Iterable[int]) -> DataFrame:
        """The worlds in one file, since Spark takes longer to open fifty small ones than to read them."""
        import pyarrow as pa
        from pyarrow import parquet

        from mqlab_spark import trace_schema

        directory = Path(mkdtemp(prefix="mqlab-many-worlds-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        one, every = directory / "one.parquet", directory / "worlds.parquet"
        with ExitStack() as stack:
            writer = None
            for seed in seeds:
                lab = self._play(seed)
                self._truths[seed] = self._truth(lab)
                with ParquetRecorder(one, {"seed": seed}) as recorder:
                    for row in lab.history.rows():
                        recorder(row)
                table = parquet.read_table(one)
                named = table.append_column("world", pa.repeat(pa.scalar(_file_of(seed)), len(table)))
                writer = writer or stack.enter_context(parquet.ParquetWriter(every, named.schema))
                writer.write_table(named)
        one.unlink()
        return spark.read.parquet(str(every)).select("world", *trace_schema().names)


def _seeds_of(block: int) -> range:
    return range(block * WORLDS_IN_ONE_JOB + 1, (block + 1) * WORLDS_IN_ONE_JOB + 1)


def _file_of(seed: int) -> str:
    return f"seed-{seed}.parquet"


def _empty_trace(spark: SparkSession) -> DataFrame:
    """A trace of no events: enough to see whether a plan can be made, and which columns it has."""
    from pyspark.sql.types import StringType, StructField, StructType

    from mqlab_spark import trace_schema

    schema = StructType([StructField("world", StringType()), *trace_schema().fields])
    return spark.createDataFrame([], schema)


def _wrong_shape(result: Any, columns: Sequence[str]) -> Wrong | None:
    from pyspark.sql import DataFrame

    if not isinstance(result, DataFrame):
        return Wrong(f"a DataFrame is wanted, and yours gives {type(result).__name__}; return what you have built")
    missing = [column for column in columns if column not in result.columns]
    if missing:
        return Wrong(f"your table lacks {', '.join(missing)}; it has {', '.join(result.columns) or 'no columns'}")
    return None


def _first_line(error: Exception) -> str:
    """What Spark says first; the plan that follows has numbers that differ from run to run."""
    return str(error).strip().partition("\n")[0].partition(" SQLSTATE")[0]


def _by_seed(rows: Iterable[Any], block: int) -> dict[int, list[Any] | Wrong]:
    seed_of = {_file_of(seed): seed for seed in _seeds_of(block)}
    found: dict[int, list[Any] | Wrong] = {seed: [] for seed in seed_of.values()}
    for row in rows:
        if row.world not in seed_of:
            unknown = Wrong(f"a row of yours is of the world {row.world!r}, and no trace has that name")
            return dict.fromkeys(found, unknown)
        mine = found[seed_of[row.world]]
        assert isinstance(mine, list)
        mine.append(row)
    return found
