"""A client's process that is started again has everything that the client was given, as a program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.client import (
    ConsumeMessageHook,
    ConsumeOrderlyStatus,
    MessageListenerOrderly,
    MessageQueue,
    RemoteBrokerOffsetStore,
    ServiceState,
)
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.producer.hooks import CheckForbiddenHook, SendMessageHook
from mqlab.errors import SimulationError
from tests.worlds import send, shop, started_producer, succeed

NODE = "machine"


class Watching(ConsumeMessageHook):
    """Notes the bodies that go to the application."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def consume_message_before(self, context: Any) -> None:
        self.seen.extend(message.body for message in context.messages)


class Sending(SendMessageHook):
    """Counts the attempts to send."""

    attempts = 0

    def send_message_before(self, context: Any) -> None:
        self.attempts += 1


class Listening(MessageListenerOrderly):
    """Takes everything."""

    def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        return ConsumeOrderlyStatus.SUCCESS


@pytest.fixture
def lab() -> Lab:
    return shop(queues=2)


def start_again(lab: Lab) -> None:
    lab.run_for(seconds=3)
    lab.crash(NODE)
    lab.restart(NODE)
    lab.run_for(seconds=3)


def drop_bad(context: Any) -> None:
    context.msg_list = [message for message in context.msg_list if message.body != b"bad"]


def test_a_producer_keeps_its_topics_hooks_and_codes_of_retry(lab: Lab) -> None:
    producer = lab.producer("P", node=NODE, topics=["T"])
    hook = Sending()
    producer.register_send_message_hook(hook)
    producer.register_check_forbidden_hook(CheckForbiddenHook())
    producer.retry_response_codes.add(17_000)
    lab.run(producer.start())
    start_again(lab)
    assert producer.impl.publish_topic_list() == ["T"], "its route was asked for at the start, as the first time"
    lab.run(producer.send(Message("T", "a")))
    assert hook.attempts == 1
    assert len(producer.check_forbidden_hooks) == 1
    assert 17_000 in producer.retry_response_codes


@pytest.mark.parametrize("orderly", [False, True])
def test_a_push_consumer_keeps_its_listeners_hooks_and_store(lab: Lab, orderly: bool) -> None:
    consumer = lab.consumer("G", node=NODE)
    heard: list[int] = []
    made: list[str] = []

    def store(instance: Any, group: str) -> RemoteBrokerOffsetStore:
        made.append(group)
        return RemoteBrokerOffsetStore(instance, group)

    hook = Watching()
    consumer.subscription["T"] = "*"
    consumer.subscribe("other", "A || B")
    consumer.register_message_listener(Listening() if orderly else succeed)
    consumer.register_consume_message_hook(hook)
    consumer.register_filter_message_hook(drop_bad)
    consumer.message_queue_listener = lambda topic, every, mine: heard.append(len(mine))
    consumer.offset_store = store
    lab.run(consumer.start())
    start_again(lab)
    lab.run_for(seconds=60 if orderly else 0)  # so long the broker keeps the locks of the killed process
    assert heard.count(2) == 2, "both queues of T: at the start and at the restart"
    assert made == ["G", "G"]
    assert consumer.impl.rebalance_impl.subscription_inner["other"].tags_set == {"A", "B"}
    send(started_producer(lab, "orders", node="sender"), "good", "bad")
    lab.run_for(ms=100)
    assert hook.seen == [b"good"]


def test_a_topic_that_was_given_up_stays_given_up(lab: Lab) -> None:
    consumer = lab.consumer("G", node=NODE)
    consumer.subscribe("T", "*")
    consumer.subscribe("other", "*")
    consumer.unsubscribe("other")
    consumer.register_message_listener(succeed)
    lab.run(consumer.start())
    start_again(lab)
    assert sorted(consumer.impl.rebalance_impl.subscription_inner) == ["%RETRY%G", "T"]


@pytest.mark.parametrize("kind", ["pull_consumer", "lite_pull_consumer"])
def test_a_consumer_that_pulls_keeps_its_hooks_and_its_queue_listener(lab: Lab, kind: str) -> None:
    make: Callable[..., Any] = getattr(lab, kind)
    consumer = make("G", node=NODE)
    heard: list[int] = []
    hook = Watching()
    consumer.register_consume_message_hook(hook)
    consumer.register_filter_message_hook(drop_bad)

    def listener(topic: str, every: Any, mine: Any) -> None:
        heard.append(len(mine))

    if kind == "pull_consumer":
        consumer.register_message_queue_listener("T", listener)
    else:
        consumer.subscribe("T", "*", listener)
    lab.run(consumer.start())
    start_again(lab)
    assert heard == [2, 2]
    send(started_producer(lab, "orders", node="sender"), *["good", "bad"] * 4)
    lab.run_for(ms=100)
    queue = MessageQueue("T", "broker-a", 0)
    for _ in range(2):
        lab.run(consumer.pull(queue, "*", 0, 32) if kind == "pull_consumer" else consumer.poll())
    assert set(hook.seen) == {b"good"}


def test_a_name_of_its_own_is_kept_and_one_made_from_the_process_is_made_again(lab: Lab) -> None:
    named, unnamed = lab.producer("P", node=NODE), lab.producer("Q", node=NODE)
    named.instance_name = "shop"
    for producer in (named, unnamed):
        lab.run(producer.start())
    first = unnamed.instance_name
    start_again(lab)
    assert named.instance_name == "shop"
    assert unnamed.instance_name != first
    assert unnamed.instance_name.startswith(f"{unnamed.node.spec.pid}#")


def by_condition(lab: Lab, condition: str = "amount > 100") -> Any:
    """A consumer with a subscription by SQL92 on the machine, started."""
    consumer = lab.consumer("large-ones", node=NODE)
    consumer.subscribe("T", MessageSelector.by_sql(condition))
    consumer.register_message_listener(succeed)
    lab.run(consumer.start())
    return consumer


def test_a_consumer_that_has_to_ask_a_broker_is_started_until_that_can_be_asked() -> None:
    """CHECK_CLIENT_CONFIG needs a broker; while none can be reached each start fails, also behind a second restart."""
    lab = shop(queues=2, enable_property_filter=True)
    consumer = by_condition(lab)
    lab.act("partition", left=["broker-a"], right=[NODE])
    start_again(lab)
    lab.run_for(seconds=10)
    assert [record for record in lab.history.find("ClientStopped") if record.group == "large-ones"]
    assert not consumer.impl.rebalance_impl.process_queue_table
    lab.crash(NODE)
    lab.restart(NODE)
    lab.run_for(seconds=10)
    lab.act("unpartition", left=["broker-a"], right=[NODE])
    lab.run_for(seconds=30)
    assert consumer.impl.service_state is ServiceState.RUNNING
    assert len(consumer.impl.rebalance_impl.process_queue_table) > 0
    assert consumer.impl.instance.consumer_table == {"large-ones": consumer.impl}


def test_what_a_broker_refuses_at_a_restart_ends_the_world() -> None:
    lab = shop(queues=2, enable_property_filter=True)
    by_condition(lab)
    lab.brokers[0].running().broker_config.enable_property_filter = False
    with pytest.raises(SimulationError, match="does not support consumer to filter message by SQL92"):
        start_again(lab)
