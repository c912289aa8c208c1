"""The board of filters: one wish for each group, and what was read for it, skipped unread, or dropped by the client."""

from __future__ import annotations

import pytest

from mqlab import Lab, Message, scenarios
from mqlab.scenarios.filtering import TOPIC, open_shop
from mqlab_widgets.boards.filters import FiltersBoard
from tests.widgets.folds import expect_the_same_whichever_way, folded


def rows_of(lab: Lab) -> dict[str, tuple[object, ...]]:
    """Group -> what it wants, and its four numbers."""
    return {row[0]: tuple(row[2:]) for row in folded(FiltersBoard, lab).table().rows}


@pytest.mark.parametrize("bit_maps", [False, True])
def test_it_counts_what_was_sent_held_back_and_skipped(bit_maps: bool) -> None:
    lab = scenarios.get("sql-filters").play(7, parameters={"bit_maps": bit_maps})
    rows = rows_of(lab)
    assert rows["everything"] == ("*", 80, 0, 0, 0)
    assert rows["paid-orders"] == ("paid", 40, 0, 0, 0)
    wanted, sent, held_back, skipped, dropped = rows["large-in-berlin"]
    assert (wanted, sent, dropped) == ("amount > 100 AND city = 'Berlin'", 13, 0)
    told = list(lab.history.find("MessagesFilteredByBroker"))
    assert held_back == sum(record.by_expression for record in told)
    assert skipped == sum(record.by_bit_map for record in told)
    assert (held_back, skipped) == ((0, 67) if bit_maps else (67, 0))


async def _two_wishes(lab: Lab) -> None:
    shop = await open_shop(lab, {"collision": "BB"})
    await shop.join("packers", "Aa", machine="member-1")
    lab.run_for(seconds=1)
    assert rows_of(lab)["packers"][0] == "Aa"
    await shop.join("packers", "CC", machine="member-2")
    lab.run_for(seconds=5)
    await shop.producer.send(Message(TOPIC, b"not for anybody", tags="Aa"))
    lab.run_for(seconds=1)
    rows = rows_of(lab)
    assert rows["packers"] == ("CC", 0, 0, 0, 0)
    assert rows["collision"] == ("BB", 1, 0, 0, 1)


def test_the_newest_wish_counts_and_what_a_client_drops_is_told() -> None:
    lab = Lab(seed=3)
    lab.finish_building(_two_wishes(lab))
    expect_the_same_whichever_way(lab, [FiltersBoard], [len(lab.history), 40, len(lab.history) // 2, 0])


async def _leaves(lab: Lab) -> None:
    shop = await open_shop(lab)
    consumer = await shop.join("packers", "paid")
    lab.run_for(seconds=1)
    assert rows_of(lab) == {"packers": ("paid", 0, 0, 0, 0)}
    consumer.unsubscribe(TOPIC)
    lab.run_for(seconds=31)


def test_a_group_that_leaves_a_topic_wants_nothing_of_it() -> None:
    lab = Lab(seed=3)
    lab.finish_building(_leaves(lab))
    assert rows_of(lab) == {}
