"""What a consumer makes of an answer whose bytes are not all records: it keeps what comes before them."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import MessageQueue, PullResult, PullStatus
from mqlab.client.consumer.pull_api_wrapper import decoded
from mqlab.client.topic_publish_info import queues_to_publish
from mqlab.errors import RemotingCommandException
from mqlab.protocol.headers import PullMessageResponseHeader
from mqlab.protocol.record import encode_record
from mqlab.protocol.route import TopicRouteData
from mqlab.protocol.sysflag import MessageSysFlag


def record(text: str, sys_flag: int = 0) -> bytes:
    host = "10.0.0.2:10911"
    return bytes(encode_record("Orders", text.encode(), "", 0, 0, 0, 0, 0, host, host, sys_flag=sys_flag))


def test_whole_records_are_messages() -> None:
    assert [message.body for message in decoded(record("one") + record("two"))] == [b"one", b"two"]


def test_what_follows_bytes_that_are_no_record_is_dropped() -> None:
    answer = record("one") + b"." * 91 + record("two")
    assert [message.body for message in decoded(answer)] == [b"one"]


def test_an_answer_that_begins_between_two_records_has_no_message() -> None:
    assert decoded(b"." * 200) == []
    assert decoded(b"") == []


def test_an_inner_batch_that_cannot_be_read_stays_as_it_is(consumer: Any) -> None:
    records = record("alone") + record("no batch", MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP)
    result = PullResult(PullStatus.FOUND, PullMessageResponseHeader(0, 1, 0, 1), records)
    subscription = consumer.impl.rebalance_impl.subscription_inner["T"]
    consumer.impl.pull_api_wrapper.process_pull_result(MessageQueue("T", "broker-a", 0), result, subscription)
    assert [message.body for message in result.msg_found_list] == [b"alone", b"no batch"]


def test_an_order_configuration_that_cannot_be_read_is_told_before_anything_is_taken_over() -> None:
    with pytest.raises(RemotingCommandException, match="the order configuration 'broker-a'"):
        queues_to_publish("T", TopicRouteData(order_topic_conf="broker-a"))


def test_an_order_configuration_may_end_with_its_separator() -> None:
    assert queues_to_publish("T", TopicRouteData(order_topic_conf="broker-a:1;broker-b:1;")) == (
        [MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-b", 0)],
        True,
    )
