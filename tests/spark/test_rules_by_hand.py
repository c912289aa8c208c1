"""Each rule of the audit, in a world of a few events that was written by hand: the events in, the verdict out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqlab_spark import read_trace
from mqlab_spark.auditing import audited, found
from mqlab_spark.tables.gold import audit as proofs
from mqlab_spark.tables.gold.anomalies import JEPSEN, MEANINGS
from tests.spark.stories import BROKER, READER, SECOND_US, SHOP, Story, record_stories

RULES: dict[str, Callable[[Story], None]] = {}


def rule(tell: Callable[[Story], None]) -> Callable[[Story], None]:
    RULES[tell.__name__] = tell
    return tell


@rule
def nothing_is_wrong(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.pull(0, 1)
    story.call("k", 0)
    story.commit(1)


@rule
def cut_off(story: Story) -> None:
    story.begin()
    story.send("k", 1)
    story.tell("world", "PowerLost", target=READER)
    story.tell("world", "PowerLost", target=BROKER)
    story.recover(100)
    story.tell("world", "NodeCrashed", target=BROKER)


@rule
def never_stored(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.acknowledge("k")


@rule
def passed_over(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.commit(1)


@rule
def passed_over_for_a_torn_one(story: Story) -> None:
    story.begin()
    story.store("torn", 0, at=500)
    story.commit(1)
    story.recover(500)
    story.send("k", 0)


@rule
def stored_again_where_it_was_torn(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.store("k", 0)
    story.recover(0)
    story.store("k", 0)
    story.acknowledge("k")


@rule
def begun_behind_it(story: Story) -> None:
    story.tell(BROKER, "BrokerStarted", broker_name="a")
    story.tell(BROKER, "SubscriptionChanged", group="G", topic="T", expression="*")
    story.send("k", 0)
    story.tell(READER, "QueueAllocated", group="G", topic="T", broker_name="a", queue_offset=1)
    story.commit(1)


@rule
def its_tag_fits(story: Story) -> None:
    story.begin(" open|| paid ")
    story.send("k", 0, tag="paid")
    story.commit(1)


@rule
def its_tag_is_another(story: Story) -> None:
    story.begin("open || delivered")
    story.send("k", 0, tag="paid")
    story.send("wanted", 1, tag="delivered")
    story.commit(2)


@rule
def its_tag_only_has_the_code(story: Story) -> None:
    story.begin("Aa")
    story.send("k", 0, tag="BB")
    story.tell(READER, "MessagesFiltered", group="G", topic="T", broker_name="a", messages=1)
    story.commit(1)


@rule
def a_popper_dropped_it(story: Story) -> None:
    story.begin("Aa")
    story.send("k", 0, tag="BB")
    story.tell(READER, "AckRequested", group="G", topic="T", broker_name="a", msg_id="k", reason="filtered")
    story.commit(1)


def by_condition(story: Story) -> None:
    story.begin("amount > 100")
    story.tell(BROKER, "ConsumerFilterChanged", group="G", topic="T", expression="amount > 100", change="registered")
    story.send("k", 0)
    story.commit(1)


@rule
def held_back_by_a_condition(story: Story) -> None:
    by_condition(story)
    story.tell(BROKER, "MessagesFilteredByBroker", group="G", topic="T", next_offset=1, by_expression=1)


@rule
def not_held_back(story: Story) -> None:
    by_condition(story)


@rule
def held_back_though_it_was_wanted(story: Story) -> None:
    held_back_by_a_condition(story)
    story.tell(BROKER, "FilterBitMapCalculated", topic="T", groups="F,G")


@rule
def parked(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.store("k", 0, "SCHEDULE_TOPIC_XXXX")
    story.acknowledge("k")


@rule
def parked_and_cut_off(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.store("k", 1, "SCHEDULE_TOPIC_XXXX")
    story.acknowledge("k")
    story.recover(100)


@rule
def pulled_by_hand(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.pull(0, 1)
    story.commit(1)


@rule
def twice(story: Story) -> None:
    nothing_is_wrong(story)
    story.tell("world", "NodeCrashed", target=READER)
    story.tell(READER, "QueueAllocated", group="G", topic="T", broker_name="a")
    story.call("k", 0)


@rule
def late(story: Story) -> None:
    story.begin()
    for offset, key in enumerate(("k", "l")):
        story.send(key, offset)
    story.pull(0, 2)
    story.tell(READER, "ConsumeStarted", group="G", topic="T", broker_name="a", msg_id="k", messages=1)
    story.call("l", 1)
    story.tell(
        READER, "ConsumeFinished", group="G", topic="T", broker_name="a", msg_id="k", status="SUCCESS", cost_us=5_000
    )
    story.commit(2)


@rule
def consumed_and_never_stored(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.acknowledge("k")
    story.pull(0, 1)
    story.call("k", 0)


@rule
def consumed_before_it_was_stored(story: Story) -> None:
    story.begin()
    story.try_to_send("k")
    story.pull(0, 1)
    story.call("k", 0)
    story.store("k", 0)
    story.acknowledge("k")


def with_round_trips(story: Story) -> None:
    story.ask(1, READER, BROKER)
    story.ask(2, SHOP, BROKER)
    story.ask(3, SHOP, "namesrv")
    story.ask(4, READER, "namesrv")


@rule
def a_clock_that_is_behind(story: Story) -> None:
    story.clocks[READER] = -5 * SECOND_US
    with_round_trips(story)
    nothing_is_wrong(story)


@rule
def two_clocks_and_one_queue(story: Story) -> None:
    """What the second consumer did a second later has an earlier time on its clock, and is in order."""
    story.clocks[READER] = 3 * SECOND_US
    with_round_trips(story)
    story.ask(5, "reader-2", BROKER)
    story.begin()
    for offset, key in enumerate(("k", "l")):
        story.send(key, offset)
    story.pull(0, 2)
    story.call("k", 0, node="reader-2")
    story.call("l", 1, node=READER)
    story.now_us += SECOND_US
    story.send("m", 2)
    story.pull(2, 3)
    story.call("m", 2, node="reader-2")
    story.commit(3)


@rule
def clocks_that_may_agree(story: Story) -> None:
    story.ask(1, READER, BROKER, there_us=9_000, back_us=1_000)


@rule
def ended_and_never_begun(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.pull(0, 1)
    story.tell(
        READER, "ConsumeFinished", group="G", topic="T", broker_name="a", msg_id="k", status="SUCCESS", cost_us=1_000
    )
    story.commit(1)


@rule
def called_and_never_pulled(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.send("l", 1)
    story.pull(1, 2)
    story.call("k", 0)
    story.call("l", 1)
    story.commit(2)


@rule
def pulled_from_the_retry_topic(story: Story) -> None:
    nothing_is_wrong(story)
    story.send("again", 1)
    story.pull(5, 6, topic="%RETRY%G")
    story.call("again", 5, times=1)


@rule
def popped(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.tell(BROKER, "MessagePopped", group="G", topic="T", unique_key="k")
    story.call("k", 0)


@rule
def in_a_wrong_group(story: Story) -> None:
    nothing_is_wrong(story)
    story.tell(BROKER, "SubscriptionChanged", group="F", topic="U", expression="*")
    story.pull(0, 1, group="F")
    story.call("k", 0, group="F")


@rule
def in_a_group_that_assigns_its_queues(story: Story) -> None:
    nothing_is_wrong(story)
    story.tell(BROKER, "PullReceived", group="F", topic="T")
    story.pull(0, 1, group="F")
    story.call("k", 0, group="F")


Told = Mapping[str, Mapping[str, list[Any]]]


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Table -> rule -> its rows."""
    directory = tmp_path_factory.mktemp("rules")
    record_stories(directory, RULES)
    events = read_trace(spark, directory).cache()
    tables = audited(events)
    rows: dict[str, dict[str, list[Any]]] = {}
    for name, frame in (*tables.items(), ("found", found(tables))):
        if name in ("audit", "anomalies", "clocks", "found"):
            rows[name] = defaultdict(list)
            for row in frame.collect():
                rows[name][row["world"].removesuffix(".jsonl")].append(row)
    events.unpersist()
    return rows


VERDICTS = {
    "nothing_is_wrong": ("consumed", "the listener was done with it"),
    "cut_off": ("LOST", proofs.CUT_OFF),
    "never_stored": ("LOST", proofs.NEVER_STORED),
    "passed_over": ("LOST", proofs.BEHIND_IT),
    "passed_over_for_a_torn_one": ("LOST", proofs.BEHIND_IT),
    "begun_behind_it": ("LOST", proofs.BEHIND_IT),
    "stored_again_where_it_was_torn": ("waiting", "it is in its queue"),
    "its_tag_fits": ("LOST", proofs.ITS_TAG_FITS),
    "its_tag_is_another": ("filtered", "its tag is none of those that the group wants"),
    "its_tag_only_has_the_code": ("filtered", "consumers dropped what only has the code of a wanted tag"),
    "a_popper_dropped_it": ("filtered", "a consumer dropped it: its tag only has the code of a wanted one"),
    "held_back_by_a_condition": ("filtered", "the broker held it back, by the group's condition"),
    "not_held_back": ("LOST", proofs.NOT_HELD_BACK),
    "held_back_though_it_was_wanted": ("LOST", proofs.NOT_HELD_BACK),
    "parked": ("waiting", "it is parked until it is due"),
    "parked_and_cut_off": ("LOST", proofs.CUT_OFF),
    "pulled_by_hand": ("pulled", "a pull brought it, and the group has no listener that tells more"),
    "consumed_and_never_stored": ("consumed", "the listener was done with it"),
    "ended_and_never_begun": ("consumed", "the listener was done with it"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_what_became_of_it_and_what_shows_that(told: Told, name: str) -> None:
    (row,) = [row for row in told["audit"][name] if row.msg_id == "k" and row.group == "G"]
    assert (row.status, row.proof) == VERDICTS[name]


FOUND = {
    "nothing_is_wrong": set(),
    "cut_off": {("lost", "G", "k")},
    "never_stored": {("acknowledged, never stored", "G", "k")},
    "passed_over": {("lost", "G", "k")},
    "its_tag_is_another": {("lost", "G", "wanted")},
    "held_back_by_a_condition": set(),
    "twice": {("twice", "G", "k")},
    "late": {("late", "G", "k")},
    "consumed_and_never_stored": {("consumed, never stored", "G", "k")},
    "consumed_before_it_was_stored": {("before it was stored", "G", "k")},
    "a_clock_that_is_behind": {("clock", "", READER)},
    "two_clocks_and_one_queue": {("clock", "", READER)},
    "clocks_that_may_agree": set(),
    "ended_and_never_begun": {("never handed out", "G", "k")},
    "called_and_never_pulled": {("never handed out", "G", "k")},
    "pulled_from_the_retry_topic": set(),
    "popped": set(),
    "in_a_wrong_group": {("wrong group", "F", "k")},
    "in_a_group_that_assigns_its_queues": set(),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_wrong_is_found_and_nothing_else(told: Told, name: str) -> None:
    assert {(row.what, row.group, row.msg_id) for row in told["found"][name]} == FOUND[name]


def anomaly(told: Told, name: str, what: str) -> Any:
    (row,) = [row for row in told["anomalies"][name] if row.anomaly == what]
    return row


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cut_off", "acknowledged before it was on the disk (ASYNC_FLUSH)"),
        ("never_stored", None),
        ("passed_over", None),
        ("passed_over_for_a_torn_one", "its offset had been committed for a message that was torn away"),
        ("begun_behind_it", "the group began behind it (ConsumeFromWhere)"),
    ],
)
def test_a_lost_write_has_a_reason_only_where_an_event_shows_it(told: Told, name: str, reason: str | None) -> None:
    row = anomaly(told, name, "lost write")
    assert (row.jepsen, row.reason) == ("lost-write", reason)


def test_the_last_fault_before_the_proof_that_touched_its_machines_is_named(told: Told) -> None:
    (lost,) = told["audit"]["cut_off"]
    assert lost.fault == f"PowerLost {BROKER}"
    assert lost.acknowledged_us < lost.fault_us < lost.proof_us
    assert anomaly(told, "cut_off", "lost write").fault == lost.fault
    (again,) = told["audit"]["twice"]
    assert (again.duplicates, again.fault) == (1, f"NodeCrashed {READER}")
    assert [row.fault for row in told["audit"]["nothing_is_wrong"]] == [None]


def test_a_clock_is_measured_by_round_trips_and_explains_what_seems_too_early(told: Told) -> None:
    behind = {(row.node, row.other): row for row in told["clocks"]["a_clock_that_is_behind"]}
    wrong = behind[BROKER, READER]
    assert (wrong.offset_us, wrong.uncertainty_us, wrong.disagrees, wrong.odd) == (-5 * SECOND_US, 1_000, True, READER)
    assert [row.disagrees for pair, row in behind.items() if READER not in pair] == [False, False]
    early = anomaly(told, "a_clock_that_is_behind", "before it was stored")
    assert early.reason == "the clock of who got it is 5000000 us behind the broker's"
    assert anomaly(told, "consumed_before_it_was_stored", "before it was stored").reason is None


def test_ways_that_take_different_times_are_no_wrong_clock(told: Told) -> None:
    (pair,) = told["clocks"]["clocks_that_may_agree"]
    assert (pair.offset_us, pair.uncertainty_us, pair.disagrees) == (-4_000, 5_000, False)


def test_jepsens_names_stand_beside_ours(told: Told) -> None:
    assert JEPSEN.keys() < MEANINGS.keys()
    rows = [row for rows in told["anomalies"].values() for row in rows]
    assert {row.anomaly: row.jepsen for row in rows}.items() <= {name: JEPSEN.get(name) for name in MEANINGS}.items()
    assert anomaly(told, "consumed_and_never_stored", "never stored").jepsen == "unexpected"
    assert anomaly(told, "late", "out of order").jepsen is None
