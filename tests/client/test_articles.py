"""What the articles say of push consumers and sends, where no other test shows what is so."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    Message,
    MessageListenerOrderly,
    MessageModel,
    MessageQueue,
    ServiceState,
)
from mqlab.client.consumer.process_queue import ProcessQueue
from mqlab.client.consumer.pull_api_wrapper import PullStatus
from mqlab.client.consumer.push.consume_message_concurrently_service import ConsumeMessageConcurrentlyService
from mqlab.client.consumer.push.consume_message_orderly_service import ConsumeMessageOrderlyService
from mqlab.client.consumer.push.pull_request import PullRequest
from mqlab.errors import MQBrokerException, MQClientException
from mqlab.protocol import RemotingCommand
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.headers import PullMessageResponseHeader
from tests.worlds import slow

QUEUE = MessageQueue("T", "broker-a", 0)


def send(cluster: Any, *bodies: str, **properties: Any) -> None:
    producer = cluster.producer(f"producer-{len(cluster.world.nodes)}")
    for body in bodies:
        producer.send(Message("T", body, **properties)).play()


forever = slow(10_000_000)
"""A listener that does not come back."""


class InOrder(MessageListenerOrderly):
    """Consumes at once, and notes what."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def consume_message(self, messages: Any, context: Any) -> Any:
        self.bodies += [message.body for message in messages]
        return ConsumeOrderlyStatus.SUCCESS


# -- the start ------------------------------------------------------------------------------------------------------


def test_to_register_a_listener_only_stores_it_and_its_type_chooses_the_service(cluster: Any) -> None:
    for name, listener, service in (
        ("plain", lambda messages, context: CONSUME_SUCCESS, ConsumeMessageConcurrentlyService),
        ("orderly", InOrder(), ConsumeMessageOrderlyService),
    ):
        consumer = cluster.new_consumer(name, group=name)
        consumer.register_message_listener(listener)
        cluster.run_ms(2_000)
        assert cluster.requests(name) == []
        assert not hasattr(consumer.impl, "consume_message_service")
        consumer.start().play()
        assert type(consumer.impl.consume_message_service) is service


STEPS = (
    "_check_config",
    "_copy_subscription",
    "_find_instance",
    "_build_pulling",
    "_build_consuming",
    "_register",
    "instance.start",
    "_after_start",
)


def test_a_start_takes_its_steps_in_the_order_of_the_article_and_has_failed_until_the_last(cluster: Any) -> None:
    consumer = cluster.new_consumer()
    impl = consumer.impl
    taken: list[tuple[str, ServiceState]] = []

    def watched(owner: Any, attribute: str, name: str) -> None:
        step = getattr(owner, attribute)

        def take(*arguments: Any) -> Any:
            taken.append((name, impl.service_state))
            answer = step(*arguments)
            if name == "_find_instance":
                watched(impl.instance, "start", "instance.start")
            return answer

        setattr(owner, attribute, take)

    for name in STEPS:
        if name != "instance.start":
            watched(impl, name, name)
    assert impl.service_state is ServiceState.CREATE_JUST
    consumer.start().play()
    failed, running = ServiceState.START_FAILED, ServiceState.RUNNING
    assert taken == [(name, running if name == "_after_start" else failed) for name in STEPS]


def test_a_start_that_failed_stays_failed(cluster: Any) -> None:
    consumer = cluster.new_consumer(pull_batch_size=0)
    with pytest.raises(MQClientException, match="pullBatchSize"):
        consumer.start().play()
    consumer.pull_batch_size = 32
    with pytest.raises(MQClientException, match="maybe started once, START_FAILED"):
        consumer.start().play()
    first = cluster.consumer("first")
    first.impl.instance.service_state = ServiceState.START_FAILED
    with pytest.raises(MQClientException, match=r"The Factory object\[.*\] has been created before, and failed"):
        first.impl.instance.start()


def test_an_error_at_the_end_of_a_start_shuts_the_consumer_down(cluster: Any) -> None:
    consumer = cluster.new_consumer()
    consumer.subscribe_sql("T", "a > 1")
    with pytest.raises(MQClientException, match="SQL92"):
        consumer.start().play()
    assert consumer.impl.service_state is ServiceState.SHUTDOWN_ALREADY


@pytest.mark.parametrize("greeted", [True, False])
@pytest.mark.queues(0)
def test_the_start_asks_for_a_rebalance_only_if_its_greeting_went_out(cluster: Any, greeted: bool) -> None:
    if greeted:
        cluster.create_topic("T", 1)
    consumer = cluster.new_consumer()
    impl = consumer.impl
    asked: list[float] = []
    find = impl._find_instance

    def watched() -> None:
        find()
        impl.instance.rebalance_immediately = lambda: asked.append(cluster.now_ms)

    impl._find_instance = watched
    consumer.start().play()
    assert bool(asked) is greeted


def test_each_start_of_a_clustering_consumer_is_a_new_client_and_a_broadcasting_one_keeps_its_name(
    cluster: Any,
) -> None:
    ids: dict[MessageModel, list[str]] = {}
    for model in (MessageModel.CLUSTERING, MessageModel.BROADCASTING):
        for _ in range(2):
            consumer = cluster.consumer("c1", message_model=model)
            ids.setdefault(model, []).append(consumer.impl.instance.client_id)
            consumer.shutdown().play()
            cluster.run_ms(1)
    node = cluster.node("c1")
    first, second = ids[MessageModel.CLUSTERING]
    prefix = f"{node.spec.ip}@{node.spec.pid}#"
    assert first.startswith(prefix)
    assert second.startswith(prefix)
    nanoseconds = [int(client_id.removeprefix(prefix)) for client_id in (first, second)]
    assert nanoseconds[1] - nanoseconds[0] >= 1_000_000
    assert ids[MessageModel.BROADCASTING] == [f"{node.spec.ip}@DEFAULT"] * 2


def test_name_servers_are_written_with_semicolons_between_them(cluster: Any) -> None:
    consumer = cluster.consumer(namesrv_addr="10.0.0.1:9876; 10.0.0.99:9876")
    known = consumer.impl.instance.api.remoting_client.name_server_addresses
    assert sorted(known) == ["10.0.0.1:9876", "10.0.0.99:9876"]


# -- where to begin -------------------------------------------------------------------------------------------------


def test_a_group_that_begins_at_a_time_begins_at_the_end_of_its_retry_topic(cluster: Any) -> None:
    consumer = cluster.consumer(consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)
    cluster.run_ms(1_000)
    broker = cluster.brokers["broker-a"]
    broker.message_store.get_max_offset_in_queue = lambda *arguments: 7
    broker.consumer_offset_manager.offset_table.clear()
    retry = MessageQueue("%RETRY%G", "broker-a", 0)
    task = cluster.node("consumer").spawn(consumer.impl.rebalance_impl.compute_pull_from_where(retry), "begin")
    assert cluster.world.wait_for(task.join()) == 7


@pytest.mark.parametrize(
    "where",
    [
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
        ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
    ],
)
def test_three_old_names_begin_at_the_last_offset(cluster: Any, where: ConsumeFromWhere) -> None:
    send(cluster, "old")
    cluster.brokers["broker-a"].message_store.check_in_mem_by_consume_offset = lambda *arguments: False
    cluster.consumer(consume_from_where=where)
    cluster.run_ms(3_000)
    send(cluster, "new")
    cluster.run_ms(1_000)
    assert cluster.bodies == ["new"]


def test_to_find_where_to_begin_asks_the_offset_store_and_touches_no_route(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    rebalance = consumer.impl.rebalance_impl
    known = dict(rebalance.topic_subscribe_info_table)
    before = len(cluster.requests("consumer"))
    task = cluster.node("consumer").spawn(rebalance.compute_pull_from_where(QUEUE), "begin")
    assert cluster.world.wait_for(task.join()) == 0
    assert cluster.requests("consumer")[before:] == ["QUERY_CONSUMER_OFFSET"]
    assert rebalance.topic_subscribe_info_table == known


@pytest.mark.queues(2)
def test_a_queue_without_a_readable_offset_is_not_taken_and_one_that_is_held_is_not_taken_twice(cluster: Any) -> None:
    consumer = cluster.new_consumer()
    rebalance = consumer.impl.rebalance_impl
    compute = rebalance.compute_pull_from_where
    held: list[ProcessQueue] = []

    async def one_is_unreadable_and_one_was_taken_meanwhile(queue: MessageQueue) -> int:
        if queue == QUEUE:
            raise MQClientException("nobody knows")
        if queue.topic == "T" and not held:
            held.append(ProcessQueue(cluster.node("consumer")))
            rebalance.process_queue_table[queue] = held[0]
        offset: int = await compute(queue)
        return offset

    rebalance.compute_pull_from_where = one_is_unreadable_and_one_was_taken_meanwhile
    consumer.start().play()
    cluster.run_ms(1_500)
    other = MessageQueue("T", "broker-a", 1)
    assert QUEUE not in consumer.process_queues
    assert consumer.process_queues[other] is held[0]
    assert [event[2] for event in cluster.events("QueueAllocated")] == ["%RETRY%G"]


def test_an_offset_that_is_not_in_memory_is_minus_1(consumer: Any) -> None:
    assert consumer.impl.offset_store.read_from_memory(QUEUE) == -1


# -- the pull -------------------------------------------------------------------------------------------------------


@pytest.mark.queues(4)
def test_one_thread_pulls_all_queues_and_none_waits_for_another(cluster: Any) -> None:
    cluster.consumer()
    cluster.run_ms(3_000)
    pulls = [row for row in cluster.rows if row[7] == "PullRequested"]
    assert {(row[9], row[11]) for row in pulls} == {("T", 0), ("T", 1), ("T", 2), ("T", 3), ("%RETRY%G", 0)}
    assert {row[4] for row in pulls} == {"PullMessageService"}
    assert cluster.events("PullFinished") == [], "all of them are held at the broker, at the same time"


def test_a_pull_request_of_a_group_that_is_not_there_is_dropped(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    before = len(cluster.rows)
    service = consumer.impl.instance.pull_message_service
    service.execute_pull_request_immediately(PullRequest("gone", QUEUE, consumer.process_queues[QUEUE], 0))
    cluster.run_ms(5_000)
    assert len(service) == 0
    assert not [row for row in cluster.rows[before:] if row[7] in ("PullRequested", "PullPutOff")]


def test_the_wrapper_of_pulls_has_no_connection_and_calls_no_listener(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    wrapper = consumer.impl.pull_api_wrapper
    cluster.world.network.break_connections("consumer", "broker-a")
    cluster.run_ms(2_000)
    opened = [event for event in cluster.events("ConnectionOpened", "consumer") if event[1].endswith(":10911")]
    assert len(opened) == 2, "the remoting client has made a new one"
    assert consumer.impl.pull_api_wrapper is wrapper
    send(cluster, "a")
    cluster.run_ms(100)
    assert cluster.bodies == ["a"]
    found = wrapper.find_broker(QUEUE)
    subscription = consumer.impl.rebalance_impl.subscription_inner["T"]
    header = wrapper.pull_header(found, QUEUE, "*", "TAG", subscription.sub_version, 0, 32, 262_144, 4, 0, 0)
    task = cluster.node("consumer").spawn(wrapper.pull_sync(found, header, 3_000), "pull")
    result = wrapper.process_pull_result(QUEUE, cluster.world.wait_for(task.join()), subscription)
    assert [message.body for message in result.msg_found_list] == [b"a"]
    cluster.run_ms(100)
    assert cluster.bodies == ["a"], "what it has decoded it only hands back"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.SUCCESS, PullStatus.FOUND),
        (ResponseCode.PULL_NOT_FOUND, PullStatus.NO_NEW_MSG),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, PullStatus.NO_MATCHED_MSG),
        (ResponseCode.PULL_OFFSET_MOVED, PullStatus.OFFSET_ILLEGAL),
        (ResponseCode.SYSTEM_ERROR, None),
        (ResponseCode.NO_PERMISSION, None),
    ],
)
def test_four_codes_of_an_answer_are_pull_statuses_and_all_others_errors(
    cluster: Any, code: ResponseCode, status: PullStatus | None
) -> None:
    wrapper = cluster.consumer().impl.pull_api_wrapper
    answer = RemotingCommand.response(code, "", PullMessageResponseHeader(0, 5, 0, 9))
    if status is None:
        with pytest.raises(MQBrokerException):
            wrapper.process_pull_response(answer, "10.0.0.2:10911")
    else:
        assert wrapper.process_pull_response(answer, "10.0.0.2:10911").pull_status is status


@pytest.mark.parametrize(("interval_ms", "gap_ms"), [(0, 0), (700, 700)])
def test_after_found_messages_the_next_pull_comes_at_once_or_after_the_interval(
    cluster: Any, interval_ms: int, gap_ms: int
) -> None:
    send(cluster, "a")
    cluster.consumer(pull_interval=interval_ms)
    cluster.run_ms(4_000)
    (found,) = [row[2] for row in cluster.rows if row[7] == "PullFinished" and row[12] == "FOUND"]
    after = next(row[2] for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T" and row[2] >= found)
    assert (after - found) / 1_000 == pytest.approx(gap_ms, abs=1)


def test_when_the_filter_leaves_nothing_of_what_was_found_the_next_pull_comes_at_once(cluster: Any) -> None:
    send(cluster, "its tag has the hash code of Aa", tags="BB")
    cluster.consumer(tags="Aa", pull_interval=700)
    cluster.run_ms(4_000)
    (found,) = [row for row in cluster.rows if row[7] == "PullFinished" and row[9] == "T"]
    assert found[12:] == ("FOUND", 0, 1)
    after = next(row for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T" and row[2] >= found[2])
    assert after[2] - found[2] < 1_000
    assert after[12] == 1
    assert cluster.events("MessagesCached") == []


def test_an_illegal_offset_is_set_right_frozen_written_and_rebalanced_at_once(cluster: Any) -> None:
    send(cluster, "a", "b")
    manager = cluster.brokers["broker-a"].consumer_offset_manager
    manager.commit_offset("G", "T", 0, 50)
    consumer = cluster.new_consumer()
    store: list[Any] = []
    build = consumer.impl._build_pulling

    def watched() -> None:
        build()
        freeze = consumer.impl.offset_store.update_and_freeze_offset

        def noting(queue: MessageQueue, offset: int) -> None:
            freeze(queue, offset)
            consumer.impl.offset_store.update_offset(queue, 1, increase_only=False)
            store.append((offset, consumer.impl.offset_store.read_from_memory(queue)))

        consumer.impl.offset_store.update_and_freeze_offset = noting

    consumer.impl._build_pulling = watched
    consumer.start().play()
    cluster.run_ms(6_000)
    assert store == [(2, 2)], "a frozen offset takes no other one"
    illegal = next(row[2] for row in cluster.rows if row[7] == "PullFinished" and row[9] == "T")
    (dropped,) = [row[2] for row in cluster.rows if row[7] == "QueueDropped"]
    assert dropped == illegal
    assert manager.query_offset("G", "T", 0) == 2
    taken = [row[2] for row in cluster.rows if row[7] == "QueueAllocated" and row[10] == "T"]
    assert len(taken) == 2
    assert taken[1] - dropped < 2_000_000, "not at the next round of 20 s"


def test_an_orderly_queue_asks_for_its_offset_again_after_it_got_the_lock(cluster: Any) -> None:
    send(cluster, "a", "b")
    consumer = cluster.new_consumer()
    listener = InOrder()
    consumer.register_message_listener(listener)
    consumer.start().play()
    cluster.world.run_until(lambda: any(event[2] == "T" for event in cluster.events("QueueAllocated")))
    cluster.brokers["broker-a"].consumer_offset_manager.commit_offset("G", "T", 0, 1)
    cluster.run_ms(2_000)
    first = next(event for event in cluster.events("PullRequested") if event[1] == "T")
    assert first[4] == 1
    assert listener.bodies == [b"b"]


def test_a_retry_topics_failed_pull_is_told_as_any_other(cluster: Any) -> None:
    cluster.consumer()
    cluster.run_ms(3_000)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(500)
    assert {event[1] for event in cluster.events("PullPutOff")} == {"T", "%RETRY%G"}


# -- the listener ---------------------------------------------------------------------------------------------------


def test_a_listener_cannot_change_the_list_of_messages(cluster: Any) -> None:
    kinds: list[type] = []

    def listener(messages: Any, context: Any) -> Any:
        kinds.append(type(messages))
        return CONSUME_SUCCESS

    consumer = cluster.new_consumer()
    consumer.register_message_listener(listener)
    consumer.start().play()
    send(cluster, "a")
    cluster.run_ms(3_000)
    assert kinds == [tuple]


# -- sending --------------------------------------------------------------------------------------------------------


def test_each_asynchronous_send_is_a_request_of_its_own(cluster: Any, producer: Any) -> None:
    assert not producer.auto_batch
    outcomes: list[Any] = []
    for k in range(3):
        producer.send_async(Message("T", f"m{k}"), lambda result, error: outcomes.append(result or error)).play()
    cluster.run_ms(100)
    assert cluster.requests("producer").count("SEND_MESSAGE_V2") == 3
    assert "SEND_BATCH_MESSAGE" not in cluster.requests("producer")
    assert len(outcomes) == 3
