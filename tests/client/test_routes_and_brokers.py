"""Which queues and which brokers a client turns to: by the route, by the last answer, and when a broker is gone."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    DefaultLitePullConsumer,
    DefaultMQPullConsumer,
    Message,
    MessageQueue,
)
from mqlab.client.topic_publish_info import queues_to_publish
from mqlab.namesrv import AddressServer
from mqlab.protocol.route import BrokerData, QueueData, TopicRouteData, queues_to_subscribe

QUEUE = MessageQueue("T", "broker-a", 0)
READ, WRITE = 4, 2


def route(order_topic_conf: str | None = None) -> TopicRouteData:
    """Of broker-a only the queues to be read from may be read, broker-b has no master at present."""
    return TopicRouteData(
        [
            QueueData("broker-c", 2, 1, READ | WRITE, 0),
            QueueData("broker-a", 1, 1, READ, 0),
            QueueData("broker-b", 1, 1, READ | WRITE, 0),
            QueueData("broker-d", 1, 1, WRITE, 0),
        ],
        [
            BrokerData("C", "broker-a", {0: "10.0.0.2:10911"}),
            BrokerData("C", "broker-b", {1: "10.0.0.3:10911"}),
            BrokerData("C", "broker-c", {0: "10.0.0.4:10911"}),
            BrokerData("C", "broker-d", {0: "10.0.0.5:10911"}),
        ],
        order_topic_conf=order_topic_conf,
    )


def test_a_producer_takes_writable_queues_of_brokers_with_a_master_and_a_consumer_all_readable_ones() -> None:
    assert queues_to_publish("T", route()) == (
        [MessageQueue("T", "broker-c", 0), MessageQueue("T", "broker-d", 0)],
        False,
    )
    assert sorted(queues_to_subscribe("T", route())) == [
        MessageQueue("T", "broker-a", 0),
        MessageQueue("T", "broker-b", 0),
        MessageQueue("T", "broker-c", 0),
        MessageQueue("T", "broker-c", 1),
    ]


def test_the_order_of_an_ordered_topic_comes_before_the_queues_of_its_route() -> None:
    assert queues_to_publish("T", route("broker-b:2;broker-a:1")) == (
        [MessageQueue("T", "broker-b", 0), MessageQueue("T", "broker-b", 1), MessageQueue("T", "broker-a", 0)],
        True,
    )


def test_a_queue_is_pulled_from_the_broker_that_the_last_answer_suggests_or_the_user_names(
    cluster: Any, consumer: Any
) -> None:
    cluster.run_ms(2_000)
    wrapper, routes = consumer.impl.pull_api_wrapper, consumer.impl.instance.routes
    master, slave = routes.broker_addr_table["broker-a"][0], "10.0.0.77:10911"
    routes.broker_addr_table["broker-a"][1] = slave
    assert wrapper.find_broker(QUEUE) == (master, False)
    wrapper.pull_from_which_node_table[QUEUE] = 1
    found = wrapper.find_broker(QUEUE)
    assert found == (slave, True)
    header = wrapper.pull_header(found, QUEUE, None, "TAG", 0, 0, 32, 0, 0b11, 7, 15_000)
    assert header.sys_flag == 0b10, "a slave takes no offset commits"
    wrapper.connect_broker_by_user = True
    assert wrapper.find_broker(QUEUE) == (master, False)
    wrapper.connect_broker_by_user = False
    del routes.broker_addr_table["broker-a"][1]
    assert wrapper.find_broker(QUEUE) == (master, False), "any broker of the name is better than none"


def test_the_last_answer_for_a_queue_is_where_the_suggestion_comes_from(cluster: Any) -> None:
    cluster.brokers["broker-a"].broker_config.slave_read_enable = True
    cluster.brokers["broker-a"].subscription_group_manager.find_subscription_group_config("G").broker_id = 5
    consumer = cluster.consumer()
    cluster.producer().send(Message("T", "x")).play()
    cluster.run_ms(2_000)
    assert consumer.impl.pull_api_wrapper.pull_from_which_node_table[QUEUE] == 5


def test_when_its_broker_is_gone_a_copy_of_the_message_goes_to_the_retry_topic_on_another(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)

    def listener(messages: Any, context: Any) -> Any:
        if len(cluster.delivered) > 1:
            return CONSUME_SUCCESS
        cluster.fault("crash", "broker-a")
        return RECONSUME_LATER

    cluster.consumer(listener=listener)
    cluster.run_ms(25_000)
    cluster.producer().send(Message("T", "x"), queue=QUEUE).play()
    # Whether the copy is first sent to the broker that is gone is a matter of whose turn it is; here it is.
    cluster.run_ms(15_000)
    assert not cluster.events("SendBackFailed")
    copies = [event[1] for event in cluster.events("SendAttempted", "consumer") if event[0] == "%RETRY%G"]
    assert copies == ["broker-a", "broker-b"]
    first, again = cluster.delivered
    assert (again.topic, again.body) == ("T", "x")
    assert 10_000 <= again.at_ms - first.at_ms <= 10_200
    # As in RocketMQ: the first attempt takes the number of tries off the message, so that the second has none to send.
    assert again.reconsume_times == 0


def test_a_frozen_offset_stays_until_the_queue_is_taken_anew(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(2_000)
    store = consumer.impl.offset_store
    store.update_and_freeze_offset(QUEUE, 7)
    store.update_offset(QUEUE, 50, increase_only=True)
    store.update_offset(QUEUE, 3, increase_only=False)
    assert store.read_from_memory(QUEUE) == 7
    store.remove_offset(QUEUE)
    store.update_offset(QUEUE, 3, increase_only=False)
    assert store.read_from_memory(QUEUE) == 3


@pytest.mark.parametrize("kind", ["push", "pull", "lite"])
def test_a_consumer_needs_no_name_server_of_its_own_where_an_address_server_knows_one(cluster: Any, kind: str) -> None:
    cluster.producer().send(Message("T", "x")).play()
    server = AddressServer(cluster.node("addresses"), "10.0.0.1:9876")
    server.start()
    settings = {"namesrv_addr": None, "namesrv_domain": server.address}
    if kind == "push":
        cluster.consumer(**settings)
        cluster.run_ms(2_000)
        assert cluster.bodies == ["x"]
        return
    if kind == "pull":
        pulling = DefaultMQPullConsumer(cluster.node("pull"), "G", **settings)
        pulling.start().play()
        found = pulling.pull(QUEUE, "*", 0, 32).play().msg_found_list
    else:
        settings["consume_from_where"] = "CONSUME_FROM_FIRST_OFFSET"
        lite = DefaultLitePullConsumer(cluster.node("lite"), "G", **settings)
        lite.subscribe("T")
        lite.start().play()
        found = lite.poll().play()
    assert [message.body for message in found] == [b"x"]
