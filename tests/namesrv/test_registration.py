"""Who registers, who is refused, and what the routes say then."""

from __future__ import annotations

from typing import Any

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import DataVersion


def test_a_registered_broker_is_in_the_route_of_its_topics(server: Any, broker: Any, client: Any) -> None:
    assert broker.register().code == ResponseCode.SUCCESS
    route = client.route("T")
    assert [(q.broker_name, q.read_queue_nums, q.write_queue_nums, q.perm) for q in route.queue_datas] == [
        ("broker-a", 4, 4, 6)
    ]
    assert route.broker_datas[0].broker_addrs == {0: "10.0.0.2:10911"}
    assert [event["first"] for event in server.seen("BrokerRegistered")] == [True]


def test_an_unknown_topic_has_no_route_and_the_answer_says_where_to_read_on(broker: Any, client: Any) -> None:
    broker.register()
    response = client.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, h.GetRouteInfoRequestHeader("Nope"))
    assert response.code == ResponseCode.TOPIC_NOT_EXIST
    assert response.remark == (
        "No topic route info in name server for the topic: Nope\n"
        "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )


def test_a_single_topic_is_refused_before_the_first_full_report(server: Any, broker: Any, client: Any) -> None:
    response = broker.register(topics={"T": 4})
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, "register broker failed")
    assert client.route("T") is None
    assert len(server.seen("BrokerRegistrationRefused")) == 1


def test_a_single_topic_of_a_known_broker_is_added_and_the_others_stay(broker: Any, client: Any) -> None:
    broker.register()
    broker.register(topics={"V": 1}, version=DataVersion(2, 2))
    assert client.route("V") is not None
    assert client.route("T") is not None


def test_with_the_version_unchanged_known_topics_are_not_written_again(server: Any, broker: Any, client: Any) -> None:
    broker.register(topics={"T": 4, "U": 2})
    broker.register(topics={"T": 9, "V": 3})
    assert client.route("T").queue_datas[0].read_queue_nums == 4
    assert client.route("V").queue_datas[0].read_queue_nums == 3
    broker.register(topics={"T": 9, "V": 3}, version=DataVersion(2, 2))
    assert client.route("T").queue_datas[0].read_queue_nums == 9


def test_a_body_with_another_checksum_is_refused(broker: Any) -> None:
    response = broker.register(body_crc32=1)
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")


def test_a_body_that_is_no_json_is_answered_with_an_error(broker: Any) -> None:
    response = broker.call(RequestCode.REGISTER_BROKER, broker.header("broker-a"), b"not json")
    assert response.code == ResponseCode.SYSTEM_ERROR


def test_one_address_has_one_id_in_its_group(server: Any, broker: Any) -> None:
    broker.register(broker_id=1)
    broker.register(broker_id=0)
    data = server.controller.route_info_manager.broker_addr_table["broker-a"]
    assert data.broker_addrs == {0: "10.0.0.2:10911"}


def test_an_older_owner_of_an_id_cannot_push_out_a_newer_one(server: Any, broker: Any) -> None:
    broker.register(version=DataVersion(1, 1, state_version=5))
    other = server.caller("broker-b")
    assert other.register(version=DataVersion(1, 1, state_version=4)).code == ResponseCode.SUCCESS
    data = server.controller.route_info_manager.broker_addr_table["broker-a"]
    assert data.broker_addrs == {0: "10.0.0.2:10911"}
    other.register(version=DataVersion(1, 1, state_version=6))
    assert data.broker_addrs == {0: f"{other.node.spec.ip}:10911"}


def test_a_slave_is_told_where_its_master_is_and_brings_no_topics(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    slave = server.caller("slave")
    response = slave.register(broker_id=1, topics={"OnlyOnSlave": 1, "T": 4})
    header = response.header_as(h.RegisterBrokerResponseHeader)
    assert (header.master_addr, header.ha_server_addr) == ("10.0.0.2:10911", "10.0.0.2:10912")
    assert client.route("OnlyOnSlave") is None
    assert client.route("T").broker_datas[0].broker_addrs == {0: "10.0.0.2:10911", 1: f"{slave.node.spec.ip}:10911"}


def test_a_slave_that_acts_for_its_master_brings_topics_without_the_write_bit(server: Any, client: Any) -> None:
    slave = server.caller("slave")
    slave.register(broker_id=1, enable_acting_master=True)
    assert client.route("T").queue_datas[0].perm == PermName.READ


def test_when_the_master_leaves_an_acting_group_its_queues_cannot_be_written(
    server: Any, broker: Any, client: Any
) -> None:
    broker.register(enable_acting_master=True)
    server.caller("slave").register(broker_id=1, enable_acting_master=True)
    broker.remoting.shutdown()
    server.run(10)
    assert client.route("T").queue_datas[0].perm == PermName.READ


def test_the_table_of_ordered_topics_comes_with_the_answer(broker: Any, client: Any) -> None:
    assert broker.register().body is None
    client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader("ORDER_TOPIC_CONFIG", "T", "broker-a:4"))
    assert broker.register().body == b'{"table":{"T":"broker-a:4"}}'


def test_the_version_question_also_counts_as_a_sign_of_life(server: Any, broker: Any) -> None:
    broker.register()
    server.run(100_000)
    header = h.QueryDataVersionRequestHeader("broker-a", "10.0.0.2:10911", "c1", 0)
    same = broker.call(RequestCode.QUERY_DATA_VERSION, header, DataVersion(1, 1).encode())
    other = broker.call(RequestCode.QUERY_DATA_VERSION, header, DataVersion(1, 2).encode())
    assert [r.header_as(h.QueryDataVersionResponseHeader).changed for r in (same, other)] == [False, True]
    assert DataVersion.decode(other.body) == DataVersion(1, 1)
    server.run(100_000)
    assert server.seen("BrokerUnregistered") == []
