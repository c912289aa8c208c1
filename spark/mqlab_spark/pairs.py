"""Masters and their slaves: brokers of one name, of which the slaves have what the master has."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind

PAIR = [WORLD, "broker_name", "master", "slave"]


def masters(events: DataFrame) -> DataFrame:
    """A row for each broker that is no slave: broker_name, node."""
    return of_kind(events, "BrokerStarted").where("broker_id = 0").select(WORLD, "broker_name", "node").distinct()


def pairs(events: DataFrame) -> DataFrame:
    """A row for each slave and its master: broker_name, master, slave."""
    slaves = of_kind(events, "BrokerStarted").where("broker_id > 0")
    return (
        slaves.select(WORLD, "broker_name", F.col("node").alias("slave"))
        .distinct()
        .join(masters(events).withColumnRenamed("node", "master"), [WORLD, "broker_name"])
        .select(*PAIR)
    )


def at_masters(frame: DataFrame, events: DataFrame) -> DataFrame:
    """Rows of brokers, in which `node` is the master where it was a slave: a place has the same numbers on both."""
    of_slaves = pairs(events).select(WORLD, F.col("slave").alias("node"), "master")
    named = frame.join(of_slaves, [WORLD, "node"], "left")
    return named.withColumn("node", F.coalesce("master", "node")).drop("master")
