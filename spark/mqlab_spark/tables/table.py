"""What a table of the pipeline is: its name, its question, its columns with their meanings, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.types import DataType, StructField, StructType

from mqlab.errors import LearnerError
from mqlab_spark.schema import WORLD

Tables = Mapping[str, DataFrame]
"""The tables that exist already, by name; "events" is the trace itself."""

EVENTS, TRACES = "events", "traces"
BRONZE = "bronze"
SILVER, GOLD = "silver", "gold"

WHOLE, NUMBER, TEXT, TRUTH = "bigint", "double", "string", "boolean"
LIST_OF_TEXTS = "array<string>"


class Column(NamedTuple):
    """One column: its type in Spark's words, and what it means."""

    type: str
    meaning: str


class Table(NamedTuple):
    """One table of the pipeline.

    `query` is a pure function of the tables in `made_from` and of those in `besides` that exist; what it gives must
    have just the columns that are declared. `more` are queries of further rows: one plan of all costs Spark more than
    one of each. Made of a trace as it was recorded, and not of a build's events, it has its worlds by their names.
    """

    name: str
    layer: str
    question: str
    columns: Mapping[str, Column]
    made_from: tuple[str, ...]
    query: Callable[[Tables], DataFrame]
    besides: tuple[str, ...] = ()
    more: tuple[Callable[[Tables], DataFrame], ...] = ()

    @property
    def schema(self) -> StructType:
        """The columns as Spark's schema."""
        return schema_of(self.columns)

    def make(self, tables: Tables) -> DataFrame:
        """The table; LearnerError when a query gives other columns than are declared."""
        return reduce(DataFrame.unionByName, self.make_parts(tables))

    def make_parts(self, tables: Tables) -> list[DataFrame]:
        """The rows of each of its queries; LearnerError when one gives other columns than are declared."""
        besides = {name: tables[name] for name in self.besides if name in tables}
        sources = {**{name: tables[name] for name in self.made_from}, **besides}
        return [self._checked(query(sources)) for query in (self.query, *self.more)]

    def _checked(self, made: DataFrame) -> DataFrame:
        given = {field.name: field.dataType.simpleString() for field in made.schema}
        wanted = {field.name: field.dataType.simpleString() for field in self.schema}
        if given.get(WORLD) == TEXT:
            wanted[WORLD] = TEXT
        if given != wanted:
            odd = next(name for name in {**wanted, **given} if given.get(name) != wanted.get(name))
            raise LearnerError(
                f"the query of table {self.name!r} gives {odd} as {given.get(odd)}, and {wanted.get(odd)} is declared",
                "make `columns` and `query` of the table agree",
            )
        return made.select(*self.columns)


def schema_of(columns: Mapping[str, Column]) -> StructType:
    """Columns as Spark's schema."""
    return StructType([StructField(name, DataType.fromDDL(column.type)) for name, column in columns.items()])


def shared(**columns: tuple[str, str]) -> dict[str, Column]:
    """Columns from pairs of type and meaning."""
    return {name: Column(*pair) for name, pair in columns.items()}


def ms(us: str) -> Expression:
    """A column of microseconds as milliseconds, rounded to one microsecond."""
    return F.round(F.col(us) / 1_000, 3)


WHICH_WORLD = (WHOLE, "which world: its number, of which `worlds` has the name")

TRACE_COLUMNS = shared(
    world=(WHOLE, "which world: the number of its name, `mqlab_spark.world_id(name)`"),
    name=(TEXT, "the world's name: what `mqlab trace` is told to play it, or the file, where that does not say it"),
    file=(TEXT, "the trace, below the directory that all traces have in common"),
    scenario=(TEXT, "which scenario it is of; null: the file does not say it"),
    seed=(TEXT, "the world's seed"),
    parameters=(TEXT, "the scenario's parameters that were given, as JSON"),
    trace_hash=(TEXT, "the hash of all its events, by which the world that is played again is compared"),
    mqlab=(TEXT, "the version of mqlab that recorded it"),
)
"""The columns of the table of traces."""
