"""What the tables say was lost, came twice and came late, compared with the sealed list of a data set.

    python -m mqlab_spark audit out/datasets/lost-orders-small

counts what the delivery audit says of every acknowledged message and, where a data set's card lies beside the traces,
how much of what was planted was found, and what else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets import CARD, LATE, LOST, TWICE, judge
from mqlab.data_sets.named_worlds import world_of
from mqlab_spark.schema import WORLD
from mqlab_spark.tables import ALL, EVENTS

NEEDED = ("messages", "deliveries", "audit", "order_violations")

Answer = tuple[int, str, str, str]
"""(seed, what, group, unique key), as `mqlab.data_sets.judge` takes it."""


def audited(events: DataFrame) -> dict[str, DataFrame]:
    """The tables that an audit needs, made from a trace."""
    tables: dict[str, DataFrame] = {EVENTS: events}
    for table in ALL:
        if table.name in NEEDED:
            tables[table.name] = table.make(tables).cache()
    return tables


def found(tables: Mapping[str, DataFrame]) -> DataFrame:
    """A row (world, what, group, msg_id) for each message that was lost, came twice or came late."""
    audit = tables["audit"]
    named = [WORLD, "group", "msg_id"]
    lost = audit.where("status = 'LOST'").select(*named, F.lit(LOST).alias("what"))
    twice = audit.where("duplicates > 0").select(*named, F.lit(TWICE).alias("what"))
    late = tables["order_violations"].select(*named, F.lit(LATE).alias("what"))
    return lost.unionByName(twice).unionByName(late)


def answers(tables: Mapping[str, DataFrame], kinds: Iterable[str] = (LOST, TWICE, LATE)) -> list[Answer]:
    """What was found, of these kinds, as answers to a sealed list."""
    rows = found(tables).where(F.col("what").isin(*kinds)).collect()
    return [(int(world_of(row[WORLD]).seed), row["what"], row["group"], row["msg_id"]) for row in rows]


def verdict(tables: Mapping[str, DataFrame], directory: str | Path) -> dict[str, int] | None:
    """How many of the planted things were found, how many others, and how many are missing; None without a card, or
    when nothing was sealed.
    """
    file = Path(directory) / CARD
    card = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if not card.get("seals"):
        return None
    return judge(card, answers(tables, card["seals"]))
