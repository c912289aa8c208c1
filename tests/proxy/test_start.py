"""How 5.x clients and proxies find each other, and what they agree on."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client.v5 import ClientException, ConsumeResult
from mqlab.errors import LearnerError, MQClientException
from mqlab.lab import Lab
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import ClientType, Code, Permission, Resource

from .conftest import Shop


def asked(shop: Shop, node: str) -> list[tuple[float, str]]:
    """When and what a client asked its proxy."""
    return [(record.ts_ms, record.request_name) for record in shop.events("RequestSent", node=node)]


def test_a_client_asks_for_its_route_agrees_on_settings_and_then_keeps_a_rhythm(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.run_ms(12_000)
    begin = asked(shop, consumer.node.name)[0][0]
    heard = [(round(ms - begin), name) for ms, name in asked(shop, consumer.node.name)]
    assert [name for _, name in heard[:2]] == ["QueryRoute", "Telemetry"]
    assert [ms for ms, name in heard if name == "Heartbeat"] == pytest.approx([980, 10_980], abs=5)
    assert [ms for ms, name in heard if name == "QueryRoute"] == pytest.approx([0, 10_002], abs=5)
    # From the end of the start on: after 1 s, and then 5 s after the end of each scan.
    assert [ms for ms, name in heard if name == "QueryAssignment"] == pytest.approx([1_002, 6_003, 11_004], abs=5)


def test_no_client_ever_speaks_to_a_broker_or_a_name_server(shop: Shop) -> None:
    shop.push_consumer()
    shop.send("one")
    shop.run_ms(3_000)
    proxy = shop.lab.proxies[0].address
    for node in ("consumer-1", "producer-1"):
        assert {record.remote for record in shop.events("RequestSent", node=node)} == {proxy}


def test_a_push_consumer_is_told_everything_it_needs(shop: Shop) -> None:
    consumer = shop.push_consumer()
    settings, policy = consumer.impl.subscription_settings, consumer.impl.retry_policy
    assert (settings.receive_batch_size, settings.long_polling_timeout, settings.fifo) == (32, 20_000, False)
    assert policy.max_attempts == 17
    waits = policy.customized_backoff.next
    assert [ms // 1_000 for ms in waits] == [
        1, 5, 10, 30, *(60 * minute for minute in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120)),
    ]  # fmt: skip


def test_a_groups_own_settings_count(shop: Shop) -> None:
    shop.lab.create_group("g", retry_max_times=3, consume_message_orderly=True)
    consumer = shop.push_consumer()
    assert consumer.impl.retry_policy.max_attempts == 4
    assert consumer.impl.subscription_settings.fifo


def test_a_group_may_have_waits_that_grow(shop: Shop) -> None:
    from mqlab.protocol.topic_config import GroupRetryPolicy

    policy = GroupRetryPolicy("EXPONENTIAL", None, {"initial": 100, "max": 1_000, "multiplier": 3})
    shop.lab.create_group("g", group_retry_policy=policy)
    backoff = shop.push_consumer().impl.retry_policy.exponential_backoff
    assert tuple(backoff) == (100, 1_000, 3.0)


def test_a_producer_is_told_its_limits(shop: Shop) -> None:
    impl = shop.producer().impl
    shop.send("one")
    shop.run_ms(2_000)
    assert impl._policy.max_attempts == 3
    assert impl._publishing.max_body_size == 4 * 1024 * 1024


def test_an_assignment_is_a_broker_with_the_queue_id_minus_one() -> None:
    shop = Shop(brokers=2)
    first, second = shop.push_consumer(), shop.push_consumer()
    for consumer in (first, second):
        queues = [(queue.message_queue.broker.name, queue.message_queue.id) for queue in consumer.process_queues]
        assert queues == [("broker-a", -1), ("broker-b", -1)]


def test_a_queue_that_is_assigned_no_more_is_dropped() -> None:
    shop = Shop(brokers=2)
    consumer = shop.push_consumer()
    shop.lab.create_topic("T", 2, perm=2, brokers="broker-b")
    shop.run_ms(60_000)
    assert [queue.message_queue.broker.name for queue in consumer.process_queues] == ["broker-a"]
    (dropped,) = shop.events("ProcessQueueDropped")
    assert (dropped.broker_name, dropped.reason) == ("broker-b", "not assigned")


def test_from_a_queue_that_was_dropped_nothing_is_received() -> None:
    shop = Shop(brokers=2)
    shop.push_consumer()
    shop.lab.create_topic("T", 2, perm=2, brokers="broker-b")
    shop.run_ms(60_000)
    shop.lab.create_topic("T", 2, brokers="broker-b")
    shop.run_ms(60_000)
    pops = [record.ts_ms for record in shop.events("PopReceived", node="broker-b", first_pass=True)]
    assert len(shop.events("ProcessQueueCreated", broker_name="broker-b")) == 2
    # One consumer of this queue asks again when its 30 s are over; the one that was dropped asks no more.
    last_two = pops[-2:]
    assert last_two[1] - last_two[0] > 10_000


def test_in_a_group_with_order_every_queue_is_assigned(shop: Shop) -> None:
    shop.lab.create_group("g", consume_message_orderly=True)
    consumer = shop.push_consumer()
    assert [queue.message_queue.id for queue in consumer.process_queues] == [0, 1]


def test_what_was_assigned_stays_when_nothing_can_be_read_any_more(shop: Shop) -> None:
    consumer = shop.push_consumer()
    shop.lab.create_topic("T", 2, perm=2)
    shop.run_ms(60_000)
    # Nothing readable is refused as FORBIDDEN, and what was assigned stays.
    assert len(consumer.process_queues) == 1
    assert shop.events("ResponseSent", response_name="FORBIDDEN")


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_a_topic_that_nobody_has_is_not_found_and_stays_so_for_20_s(shop: Shop) -> None:
    consumer = shop.lab.simple_consumer("g")
    consumer.subscribe("New")
    with pytest.raises(ClientException, match="TOPIC_NOT_FOUND"):
        shop.run(consumer.start())
    shop.lab.create_topic("New")
    with pytest.raises(ClientException, match="TOPIC_NOT_FOUND"):
        shop.send("x", topic="New")
    shop.run_ms(20_000)
    # Still the old answer, but it lets the proxy ask again.
    with pytest.raises(ClientException, match="TOPIC_NOT_FOUND"):
        shop.send("x", topic="New")
    shop.run_ms(10)
    shop.send("x", topic="New")


@pytest.mark.parametrize(("topic", "code"), [("rmq_sys_x", "ILLEGAL_TOPIC"), ("a b", "ILLEGAL_TOPIC")])
def test_topics_that_no_client_may_use(shop: Shop, topic: str, code: str) -> None:
    with pytest.raises(ClientException, match=code):
        shop.send("x", topic=topic)


def test_names_of_groups_are_checked_by_the_client_and_by_the_proxy(shop: Shop) -> None:
    consumer = shop.lab.simple_consumer("no group")
    consumer.subscribe("T")
    with pytest.raises(MQClientException, match="illegal characters"):
        shop.run(consumer.start())
    system = shop.lab.simple_consumer("CID_RMQ_SYS_x")
    system.subscribe("T")
    with pytest.raises(ClientException, match="cannot use system consumer group"):
        shop.run(system.start())


def test_a_filter_that_cannot_be_read_is_refused_at_the_start(shop: Shop) -> None:
    consumer = shop.lab.simple_consumer("g")
    consumer.subscribe("T", "||")
    with pytest.raises(ClientException, match="expression format is not correct"):
        shop.run(consumer.start())


def call(shop: Shop, rpc: service.Rpc, request: Any) -> Any:
    """What the proxy answers to a client that it does not know."""
    consumer = shop.lab.simple_consumer("other")
    impl = consumer.impl
    answer = impl.node.spawn(impl.call(impl.endpoints, rpc, request), "ask").join()
    return shop.lab.world.wait_for(answer, 10_000)


def test_a_client_without_settings_is_not_recognized(shop: Shop) -> None:
    group = Resource(name="g")
    beat = call(shop, service.HEARTBEAT, service.HeartbeatRequest(group, ClientType.PUSH_CONSUMER))
    assert beat.status.code == Code.UNRECOGNIZED_CLIENT_TYPE
    left = call(shop, service.NOTIFY_CLIENT_TERMINATION, service.NotifyClientTerminationRequest(group))
    assert left.status.code == Code.UNRECOGNIZED_CLIENT_TYPE


def test_who_does_not_say_its_id_is_refused(shop: Shop) -> None:
    consumer = shop.lab.simple_consumer("g")
    consumer.impl.rpc._metadata = {}
    consumer.subscribe("T")
    with pytest.raises(ClientException, match="CLIENT_ID_REQUIRED"):
        shop.run(consumer.start())


def test_a_full_pool_answers_too_many_requests() -> None:
    shop = Shop()
    shop.lab.proxy("slow", grpc_route_thread_pool_nums=1, grpc_route_thread_queue_capacity=0, route_service_us=10_000)
    consumer = shop.lab.simple_consumer("g", endpoints=shop.lab.proxies[1].address)
    impl = consumer.impl
    request = service.QueryRouteRequest(Resource(name="T"), impl.endpoints)
    shop.lab.world.wait_for(impl.node.spawn(impl.call(impl.endpoints, service.QUERY_ROUTE, request), "warm").join())
    answers = [impl.node.spawn(impl.call(impl.endpoints, service.QUERY_ROUTE, request), "ask").join() for _ in "abc"]
    codes = [shop.lab.world.wait_for(answer, 10_000).status.code for answer in answers]
    assert sorted(codes) == [Code.OK, Code.TOO_MANY_REQUESTS, Code.TOO_MANY_REQUESTS]


def test_a_client_needs_a_proxy_and_a_proxy_a_name_server() -> None:
    lab = Lab(1)
    with pytest.raises(LearnerError, match=r"lab\.name_server\(\)"):
        lab.proxy()
    lab.name_server()
    with pytest.raises(LearnerError, match=r"lab\.proxy\(\)"):
        lab.producer_v5()


def test_settings_are_checked(shop: Shop) -> None:
    with pytest.raises(LearnerError, match="did you mean"):
        shop.lab.proxy(max_mesage_size=3)
    with pytest.raises(LearnerError, match="did you mean"):
        shop.lab.push_consumer_v5("g", consumption_thread_cont=3)
    with pytest.raises(LearnerError, match="no setting 'group'"):
        shop.lab.producer_v5(group="g")


def test_a_consumer_needs_a_listener_a_topic_and_one_start(shop: Shop) -> None:
    consumer = shop.lab.push_consumer_v5("g")
    with pytest.raises(ClientException, match="set_message_listener"):
        shop.run(consumer.start())
    consumer.set_message_listener(lambda message: ConsumeResult.SUCCESS)
    with pytest.raises(ClientException, match="subscribe"):
        shop.run(consumer.start())
    consumer.subscribe("T")
    shop.run(consumer.start())
    with pytest.raises(ClientException, match="started before"):
        shop.run(consumer.start())
    with pytest.raises(LearnerError, match="runs already"):
        consumer.set_message_listener(lambda message: ConsumeResult.SUCCESS)


def test_permissions_of_queues_are_told() -> None:
    shop = Shop()
    shop.lab.create_topic("W", 1, perm=2)
    shop.lab.create_topic("R", 1, perm=4)
    impl = shop.producer().impl
    kinds = {}
    for topic in ("W", "R", "T"):
        route = shop.lab.world.wait_for(impl.node.spawn(impl.route(topic), "route").join(), 10_000)
        kinds[topic] = {queue.permission for queue in route}
    assert kinds == {"W": {Permission.WRITE}, "R": {Permission.READ}, "T": {Permission.READ_WRITE}}
    with pytest.raises(ClientException, match="No writable message queue"):
        shop.send("x", topic="R")
