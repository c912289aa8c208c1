"""What the tables say was lost, came twice and came late, or cannot be: compared with what is known to be wrong.

    python -m mqlab_spark audit out/datasets/lost-orders-small

counts what the delivery audit says of every acknowledged message and, where a card lies beside the traces (of a data
set, or of `python -m mqlab_spark plant`), how much of what it has sealed was found, and what else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets import CARD, LATE, LOST, TWICE
from mqlab.data_sets.named_worlds import world_of
from mqlab.data_sets.recipe import seal
from mqlab_spark.planting import ACKNOWLEDGED_ONLY, CLOCK, CONSUMED_ONLY, NAME, NOT_HANDED_OUT, TOO_EARLY, WRONG_GROUP
from mqlab_spark.schema import WORLD, WORLD_NAME
from mqlab_spark.storage import folder
from mqlab_spark.tables import ALL, EVENTS, TRACES
from mqlab_spark.tables.gold.audit import NEVER_STORED

NEEDED = ("messages", "deliveries", "requests", "audit", "clocks", "order_violations", "anomalies")

ORPHANS = {
    "never stored": CONSUMED_ONLY, "before it was stored": TOO_EARLY, "never handed out": NOT_HANDED_OUT,
    "wrong group": WRONG_GROUP,
}  # fmt: skip
"""Anomalies of messages for which something is missing, and what they are called where faults are planted."""

SEALED = "sealed"
"""The kind of everything that a data set has sealed: it does not tell them apart."""

Answer = tuple[int, str, str, str]
"""(seed, what, group, unique key), as `mqlab.data_sets.judge` takes it."""


class Verdict(NamedTuple):
    """How many of the sealed things of a kind were found, and how many are missing."""

    kind: str
    found: int
    missing: int


def audited(events: DataFrame) -> dict[str, DataFrame]:
    """The tables that an audit needs, made from a trace, one after the other.

    Each is held as rows and not as its query, or Spark would plan all that came before anew with each of them.
    """
    tables: dict[str, DataFrame] = {EVENTS: events}
    for table in ALL:
        if table.name in NEEDED:
            tables[table.name] = table.make(tables).localCheckpoint()
    return tables


def found(tables: Mapping[str, DataFrame]) -> DataFrame:
    """A row (world, what, group, msg_id) for each message that was lost, came twice or came late, and, where there is
    a table of anomalies, for each for which something is missing that must have come before; of a clock that is wrong
    the group is empty, and msg_id is the machine.
    """
    audit = tables["audit"]
    named = [WORLD, "group", "msg_id"]
    what = F.when(F.col("proof") == NEVER_STORED, ACKNOWLEDGED_ONLY).otherwise(LOST)
    lost = audit.where("status = 'LOST'").select(*named, what.alias("what"))
    twice = audit.where("duplicates > 0").select(*named, F.lit(TWICE).alias("what"))
    late = tables["order_violations"].select(*named, F.lit(LATE).alias("what"))
    rows = lost.unionByName(twice).unionByName(late)
    if "anomalies" not in tables:
        return rows
    names = F.create_map(*(F.lit(text) for pair in ORPHANS.items() for text in pair))
    # What a clock explains is told of the clock; nothing is handed out to a group that is a stranger.
    orphans = (
        tables["anomalies"]
        .where(F.col("anomaly").isin(*ORPHANS) & F.col("reason").isNull())
        .select(*named, names[F.col("anomaly")].alias("what"))
        .groupBy(*named)
        .agg(F.collect_set("what").alias("all"))
        .select(*named, F.explode(_without_consequences("all")).alias("what"))
    )
    clocks = tables["clocks"].where("disagrees").select(
        WORLD, F.lit("").alias("group"), F.coalesce("odd", F.concat_ws(" or ", "node", "other")).alias("msg_id"),
        F.lit(CLOCK).alias("what"),
    )  # fmt: skip
    return rows.unionByName(orphans).unionByName(clocks.distinct())


def _without_consequences(whats: str) -> Column:
    """What was found of a message, without what follows from the rest."""
    handed_out = F.array_remove(whats, NOT_HANDED_OUT)
    return F.when(F.array_contains(whats, WRONG_GROUP), handed_out).otherwise(F.col(whats))


def _with_names(tables: Mapping[str, DataFrame], rows: DataFrame) -> DataFrame:
    """The rows with their worlds by name: those of a build have numbers, of which its table of traces has the names."""
    if TRACES not in tables:
        return rows
    names = tables[TRACES].select(WORLD, WORLD_NAME)
    return rows.join(names, WORLD).withColumn(WORLD, F.col(WORLD_NAME)).drop(WORLD_NAME)


def answers(tables: Mapping[str, DataFrame], kinds: Iterable[str] = (LOST, TWICE, LATE)) -> list[Answer]:
    """What was found, of these kinds, as answers to the sealed list of a data set."""
    rows = _with_names(tables, found(tables).where(F.col("what").isin(*kinds))).collect()
    return [(int(world_of(row[WORLD]).seed), row["what"], row["group"], row["msg_id"]) for row in rows]


def verdicts(tables: Mapping[str, DataFrame], directory: str | Path) -> tuple[list[Verdict], int] | None:
    """How many of the sealed things of each kind were found and how many are missing, and how many others were found;
    None without a card, or when nothing was sealed.

    Of traces of a data set in which faults were planted, what the data set has sealed is none of the others; nor is, of
    one whose worlds have faults of their own, what is lost, twice or late and of a kind that it does not seal.
    """
    there = folder(directory)
    seen = there.look(CARD) if there.stat("") is None else None
    card = json.loads(seen.data) if seen else {}
    if not card.get("sealed"):
        return None
    told = _with_names(tables, found(tables)).collect()
    rows = [(row[WORLD], (row["what"], row["group"], row["msg_id"])) for row in told]
    if card["name"] == NAME:
        kinds, before = card["sealed_by_kind"], card["before"]
        given = {seal(NAME, world, [thing])[0] for world, thing in rows}
        new = {seal(NAME, world, [thing])[0] for world, thing in rows if not _may_be_of(before, world, thing)}
    else:
        kinds = {SEALED: card["sealed"]}
        given = new = {_by_seed(card["name"], world, thing) for world, thing in rows if thing[0] in card["seals"]}
    counted = [Verdict(kind, len(given & set(texts)), len(set(texts) - given)) for kind, texts in kinds.items()]
    return counted, len(new - set(card["sealed"]))


def _may_be_of(before: Mapping[str, Any], world: str, thing: tuple[str, str, str]) -> bool:
    """Whether a data set with faults of its own may have had a thing: it has sealed it, or seals none of the kind."""
    if not before.get("sealed"):
        return False
    uncounted = {LOST, TWICE, LATE} - set(before["seals"])
    return thing[0] in uncounted or _by_seed(before["name"], world, thing) in before["sealed"]


def _by_seed(name: str, world: str, thing: tuple[str, str, str]) -> str:
    """The hash by which a data set seals a thing of a world."""
    return seal(name, world_of(world).seed, [thing])[0]
