"""What was done to machines from outside: crashes, cuts, losses of power; and which of it came last before a moment."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.silver.worlds import FAULTS


def faults_of_worlds(events: DataFrame) -> DataFrame:
    """A row for each world to which something was done: `faults`, with when, in words, and to which machines."""
    told = events.where(F.col("kind").isin(*FAULTS))
    words = F.concat_ws(" ", "kind", F.concat(F.col("source"), F.lit(" to")), "target")
    machines = F.filter(F.array("source", "target"), lambda each: each.isNotNull())
    return told.groupBy(WORLD).agg(
        F.collect_list(
            F.struct(F.col("ts_us").alias("fault_us"), words.alias("fault"), machines.alias("machines"))
        ).alias("faults")
    )


def last_fault(machines: Column, before_us: Column) -> Column:
    """Of the column `faults`: the last one that was done to one of these machines up to a moment; null: none was."""
    touching = F.filter(
        "faults",
        lambda each: (each["fault_us"] <= before_us) & F.arrays_overlap(each["machines"], F.array_compact(machines)),
    )
    return F.array_max(F.coalesce(touching, F.array()))
