"""The pull consumer: it asks for messages itself, keeps its offsets, and shares queues when it registered a topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import Message, MessageQueue
from mqlab.client import (
    ConsumeFromWhere,
    ConsumeMessageHook,
    DefaultMQPullConsumer,
    MessageExt,
    MessageModel,
    MessageSelector,
    PullCallback,
    PullStatus,
    RemoteBrokerOffsetStore,
)
from mqlab.client.consumer.listener import ListenerRaised
from mqlab.errors import (
    LearnerError,
    MQBrokerException,
    MQClientException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol import RequestCode
from mqlab.protocol.heartbeat import ConsumeType
from tests import worlds

Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


class Shop:
    """A lab with one name server, one broker and the topic T."""

    def __init__(self, queues: int = 2, **broker: Any) -> None:
        self.lab = worlds.shop(queues=queues, **broker)
        self.producer = self.lab.producer("PG")
        self.run(self.producer.start())

    def run(self, call: Any) -> Any:
        return self.lab.run(call)

    def send(self, *bodies: str, queue: MessageQueue = Q0, tags: str = "") -> None:
        for body in bodies:
            self.run(self.producer.send(Message("T", body, tags=tags), queue=queue))

    def consumer(self, group: str = "G", *, node: str = "", topic: str = "", **settings: Any) -> DefaultMQPullConsumer:
        """A started consumer; with a topic it takes part in sharing its queues."""
        consumer = self.lab.pull_consumer(group, node=node, **settings)
        if topic:
            consumer.register_message_queue_listener(topic)
        self.run(consumer.start())
        return consumer

    def requests(self, node: str, name: str) -> list[Any]:
        return list(self.lab.history.find("RequestSent", node=node, request_name=name))


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def consumer(shop: Shop) -> DefaultMQPullConsumer:
    """A started consumer that takes no part in sharing queues."""
    return shop.consumer()


def bodies(messages: list[MessageExt]) -> list[str]:
    return [message.body.decode() for message in messages]


def consumer_of_hung_broker(shop: Shop) -> DefaultMQPullConsumer:
    """A consumer whose next heartbeat is far away: one that times out closes the connection for all calls."""
    consumer = shop.consumer(enable_rebalance=False)
    shop.run(consumer.pull(Q0, "*", 0, 32))
    shop.lab.run_for(ms=1_500)
    shop.lab.freeze("broker-a")
    return consumer


# -- pulling --------------------------------------------------------------------------------------------------------


def test_a_pull_brings_what_is_there_from_an_offset_on(shop: Shop) -> None:
    shop.send("a", "b", "c")
    result = shop.run(shop.consumer().pull(Q0, "*", 1, 32))
    assert result.pull_status is PullStatus.FOUND
    assert bodies(result.msg_found_list) == ["b", "c"]
    assert (result.next_begin_offset, result.min_offset, result.max_offset) == (3, 0, 3)


def test_a_pull_brings_at_most_so_many_messages(shop: Shop) -> None:
    shop.send(*"abcde")
    result = shop.run(shop.consumer().pull(Q0, "*", 0, 2))
    assert bodies(result.msg_found_list) == ["a", "b"]
    assert result.next_begin_offset == 2


def test_a_broker_gives_32_messages_however_many_are_asked_for(shop: Shop) -> None:
    shop.send(*[f"m{k}" for k in range(40)])
    result = shop.run(shop.consumer().pull(Q0, "*", 0, 100))
    assert len(result.msg_found_list) == 32


def test_a_pull_of_an_empty_queue_is_answered_at_once(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    shop.run(consumer.pull(Q0, "*", 0, 32))
    begin_ms = shop.lab.now_ms
    result = shop.run(consumer.pull(Q0, "*", 0, 32))
    assert result.pull_status is PullStatus.NO_NEW_MSG
    assert shop.lab.now_ms - begin_ms < 2


def test_a_pull_beyond_the_end_says_that_its_offset_is_illegal_and_where_to_go_on(shop: Shop) -> None:
    shop.send("a", "b")
    result = shop.run(shop.consumer().pull(Q0, "*", 77, 32))
    assert result.pull_status is PullStatus.OFFSET_ILLEGAL
    assert result.next_begin_offset == 2


def test_a_pull_of_tags_brings_no_others_and_goes_on_behind_them(shop: Shop) -> None:
    shop.send("paid", tags="paid")
    shop.send("open", tags="open")
    consumer = shop.consumer()
    assert bodies(shop.run(consumer.pull(Q0, "paid || gone", 0, 32)).msg_found_list) == ["paid"]
    nothing = shop.run(consumer.pull(Q0, "gone", 0, 32))
    assert nothing.pull_status is PullStatus.NO_MATCHED_MSG
    assert (nothing.msg_found_list, nothing.next_begin_offset) == ([], 2)


def test_a_pull_with_sql_needs_a_broker_that_filters(shop: Shop) -> None:
    condition = MessageSelector.by_sql("amount > 100")
    with pytest.raises(MQBrokerException, match="The broker does not support consumer to filter message by SQL92"):
        shop.run(shop.consumer().pull(Q0, condition, 0, 32))


def test_a_selector_of_tags_is_the_same_as_their_text(shop: Shop) -> None:
    shop.send("paid", tags="paid")
    result = shop.run(shop.consumer().pull(Q0, MessageSelector.by_tag("paid"), 0, 32))
    assert bodies(result.msg_found_list) == ["paid"]


def test_the_pull_carries_its_subscription_and_commits_nothing(shop: Shop) -> None:
    shop.run(shop.consumer(node="C").pull(Q0, "*", 0, 32))
    (asked,) = shop.lab.history.find("PullRequested", node="C")
    assert (asked.sys_flag, asked.commit_offset) == (0b100, 0)


def test_a_pull_gives_up_after_10_seconds_or_after_its_own_time(shop: Shop) -> None:
    consumer = consumer_of_hung_broker(shop)
    for timeout, expected_ms in ((None, 10_000), (700, 700)):
        begin_ms = shop.lab.now_ms
        with pytest.raises(RemotingTimeoutException):
            shop.run(consumer.pull(Q0, "*", 0, 32, timeout))
        assert shop.lab.now_ms - begin_ms == pytest.approx(expected_ms, abs=1)


def test_a_broker_that_nobody_knows_is_an_error(shop: Shop) -> None:
    with pytest.raises(MQClientException, match=r"The broker\[broker-z\] not exist"):
        shop.run(shop.consumer().pull(MessageQueue("T", "broker-z", 0), "*", 0, 32))


def test_the_answer_of_a_broker_that_refuses_is_an_error(shop: Shop) -> None:
    with pytest.raises(MQBrokerException, match="queueId"):
        shop.run(shop.consumer().pull(MessageQueue("T", "broker-a", 9), "*", 0, 32))


# -- pulling that waits at the broker -------------------------------------------------------------------------------


def test_a_blocking_pull_waits_for_the_next_message(shop: Shop) -> None:
    consumer = shop.consumer(node="C")
    waiting = consumer.pull_block_if_not_found(Q0, "*", 0, 32).start()
    shop.lab.run_for(seconds=3)
    assert not waiting.done
    shop.send("late")
    assert bodies(shop.run(waiting).msg_found_list) == ["late"]
    assert shop.lab.now_ms < 3_200
    (asked,) = shop.lab.history.find("PullRequested", node="C")
    assert asked.sys_flag == 0b110


def test_a_blocking_pull_is_answered_after_20_seconds_at_the_pass_that_finds_it_due(
    shop: Shop, consumer: DefaultMQPullConsumer
) -> None:
    begin_ms = shop.lab.now_ms
    result = shop.run(consumer.pull_block_if_not_found(Q0, "*", 0, 32))
    assert result.pull_status is PullStatus.NO_NEW_MSG
    assert 20_000 <= shop.lab.now_ms - begin_ms <= 25_100


def test_a_blocking_pull_gives_up_after_30_seconds(shop: Shop) -> None:
    consumer = consumer_of_hung_broker(shop)
    begin_ms = shop.lab.now_ms
    with pytest.raises(RemotingTimeoutException):
        shop.run(consumer.pull_block_if_not_found(Q0, "*", 0, 32))
    assert shop.lab.now_ms - begin_ms == pytest.approx(30_000, abs=1)


# -- pulling without waiting ----------------------------------------------------------------------------------------


def test_an_asynchronous_pull_calls_a_function_back(shop: Shop) -> None:
    shop.send("a")
    heard: list[Any] = []
    consumer = shop.consumer()
    shop.run(consumer.pull_async(Q0, "*", 0, 32, lambda result, error: heard.append((result, error))))
    shop.lab.run_until(lambda: bool(heard))
    ((result, error),) = heard
    assert bodies(result.msg_found_list) == ["a"]
    assert error is None


def test_an_asynchronous_pull_calls_the_methods_of_a_callback(shop: Shop) -> None:
    heard: list[str] = []

    class Hearing(PullCallback):
        async def on_success(self, result: Any) -> None:
            heard.append(str(result.pull_status))

        def on_exception(self, error: Exception) -> None:
            heard.append(type(error).__name__)

    consumer = shop.consumer()
    shop.run(consumer.pull_async(Q0, "*", 0, 32, Hearing()))
    shop.run(consumer.pull_async(MessageQueue("T", "broker-a", 9), "*", 0, 32, Hearing()))
    shop.lab.run_for(seconds=1)
    shop.lab.freeze("broker-a")
    shop.run(consumer.pull_async(Q0, "*", 0, 32, Hearing(), 500))
    shop.lab.run_for(seconds=5)
    assert heard == ["NO_NEW_MSG", "MQBrokerException", "RemotingTimeoutException"]


def test_an_asynchronous_pull_can_wait_at_the_broker(shop: Shop) -> None:
    heard: list[list[str]] = []
    consumer = shop.consumer()
    call = consumer.pull_block_if_not_found_async(
        Q0, "*", 0, 32, lambda result, error: heard.append(bodies(result.msg_found_list))
    )
    shop.run(call)
    shop.lab.run_for(seconds=2)
    assert heard == []
    shop.send("late")
    shop.lab.run_for(ms=200)
    assert heard == [["late"]]


@pytest.mark.parametrize("wait", [False, True])
def test_a_callback_that_raises_changes_nothing_and_an_event_tells(shop: Shop, wait: bool) -> None:
    async def slowly(result: Any, error: Any) -> None:
        raise ValueError("no idea")

    def at_once(result: Any, error: Any) -> None:
        raise ValueError("no idea")

    consumer = shop.consumer()
    shop.run(consumer.pull_async(Q0, "*", 0, 32, slowly if wait else at_once))
    failed = shop.lab.run_until_event("PullCallbackFailed")
    assert failed.reason == "ValueError: no idea"
    assert shop.run(consumer.pull(Q0, "*", 0, 32)).pull_status is PullStatus.NO_NEW_MSG


# -- what is wrong with a call --------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no queue": (lambda c: c.pull(None, "*", 0, 32), MQClientException, "mq is null"),
    "a negative offset": (lambda c: c.pull(Q0, "*", -1, 32), MQClientException, "offset < 0"),
    "no messages": (lambda c: c.pull(Q0, "*", 0, 0), MQClientException, "maxNums <= 0"),
    "no tags": (lambda c: c.pull(Q0, "||", 0, 32), MQClientException, "parse subscription error"),
    "no condition": (lambda c: c.pull(Q0, MessageSelector.by_sql(""), 0, 32), MQClientException, "can't be null"),
    "a topic for a queue": (lambda c: c.pull("T", "*", 0, 32), LearnerError, "pulls from a queue"),
    "a number for tags": (lambda c: c.pull(Q0, 7, 0, 32), LearnerError, "pulls with a text"),
    "a text for an offset": (lambda c: c.pull(Q0, "*", "0", 32), LearnerError, "offset is a whole number"),
    "half a message": (lambda c: c.pull(Q0, "*", 0, 1.5), LearnerError, "maxNums is a whole number"),
    "no callback": (lambda c: c.pull_async(Q0, "*", 0, 32, None), MQClientException, "pullCallback is null"),
    "a number for a callback": (lambda c: c.pull_async(Q0, "*", 0, 32, 7), LearnerError, "is not a callback"),
    "no bytes": (
        lambda c: c.pull_async(Q0, "*", 0, 32, print, max_size_in_bytes=0),
        MQClientException,
        "maxSizeInBytes <= 0",
    ),
    "a text for progress": (lambda c: c.update_consume_offset(Q0, "1"), LearnerError, "an offset is a whole number"),
    "no message": (lambda c: c.send_message_back("a", 3), LearnerError, "is not a message that was pulled"),
    "a missing argument": (lambda c: c.pull(Q0, "*"), LearnerError, "its arguments are"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_says_what_is_wrong(shop: Shop, name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        shop.run(call(shop.consumer()))


CALLS: dict[str, Callable[[Any], Any]] = {
    "pull": lambda c: c.pull(Q0, "*", 0, 32),
    "pull_block_if_not_found": lambda c: c.pull_block_if_not_found(Q0, "*", 0, 32),
    "pull_async": lambda c: c.pull_async(Q0, "*", 0, 32, print),
    "fetch_consume_offset": lambda c: c.fetch_consume_offset(Q0, True),
    "update_consume_offset": lambda c: c.update_consume_offset(Q0, 1),
    "persist": lambda c: c.persist(Q0),
    "min_offset": lambda c: c.min_offset(Q0),
    "max_offset": lambda c: c.max_offset(Q0),
    "search_offset": lambda c: c.search_offset(Q0, 0),
    "earliest_msg_store_time": lambda c: c.earliest_msg_store_time(Q0),
    "fetch_subscribe_message_queues": lambda c: c.fetch_subscribe_message_queues("T"),
    "fetch_message_queues_in_balance": lambda c: c.fetch_message_queues_in_balance("T"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_consumer_that_does_not_run_refuses_every_call(shop: Shop, name: str) -> None:
    consumer = shop.lab.pull_consumer("G")
    with pytest.raises(MQClientException, match=r"not in running status, CREATE_JUST.*start"):
        shop.run(CALLS[name](consumer))
    shop.run(consumer.start())
    shop.run(consumer.shutdown())
    with pytest.raises(MQClientException, match="not in running status, SHUTDOWN_ALREADY"):
        shop.run(CALLS[name](consumer))


# -- start and end --------------------------------------------------------------------------------------------------

BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "message model": ({"message_model": None}, "messageModel is null"),
    "strategy": ({"allocate_message_queue_strategy": None}, "allocateMessageQueueStrategy is null"),
    "suspend": (
        {"consumer_timeout_millis_when_suspend": 19_999},
        "consumerTimeoutMillisWhenSuspend must greater than brokerSuspendMaxTimeMillis",
    ),
    "name server": ({"namesrv_addr": ""}, "No name server address"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_setting_that_is_not_legal_is_found_at_the_start(shop: Shop, name: str) -> None:
    settings, text = BAD_SETTINGS[name]
    consumer = shop.lab.pull_consumer("G")
    for setting, value in settings.items():
        setattr(consumer, setting, value)
    with pytest.raises(MQClientException, match=text):
        shop.run(consumer.start())
    with pytest.raises(MQClientException, match="maybe started once, START_FAILED"):
        shop.run(consumer.start())


@pytest.mark.parametrize(
    ("group", "text"),
    [("", "blank"), ("a b", "illegal characters"), ("x" * 256, "longer"), ("DEFAULT_CONSUMER", "can not equal")],
)
def test_a_group_that_is_not_legal_is_found_at_the_start(shop: Shop, group: str, text: str) -> None:
    with pytest.raises(MQClientException, match=text):
        shop.run(shop.lab.pull_consumer(group).start())


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_one(shop: Shop) -> None:
    with pytest.raises(LearnerError, match="enable_rebalance"):
        shop.lab.pull_consumer("G", enable_rebalanc=False)


def test_a_group_is_there_once_in_an_instance_and_a_consumer_is_started_once(shop: Shop) -> None:
    consumer = shop.consumer(node="C", instance_name="one")
    with pytest.raises(MQClientException, match="service state not OK, maybe started once, RUNNING"):
        shop.run(consumer.start())
    second = shop.lab.pull_consumer("G", node="C", instance_name="one")
    with pytest.raises(MQClientException, match=r"The consumer group\[G\] has been created before"):
        shop.run(second.start())
    shop.run(consumer.shutdown())
    shop.run(consumer.shutdown())
    with pytest.raises(MQClientException, match="SHUTDOWN_ALREADY"):
        shop.run(consumer.start())
    shop.run(second.start())


def test_a_listener_and_hooks_have_to_be_functions(shop: Shop) -> None:
    consumer = shop.lab.pull_consumer("G")
    with pytest.raises(LearnerError, match="is not a listener"):
        consumer.register_message_queue_listener("T", 7)  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="name of a topic is a text"):
        consumer.register_message_queue_listener(None)  # type: ignore[arg-type]


def test_the_heartbeat_says_that_it_pulls_and_of_what(shop: Shop) -> None:
    consumer = shop.consumer(topic="T")
    (data,) = consumer.impl.instance.heartbeats.prepare().consumer_data_set
    assert data.group_name == "G"
    assert data.consume_type is ConsumeType.CONSUME_ACTIVELY
    assert data.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert [(s.topic, s.sub_string, s.sub_version) for s in data.subscription_data_set] == [("T", "*", 0)]
    consumer.add_register_subscriptions("T", MessageSelector.by_tag("paid"))
    assert [s.sub_string for s in consumer.impl.subscriptions()] == ["paid"]
    consumer.clear_register_subscriptions()
    assert [s.sub_string for s in consumer.impl.subscriptions()] == ["*"]


def test_its_client_id_ends_in_stream(shop: Shop) -> None:
    clustering = shop.consumer("G1", node="C1")
    broadcasting = shop.consumer("G2", node="C2", message_model=MessageModel.BROADCASTING)
    assert clustering.impl.instance.client_id.startswith(f"{clustering.node.spec.ip}@{clustering.node.spec.pid}#")
    assert clustering.impl.instance.client_id.endswith("@STREAM")
    assert broadcasting.impl.instance.client_id == f"{broadcasting.node.spec.ip}@DEFAULT@STREAM"


def test_the_start_asks_nobody_and_the_broker_hears_of_it_after_a_second(shop: Shop) -> None:
    shop.consumer(node="C", topic="T")
    assert list(shop.lab.history.find("RequestSent", node="C")) == []
    begin_us = shop.lab.world.now_us
    beat = shop.lab.run_until_event("HeartbeatAnswered", node="C")
    assert (beat.ts_us - begin_us) / 1_000 == pytest.approx(1_000, abs=5)


# -- queues ---------------------------------------------------------------------------------------------------------


def test_all_queues_of_a_topic_are_those_that_the_name_server_tells(
    shop: Shop, consumer: DefaultMQPullConsumer
) -> None:
    assert shop.run(consumer.fetch_subscribe_message_queues("T")) == [Q0, Q1]
    with pytest.raises(MQClientException, match="Can not find Message Queue for this topic, Nowhere"):
        shop.run(consumer.fetch_subscribe_message_queues("Nowhere"))


def test_members_that_registered_a_topic_share_its_queues(shop: Shop) -> None:
    first = shop.consumer(node="C1", topic="T")
    shop.lab.run_for(seconds=2)
    assert shop.run(first.fetch_message_queues_in_balance("T")) == [Q0, Q1]
    second = shop.consumer(node="C2", topic="T")
    shop.lab.run_for(seconds=2)
    assert shop.run(first.fetch_message_queues_in_balance("T")) == [Q0]
    assert shop.run(second.fetch_message_queues_in_balance("T")) == [Q1]
    shop.run(first.shutdown())
    shop.lab.run_for(seconds=2)
    assert shop.run(second.fetch_message_queues_in_balance("T")) == [Q0, Q1]


def test_the_listener_hears_all_queues_and_its_own(shop: Shop) -> None:
    heard: list[Any] = []
    consumer = shop.lab.pull_consumer("G", node="C1")
    consumer.register_message_queue_listener("T", lambda topic, mq_all, mine: heard.append((topic, mq_all, mine)))
    shop.run(consumer.start())
    shop.lab.run_for(seconds=2)
    shop.consumer(node="C2", topic="T")
    shop.lab.run_for(seconds=2)
    assert heard == [("T", [Q0, Q1], [Q0, Q1]), ("T", [Q0, Q1], [Q0])]


def test_a_listener_that_raises_is_told_of_and_changes_nothing(shop: Shop) -> None:
    def broken(topic: str, mq_all: Any, mine: Any) -> None:
        raise ValueError("no idea")

    consumer = shop.lab.pull_consumer("G")
    consumer.register_message_queue_listener("T", broken)
    shop.run(consumer.start())
    with pytest.warns(ListenerRaised, match="the queue listener of group 'G' raised ValueError: no idea"):
        shop.lab.run_for(seconds=2)
    assert [r.reason for r in shop.lab.history.find("QueueListenerFailed")] == ["ValueError: no idea"]
    assert shop.run(consumer.fetch_message_queues_in_balance("T")) == [Q0, Q1]


def test_whoever_pulls_a_topic_takes_part_in_its_rebalance(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    """As in RocketMQ: the first pull subscribes, so that the offsets of the queue are written by the timer, too."""
    shop.run(consumer.pull(Q0, "*", 0, 32))
    shop.lab.run_for(seconds=21)
    assert shop.run(consumer.fetch_message_queues_in_balance("T")) == [Q0, Q1]


def test_without_rebalance_it_takes_no_queues_and_pulls_all_the_same(shop: Shop) -> None:
    shop.send("a")
    consumer = shop.consumer(topic="T", enable_rebalance=False)
    shop.lab.run_for(seconds=25)
    assert shop.run(consumer.fetch_message_queues_in_balance("T")) == []
    assert bodies(shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list) == ["a"]


def test_a_broadcasting_consumer_takes_all_queues_at_the_first_round_after_20_seconds(shop: Shop) -> None:
    """No broker tells the members of a broadcasting group that one has come, so only the interval is left."""
    model = MessageModel.BROADCASTING
    members = [shop.consumer(node=node, topic="T", message_model=model) for node in ("C1", "C2")]
    begin_ms = shop.lab.now_ms
    for node, member in zip(("C1", "C2"), members, strict=True):
        shop.lab.run_until(lambda member=member: len(member.impl.rebalance_impl.process_queue_table) == 2)  # type: ignore[misc]
        assert shop.lab.now_ms - begin_ms == pytest.approx(20_000, abs=10)
        assert shop.requests(node, "GET_CONSUMER_LIST_BY_GROUP") == []


def test_a_pull_consumer_keeps_a_queue_that_it_never_pulls(shop: Shop) -> None:
    """The rule of 120 s without a pull is for push consumers."""
    shop.consumer(topic="T")
    shop.lab.run_for(seconds=300)
    assert list(shop.lab.history.find("QueueDropped")) == []


# -- offsets --------------------------------------------------------------------------------------------------------


def test_a_new_group_has_no_offset_and_memory_comes_before_the_store(shop: Shop) -> None:
    consumer = shop.consumer(node="C")
    assert shop.run(consumer.fetch_consume_offset(Q0, False)) == -1
    shop.run(consumer.update_consume_offset(Q0, 7))
    asked = len(shop.requests("C", "QUERY_CONSUMER_OFFSET"))
    assert shop.run(consumer.fetch_consume_offset(Q0, False)) == 7
    assert len(shop.requests("C", "QUERY_CONSUMER_OFFSET")) == asked
    assert shop.run(consumer.fetch_consume_offset(Q0, True)) == -1


def test_an_offset_that_cannot_be_read_is_minus_2(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    shop.run(consumer.pull(Q0, "*", 0, 32))
    shop.lab.crash("broker-a")
    assert shop.run(consumer.fetch_consume_offset(Q0, True)) == -2


def test_offsets_of_queues_held_go_to_the_broker_every_5_seconds_from_the_10th_on(shop: Shop) -> None:
    consumer = shop.consumer(node="C", topic="T")
    begin_us = shop.lab.world.now_us
    shop.lab.run_for(seconds=2)
    shop.run(consumer.update_consume_offset(Q0, 3))
    shop.lab.run_for(seconds=19)
    times = [round((r.ts_us - begin_us) / 1_000) for r in shop.requests("C", "UPDATE_CONSUMER_OFFSET")]
    assert times == [10_000, 15_000, 20_000]
    assert shop.run(consumer.fetch_consume_offset(Q0, True)) == 3


def test_an_offset_of_a_queue_that_is_not_held_is_forgotten_by_the_timer(shop: Shop) -> None:
    shop.lab.create_topic("Other", 1)
    consumer = shop.consumer(topic="Other")
    shop.run(consumer.update_consume_offset(Q0, 3))
    shop.lab.run_for(seconds=11)
    assert shop.run(consumer.fetch_consume_offset(Q0, False)) == -1


def test_an_offset_can_be_written_at_once(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    shop.run(consumer.pull(Q0, "*", 0, 32))
    shop.run(consumer.update_consume_offset(Q0, 3))
    shop.run(consumer.persist(Q0))
    assert shop.run(consumer.fetch_consume_offset(Q0, True)) == 3


def test_the_shutdown_writes_the_offsets_and_takes_leave(shop: Shop) -> None:
    consumer = shop.consumer(node="C", topic="T")
    shop.lab.run_for(seconds=2)
    shop.run(consumer.update_consume_offset(Q0, 3))
    before = len(list(shop.lab.history.find("RequestSent", node="C")))
    shop.run(consumer.shutdown())
    last = [r.request_name for r in shop.lab.history.find("RequestSent", node="C")][before:]
    assert last == ["UPDATE_CONSUMER_OFFSET", "UNREGISTER_CLIENT", "UNREGISTER_CLIENT"]
    other = shop.consumer(node="C2")
    assert shop.run(other.fetch_consume_offset(Q0, True)) == 3


def test_a_broadcasting_consumer_keeps_its_offsets_in_its_own_file(shop: Shop) -> None:
    consumer = shop.consumer(node="C", topic="T", message_model=MessageModel.BROADCASTING)
    shop.lab.run_for(seconds=21)
    shop.run(consumer.update_consume_offset(Q1, 5))
    shop.run(consumer.shutdown())
    assert shop.requests("C", "UPDATE_CONSUMER_OFFSET") == []
    path = f".rocketmq_offsets/{consumer.node.spec.ip}@DEFAULT@STREAM/G/offsets.json"
    assert ":5" in consumer.node.disk.read_bytes(path).decode().replace(" ", "")
    again = shop.consumer(node="C", topic="T", message_model=MessageModel.BROADCASTING)
    assert shop.run(again.fetch_consume_offset(Q1, False)) == 5


def test_a_store_of_ones_own_is_used(shop: Shop) -> None:
    seen: list[Any] = []

    class Watched(RemoteBrokerOffsetStore):
        def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
            seen.append((queue, offset))
            super().update_offset(queue, offset, increase_only)

    consumer = shop.lab.pull_consumer("G")
    consumer.offset_store = Watched
    shop.run(consumer.start())
    shop.run(consumer.update_consume_offset(Q0, 3))
    assert seen == [(Q0, 3)]


# -- questions ------------------------------------------------------------------------------------------------------


def test_the_ends_of_a_queue_and_what_lay_there_at_a_time(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    assert shop.run(consumer.earliest_msg_store_time(Q0)) == -1
    shop.send("a")
    shop.lab.run_for(seconds=10)
    middle_ms = consumer.node.now_ms()
    shop.lab.run_for(seconds=10)
    shop.send("b")
    shop.lab.run_for(ms=10)
    assert (shop.run(consumer.min_offset(Q0)), shop.run(consumer.max_offset(Q0))) == (0, 2)
    assert shop.run(consumer.search_offset(Q0, middle_ms)) == 1
    assert 0 < middle_ms - shop.run(consumer.earliest_msg_store_time(Q0)) <= 10_010


def test_a_question_that_nobody_answers_is_an_error_of_the_client(shop: Shop, consumer: DefaultMQPullConsumer) -> None:
    with pytest.raises(MQClientException, match=r"The broker\[broker-z\] not exist"):
        shop.run(consumer.max_offset(MessageQueue("T", "broker-z", 0)))
    shop.run(consumer.shutdown())
    consumer = consumer_of_hung_broker(shop)
    begin_ms = shop.lab.now_ms
    with pytest.raises(MQClientException, match=r"Invoke Broker\[10\.0\.0\.2:10911\] exception"):
        shop.run(consumer.max_offset(Q0))
    assert shop.lab.now_ms - begin_ms == pytest.approx(6_000, abs=1)


# -- giving back, hooks, restarts -----------------------------------------------------------------------------------


def test_a_message_given_back_comes_again_from_the_retry_topic(shop: Shop) -> None:
    shop.send("a")
    consumer = shop.consumer(node="C", topic="T")
    shop.lab.run_for(seconds=2)
    (message,) = shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list
    shop.run(consumer.send_message_back(message, 1))
    begin_ms = shop.lab.now_ms
    retry = MessageQueue("%RETRY%G", "broker-a", 0)
    (again,) = shop.run(consumer.pull_block_if_not_found(retry, "*", 0, 32)).msg_found_list
    assert shop.lab.now_ms - begin_ms == pytest.approx(1_000, abs=250)
    assert (again.body, again.reconsume_times) == (b"a", 1)
    assert again.properties["RETRY_TOPIC"] == "T"
    (back,) = shop.requests("C", "CONSUMER_SEND_MSG_BACK")
    assert back.request_code == int(RequestCode.CONSUMER_SEND_MSG_BACK)


def test_a_message_whose_broker_is_gone_goes_to_the_retry_topic_of_another() -> None:
    shop = Shop()
    shop.lab.broker("broker-b")
    shop.lab.create_topic("T", 2)
    shop.send("a")
    consumer = shop.consumer(node="C", topic="T")
    shop.lab.run_for(seconds=2)
    (message,) = shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list
    shop.lab.crash("broker-a")
    shop.run(consumer.send_message_back(message, 0))
    (given,) = shop.lab.history.find("MessageGivenBack", node="C")
    assert (given.group, given.topic, given.queue_offset) == ("G", "T", 0)
    stored = shop.lab.history.find("MessageStored", node="broker-b")
    assert [record.topic for record in stored] == ["SCHEDULE_TOPIC_XXXX"]


def test_a_broker_that_hangs_costs_3_seconds_before_a_copy_is_sent(shop: Shop) -> None:
    shop.send("a")
    consumer = consumer_of_hung_broker(shop)
    shop.lab.thaw("broker-a")
    (message,) = shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list
    shop.lab.freeze("broker-a")
    begin_ms = shop.lab.now_ms
    with pytest.raises(RemotingTooMuchRequestException, match="call timeout"):
        shop.run(consumer.send_message_back(message, 0))
    copying_ms = consumer.impl.instance.inner_producer.send_msg_timeout
    assert shop.lab.now_ms - begin_ms == pytest.approx(3_000 + copying_ms, abs=50)


def test_a_message_that_nobody_takes_back_is_an_error(shop: Shop) -> None:
    shop.send("a")
    consumer = shop.consumer(topic="T")
    shop.lab.run_for(seconds=2)
    (message,) = shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list
    shop.lab.crash("broker-a")
    with pytest.raises(MQClientException):
        shop.run(consumer.send_message_back(message, 0))
    assert list(shop.lab.history.find("MessageGivenBack")) == []


def test_hooks_see_and_filter_what_is_pulled(shop: Shop) -> None:
    seen: list[Any] = []

    class Watching(ConsumeMessageHook):
        def consume_message_before(self, context: Any) -> None:
            seen.append(("before", bodies(context.messages), context.success))

        def consume_message_after(self, context: Any) -> None:
            seen.append(("after", context.status, context.success))

    def drop_first(context: Any) -> None:
        del context.msg_list[0]

    shop.send("a", "b")
    consumer = shop.lab.pull_consumer("G")
    consumer.register_consume_message_hook(Watching())
    consumer.register_filter_message_hook(drop_first)
    shop.run(consumer.start())
    assert bodies(shop.run(consumer.pull(Q0, "*", 0, 32)).msg_found_list) == ["b"]
    assert seen == [("before", ["b"], False), ("after", "CONSUME_SUCCESS", True)]


def test_a_restarted_machine_has_its_consumer_again_with_what_was_registered(shop: Shop) -> None:
    heard: list[Any] = []
    consumer = shop.lab.pull_consumer("G", node="C", consumer_pull_timeout_millis=1_234)
    consumer.register_message_queue_listener("T", lambda topic, mq_all, mine: heard.append(mine))
    shop.run(consumer.start())
    shop.lab.run_for(seconds=2)
    shop.lab.crash("C")
    shop.lab.run_for(seconds=1)
    shop.lab.restart("C")
    shop.lab.run_for(seconds=3)
    assert heard == [[Q0, Q1], [Q0, Q1]]
    assert consumer.consumer_pull_timeout_millis == 1_234
    assert shop.run(consumer.fetch_message_queues_in_balance("T")) == [Q0, Q1]


def test_a_consumer_of_a_dead_process_says_so(shop: Shop) -> None:
    consumer = shop.consumer(node="C")
    impl = consumer.impl
    shop.lab.crash("C")
    shop.lab.restart("C")
    shop.lab.run_for(ms=1)
    with pytest.raises(MQClientException, match="died with its process"):
        impl.make_sure_state_ok()


def test_the_same_seed_gives_the_same_events_in_objects_and_bytes() -> None:
    def play(wire: str) -> str:
        lab = worlds.shop(seed=5, queues=2, wire=wire)
        producer, consumer = lab.producer("PG"), lab.pull_consumer("G")
        lab.run(producer.start())
        consumer.register_message_queue_listener("T")
        lab.run(consumer.start())
        lab.run(producer.send(Message("T", b"x"), queue=Q0))
        lab.run(consumer.pull(Q0, MessageSelector.by_tag("*"), 0, 32))
        lab.run(consumer.search_offset(Q0, 0))
        lab.run_for(seconds=5)
        return lab.trace_hash()

    assert play("objects") == play("bytes")


def test_what_it_looks_like(shop: Shop) -> None:
    consumer = shop.consumer(node="C", topic="T")
    shop.lab.run_for(seconds=2)
    assert repr(consumer) == "<DefaultMQPullConsumer G on C: RUNNING, 2 queues>"
    json.dumps(shop.lab.history.record(0).fields)
