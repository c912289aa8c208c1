"""The life of a broker: registration, idleness, overload, crash, power loss, freeze, clean stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.errors import MqlabError
from mqlab.namesrv import NamesrvController
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.sim import World, faults
from mqlab.store import FlushDiskType, MessageStoreConfig
from tests.broker.conftest import messages_of


def reports(cluster: Any) -> list[float]:
    return [event["ts_ms"] for event in cluster.seen("RegistrationSent") if event["topics"] > 1]


# -- registration ---------------------------------------------------------------------------------------------------


def test_a_broker_reports_at_once_after_10_seconds_and_then_every_30(cluster: Any) -> None:
    cluster.run(101_000)
    times = reports(cluster)
    began = cluster.seen("BrokerStarted")[0]["ts_ms"]
    assert [round(t - began) for t in times] == [0, 10_000, 40_000, 70_000, 100_000]


@pytest.mark.parametrize(("asked", "period"), [(1_000, 10_000), (20_000, 20_000), (600_000, 60_000)])
def test_the_period_stays_between_10_and_60_seconds(asked: int, period: int) -> None:
    assert BrokerConfig(register_name_server_period=asked).registration_period_ms() == period


def test_every_name_server_is_told_and_one_that_is_down_is_passed_over() -> None:
    world = World(1)
    servers: list[NamesrvController] = []
    for name in ("namesrv-1", "namesrv-2", "namesrv-3"):
        node = world.node(name)
        controller = NamesrvController(node)
        servers.append(controller)
        if name != "namesrv-2":
            node.boot = lambda node, controller=controller: controller.start()
            faults.start(world, name)
    node = world.node("broker-a")
    config = BrokerConfig(namesrv_addr=";".join(server.address for server in servers))
    broker = BrokerController(node, config)
    node.boot = lambda node: broker.start()
    faults.start(world, "broker-a")
    world.run_until(lambda: broker.registered_once)
    assert ["TBW102" in server.route_info_manager.topic_queue_table for server in servers] == [True, False, True]
    assert world.now_us < 4_000_000


def test_a_name_server_that_comes_back_hears_of_the_broker_within_30_seconds(cluster: Any) -> None:
    cluster.do("restart", node="namesrv")
    cluster.run(1_000)
    assert cluster.namesrv.route_info_manager.topic_queue_table == {}
    cluster.run(30_000)
    assert "T" in cluster.namesrv.route_info_manager.topic_queue_table


def test_a_slave_learns_from_its_report_where_its_master_is_and_a_master_learns_nothing(cluster: Any) -> None:
    node = cluster.world.node("broker-a-slave")
    slave = BrokerController(
        node, BrokerConfig(namesrv_addr=cluster.namesrv.address, broker_id=1), MessageStoreConfig(broker_role="SLAVE")
    )
    node.boot = lambda _: slave.start()
    cluster.do("start", node=node.name)
    cluster.run(100)
    ip = cluster.broker_node.spec.ip
    client = slave.ha_service.ha_client
    assert client is not None
    assert slave.slave_synchronize is not None
    assert (slave.slave_synchronize.master_addr, client.ha_master_address) == (f"{ip}:10911", f"{ip}:10912")
    assert cluster.broker.slave_synchronize is cluster.broker.made_ha is None


@pytest.mark.parametrize("long_polling", [True, False])
def test_everybody_who_holds_requests_is_told_of_an_arrival_when_long_polling_is_on(
    make_cluster: Callable[..., Any], long_polling: bool
) -> None:
    cluster = make_cluster(long_polling_enable=long_polling)
    cluster.topic("T")
    told: list[Any] = []

    class Listener:
        waiting: ClassVar[list[str]] = []

        def notify_message_arriving(self, *arrival: Any) -> None:
            told.append(arrival[:3])

    cluster.broker.notify_message_arriving_listener.listeners.append(Listener())
    client = cluster.client()
    client.send("T")
    cluster.run(5)
    assert told == [], "nothing waits"
    Listener.waiting.append("a request")
    client.send("T")
    cluster.run(5)
    assert told == ([("T", 0, 2)] if long_polling else [])


def test_ordered_topics_are_marked_as_the_name_server_says(cluster: Any, client: Any) -> None:
    header = h.PutKVConfigRequestHeader("ORDER_TOPIC_CONFIG", "T", "broker-a:1")
    client.call(RequestCode.PUT_KV_CONFIG, header, to=cluster.namesrv_address)
    cluster.run(41_000)
    assert cluster.broker.topic_config_manager.is_order_topic("T")
    other = h.PutKVConfigRequestHeader("ORDER_TOPIC_CONFIG", "U", "broker-a:1")
    gone = h.DeleteKVConfigRequestHeader("ORDER_TOPIC_CONFIG", "T")
    client.call(RequestCode.PUT_KV_CONFIG, other, to=cluster.namesrv_address)
    client.call(RequestCode.DELETE_KV_CONFIG, gone, to=cluster.namesrv_address)
    cluster.run(31_000)
    assert cluster.broker.topic_config_manager.is_order_topic("T"), "nobody takes the mark away"


@pytest.mark.parametrize("slow", ["namesrv", "other"])
def test_of_several_name_servers_the_first_to_answer_says_what_is_ordered(cluster: Any, slow: str) -> None:
    node = cluster.world.node("other")
    other = NamesrvController(node)
    node.boot = lambda _: other.start()
    cluster.do("start", node="other")
    other.kv_config_manager.put_kv_config("ORDER_TOPIC_CONFIG", "T", "broker-a:1")
    cluster.broker.broker_outer_api.update_name_server_address_list([cluster.namesrv.address, other.address])
    cluster.do("delay", source="broker-a", target=slow, ms=50)
    cluster.run(60_000)
    assert cluster.broker.topic_config_manager.is_order_topic("T") is (slow == "namesrv")


def test_a_clean_stop_takes_the_broker_out_of_the_routes(cluster: Any) -> None:
    cluster.broker.shutdown().play()
    cluster.run(10)
    assert cluster.namesrv.route_info_manager.topic_queue_table == {}
    assert [event["reason"] for event in cluster.seen("BrokerUnregistered")] == ["asked"]
    assert len(cluster.seen("BrokerShutDown")) == 1


@pytest.mark.parametrize("settings", [{}, {"real_time_notify_consumer_change": False}])
def test_a_stopped_broker_does_nothing_any_more(make_cluster: Callable[..., Any], settings: dict[str, Any]) -> None:
    cluster = make_cluster(**settings)
    cluster.broker.shutdown().play()
    cluster.run(1_000)
    before = cluster.world.slice_no
    cluster.run(60_000)
    assert cluster.world.slice_no - before <= 12  # the name server's scans


def test_a_stop_without_a_name_server_ends_all_the_same(cluster: Any) -> None:
    cluster.do("crash", node="namesrv")
    cluster.broker.shutdown().play()
    assert len(cluster.seen("BrokerShutDown")) == 1


# -- idleness and overload ------------------------------------------------------------------------------------------


def test_an_idle_broker_plays_fewer_than_400_slices_a_minute(cluster: Any, client: Any) -> None:
    client.heartbeat()
    client.send("T")
    cluster.run(180_000)
    before = cluster.world.slice_no
    cluster.run(60_000)
    assert cluster.world.slice_no - before < 400


def test_sends_that_waited_200_ms_for_a_thread_are_answered_busy(make_cluster: Callable[..., Any]) -> None:
    from mqlab.broker import ServiceTimes

    cluster = make_cluster(service_us=ServiceTimes(send=150_000), send_message_thread_pool_nums=1)
    cluster.topic("T")
    client = cluster.client()
    cluster.run(1_000)  # the first pass comes a second after the start of the broker
    began_ms = cluster.now_ms
    answers = [client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x") for _ in range(4)]
    cluster.run(240)
    # The first is being stored, the second has its thread since 150 ms; the other two have waited for 200 ms.
    assert [answer.done and answer.result().code for answer in answers] == [0, False, 2, 2]
    assert answers[2].result().remark.startswith(
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 20"
    )
    cluster.run(100)
    assert answers[1].result().code == 0
    assert cluster.now_ms - began_ms < 350
    assert [event["request_code"] for event in cluster.seen("RequestTimedOutInQueue")] == [310, 310]


def test_a_full_queue_before_the_threads_refuses_at_once(make_cluster: Callable[..., Any]) -> None:
    from mqlab.broker import ServiceTimes

    cluster = make_cluster(
        service_us=ServiceTimes(send=50_000), send_message_thread_pool_nums=1, send_thread_pool_queue_capacity=1
    )
    cluster.topic("T")
    client = cluster.client()
    answers = [client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x") for _ in range(3)]
    cluster.run(120)
    codes = sorted(answer.result().code for answer in answers)
    assert codes == [0, 0, 2]
    busy = next(answer.result() for answer in answers if answer.result().code == 2)
    assert busy.remark.startswith("[OVERLOAD]")


# -- crash, power loss, freeze --------------------------------------------------------------------------------------


def test_a_killed_broker_has_all_messages_and_topics_again(cluster: Any, client: Any) -> None:
    for i in range(10):
        client.send("T", b"m%d" % i)
    cluster.do("crash", node="broker-a")
    cluster.run(100)
    assert "T" not in cluster.namesrv.route_info_manager.topic_queue_table
    cluster.restart(100)
    assert "T" in cluster.namesrv.route_info_manager.topic_queue_table
    assert [m.body for m in messages_of(client.pull("T"))] == [b"m%d" % i for i in range(10)]
    assert not cluster.broker.message_store.recovery.clean


@pytest.mark.parametrize("seed", range(5))
def test_with_synchronous_flush_a_power_loss_takes_nothing_that_was_acknowledged(
    make_cluster: Callable[..., Any], seed: int
) -> None:
    cluster = make_cluster({"flush_disk_type": FlushDiskType.SYNC_FLUSH}, seed=seed)
    cluster.topic("T")
    client = cluster.client()
    acknowledged = [b"m%d" % i for i in range(5) if client.send("T", b"m%d" % i).code == 0]
    cluster.do("power_off", node="broker-a")
    cluster.run(1_000)
    cluster.restart(5_000)
    again = cluster.client()
    assert [m.body for m in messages_of(again.pull("T"))][:5] == acknowledged


def test_a_frozen_broker_goes_on_where_it_stood_and_reports_at_once(cluster: Any, client: Any) -> None:
    cluster.do("freeze", node="broker-a")
    answer = client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x")
    cluster.run(20_000)
    assert not answer.done
    cluster.do("thaw", node="broker-a")
    thawed_ms = cluster.now_ms
    cluster.run(100)
    assert answer.result().code == 0
    assert any(t >= thawed_ms for t in reports(cluster))


def test_a_damaged_store_is_no_silent_start() -> None:
    world = World(1)
    node = world.node("broker-a")
    node.disk.write_bytes("store/commitlog/00000000000000000000", b"short")
    controller = BrokerController(node, BrokerConfig(), MessageStoreConfig())
    with pytest.raises(MqlabError):
        controller.start()


def test_the_same_seed_gives_the_same_events(make_cluster: Callable[..., Any]) -> None:
    def play() -> list[Any]:
        cluster = make_cluster(seed=3)
        cluster.topic("T", 4)
        client = cluster.client()
        client.heartbeat()
        for _ in range(5):
            client.send("T", queue_id=-1)
        client.begin_pull("T", 50, suspend=True)
        cluster.run(30_000)
        return list(cluster.events)

    assert play() == play()


def test_a_request_for_a_broker_that_is_frozen_for_good_ends_in_a_time_out(cluster: Any, client: Any) -> None:
    from mqlab.errors import RemotingTimeoutException

    cluster.do("freeze", node="broker-a")
    answer = client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x")
    cluster.run(31_000)
    with pytest.raises(RemotingTimeoutException):
        answer.result()


def test_service_not_available_after_the_store_is_closed(cluster: Any, client: Any) -> None:
    cluster.broker.message_store.shutdown()
    response = client.send("T")
    assert response.code == ResponseCode.SERVICE_NOT_AVAILABLE


def test_a_clean_stop_on_a_full_disk_goes_through_and_the_next_start_makes_up_for_it(cluster: Any, client: Any) -> None:
    """The index finds no room; the offsets do, as their file and its copy are there."""
    client.heartbeat()
    manager = cluster.broker.consumer_offset_manager
    for offset in (1, 2):
        manager.commit_offset("G", "T", 0, offset)
        cluster.run(10_100)
    for i in range(10):
        assert client.send("T", b"m%d" % i, properties={"KEYS": f"k{i}"}).code == 0
    cluster.run(10)
    manager.commit_offset("G", "T", 0, 7)
    disk = cluster.broker_node.disk
    disk.capacity_bytes = disk.used_bytes
    broker = cluster.broker
    broker.shutdown().play()
    assert len(cluster.seen("BrokerShutDown")) == 1
    assert broker.executors.send.closed
    assert [event["clean"] for event in cluster.seen("StoreStopped")] == [False]
    disk.capacity_bytes = None
    cluster.restart(100)
    assert cluster.broker is not broker
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 7
    again = cluster.client()
    assert [m.body for m in messages_of(again.pull("T"))] == [b"m%d" % i for i in range(10)]
    found = cluster.broker.message_store.query_message("T", "k3", 32, 0, 1 << 60).messages
    assert len(found) == 1
