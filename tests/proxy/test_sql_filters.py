"""5.x clients that subscribe by SQL92, through a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ClientException, FilterExpression


def test_a_simple_consumer_receives_what_fulfils_its_condition(shop: Any) -> None:
    for n, color in enumerate(["red", "red", "red", "blue", "red"]):
        shop.send(f"s{n}", properties={"n": str(n), "color": color})
    consumer = shop.simple_consumer(tags=FilterExpression("n > 1 AND color = 'red'", sql=True))
    received = []
    for _ in range(4):
        received += shop.run(consumer.receive(16, 10_000))
        if len(received) == 2:
            break
    assert sorted(message.body for message in received) == [b"s2", b"s4"]


def test_a_condition_that_cannot_be_read_is_told_with_the_first_receive(shop: Any) -> None:
    """As recorded (`py-filters`, `jv-filter`): the start succeeds, receiving ends with 50001."""
    consumer = shop.simple_consumer(tags=FilterExpression("n >", sql=True))
    with pytest.raises(ClientException, match=r"INTERNAL_SERVER_ERROR.*parse the consumer's subscription failed"):
        shop.run(consumer.receive(16, 10_000))
