"""Synchronous sending: queues, routes, retries, the time budget, batches, compression, and every refusal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    CheckForbiddenHook,
    DefaultMQProducer,
    Message,
    MessageExt,
    MessageQueue,
    SendMessageHook,
    SendStatus,
    select_message_queue_by_hash,
)
from mqlab.errors import (
    LearnerError,
    MQBrokerException,
    MQClientException,
    RemotingConnectException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol import MessageSysFlag
from mqlab.protocol.codes import ClientErrorCode, ResponseCode

NAMESRV = "10.0.0.1:9876"


@pytest.mark.queues(4)
def test_a_send_says_where_the_message_is(producer: Any) -> None:
    result = producer.send(Message("T", "hello", tags="TagA")).play()
    assert result.send_status is SendStatus.SEND_OK
    assert result.message_queue.topic == "T"
    assert result.message_queue.broker_name == "broker-a"
    assert result.queue_offset == 0
    assert len(result.msg_id) == 32
    assert result.transaction_id == result.msg_id
    assert result.region_id == "DefaultRegion"
    assert repr(result).startswith(f"SendResult [sendStatus=SEND_OK, msgId={result.msg_id}, offsetMsgId=0A000002")


def test_sends_take_the_queues_in_turn_from_a_random_first_one(make_cluster: Any) -> None:
    first = set()
    for seed in range(8):
        cluster = make_cluster(seed=seed, queues=4)
        producer = cluster.producer()
        ids = [producer.send(Message("T", "x")).play().message_queue.queue_id for _ in range(8)]
        assert ids == [(ids[0] + k) % 4 for k in range(8)]
        first.add(ids[0])
    assert len(first) > 1


@pytest.mark.queues(2)
def test_start_asks_nobody_and_the_first_send_asks_route_then_sends_then_greets(cluster: Any, producer: Any) -> None:
    assert cluster.requests("producer") == []
    for _ in range(3):
        producer.send(Message("T", "x")).play()
        cluster.run_ms(2_000)
    producer.shutdown().play()
    assert cluster.requests("producer") == [
        "GET_ROUTEINFO_BY_TOPIC",
        "SEND_MESSAGE_V2",
        "HEART_BEAT",
        "GET_ROUTEINFO_BY_TOPIC",
        "HEART_BEAT",
        "SEND_MESSAGE_V2",
        "SEND_MESSAGE_V2",
        "UNREGISTER_CLIENT",
        "UNREGISTER_CLIENT",
    ]


def test_a_topic_that_does_not_exist_gets_the_queues_of_the_template(cluster: Any, producer: Any) -> None:
    begin_ms = cluster.now_ms
    used = []
    for _ in range(16):
        used.append(producer.send(Message("NEW", "x")).play().message_queue.queue_id)
        cluster.run_ms(2_000)
    assert sorted(set(used)) == [0, 1, 2, 3]
    asked = [
        event[1] for event in cluster.events("RouteMissing", "producer") + cluster.events("RouteUpdated", "producer")
    ]
    assert asked.count("NEW") >= 2
    routes = [
        row[2] / 1_000 - begin_ms
        for row in cluster.rows
        if row[7] == "RequestSent" and row[3] == "producer" and row[14] == "GET_ROUTEINFO_BY_TOPIC"
    ]
    assert len(routes) == 4
    assert routes[3] == pytest.approx(30_010, abs=5)


def test_a_topic_without_route_is_an_error_when_nobody_may_create_it(make_cluster: Any) -> None:
    producer = make_cluster(auto_create_topic_enable=False).producer()
    with pytest.raises(MQClientException, match="No route info of this topic: NEW") as caught:
        producer.send(Message("NEW", "x")).play()
    assert caught.value.response_code == ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION


def test_a_send_without_a_route_is_seen_to_fail_without_an_attempt(make_cluster: Any) -> None:
    cluster = make_cluster(auto_create_topic_enable=False)
    with pytest.raises(MQClientException) as caught:
        cluster.producer().send(Message("NEW", "x")).play()
    (failed,) = cluster.events("SendFailed")
    assert (failed[0], failed[2], failed[4]) == ("NEW", 0, str(caught.value))


def test_without_name_server_a_send_fails_with_its_own_code(cluster: Any) -> None:
    producer = cluster.producer(namesrv_addr=None)
    with pytest.raises(MQClientException, match="No name server address, please set it") as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == ClientErrorCode.NO_NAME_SERVER_EXCEPTION


# -- retries and the budget -----------------------------------------------------------------------------------------


def test_a_send_to_a_dead_broker_is_tried_again_on_the_other(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=2)
    producer = cluster.producer()
    for _ in range(4):
        producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    results = [producer.send(Message("T", "x")).play() for _ in range(4)]
    assert {result.message_queue.broker_name for result in results} == {"broker-b"}
    assert {event[1] for event in cluster.events("SendAttemptFailed")} == {"broker-a"}


def test_a_hanging_broker_uses_up_the_whole_budget(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=2)
    producer = cluster.producer()
    while producer.send(Message("T", "x")).play().message_queue.broker_name == "broker-b":
        pass
    producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-b", 0)).play()
    cluster.fault("freeze", "broker-a")
    cluster.fault("freeze", "broker-b")
    begin_ms = cluster.now_ms
    with pytest.raises(RemotingTooMuchRequestException, match="sendDefaultImpl call timeout"):
        producer.send(Message("T", "x")).play()
    assert cluster.now_ms - begin_ms == pytest.approx(3_000, abs=1)


def test_a_cap_for_each_attempt_leaves_time_for_the_next(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=2)
    producer = cluster.producer(send_msg_max_timeout_per_request=1_000)
    for _ in range(4):
        producer.send(Message("T", "x")).play()
    cluster.fault("freeze", "broker-a")
    begin_ms = cluster.now_ms
    results = [producer.send(Message("T", "x")).play() for _ in range(2)]
    assert {result.message_queue.broker_name for result in results} == {"broker-b"}
    assert 1_000 <= cluster.now_ms - begin_ms < 2_100


@pytest.mark.queues(2)
def test_one_broker_alone_is_tried_three_times(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    cluster.run_ms(10)
    with pytest.raises(MQClientException, match=r"BrokersSent: \[broker-a, broker-a, broker-a\]") as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == ClientErrorCode.CONNECT_BROKER_EXCEPTION
    assert len(cluster.events("SendAttemptFailed")) == 3


def test_an_answer_that_says_busy_is_retried_and_one_that_says_illegal_is_not(make_cluster: Any) -> None:
    cluster = make_cluster(start_accept_send_request_time_stamp=1_900_000_000_000, queues=2)
    producer = cluster.producer()
    with pytest.raises(MQClientException) as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == ResponseCode.SYSTEM_ERROR
    assert len(cluster.events("SendAttempted")) == 3
    other = make_cluster(queues=2)
    producer = other.producer()
    with pytest.raises(MQBrokerException) as refused:
        producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-a", 99)).play()
    assert refused.value.response_code == ResponseCode.INVALID_PARAMETER


@pytest.mark.queues(2)
def test_a_budget_of_nothing_is_too_much(producer: Any) -> None:
    with pytest.raises(RemotingTooMuchRequestException):
        producer.send(Message("T", "x"), timeout=0).play()


def test_latency_faults_keep_a_producer_away_from_a_slow_broker(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=2)
    producer = cluster.producer(send_latency_enable=True)
    for _ in range(4):
        producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    for _ in range(20):
        producer.send(Message("T", "x")).play()
    assert len(cluster.events("SendAttemptFailed")) == 1
    assert ("broker-a", 0, 10_000, True) in [
        (name, min(latency, 0), rest, reachable)
        for name, latency, rest, reachable in cluster.events("FaultItemUpdated")
    ]


# -- forms of sending -----------------------------------------------------------------------------------------------


def failures(cluster: Any) -> list[tuple[Any, ...]]:
    """The failed attempts as (queue, attempt, tried again), and the sends given up as (attempts,)."""
    attempts = [(*event[1:3], *event[4::2]) for event in cluster.events("SendAttemptFailed")]
    return attempts + [(event[2],) for event in cluster.events("SendFailed")]


def test_a_send_to_a_given_queue_that_fails_is_told_as_any_other_with_its_one_attempt(
    cluster: Any, producer: Any
) -> None:
    queue = MessageQueue("T", "broker-a", 0)
    producer.send(Message("T", "x"), queue=queue).play()
    cluster.fault("crash", "broker-a")
    cluster.run_ms(10)
    with pytest.raises(RemotingConnectException):
        producer.send(Message("T", "x"), queue=queue).play()
    assert failures(cluster) == [("broker-a", 0, 1, False), (1,)]
    (attempted, failed) = cluster.events("SendAttemptFailed") + cluster.events("SendFailed")
    assert attempted[3] == failed[1] == cluster.events("SendAttempted")[-1][3] != ""
    assert attempted[5] == failed[4]


def test_a_send_to_a_queue_that_a_selector_names_is_told_too_when_it_fails(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    cluster.fault("crash", "broker-a")
    cluster.run_ms(10)
    with pytest.raises(RemotingConnectException):
        producer.send_by_selector(Message("T", "x"), lambda queues, message, argument: queues[0], None).play()
    assert failures(cluster) == [("broker-a", 0, 1, False), (1,)]


def test_an_asynchronous_send_to_a_broker_that_nobody_knows_is_told_once(cluster: Any, producer: Any) -> None:
    heard: list[Any] = []
    producer.send_async(
        Message("T", "x"), lambda result, error: heard.append(error), queue=MessageQueue("T", "broker-z", 0)
    ).play()
    cluster.run_ms(100)
    assert [str(error) for error in heard] == ["The broker[broker-z] not exist"]
    assert failures(cluster) == [("broker-z", 0, 1, False), (1,)]


@pytest.mark.queues(4)
def test_a_message_can_be_sent_to_a_given_queue_of_its_own_topic(producer: Any) -> None:
    queues = producer.fetch_publish_message_queues("T").play()
    assert [queue.queue_id for queue in queues] == [0, 1, 2, 3]
    assert producer.send(Message("T", "x"), queue=queues[3]).play().message_queue == queues[3]
    with pytest.raises(MQClientException, match="message's topic not equal mq's topic"):
        producer.send(Message("OTHER", "x"), queue=queues[3]).play()


@pytest.mark.queues(4)
def test_a_selector_keeps_what_belongs_together_in_one_queue(producer: Any) -> None:
    used = {
        order: {
            producer.send_by_selector(Message("T", "x"), select_message_queue_by_hash, order)
            .play()
            .message_queue.queue_id
            for _ in range(3)
        }
        for order in range(5)
    }
    assert used == {0: {0}, 1: {1}, 2: {2}, 3: {3}, 4: {0}}
    with pytest.raises(MQClientException, match="select message queue return null"):
        producer.send_by_selector(Message("T", "x"), lambda queues, message, argument: None, 1).play()


def test_a_batch_is_one_request_and_several_messages(cluster: Any, producer: Any) -> None:
    result = producer.send([Message("T", f"m{k}") for k in range(3)]).play()
    assert len(result.msg_id.split(",")) == 3
    assert len(result.offset_msg_id.split(",")) == 3
    assert producer.send(Message("T", "last")).play().queue_offset == 3
    assert cluster.requests("producer").count("SEND_BATCH_MESSAGE") == 1


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], "messages can not be null or empty"),
        ([Message("T", "x"), Message("U", "x")], "The topic of the messages in one batch should be the same"),
        ([Message("T", "x", delay_level=1)], "TimeDelayLevel is not supported for batching"),
        ([Message("%RETRY%G", "x")], "Retry Group is not supported for batching"),
        ([Message("T", "")], "the message body length is zero"),
    ],
)
def test_what_cannot_be_a_batch_is_refused(producer: Any, messages: list[Message], text: str) -> None:
    with pytest.raises(MQClientException, match=text):
        producer.send(messages).play()


def test_a_batch_holds_messages_only(producer: Any) -> None:
    with pytest.raises(LearnerError, match="a producer sends messages"):
        producer.send("hello").play()


def test_long_bodies_travel_packed_and_arrive_as_they_were(cluster: Any, producer: Any) -> None:
    message = Message("T", b"a" * 4096)
    producer.send(message).play()
    producer.send(Message("T", b"b" * 4095)).play()
    assert message.body == b"a" * 4096
    packed_bytes, plain_bytes = (event[6] for event in cluster.events("SendAttempted"))
    assert packed_bytes < 100
    assert plain_bytes == 4095
    seen: list[MessageExt] = []

    def keep(messages: Sequence[MessageExt], context: Any) -> Any:
        seen.extend(messages)
        return CONSUME_SUCCESS

    cluster.consumer(listener=keep)
    cluster.run_ms(3_000)
    assert sorted(len(message.body) for message in seen) == [4095, 4096]
    packed = next(message for message in seen if len(message.body) == 4096)
    assert packed.sys_flag & MessageSysFlag.COMPRESSION_MASK == MessageSysFlag.COMPRESSION_ZLIB


def test_one_way_sends_and_does_not_wait(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    begin_us = cluster.world.now_us
    assert producer.send_oneway(Message("T", "y")).play() is None
    assert cluster.world.now_us == begin_us
    cluster.run_ms(10)
    assert producer.send(Message("T", "z")).play().queue_offset == 2


def test_hooks_see_every_attempt_and_may_forbid_it(producer: Any) -> None:
    seen: list[str] = []

    class Noting(SendMessageHook):
        def send_message_before(self, context: Any) -> None:
            seen.append(f"before {context.communication_mode} {context.msg_type}")

        def send_message_after(self, context: Any) -> None:
            seen.append(f"after {context.send_result.send_status}")

    class Forbidding(CheckForbiddenHook):
        def check_forbidden(self, context: Any) -> None:
            if context.message.tags == "no":
                raise MQClientException("forbidden by the application")

    producer.register_send_message_hook(Noting())
    producer.register_check_forbidden_hook(Forbidding())
    producer.send(Message("T", "x")).play()
    producer.send(Message("T", "x", delay_level=1)).play()
    assert seen == ["before SYNC NORMAL_MSG", "after SEND_OK", "before SYNC DELAY_MSG", "after SEND_OK"]
    with pytest.raises(MQClientException, match="forbidden by the application"):
        producer.send(Message("T", "x", tags="no")).play()


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message("", "x"), "The specified topic is blank"),
        (Message("a b", "x"), r"The specified topic\[a b\] contains illegal characters"),
        (Message("t" * 128, "x"), "The specified topic is longer than topic max length 127."),
        (Message("SCHEDULE_TOPIC_XXXX", "x"), r"Sending message to topic\[SCHEDULE_TOPIC_XXXX\] is forbidden."),
        (Message("T", ""), "CODE: 13  DESC: the message body length is zero"),
        (Message("T", None), "CODE: 13  DESC: the message body is null"),
        (Message("T", b"x" * (4 * 1024 * 1024 + 1)), "the message body size over max value, MAX: 4194304"),
    ],
)
def test_what_may_not_be_sent_is_refused_with_rocketmqs_text(
    cluster: Any, producer: Any, message: Message, text: str
) -> None:
    with pytest.raises(MQClientException, match=text):
        producer.send(message).play()
    assert cluster.requests("producer") == []


def test_a_producer_that_does_not_run_cannot_send(cluster: Any) -> None:
    producer = DefaultMQProducer(cluster.node("p"), "PG", namesrv_addr=NAMESRV)
    with pytest.raises(MQClientException, match="The producer service state not OK, CREATE_JUST"):
        producer.send(Message("T", "x")).play()
    producer.shutdown().play()
    producer.start().play()
    with pytest.raises(MQClientException, match="maybe started once, RUNNING"):
        producer.start().play()
    producer.shutdown().play()
    producer.shutdown().play()
    with pytest.raises(MQClientException, match="SHUTDOWN_ALREADY"):
        producer.send(Message("T", "x")).play()


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("", "the specified group is blank"),
        ("DEFAULT_PRODUCER", "producerGroup can not equal DEFAULT_PRODUCER, please specify another one."),
        ("g" * 256, "the specified group is longer than group max length 255."),
        ("a b", r"the specified group\[a b\] contains illegal characters"),
    ],
)
def test_illegal_groups_are_refused_at_the_start(cluster: Any, group: str, text: str) -> None:
    with pytest.raises(MQClientException, match=text):
        cluster.producer(group=group)


def test_one_instance_has_each_group_once(cluster: Any) -> None:
    cluster.producer(instance_name="shared")
    with pytest.raises(MQClientException, match=r"The producer group\[PG\] has been created before"):
        cluster.producer(instance_name="shared")
    cluster.producer(instance_name="shared", group="PG2")
    cluster.producer()


def test_a_misspelled_setting_is_an_error_that_names_the_right_one(cluster: Any) -> None:
    with pytest.raises(LearnerError, match="did you mean 'send_msg_timeout'"):
        cluster.producer(send_message_timeout=1)
