"""Sending: what is checked in which order, what is stored, what is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.batch import encode_batch
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.message import Message
from mqlab.protocol.sysflag import PermName
from mqlab.store import FlushDiskType
from tests.broker.conftest import messages_of

FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def test_a_message_is_stored_with_what_the_broker_adds(cluster: Any, client: Any) -> None:
    response = client.send("T", b"hello", properties={"TAGS": "TagA", "UNIQ_KEY": "U1"}, flag=7, born_timestamp=123)
    header = response.header_as(h.SendMessageResponseHeader)
    assert (response.code, header.queue_id, header.queue_offset, header.transaction_id) == (0, 0, 0, "U1")
    assert response.ext_field("MSG_REGION") == "DefaultRegion"
    assert response.ext_field("TRACE_ON") == "true"
    cluster.run(5)
    (message,) = messages_of(client.pull("T"))
    assert (message.body, message.flag, message.born_timestamp) == (b"hello", 7, 123)
    assert message.born_host.startswith(client.node.spec.ip)
    assert message.store_host == cluster.broker_address
    assert message.offset_msg_id == header.msg_id
    assert message.properties == {
        "TAGS": "TagA",
        "UNIQ_KEY": "U1",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
    }


def test_a_message_without_a_unique_key_gets_one_from_the_broker(cluster: Any, client: Any) -> None:
    header = client.send("T").header_as(h.SendMessageResponseHeader)
    cluster.run(5)
    assert messages_of(client.pull("T"))[0].properties["UNIQ_KEY"] == header.transaction_id
    assert len(header.transaction_id) == 32


def test_a_negative_queue_id_lets_the_broker_choose(make_cluster: Callable[..., Any]) -> None:
    chosen = set()
    for seed in range(8):
        cluster = make_cluster(seed=seed)
        cluster.topic("T", 4)
        chosen.add(cluster.client().send("T", queue_id=-1).header_as(h.SendMessageResponseHeader).queue_id)
    assert chosen <= {0, 1, 2, 3}
    assert len(chosen) > 1


# -- topics that do not exist yet -----------------------------------------------------------------------------------


def test_an_unknown_topic_is_made_after_the_template_with_the_smaller_number_of_queues(
    cluster: Any, client: Any
) -> None:
    assert client.send("New", default_topic_queue_nums=4).code == 0
    config = cluster.broker.topic_config_manager.select_topic_config("New")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (4, 4, 6)
    assert client.send("Newer", default_topic_queue_nums=100).code == 0
    assert cluster.broker.topic_config_manager.select_topic_config("Newer").write_queue_nums == 8


def test_the_name_server_hears_of_a_new_topic_within_milliseconds(cluster: Any, client: Any) -> None:
    client.send("New")
    cluster.run(5)
    assert "New" in cluster.namesrv.route_info_manager.topic_queue_table


def test_without_auto_creation_an_unknown_topic_is_refused(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(auto_create_topic_enable=False)
    response = cluster.client().send("New")
    assert (response.code, response.remark) == (
        ResponseCode.TOPIC_NOT_EXIST,
        f"topic[New] not exist, apply first please!\n{FAQ}",
    )


def test_a_template_without_the_inherit_bit_makes_no_topics(cluster: Any, client: Any) -> None:
    assert client.send("New", default_topic="T").code == ResponseCode.TOPIC_NOT_EXIST


def test_a_retry_topic_without_a_usable_template_is_made_with_one_queue(cluster: Any, client: Any) -> None:
    assert client.send("%RETRY%G", default_topic="nothing").code == 0
    config = cluster.broker.topic_config_manager.select_topic_config("%RETRY%G")
    assert (config.write_queue_nums, config.perm) == (1, 6)


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        ("bad topic", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("主题", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("t" * 128, "The specified topic is longer than topic max length."),
    ],
)
def test_wrong_topic_names(client: Any, topic: str, remark: str) -> None:
    response = client.send(topic)
    assert (response.code, response.remark) == (ResponseCode.INVALID_PARAMETER, remark)


def test_rocketmqs_own_topics_take_no_messages(cluster: Any, client: Any) -> None:
    response = client.send("SCHEDULE_TOPIC_XXXX")
    assert (response.code, response.remark) == (
        ResponseCode.NO_PERMISSION,
        "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden.",
    )
    assert client.send("TBW102").code == 0


def test_a_queue_that_the_topic_does_not_have(cluster: Any, client: Any) -> None:
    response = client.send("T", queue_id=1)
    assert response.code == ResponseCode.INVALID_PARAMETER
    assert response.remark.startswith(
        "request queueId[1] is illegal, TopicConfig [topicName=T, readQueueNums=1, writeQueueNums=1, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false, attributes={}] Producer: 10.0.0."
    )


def test_a_message_may_go_to_any_queue_that_can_be_read_or_written(cluster: Any, client: Any) -> None:
    cluster.topic("Shrunk", read_queue_nums=4, write_queue_nums=2)
    assert [client.send("Shrunk", queue_id=queue_id).code for queue_id in range(5)] == [0, 0, 0, 0, 29]


def test_a_body_over_the_limit(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster({"max_message_size": 1000})
    client = cluster.client()
    assert client.send("T", b"x" * 1000).code == 0
    response = client.send("T", b"x" * 1001)
    assert (response.code, response.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. "
        "msg body length limit 1000B, msg properties length limit 32KB.",
    )


def test_properties_over_the_limit(client: Any) -> None:
    assert client.send("T", properties={"p": "x" * 32_767}).code == ResponseCode.MESSAGE_ILLEGAL


def test_a_message_without_a_body_makes_the_broker_stumble_as_the_real_one_does(client: Any) -> None:
    response = client.send("T", b"")
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert response.remark.startswith("java.lang.NullPointerException")


def test_the_topics_own_write_bit_is_not_looked_at(cluster: Any, client: Any) -> None:
    cluster.topic("ReadOnly", perm=PermName.READ)
    assert client.send("ReadOnly").code == 0


def test_a_broker_without_write_permission_refuses_ordered_topics_only(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(broker_permission=PermName.READ)
    cluster.topic("Ordered", order=True)
    client = cluster.client()
    response = client.send("Ordered")
    assert (response.code, response.remark) == (
        ResponseCode.NO_PERMISSION,
        f"the broker[{cluster.broker_node.spec.ip}] sending message is forbidden",
    )
    assert client.send("Plain").code == 0


def test_a_header_without_its_topic_is_answered_with_an_error(cluster: Any, client: Any) -> None:
    response = client.call(RequestCode.SEND_MESSAGE_V2, None, b"x")
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert "topic" in response.remark or "producer" in response.remark


def test_before_its_opening_hour_the_broker_takes_nothing(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(start_accept_send_request_time_stamp=1 << 60)
    response = cluster.client().send("T")
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert response.remark.startswith("broker unable to service, until")


def test_an_unknown_request(client: Any) -> None:
    response = client.call(9999, None, b"x")
    assert (response.code, response.remark) == (
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        " request type 9999 not supported",
    )


# -- batches --------------------------------------------------------------------------------------------------------


def batch_body(count: int) -> bytes:
    return encode_batch([Message("T", b"m%d" % i, tags="TagA") for i in range(count)])


def test_a_batch_becomes_single_messages_in_a_row(cluster: Any, client: Any) -> None:
    response = client.call(RequestCode.SEND_BATCH_MESSAGE, client.send_header("T", batch=True), batch_body(3))
    header = response.header_as(h.SendMessageResponseHeader)
    assert (response.code, header.queue_offset) == (0, 0)
    cluster.run(5)
    messages = messages_of(client.pull("T"))
    assert [(m.queue_offset, m.body) for m in messages] == [(0, b"m0"), (1, b"m1"), (2, b"m2")]
    assert header.msg_id == ",".join(m.offset_msg_id for m in messages)


def test_a_batch_for_a_retry_topic_is_refused(client: Any) -> None:
    header = client.send_header("%RETRY%G", batch=True)
    response = client.call(RequestCode.SEND_BATCH_MESSAGE, header, batch_body(2))
    assert (response.code, response.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "batch request does not support retry group %RETRY%G",
    )


def test_a_batch_over_the_limit_is_a_system_error(make_cluster: Callable[..., Any]) -> None:
    client = make_cluster({"max_message_size": 100}).client()
    response = client.call(RequestCode.SEND_BATCH_MESSAGE, client.send_header("T", batch=True), batch_body(20))
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert response.remark.startswith("java.lang.RuntimeException: message body size exceeded")


def test_a_batch_cut_short_is_answered_with_an_error(client: Any) -> None:
    response = client.call(RequestCode.SEND_BATCH_MESSAGE, client.send_header("T", batch=True), batch_body(3)[:-5])
    assert response.code == ResponseCode.SYSTEM_ERROR


def test_a_topic_of_batch_queues_keeps_the_batch_whole(cluster: Any, client: Any) -> None:
    cluster.topic("Whole", attributes={"+queue.type": "BatchCQ"})
    properties = {"UNIQ_KEY": "0A00000203EA14AE5A5A000000150000"}
    for key, messages, count in ((properties, 3, 3), ({}, 2, 3)):
        asked = client.send_header("Whole", batch=True, properties=key)
        response = client.call(RequestCode.SEND_BATCH_MESSAGE, asked, batch_body(messages))
        header = response.header_as(h.SendMessageResponseHeader)
        assert response.code == 0
        assert header.batch_uniq_id == key.get("UNIQ_KEY"), "one without a unique key is taken apart"
        assert header.msg_id.count(",") == (0 if key else 1)
        cluster.run(5)
        assert cluster.broker.message_store.get_max_offset_in_queue("Whole", 0) == count


# -- retry topics ---------------------------------------------------------------------------------------------------


def test_a_retry_that_used_up_its_tries_goes_to_the_dead_letters(cluster: Any, client: Any) -> None:
    response = client.send("%RETRY%G", reconsume_times=3, max_reconsume_times=2)
    assert response.code == 0
    cluster.run(5)
    (message,) = messages_of(client.pull("%DLQ%G"))
    assert (message.topic, message.properties["DELAY"], message.reconsume_times) == ("%DLQ%G", "-1", 3)


def test_a_retry_with_tries_left_stays_in_the_retry_topic(cluster: Any, client: Any) -> None:
    client.send("%RETRY%G", reconsume_times=2, max_reconsume_times=2)
    cluster.run(5)
    assert cluster.broker.message_store.get_max_offset_in_queue("%RETRY%G", 0) == 1


def test_a_retry_for_an_unknown_group_without_auto_creation(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(auto_create_subscription_group=False)
    response = cluster.client().send("%RETRY%G")
    assert response.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert response.remark.startswith("subscription group not exist, G")


# -- what the store says --------------------------------------------------------------------------------------------


def test_with_synchronous_flush_the_answer_waits_for_the_disk(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster({"flush_disk_type": FlushDiskType.SYNC_FLUSH})
    client = cluster.client()
    assert client.send("T").code == 0
    (answered,) = cluster.seen("MessageSendAnswered")
    (flushed,) = cluster.seen("CommitLogFlushed")[:1]
    assert flushed["ts_ms"] <= answered["ts_ms"]


def test_a_full_disk_is_answered_with_service_not_available(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(disk_bytes=1_000_000)
    client = cluster.client()
    codes = [client.send("T", b"x" * 100_000) for _ in range(12)]
    assert codes[0].code == 0
    last = codes[-1]
    assert last.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert last.remark.startswith(
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full CL:"
    )


def test_a_busy_page_cache_rejects_before_the_queue(cluster: Any, client: Any) -> None:
    cluster.do("slow_disk", node="broker-a", ms=10_000)
    client.begin(RequestCode.SEND_MESSAGE_V2, client.send_header("T"), b"x")
    cluster.run(2_000)
    response = client.send("T")
    assert response.code == ResponseCode.SYSTEM_BUSY
    assert response.remark.startswith("[REJECTREQUEST]")
