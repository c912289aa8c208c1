"""Clients: heartbeats, groups, who is told of what, and how clients leave."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab.broker.broker_config import ServiceTimes
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.group_bodies import CheckClientRequestBody, GetConsumerListByGroupResponseBody
from mqlab.protocol.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    build_subscription_data,
)
from mqlab.protocol.topic_config import SubscriptionGroupConfig


def members(client: Any, group: str = "G") -> list[str]:
    response = client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, h.GetConsumerListByGroupRequestHeader(group))
    return GetConsumerListByGroupResponseBody.decode(response.body).consumer_id_list if response.code == 0 else []


def leave(client: Any, group: str = "G") -> None:
    header = h.UnregisterClientRequestHeader(client.node.name, None, group)
    assert client.call(RequestCode.UNREGISTER_CLIENT, header).code == 0


def notices(client: Any) -> int:
    """How often this client was told that its group changed."""
    return len(client.noted.requests)


# -- heartbeats -----------------------------------------------------------------------------------------------------


def test_a_heartbeat_makes_the_group_its_retry_topic_and_the_member_known(cluster: Any, client: Any) -> None:
    response = client.heartbeat(producers=("P",))
    assert response.ext_fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
    assert members(client) == [client.node.name]
    broker = cluster.broker
    assert broker.subscription_group_manager.contains_subscription_group("G")
    retry = broker.topic_config_manager.select_topic_config("%RETRY%G")
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)
    assert list(broker.producer_manager.group_channel_table) == ["P"]
    cluster.run(10)
    assert "%RETRY%G" in cluster.namesrv.route_info_manager.topic_queue_table


def test_a_group_with_more_retry_queues_gets_a_wider_retry_topic(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", retry_queue_nums=3).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    client.heartbeat()
    assert cluster.broker.topic_config_manager.select_topic_config("%RETRY%G").write_queue_nums == 3


def test_the_retry_topic_is_ordered_while_its_group_subscribes_to_an_ordered_topic(cluster: Any, client: Any) -> None:
    topics = cluster.broker.topic_config_manager
    cluster.topic("Ordered", order=True)
    for topic, order in (("T", False), ("Ordered", True), ("T", False)):
        client.heartbeat(build_subscription_data(topic, "*", sub_version=1))
        assert topics.topic_config_table["%RETRY%G"].order is order


def test_every_member_is_told_when_one_joins_and_a_repeated_heartbeat_tells_nobody(cluster: Any) -> None:
    first, second = cluster.client(), cluster.client()
    first.heartbeat()
    cluster.run(10)
    assert notices(first) == 1
    second.heartbeat()
    cluster.run(10)
    assert (notices(first), notices(second)) == (2, 1)
    first.heartbeat()
    second.heartbeat()
    cluster.run(10)
    assert (notices(first), notices(second)) == (2, 1)


def test_another_topic_is_a_change_and_a_newer_version_is_not(cluster: Any, client: Any) -> None:
    client.heartbeat(build_subscription_data("T", "a", sub_version=1))
    cluster.run(10)
    client.heartbeat(build_subscription_data("T", "b", sub_version=2))
    cluster.run(10)
    assert notices(client) == 1
    assert cluster.broker.consumer_manager.find_subscription_data("G", "T").sub_string == "b"
    client.heartbeat(build_subscription_data("T", "old", sub_version=1))
    assert cluster.broker.consumer_manager.find_subscription_data("G", "T").sub_string == "b"
    client.heartbeat(build_subscription_data("U", "*", sub_version=3))
    cluster.run(10)
    assert notices(client) == 2
    assert cluster.broker.consumer_manager.find_subscription_data("G", "T") is None


def test_the_members_of_a_broadcasting_group_are_told_nothing(cluster: Any) -> None:
    first, second = cluster.client(), cluster.client()
    first.heartbeat(model=MessageModel.BROADCASTING)
    second.heartbeat(model=MessageModel.BROADCASTING)
    leave(second)
    cluster.run(10)
    assert notices(first) == 0


def test_a_group_can_do_without_notices(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", notify_consumer_ids_changed_enable=False).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    client.heartbeat()
    cluster.run(10)
    assert notices(client) == 0


def test_without_real_time_notices_changes_are_told_every_15_seconds_after_30(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(real_time_notify_consumer_change=False)
    client = cluster.client()
    client.heartbeat()
    cluster.run(29_000)
    assert notices(client) == 0
    cluster.run(1_100)
    assert notices(client) == 1
    client.heartbeat(build_subscription_data("U", "*", sub_version=3))
    cluster.run(15_000)
    assert notices(client) == 2


def test_a_heartbeat_may_leave_out_subscriptions_that_are_known(cluster: Any, client: Any) -> None:
    def beat(fingerprint: int, *, without_sub: bool) -> str | None:
        subscriptions = [] if without_sub else [build_subscription_data("T", "*", sub_version=1)]
        consumer = ConsumerData(
            "G",
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            subscriptions,
        )
        data = HeartbeatData("c", [], [consumer], fingerprint, without_sub)
        response = client.call(RequestCode.HEART_BEAT, h.HeartbeatRequestHeader(), data.encode())
        answer: str | None = response.ext_field("IS_SUB_CHANGE")
        return answer

    assert beat(0, without_sub=False) == "true"
    assert beat(42, without_sub=False) == "true"
    assert beat(42, without_sub=True) == "false"
    assert cluster.broker.consumer_manager.find_subscription_data("G", "T") is not None
    assert beat(43, without_sub=True) == "true"
    assert beat(43, without_sub=True) == "false"


def test_a_group_of_which_nothing_was_told_has_not_changed(cluster: Any, client: Any) -> None:
    consumer = ConsumerData(
        "G", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    )
    data = HeartbeatData("c", [], [consumer], 42, True)
    response = client.call(RequestCode.HEART_BEAT, h.HeartbeatRequestHeader(), data.encode())
    assert response.ext_field("IS_SUB_CHANGE") == "false"
    assert cluster.broker.consumer_manager.find_subscription_data("G", "T") is None


def test_a_heartbeat_that_is_no_json(client: Any) -> None:
    response = client.call(RequestCode.HEART_BEAT, h.HeartbeatRequestHeader(), b"{nonsense")
    assert response.code == ResponseCode.SYSTEM_ERROR


def test_groups_that_may_not_be_made_are_left_out(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(auto_create_subscription_group=False)
    client = cluster.client()
    assert client.heartbeat().code == 0
    assert members(client) == []


# -- leaving --------------------------------------------------------------------------------------------------------


def test_nobody_online(client: Any) -> None:
    response = client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, h.GetConsumerListByGroupRequestHeader("G"))
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, G")


def test_a_farewell_is_told_to_the_others_at_once(cluster: Any) -> None:
    first, second = cluster.client(), cluster.client()
    first.heartbeat()
    second.heartbeat()
    cluster.run(10)
    leave(second)
    cluster.run(10)
    assert members(first) == [first.node.name]
    assert notices(first) == 3
    leave(first)
    assert cluster.broker.consumer_manager.consumer_table == {}


def test_a_killed_client_is_missed_at_once(cluster: Any) -> None:
    first, second = cluster.client(), cluster.client()
    first.heartbeat()
    second.heartbeat(producers=("P",))
    cluster.do("crash", node=second.node.name)
    cluster.run(10)
    assert members(first) == [first.node.name]
    assert notices(first) == 3
    assert cluster.broker.producer_manager.group_channel_table == {}


def test_a_hanging_client_is_dropped_120_to_130_seconds_after_its_last_heartbeat_and_nobody_is_told(
    cluster: Any,
) -> None:
    first, second = cluster.client(), cluster.client()
    second.heartbeat(producers=("P",))
    last_ms = cluster.seen("HeartbeatReceived")[-1]["ts_ms"]
    # The answer to this pull, 15 to 20 s later, is why its connection is not closed for being idle before the scan.
    second.begin_pull("T", suspend=True)
    cluster.run(10)
    cluster.do("freeze", node=second.node.name)
    for _ in range(4):
        first.heartbeat()
        cluster.run(29_900)
    told = notices(first)
    cluster.run(11_000)
    assert members(first) == [first.node.name]
    expired = cluster.seen("ClientExpired")
    assert [(event["group"], event["role"]) for event in expired] == [("P", "producer"), ("G", "consumer")]
    for event in expired:
        assert 120_000 <= event["ts_ms"] - last_ms <= 130_001
    assert notices(first) == told


def test_a_heartbeat_that_was_being_processed_when_its_connection_closed_leaves_a_ghost_for_130_seconds(
    make_cluster: Callable[..., Any],
) -> None:
    cluster = make_cluster(service_us=ServiceTimes(heartbeat=5_000))
    client = cluster.client("gone")
    client.heartbeat()
    client.begin(RequestCode.HEART_BEAT, h.HeartbeatRequestHeader(), client.heartbeat_body())
    cluster.run(2)
    cluster.do("crash", node="gone")
    cluster.run(2)
    consumers = cluster.broker.consumer_manager
    assert consumers.get_consumer_group_info("G") is None
    cluster.run(119_000)
    assert consumers.get_consumer_group_info("G").all_client_ids() == ["gone"]
    assert not next(iter(consumers.get_consumer_group_info("G").channel_info_table)).is_active
    cluster.run(12_000)
    assert consumers.get_consumer_group_info("G") is None
    assert [event["reason"] for event in cluster.seen("ClientUnregistered")] == ["channel closed"]
    assert [event["client_id"] for event in cluster.seen("ClientExpired")] == ["gone"]


def test_unregistering_a_group_that_nobody_knows_is_no_error(client: Any) -> None:
    leave(client, "nobody")


# -- offsets --------------------------------------------------------------------------------------------------------


def query(client: Any, topic: str = "T", queue_id: int = 0, **more: Any) -> Any:
    return client.call(
        RequestCode.QUERY_CONSUMER_OFFSET, h.QueryConsumerOffsetRequestHeader("G", topic, queue_id, **more)
    )


def update(client: Any, offset: int, group: str = "G", topic: str = "T") -> Any:
    return client.call(
        RequestCode.UPDATE_CONSUMER_OFFSET, h.UpdateConsumerOffsetRequestHeader(group, topic, 0, offset)
    )


def test_progress_is_stored_and_may_also_go_back(cluster: Any, client: Any) -> None:
    client.heartbeat()
    assert update(client, 5).code == 0
    assert query(client).header_as(h.QueryConsumerOffsetResponseHeader).offset == 5
    update(client, 2)
    assert query(client).header_as(h.QueryConsumerOffsetResponseHeader).offset == 2


def test_progress_of_unknown_groups_and_topics_is_refused(client: Any) -> None:
    assert (update(client, 1).code, update(client, 1).remark) == (26, "Group G not exist!")
    client.heartbeat()
    response = update(client, 1, topic="Nope")
    assert (response.code, response.remark) == (17, "Topic Nope not exist!")


def test_a_group_without_progress_begins_at_0_in_a_young_queue(cluster: Any, client: Any) -> None:
    empty = query(client)
    assert (empty.code, empty.remark) == (22, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
    client.send("T")
    cluster.run(5)
    assert query(client).header_as(h.QueryConsumerOffsetResponseHeader).offset == 0
    strict = query(client, set_zero_if_not_found=False)
    assert (strict.code, strict.remark) == (22, "Not found, do not set to zero, maybe this group boot first")


def test_the_version_of_the_table_advances_once_in_500_commits(cluster: Any, client: Any) -> None:
    offsets = cluster.broker.consumer_offset_manager
    for i in range(499):
        offsets.commit_offset("G", "T", 0, i)
    assert offsets.data_version.counter == 0
    offsets.commit_offset("G", "T", 0, 499)
    assert offsets.data_version.counter == 1


# -- checks ---------------------------------------------------------------------------------------------------------


def test_only_tags_can_be_subscribed_to(client: Any) -> None:
    def check(expression: str, expression_type: str) -> Any:
        subscription = build_subscription_data("T", expression, expression_type)
        body = CheckClientRequestBody("c", "G", subscription).encode()
        return client.call(RequestCode.CHECK_CLIENT_CONFIG, None, body)

    assert check("a || b", "TAG").code == 0
    refused = check("a > 5", "SQL92")
    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "The broker does not support consumer to filter message by SQL92",
    )


# -- broadcasting ---------------------------------------------------------------------------------------------------


def test_the_slowest_member_of_a_broadcasting_group_is_noted_every_5_seconds(cluster: Any) -> None:
    fast, slow = cluster.client(), cluster.client()
    for client in (fast, slow):
        client.heartbeat(model=MessageModel.BROADCASTING)
    for _ in range(5):
        fast.send("T")
    cluster.run(5)
    fast.pull("T", 4, subscription=None)
    slow.pull("T", 2, subscription=None)
    cluster.run(5_000)
    offsets = cluster.broker.consumer_offset_manager
    assert offsets.query_offset("G@broadcast", "T", 0) == 2
    assert offsets.query_offset("G", "T", 0) == -1
    cluster.run(130_000)
    assert members(fast) == []
    fast.heartbeat(model=MessageModel.BROADCASTING)
    fast.pull("T", 3, subscription=None)
    cluster.run(5_000)
    assert offsets.query_offset("G@broadcast", "T", 0) == 3
    cluster.run(6_000)
    assert b'"T@G@broadcast":{0:3' in cluster.broker_node.disk.read_bytes("store/config/consumerOffset.json")


def broadcasting(cluster: Any, *pulls: int) -> Any:
    """A member of a broadcasting group that has pulled from these offsets of a queue with five messages."""
    client = cluster.client()
    client.heartbeat(model=MessageModel.BROADCASTING)
    for _ in range(5 - cluster.broker.message_store.get_max_offset_in_queue("T", 0)):
        client.send("T")
    cluster.run(5)
    for offset in pulls:
        client.pull("T", offset, subscription=None)
    return client


def test_what_is_noted_of_one_broadcasting_client_never_goes_back_but_a_slower_one_sets_the_group_back(
    cluster: Any,
) -> None:
    broadcasting(cluster, 4, 1)
    offsets = cluster.broker.consumer_offset_manager
    cluster.run(5_000)
    assert offsets.query_offset("G@broadcast", "T", 0) == 4
    broadcasting(cluster, 2)
    cluster.run(5_000)
    assert offsets.query_offset("G@broadcast", "T", 0) == 2


def test_broadcasting_is_noted_every_5_seconds_also_when_nobody_pulls(cluster: Any) -> None:
    broadcasting(cluster, 3)
    cluster.run(20_000)
    committed = [e for e in cluster.seen("OffsetCommitted") if e["group"] == "G@broadcast"]
    assert [event["queue_offset"] for event in committed] == [3] * 4
    assert {round(b["ts_ms"] - a["ts_ms"]) for a, b in pairwise(committed)} == {5_000}


@pytest.mark.parametrize(("online", "last_noted_s"), [(True, 305), (False, 120)])
def test_a_broadcasting_client_that_no_longer_pulls_is_forgotten(
    cluster: Any, online: bool, last_noted_s: int
) -> None:
    client = broadcasting(cluster, 3)
    if not online:
        leave(client)
    for _ in range(7):
        if online:
            client.heartbeat(model=MessageModel.BROADCASTING)
        cluster.run(50_000)
    assert cluster.broker.broadcast_offset_manager.offset_store == {}
    committed = [e for e in cluster.seen("OffsetCommitted") if e["group"] == "G@broadcast"]
    assert committed[-1]["ts_ms"] == last_noted_s * 1_000


def test_members_that_pull_by_themselves_are_not_noted(cluster: Any) -> None:
    client = cluster.client()
    client.heartbeat(model=MessageModel.BROADCASTING, consume_type=ConsumeType.CONSUME_ACTIVELY)
    client.send("T")
    cluster.run(5)
    client.pull("T", subscription=None)
    assert cluster.broker.broadcast_offset_manager.offset_store == {}


def test_progress_without_a_queue_or_an_offset_is_refused(client: Any) -> None:
    from mqlab.protocol.command import RemotingCommand

    def ask(**fields: str) -> Any:
        request = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET)
        for name, value in fields.items():
            request.add_ext_field(name, value)
        call = client.remoting.invoke_sync(client.cluster.broker_address, request, 3_000)
        return client.cluster.world.wait_for(client.node.spawn(call, "ask").join())

    no_queue = ask(consumerGroup="G", topic="T", commitOffset="1")
    assert (no_queue.code, no_queue.remark) == (ResponseCode.INVALID_PARAMETER, "QueueId is null, topic is T")
    no_offset = ask(consumerGroup="G", topic="T", queueId="0")
    assert (no_offset.code, no_offset.remark) == (ResponseCode.INVALID_PARAMETER, "Offset is null, topic is T")
    assert ask(topic="T", queueId="0", commitOffset="1").code == ResponseCode.SYSTEM_ERROR
    # What is no number is as good as missing to RocketMQ's header decoder.
    words = ask(consumerGroup="G", topic="T", queueId="zero", commitOffset="1")
    assert (words.code, words.remark) == (ResponseCode.INVALID_PARAMETER, "QueueId is null, topic is T")
