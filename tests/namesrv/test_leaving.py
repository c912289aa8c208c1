"""How brokers leave the routes: asked, by a closed connection, by silence; and how long a route stays stale."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode


def test_a_broker_that_unregisters_takes_its_topics_along(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    header = h.UnRegisterBrokerRequestHeader("broker-a", "10.0.0.2:10911", "c1", 0)
    assert broker.call(RequestCode.UNREGISTER_BROKER, header).code == ResponseCode.SUCCESS
    assert client.route("T") is None
    assert [event["reason"] for event in server.seen("BrokerUnregistered")] == ["asked"]
    assert server.controller.route_info_manager.cluster_addr_table == {}


def test_a_topic_of_two_brokers_stays_on_the_other(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    server.caller("second").register("broker-b")
    broker.remoting.shutdown()
    server.run(10)
    assert [q.broker_name for q in client.route("T").queue_datas] == ["broker-b"]


def test_a_closed_connection_unregisters_at_once(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    server.do("crash", node="broker-a")
    server.run(2)
    assert client.route("T") is None
    assert [event["reason"] for event in server.seen("BrokerUnregistered")] == ["channel closed"]


def test_the_scan_drops_a_broker_that_is_silent_on_a_connection_in_use(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    last_report_ms = server.seen("BrokerRegistered")[-1]["ts_ms"]
    for _ in range(11):
        server.run(10_000)
        broker.route("T")
    server.run(9_000)
    assert client.route("T") is not None
    server.run(7_000)
    (event,) = server.seen("BrokerUnregistered")
    assert event["reason"] == "expired"
    assert 120_000 <= event["ts_ms"] - last_report_ms <= 125_010


def test_a_silent_broker_keeps_a_stale_route_for_120_seconds(
    server: Any, broker: Any, client: Any
) -> None:
    broker.register()
    last_report_ms = server.seen("BrokerRegistered")[-1]["ts_ms"]
    server.do("freeze", node="broker-a")
    server.run(119_000)
    (row,) = server.controller.route_info_manager.show()
    assert client.route("T") is not None
    assert row["silent_ms"] == pytest.approx(119_000, abs=20)
    assert row["expires_in_ms"] == pytest.approx(1_000, abs=20)
    server.run(7_000)
    assert client.route("T") is None
    (event,) = server.seen("BrokerUnregistered")
    # Its connection has been idle for 120 s as well, and remoting closes such: that is noticed before the next scan.
    assert event["reason"] == "channel closed"
    assert 120_000 <= event["ts_ms"] - last_report_ms <= 125_010
    assert server.controller.route_info_manager.show() == []


def test_the_scan_runs_every_five_seconds(server: Any, broker: Any) -> None:
    broker.register(heartbeat_timeout_millis=1)
    server.run(4_990 - server.now_ms)
    assert server.seen("BrokerUnregistered") == []
    server.run(20)
    assert len(server.seen("BrokerUnregistered")) == 1


def test_a_broker_may_ask_for_a_shorter_time(server: Any, broker: Any) -> None:
    broker.register(heartbeat_timeout_millis=10_000)
    server.run(9_000)
    assert server.seen("BrokerUnregistered") == []
    server.run(6_100)
    assert len(server.seen("BrokerUnregistered")) == 1


def test_a_light_heartbeat_keeps_a_broker_alive(server: Any, broker: Any) -> None:
    broker.register()
    for _ in range(3):
        server.run(100_000)
        header = h.BrokerHeartbeatRequestHeader("c1", "10.0.0.2:10911", "broker-a")
        assert broker.call(RequestCode.BROKER_HEARTBEAT, header).code == ResponseCode.SUCCESS
    assert server.seen("BrokerUnregistered") == []


def test_a_restarted_name_server_knows_nothing_until_brokers_report_again(
    server: Any, broker: Any, client: Any
) -> None:
    broker.register()
    server.do("crash", node="namesrv")
    server.do("restart", node="namesrv")
    server.run(10)
    assert client.route("T") is None
    broker.register()
    assert client.route("T") is not None


def test_many_brokers_may_leave_in_one_turn(server: Any, client: Any) -> None:
    brokers = [server.caller(f"broker-{i}") for i in range(20)]
    for i, broker in enumerate(brokers):
        broker.register(f"broker-{i}")
    assert len(client.route("T").broker_datas) == 20
    for broker in brokers:
        broker.remoting.shutdown()
    server.run(10)
    assert client.route("T") is None


def test_a_route_says_nothing_of_whether_the_broker_lives(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    server.do("power_off", node="broker-a")
    server.run(60_000)
    assert client.route("T").broker_datas[0].broker_addrs == {0: "10.0.0.2:10911"}
