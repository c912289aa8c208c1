"""Simple consumers: receiving when asked, acknowledging in time and too late, longer and shorter invisible times."""

from __future__ import annotations

import pytest

from mqlab.client.v5 import ClientException, SimpleConsumer
from mqlab.errors import LearnerError

from .conftest import Shop


def test_what_is_received_is_nobody_elses_for_a_while(shop: Shop) -> None:
    first, second = shop.simple_consumer(await_duration=5_000), shop.simple_consumer(await_duration=5_000)
    shop.send("a", "b")
    got = shop.run(first.receive(16, 10_000))
    assert sorted(message.body for message in got) == [b"a", b"b"]
    assert shop.run(second.receive(16, 10_000)) == []
    for message in got:
        shop.run(first.ack(message))
    shop.run_ms(30_000)
    assert shop.run(second.receive(16, 10_000)) == []


def test_one_receive_after_the_other_asks_the_queues_in_turn(shop: Shop) -> None:
    consumer = shop.simple_consumer(await_duration=5_000)
    for _ in range(4):
        shop.run(consumer.receive(16, 10_000))
    asked = [event.queue_id for event in shop.events("ReceiveRequested")]
    assert asked in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_what_lies_in_a_topic_that_takes_nothing_any_more_is_received(shop: Shop) -> None:
    consumer = shop.simple_consumer(await_duration=5_000)
    shop.send("a")
    shop.lab.create_topic("T", 2, perm=4)
    shop.run_ms(60_000)
    with pytest.raises(ClientException, match="No writable message queue"):
        shop.send("b")
    assert [message.body for message in shop.run(consumer.receive(16, 10_000))] == [b"a"]


@pytest.fixture
def consumer(shop: Shop) -> SimpleConsumer:
    return shop.simple_consumer()


def test_what_is_not_acknowledged_comes_again_by_another_handle(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send("a")
    (first,) = shop.run(consumer.receive(1, 10_000))
    shop.run_ms(20_000)
    (again,) = shop.run(consumer.receive(1, 10_000))
    assert (again.message_id, again.delivery_attempt) == (first.message_id, 2)
    assert again.receipt_handle != first.receipt_handle


def test_an_ack_comes_too_late_when_the_invisible_time_is_over(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send("a")
    (message,) = shop.run(consumer.receive(1, 10_000))
    shop.run_ms(10_000)
    with pytest.raises(ClientException, match="INVALID_RECEIPT_HANDLE"):
        shop.run(consumer.ack(message))
    # Though the reviver would still have counted it: the proxy does not even ask the broker.
    assert not shop.events("AckReceived")
    shop.run_ms(10_000)
    (again,) = shop.run(consumer.receive(1, 10_000))
    shop.run(consumer.ack(again))


def test_a_longer_time_counts_from_now_on_and_changes_the_handle(shop: Shop) -> None:
    consumer = shop.simple_consumer(await_duration=5_000)
    shop.send("a")
    (message,) = shop.run(consumer.receive(1, 10_000))
    old = message.receipt_handle
    shop.run_ms(8_000)
    shop.run(consumer.change_invisible_duration(message, 30_000))
    assert message.receipt_handle != old
    assert len(message.receipt_handle.split()) == 9
    until_ms = message.invisible_until_ms
    assert 29_000 < until_ms - consumer.node.now_ms() <= 30_000
    shop.run_ms(20_000)
    assert shop.run(consumer.receive(1, 10_000)) == []
    shop.run(consumer.ack(message))
    shop.run_ms(60_000)
    assert not shop.events("MessageRevived")


def test_a_shorter_time_brings_the_message_back_soon(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send("a")
    (message,) = shop.run(consumer.receive(1, 600_000))
    shop.run(consumer.change_invisible_duration(message, 1_000))
    shop.run_ms(6_000)
    assert len(shop.run(consumer.receive(1, 10_000))) == 1


@pytest.mark.parametrize("begins_at", ["its own place", "the first of its pop"])
def test_an_ack_after_another_time_counts_unless_the_handle_names_the_check_point_of_before(begins_at: str) -> None:
    """RocketMQ's issue 9583: a proxy in local mode keeps the old beginning in the new handle, and the ack is lost."""
    shop = Shop(queues=1)
    consumer = shop.simple_consumer(await_duration=5_000)
    shop.send(*"abcdefghij")
    got = shop.run(consumer.receive(16, 20_000))
    assert len(got) == 10
    fifth = got[4]
    start, *_ = fifth.receipt_handle.split()
    shop.run(consumer.change_invisible_duration(fifth, 20_000))
    changed, *rest = fifth.receipt_handle.split()
    assert (start, changed) == ("0", "4")
    if begins_at == "the first of its pop":
        fifth.receipt_handle = " ".join((start, *rest))
    shop.run(consumer.ack(fifth))
    for message in got[:4] + got[5:]:
        shop.run(consumer.ack(message))
    shop.run_ms(40_000)
    again = [message.body for message in shop.run(consumer.receive(16, 20_000))]
    assert again == ([] if begins_at == "its own place" else [b"e"])


@pytest.mark.parametrize("invisible_ms", [9_999, 12 * 3_600_000 + 1])
def test_invisible_times_have_limits(shop: Shop, consumer: SimpleConsumer, invisible_ms: int) -> None:
    shop.send("a")
    with pytest.raises(ClientException, match="ILLEGAL_INVISIBLE_TIME"):
        shop.run(consumer.receive(1, invisible_ms))
    (message,) = shop.run(consumer.receive(1, 10_000))
    with pytest.raises(ClientException, match="ILLEGAL_INVISIBLE_TIME"):
        shop.run(consumer.change_invisible_duration(message, 12 * 3_600_000 + 1))


def test_a_receive_waits_at_least_5_s_and_at_most_20() -> None:
    shop = Shop()
    for await_ms, waited_ms in ((1_000, 5_000), (60_000, 20_000)):
        # A proxy never polls for longer than its client waits, so this client must wait longer than it says.
        consumer = shop.simple_consumer(await_duration=await_ms, request_timeout=6_000)
        begin = shop.lab.now_ms
        assert shop.run(consumer.receive(1, 10_000)) == []
        assert shop.lab.now_ms - begin == pytest.approx(waited_ms, abs=100)


def test_who_waits_less_than_5_s_is_refused(shop: Shop) -> None:
    consumer = shop.simple_consumer(await_duration=1_000, request_timeout=3_000)
    with pytest.raises(ClientException, match="ILLEGAL_POLLING_TIME"):
        shop.run(consumer.receive(1, 10_000))


@pytest.mark.parametrize(
    ("version", "code"),
    [("5.0.3", "ILLEGAL_POLLING_TIME"), ("5.0.2", "BAD_REQUEST"), ("", "BAD_REQUEST"), (None, "BAD_REQUEST")],
)
def test_an_old_client_is_refused_with_a_code_that_it_knows(shop: Shop, version: str | None, code: str) -> None:
    consumer = shop.simple_consumer(await_duration=1_000, request_timeout=3_000)
    said = {"x-mq-client-id": consumer.impl.client_id}
    consumer.impl.rpc._metadata = said if version is None else {**said, "x-mq-client-version": version}
    with pytest.raises(ClientException, match=code):
        shop.run(consumer.receive(1, 10_000))


def test_32_messages_come_at_once_at_most(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send(*[str(number) for number in range(40)])
    assert len(shop.run(consumer.receive(100, 10_000))) <= 32


def test_topics_have_their_turns(shop: Shop) -> None:
    shop.lab.create_topic("U", 1)
    consumer = shop.simple_consumer(await_duration=5_000)
    consumer.subscribe("U")
    shop.send("t1", "t2")
    shop.send("u1", "u2", topic="U")
    got = [message.topic for _ in range(2) for message in shop.run(consumer.receive(2, 10_000))]
    assert sorted(set(got)) == ["T", "U"]


def test_a_filter_lets_tags_through(shop: Shop) -> None:
    consumer = shop.simple_consumer(tags="red || blue")
    for tag in ("red", "green", "blue"):
        shop.send(tag, tag=tag)
    got = shop.run(consumer.receive(16, 10_000))
    assert sorted(message.tag for message in got) == ["blue", "red"]


def test_what_a_consumer_cannot_do(shop: Shop) -> None:
    consumer = shop.lab.simple_consumer("g")
    with pytest.raises(ClientException, match="start it first"):
        shop.run(consumer.receive(1, 10_000))
    shop.run(consumer.start())
    with pytest.raises(ClientException, match="no topic"):
        shop.run(consumer.receive(1, 10_000))
    consumer.subscribe("T")
    with pytest.raises(ClientException, match="greater than 0"):
        shop.run(consumer.receive(0, 10_000))
    with pytest.raises(LearnerError, match="give ms"):
        shop.run(consumer.receive(1, 10.5))  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="was not received"):
        shop.run(consumer.ack("a"))  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="no filter"):
        consumer.subscribe("T", 3)  # type: ignore[arg-type]


def test_a_handle_that_is_none_is_refused(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send("a")
    (message,) = shop.run(consumer.receive(1, 10_000))
    message.receipt_handle = "1 2 3"
    with pytest.raises(ClientException, match="INTERNAL_SERVER_ERROR"):
        shop.run(consumer.ack(message))


def test_a_handle_of_a_broker_that_nobody_knows_is_refused(shop: Shop, consumer: SimpleConsumer) -> None:
    shop.send("a")
    (message,) = shop.run(consumer.receive(1, 10_000))
    message.receipt_handle = message.receipt_handle.replace("broker-a", "broker-z")
    with pytest.raises(ClientException, match="INVALID_RECEIPT_HANDLE"):
        shop.run(consumer.ack(message))
