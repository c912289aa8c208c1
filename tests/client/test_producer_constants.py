"""The numbers of a producer that RocketMQ publishes, each seen at work on the virtual clock."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import DefaultMQProducer, Message, MessageQueue, SendMessageHook
from mqlab.client.producer.async_send import SENDER_QUEUE_CAPACITY
from mqlab.errors import (
    MQClientException,
    RemotingException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol import MessageSysFlag
from mqlab.protocol.codes import ClientErrorCode
from mqlab.protocol.headers import parse_send_header

pytestmark = pytest.mark.queues(2)

Outcomes = list[tuple[float, Any, Exception | None]]


def noting(cluster: Any) -> tuple[Outcomes, Any]:
    outcomes: Outcomes = []
    begin_ms = cluster.now_ms
    return outcomes, lambda result, error: outcomes.append((cluster.now_ms - begin_ms, result, error))


@pytest.fixture
def producer(producer: Any) -> Any:
    """A producer that has sent once, and so knows the topic."""
    producer.send(Message("T", "first")).play()
    return producer


def test_the_defaults_are_rocketmqs(cluster: Any) -> None:
    producer = DefaultMQProducer(cluster.node("p"), "PG")
    assert {
        name: getattr(producer, name)
        for name in (
            "create_topic_key",
            "default_topic_queue_nums",
            "send_msg_timeout",
            "send_msg_max_timeout_per_request",
            "retry_times_when_send_failed",
            "retry_times_when_send_async_failed",
            "retry_another_broker_when_not_store_ok",
            "compress_msg_body_over_howmuch",
            "compress_type",
            "compress_level",
            "max_message_size",
            "enable_backpressure_for_async_mode",
            "back_pressure_for_async_send_num",
            "back_pressure_for_async_send_size",
            "send_latency_enable",
            "start_detector_enable",
            "vip_channel_enabled",
            "client_async_semaphore_value",
            "client_oneway_semaphore_value",
        )
    } == {
        "create_topic_key": "TBW102",
        "default_topic_queue_nums": 4,
        "send_msg_timeout": 3_000,
        "send_msg_max_timeout_per_request": -1,
        "retry_times_when_send_failed": 2,
        "retry_times_when_send_async_failed": 2,
        "retry_another_broker_when_not_store_ok": False,
        "compress_msg_body_over_howmuch": 4_096,
        "compress_type": "ZLIB",
        "compress_level": 5,
        "max_message_size": 4 * 1024 * 1024,
        "enable_backpressure_for_async_mode": False,
        "back_pressure_for_async_send_num": 10_000,
        "back_pressure_for_async_send_size": 100 * 1024 * 1024,
        "send_latency_enable": False,
        "start_detector_enable": False,
        "vip_channel_enabled": False,
        "client_async_semaphore_value": 65_535,
        "client_oneway_semaphore_value": 65_535,
    }
    assert SENDER_QUEUE_CAPACITY == 50_000
    assert producer.impl.async_sender.pool.threads == producer.node.spec.cores


# -- attempts and the budget of 3 s ---------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1, 2, 5])
def test_a_synchronous_send_makes_one_attempt_and_as_many_more_as_the_setting_says(cluster: Any, retries: int) -> None:
    producer = cluster.producer(retry_times_when_send_failed=retries)
    producer.send(Message("T", "first")).play()
    cluster.fault("crash", "broker-a")
    with pytest.raises(MQClientException, match=rf"Send \[{retries + 1}\] times"):
        producer.send(Message("T", "x")).play()
    assert len(cluster.events("SendAttemptFailed")) == retries + 1


@pytest.mark.parametrize("retries", [0, 1, 2, 5])
def test_an_asynchronous_send_has_a_number_of_retries_of_its_own(cluster: Any, retries: int) -> None:
    producer = cluster.producer(retry_times_when_send_async_failed=retries)
    producer.send(Message("T", "first")).play()
    cluster.fault("crash", "broker-a")
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(1_000)
    assert len(outcomes) == 1
    assert len(cluster.events("SendAttemptFailed")) == retries + 1


def test_each_layer_gives_the_next_what_is_left_of_the_budget(cluster: Any) -> None:
    cluster.world.network.link("producer", "namesrv").extra_us = 200_000
    cluster.world.network.link("producer", "broker-a").extra_us = 300_000
    producer = cluster.producer()
    begin_ms = cluster.now_ms
    budgets: list[tuple[float, int]] = []

    def watch(row: tuple[Any, ...]) -> None:
        client = producer.impl.instance.api.remoting_client
        for future in client.response_table.values():
            if future.request.code == 310:
                budgets.append((cluster.now_ms, future.timeout_ms))

    cluster.world.hooks.attach(watch)
    producer.send(Message("T", "x")).play()
    (attempt,) = cluster.events("SendAttempted")
    at_attempt_ms = cluster.times_ms("SendAttempted", "producer")[0] - begin_ms
    assert at_attempt_ms > 400
    assert attempt[5] == 3_000 - int(at_attempt_ms)
    at_write_ms = cluster.times_ms("RequestSent", "producer")[-1]
    assert budgets[0][1] == pytest.approx(3_000 - (budgets[0][0] - begin_ms), abs=2)
    assert at_write_ms - begin_ms > at_attempt_ms
    assert budgets[0][1] < attempt[5] - 299


def test_the_second_attempt_has_what_the_first_has_left(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer(send_msg_max_timeout_per_request=800)
    for _ in range(2):
        producer.send(Message("T", "x")).play()
    cluster.fault("freeze", "broker-a")
    cluster.fault("freeze", "broker-b")
    cluster.rows.clear()
    with pytest.raises(MQClientException, match=r"Send \[3\] times, still failed, cost \[3000\]ms") as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == ClientErrorCode.ACCESS_BROKER_TIMEOUT
    assert [event[5] for event in cluster.events("SendAttempted")] == [800, 800, 1_400]


def test_an_asynchronous_retry_spends_the_same_budget_and_looks_at_it_between_attempts_only(cluster: Any) -> None:
    producer = cluster.producer()
    producer.send(Message("T", "first")).play()
    cluster.world.network.break_connections("producer", "broker-a")
    cluster.fault("cut", "producer", "broker-a")
    cluster.run_ms(1)
    for timeout_ms, ended_ms, attempts in ((3_000, 3_000, 1), (4_000, 6_000, 2), (7_000, 9_000, 3), (60_000, 9_000, 3)):
        cluster.rows.clear()
        outcomes, callback = noting(cluster)
        producer.send_async(Message("T", "x"), callback, timeout=timeout_ms).play()
        cluster.run_ms(12_000)
        ((when_ms, _, error),) = outcomes
        # Each attempt takes the 3 s of a connection that cannot be made.
        assert when_ms == pytest.approx(ended_ms, abs=5)
        assert len(cluster.events("SendAttemptFailed")) == attempts
        assert str(error).startswith("unknown reason: connect to ")


@pytest.mark.parametrize(
    ("error", "text", "tried_again"),
    [
        (RemotingSendRequestException("10.0.0.2:10911"), "send request failed", True),
        (RemotingTimeoutException("10.0.0.2:10911", 3_000), "wait response timeout, cost=0", True),
        (RemotingTooMuchRequestException("too much"), "unknown reason: too much", False),
        (RemotingException("something else"), "unknown reason: something else", True),
    ],
)
def test_which_failures_of_remoting_an_asynchronous_send_tries_again(
    cluster: Any, producer: Any, error: RemotingException, text: str, tried_again: bool
) -> None:
    cluster.fault("freeze", "broker-a")
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", "x"), callback).play()
    client = producer.impl.instance.api.remoting_client
    cluster.world.run_until(lambda: client.response_table)
    for _ in range(3):
        for future in list(client.response_table.values()):
            del client.response_table[future.opaque]
            client.complete(future, None, error)
        cluster.run_ms(0.1)
    assert len(cluster.events("SendAttemptFailed")) == (3 if tried_again else 1)
    ((_, _, told),) = outcomes
    assert isinstance(told, MQClientException)
    assert str(told) == text


def test_a_retried_asynchronous_request_keeps_its_queue_and_gets_a_new_number(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=4)
    producer = cluster.producer()
    for _ in range(8):
        producer.send(Message("T", "x")).play()
    cluster.fault("freeze", "broker-a")
    cluster.rows.clear()
    outcomes, callback = noting(cluster)
    for _ in range(2):
        producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(10)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(1_000)
    sent = [row for row in cluster.rows if row[7] == "RequestSent" and row[14] == "SEND_MESSAGE_V2"]
    # Both went to the broker that then died.
    assert len({row[12] for row in sent}) == len(sent) == 4
    chosen = {event[3]: event[2] for event in cluster.events("SendAttempted")}
    assert [result.message_queue.queue_id for _, result, _ in outcomes] == [
        chosen[result.msg_id] for _, result, _ in outcomes
    ]


@pytest.mark.queues(1)
def test_a_callback_that_takes_long_makes_its_broker_look_slow(cluster: Any) -> None:
    producer = cluster.producer(send_latency_enable=True)
    producer.send(Message("T", "x")).play()

    async def slow(result: Any, error: Exception | None) -> None:
        await producer.node.sleep(600)

    producer.send_async(Message("T", "x"), slow).play()
    cluster.run_ms(1_000)
    # (broker, latency, rest): a latency from 550 ms on means a rest of 2 s.
    assert cluster.events("FaultItemUpdated")[-1][:3] == ("broker-a", 600, 2_000)


# -- back-pressure --------------------------------------------------------------------------------------------------


def test_back_pressure_counts_bytes_as_well(cluster: Any) -> None:
    producer = cluster.producer(enable_backpressure_for_async_mode=True, back_pressure_for_async_send_size=1)
    producer.send(Message("T", "x")).play()
    size = producer.impl.async_sender.semaphore_async_send_size
    assert size.permits == 1024 * 1024
    cluster.fault("freeze", "broker-a")
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", b"x" * 1024 * 1023), callback).play()
    assert size.permits == 1024
    producer.send_async(Message("T", b"x" * 1024), callback).play()
    begin_ms = cluster.now_ms
    producer.send_async(Message("T", "x"), callback, timeout=500).play()
    assert cluster.now_ms - begin_ms == pytest.approx(500)
    ((_, _, error),) = outcomes
    assert str(error) == "send message tryAcquire semaphoreAsyncSize timeout"
    cluster.fault("thaw", "broker-a")
    cluster.run_ms(1_000)
    assert size.permits == 1024 * 1024
    assert producer.impl.async_sender.semaphore_async_send_num.permits == 10_000


def test_with_back_pressure_a_full_pool_makes_the_caller_do_the_work(cluster: Any) -> None:
    producer = cluster.producer(enable_backpressure_for_async_mode=True)
    producer.send(Message("T", "x")).play()
    producer.impl.async_sender.pool.shutdown()
    outcomes, callback = noting(cluster)
    producer.send_async(Message("T", "x"), callback).play()
    cluster.run_ms(10)
    assert outcomes[0][1] is not None


# -- sizes, packing, keys -------------------------------------------------------------------------------------------


@pytest.mark.queues(1)
def test_a_batch_is_limited_as_a_whole(cluster: Any) -> None:
    producer = cluster.producer(max_message_size=1_000)
    assert len(producer.send([Message("T", b"x" * 300)] * 2).play().offset_msg_id.split(",")) == 2
    with pytest.raises(MQClientException, match="CODE: 13  DESC: the message body size over max value, MAX: 1000"):
        producer.send([Message("T", b"x" * 300) for _ in range(3)]).play()


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        ("ZLIB", MessageSysFlag.COMPRESSION_ZLIB),
        ("LZ4", MessageSysFlag.COMPRESSION_LZ4),
        ("ZSTD", MessageSysFlag.COMPRESSION_ZSTD),
    ],
)
@pytest.mark.queues(1)
def test_three_kinds_of_packing_each_with_its_bits(cluster: Any, kind: str, bits: int) -> None:
    pytest.importorskip({"ZLIB": "zlib", "LZ4": "lz4", "ZSTD": "zstandard"}[kind])
    producer = cluster.producer(compress_type=kind)
    flags: list[int] = []
    server = cluster.brokers["broker-a"].remoting_server
    entry = server.processor_table[310]
    process = entry.processor.process_request

    def looking(channel: Any, request: Any) -> Any:
        flags.append(parse_send_header(request).sys_flag)
        return process(channel, request)

    entry.processor.process_request = looking
    producer.send(Message("T", b"a" * 4_096)).play()
    producer.send(Message("T", b"a" * 4_095)).play()
    packed, plain = flags
    assert packed & MessageSysFlag.COMPRESSED
    assert packed & MessageSysFlag.COMPRESSION_MASK == bits
    assert plain == 0
    got: list[bytes] = []
    cluster.consumer(listener=lambda messages, context: got.extend(message.body for message in messages))
    cluster.run_ms(3_000)
    assert got[0] == b"a" * 4_096


@pytest.mark.queues(1)
def test_every_message_has_a_unique_key_of_32_digits_and_keeps_one_that_it_has(cluster: Any) -> None:
    producer = cluster.producer()
    keys = [producer.send(Message("T", "x")).play().msg_id for _ in range(5)]
    keys += producer.send([Message("T", "x"), Message("T", "y")]).play().msg_id.split(",")
    assert len(set(keys)) == 7
    assert {len(key) for key in keys} == {32}
    assert all(key == key.upper() and int(key, 16) for key in keys)
    # Address, process and class loader are the same, then come the time and a counter.
    assert len({key[:20] for key in keys}) == 1
    assert [int(key[-4:], 16) for key in keys[:5]] == list(range(int(keys[0][-4:], 16), int(keys[0][-4:], 16) + 5))
    again = Message("T", "x")
    first = producer.send(again).play().msg_id
    assert producer.send(again).play().msg_id == first


# -- routes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "got"), [(2, 2), (4, 4), (16, 8)])
def test_a_new_topic_gets_the_smaller_of_the_clients_number_and_the_templates_eight(
    cluster: Any, wanted: int, got: int
) -> None:
    producer = cluster.producer(default_topic_queue_nums=wanted)
    producer.send(Message("NEW", "x")).play()
    assert len(producer.fetch_publish_message_queues("NEW").play()) == got
    assert cluster.brokers["broker-a"].topic_config_manager.topic_config_table["NEW"].write_queue_nums == got


@pytest.mark.queues(1)
def test_the_address_of_a_broker_that_is_not_known_is_asked_for_only_with_the_topic(cluster: Any) -> None:
    producer = cluster.producer()
    with pytest.raises(MQClientException, match=r"The broker\[broker-z\] not exist"):
        producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-z", 0)).play()
    assert cluster.requests("producer").count("GET_ROUTEINFO_BY_TOPIC") == 1
    with pytest.raises(MQClientException, match=r"The broker\[broker-z\] not exist"):
        producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-z", 0)).play()
    assert cluster.requests("producer").count("GET_ROUTEINFO_BY_TOPIC") == 1


# -- hooks ----------------------------------------------------------------------------------------------------------


class Noting(SendMessageHook):
    """Notes what it sees of each attempt."""

    name = "noting"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def send_message_before(self, context: Any) -> None:
        self.seen.append(f"before {context.communication_mode} {context.msg_type}")

    def send_message_after(self, context: Any) -> None:
        outcome = context.send_result.send_status.value if context.send_result else type(context.error).__name__
        self.seen.append(f"after {outcome}")


class Broken(SendMessageHook):
    """Raises whenever it is called."""

    name = "broken"

    def send_message_before(self, context: Any) -> None:
        raise ValueError("before")

    def send_message_after(self, context: Any) -> None:
        raise ValueError("after")


def test_hooks_hear_of_each_failed_attempt_with_its_error(cluster: Any, producer: Any) -> None:
    hook = Noting()
    producer.register_send_message_hook(hook)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(10)
    with pytest.raises(MQClientException):
        producer.send(Message("T", "x")).play()
    assert hook.seen == ["before SYNC NORMAL_MSG", "after RemotingConnectException"] * 3


def test_hooks_hear_of_an_asynchronous_send_twice_and_of_a_one_way_send_without_outcome(
    cluster: Any, producer: Any
) -> None:
    hook = Noting()
    producer.register_send_message_hook(hook)
    producer.send_async(Message("T", "x"), lambda result, error: None).play()
    cluster.run_ms(10)
    assert hook.seen == ["before ASYNC NORMAL_MSG", "after NoneType", "after SEND_OK"]
    hook.seen.clear()
    producer.send_oneway(Message("T", "x")).play()
    assert hook.seen == ["before ONEWAY NORMAL_MSG", "after NoneType"]
    hook.seen.clear()
    cluster.fault("crash", "broker-a")
    producer.send_async(Message("T", "x"), lambda result, error: None).play()
    cluster.run_ms(1_000)
    assert hook.seen == ["before ASYNC NORMAL_MSG", "after NoneType", "after MQClientException"]


def test_a_hook_that_raises_changes_nothing_and_is_told(cluster: Any, producer: Any) -> None:
    noting_hook = Noting()
    producer.register_send_message_hook(Broken())
    producer.register_send_message_hook(noting_hook)
    producer.send(Message("T", "x")).play()
    assert noting_hook.seen == ["before SYNC NORMAL_MSG", "after SEND_OK"]
    assert [event[2:] for event in cluster.events("SendHookFailed")] == [
        ("broken", "ValueError: before"),
        ("broken", "ValueError: after"),
    ]


def test_a_selector_that_raises_is_an_error_that_says_what_it_raised(producer: Any) -> None:
    with pytest.raises(MQClientException, match=r"select message queue threw exception\. IndexError: ") as caught:
        producer.send_by_selector(Message("T", "x"), lambda queues, message, argument: queues[99], None).play()
    assert isinstance(caught.value.__cause__, IndexError)


def test_50000_asynchronous_sends_may_wait_for_a_thread(cluster: Any, producer: Any) -> None:
    outcomes, callback = noting(cluster)
    pool = producer.impl.async_sender.pool
    pool.threads = 0
    for _ in range(49_999):
        assert pool.submit(lambda: None)
    producer.send_async(Message("T", "the 50,000th"), callback).play()
    with pytest.raises(MQClientException, match="executor rejected"):
        producer.send_async(Message("T", "one too many"), callback).play()
    assert outcomes == []
