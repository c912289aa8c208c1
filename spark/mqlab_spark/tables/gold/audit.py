"""The delivery audit: what became of every acknowledged message in every group that should have it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.copies import MESSAGE, PARKED, left_of, on_slaves, records_of_messages, torn_of
from mqlab_spark.tables.faults import faults_of_worlds, last_fault
from mqlab_spark.tables.half_messages import half_messages
from mqlab_spark.tables.handed_out import pulled
from mqlab_spark.tables.subscriptions import (
    PLACE,
    codes_of_tags,
    dropped_by_consumers,
    dropped_by_poppers,
    held_back,
    wishes,
)
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

CONSUMED, DEAD, IN_RETRY, WAITING, FILTERED, LOST = "consumed", "dead", "in retry", "waiting", "filtered", "LOST"
ROLLED_BACK, PUT_ASIDE, HALF, ON_SLAVE, PULLED = "rolled back", "put aside", "half", "on a slave", "pulled"

CUT_OFF = "every copy was cut off the commit log"
NEVER_STORED = "it was acknowledged, and no event says that it was stored"
BEHIND_IT = "the group's offset was committed behind it"
ITS_TAG_FITS = "its tag fits, and the group's offset was committed behind it"
NOT_HELD_BACK = "no broker held it back, and the group's offset was committed behind it"
"""The proofs of what is LOST."""


def expected(tables: Tables) -> DataFrame:
    """A row for each acknowledged message and each group of its topic, with what the group wants of it."""
    acknowledged = tables["messages"].where("acknowledged_us IS NOT NULL")
    return acknowledged.join(wishes(tables[EVENTS]), [WORLD, "topic"])


def passed_over(events: DataFrame) -> DataFrame:
    """A row for each queue and group: the offset up to which the group is done as the broker has it, and since when."""
    in_order = Window.partitionBy(WORLD, "node", "group", "topic", "queue_id").orderBy(
        F.desc("ts_us"), F.desc("slice"), F.desc("i")
    )
    return (
        of_kind(events, "OffsetCommitted")
        .withColumn("rank", F.row_number().over(in_order))
        .where("rank = 1")
        .select(
            WORLD, F.col("node").alias("broker"), "group", "topic", "queue_id",
            F.col("queue_offset").alias("committed_offset"), F.col("ts_us").alias("committed_us"),
        )
    )  # fmt: skip


def _query(tables: Tables) -> DataFrame:
    again = F.coalesce("successes", F.lit(0)) > 1
    fault = last_fault(
        F.array("broker", "producer", "consumer", "last_consumer"),
        F.when(again, F.col("last_done_us")).otherwise(F.col("proof_us")),
    )
    judged = _what_is_known(tables).withColumn("verdict", _verdict()).select("*", "verdict.*")
    return judged.withColumn("last", F.when(again | (F.col("status") != CONSUMED), fault)).select(
        WORLD, "group", "topic", "msg_id", "broker", "queue_id", "queue_offset", "acknowledged_us", "status", "proof",
        "proof_us",
        F.coalesce("calls", F.lit(0)).cast("bigint").alias("calls"),
        F.greatest(F.coalesce("successes", F.lit(0)) - 1, F.lit(0)).cast("bigint").alias("duplicates"),
        _why_again().alias("duplicate_reason"),
        F.col("last.fault").alias("fault"), F.col("last.fault_us").alias("fault_us"),
    )  # fmt: skip


def _what_is_known(tables: Tables) -> DataFrame:
    """The rows of `expected`, with all that the trace says of each of them."""
    events = tables[EVENTS]
    in_its_topic = F.col("topic").eqNullSafe
    return (
        expected(tables)
        .join(tables["deliveries"], [*MESSAGE, "group"], "left")
        .join(records_of_messages(events), MESSAGE, "left")
        .join(on_slaves(events), [*MESSAGE, "topic"], "left")
        .withColumns({
            "left": left_of(in_its_topic), "torn_us": torn_of(in_its_topic),
            "parked": left_of(_is_parked), "parked_torn_us": torn_of(_is_parked),
        })
        .join(half_messages(events), MESSAGE, "left")
        .join(passed_over(events), [WORLD, "broker", "group", "topic", "queue_id"], "left")
        .join(_woken(events), [WORLD, "last_consumer"], "left")
        .join(codes_of_tags(events, wishes(events)), PLACE, "left")
        .join(held_back(events), [*PLACE, "group"], "left")
        .join(dropped_by_consumers(events), [*PLACE[:-1], "group"], "left")
        .join(dropped_by_poppers(events), [*MESSAGE, "group"], "left")
        .join(_pulled_by_hand(tables), [*PLACE, "group"], "left")
        .join(faults_of_worlds(events), WORLD, "left")
    )  # fmt: skip


def _is_parked(topic: Column) -> Column:
    return topic.isin(*PARKED)


def _verdict() -> Column:
    """What became of a message in a group, by the first case that it is: `status`, `proof`, and when that happened."""
    never_got = F.col("first_us").isNull() & F.col("consumed_us").isNull()
    passed = never_got & (F.col("committed_offset") > F.col("queue_offset"))
    gone = never_got & (F.coalesce("left", F.lit(0)) == 0)
    on_slave = gone & (F.coalesce("on_slaves", F.lit(0)) > 0)
    # A commit that was torn away leaves a half message as it was, and its broker asks again.
    is_half = gone & F.col("hidden_us").isNotNull() & ~on_slave
    is_parked = gone & F.col("left").isNull() & (F.coalesce("parked", F.lit(0)) > 0)
    torn_us = F.coalesce("torn_us", "halves_torn_us", "parked_torn_us")
    wants_tags = F.size("narrow") > 0
    not_wanted = _why_not_wanted(wants_tags)
    cases: tuple[tuple[Column, str, Column | str, Column | str], ...] = (
        (F.col("consumed_us").isNotNull(), CONSUMED, "the listener was done with it", "consumed_us"),
        (F.col("dead_us").isNotNull(), DEAD, "it became a dead letter", "dead_us"),
        (F.col("last_back_us").isNotNull(), IN_RETRY, "it was given back", "last_back_us"),
        (is_half & (F.col("commits") == 0) & F.col("rolled_back_us").isNotNull(), ROLLED_BACK,
         "its producer rolled the transaction back", "rolled_back_us"),
        (is_half & (F.col("commits") == 0) & F.col("put_aside_us").isNotNull(), PUT_ASIDE,
         "its broker gave the transaction up", "put_aside_us"),
        (is_half & (F.col("halves") > 0), HALF,
         "it is a half message, and nobody has ended the transaction", "hidden_us"),
        (on_slave, ON_SLAVE, "its master lost it, and a slave has a copy", F.coalesce(torn_us, "acknowledged_us")),
        (is_parked, WAITING, "it is parked until it is due", "acknowledged_us"),
        (gone & torn_us.isNotNull(), LOST, CUT_OFF, torn_us),
        (gone, LOST, NEVER_STORED, "acknowledged_us"),
        (passed & F.col("by_hand"), PULLED,
         "a pull brought it, and the group has no listener that tells more", "committed_us"),
        (passed & not_wanted.isNotNull(), FILTERED, not_wanted, "committed_us"),
        (passed & F.col("by_sql"), LOST, NOT_HELD_BACK, "committed_us"),
        (passed & wants_tags & F.col("tags").isNotNull(), LOST, ITS_TAG_FITS, "committed_us"),
        (passed, LOST, BEHIND_IT, "committed_us"),
        (never_got, WAITING, "it is in its queue", "stored_us"),
        (F.lit(True), WAITING, "a listener got it and has not ended", F.coalesce("first_us", "stored_us")),
    )  # fmt: skip
    return F.coalesce(*(
        F.when(case, F.struct(
            F.lit(status).alias("status"),
            (F.lit(proof) if isinstance(proof, str) else proof).alias("proof"),
            (F.col(us) if isinstance(us, str) else us).alias("proof_us"),
        ))
        for case, status, proof, us in cases
    ))  # fmt: skip


def _why_not_wanted(wants_tags: Column) -> Column:
    """What shows that the group does not want the message; null: nothing does.

    Of a condition it is told where messages were held back; of tags the queue entry has the code.
    """
    fits = F.forall("narrow", lambda codes: F.coalesce(F.arrays_overlap(codes, "tags"), F.lit(False)))
    return (
        F.when(F.col("by_sql"), F.when(F.col("held_back"), "the broker held it back, by the group's condition"))
        .when(F.col("popped_away"), "a consumer dropped it: its tag only has the code of a wanted one")
        .when(~fits & F.col("tags").isNotNull(), "its tag is none of those that the group wants")
        .when(wants_tags & F.col("dropped"), "consumers dropped what only has the code of a wanted tag")
    )


def _why_again() -> Column:
    """Why a group was done with a message more than once; null: it was not."""
    woke = (F.col("consumer") != F.col("last_consumer")) & F.col("thawed_us").between(
        F.col("consumed_us"), F.col("last_done_us")
    )
    return F.when(
        F.coalesce("successes", F.lit(0)) > 1,
        F.when((F.col("copies") > 1) & (F.col("commits") > 1), "committed twice: the broker asked about it again")
        .when(F.col("copies") > 1, "stored twice: the producer tried again")
        .when(F.col("given_back") > 0, "given back: a listener failed or took too long")
        .when(woke, "a member that hung went on with what it held, though others had consumed it meanwhile")
        .when(F.col("consumers") > 1, "the queue moved: the new owner began at the committed offset")
        .otherwise("the consumer began again at the committed offset"),
    )


def _pulled_by_hand(tables: Tables) -> DataFrame:
    """A row for each place that pulls went over of groups that have no listener: their applications pull themselves."""
    listeners = tables["deliveries"].where("calls > 0 OR successes > 0").select(WORLD, "group").distinct()
    by_hand = pulled(tables[EVENTS], listeners).withColumnRenamed("node", "broker").distinct()
    return by_hand.withColumn("by_hand", F.lit(True))


def _woken(events: DataFrame) -> DataFrame:
    """A row for each machine that hung and went on, with when it last did."""
    thawed = of_kind(events, "NodeThawed").groupBy(WORLD, F.col("target").alias("last_consumer"))
    return thawed.agg(F.max("ts_us").alias("thawed_us"))


AUDIT = Table(
    "audit",
    GOLD,
    "Where is every acknowledged message: consumed, waiting, in retry, dead, filtered, not committed, or LOST?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "a group that subscribed to the topic"),
        topic=(TEXT, "the topic"),
        msg_id=(TEXT, "the message's unique key"),
        broker=(TEXT, "the machine that stored it first"),
        queue_id=(WHOLE, "its queue there"),
        queue_offset=(WHOLE, "its place in that queue"),
        acknowledged_us=(WHOLE, "when the producer was told that it is stored, us since the world began"),
        status=(TEXT, "consumed, dead, in retry, waiting, filtered (it is not wanted), or LOST; of a transaction also "
                      "rolled back, put aside (its broker asks no more), or half (it has no end yet); on a slave: its "
                      "master alone lost it; pulled: what came of it is not told"),
        proof=(TEXT, "what shows that"),
        proof_us=(WHOLE, "when that happened"),
        calls=(WHOLE, "how often the group's application got it"),
        duplicates=(WHOLE, "how often it was done with it, beyond once"),
        duplicate_reason=(TEXT, "why it was done with it again; null: it was not"),
        fault=(TEXT, "what was last done from outside to its broker, its producer or who was done with it, up to the "
                     "proof, or until it was done with again; null: nothing was, or it was consumed once"),
        fault_us=(WHOLE, "when that was done"),
    ),
    (EVENTS, "messages", "deliveries"),
    _query,
)  # fmt: skip
