"""Who filters what: beside a truth told event by event, and beside what the messages themselves are."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab import Lab
from mqlab_spark.tables.gold.filters import FILTERS
from mqlab_spark.tables.table import EVENTS
from tests.spark.truths import ACCIDENTS, Worlds, filters, played, recorded
from tests.worlds import send, shop, started_consumer, started_producer

SAME_HASH = ("Aa", "BB")
"""Two tags of one hash."""


def two_tags_of_one_hash() -> Lab:
    """A group that wants the one tag is sent messages of the other, and its client drops them."""
    lab = shop(seed=1)
    started_consumer(lab, tags=SAME_HASH[0])
    producer = started_producer(lab, "senders")
    for number in range(12):
        send(producer, b"%d" % number, tags=(*SAME_HASH, "C")[number % 3])
    lab.run_for(seconds=5)
    return lab


@pytest.fixture(scope="module")
def filtering() -> Worlds:
    return {
        **played("sql-filters", (0,), settle_s=0),
        **played("sql-filters", (1,), settle_s=0, bit_maps=True),
        **played("sql-filters", (2, 3), *ACCIDENTS),
        **played("steady-load", (0,), settle_s=0),
        **played("half-message", (0,), settle_s=0),
        "tags.parquet": two_tags_of_one_hash(),
    }


@pytest.fixture(scope="module")
def rows(spark: SparkSession, filtering: Worlds, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    return FILTERS.make({EVENTS: recorded(spark, tmp_path_factory.mktemp("filtering"), filtering)}).cache()


def test_what_was_held_back_and_by_whom_is_what_the_events_say(rows: DataFrame, filtering: Worlds) -> None:
    truth = {
        (world, *whose): counts
        for world, lab in filtering.items()
        for whose, counts in filters(lab).items()
        if counts["pulls"]
    }
    names = next(iter(truth.values())).keys()
    told = {
        (row.world, row.group, row.topic): {name: row[name] for name in names} for row in rows.collect()
    }
    assert told == truth
    held_back = {name for counts in truth.values() for name in names if counts[name]}
    assert held_back >= {"by_tag_hash", "by_bit_map", "by_expression", "by_client", "empty_pulls"}


def test_each_group_of_a_quiet_world_is_given_what_it_wants(rows: DataFrame) -> None:
    told = {row.group: row for row in rows.where("world = 'sql-filters-0.parquet' AND topic = 'Orders'").collect()}
    paid, large = told["paid-orders"], told["large-in-berlin"]
    assert {row.read for row in told.values()} == {80}
    assert (paid.expression, paid.by_tag_hash, paid.given) == ("paid", 40, 40)
    assert large.expression == "amount > 100 AND city = 'Berlin'"
    assert large.by_expression == 80 - large.given > 0
    assert told["everything"].given == told["everything"].taken == 80
    assert large.bytes_per_taken == round(large.bytes / large.taken, 3)


def test_another_tag_of_the_same_hash_is_dropped_by_the_client(rows: DataFrame) -> None:
    (row,) = rows.where("world = 'tags.parquet' AND topic = 'T'").collect()
    assert (row.read, row.by_tag_hash, row.given, row.by_client, row.taken) == (12, 4, 8, 4, 4)
    assert row.bytes_per_taken > row.bytes / row.given
