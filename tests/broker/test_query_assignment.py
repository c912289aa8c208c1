"""Rebalance by the broker: who is told which queues, whether to pull or to pop, and how that is set and kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.errors import LearnerError, MQBrokerException
from mqlab.protocol import headers as h
from mqlab.protocol.assignment import (
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.heartbeat import MessageModel
from tests.worlds import shop

CONFIG_FILE = "store/config/messageRequestMode.json"


def ask(
    client: Any,
    topic: str = "T",
    *,
    client_id: str = "",
    group: str = "G",
    strategy: str = "AVG",
    model: MessageModel = MessageModel.CLUSTERING,
) -> Any:
    """Whom the broker gives which queues: a list of (mode, queue id), or None when it cannot tell."""
    body = QueryAssignmentRequestBody(topic, group, client_id or client.node.name, strategy, model)
    response = client.call(RequestCode.QUERY_ASSIGNMENT, None, body.encode())
    assert response.code == ResponseCode.SUCCESS
    found = QueryAssignmentResponseBody.decode(response.body).message_queue_assignments
    return None if found is None else [(each.mode, each.message_queue.queue_id) for each in found]


def set_mode(client: Any, topic: str = "T", mode: str = "POP", share: int = 0, group: str = "G") -> Any:
    body = SetMessageRequestModeRequestBody(topic, group, mode, share)
    return client.call(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body.encode())


@pytest.fixture
def members(cluster: Any) -> list[Any]:
    """Three members of a group that consumes a topic of eight queues."""
    cluster.topic("T", 8)
    clients = [cluster.client(f"member-{number}") for number in range(3)]
    for client in clients:
        client.heartbeat()
    return clients


# -- pull -----------------------------------------------------------------------------------------------------------


def test_without_a_mode_the_queues_are_shared_out_and_pulled(members: list[Any]) -> None:
    shares = [ask(member) for member in members]
    assert shares == [[("PULL", q) for q in ids] for ids in ((0, 1, 2), (3, 4, 5), (6, 7))]


def test_both_strategies_that_a_broker_knows(members: list[Any]) -> None:
    assert ask(members[1], strategy="AVG_BY_CIRCLE") == [("PULL", 1), ("PULL", 4), ("PULL", 7)]
    assert ask(members[1], strategy="CONSISTENT_HASH") is None


def test_a_broadcasting_group_gets_all_queues(members: list[Any]) -> None:
    assert ask(members[0], model=MessageModel.BROADCASTING) == [("PULL", q) for q in range(8)]


def test_whoever_is_no_member_gets_nothing(cluster: Any, members: list[Any]) -> None:
    assert ask(members[0], client_id="stranger") == []
    assert ask(members[0], group="nobody-online") is None


def test_an_unknown_topic_is_no_reason_to_give_queues_up(members: list[Any]) -> None:
    assert ask(members[0], "Unknown") is None


def test_without_server_load_balancing_everybody_gets_all(make_cluster: Any) -> None:
    cluster = make_cluster(server_load_balancer_enable=False)
    cluster.topic("T", 2)
    client = cluster.client()
    assert ask(client) == [("PULL", 0), ("PULL", 1)]


# -- pop ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [-1, 0, 2, 8])
def test_a_popping_member_gets_any_queue_of_the_broker(members: list[Any], share: int) -> None:
    assert set_mode(members[0], share=share).code == ResponseCode.SUCCESS
    assert [ask(member) for member in members] == [[("POP", -1)]] * 3


def test_with_less_sharing_a_member_has_its_share_and_those_of_the_next_members(members: list[Any]) -> None:
    set_mode(members[0], share=1)
    assert [q for _, q in ask(members[0])] == [0, 1, 2, 3, 4, 5]
    assert [q for _, q in ask(members[2])] == [0, 1, 2, 6, 7]
    assert ask(members[2], client_id="stranger") == []


def test_with_more_members_than_queues_each_has_one(cluster: Any, members: list[Any]) -> None:
    cluster.topic("Narrow", 2)
    set_mode(members[0], "Narrow", share=1)
    assert [ask(member, "Narrow") for member in members] == [[("POP", 0)], [("POP", 1)], [("POP", 0)]]


def test_the_default_mode_is_a_setting_but_retry_topics_are_pulled(make_cluster: Any) -> None:
    cluster = make_cluster(default_message_request_mode="POP", default_pop_share_queue_num=1)
    cluster.topic("T", 4)
    clients = [cluster.client(f"member-{number}") for number in range(4)]
    for client in clients:
        client.heartbeat()
    cluster.run(10)
    assert ask(clients[0]) == [("POP", 0), ("POP", 1)]
    assert ask(clients[0], "%RETRY%G") == [("PULL", 0)]
    set_mode(clients[0], mode="PULL")
    assert ask(clients[0]) == [("PULL", 0)]


# -- setting it -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "group", "code", "remark"),
    [
        ("%RETRY%G", "G", ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode"),
        ("Unknown", "G", ResponseCode.TOPIC_NOT_EXIST, "topic[Unknown] not exist"),
        ("T", "a b", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist"),
    ],
)
def test_modes_that_nobody_can_set(members: list[Any], topic: str, group: str, code: int, remark: str) -> None:
    response = set_mode(members[0], topic, group=group)
    assert (response.code, response.remark) == (code, remark)


def test_a_mode_is_kept_in_its_file_over_a_crash(cluster: Any, members: list[Any]) -> None:
    set_mode(members[0], share=8)
    written = json.loads(cluster.broker_node.disk.read_bytes(CONFIG_FILE))
    assert written == {
        "messageRequestModeMap": {
            "T": {"G": {"consumerGroup": "G", "mode": "POP", "popShareQueueNum": 8, "topic": "T"}}
        }
    }
    cluster.do("power_off", node="broker-a")
    cluster.restart(2_000)
    members[0].heartbeat()
    assert ask(members[0]) == [("POP", -1)]
    table = members[0].call(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    assert MessageRequestModeSerializeWrapper.decode(table.body).message_request_mode_map == {
        "T": {"G": SetMessageRequestModeRequestBody("T", "G", "POP", 8)}
    }


def test_a_file_that_cannot_be_read_is_an_empty_table(cluster: Any, members: list[Any]) -> None:
    cluster.broker_node.disk.write_bytes(CONFIG_FILE, b"{]", flush=True)
    assert ask(members[2]) == [("PULL", 6), ("PULL", 7)]


def test_a_body_that_is_none_is_an_error_of_the_caller(cluster: Any, members: list[Any]) -> None:
    for code in (RequestCode.SET_MESSAGE_REQUEST_MODE, RequestCode.QUERY_ASSIGNMENT):
        assert members[0].call(code, None, b"{").code == ResponseCode.SYSTEM_ERROR
    assert ask(members[0]) is not None


# -- the routes behind it -------------------------------------------------------------------------------------------


def test_routes_are_asked_for_once_and_renewed_on_the_grid_of_the_broker(cluster: Any, members: list[Any]) -> None:
    def asked() -> list[Any]:
        code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
        return [row for row in cluster.events if row[7] == "RequestReceived" and row[13] == code]

    ask(members[0])
    ask(members[1])
    first = len(asked())
    cluster.broker.create_topic("T", 2)
    assert len(ask(members[0])) == 3, "what it knows is a moment old"
    cluster.world.run_until(lambda: len(asked()) > first, limit_ms=60_000)
    since_boot_ms = cluster.broker_node.now_ms() - cluster.broker.stats.boot_ms
    assert (since_boot_ms - 1_000) % 30_000 < 5
    cluster.run(10)
    assert [ask(member) for member in members] == [[("PULL", 0)], [("PULL", 1)], []]


def test_without_a_name_server_what_is_known_goes_on_to_count(cluster: Any, members: list[Any]) -> None:
    ask(members[0])
    cluster.do("crash", node="namesrv")
    cluster.run(60_000)
    for member in members:
        member.heartbeat()
    assert ask(members[2]) == [("PULL", 6), ("PULL", 7)]
    assert ask(members[2], "Unknown") is None


def test_a_deleted_topic_is_forgotten(cluster: Any, members: list[Any]) -> None:
    ask(members[0])
    members[0].call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("T"))
    members[0].call(
        RequestCode.DELETE_TOPIC_IN_NAMESRV, h.DeleteTopicFromNamesrvRequestHeader("T"), to=cluster.namesrv_address
    )
    cluster.run(31_000)
    assert ask(members[0]) is None


# -- what an administrator writes -----------------------------------------------------------------------------------


def test_a_cell_sets_the_mode_on_one_broker_or_on_all() -> None:
    lab = shop(seed=0, brokers=2, queues=2)
    first, second = lab.brokers
    lab.set_message_request_mode("T", "G", "POP", pop_share_queue_num=3)
    second.set_message_request_mode("T", "G", "PULL")
    known = [
        broker.running().query_assignment_processor().message_request_mode_manager.get_message_request_mode("T", "G")
        for broker in (first, second)
    ]
    assert known == [
        SetMessageRequestModeRequestBody("T", "G", "POP", 3),
        SetMessageRequestModeRequestBody("T", "G", "PULL", 0),
    ]
    with pytest.raises(LearnerError, match="write 'PULL' or 'POP'"):
        lab.set_message_request_mode("T", "G", "PUSH")
    with pytest.raises(MQBrokerException, match="topic\\[Unknown\\] not exist"):
        first.set_message_request_mode("Unknown", "G", "POP")
    with pytest.raises(LearnerError, match="no message request mode"):
        lab.broker(default_message_request_mode="PUSH")


def test_a_broker_that_is_never_asked_makes_nothing_for_it(cluster: Any, client: Any) -> None:
    cluster.topic("T")
    client.send("T")
    client.heartbeat()
    cluster.run(35_000)
    assert cluster.broker._query_assignment_processor is None

