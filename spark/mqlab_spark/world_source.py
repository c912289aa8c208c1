"""The data source "mqlab": worlds that are played while they are read.

    spark = session()
    events = spark.read.format("mqlab").option("scenario", "steady-load").option("seeds", "0-999").load()
    worlds = spark.read.format("mqlab").option("scenario", "steady-load").option("table", "worlds").load()

Options: `scenario`; `seeds` ("0-99", "3,7"; default 0); `parameters` (JSON, for all worlds); `seconds` (of the world's
time; default: the scenario's own); `table` ("events", the default, or "worlds": one row for each, with its trace hash);
`worldsPerTask` (default: so that each core has about four tasks). A filter on `kind` is pushed down: events that nobody
asks for are never made into rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from mqlab.errors import LearnerError
from mqlab.named_worlds import WorldSpec, played_world, seeds_of
from mqlab_spark.played import event_batches, world_row
from mqlab_spark.schema import WORLD, trace_schema

TASKS_PER_CORE = 4
EVENTS_TABLE, WORLDS_TABLE = "events", "worlds"
OPTIONS = ("scenario", "seeds", "parameters", "seconds", "table", "worldsPerTask")

WORLDS = StructType([
    StructField(WORLD, StringType(), nullable=False),
    StructField("scenario", StringType(), nullable=False),
    StructField("seed", StringType(), nullable=False),
    StructField("parameters", StringType(), nullable=False),
    StructField("events", LongType(), nullable=False),
    StructField("slices", LongType(), nullable=False),
    StructField("now_us", LongType(), nullable=False),
    StructField("trace_hash", StringType(), nullable=False),
    StructField("problem", StringType()),
])  # fmt: skip
"""The table of worlds: each with its trace hash, so that who plays it again knows whether it is the same; `problem` is
the error that ended a world before its time.
"""


@cache
def events_schema() -> StructType:
    """The table of events: the world's name, then the columns of a recorded trace."""
    return StructType([StructField(WORLD, StringType(), nullable=False), *trace_schema().fields])


class Worlds(InputPartition):
    """The worlds that one task plays."""

    def __init__(self, specs: Sequence[WorldSpec]) -> None:
        super().__init__(None)
        self.specs = list(specs)


class WorldSource(DataSource):
    """The format "mqlab" (see the module); LearnerError for an option, a scenario or a parameter that is unknown."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` is told."""
        return "mqlab"

    def schema(self) -> StructType:
        """The columns of the table that was asked for."""
        return WORLDS if self._table() == WORLDS_TABLE else events_schema()

    def reader(self, schema: StructType) -> WorldReader:
        """Who plans the tasks and plays the worlds."""
        return WorldReader(self._specs(), self._table(), self._worlds_per_task())

    def _option(self, name: str, default: str = "") -> str:
        known = {option.lower() for option in OPTIONS} | {"path"}
        unknown = {key for key in self.options if key.lower() not in known}
        if unknown:
            raise LearnerError(f"the format mqlab has no option {min(unknown)!r}", f"it has: {', '.join(OPTIONS)}")
        return str(self.options.get(name, default))

    def _table(self) -> str:
        table = self._option("table", EVENTS_TABLE)
        if table not in (EVENTS_TABLE, WORLDS_TABLE):
            raise LearnerError(f"there is no table {table!r}", f"choose {EVENTS_TABLE!r} or {WORLDS_TABLE!r}")
        return table

    def _worlds_per_task(self) -> int:
        text = self._option("worldsPerTask", "0")
        if not text.isdecimal():
            raise LearnerError(f"worldsPerTask={text!r} is no number", "give a whole number from 1 on")
        return int(text)

    def _specs(self) -> list[WorldSpec]:
        scenario = self._option("scenario")
        if not scenario:
            raise LearnerError("which worlds?", 'name a scenario: .option("scenario", "steady-load")')
        try:
            parameters = json.loads(self._option("parameters", "{}"))
            seconds = float(self._option("seconds")) if self._option("seconds") else None
        except ValueError as error:
            raise LearnerError(f"an option cannot be read: {error}", 'write parameters like {"messages": 30}') from None
        if not isinstance(parameters, dict):
            raise LearnerError(f"parameters={parameters!r} is no object", 'write them like {"messages": 30}')
        checked = WorldSpec(scenario, 0, parameters, seconds).check()
        return [checked._replace(seed=seed) for seed in seeds_of(self._option("seeds", "0"))]


class WorldReader(DataSourceReader):
    """Plays worlds, some in each task."""

    def __init__(self, specs: list[WorldSpec], table: str, worlds_per_task: int) -> None:
        self._specs = specs
        self._table = table
        self._worlds_per_task = worlds_per_task
        self._kinds: frozenset[str] | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Take filters on the kind of events for ourselves."""
        for each in filters:
            kinds = _kinds_of(each) if self._table == EVENTS_TABLE else None
            if kinds is None:
                yield each
            else:
                self._kinds = kinds if self._kinds is None else self._kinds & kinds

    def partitions(self) -> Sequence[InputPartition]:
        """The worlds of each task."""
        active = SparkSession.getActiveSession()
        cores = active.sparkContext.defaultParallelism if active is not None else 1
        each = self._worlds_per_task or max(1, len(self._specs) // (TASKS_PER_CORE * cores))
        return [Worlds(self._specs[at : at + each]) for at in range(0, len(self._specs), each)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Play the worlds of a task and give their rows, as Arrow batches."""
        assert isinstance(partition, Worlds)
        if self._table == WORLDS_TABLE:
            yield from _world_batches(partition.specs)
            return
        schema = to_arrow_schema(events_schema())
        for spec in partition.specs:
            yield from event_batches(played_world(spec).lab, spec.name, schema, self._kinds)


def _world_batches(specs: Iterable[WorldSpec]) -> Iterator[Any]:
    import pyarrow as pa

    schema = to_arrow_schema(WORLDS)
    for spec in specs:
        yield pa.RecordBatch.from_pylist([world_row(spec)], schema=schema)


def _kinds_of(each: Filter) -> frozenset[str] | None:
    """The kinds that a filter lets through; None when it speaks of something else."""
    if isinstance(each, EqualTo) and each.attribute == ("kind",):
        return frozenset([each.value])
    if isinstance(each, In) and each.attribute == ("kind",):
        return frozenset(each.value)
    return None


def worlds(
    spark: SparkSession,
    scenario: str,
    seeds: str = "0",
    *,
    seconds: float | None = None,
    table: str = EVENTS_TABLE,
    **parameters: Any,
) -> DataFrame:
    """The events of a scenario's worlds, one for each seed ("0-999", "3,7"), or with table="worlds" what they came to.

    The same as reading the format "mqlab"; but what cannot be is refused at once, with a LearnerError.
    """
    options = {
        "scenario": scenario,
        "seeds": seeds,
        "table": table,
        "parameters": json.dumps(parameters),
        **({} if seconds is None else {"seconds": str(seconds)}),
    }
    # Spark asks for the schema in another process, from which an error comes back wrapped in Java's.
    source = WorldSource(options)
    source.reader(source.schema())
    return spark.read.format(WorldSource.name()).options(**options).load()


# -- a grid of parameters ---------------------------------------------------------------------------------------------


def worlds_of(grid: DataFrame, *, table: str = EVENTS_TABLE) -> DataFrame:
    """The worlds that a DataFrame of parameters means, one for each row.

    `grid` has the columns `scenario` and `seed`, perhaps `seconds`; every other column is a parameter of the scenario
    (null: the scenario's own value). What comes back is the table of events, or that of worlds.
    """
    if table not in (EVENTS_TABLE, WORLDS_TABLE):
        raise LearnerError(f"there is no table {table!r}", f"choose {EVENTS_TABLE!r} or {WORLDS_TABLE!r}")
    missing = [column for column in ("scenario", "seed") if column not in grid.columns]
    if missing:
        raise LearnerError(f"the grid has no column {missing[0]!r}", "it needs scenario and seed")
    schema = WORLDS if table == WORLDS_TABLE else events_schema()

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in batch.to_pylist():
                reader = WorldReader([_spec_of(row)], table, 1)
                yield from reader.read(Worlds([_spec_of(row)]))

    return grid.mapInArrow(play, schema)


def _spec_of(row: dict[str, Any]) -> WorldSpec:
    parameters = {k: v for k, v in row.items() if k not in ("scenario", "seed", "seconds") and v is not None}
    return WorldSpec(row["scenario"], row["seed"], parameters, row.get("seconds")).check()
