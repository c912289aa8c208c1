"""What a push consumer of 5.x does when what it has consumed can't be settled."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ConsumeResult

from .conftest import Shop


def consumed_while_the_proxy_is_down(shop: Shop, result: ConsumeResult) -> Any:
    """A consumer whose listener comes to this result 2 s after the proxy was killed; 6 s later."""

    async def slow(message: Any) -> ConsumeResult:
        await consumer.node.sleep(3_000)
        return result if message.delivery_attempt == 1 else ConsumeResult.SUCCESS

    consumer = shop.push_consumer(slow)
    shop.send("a")
    shop.lab.world.run_until(lambda: bool(shop.delivered))
    shop.run_ms(1_000)
    shop.lab.crash("proxy-1")
    shop.run_ms(8_000)
    return consumer


@pytest.mark.parametrize(
    ("result", "settled_as"), [(ConsumeResult.SUCCESS, "ack"), (ConsumeResult.FAILURE, "nack")], ids=["ack", "nack"]
)
def test_what_can_not_be_settled_is_tried_again_every_second(
    shop: Shop, result: ConsumeResult, settled_as: str
) -> None:
    consumer = consumed_while_the_proxy_is_down(shop, result)
    failed = shop.events("SettlingFailed")
    assert {(record.settled_as, record.is_final) for record in failed} == {(settled_as, False)}
    assert len(failed) >= 5
    (queue,) = [queue for queue in consumer.process_queues if queue.cached_messages]
    assert queue.cached_bytes == 1, "it counts as held until it is settled"
    shop.lab.restart("proxy-1")
    shop.run_ms(5_000)
    assert next(record.settled_as for record in shop.events("MessageSettled")) == settled_as
    assert not queue.cached_messages
    assert queue.cached_bytes == 0
    shop.run_ms(90_000)
    assert shop.bodies() == (["a"] if settled_as == "ack" else ["a", "a"])
    assert shop.events("MessageSettled")[-1].settled_as == "ack"


def test_a_handle_that_has_expired_is_tried_once_and_let_go(shop: Shop) -> None:
    consumer = consumed_while_the_proxy_is_down(shop, ConsumeResult.SUCCESS)
    shop.run_ms(70_000)
    shop.lab.restart("proxy-1")
    shop.run_ms(20_000)
    final = [record for record in shop.events("SettlingFailed", settled_as="ack") if record.is_final]
    assert len(final) == 1
    assert shop.events("SettlingFailed")[-1].ts_ms == final[0].ts_ms
    assert shop.bodies() == ["a", "a"]
    assert len(shop.events("MessageSettled")) == 1, "that of the second delivery"
    assert not any(queue.cached_bytes for queue in consumer.process_queues)


def test_settling_ends_with_its_consumer(shop: Shop) -> None:
    consumer = consumed_while_the_proxy_is_down(shop, ConsumeResult.SUCCESS)
    shop.run(consumer.shutdown())
    shop.run_ms(2_000)
    tries = len(shop.events("SettlingFailed"))
    shop.run_ms(20_000)
    assert len(shop.events("SettlingFailed")) == tries
