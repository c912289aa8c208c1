"""What administrators ask of a broker now and then: who consumes what, entries of queues, producers, cleaning."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.bodies import (
    ConsumeQueueData,
    ConsumeStatsList,
    GroupList,
    OffsetWrapper,
    ProducerTableInfo,
    QueryConsumeQueueResponseBody,
    QuerySubscriptionResponseBody,
)
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.hashing import java_string_hash
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicList

QUEUE = MessageQueue("T", "broker-a", 0)


def commit(cluster: Any, offset: int, group: str = "G") -> None:
    cluster.broker.consumer_offset_manager.commit_offset(group, "T", 0, offset)


def groups_of(client: Any, topic: str) -> list[str]:
    answer = client.call(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, h.QueryTopicConsumeByWhoRequestHeader(topic))
    return GroupList.decode(answer.body).group_list


def test_who_consumes_a_topic_is_told_by_progress_and_its_name_comes_along(cluster: Any, client: Any) -> None:
    """A real 5.3.3 notes a topic under its own name when somebody subscribes to it, where it means the group."""
    assert groups_of(client, "T") == []
    client.heartbeat()
    assert groups_of(client, "T") == ["T"]
    commit(cluster, 1)
    assert groups_of(client, "T") == ["T", "G"]
    assert groups_of(client, "other") == []


def test_the_topics_of_a_group_and_what_it_wants_of_one(cluster: Any, client: Any) -> None:
    commit(cluster, 1)
    answer = client.call(RequestCode.QUERY_TOPICS_BY_CONSUMER, h.QueryTopicsByConsumerRequestHeader("G"))
    assert TopicList.decode(answer.body) == TopicList(["T"], cluster.broker_address)
    asked = RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, h.QuerySubscriptionByConsumerRequestHeader("G", "T")
    nobody = QuerySubscriptionResponseBody.decode(client.call(*asked).body)
    assert (nobody.group, nobody.topic, nobody.subscription_data) == ("G", "T", None)
    client.heartbeat()
    wanted = QuerySubscriptionResponseBody.decode(client.call(*asked).body).subscription_data
    assert wanted is not None
    assert wanted.sub_string == "*"


def test_how_far_all_groups_are(cluster: Any, client: Any) -> None:
    groups = cluster.broker.subscription_group_manager
    groups.update_subscription_group_config(SubscriptionGroupConfig("G"))
    for _ in range(3):
        client.send("T")
    cluster.run(100)
    commit(cluster, 2)
    answer = client.call(RequestCode.GET_BROKER_CONSUME_STATS, h.GetConsumeStatsInBrokerHeader(False))
    stats = ConsumeStatsList.decode(answer.body)
    assert (stats.total_diff, stats.total_inflight_diff, stats.broker_addr) == (1, -2, cluster.broker_address)
    told = {group: entry for entry in stats.consume_stats_list for group, entry in entry.items()}
    (progress,) = [entry.offset_table[QUEUE] for entry in told["G"]]
    stored = cluster.broker.message_store.get_message_store_timestamp("T", 0, 1)
    assert progress == OffsetWrapper(3, 2, 0, stored)
    in_order = client.call(RequestCode.GET_BROKER_CONSUME_STATS, h.GetConsumeStatsInBrokerHeader(True))
    assert ConsumeStatsList.decode(in_order.body).total_diff == 0


def test_a_topic_to_which_a_present_group_does_not_subscribe_is_left_out(cluster: Any, client: Any) -> None:
    cluster.topic("Elsewhere")
    cluster.broker.subscription_group_manager.update_subscription_group_config(SubscriptionGroupConfig("G"))
    cluster.broker.consumer_offset_manager.commit_offset("G", "Elsewhere", 0, 0)
    client.heartbeat()
    answer = client.call(RequestCode.GET_BROKER_CONSUME_STATS, h.GetConsumeStatsInBrokerHeader(False))
    assert {"G": []} in ConsumeStatsList.decode(answer.body).consume_stats_list


def test_all_producers_are_told_with_when_they_were_heard_of(cluster: Any, client: Any) -> None:
    client.heartbeat(group="", producers=("P", "Q"))
    cluster.run(5_000)
    table = ProducerTableInfo.decode(client.call(RequestCode.GET_ALL_PRODUCER_INFO).body).data
    assert set(table) == {"P", "Q"}
    (info,) = table["P"]
    assert (info.client_id, info.language, info.version) == ("client-1", "JAVA", 479)
    assert info.remote_ip.startswith(f"/{client.node.spec.ip}:")
    assert 5_000 <= client.node.now_ms() - info.last_update_timestamp < 5_100


def cq(client: Any, index: int, count: int, group: str | None = None, topic: str = "T") -> Any:
    header = h.QueryConsumeQueueRequestHeader(topic, 0, index, count, group)
    assert header._asdict()["first"] == index
    return client.call(RequestCode.QUERY_CONSUME_QUEUE, header)


def test_entries_of_a_queue(cluster: Any, client: Any) -> None:
    for tag in ("red", "blue", "red"):
        client.send("T", properties={"TAGS": tag})
    cluster.run(100)
    body = QueryConsumeQueueResponseBody.decode(cq(client, 1, 1).body)
    (blue,) = body.queue_data
    assert (body.min_queue_index, body.max_queue_index, body.filter_data) == (0, 3, None)
    assert blue.tags_code == java_string_hash("blue")
    unit = cluster.broker.message_store.find_consume_queue("T", 0).get(1)
    assert blue == ConsumeQueueData(unit.pos, unit.size, unit.tags_code)
    assert len(QueryConsumeQueueResponseBody.decode(cq(client, 0, 10).body).queue_data) == 3


def test_entries_of_a_queue_with_what_a_group_wants(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(100)
    absent = QueryConsumeQueueResponseBody.decode(cq(client, 0, 1, "G").body)
    assert (absent.filter_data, absent.subscription_data) == ("G@T is not online!", None)
    client.heartbeat()
    present = QueryConsumeQueueResponseBody.decode(cq(client, 0, 1, "G").body)
    assert present.filter_data == "null"
    assert present.subscription_data is not None


def test_entries_that_are_not_there(cluster: Any, client: Any) -> None:
    unknown = cq(client, 0, 1, topic="Nothing")
    assert (unknown.code, unknown.remark) == (ResponseCode.SYSTEM_ERROR, "0@Nothing is not exist!")
    client.send("T")
    cluster.run(100)
    beyond = cq(client, 9, 1)
    assert (beyond.code, beyond.remark, beyond.body) == (ResponseCode.SUCCESS, "Index 9 of 0@T is not exist!", None)


def test_queues_of_topics_that_are_gone_are_cleaned(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.topic("Gone")
    client.send("Gone")
    cluster.run(100)
    del cluster.broker.topic_config_manager.topic_config_table["Gone"]
    assert client.call(RequestCode.CLEAN_UNUSED_TOPIC).code == ResponseCode.SUCCESS
    store = cluster.broker.message_store
    assert store.find_consume_queue("Gone", 0) is None
    assert store.find_consume_queue("T", 0) is not None


@pytest.mark.parametrize("code", [RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, RequestCode.DELETE_EXPIRED_COMMITLOG])
def test_cleaning_is_answered_and_leaves_what_is_in_use(cluster: Any, client: Any, code: int) -> None:
    client.send("T")
    cluster.run(100)
    assert client.call(code).code == ResponseCode.SUCCESS
    cluster.run(120_000)
    assert cluster.broker.message_store.get_max_offset_in_queue("T", 0) == 1


def test_what_a_slave_is_told_of_its_masters_log_a_master_passes_over(cluster: Any, client: Any) -> None:
    header = h.ResetMasterFlushOffsetHeader(4_711)
    assert client.call(RequestCode.RESET_MASTER_FLUSH_OFFSET, header).code == ResponseCode.SUCCESS
    checkpoint = cluster.broker.message_store.store_checkpoint
    assert checkpoint.master_flushed_offset == 0
    cluster.broker.broker_config.broker_id = 1
    client.call(RequestCode.RESET_MASTER_FLUSH_OFFSET, header)
    assert checkpoint.master_flushed_offset == 4_711


def test_epochs_are_for_brokers_with_a_controller(client: Any) -> None:
    answer = client.call(RequestCode.GET_BROKER_EPOCH_CACHE)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
