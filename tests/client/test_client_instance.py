"""The client instance: who shares one, its timers, what it tells the brokers, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import DefaultMQProducer, Message, MQClientManager, ServiceState
from mqlab.client.producer.default_mq_producer_impl import RETRY_RESPONSE_CODES
from mqlab.errors import MQBrokerException, MQClientException
from mqlab.namesrv import AddressServer

NAMESRV = "10.0.0.1:9876"


def sent_ms(cluster: Any, node: str, request: str, since_ms: float = 0) -> list[float]:
    """When a node sent requests of a kind, in ms since then."""
    return [
        row[2] / 1_000 - since_ms
        for row in cluster.rows
        if row[7] == "RequestSent" and row[3] == node and row[14] == request
    ]


# -- who shares an instance -----------------------------------------------------------------------------------------


def test_a_started_client_takes_its_process_id_for_the_default_instance_name(producer: Any) -> None:
    spec = producer.node.spec
    assert producer.instance_name.startswith(f"{spec.pid}#")
    assert producer.impl.instance.client_id == f"{spec.ip}@{producer.instance_name}"


@pytest.mark.parametrize(
    ("settings", "client_id"),
    [
        ({"instance_name": "shop"}, "10.0.0.3@shop"),
        ({"instance_name": "shop", "unit_name": "north"}, "10.0.0.3@shop@north"),
        ({"instance_name": "shop", "enable_stream_request_type": True}, "10.0.0.3@shop@STREAM"),
        ({"instance_name": "shop", "client_ip": "1.2.3.4"}, "1.2.3.4@shop"),
    ],
)
def test_a_client_id_is_made_of_address_instance_name_unit_and_request_type(
    cluster: Any, settings: dict[str, Any], client_id: str
) -> None:
    assert cluster.producer(**settings).impl.instance.client_id == client_id


def test_clients_of_one_id_share_one_instance_and_one_connection(cluster: Any) -> None:
    first = cluster.producer(instance_name="shop", group="G1")
    second = cluster.producer(instance_name="shop", group="G2")
    other = cluster.producer(group="G3")
    assert first.impl.instance is second.impl.instance
    assert other.impl.instance is not first.impl.instance
    assert len(MQClientManager.of(first.node).factory_table) == 2
    for producer in (first, second):
        producer.send(Message("T", "x")).play()
    assert len([event for event in cluster.events("ConnectionOpened", "producer") if event[1].endswith(":10911")]) == 1
    # The route that one of them asked for is the other's as well.
    assert cluster.requests("producer").count("GET_ROUTEINFO_BY_TOPIC") == 1


def test_an_instance_ends_with_the_last_of_its_clients(cluster: Any) -> None:
    first = cluster.producer(instance_name="shop", group="G1")
    second = cluster.producer(instance_name="shop", group="G2")
    instance = first.impl.instance
    first.shutdown().play()
    assert instance.service_state is ServiceState.RUNNING
    second.shutdown().play()
    assert instance.service_state is ServiceState.SHUTDOWN_ALREADY
    assert MQClientManager.of(first.node).factory_table == {}


def test_the_instance_has_a_producer_of_its_own(cluster: Any) -> None:
    assert list(cluster.producer().impl.instance.producer_table) == ["PG", "CLIENT_INNER_PRODUCER"]


# -- timers ---------------------------------------------------------------------------------------------------------


def test_routes_are_asked_for_10_ms_after_the_start_and_then_every_30_s(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    cluster.producer(topics=["T"])
    cluster.run_ms(100_000)
    times = sent_ms(cluster, "producer", "GET_ROUTEINFO_BY_TOPIC", begin_ms)
    # The first is the start's own, for the topics that it was given.
    assert times[1:] == pytest.approx([10, 30_010, 60_010, 90_010], abs=1)


def test_heartbeats_come_a_second_after_the_start_and_then_every_30_s(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    cluster.producer(topics=["T"])
    cluster.run_ms(100_000)
    times = sent_ms(cluster, "producer", "HEART_BEAT", begin_ms)
    assert times[0] < 50
    assert [ms for ms in times if ms > 500] == pytest.approx([1_000, 31_000, 61_000, 91_000], abs=1)


def test_offsets_are_reported_10_s_after_the_start_and_then_every_5_s(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    cluster.consumer(instance_name="one")
    producer = cluster.producer()

    for _ in range(40):
        producer.send(Message("T", "x")).play()
        cluster.run_ms(1_000)
    times = sent_ms(cluster, "consumer", "UPDATE_CONSUMER_OFFSET", begin_ms)
    rounds = sorted({round(ms / 1_000) for ms in times})
    assert rounds == [10, 15, 20, 25, 30, 35, 40][: len(rounds)]
    assert len(rounds) >= 6


def test_the_three_periods_can_be_set(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    cluster.producer(topics=["T"], poll_name_server_interval=7_000, heartbeat_broker_interval=9_000)
    cluster.run_ms(20_000)
    assert sent_ms(cluster, "producer", "GET_ROUTEINFO_BY_TOPIC", begin_ms)[1:] == pytest.approx(
        [10, 7_010, 14_010], abs=1
    )
    times = sent_ms(cluster, "producer", "HEART_BEAT", begin_ms)
    assert [ms for ms in times if ms > 500] == pytest.approx([1_000, 10_000, 19_000], abs=1)


def address_server(cluster: Any, addresses: str = NAMESRV) -> tuple[AddressServer, list[float]]:
    """A running address server, and a list of the times at which it is asked."""
    server = AddressServer(cluster.node("addresses"), addresses)
    server.start()
    times: list[float] = []

    def watch(row: tuple[Any, ...]) -> None:
        if row[7] == "ConnectionOpened" and server.address in row[8:]:
            times.append(row[2] / 1_000)

    cluster.world.hooks.attach(watch)
    return server, times


def test_without_a_name_server_the_address_server_is_asked_at_the_start_after_10_s_and_every_2_minutes(
    cluster: Any,
) -> None:
    server, times = address_server(cluster)
    begin_ms = cluster.now_ms
    producer = cluster.producer(namesrv_addr=None, namesrv_domain=server.node.spec.ip)
    assert producer.send(Message("T", "x")).play().queue_offset == 0
    cluster.run_ms(300_000)
    assert [ms - begin_ms for ms in times] == pytest.approx([0, 10_000, 130_000, 250_000], abs=2)
    assert server.requests == 4


def test_a_new_list_of_name_servers_is_used_from_the_next_look_on(cluster: Any) -> None:
    server, _ = address_server(cluster, "10.0.0.99:9876")
    producer = cluster.producer(namesrv_addr=None, namesrv_domain=server.address)
    with pytest.raises(MQClientException, match="No route info of this topic"):
        producer.send(Message("T", "x")).play()
    server.addresses = f"{NAMESRV};10.0.0.98:9876"
    cluster.run_ms(11_000)
    client = producer.impl.instance.api.remoting_client
    assert sorted(client.name_server_addresses) == sorted([NAMESRV, "10.0.0.98:9876"])


def test_an_address_server_that_is_away_or_knows_nothing_leaves_the_client_without_name_server(cluster: Any) -> None:
    for domain in ("10.0.0.77", address_server(cluster, "")[0].address):
        producer = cluster.producer(f"producer-of-{domain.partition(':')[0]}", namesrv_addr=None, namesrv_domain=domain)
        with pytest.raises(MQClientException, match="No name server address, please set it"):
            producer.send(Message("T", "x")).play()


def test_an_address_server_whose_answer_is_no_text_is_asked_again_later(cluster: Any) -> None:
    node = cluster.node("addresses")

    def accept(endpoint: Any) -> None:
        answer = b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe"
        endpoint.on_frame = lambda frame: endpoint.send(answer, len(answer))

    node.listen(8080, accept)
    producer = cluster.producer(namesrv_addr=None, namesrv_domain=f"{node.spec.ip}:8080")
    with pytest.raises(MQClientException, match="No route info of this topic"):
        producer.send(Message("T", "x")).play()
    cluster.run_ms(15_000)
    assert producer.impl.service_state.value == "RUNNING"


def test_a_client_that_was_given_a_name_server_asks_no_address_server(cluster: Any) -> None:
    server, times = address_server(cluster)
    cluster.producer(namesrv_domain=server.address)
    cluster.run_ms(300_000)
    assert times == []


def test_the_fault_detector_looks_3_s_after_the_start_and_every_3_s_at_brokers_not_asked_for_2_s(
    make_cluster: Any,
) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    begin_ms = cluster.now_ms
    producer = cluster.producer(topics=["T"], send_latency_enable=True, start_detector_enable=True)
    cluster.fault("crash", "broker-a")
    for _ in range(2):
        producer.send(Message("T", "x")).play()
    faults = producer.impl.fault_strategy.latency_fault_tolerance
    assert not faults.is_reachable("broker-a")
    cluster.run_ms(10_000)
    times = sent_ms(cluster, "producer", "GET_MAX_OFFSET", begin_ms)
    assert times == pytest.approx([3_000, 6_000, 9_000], abs=2)
    cluster.fault("restart", "broker-a")
    cluster.run_ms(6_000)
    assert faults.is_reachable("broker-a")


# -- heartbeats -----------------------------------------------------------------------------------------------------


def test_a_heartbeat_names_all_groups_of_the_instance_and_what_its_consumers_want(cluster: Any) -> None:
    consumer = cluster.new_consumer(tags="TagA || TagB", instance_name="shop")
    consumer.start().play()
    producer = DefaultMQProducer(consumer.node, "PG", namesrv_addr=NAMESRV, instance_name="shop")
    producer.start().play()
    heartbeat = producer.impl.instance.heartbeats.prepare()
    assert heartbeat.client_id == producer.impl.instance.client_id
    assert sorted(data.group_name for data in heartbeat.producer_data_set) == ["CLIENT_INNER_PRODUCER", "PG"]
    (group,) = heartbeat.consumer_data_set
    assert (group.group_name, str(group.consume_type.name), group.message_model.name, group.unit_mode) == (
        "G",
        "CONSUME_PASSIVELY",
        "CLUSTERING",
        False,
    )
    wanted = {data.topic: data for data in group.subscription_data_set}
    assert sorted(wanted) == ["%RETRY%G", "T"]
    assert (wanted["T"].sub_string, wanted["%RETRY%G"].sub_string) == ("TagA || TagB", "*")
    assert sorted(wanted["T"].tags_set) == ["TagA", "TagB"]
    assert sorted(wanted["T"].code_set) == [2598919, 2598920]


def test_a_producer_alone_tells_masters_only_and_nobody_before_it_knows_a_broker(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer()
    cluster.run_ms(40_000)
    assert cluster.requests("producer") == []
    producer.send(Message("T", "x")).play()
    producer.impl.instance.routes.broker_addr_table["broker-a"][1] = "10.0.0.77:10911"
    cluster.rows.clear()
    cluster.run_ms(30_000)
    assert cluster.requests("producer").count("HEART_BEAT") == 2


def test_a_broker_that_no_route_names_any_more_gets_no_heartbeat(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer(topics=["T"])
    cluster.run_ms(2_000)
    cluster.brokers["broker-a"].shutdown().play()
    cluster.run_ms(62_000)
    assert cluster.events("BrokerForgotten", "producer")
    assert list(producer.impl.instance.routes.broker_addr_table) == ["broker-b"]


def test_a_route_refresh_waits_3_s_for_the_one_before_it_and_then_does_without(cluster: Any) -> None:
    producer = cluster.producer(mq_client_api_timeout=10_000)
    cluster.fault("freeze", "namesrv")
    node = producer.node
    routes = producer.impl.instance.routes
    node.spawn(routes.refresh("T"), "first")
    cluster.run_ms(1)
    begin_ms = cluster.now_ms
    assert cluster.world.wait_for(node.spawn(routes.refresh("T"), "second").join()) is False
    assert cluster.now_ms - begin_ms == pytest.approx(3_000)


# -- filters --------------------------------------------------------------------------------------------------------


def test_a_consumer_with_another_filter_than_tags_asks_a_broker_at_its_start_and_may_be_refused(cluster: Any) -> None:
    consumer = cluster.new_consumer()
    consumer.subscribe_sql("T", "a > 1")
    with pytest.raises(MQClientException, match="The broker does not support consumer to filter message by SQL92"):
        consumer.start().play()
    assert cluster.requests("consumer").count("CHECK_CLIENT_CONFIG") == 1
    with_tags = cluster.consumer("other")
    assert cluster.requests("other").count("CHECK_CLIENT_CONFIG") == 0
    with_tags.shutdown().play()


# -- the end --------------------------------------------------------------------------------------------------------


def test_a_clean_end_tells_every_broker_first_of_the_producer_then_of_the_inner_one(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer(topics=["T"])
    cluster.run_ms(2_000)
    cluster.rows.clear()
    producer.shutdown().play()
    sent = [(row[14], row[11]) for row in cluster.rows if row[7] == "RequestSent" and row[3] == "producer"]
    addresses = [broker.broker_addr for broker in cluster.brokers.values()]
    assert sent == [("UNREGISTER_CLIENT", address) for address in [*addresses, *addresses]]
    last_answer = max(k for k, row in enumerate(cluster.rows) if row[7] == "ResponseReceived")
    closed = [k for k, row in enumerate(cluster.rows) if row[7] == "ConnectionClosed"]
    assert closed
    assert min(closed) > last_answer
    assert producer.impl.instance.api.remoting_client.channel_table == {}
    before = cluster.world.slice_no
    cluster.rows.clear()
    cluster.run_ms(100_000)
    assert cluster.requests("producer") == []
    assert before < cluster.world.slice_no


def test_an_end_is_clean_although_a_broker_is_gone(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer(topics=["T"])
    cluster.run_ms(2_000)
    cluster.fault("crash", "broker-a")
    producer.shutdown().play()
    assert producer.impl.service_state is ServiceState.SHUTDOWN_ALREADY


def test_what_waits_for_a_sender_thread_at_the_end_is_still_called_back(cluster: Any, producer: Any) -> None:
    producer.send(Message("T", "x")).play()
    outcomes: list[Any] = []
    for _ in range(50):
        producer.send_async(Message("T", "x"), lambda result, error: outcomes.append(result or error)).play()
    producer.shutdown().play()
    cluster.run_ms(10_000)
    assert len(outcomes) == 50


def test_the_answers_that_are_tried_again_are_rocketmqs_eight() -> None:
    assert sorted(RETRY_RESPONSE_CODES) == [1, 2, 14, 16, 17, 204, 205, 1500]
    assert issubclass(MQBrokerException, Exception)
