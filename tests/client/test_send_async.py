"""Asynchronous sending: callbacks, retries, the scan, the callback threads, back-pressure."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import Message, MessageQueue, SendCallback, SendResult
from mqlab.errors import MQBrokerException, MQClientException, RemotingTooMuchRequestException

Outcomes = list[tuple[float, SendResult | None, Exception | None]]


def noting(cluster: Any) -> tuple[Outcomes, Any]:
    """A list, and a callback that notes outcomes there with their time."""
    outcomes: Outcomes = []

    def callback(result: SendResult | None, error: Exception | None) -> None:
        outcomes.append((cluster.now_ms, result, error))

    return outcomes, callback


@pytest.mark.queues(2)
def test_the_caller_goes_on_and_the_callback_hears_the_result(cluster: Any, producer: Any) -> None:
    outcomes, callback = noting(cluster)
    begin_us = cluster.world.now_us
    for k in range(5):
        producer.send_async(Message("T", f"m{k}"), callback).play()
    assert cluster.world.now_us == begin_us
    assert outcomes == []
    cluster.run_ms(100)
    assert [result.send_status.value for _, result, _ in outcomes if result] == ["SEND_OK"] * 5
    assert producer.impl.instance.api.remoting_client.semaphore_async.permits == 65535


@pytest.mark.queues(2)
def test_a_callback_can_be_an_object(cluster: Any, producer: Any) -> None:
    heard: list[str] = []

    class Mine(SendCallback):
        def on_success(self, result: SendResult) -> None:
            heard.append(f"stored in queue {result.message_queue.queue_id}")

        def on_exception(self, error: Exception) -> None:
            heard.append(str(error))

    queue = MessageQueue("T", "broker-a", 1)
    producer.send_async(Message("T", "x"), Mine(), queue=queue).play()
    producer.send_async(Message("T", "x"), Mine(), selector=lambda queues, message, argument: queues[0]).play()
    producer.send_async(Message("T", ""), Mine()).play()
    cluster.run_ms(100)
    assert sorted(heard) == [
        "CODE: 13  DESC: the message body length is zero",
        "stored in queue 0",
        "stored in queue 1",
    ]


def test_a_refused_connection_is_retried_on_the_other_broker(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=2)
    producer = cluster.producer()
    for _ in range(4):
        producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    outcomes, callback = noting(cluster)
    for _ in range(4):
        producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(1_000)
    assert len(outcomes) == 4
    assert {result.message_queue.broker_name for _, result, _ in outcomes if result} == {"broker-b"}


@pytest.mark.queues(2)
def test_retries_end_after_two_more_attempts(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(1_000)
    assert len(cluster.events("SendAttemptFailed")) == 3
    ((_, _, error),) = outcomes
    assert isinstance(error, MQClientException)


@pytest.mark.queues(2)
def test_a_hanging_broker_is_found_by_the_scan_and_leaves_no_time_to_retry(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    cluster.run_ms(1_500)
    cluster.fault("freeze", "broker-a")
    outcomes, callback = noting(cluster)
    begin_ms = cluster.now_ms
    producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(10_000)
    ((when_ms, _, error),) = outcomes
    assert 4_000 <= when_ms - begin_ms <= 5_100
    assert str(error) == f"wait response timeout, cost={int(when_ms - begin_ms)}"
    assert len(cluster.events("SendAttemptFailed")) == 1


def test_an_answer_with_an_error_is_not_retried(make_cluster: Any) -> None:
    cluster = make_cluster(start_accept_send_request_time_stamp=1_900_000_000_000, queues=2)
    producer = cluster.producer()
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(1_000)
    ((_, _, error),) = outcomes
    assert isinstance(error, MQBrokerException)
    assert len(cluster.events("SendAttempted")) == 1


@pytest.mark.queues(2)
def test_a_callback_that_raises_harms_nobody_and_is_told(cluster: Any, producer: Any) -> None:
    def broken(result: SendResult | None, error: Exception | None) -> None:
        raise ValueError("oh")

    async def broken_later(result: SendResult | None, error: Exception | None) -> None:
        raise ValueError("oh, later")

    producer.send_async(Message("T", "x"), broken).play()
    producer.send_async(Message("T", "x"), broken_later).play()
    cluster.run_ms(100)
    assert [event[2] for event in cluster.events("SendCallbackFailed")] == ["ValueError: oh", "ValueError: oh, later"]


@pytest.mark.queues(2)
def test_callbacks_that_take_time_block_their_threads_and_even_synchronous_sends(cluster: Any) -> None:
    producer = cluster.producer(client_callback_executor_threads=1)
    producer.send(Message("T", "x")).play()

    async def slow(result: SendResult | None, error: Exception | None) -> None:
        await producer.node.sleep(500)

    producer.send_async(Message("T", "x"), slow).play()
    cluster.run_ms(10)
    begin_ms = cluster.now_ms
    producer.send(Message("T", "x")).play()
    assert cluster.now_ms - begin_ms == pytest.approx(490, abs=5)


@pytest.mark.queues(2)
def test_back_pressure_makes_the_caller_wait_and_gives_up_with_the_budget(cluster: Any) -> None:
    producer = cluster.producer(enable_backpressure_for_async_mode=True, back_pressure_for_async_send_num=1)
    producer.send(Message("T", "x")).play()
    outcomes, callback = noting(cluster)
    permits = producer.impl.async_sender.semaphore_async_send_num
    assert permits.permits == 10
    cluster.fault("freeze", "broker-a")
    for _ in range(10):
        producer.send_async(Message("T", "x"), callback).play()
    begin_ms = cluster.now_ms
    producer.send_async(Message("T", "x"), callback, timeout=1_000).play()
    assert cluster.now_ms - begin_ms == pytest.approx(1_000)
    assert isinstance(outcomes[0][2], RemotingTooMuchRequestException)
    assert str(outcomes[0][2]) == "send message tryAcquire semaphoreAsyncNum timeout"
    cluster.fault("thaw", "broker-a")
    cluster.run_ms(1_000)
    assert len(outcomes) == 11
    assert permits.permits == 10


@pytest.mark.queues(2)
def test_the_senders_queue_has_an_end(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    _, callback = noting(cluster)
    producer.impl.async_sender.pool.capacity = 0
    producer.impl.async_sender.pool.threads = 0
    with pytest.raises(MQClientException, match="executor rejected"):
        producer.send_async(Message("T", "x"), callback).play()


@pytest.mark.queues(8)
def test_each_thread_that_sends_has_its_own_turn_with_a_start_of_its_own(cluster: Any, producer: Any) -> None:
    outcomes, callback = noting(cluster)
    in_turn: list[int] = []
    for k in range(24):
        producer.send_async(Message("T", f"m{k}"), callback).play()
        cluster.run_ms(20)
        in_turn.append(producer.send(Message("T", f"s{k}")).play().message_queue.queue_id)
    queues = [result.message_queue.queue_id for _, result, _ in outcomes if result]
    threads = producer.node.spec.cores
    for k in range(len(queues) - threads):
        assert queues[k + threads] == (queues[k] + 1) % 8, "idle threads take over one after the other"
    starts = queues[:threads]
    assert starts != [(starts[0] + k) % 8 for k in range(threads)]
    assert in_turn == [(in_turn[0] + k) % 8 for k in range(24)], "the application is a thread as well"
