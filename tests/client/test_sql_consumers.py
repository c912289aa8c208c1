"""Consumers of every kind that subscribe by SQL92 get what fulfils their condition."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.client import Message, MessageQueue, MessageSelector
from mqlab.errors import MQClientException
from tests.worlds import noting, shop, started_producer

CONDITION = "amount > 100 AND city IN ('Berlin', 'Oslo')"
PARSE_ERROR = 'ParseException: Encountered "<EOF>" at line 1, column 8'


@pytest.fixture
def lab() -> Lab:
    return shop(enable_property_filter=True)


def send(lab: Lab) -> None:
    orders = [(50, "Berlin"), (150, "Berlin"), (200, "Paris"), (300, "Oslo"), (None, "Oslo")]
    producer = started_producer(lab)
    for amount, city in orders:
        message = Message("T", f"{amount} {city}")
        message.put_user_property("city", city)
        if amount is not None:
            message.put_user_property("amount", str(amount))
        producer.send(message).play()


WANTED = [b"150 Berlin", b"300 Oslo"]


def subscribed(lab: Lab, condition: str, group: str, seen: list[Any]) -> Any:
    consumer = lab.consumer(group)
    consumer.subscribe_sql("T", condition)
    consumer.register_message_listener(noting(seen))
    return consumer


def test_a_push_consumer(lab: Lab) -> None:
    seen: list[bytes] = []
    lab.run(subscribed(lab, CONDITION, "readers", seen).start())
    send(lab)
    lab.run_for(seconds=2)
    assert seen == WANTED


def test_a_selector_is_as_good_as_a_text(lab: Lab) -> None:
    seen: list[bytes] = []
    consumer = lab.consumer("readers")
    consumer.subscribe("T", MessageSelector.by_sql(CONDITION))
    consumer.register_message_listener(noting(seen))
    lab.run(consumer.start())
    send(lab)
    lab.run_for(seconds=2)
    assert seen == WANTED


def test_an_expression_that_cannot_be_read_is_told_at_the_start_with_its_place(lab: Lab) -> None:
    consumer = subscribed(lab, "amount >", "readers", [])
    with pytest.raises(MQClientException, match=PARSE_ERROR) as refused:
        lab.run(consumer.start())
    assert refused.value.response_code == 23


def test_a_new_process_of_the_broker_waits_for_the_next_heartbeat(lab: Lab) -> None:
    seen: list[bytes] = []
    lab.run(subscribed(lab, CONDITION, "readers", seen).start())
    broker = lab.brokers[0]
    broker.crash()
    broker.restart()
    lab.run_for(seconds=40)
    send(lab)
    lab.run_for(seconds=2)
    assert seen == WANTED


def test_a_pull_consumer(lab: Lab) -> None:
    consumer = lab.pull_consumer("pullers")
    lab.run(consumer.start())
    send(lab)
    queue = MessageQueue("T", "broker-a", 0)
    result = lab.run(consumer.pull(queue, MessageSelector.by_sql(CONDITION), 0, 32))
    assert [message.body for message in result.msg_found_list] == WANTED
    assert result.next_begin_offset == 5


def test_a_lite_pull_consumer(lab: Lab) -> None:
    consumer = lab.lite_pull_consumer("lites")
    consumer.subscribe("T", MessageSelector.by_sql(CONDITION))
    lab.run(consumer.start())
    send(lab)
    lab.run_for(seconds=2)
    assert [message.body for message in lab.run(consumer.poll())] == WANTED


def test_a_push_consumer_that_pops(lab: Lab) -> None:
    lab.brokers[0].running().set_message_request_mode("T", "readers", "POP")
    seen: list[bytes] = []
    lab.run(subscribed(lab, CONDITION, "readers", seen).start())
    lab.run_for(seconds=2)
    send(lab)
    lab.run_for(seconds=5)
    assert sorted(seen) == WANTED
