"""One row for each world."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, WORLD_NAME
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, TRACE_COLUMNS, TRACES, WHOLE, Table, Tables, shared

FAULTS = (
    "NodeCrashed", "PowerLost", "NodeFrozen", "LinkCut", "LinkDelayed", "DiskHung", "DiskSlowed",
    "ClockDrifted",
)  # fmt: skip

OF_TRACE = ("name", "file", "scenario", "seed", "parameters", "trace_hash")


def _query(tables: Tables) -> DataFrame:
    counted = (
        tables[EVENTS]
        .groupBy(WORLD)
        .agg(
            F.count("*").alias("events"),
            (F.max("slice") + 1).alias("slices"),
            F.max("ts_us").alias("end_us"),
            F.countDistinct("node").alias("machines"),
            F.count(F.when(F.col("kind") == "MessageStored", 1)).alias("records"),
            F.count(F.when(F.col("kind").isin(*FAULTS), 1)).alias("faults"),
        )
    )
    if TRACES in tables:
        return counted.join(tables[TRACES].select(WORLD, *OF_TRACE), WORLD, "left")
    # Of a trace itself: the world is there by its name, which says all but the hash.
    unknown = F.lit(None).cast(TEXT)
    return counted.withColumns({**dict.fromkeys(OF_TRACE, unknown), WORLD_NAME: F.col(WORLD).cast(TEXT)})


WORLDS = Table(
    "worlds",
    SILVER,
    "How large is each world, and how long did it play?",
    shared(
        world=TRACE_COLUMNS[WORLD],
        **{name: TRACE_COLUMNS[name] for name in OF_TRACE},
        events=(WHOLE, "how many events it has"),
        slices=(WHOLE, "how many slices up to its last event"),
        end_us=(WHOLE, "when its last event happened, us since it began"),
        machines=(WHOLE, "on how many machines something happened"),
        records=(WHOLE, "how many records were written to commit logs"),
        faults=(WHOLE, "how many faults were put into it from outside"),
    ),
    (EVENTS,),
    _query,
    (TRACES,),
)
