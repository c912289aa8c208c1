"""What groups want of topics, and what of it can be shown for one message: by its tag's code, or by what was held back.

A queue entry has the hash of its message's tag and not the tag. A condition (SQL92) is judged by the broker, which
tells where it held messages back.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind

GROUP = [WORLD, "group", "topic"]
PLACE = [WORLD, "broker", "topic", "queue_id", "queue_offset"]
ALL_OF_IT = "*"


def wishes(events: DataFrame) -> DataFrame:
    """A row for each group and topic that it ever subscribed to: `narrow` has the codes of the tags of each expression
    other than `*`, and `by_sql` says that a broker had a condition of the group instead.
    """
    told = (
        of_kind(events, "SubscriptionChanged")
        .where("expression != '' AND topic NOT LIKE '\\%RETRY\\%%'")
        .groupBy(*GROUP)
        .agg(F.collect_set(F.when(F.col("expression") != ALL_OF_IT, F.col("expression"))).alias("expressions"))
        .select(*GROUP, F.transform("expressions", _codes).alias("narrow"))
    )
    conditions = of_kind(events, "ConsumerFilterChanged").select(*GROUP, F.lit(True).alias("by_sql")).distinct()
    return told.join(conditions, GROUP, "left").withColumn("by_sql", F.coalesce("by_sql", F.lit(False)))


def _codes(expression: Column) -> Column:
    """The codes of the tags that an expression like `paid || open` names."""
    words = F.filter(F.split(expression, r"\|\|"), lambda word: F.trim(word) != "")
    return F.transform(words, lambda word: _java_hash(F.trim(word)))


def _java_hash(text: Column) -> Column:
    """Java's hash of a text without characters beyond 16 bits, which is the code of a tag."""
    places = F.sequence(F.lit(1), F.length(text))
    unsigned = F.aggregate(
        places,
        F.lit(0).cast("bigint"),
        lambda value, place: (value * 31 + F.ascii(F.substring(text, place, F.lit(1)))) % (1 << 32),
    )
    return F.when(unsigned >= 1 << 31, unsigned - (1 << 32)).otherwise(unsigned)


def codes_of_tags(events: DataFrame, wished: DataFrame) -> DataFrame:
    """A row for each place of a queue of which a group wants certain tags: the codes of the tags of what lies there."""
    narrow = wished.where("size(narrow) > 0").select(WORLD, "topic").distinct()
    entries = of_kind(events, "MessageDispatched").join(narrow, [WORLD, "topic"], "left_semi")
    return entries.withColumnRenamed("node", "broker").groupBy(*PLACE).agg(F.collect_set("tags_code").alias("tags"))


def held_back(events: DataFrame) -> DataFrame:
    """A row for each group and place that lies where a broker held messages back by the group's condition.

    Of some of them it was told when they were stored that the group wants them: these are left out.
    """
    ranges = of_kind(events, "MessagesFilteredByBroker").withColumnRenamed("node", "broker")
    places = (
        ranges.where("queue_offset < next_offset")
        .withColumn("queue_offset", F.explode(F.expr("sequence(queue_offset, next_offset - 1)")))
        .select(*PLACE, "group")
        .distinct()
    )
    wanted = (
        of_kind(events, "FilterBitMapCalculated")
        .withColumnRenamed("node", "broker")
        .select(*PLACE, F.explode(F.split("groups", ",")).alias("group"))
        .distinct()
    )
    return places.join(wanted, [*PLACE, "group"], "left_anti").withColumn("held_back", F.lit(True))


def dropped_by_consumers(events: DataFrame) -> DataFrame:
    """A row for each queue of a group in which consumers that pull dropped messages whose tags only share a code."""
    brokers = of_kind(events, "BrokerStarted").select(WORLD, "broker_name", F.col("node").alias("broker")).distinct()
    dropped = of_kind(events, "MessagesFiltered").join(brokers, [WORLD, "broker_name"])
    return dropped.select(*PLACE[:-1], "group").distinct().withColumn("dropped", F.lit(True))


def dropped_by_poppers(events: DataFrame) -> DataFrame:
    """A row for each message of a group that a consumer which pops acknowledged without giving it to its listener."""
    acks = of_kind(events, "AckRequested").where("reason = 'filtered'")
    return acks.select(WORLD, "group", "msg_id").distinct().withColumn("popped_away", F.lit(True))
