"""Sending through a proxy."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ClientException, Message
from mqlab.errors import LearnerError
from mqlab.protocol.hashing import guava_consistent_hash
from tests.worlds import shop

from .conftest import Shop


def test_a_message_is_stored_with_the_id_that_its_client_gave(shop: Shop) -> None:
    (receipt,) = shop.send("hello", tag="paid", keys=["k1", "k2"], properties={"colour": "red"})
    (stored,) = shop.events("MessageStored", topic="T")
    assert stored.unique_key == receipt.message_id
    assert receipt.offset == 0
    (message,) = shop.run(shop.simple_consumer().receive(1, 10_000))
    assert (message.body, message.tag, message.keys) == (b"hello", "paid", ("k1", "k2"))
    assert message.properties == {"colour": "red"}


def test_a_message_id_says_who_made_it_and_when(shop: Shop) -> None:
    first, second = shop.send("a", "b")
    node = shop.producer().node
    seconds = (node.now_ms() - 1_609_459_200_000) // 1_000
    assert first.message_id == f"01020" f"00A00000{node.spec.ip[-1]}{node.spec.pid:04X}{seconds:08X}00000000"
    assert second.message_id[-8:] == "00000001"
    assert len(first.message_id) == 34


def test_queues_have_their_turns_though_the_client_chooses_none(shop: Shop) -> None:
    shop.send("a", "b", "c", "d")
    queues = [record.queue_id for record in shop.events("MessageStored", topic="T")]
    assert queues in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_a_message_group_stays_in_one_queue() -> None:
    shop = Shop(queues=4)
    shop.lab.create_topic("F", 4, attributes={"+message.type": "FIFO"})
    for number in range(6):
        shop.send(str(number), topic="F", message_group="order-7")
    assert len({record.queue_id for record in shop.events("MessageStored", topic="F")}) == 1


def test_a_message_group_chooses_its_queue_as_guava_does() -> None:
    # com.google.common.hash.HashingTest: what the hash gives for 0 to 19 and 100 buckets.
    golden = [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    assert [guava_consistent_hash(value, 100) for value in range(20)] == golden
    assert guava_consistent_hash(10863919174838991, 11) == 6
    assert guava_consistent_hash(-1, 1) == 0


def test_a_message_may_come_later(shop: Shop) -> None:
    shop.lab.create_topic("D", 1, attributes={"+message.type": "DELAY"})
    at_ms = shop.lab.brokers[0].node.now_ms() + 5_000
    consumer = shop.lab.simple_consumer("g")
    consumer.subscribe("D")
    (receipt,) = shop.send("later", topic="D", delivery_timestamp=at_ms)
    shop.run(consumer.start())
    (message,) = shop.run(consumer.receive(1, 10_000))
    late_ms = consumer.node.now_ms() - at_ms
    assert 0 <= late_ms < 2_000
    assert message.body == b"later"
    assert message.delivery_timestamp == at_ms
    assert receipt.recall_handle


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"message_group": "x"}, "actualMessageType=FIFO"),
        ({"delivery_timestamp": 1_767_225_700_000}, "actualMessageType=DELAY"),
    ],
)
def test_a_topic_takes_only_the_messages_that_it_was_made_for(shop: Shop, settings: Any, why: str) -> None:
    with pytest.raises(ClientException, match=why):
        shop.send("x", **settings)


def test_the_proxy_checks_the_kind_of_a_message_again(shop: Shop) -> None:
    shop.send("the first one brings settings")
    shop.producer().impl._publishing = shop.producer().impl._publishing._replace(validate_message_type=False)
    with pytest.raises(ClientException, match="MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"):
        shop.send("x", message_group="g")
    assert shop.stored("T") == 1


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"tag": "a|b"}, "ILLEGAL_MESSAGE_TAG"),
        ({"tag": " "}, "ILLEGAL_MESSAGE_TAG"),
        ({"tag": "a\x01"}, "ILLEGAL_MESSAGE_TAG"),
        ({"keys": " "}, "ILLEGAL_MESSAGE_KEY"),
        ({"keys": "a\x7f"}, "ILLEGAL_MESSAGE_KEY"),
        ({"properties": {"TAGS": "x"}}, "ILLEGAL_MESSAGE_PROPERTY_KEY"),
        ({"properties": {"a": "\x02"}}, "ILLEGAL_MESSAGE_PROPERTY_KEY"),
        ({"properties": {str(number): "x" for number in range(129)}}, "MESSAGE_PROPERTIES_TOO_LARGE"),
        ({"properties": {"a": "x" * 16_384}}, "MESSAGE_PROPERTIES_TOO_LARGE"),
    ],
)
def test_what_the_proxy_refuses(shop: Shop, settings: Any, code: str) -> None:
    with pytest.raises(ClientException, match=code):
        shop.send("x", **settings)
    assert shop.stored("T") == 0


def test_bodies_have_limits(shop: Shop) -> None:
    with pytest.raises(ClientException, match="MESSAGE_BODY_EMPTY"):
        shop.send("")
    with pytest.raises(ClientException, match="exceeds the threshold"):
        shop.send("x" * (4 * 1024 * 1024 + 1))


def test_message_groups_and_times_have_limits(shop: Shop) -> None:
    shop.lab.create_topic("M", 1, attributes={"+message.type": "MIXED"})
    shop.send("x", topic="M", message_group="g" * 63)
    with pytest.raises(ClientException, match="ILLEGAL_MESSAGE_GROUP"):
        shop.send("x", topic="M", message_group="g" * 64)
    now_ms = shop.producer().node.now_ms()
    with pytest.raises(ClientException, match="ILLEGAL_DELIVERY_TIME"):
        shop.send("x", topic="M", delivery_timestamp=now_ms + 24 * 3_600_000 + 1_000)


def test_a_message_cannot_have_a_group_and_a_time() -> None:
    with pytest.raises(LearnerError, match="both"):
        Message("T", "x", message_group="g", delivery_timestamp=1)


def test_a_refusal_is_tried_three_times_before_it_is_told(shop: Shop) -> None:
    with pytest.raises(ClientException):
        shop.send("x", tag="|")
    assert [record.attempt for record in shop.events("SendAttemptFailed")] == [1, 2, 3]
    (failed,) = shop.events("SendFailed")
    assert failed.attempts == 3


def test_a_full_disk_is_told(shop: Shop) -> None:
    shop.lab.act("fill_disk", node="broker-a", free_bytes=20_000)
    with pytest.raises(ClientException, match=r"INTERNAL_SERVER_ERROR"):
        shop.send(*["x" * 2_000] * 100)
    assert "disk is full" in shop.events("RpcRefused", rpc="SendMessage")[-1].reason


def test_a_flush_that_takes_too_long_is_told() -> None:
    lab = shop(seed=1, flush_disk_type="SYNC_FLUSH", sync_flush_timeout=1_000)
    lab.proxy()
    producer = lab.producer_v5()
    lab.run(producer.start())
    lab.act("hang_disk", node="broker-a")
    with pytest.raises(ClientException, match="MASTER_PERSISTENCE_TIMEOUT"):
        lab.run(producer.send(Message("T", "x")))


def test_only_messages_of_5x_are_sent(shop: Shop) -> None:
    from mqlab.protocol.message import Message as OldMessage

    with pytest.raises(LearnerError, match=r"mqlab\.client\.v5"):
        shop.run(shop.producer().send(OldMessage("T", "x")))  # type: ignore[arg-type]


def test_a_producer_that_does_not_run_sends_nothing(shop: Shop) -> None:
    producer = shop.lab.producer_v5()
    with pytest.raises(ClientException, match="start it first"):
        shop.run(producer.send(Message("T", "x")))
    shop.run(producer.start())
    shop.run(producer.shutdown())
    with pytest.raises(ClientException, match="make a new one"):
        shop.run(producer.send(Message("T", "x")))
