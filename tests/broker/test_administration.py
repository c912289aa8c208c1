"""What administrators ask of a broker: topics, groups, queues, settings, looking messages up."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.broker.admin_groups import SubscriptionGroupList
from mqlab.broker.admin_topics import CreateTopicListRequestBody
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import ConsumerConnection, ConsumeStats, ProducerConnection, TopicStatsTable
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.java_properties import decode_java_properties
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import (
    ConsumerOffsetSerializeWrapper,
    KVTable,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from tests.broker.conftest import messages_of

QUEUE = MessageQueue("T", "broker-a", 0)


def create(client: Any, topic: str, queues: int = 2, **more: Any) -> Any:
    header = h.CreateTopicRequestHeader(topic, "TBW102", queues, queues, more.pop("perm", 6), "SINGLE_TAG", 0, **more)
    return client.call(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


# -- topics ---------------------------------------------------------------------------------------------------------


def test_a_topic_is_created_changed_and_deleted(cluster: Any, client: Any) -> None:
    assert create(client, "New").code == 0
    cluster.run(10)
    routes = cluster.namesrv.route_info_manager
    assert routes.topic_queue_table["New"]["broker-a"].read_queue_nums == 2
    create(client, "New", 5)
    cluster.run(10)
    assert routes.topic_queue_table["New"]["broker-a"].read_queue_nums == 5
    client.send("New")
    cluster.run(5)
    assert client.call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("New")).code == 0
    assert client.pull("New").code == ResponseCode.TOPIC_NOT_EXIST
    assert cluster.broker.message_store.find_consume_queue("New", 0) is None


def test_the_same_settings_again_change_nothing(cluster: Any, client: Any) -> None:
    create(client, "New")
    version = cluster.broker.topic_config_manager.data_version.copy()
    assert create(client, "New").code == 0
    assert cluster.broker.topic_config_manager.data_version == version


def test_only_the_changed_topic_is_reported(cluster: Any, client: Any) -> None:
    cluster.run(100)
    before = len(cluster.seen("RegistrationSent"))
    create(client, "New")
    cluster.run(10)
    assert [event["topics"] for event in cluster.seen("RegistrationSent")[before:]] == [1]


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        ("a b", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("t" * 128, "The specified topic is longer than topic max length."),
        ("TBW102", "The topic[TBW102] is conflict with system topic."),
        ("rmq_sys_x", "The topic[rmq_sys_x] is conflict with system topic."),
    ],
)
def test_names_that_no_topic_may_have(client: Any, topic: str, remark: str) -> None:
    response = create(client, topic)
    assert (response.code, response.remark) == (ResponseCode.INVALID_PARAMETER, remark)


def test_system_topics_cannot_be_deleted(client: Any) -> None:
    response = client.call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("TBW102"))
    assert (response.code, response.remark) == (
        ResponseCode.INVALID_PARAMETER,
        "The topic[TBW102] is conflict with system topic.",
    )


@pytest.mark.parametrize(
    ("attributes", "remark"),
    [
        ("+unknown=1", "unsupported key: unknown"),
        ("+queue.type=Odd", "value is not in set: queue.type=Odd"),
        ("-queue.type", "only add attribute is supported while creating topic. key: queue.type"),
        ("queue.type=BatchCQ", "add/alter/delete attribute format is wrong: queue.type=BatchCQ"),
        ("+queue.type", "add/alter attribute format is wrong: +queue.type"),
        ("+queue.type=BatchCQ,+queue.type=SimpleCQ", "key duplication: +queue.type"),
    ],
)
def test_attributes_that_cannot_be(client: Any, attributes: str, remark: str) -> None:
    response = create(client, "New", attributes=attributes)
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, remark)


def test_attributes_are_set_and_changed_where_they_may_be(cluster: Any, client: Any) -> None:
    create(client, "New", attributes="+queue.type=BatchCQ,+message.type=NORMAL")
    topics = cluster.broker.topic_config_manager
    assert topics.select_topic_config("New").attributes == {"queue.type": "BatchCQ", "message.type": "NORMAL"}
    assert create(client, "New", attributes="+queue.type=SimpleCQ").code == ResponseCode.SYSTEM_ERROR
    create(client, "New", attributes="-message.type")
    assert topics.select_topic_config("New").attributes == {"queue.type": "BatchCQ"}


def test_several_topics_at_once(cluster: Any, client: Any) -> None:
    body = CreateTopicListRequestBody([TopicConfig("A", 1, 1), TopicConfig("B", 2, 2)]).encode()
    assert client.call(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, body).code == 0
    assert cluster.broker.topic_config_manager.select_topic_config("B").read_queue_nums == 2


def test_looking_at_topics(cluster: Any, client: Any) -> None:
    one = client.call(RequestCode.GET_TOPIC_CONFIG, h.GetTopicConfigRequestHeader("T"))
    assert TopicConfig.decode(one.body).topic_name == "T"
    none = client.call(RequestCode.GET_TOPIC_CONFIG, h.GetTopicConfigRequestHeader("Nope"))
    assert (none.code, none.remark) == (ResponseCode.TOPIC_NOT_EXIST, "No topic in this broker. topic: Nope")
    everything = client.call(RequestCode.GET_ALL_TOPIC_CONFIG, h.GetAllTopicConfigRequestHeader())
    table = TopicConfigAndMappingSerializeWrapper.decode(everything.body).topic_config_table
    assert {"T", "TBW102", "SCHEDULE_TOPIC_XXXX"} <= set(table)
    page = client.call(RequestCode.GET_ALL_TOPIC_CONFIG, h.GetAllTopicConfigRequestHeader(1, None, 2))
    assert page.header_as(h.GetAllTopicConfigResponseHeader).total_topic_num == len(table)
    assert list(TopicConfigAndMappingSerializeWrapper.decode(page.body).topic_config_table) == list(table)[1:3]


def test_the_system_topics_of_a_fresh_broker(cluster: Any) -> None:
    table = cluster.broker.topic_config_manager.topic_config_table
    assert {name: (c.write_queue_nums, c.perm) for name, c in table.items() if name != "T"} == {
        "SELF_TEST_TOPIC": (1, 6),
        "TBW102": (8, 7),
        "BenchmarkTest": (1024, 6),
        "DefaultCluster": (16, 7),
        "broker-a": (1, 7),
        "OFFSET_MOVED_EVENT": (1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 6),
        "rmq_sys_REVIVE_LOG_DefaultCluster": (8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_broker-a": (1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 6),
        "rmq_sys_wheel_timer": (1, 6),
    }


# -- groups ---------------------------------------------------------------------------------------------------------


def test_a_group_is_created_looked_at_and_deleted(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", retry_max_times=2).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    header = h.GetSubscriptionGroupConfigRequestHeader("G")
    config = SubscriptionGroupConfig.decode(client.call(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header).body)
    assert config.retry_max_times == 2
    cluster.broker.consumer_offset_manager.commit_offset("G", "T", 0, 5)
    client.call(RequestCode.DELETE_SUBSCRIPTIONGROUP, h.DeleteSubscriptionGroupRequestHeader("G", clean_offset=True))
    again = SubscriptionGroupConfig.decode(client.call(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header).body)
    assert again.retry_max_times == 16, "who asks for a group makes it"
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == -1


@pytest.mark.parametrize("group", ["", "a b", "中文组", "g" * 256])
def test_an_administrator_may_create_a_group_of_any_name(cluster: Any, client: Any, group: str) -> None:
    body = SubscriptionGroupConfig(group).encode()
    assert client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body).code == 0
    assert cluster.broker.subscription_group_manager.contains_subscription_group(group)


def test_several_groups_at_once_and_all_groups(client: Any) -> None:
    body = SubscriptionGroupList([SubscriptionGroupConfig("A"), SubscriptionGroupConfig("B")]).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, body)
    response = client.call(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    assert {"A", "B", "TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"} <= set(
        SubscriptionGroupWrapper.decode(response.body).subscription_group_table
    )


def test_who_is_connected(client: Any) -> None:
    client.heartbeat(producers=("P",))
    consumers = client.call(
        RequestCode.GET_CONSUMER_CONNECTION_LIST, h.GetConsumerConnectionListRequestHeader("G")
    )
    connection = ConsumerConnection.decode(consumers.body)
    assert [(c.client_id, c.language, c.version) for c in connection.connection_set] == [
        (client.node.name, "JAVA", 479)
    ]
    assert list(connection.subscription_table) == ["T"]
    producers = client.call(
        RequestCode.GET_PRODUCER_CONNECTION_LIST, h.GetProducerConnectionListRequestHeader("P")
    )
    assert len(ProducerConnection.decode(producers.body).connection_set) == 1
    nobody = client.call(RequestCode.GET_CONSUMER_CONNECTION_LIST, h.GetConsumerConnectionListRequestHeader("X"))
    assert (nobody.code, nobody.remark) == (206, "the consumer group[X] not online")


# -- queues ---------------------------------------------------------------------------------------------------------


def test_how_far_queues_reach_and_groups_have_come(cluster: Any, client: Any) -> None:
    first_ms = cluster.broker_node.now_ms()
    for _ in range(3):
        client.send("T")
        cluster.run(10)
    client.heartbeat()
    client.pull("T", 0, max_msg_nums=2)
    cluster.broker.consumer_offset_manager.commit_offset("G", "T", 0, 1)
    stats = TopicStatsTable.decode(
        client.call(RequestCode.GET_TOPIC_STATS_INFO, h.GetTopicStatsInfoRequestHeader("T")).body
    ).offset_table[QUEUE]
    assert (stats.min_offset, stats.max_offset) == (0, 3)
    progress = ConsumeStats.decode(
        client.call(RequestCode.GET_CONSUME_STATS, h.GetConsumeStatsRequestHeader("G")).body
    ).offset_table[QUEUE]
    assert (progress.broker_offset, progress.consumer_offset, progress.pull_offset) == (3, 1, 2)
    assert progress.last_timestamp - first_ms <= 1
    offsets = client.call(RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert ConsumerOffsetSerializeWrapper.decode(offsets.body).offset_table == {"T@G": {0: 1}}


def test_offsets_by_bounds_and_by_time(cluster: Any, client: Any) -> None:
    times = []
    for _ in range(3):
        times.append(cluster.broker_node.now_ms())
        client.send("T")
        cluster.run(10)

    def offset(code: int, header: Any) -> int:
        response = client.call(code, header)
        assert response.code == 0
        return int(response.ext_field("offset"))

    assert offset(RequestCode.GET_MAX_OFFSET, h.GetMaxOffsetRequestHeader("T", 0)) == 3
    assert offset(RequestCode.GET_MIN_OFFSET, h.GetMinOffsetRequestHeader("T", 0)) == 0
    assert offset(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, h.SearchOffsetRequestHeader("T", 0, times[1])) == 1
    earliest = client.call(
        RequestCode.GET_EARLIEST_MSG_STORETIME, h.GetEarliestMsgStoretimeRequestHeader("T", 0)
    ).header_as(h.GetEarliestMsgStoretimeResponseHeader)
    assert 0 <= earliest.timestamp - times[0] <= 1
    nothing = client.call(RequestCode.GET_EARLIEST_MSG_STORETIME, h.GetEarliestMsgStoretimeRequestHeader("T", 9))
    assert nothing.header_as(h.GetEarliestMsgStoretimeResponseHeader).timestamp == -1


def test_messages_are_found_by_key_by_unique_key_and_by_place(cluster: Any, client: Any) -> None:
    sent = client.send("T", b"found", properties={"KEYS": "k1 k2", "UNIQ_KEY": "U1"})
    cluster.run(5)
    for key in ("k1", "k2", "U1"):
        header = h.QueryMessageRequestHeader("T", key, 10, 0, 1 << 60)
        response = client.call(RequestCode.QUERY_MESSAGE, header)
        assert [m.body for m in messages_of(response)] == [b"found"]
    missing = client.call(RequestCode.QUERY_MESSAGE, h.QueryMessageRequestHeader("T", "k3", 10, 0, 1 << 60))
    assert (missing.code, missing.remark) == (22, "can not find message, maybe time range not correct")
    offset = int(sent.header_as(h.SendMessageResponseHeader).msg_id[16:], 16)
    view = client.call(RequestCode.VIEW_MESSAGE_BY_ID, h.ViewMessageRequestHeader("T", offset))
    assert [m.body for m in messages_of(view)] == [b"found"]
    wrong = client.call(RequestCode.VIEW_MESSAGE_BY_ID, h.ViewMessageRequestHeader("T", offset + 1))
    assert (wrong.code, wrong.remark) == (1, f"can not find message by the offset, {offset + 1}")


# -- the broker itself ----------------------------------------------------------------------------------------------


def test_settings_are_read_and_changed_while_the_broker_runs(cluster: Any, client: Any) -> None:
    response = client.call(RequestCode.GET_BROKER_CONFIG)
    settings = dict(line.split("=", 1) for line in response.body.decode().splitlines())
    assert settings["brokerName"] == "broker-a"
    assert settings["waitTimeMillsInSendQueue"] == "200"
    assert settings["maxMessageSize"] == str(4 * 1024 * 1024)
    assert (settings["brokerRole"], settings["flushDiskType"]) == ("ASYNC_MASTER", "ASYNC_FLUSH")
    assert list(settings) == sorted(settings)
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerPermission=0\nmaxMessageSize=10\n").code == 0
    assert client.pull("T").code == ResponseCode.NO_PERMISSION
    assert client.send("T", b"x" * 11).code == ResponseCode.MESSAGE_ILLEGAL
    cluster.run(10)
    assert cluster.namesrv.route_info_manager.topic_queue_table["T"]["broker-a"].perm == 0


def test_a_region_that_was_set_anew_is_that_of_the_next_message(cluster: Any, client: Any) -> None:
    settings = b"regionId=north\ntraceOn=false\nrejectTransactionMessage=true\n"
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, settings).code == 0
    response = client.send("T")
    assert (response.ext_field("MSG_REGION"), response.ext_field("TRACE_ON")) == ("north", "false")
    cluster.run(5)
    (message,) = messages_of(client.pull("T"))
    assert (message.properties["MSG_REGION"], message.properties["TRACE_ON"]) == ("north", "false")
    refused = client.send("T", properties={"TRAN_MSG": "true"})
    assert (refused.code, refused.ext_field("MSG_REGION")) == (ResponseCode.NO_PERMISSION, "north")


def test_settings_that_cannot_be_changed(client: Any) -> None:
    secret = client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerConfigPath=x")
    assert (secret.code, secret.remark) == (ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    wrong = client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerPermission=all")
    assert (wrong.code, wrong.remark) == (ResponseCode.SYSTEM_ERROR, "brokerPermission=all is not a number")


def settings_of(client: Any) -> dict[str, str]:
    return decode_java_properties(client.call(RequestCode.GET_BROKER_CONFIG).body.decode())


def test_a_broker_that_flushed_before_its_answer_answers_at_once_when_it_is_told_to(make_cluster: Any) -> None:
    cluster = make_cluster({"flush_disk_type": "SYNC_FLUSH"})
    client = cluster.client()

    def flushes_before_it_answers() -> bool:
        assert client.send("T").code == 0
        wanted = ("MessageStored", "CommitLogFlushed", "MessageSendAnswered")
        kinds = [row[7] for row in cluster.events if row[7] in wanted]
        last = len(kinds) - kinds[::-1].index("MessageStored")
        return kinds[last] == "CommitLogFlushed"

    assert flushes_before_it_answers()
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"flushDiskType=ASYNC_FLUSH").code == 0
    assert settings_of(client)["flushDiskType"] == "ASYNC_FLUSH"
    assert not flushes_before_it_answers()
    cluster.run(10)
    assert len(cluster.seen("CommitLogFlushed")) == 2
    assert len(messages_of(client.pull("T"))) == 2
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"flushDiskType=SYNC_FLUSH").code == 0
    assert settings_of(client)["flushDiskType"] == "SYNC_FLUSH"
    assert flushes_before_it_answers()


def test_an_asynchronous_master_waits_for_its_slaves_when_it_is_told_to(cluster: Any, client: Any) -> None:
    assert client.send("T").code == 0
    settings = b"brokerRole=SYNC_MASTER\ninSyncReplicas=2\nslaveTimeout=1000"
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, settings).code == 0
    assert settings_of(client)["brokerRole"] == "SYNC_MASTER"
    began = cluster.now_ms
    assert client.send("T").code == ResponseCode.FLUSH_SLAVE_TIMEOUT
    assert cluster.now_ms - began >= 1_000
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerRole=ASYNC_MASTER").code == 0
    assert client.send("T").code == 0


@pytest.mark.parametrize(
    ("line", "setting", "reason"),
    [
        ("flushDiskType=SYNC_FLUSH", "flushDiskType", "the thread that synchronous flush needs"),
        ("brokerRole=SLAVE", "brokerRole", "does not change between master and slave"),
    ],
)
def test_what_needs_other_threads_is_refused_with_what_to_do(client: Any, line: str, setting: str, reason: str) -> None:
    before = settings_of(client)
    refused = client.call(RequestCode.UPDATE_BROKER_CONFIG, None, f"maxMessageSize=10\n{line}".encode())
    assert refused.code == ResponseCode.NO_PERMISSION
    assert refused.remark.startswith(line)
    assert reason in refused.remark
    assert "start it anew" in refused.remark
    assert settings_of(client) == before
    same = f"{setting}={before[setting]}"
    assert client.call(RequestCode.UPDATE_BROKER_CONFIG, None, same.encode()).code == 0


def test_a_word_that_a_setting_does_not_have_is_refused(client: Any) -> None:
    refused = client.call(RequestCode.UPDATE_BROKER_CONFIG, None, b"flushDiskType=NEVER")
    assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "'NEVER' is no FlushDiskType")


def test_how_the_broker_is_doing(cluster: Any, client: Any) -> None:
    client.send("T")
    cluster.run(5)
    client.pull("T")
    table = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("1", "1")
    assert table["sendThreadPoolQueueCapacity"] == "10000"
    assert int(table["commitLogMaxOffset"]) > 0
    client.send("T", properties={"DELAY": "1"})
    cluster.run(5)
    before = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    cluster.run(1_500)
    after = KVTable.decode(client.call(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert int(after["commitLogMaxOffset"]) > int(before["commitLogMaxOffset"])
    # System topics do not count, so it counts when it is delivered and not when it is parked.
    assert (before["msgPutTotalTodayNow"], after["msgPutTotalTodayNow"]) == ("1", "2")
