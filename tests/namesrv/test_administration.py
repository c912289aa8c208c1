"""Key-value configuration, permissions, lists, and the name server's own settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import Lab
from mqlab.errors import RemotingSendRequestException
from mqlab.namesrv.address_server import AddressServer
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.route import ClusterInfo, GetBrokerMemberGroupResponseBody, QueueData, TopicRouteData
from mqlab.protocol.topic_config import TopicList
from mqlab.remoting import RemotingClient
from mqlab.sim import World

NAMESPACE = "ORDER_TOPIC_CONFIG"


def test_keys_are_put_listed_got_and_deleted(client: Any) -> None:
    client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader(NAMESPACE, "T", "broker-a:2"))
    got = client.call(RequestCode.GET_KV_CONFIG, h.GetKVConfigRequestHeader(NAMESPACE, "T"))
    assert got.header_as(h.GetKVConfigResponseHeader).value == "broker-a:2"
    listed = client.call(RequestCode.GET_KVLIST_BY_NAMESPACE, h.GetKVListByNamespaceRequestHeader(NAMESPACE))
    assert listed.body == b'{"table":{"T":"broker-a:2"}}'
    client.call(RequestCode.DELETE_KV_CONFIG, h.DeleteKVConfigRequestHeader(NAMESPACE, "T"))
    gone = client.call(RequestCode.GET_KV_CONFIG, h.GetKVConfigRequestHeader(NAMESPACE, "T"))
    assert (gone.code, gone.remark) == (
        ResponseCode.QUERY_NOT_FOUND,
        "No config item, Namespace: ORDER_TOPIC_CONFIG Key: T",
    )


def test_half_a_surrogate_pair_becomes_a_question_mark_in_the_file(server: Any, client: Any) -> None:
    for value in ("x\ud800", "y"):
        answer = client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader("N", "k" + value, value))
        assert answer.code == ResponseCode.SUCCESS
    table = json.loads(server.node.disk.read_bytes(server.config.kv_config_path))
    assert table == {"configTable": {"N": {"kx?": "x?", "ky": "y"}}}


@pytest.mark.parametrize("content", [b'{"configTable":[]}', b'{"configTable":{"N":7}}', b"[]", b'{"configTable":'])
def test_a_file_of_keys_that_holds_something_else_is_left_alone(server: Any, content: bytes) -> None:
    server.node.disk.write_bytes(server.config.kv_config_path, content)
    server.controller.kv_config_manager.load()
    assert server.controller.kv_config_manager.config_table == {}


def test_a_namespace_that_nobody_used_is_not_found(client: Any) -> None:
    response = client.call(RequestCode.GET_KVLIST_BY_NAMESPACE, h.GetKVListByNamespaceRequestHeader("N"))
    assert (response.code, response.remark) == (ResponseCode.QUERY_NOT_FOUND, "No config item, Namespace: N")


def test_keys_outlive_the_process_even_when_the_file_is_torn(server: Any, client: Any) -> None:
    for value in ("1", "2"):
        client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader("N", "k", value))
    path = server.config.kv_config_path
    assert json.loads(server.node.disk.read_bytes(path)) == {"configTable": {"N": {"k": "2"}}}
    server.do("restart", node="namesrv")
    server.run(10)
    assert server.controller.kv_config_manager.get_kv_config("N", "k") == "2"
    server.node.disk.write_bytes(path, b'{"configTa')
    server.do("restart", node="namesrv")
    server.run(10)
    assert server.controller.kv_config_manager.get_kv_config("N", "k") == "1"


def test_a_key_that_was_deleted_is_not_there_after_a_restart_either(server: Any, client: Any) -> None:
    client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader("N", "k", "1"))
    client.call(RequestCode.DELETE_KV_CONFIG, h.DeleteKVConfigRequestHeader("N", "k"))
    server.do("restart", node="namesrv")
    server.run(10)
    assert server.controller.kv_config_manager.get_kv_config("N", "k") is None


def test_wiping_the_write_permission_lasts_until_the_topics_change(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    wiped = client.call(RequestCode.WIPE_WRITE_PERM_OF_BROKER, h.WipeWritePermOfBrokerRequestHeader("broker-a"))
    assert wiped.header_as(h.WipeWritePermOfBrokerResponseHeader).wipe_topic_count == 2
    assert client.route("T").queue_datas[0].perm == 4
    broker.register()
    assert client.route("T").queue_datas[0].perm == 4
    added = client.call(RequestCode.ADD_WRITE_PERM_OF_BROKER, h.AddWritePermOfBrokerRequestHeader("broker-a"))
    assert added.header_as(h.AddWritePermOfBrokerResponseHeader).add_topic_count == 2
    assert client.route("T").queue_datas[0].perm == 6


def test_lists_of_topics(server: Any, broker: Any, client: Any) -> None:
    broker.register(topics={"T": 1, "U": 1})
    everything = client.call(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    assert TopicList.decode(everything.body).topic_list == ["T", "U"]
    of_cluster = client.call(RequestCode.GET_TOPICS_BY_CLUSTER, h.GetTopicsByClusterRequestHeader("c1"))
    assert TopicList.decode(of_cluster.body).topic_list == ["T", "U"]
    of_nobody = client.call(RequestCode.GET_TOPICS_BY_CLUSTER, h.GetTopicsByClusterRequestHeader("c2"))
    assert TopicList.decode(of_nobody.body).topic_list == []
    system = TopicList.decode(client.call(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS).body)
    assert (system.topic_list, system.broker_addr) == (["c1", "broker-a"], "10.0.0.2:10911")


def test_cluster_information_and_the_members_of_a_broker_name(broker: Any, client: Any) -> None:
    broker.register()
    info = ClusterInfo.decode(client.call(RequestCode.GET_BROKER_CLUSTER_INFO).body)
    assert info.cluster_addr_table == {"c1": ("broker-a",)}
    assert info.broker_addr_table["broker-a"].broker_addrs == {0: "10.0.0.2:10911"}
    header = h.GetBrokerMemberGroupRequestHeader("c1", "broker-a")
    group = GetBrokerMemberGroupResponseBody.decode(
        client.call(RequestCode.GET_BROKER_MEMBER_GROUP, header).body
    ).broker_member_group
    assert group.broker_addrs == {0: "10.0.0.2:10911"}


def test_a_topic_deleted_here_comes_back_with_its_brokers_next_report(broker: Any, client: Any) -> None:
    broker.register()
    client.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, h.DeleteTopicFromNamesrvRequestHeader("T"))
    assert client.route("T") is None
    broker.register()
    assert client.route("T") is not None


def test_deleting_on_one_cluster_leaves_the_others(server: Any, broker: Any, client: Any) -> None:
    broker.register()
    client.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, h.DeleteTopicFromNamesrvRequestHeader("T", "other"))
    assert client.route("T") is not None
    client.call(RequestCode.DELETE_TOPIC_IN_NAMESRV, h.DeleteTopicFromNamesrvRequestHeader("T", "c1"))
    assert client.route("T") is None


def test_a_topic_can_be_given_a_route_on_brokers_that_are_known(broker: Any, client: Any) -> None:
    broker.register()
    body = TopicRouteData([QueueData("broker-a", 3, 3, 6), QueueData("nobody", 3, 3, 6)]).encode()
    client.call(RequestCode.REGISTER_TOPIC_IN_NAMESRV, h.RegisterTopicRequestHeader("New"), body)
    assert [q.broker_name for q in client.route("New").queue_datas] == ["broker-a"]


def test_settings_are_read_and_changed(server: Any, client: Any) -> None:
    text = client.call(RequestCode.GET_NAMESRV_CONFIG).body.decode()
    assert "scanNotActiveBrokerInterval=5000\n" in text
    client.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, b"orderMessageEnable=true\nunknown=1\n")
    assert server.config.order_message_enable
    refused = client.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, b"kvConfigPath=x")
    assert (refused.code, refused.remark) == (ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    wrong = client.call(RequestCode.UPDATE_NAMESRV_CONFIG, None, b"waitSecondsForService=soon")
    assert (wrong.code, wrong.remark) == (ResponseCode.SYSTEM_ERROR, "waitSecondsForService=soon is not a number")


def test_the_order_of_an_ordered_topic_comes_with_its_route_when_enabled(
    make_server: Callable[..., Any],
) -> None:
    server = make_server(order_message_enable=True)
    broker, client = server.caller("broker-a"), server.caller("client")
    broker.register()
    client.call(RequestCode.PUT_KV_CONFIG, h.PutKVConfigRequestHeader(NAMESPACE, "T", "broker-a:2"))
    assert client.route("T").order_topic_conf == "broker-a:2"


def test_a_careful_name_server_gives_no_routes_for_its_first_45_seconds(make_server: Callable[..., Any]) -> None:
    server = make_server(need_wait_for_service=True)
    broker, client = server.caller("broker-a"), server.caller("client")
    broker.register()
    response = client.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, h.GetRouteInfoRequestHeader("T"))
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, "name server not ready")
    server.run(45_000)
    assert client.route("T") is not None


def test_old_clients_get_numbers_as_keys_and_new_ones_standard_json(server: Any, broker: Any) -> None:
    broker.register()
    old = server.caller("old")

    class OldVersion:
        def do_before_request(self, remote_address: str, request: Any) -> None:
            request.version = 400

        def do_after_response(self, remote_address: str, request: Any, response: Any) -> None:
            return

    header = h.GetRouteInfoRequestHeader("T")
    assert b'"brokerAddrs":{"0":"10' in old.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, header).body
    old.remoting.rpc_hooks.append(OldVersion())
    assert b'"brokerAddrs":{0:"10' in old.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, header).body
    asked = h.GetRouteInfoRequestHeader("T", accept_standard_json_only=True)
    assert b'"brokerAddrs":{"0":"10' in old.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, asked).body


def test_what_is_not_a_name_servers_business_is_not_supported(client: Any) -> None:
    response = client.call(9999)
    assert (response.code, response.remark) == (
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        " request type 9999 not supported",
    )


def test_a_header_without_its_field_is_answered_with_an_error(client: Any) -> None:
    response = client.call(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    assert response.code == ResponseCode.SYSTEM_ERROR


def test_an_idle_name_server_plays_few_slices(server: Any) -> None:
    server.run(60_000)
    before = server.world.slice_no
    server.run(60_000)
    assert server.world.slice_no - before <= 12


def test_the_tables_can_be_looked_at(server: Any, broker: Any) -> None:
    broker.register(topics={"U": 2, "T": 4})
    assert server.controller.route_info_manager.show_topics() == [
        {"topic": topic, "broker": "broker-a", "read_queues": n, "write_queues": n, "perm": "RW-", "broker_known": True}
        for topic, n in (("T", 4), ("U", 2))
    ]
    (row,) = server.controller.route_info_manager.show()
    assert (row["broker"], row["id"], row["address"], row["topics"]) == ("broker-a", 0, "10.0.0.2:10911", 2)


@pytest.mark.parametrize("wire_bytes", [False, True])
def test_an_address_server_that_is_taken_for_a_name_server_answers_nothing_that_a_client_can_read(
    wire_bytes: bool,
) -> None:
    world = World(1, wire_bytes=wire_bytes)
    server = AddressServer(world.node("http"), "10.0.0.9:9876")
    server.start()
    node = world.node("client")
    call = RemotingClient(node).invoke_sync(server.address, RemotingCommand.request(RequestCode.HEART_BEAT), 3_000)
    with pytest.raises(RemotingSendRequestException):
        world.wait_for(node.spawn(call, "call").join())
    assert server.requests == 1


def test_on_a_full_disk_a_key_is_set_and_the_next_change_writes_both() -> None:
    lab = Lab(seed=7)
    process = lab.name_server()
    keys = process.running().kv_config_manager
    lab.act("fill_disk", node=process.name)
    keys.put_kv_config("space", "first", "1")
    assert keys.get_kv_config("space", "first") == "1"
    assert len(list(lab.history.find("ConfigNotPersisted"))) == 1
    lab.act("fill_disk", node=process.name, free_bytes=100_000)
    keys.put_kv_config("space", "second", "2")
    process.crash()
    process.restart()
    lab.run_for(seconds=1)
    assert process.running().kv_config_manager.config_table == {"space": {"first": "1", "second": "2"}}
