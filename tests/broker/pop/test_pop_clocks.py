"""Clocks of client and broker that do not agree: a pop's age is counted from its birth, by the client's clock."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mqlab import ConsumeConcurrentlyStatus, Message
from tests.worlds import shop, started_producer

POLL_TIME_MS = 15_000


@pytest.mark.parametrize(("machine", "jump_ms"), [("broker-a", POLL_TIME_MS + 600), ("reader", -POLL_TIME_MS - 600)])
def test_a_broker_whose_clock_is_ahead_by_the_polling_time_hands_nothing_out_and_is_asked_without_a_pause(
    machine: str, jump_ms: int
) -> None:
    """RocketMQ's own: PopMessageProcessor refuses what is too old, and onSuccess of the client's PopCallback pops again
    at once when nothing was found.
    """
    lab = shop(seed=1, topic="Orders")
    lab.set_message_request_mode("Orders", "readers", "POP")
    consumer = lab.consumer(
        "readers", node="reader", client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    got: list[bytes] = []
    consumer.subscribe("Orders", "*")

    def listen(messages: tuple[object, ...], context: object) -> ConsumeConcurrentlyStatus:
        got.extend(message.body for message in messages)  # type: ignore[attr-defined]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.register_message_listener(listen)
    lab.run(consumer.start())
    producer = started_producer(lab, "orders")
    lab.run_for(seconds=5)

    lab.act("drift", node=machine, jump_ms=jump_ms)
    lab.run(producer.send(Message("Orders", b"late")))
    lab.run_for(ms=500)  # the pop that waited already is answered
    got.clear()
    lab.run(producer.send(Message("Orders", b"later")))
    before = len(lab.history)
    lab.run_for(ms=100)
    rows = lab.history[before:]
    answers = [row for row in rows if row.kind == "RequestRejected" and "pop message is timeout too much" in row.remark]
    pops = [row.ts_us for row in rows if row.kind == "PopRequested"]
    assert len(answers) >= 50
    assert max(later - earlier for earlier, later in pairwise(pops)) < 5_000
    assert got == []

    lab.act("drift", node=machine, jump_ms=-jump_ms)
    lab.run_for(seconds=1)
    assert got[-1] == b"later"
    before = len(lab.history)
    lab.run_for(seconds=5)
    assert sum(row.kind == "PopRequested" for row in lab.history[before:]) <= 1
