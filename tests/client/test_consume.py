"""Push consumption: start and shutdown, listeners, results, offsets, flow control."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    ConsumeConcurrentlyContext,
    ConsumeFromWhere,
    ConsumeMessageHook,
    DefaultLitePullConsumer,
    DefaultMQPushConsumer,
    Message,
    MessageListenerConcurrently,
    MessageModel,
    MessageQueue,
)
from mqlab.client.consumer.listener import ListenerReturnedNone
from mqlab.errors import LearnerError, MQClientException, SimulationError
from tests.worlds import shop, slow, started_consumer

NAMESRV = "10.0.0.1:9876"


def send(cluster: Any, bodies: list[str], topic: str = "T", **properties: Any) -> None:
    producer = cluster.producer(f"producer-{len(cluster.world.nodes)}")
    for body in bodies:
        producer.send(Message(topic, body, **properties)).play()


# -- start and shutdown ---------------------------------------------------------------------------------------------


@pytest.mark.queues(2)
def test_start_asks_routes_greets_rebalances_after_a_second_and_pulls_half_a_second_later(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    consumer = cluster.consumer()
    assert cluster.requests("consumer") == ["GET_ROUTEINFO_BY_TOPIC"] * 2 + ["HEART_BEAT"]
    cluster.run_ms(1_900)
    assert cluster.requests("consumer") == [
        "GET_ROUTEINFO_BY_TOPIC",
        "GET_ROUTEINFO_BY_TOPIC",
        "HEART_BEAT",
        "GET_ROUTEINFO_BY_TOPIC",
        "GET_ROUTEINFO_BY_TOPIC",
        "HEART_BEAT",
        "GET_CONSUMER_LIST_BY_GROUP",
        "QUERY_CONSUMER_OFFSET",
        "QUERY_CONSUMER_OFFSET",
        "HEART_BEAT",
        "GET_CONSUMER_LIST_BY_GROUP",
        "QUERY_CONSUMER_OFFSET",
        "HEART_BEAT",
        "PULL_MESSAGE",
        "PULL_MESSAGE",
        "PULL_MESSAGE",
    ]
    allocated = cluster.times_ms("QueueAllocated", "consumer")
    pulls = cluster.times_ms("PullRequested", "consumer")
    assert 1_000 <= allocated[0] - begin_ms < 1_010
    assert pulls[-1] - allocated[-1] == pytest.approx(500, abs=1)
    assert len(consumer.process_queues) == 3


@pytest.mark.queues(2)
def test_shutdown_writes_the_offsets_and_leaves_twice(cluster: Any, consumer: Any) -> None:
    send(cluster, ["a", "b"])
    cluster.run_ms(3_000)
    before = len(cluster.requests("consumer"))
    consumer.shutdown().play()
    assert cluster.requests("consumer")[before:] == ["UPDATE_CONSUMER_OFFSET"] * 2 + ["UNREGISTER_CLIENT"] * 2
    slices = cluster.world.slice_no
    cluster.run_ms(100)
    assert cluster.requests("consumer")[before + 4 :] == []
    assert cluster.world.slice_no - slices < 100
    consumer.shutdown().play()


def test_the_rhythm_of_heartbeats_routes_offsets_and_rebalance(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    cluster.consumer()
    send(cluster, ["a"])
    cluster.run_ms(100_000)

    def times(name: str) -> list[float]:
        return [
            round(row[2] / 1_000 - begin_ms)
            for row in cluster.rows
            if row[7] == "RequestSent" and row[3] == "consumer" and row[14] == name
        ]

    assert [t for t in times("HEART_BEAT") if t > 1_100] == [31_000, 61_000, 91_000]
    assert [t for t in times("GET_ROUTEINFO_BY_TOPIC") if t > 100][::2] == [30_010, 60_010, 90_010]
    persisted = sorted(set(times("UPDATE_CONSUMER_OFFSET")))
    assert persisted == list(range(10_000, 100_001, 5_000))
    rounds = times("GET_CONSUMER_LIST_BY_GROUP")[::2]
    assert [b - a for a, b in pairwise(rounds)] == pytest.approx([20_000] * 4, abs=5)


def test_a_consumer_starts_once(consumer: Any) -> None:
    with pytest.raises(MQClientException, match="maybe started once, RUNNING"):
        consumer.start().play()
    consumer.shutdown().play()
    with pytest.raises(MQClientException, match="maybe started once, SHUTDOWN_ALREADY"):
        consumer.start().play()


def test_one_instance_has_each_consumer_group_once(cluster: Any) -> None:
    first = cluster.consumer(instance_name="shared")
    second = cluster.new_consumer(instance_name="shared")
    with pytest.raises(MQClientException, match=r"The consumer group\[G\] has been created before"):
        second.start().play()
    assert first.impl.instance is second.impl.instance
    third = cluster.consumer(instance_name="shared", group="G2")
    assert third.impl.instance is first.impl.instance


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"group": "DEFAULT_CONSUMER"}, "consumerGroup can not equal DEFAULT_CONSUMER, please specify another one."),
        ({"group": " "}, "the specified group is blank"),
        ({"message_model": None}, "messageModel is null"),
        ({"consume_thread_min": 0}, r"consumeThreadMin Out of range \[1, 1000\]"),
        ({"consume_thread_min": 21}, r"consumeThreadMin \(21\) is larger than consumeThreadMax \(20\)"),
        ({"pull_batch_size": 1025}, r"pullBatchSize Out of range \[1, 1024\]"),
        ({"pull_threshold_for_topic": 0}, r"pullThresholdForTopic Out of range \[1, 6553500\]"),
        ({"consume_timestamp": "yesterday"}, "consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss"),
    ],
)
def test_illegal_settings_are_refused_at_the_start(cluster: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(MQClientException, match=text):
        cluster.consumer(**settings)


def test_a_consumer_needs_a_listener_that_can_be_called(cluster: Any) -> None:
    consumer = DefaultMQPushConsumer(cluster.node("c"), "G", namesrv_addr=NAMESRV)
    with pytest.raises(LearnerError, match="is not a listener"):
        consumer.register_message_listener("print")  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(MQClientException, match="messageListener is null"):
        consumer.start().play()


# -- delivery -------------------------------------------------------------------------------------------------------


@pytest.mark.queues(4)
def test_every_message_is_delivered_once_and_offsets_say_so(cluster: Any) -> None:
    cluster.consumer()
    bodies = [f"m{k}" for k in range(100)]
    send(cluster, bodies)
    cluster.run_ms(12_000)
    assert sorted(cluster.bodies) == sorted(bodies)
    offsets = cluster.brokers["broker-a"].consumer_offset_manager
    assert sum(offsets.query_offset("G", "T", queue_id) for queue_id in range(4)) == 100


def test_a_waiting_pull_brings_a_message_within_two_milliseconds(cluster: Any) -> None:
    cluster.consumer()
    cluster.run_ms(3_000)
    producer = cluster.producer()
    producer.send(Message("T", "warm")).play()
    cluster.run_ms(1_000)
    begin_ms = cluster.now_ms
    producer.send(Message("T", "now")).play()
    cluster.run_ms(1_000)
    assert cluster.delivered[-1].at_ms - begin_ms < 2


def test_tags_are_compared_again_because_two_can_have_one_hash(cluster: Any) -> None:
    cluster.consumer(tags="Aa")
    for tag in ("Aa", "BB", "C", None):
        send(cluster, [f"tag {tag}"], tags=tag)
    cluster.run_ms(3_000)
    assert cluster.bodies == ["tag Aa"]
    assert cluster.events("MessagesFiltered") == [("G", "T", "broker-a", 0, 1)]


def test_a_coroutine_listener_takes_time_and_twenty_run_at_once(cluster: Any) -> None:
    send(cluster, [f"m{k}" for k in range(40)])
    cluster.consumer(listener=slow(1_000))
    cluster.run_ms(10_000)
    first = cluster.delivered[0].at_ms
    assert [round(delivery.at_ms - first) for delivery in cluster.delivered] == [0] * 20 + [1_000] * 20


def test_a_listener_can_be_a_class(cluster: Any) -> None:
    seen: list[str] = []

    class Mine(MessageListenerConcurrently):
        def consume_message(self, messages: Any, context: ConsumeConcurrentlyContext) -> Any:
            seen.extend(f"{context.message_queue.queue_id} {message.body.decode()}" for message in messages)
            return CONSUME_SUCCESS

    consumer = cluster.new_consumer()
    consumer.register_message_listener(Mine())
    consumer.start().play()
    send(cluster, ["a"])
    cluster.run_ms(3_000)
    assert seen == ["0 a"]


def test_batches_up_to_the_size_that_was_asked_for(cluster: Any) -> None:
    sizes: list[int] = []

    def listener(messages: Any, context: Any) -> Any:
        sizes.append(len(messages))
        return CONSUME_SUCCESS

    send(cluster, [f"m{k}" for k in range(40)])
    cluster.consumer(listener=listener, consume_message_batch_max_size=10)
    cluster.run_ms(3_000)
    assert sizes == [10, 10, 10, 2, 8]


def test_hooks_see_every_call_of_the_listener(cluster: Any) -> None:
    seen: list[str] = []

    class Noting(ConsumeMessageHook):
        def consume_message_before(self, context: Any) -> None:
            seen.append(f"before {context.consumer_group}")

        def consume_message_after(self, context: Any) -> None:
            seen.append(f"after {context.return_type.value} {context.status}")

    consumer = cluster.new_consumer()
    consumer.register_consume_message_hook(Noting())
    consumer.register_filter_message_hook(
        lambda context: context.msg_list.__setitem__(
            slice(None), [message for message in context.msg_list if message.body != b"drop me"]
        )
    )
    consumer.start().play()
    send(cluster, ["drop me", "keep me"])
    cluster.run_ms(3_000)
    assert seen == ["before G", "after SUCCESS CONSUME_SUCCESS"]
    assert cluster.bodies == ["keep me"]


# -- failure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["later", "raises", "none"])
def test_a_failed_message_is_given_back_and_comes_again_from_the_retry_topic(cluster: Any, how: str) -> None:
    calls: list[tuple[str, int]] = []

    def listener(messages: Any, context: Any) -> Any:
        calls.append((messages[0].topic, messages[0].reconsume_times))
        if messages[0].reconsume_times:
            return CONSUME_SUCCESS
        if how == "raises":
            raise ValueError("no")
        return RECONSUME_LATER if how == "later" else None

    cluster.consumer(listener=listener)
    send(cluster, ["a"])
    cluster.run_ms(60_000)
    assert calls == [("T", 0), ("T", 1)]
    assert [event[7] for event in cluster.events("MessageGivenBack")] == [0]
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 1


def test_ack_index_says_up_to_where_a_batch_was_consumed(cluster: Any) -> None:
    def listener(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        if messages[0].reconsume_times == 0:
            context.ack_index = 1
        return CONSUME_SUCCESS

    send(cluster, ["a", "b", "c", "d"])
    cluster.consumer(listener=listener, consume_message_batch_max_size=10)
    cluster.run_ms(60_000)
    assert [delivery.body for delivery in cluster.delivered if delivery.reconsume_times] == ["c", "d"]


def test_what_cannot_be_given_back_is_consumed_again_here_after_five_seconds(cluster: Any) -> None:
    calls: list[float] = []

    def listener(messages: Any, context: Any) -> Any:
        calls.append(cluster.now_ms)
        return RECONSUME_LATER

    cluster.consumer(listener=listener)
    cluster.run_ms(2_000)
    producer = cluster.producer()
    producer.send(Message("T", "a")).play()
    cluster.world.run_until(lambda: bool(cluster.events("PullFinished")) and cluster.events("PullFinished")[-1][5] > 0)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(12_000)
    assert len(cluster.events("SendBackFailed")) >= 2
    assert calls[1] - calls[0] >= 5_000


def test_without_a_known_master_a_copy_goes_to_the_retry_topic_though_the_store_host_would_answer(
    make_cluster: Any,
) -> None:
    cluster = make_cluster(brokers=2, queues=1)

    def listener(messages: Any, context: Any) -> Any:
        if messages[0].reconsume_times:
            return CONSUME_SUCCESS
        del consumer.impl.instance.routes.broker_addr_table[messages[0].broker_name]
        return RECONSUME_LATER

    consumer = cluster.consumer(listener=listener)
    send(cluster, ["a"])
    cluster.run_ms(40_000)
    requests = cluster.requests("consumer")
    assert ("CONSUMER_SEND_MSG_BACK" in requests, requests.count("SEND_MESSAGE_V2")) == (False, 1)
    assert [(delivery.body, delivery.reconsume_times) for delivery in cluster.delivered] == [("a", 0), ("a", 1)]


def test_a_real_sleep_in_a_listener_is_a_loud_error(cluster: Any) -> None:
    import time


    def listener(messages: Any, context: Any) -> Any:
        time.sleep(0.001)

    cluster.consumer(listener=listener)
    send(cluster, ["a"])
    with pytest.raises(SimulationError, match=r"time.sleep"):
        cluster.run_ms(3_000)


# -- flow control ---------------------------------------------------------------------------------------------------


forever = slow(10_000_000)
"""A listener that does not come back."""


def test_more_than_the_threshold_of_messages_holds_pulling_back_50_ms_at_a_time(cluster: Any) -> None:
    send(cluster, [f"m{k}" for k in range(100)])
    consumer = cluster.consumer(listener=forever, pull_threshold_for_queue=40)
    cluster.run_ms(3_000)
    held = consumer.process_queues[MessageQueue("T", "broker-a", 0)]
    assert held.msg_count == 64
    controlled = [row for row in cluster.rows if row[7] == "FlowControlled"]
    assert controlled[0][8:] == ("G", "T", "broker-a", 0, "count", 64, 40)
    gaps = {b[2] - a[2] for a, b in pairwise(controlled)}
    assert gaps == {50_000}
    assert consumer.impl.flow_control_times["count"] == len(controlled)


def test_a_span_that_is_too_wide_holds_pulling_back(cluster: Any) -> None:
    send(cluster, [f"m{k}" for k in range(200)])
    consumer = cluster.consumer(listener=forever, consume_concurrently_max_span=50)
    cluster.run_ms(3_000)
    held = consumer.process_queues[MessageQueue("T", "broker-a", 0)]
    assert held.msg_count == 64
    assert {event[4:] for event in cluster.events("FlowControlled")} == {("span", 63, 50)}


def test_cached_megabytes_hold_pulling_back(cluster: Any) -> None:
    producer = cluster.producer(compress_msg_body_over_howmuch=10_000_000)
    for _ in range(4):
        producer.send(Message("T", b"x" * 1_048_576)).play()
    cluster.consumer(listener=forever, pull_threshold_size_for_queue=1, pull_batch_size=1)
    cluster.run_ms(3_000)
    controlled = cluster.events("FlowControlled")
    assert {event[4:] for event in controlled} == {("size", 2, 1)}


@pytest.mark.queues(3)
def test_thresholds_for_a_topic_are_shared_out_among_the_queues(cluster: Any) -> None:
    consumer = cluster.consumer(pull_threshold_for_topic=1_000, pull_threshold_size_for_topic=2)
    cluster.run_ms(3_000)
    assert len(consumer.process_queues) == 4
    assert consumer.pull_threshold_for_queue == 250
    assert consumer.pull_threshold_size_for_queue == 1


def test_what_a_rebalance_has_set_ends_with_the_process_and_what_the_application_has_set_stays() -> None:
    """The share of a queue was taken for a setting by the next process."""
    lab = shop(seed=3, queues=3)
    limits = {"pull_threshold_for_topic": 1_000, "pull_threshold_size_for_topic": 8}
    consumer = started_consumer(lab, lambda messages, context: None, node="C", **limits)
    lab.run_for(seconds=25)
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) == (250, 2)
    consumer.pull_threshold_size_for_queue = 50
    lab.restart("C")
    lab.run_for(ms=1)
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) == (1_000, 50)
    lab.run_for(seconds=25)
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) == (250, 2)


def test_who_subscribes_while_the_process_is_down_is_told_and_nothing_has_changed(cluster: Any) -> None:
    """The subscription was there, and the error came after it."""
    push = cluster.consumer("push")
    lite = DefaultLitePullConsumer(cluster.node("lite"), "L", namesrv_addr=NAMESRV)
    lite.subscribe("T")
    lite.start().play()
    for consumer in (push, lite):
        name = consumer.node.name
        cluster.fault("crash", name)
        with pytest.raises(LearnerError, match=rf"(?s){name} is down, and this consumer with it.*restart\('{name}'\)"):
            consumer.subscribe("Other")
        assert "Other" not in consumer.impl.rebalance_impl.subscription_inner


def test_suspend_and_resume(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    consumer.suspend()
    send(cluster, ["this still answers the waiting pull"])
    cluster.run_ms(100)
    send(cluster, ["b"])
    cluster.run_ms(5_000)
    assert len(cluster.bodies) == 1
    consumer.resume()
    cluster.run_ms(2_000)
    assert len(cluster.bodies) == 2


# -- offsets --------------------------------------------------------------------------------------------------------


def test_a_new_group_on_a_young_topic_starts_at_0_even_in_last_offset_mode(cluster: Any) -> None:
    send(cluster, ["old"])
    cluster.consumer(consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    cluster.run_ms(3_000)
    assert cluster.bodies == ["old"]


def test_a_message_that_is_done_late_does_not_set_its_queue_back(cluster: Any) -> None:
    queue = MessageQueue("T", "broker-a", 0)

    def jump_ahead(messages: Any, context: Any) -> Any:
        consumer.impl.offset_store.update_offset(queue, 50, increase_only=False)
        return CONSUME_SUCCESS

    consumer = cluster.new_consumer()
    consumer.register_message_listener(jump_ahead)
    consumer.start().play()
    send(cluster, ["a"])
    cluster.run_ms(3_000)
    assert consumer.impl.offset_store.read_from_memory(queue) == 50
    consumer.impl.offset_store.update_offset(queue, 3, increase_only=False)
    assert consumer.impl.offset_store.read_from_memory(queue) == 3


def test_a_restarted_consumer_goes_on_where_it_stopped(cluster: Any, consumer: Any) -> None:
    send(cluster, ["a", "b"])
    cluster.run_ms(3_000)
    consumer.shutdown().play()
    send(cluster, ["c"])
    cluster.consumer("consumer-2")
    cluster.run_ms(3_000)
    assert cluster.bodies == ["a", "b", "c"]


def test_a_killed_consumer_leaves_duplicates_for_its_successor(cluster: Any) -> None:
    cluster.consumer(listener=forever)
    send(cluster, ["a", "b"])
    cluster.run_ms(3_000)
    cluster.fault("crash", "consumer")
    cluster.consumer("consumer-2")
    cluster.run_ms(3_000)
    assert cluster.bodies == ["a", "b", "a", "b"]


def test_an_illegal_offset_is_repaired_and_the_queue_taken_anew(cluster: Any) -> None:
    send(cluster, ["a", "b"])
    cluster.brokers["broker-a"].consumer_offset_manager.commit_offset("G", "T", 0, 50)
    cluster.consumer()
    cluster.run_ms(6_000)
    assert next(event[4] for event in cluster.events("PullFinished") if event[1] == "T") == "OFFSET_ILLEGAL"
    assert [event[2:5] for event in cluster.events("QueueDropped")] == [("T", "broker-a", 0)]
    send(cluster, ["c"])
    cluster.run_ms(3_000)
    assert cluster.bodies == ["c"]


@pytest.mark.queues(2)
def test_broadcasting_gives_every_consumer_everything_and_keeps_offsets_in_files(cluster: Any) -> None:
    consumers = [cluster.consumer(name, message_model=MessageModel.BROADCASTING) for name in ("c1", "c2")]
    send(cluster, ["a", "b"])
    cluster.run_ms(3_000)
    assert sorted((delivery.consumer, delivery.body) for delivery in cluster.delivered) == [
        ("c1", "a"),
        ("c1", "b"),
        ("c2", "a"),
        ("c2", "b"),
    ]
    for consumer in consumers:
        consumer.shutdown().play()
    path = f".rocketmq_offsets/{consumers[0].impl.instance.client_id}/G/offsets.json"
    assert cluster.node("c1").disk.read_bytes(path).startswith(b'{\n\t"offsetTable":{{\n\t\t\t"brokerName":"broker-a",')
    send(cluster, ["c"])
    cluster.consumer("c1", message_model=MessageModel.BROADCASTING)
    cluster.run_ms(3_000)
    assert [delivery.body for delivery in cluster.delivered][4:] == ["c"]


def test_a_broken_offset_file_falls_back_to_its_copy(cluster: Any) -> None:
    consumer = cluster.consumer("c1", message_model=MessageModel.BROADCASTING)
    send(cluster, ["a"])
    cluster.run_ms(16_000)
    consumer.shutdown().play()
    disk = cluster.node("c1").disk
    path = f".rocketmq_offsets/{consumer.impl.instance.client_id}/G/offsets.json"
    disk.write_bytes(path, b"{")
    cluster.consumer("c1", message_model=MessageModel.BROADCASTING)
    cluster.run_ms(3_000)
    assert cluster.bodies == ["a"]
    disk.write_bytes(path, b"{")
    disk.write_bytes(f"{path}.bak", b"{")
    with pytest.raises(MQClientException, match="readLocalOffsetBak Exception"):
        cluster.consumer("c1", message_model=MessageModel.BROADCASTING, instance_name="DEFAULT", group="G")


def test_a_failed_message_in_broadcasting_is_only_dropped(cluster: Any) -> None:
    cluster.consumer(message_model=MessageModel.BROADCASTING, listener=lambda messages, context: RECONSUME_LATER)
    send(cluster, ["a"])
    cluster.run_ms(30_000)
    assert cluster.bodies == ["a"]
    assert cluster.events("MessageGivenBack") == []


def test_a_client_dies_with_its_process(cluster: Any) -> None:
    consumer = cluster.consumer("c1")
    producer = cluster.producer("p1")
    for name in ("c1", "p1"):
        cluster.node(name).boot = lambda node: None
        cluster.fault("crash", name)
        cluster.fault("restart", name)
    with pytest.raises(MQClientException, match="this consumer died with its process on c1"):
        consumer.shutdown().play()
    with pytest.raises(MQClientException, match="this producer died with its process on p1"):
        producer.send(Message("T", "x")).play()
    cluster.consumer("c1")
    cluster.producer("p1").send(Message("T", "x")).play()


def test_an_expression_without_any_tag_is_refused(cluster: Any) -> None:
    consumer = cluster.new_consumer()
    with pytest.raises(MQClientException, match="subscription exception: subString split error"):
        consumer.subscribe("T", "||")


def test_a_running_consumer_can_subscribe_to_one_more_topic(cluster: Any) -> None:
    cluster.create_topic("U", 1)
    consumer = cluster.consumer()
    cluster.run_ms(3_000)
    consumer.subscribe("U")
    send(cluster, ["from U"], topic="U")
    cluster.run_ms(60_000)
    assert cluster.bodies == ["from U"]


def test_consume_from_timestamp_is_in_utc_and_half_an_hour_back_by_default(cluster: Any) -> None:
    consumer = cluster.new_consumer(consume_timestamp="20260101000030")
    assert consumer.timestamp_ms(0) == 1_767_225_630_000
    assert cluster.new_consumer().timestamp_ms(1_767_225_600_000) == 1_767_225_600_000 - 1_800_000


def test_a_consumer_without_name_server_does_not_start(cluster: Any) -> None:
    consumer = cluster.new_consumer(namesrv_addr=None)
    with pytest.raises(MQClientException, match="No name server address, please set it"):
        consumer.start().play()
    assert cluster.requests("consumer") == []


def test_a_group_that_the_broker_does_not_know_gets_no_queue_and_the_trace_says_why(make_cluster: Any) -> None:
    cluster = make_cluster(auto_create_subscription_group=False, queues=1)
    cluster.consumer()
    cluster.run_ms(10_000)
    assert cluster.requests("consumer").count("PULL_MESSAGE") == 0
    reason = next(event[3] for event in cluster.events("RebalanceSkipped") if event[2] == "T")
    assert reason.startswith("no broker told the members of the group: CODE: 1  DESC: no consumer for this group, G")


def test_a_topic_that_nobody_has_is_waited_for(cluster: Any) -> None:
    cluster.consumer(topic="LATER")
    cluster.run_ms(21_000)
    assert ("LATER", "no queues of the topic are known") in [event[2:] for event in cluster.events("RebalanceSkipped")]
    send(cluster, ["at last"], topic="LATER")
    cluster.run_ms(60_000)
    assert cluster.bodies == ["at last"]


def test_threads_that_overtake_each_other_never_take_an_offset_back(make_cluster: Any) -> None:
    cluster = make_cluster(seed=1, queues=1)
    cluster.world.tie_is_choice = True
    consumer = cluster.consumer()
    send(cluster, [f"m{k}" for k in range(30)])
    cluster.run_ms(5_000)
    assert sorted(cluster.bodies) == sorted(f"m{k}" for k in range(30))
    assert consumer.impl.offset_store.read_from_memory(MessageQueue("T", "broker-a", 0)) == 30


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_listener_that_returns_none_is_told_once_what_rocketmq_makes_of_it(cluster: Any, kind: str) -> None:
    async def later(messages: Any, context: Any) -> None:
        await context.sleep(5)

    cluster.consumer(listener=later if kind == "coroutine" else lambda messages, context: None)
    producer = cluster.producer()
    for body in "ab":
        producer.send(Message("T", body)).play()
    with pytest.warns(ListenerReturnedNone) as told:
        cluster.run_ms(30_000)
    (warning,) = told
    assert str(warning.message) == (
        "the listener of group 'G' returned None, as a function without a return statement does. RocketMQ takes that "
        "as RECONSUME_LATER, so the same message comes again. Where it is consumed, "
        "return ConsumeConcurrentlyStatus.CONSUME_SUCCESS"
    )
    assert cluster.bodies.count("a") > 1
