"""Groups with order: message groups keep theirs over failures, and what cannot be consumed becomes a dead letter."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ConsumeResult
from mqlab.protocol.topics import dlq_topic

from .conftest import Shop


@pytest.fixture
def shop() -> Shop:
    shop = Shop(queues=1)
    shop.lab.create_topic("T", 1, attributes={"+message.type": "FIFO"})
    shop.lab.create_group("g", consume_message_orderly=True, retry_max_times=2)
    shop.run_ms(100)
    return shop


def test_messages_of_a_group_come_one_after_the_other(shop: Shop) -> None:
    shop.push_consumer(takes_ms=200)
    shop.send(*"abcdef", message_group="x")
    shop.run_ms(10_000)
    assert shop.bodies() == list("abcdef")
    pauses = [b.at_ms - a.at_ms for a, b in zip(shop.delivered, shop.delivered[1:], strict=False)]
    assert min(pauses) >= 200
    assert {record.revive_qid for record in shop.events("MessagePopped")} == {999}


def test_a_failure_is_tried_again_here_and_nothing_overtakes_it(shop: Shop) -> None:
    tries: list[str] = []

    def verdict(message: Any) -> ConsumeResult:
        tries.append(message.body.decode())
        return ConsumeResult.FAILURE if tries.count("b") < 3 and message.body == b"b" else ConsumeResult.SUCCESS

    shop.push_consumer(verdict)
    shop.send(*"abc", message_group="x")
    shop.run_ms(20_000)
    assert tries == ["a", "b", "b", "b", "c"]
    assert [(record.delivery_attempt, record.delay_ms) for record in shop.events("FifoAttemptPutOff")] == [
        (2, 1_000), (3, 5_000),
    ]  # fmt: skip
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack"] * 3


def test_after_the_last_attempt_the_client_gives_it_up_and_goes_on(shop: Shop) -> None:
    shop.push_consumer(lambda message: ConsumeResult.FAILURE if message.body == b"b" else ConsumeResult.SUCCESS)
    shop.send(*"abc", message_group="x")
    shop.run_ms(30_000)
    assert shop.bodies() == ["a", "b", "b", "b", "c"]
    assert [record.settled_as for record in shop.events("MessageSettled")] == ["ack", "dead letter", "ack"]
    assert shop.stored(dlq_topic("g")) == 1
    shop.run_ms(60_000)
    assert len(shop.delivered) == 5


def test_a_dead_letter_that_cannot_be_forwarded_is_tried_every_second(shop: Shop) -> None:
    shop.push_consumer(lambda message: ConsumeResult.FAILURE)
    shop.send("a", message_group="x")
    shop.run_ms(5_000)
    shop.lab.crash("broker-a")
    shop.run_ms(4_000)
    failed = shop.events("SettlingFailed")
    assert {record.settled_as for record in failed} == {"dead letter"}
    assert not any(record.is_final for record in failed)
    assert len(failed) >= 2
    shop.lab.restart("broker-a")
    shop.run_ms(20_000)
    assert shop.stored(dlq_topic("g")) >= 1


def test_a_queue_with_a_message_under_way_is_withheld_from_other_members(shop: Shop) -> None:
    async def slow(message: Any) -> ConsumeResult:
        await first.node.sleep(2_000)
        return ConsumeResult.SUCCESS

    first = shop.push_consumer(slow)
    shop.push_consumer()
    shop.send("a", message_group="x")
    shop.run_ms(500)
    shop.send("b", message_group="x")
    shop.run_ms(10_000)
    assert shop.bodies() == ["a", "b"]
    assert shop.delivered[1].at_ms - shop.delivered[0].at_ms >= 2_000


def test_message_groups_go_side_by_side_with_the_accelerator(shop: Shop) -> None:
    async def verdict(message: Any) -> ConsumeResult:
        await shop.lab.processes["consumer-1"].node.sleep(1_000 if message.message_group == "slow" else 10)
        return ConsumeResult.SUCCESS

    shop.send("s1", "s2", message_group="slow")
    shop.send("q1", "q2", message_group="quick")
    shop.push_consumer(verdict, enable_fifo_consume_accelerator=True)
    shop.run_ms(10_000)
    order = shop.bodies()
    assert order.index("s1") < order.index("s2")
    assert order.index("q1") < order.index("q2") < order.index("s2")


def test_a_damaged_message_becomes_a_dead_letter_unseen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqlab.client.v5 import message

    monkeypatch.setattr(message, "_matches", lambda body, digest: False)
    shop.push_consumer()
    shop.send("damaged", message_group="x")
    shop.run_ms(3_000)
    assert shop.bodies() == []
    assert shop.stored(dlq_topic("g")) == 1


@pytest.mark.parametrize("failing", [False, True])
def test_a_consumer_that_is_shut_down_with_a_backlog_leaves_no_task_behind(shop: Shop, failing: bool) -> None:
    async def slow(message: Any) -> ConsumeResult:
        await consumer.node.sleep(10_000)
        return ConsumeResult.FAILURE if failing else ConsumeResult.SUCCESS

    consumer = shop.push_consumer(slow)
    shop.send(*"abcdef", message_group="x")
    shop.run_ms(300)
    shop.run(consumer.shutdown())
    shop.run_ms(120_000)
    assert [task.name for task in consumer.node.life.tasks if task.name == "consume in order"] == []
    assert len(shop.delivered) < 6
