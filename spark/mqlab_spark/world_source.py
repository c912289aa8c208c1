"""The data source "mqlab": worlds that are played while they are read.

    spark = session()
    events = spark.read.format("mqlab").option("scenario", "steady-load").option("seeds", "0-999").load()
    worlds = spark.read.format("mqlab").option("scenario", "steady-load").option("table", "worlds").load()

Options: `scenario`; `seeds` ("0-99", "3,7"; default 0); `parameters` (JSON, for all worlds); `seconds` (of the world's
time; default: the scenario's own); `table` ("events", the default, or "worlds": one row for each, with its trace hash);
`kinds` ("PullHeld,PullWoken": of these kinds of events alone, with their columns alone); `worldsPerTask` (default:
at most 20, and fewer as long as there are fewer than 16 tasks; 1 for few large worlds on many cores).

Spark takes all columns that a Python source has, and most of an event's 187 are null: who names a schema
(`.schema("world string, kind string, ts_us long")`) or kinds has the rest never made. A filter on `kind` is not handed
down: Spark 4.3 remembers the filters that a source takes for the whole DataFrame and not for the query, so
the next query on it, or the other side of a join, would miss events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from mqlab.data_sets.named_worlds import WorldSpec, played_world, seeds_of
from mqlab.errors import LearnerError
from mqlab.trace.catalogue import columns_of
from mqlab_spark.played import event_batches, spare_the_collector, world_row
from mqlab_spark.schema import WORLD, trace_schema

ENOUGH_TASKS = 16
"""So many keep some cores busy to the end. (Spark asks in a process that does not know how many cores there are.)

Each costs the JVM and Python's worker together nearly as much as playing a world of 5,600 events.
"""
MOST_WORLDS_PER_TASK = 20
"""They take seconds, beside which starting a task is nothing."""
EVENTS_TABLE, WORLDS_TABLE = "events", "worlds"
OPTIONS = ("scenario", "seeds", "parameters", "seconds", "table", "kinds", "worldsPerTask")

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
        return _table_schema(self._table(), self._kinds())

    def reader(self, schema: StructType) -> WorldReader:
        """Who plans the tasks and plays the worlds; LearnerError for a schema with columns that the table lacks."""
        table = self._table()
        kinds = self._kinds()
        for wanted, own in zip(schema, _table_schema(table, kinds, schema.names), strict=True):
            if wanted.dataType != own.dataType:
                told = own.dataType.simpleString()
                raise LearnerError(f"the column {own.name} is a {told}", f'write "{own.name} {told}" in the schema')
        return WorldReader(self._specs(), table, self._worlds_per_task(), schema, kinds)

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

    def _kinds(self) -> frozenset[str] | None:
        named = self._option("kinds")
        return frozenset(kind.strip() for kind in named.split(",")) if named else None

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

    def __init__(
        self, specs: list[WorldSpec], table: str, worlds_per_task: int, schema: StructType, kinds: frozenset[str] | None
    ) -> None:
        self._specs = specs
        self._table = table
        self._schema = schema
        self._worlds_per_task = worlds_per_task
        self._kinds = kinds

    def partitions(self) -> Sequence[InputPartition]:
        """The worlds of each task."""
        each = self._worlds_per_task or max(1, min(MOST_WORLDS_PER_TASK, len(self._specs) // ENOUGH_TASKS))
        return [Worlds(self._specs[at : at + each]) for at in range(0, len(self._specs), each)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Play the worlds of a task and give their rows, as Arrow batches."""
        assert isinstance(partition, Worlds)
        spare_the_collector()
        schema = to_arrow_schema(self._schema)
        if self._table == WORLDS_TABLE:
            yield from _world_batches(partition.specs, schema)
            return
        for spec in partition.specs:
            yield from event_batches(played_world(spec).lab, spec.name, schema, self._kinds)


def _world_batches(specs: Iterable[WorldSpec], schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    for spec in specs:
        yield pa.RecordBatch.from_pylist([world_row(spec)], schema=schema)


def _table_schema(
    table: str, kinds: frozenset[str] | None = None, columns: Sequence[str] | None = None
) -> StructType:
    """The columns of a table, or some of them; LearnerError for a kind or a column that it does not have."""
    whole = WORLDS if table == WORLDS_TABLE else events_schema()
    if kinds is not None:
        if table == WORLDS_TABLE:
            raise LearnerError("kinds are of events", 'leave them out, or ask for table="events"')
        own = {WORLD, *chain.from_iterable(columns_of(kind) for kind in kinds)}
        whole = StructType([field for field in whole if field.name in own])
    if columns is None:
        return whole
    unknown = [name for name in columns if name not in whole.names]
    if unknown or not columns:
        problem = f"the table of {table} has no column {unknown[0]!r}" if unknown else "no column is named"
        raise LearnerError(problem, "docs/events.md lists the fields of each kind of event, docs/tables.md tables")
    return StructType([whole[name] for name in columns])


def worlds(
    spark: SparkSession,
    scenario: str,
    seeds: str = "0",
    *,
    seconds: float | None = None,
    table: str = EVENTS_TABLE,
    kinds: Iterable[str] | None = None,
    columns: Sequence[str] | None = None,
    **parameters: Any,
) -> DataFrame:
    """The events of a scenario's worlds, one for each seed ("0-999", "3,7"), or with table="worlds" what they came to.

    The same as reading the format "mqlab"; but what cannot be is refused at once, with a LearnerError. Who names
    the `kinds` or `columns` that a question needs waits half as long: else Spark takes every column of each event.
    """
    options = {
        "scenario": scenario,
        "seeds": seeds,
        "table": table,
        "parameters": json.dumps(parameters),
        **({} if seconds is None else {"seconds": str(seconds)}),
        **({} if kinds is None else {"kinds": ",".join(kinds)}),
    }
    # Spark asks for the schema in another process, from which an error comes back wrapped in Java's.
    source = WorldSource(options)
    whole = source.schema()
    schema = whole if columns is None else _table_schema(table, None, columns)
    source.reader(schema)
    return spark.read.format(WorldSource.name()).schema(schema).options(**options).load()


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
    _check_grid(grid)
    schema = _table_schema(table)

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for row in batch.to_pylist():
                reader = WorldReader([_spec_of(row)], table, 1, schema, None)
                yield from reader.read(Worlds([_spec_of(row)]))

    return grid.mapInArrow(play, schema)


OF_EVERY_WORLD = ("scenario", "seed", "seconds")


def _check_grid(grid: DataFrame) -> None:
    """LearnerError for a scenario that does not exist, and for a column that is no parameter of it, before Spark plays.

    One row of each scenario is looked at, with the greatest value of each column.
    """
    parameters = [name for name in grid.columns if name not in OF_EVERY_WORLD]
    for row in grid.groupBy("scenario").agg(*(F.max(name).alias(name) for name in ("seed", *parameters))).collect():
        _spec_of(row.asDict())


def _spec_of(row: dict[str, Any]) -> WorldSpec:
    parameters = {k: v for k, v in row.items() if k not in OF_EVERY_WORLD and v is not None}
    return WorldSpec(row["scenario"], row["seed"], parameters, row.get("seconds")).check()
