"""Automatic batches: who waits for whom, how long, and what each sender gets to hear."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import DefaultMQProducer, Message, MessageQueue, SendStatus
from mqlab.errors import LearnerError, MQBrokerException, MQClientException


@pytest.fixture
def producer(cluster: Any) -> Any:
    """A producer that batches."""
    producer = cluster.producer(auto_batch=True, topics=["T"])
    cluster.run_ms(100)
    return producer


def begin(cluster: Any, producer: Any, *messages: Message, **arguments: Any) -> list[Any]:
    """Send each message in a task of its own."""
    return [
        producer.node.spawn(DefaultMQProducer.send.inside(producer, message, **arguments), "send").join()
        for message in messages
    ]


def batches(cluster: Any) -> int:
    sent: int = cluster.requests("producer").count("SEND_BATCH_MESSAGE")
    return sent


def test_what_is_sent_within_10_ms_travels_as_one_and_each_sender_has_its_own_result(
    cluster: Any, producer: Any
) -> None:
    answers = begin(cluster, producer, *(Message("T", f"m{k}") for k in range(5)))
    begin_ms = cluster.now_ms
    cluster.world.run_until(lambda: batches(cluster))
    assert 10 <= cluster.now_ms - begin_ms <= 15
    cluster.run_ms(20)
    results = [answer.result() for answer in answers]
    assert [result.queue_offset for result in results] == [0, 1, 2, 3, 4]
    assert len({result.msg_id for result in results}) == len({result.offset_msg_id for result in results}) == 5
    assert {result.send_status for result in results} == {SendStatus.SEND_OK}
    assert batches(cluster) == 1
    assert producer._accumulator.currently_held_bytes == 0


def test_more_than_32_kib_go_at_once(cluster: Any, producer: Any) -> None:
    answers = begin(
        cluster, producer, Message("T", b"x" * 16 * 1024), Message("T", b"x" * 16 * 1024), Message("T", "x")
    )
    cluster.run_ms(5)
    assert batches(cluster) == 1
    assert all(answer.done for answer in answers)


def test_other_topics_tags_queues_and_promises_make_other_batches(cluster: Any, producer: Any) -> None:
    cluster.create_topic("U", 1)
    waiting = begin(cluster, producer, Message("T", "x"), Message("U", "x"), Message("T", "x", tags="A"))
    waiting += begin(cluster, producer, Message("T", "x", wait_store_msg_ok=False))
    waiting += begin(cluster, producer, Message("T", "x"), queue=MessageQueue("T", "broker-a", 0))
    cluster.run_ms(50)
    assert batches(cluster) == 5
    assert all(answer.done for answer in waiting)


def test_delayed_messages_and_those_with_a_time_out_of_their_own_travel_alone(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x", delay_level=1)).play()
    producer.send(Message("T", "x"), timeout=1_000).play()
    assert batches(cluster) == 0
    assert cluster.requests("producer").count("SEND_MESSAGE_V2") == 2


def test_a_message_that_finds_no_room_travels_alone(cluster: Any) -> None:
    producer = cluster.producer(auto_batch=True, total_batch_max_bytes=3, topics=["T"])
    begin(cluster, producer, Message("T", "four"))
    cluster.run_ms(1)
    producer.send(Message("T", "alone")).play()
    assert cluster.requests("producer").count("SEND_MESSAGE_V2") == 1


def test_asynchronous_sends_batch_as_well(cluster: Any, producer: Any) -> None:
    outcomes: list[Any] = []
    for k in range(3):
        producer.send_async(Message("T", f"m{k}"), lambda result, error: outcomes.append(result or error)).play()
    cluster.run_ms(50)
    assert [result.queue_offset for result in outcomes] == [0, 1, 2]
    assert batches(cluster) == 1


def test_when_a_batch_fails_every_sender_gets_the_error(make_cluster: Any) -> None:
    cluster = make_cluster(start_accept_send_request_time_stamp=1_900_000_000_000, queues=1)
    producer = cluster.producer(auto_batch=True, topics=["T"])
    answers = begin(cluster, producer, Message("T", "x"), Message("T", "y"))
    heard: list[Any] = []
    producer.send_async(Message("T", "z"), lambda result, error: heard.append(error)).play()
    cluster.run_ms(100)
    assert [type(answer.error) for answer in answers] == [MQClientException] * 2
    assert [type(error) for error in heard] == [MQBrokerException]


def test_a_shutdown_sends_what_waits(cluster: Any, producer: Any) -> None:
    answers = begin(cluster, producer, Message("T", "x"))
    cluster.run_ms(1)
    producer.shutdown().play()
    cluster.run_ms(10)
    assert answers[0].result().send_status is SendStatus.SEND_OK


def test_the_holding_time_can_be_set_within_bounds(cluster: Any) -> None:
    producer = cluster.producer(auto_batch=True, batch_max_delay_ms=100, topics=["T"])
    begin(cluster, producer, Message("T", "x"))
    begin_ms = cluster.now_ms
    cluster.world.run_until(lambda: cluster.requests("producer").count("SEND_BATCH_MESSAGE"))
    assert 100 <= cluster.now_ms - begin_ms <= 150
    for settings in ({"batch_max_delay_ms": 30_001}, {"batch_max_bytes": 0}, {"total_batch_max_bytes": 0}):
        with pytest.raises(LearnerError, match="cannot be"):
            cluster.producer("other", auto_batch=True, **settings)
