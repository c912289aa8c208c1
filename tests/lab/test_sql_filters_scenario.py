"""The scenario of filters: three groups, each with what it wants."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, scenarios
from mqlab.client import MessageSelector
from mqlab.errors import MQClientException
from mqlab.explore.readers import readers_of
from mqlab.scenarios.filtering import open_shop


def given(lab: Any, group: str) -> int:
    return sum(answer.messages for answer in lab.history.find("PullAnswered", group=group))


@pytest.mark.parametrize("bit_maps", [False, True])
def test_each_group_gets_what_it_wants_and_bit_maps_save_reading(bit_maps: bool) -> None:
    lab = scenarios.get("sql-filters").play(7, parameters={"bit_maps": bit_maps})
    held_back = list(lab.history.find("MessagesFilteredByBroker"))
    assert given(lab, "everything") == 80
    assert given(lab, "paid-orders") == 40
    wanted = given(lab, "large-in-berlin")
    assert wanted == 13
    by_bit_map = sum(each.by_bit_map for each in held_back)
    by_expression = sum(each.by_expression for each in held_back)
    assert (by_bit_map > 0, by_expression > 0) == (bit_maps, not bit_maps)
    assert 0 < by_bit_map + by_expression <= 80 - wanted


def test_a_condition_of_ones_own_may_be_wrong() -> None:
    with pytest.raises(MQClientException, match="at line 1, column 8"):
        scenarios.get("sql-filters").play(7, parameters={"condition": "amount >"})


def test_rules_know_which_groups_want_what_fulfils_a_condition() -> None:
    readers = readers_of(scenarios.get("sql-filters").build(7))
    assert {name: list(reader.conditions) for name, reader in readers.items() if reader.conditions} == {
        "large-in-berlin": ["Orders"]
    }
    assert not readers["everything"].is_choosy("Orders")
    assert readers["large-in-berlin"].is_choosy("Orders")


async def _shop_with(lab: Lab, read: dict[str, tuple[int, list[str]]]) -> None:
    over_5 = MessageSelector.by_sql("amount > 5")
    shop = await open_shop(lab, {"everything": "*", "paid": "paid", "over-5": over_5})
    await shop.send([{"tag": "paid", "amount": "9"}, {"tag": "open", "amount": "2"}, {"amount": "7"}])
    lab.run_for(seconds=21)
    await shop.join("over-5", over_5, machine="a-second-member")
    for group in ("everything", "paid", "over-5"):
        read[group] = shop.read_for(group), [message.keys for message in shop.handled[group]]
    assert shop.handled["a-second-member"] == []


def test_a_shop_says_what_was_read_for_whom_and_what_came() -> None:
    read: dict[str, tuple[int, list[str]]] = {}
    lab = Lab(seed=7)
    lab.finish_building(_shop_with(lab, read))
    assert read == {
        "everything": (3, ["order-0", "order-1", "order-2"]),
        "paid": (1, ["order-0"]),
        "over-5": (3, ["order-0", "order-2"]),
    }
