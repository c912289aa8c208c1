"""What a lab shows of Pop: pops that wait, check points in memory, and how far the revivers have come."""

from __future__ import annotations

import pytest

from mqlab import ConsumeConcurrentlyStatus, Lab
from tests.worlds import send, shop, started_producer


@pytest.fixture
def lab() -> Lab:
    """A broker with topic T, which the group G shall pop."""
    lab = shop(seed=3, enable_pop_buffer_merge=True)
    lab.set_message_request_mode("T", "G", "POP")
    return lab


def test_without_pops_the_tables_are_empty(lab: Lab) -> None:
    assert (len(lab.held_pops()), len(lab.pop_check_points()), len(lab.revive_queues())) == (0, 0, 0)
    assert lab.brokers[0].running().made_pop is None


def test_a_pop_that_waits_a_message_that_is_out_and_the_revive_queues_can_be_seen(lab: Lab) -> None:
    consumer = lab.consumer("G", node="popper", client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("T", "*")
    busy = consumer.node.future("the end of the listener's work")

    async def listen(messages: list[object], context: object) -> ConsumeConcurrentlyStatus:
        await busy
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.register_message_listener(listen)
    lab.run(consumer.start())
    lab.run_for(seconds=3)
    ((broker, asks, group, topic, queue, waits_ms, left_ms, _client),) = lab.held_pops().rows
    assert (broker, asks, group, topic, queue) == ("broker-a", "pop", "G", "T", -1)
    assert waits_ms > 500
    assert waits_ms + left_ms == pytest.approx(15_000, abs=5)

    send(started_producer(lab, "P", node="sender"), b"x")
    lab.run_for(ms=50)
    (point,) = lab.pop_check_points().rows
    assert tuple(point[:9]) == ("broker-a", "G", "T", 0, "0", "0", 1, "buffer", False)
    busy.set_result(None)
    lab.run_for(ms=50)
    assert len(lab.pop_check_points()) == 0
    assert [tuple(row[:2]) for row in lab.revive_queues().rows] == [("broker-a", number) for number in range(8)]
