"""What nobody would send: damaged frames, names that are no text, numbers beyond all measure; no world stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker import BrokerConfig
from mqlab.errors import LearnerError
from mqlab.namesrv import NamesrvConfig
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.topic_config import MAX_QUEUE_NUMS, SubscriptionGroupConfig
from mqlab.store import MessageStoreConfig
from tests.broker.mutated_frames import play

TOO_MANY = 10**9


def test_no_damaged_frame_stops_a_broker_or_a_name_server() -> None:
    answers = play(first=26_000, count=500)
    assert answers[ResponseCode.SUCCESS] > 300
    assert answers[ResponseCode.SYSTEM_ERROR] > 30


@pytest.mark.parametrize("name", ["x\ud800", "\udfff"])
def test_half_a_surrogate_pair_becomes_a_question_mark_in_the_files(
    make_cluster: Callable[..., Any], name: str
) -> None:
    cluster = make_cluster()
    client = cluster.client()
    written = name.encode("utf-8", "replace").decode()
    config = SubscriptionGroupConfig(name).encode().replace(written.encode(), name.encode("ascii", "backslashreplace"))
    assert client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config).code == 0
    assert name in cluster.broker.subscription_group_manager.subscription_group_table
    cluster.topic("T")
    client.call(RequestCode.UPDATE_CONSUMER_OFFSET, h.UpdateConsumerOffsetRequestHeader(name, "T", 0, 7))
    cluster.broker.shutdown().play()
    cluster.restart(100)
    assert written in cluster.broker.subscription_group_manager.subscription_group_table
    assert cluster.broker.consumer_offset_manager.query_offset(written, "T", 0) == 7
    assert "T" in cluster.broker.topic_config_manager.topic_config_table


def test_nobody_makes_a_topic_with_more_queues_than_can_be_handled(cluster: Any, client: Any) -> None:
    with pytest.raises(LearnerError, match="'U' with 1000000000 queues: 10000 are the most"):
        cluster.broker.create_topic("U", TOO_MANY)
    header = h.CreateTopicRequestHeader("U", "TBW102", 4, TOO_MANY, 6, "SINGLE_TAG")
    answer = client.call(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "'U' with 1000000000 queues: 10000 are the most",
    )
    assert "U" not in cluster.broker.topic_config_manager.topic_config_table
    assert cluster.topic("V", MAX_QUEUE_NUMS).write_queue_nums == MAX_QUEUE_NUMS


def test_nobody_makes_a_group_with_more_retry_queues_than_can_be_handled(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("many", retry_queue_nums=7).encode().replace(b":7,", b":1000000000,")
    answer = client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "'many' with 1000000000 queues: 10000 are the most" in answer.remark
    assert not cluster.broker.subscription_group_manager.contains_subscription_group("many")


def test_a_broker_does_not_start_with_a_template_of_too_many_queues(make_cluster: Callable[..., Any]) -> None:
    with pytest.raises(LearnerError, match="'TBW102' with 1000000000 queues"):
        make_cluster(default_topic_queue_nums=TOO_MANY)


@pytest.mark.parametrize(
    ("field", "letter", "number"),
    [("queue_id", "e", 2**31), ("flag", "h", -(2**31) - 1), ("born_timestamp", "g", 2**63)],
)
def test_a_number_that_javas_type_cannot_hold_is_refused_before_anything_is_done(
    make_cluster: Callable[..., Any], field: str, letter: str, number: int
) -> None:
    cluster = make_cluster(wire_bytes=True)
    answer = cluster.client().send("T", **{field: number})
    bits = 64 if field == "born_timestamp" else 32
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == (
        f"HeaderError: SendMessageRequestHeaderV2.{field}: the field {letter!r} is not a number of {bits} bits: "
        f"'{number}'"
    )
    assert not cluster.seen("MessageSendReceived")


@pytest.mark.parametrize(
    ("setting", "code", "remark"),
    [
        ("flushConsumerOffsetInterval=0", 1, "flush_consumer_offset_interval=0 is too little"),
        ("shortPollingTimeMills=-1", 1, "short_polling_time_mills=-1 is too little"),
        ("flushCommitLogThoroughInterval=0", 1, "flush_commit_log_thorough_interval=0 is too little"),
        ("defaultTopicQueueNums=1000000000", 1, "'TBW102' with 1000000000 queues: 10000 are the most"),
        ("messageDelayLevel=1s soon", 1, "'soon' is not a delay"),
        ("storePathRootDir=elsewhere", 16, "storePathRootDir shapes the files of the store, which is open"),
        ("maxHashSlotNum=7", 16, "maxHashSlotNum shapes the files of the store, which is open"),
    ],
)
def test_settings_with_which_no_broker_can_work_are_refused_and_change_nothing(
    cluster: Any, client: Any, setting: str, code: int, remark: str
) -> None:
    before = client.call(RequestCode.GET_BROKER_CONFIG).body
    answer = client.call(RequestCode.UPDATE_BROKER_CONFIG, None, f"traceOn=false\n{setting}\n".encode())
    assert (answer.code, answer.remark) == (code, remark)
    assert client.call(RequestCode.GET_BROKER_CONFIG).body == before


def test_settings_with_which_no_broker_can_work_are_told_when_they_are_made() -> None:
    with pytest.raises(LearnerError, match="mapped_file_size_consume_queue=19 is too little"):
        MessageStoreConfig(mapped_file_size_consume_queue=19)
    with pytest.raises(LearnerError, match="flush_consumer_offset_interval=0 is too little"):
        BrokerConfig(flush_consumer_offset_interval=0)
    with pytest.raises(LearnerError, match="scan_not_active_broker_interval=0 is too little"):
        NamesrvConfig(scan_not_active_broker_interval=0)
