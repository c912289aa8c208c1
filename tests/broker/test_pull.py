"""Pulling: what is checked in which order, what is found, and where the consumer is sent on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.bodies import ResetOffsetBody
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.heartbeat import MessageModel, build_subscription_data
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from tests.broker.conftest import messages_of

FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def send_many(cluster: Any, client: Any, *tags: str, topic: str = "T") -> None:
    for tag in tags:
        client.send(topic, tag.encode() or b"untagged", properties={"TAGS": tag} if tag else {})
    cluster.run(5)


def answer(response: Any) -> tuple[int, str, int]:
    """Code, status and the offset to go on with."""
    return response.code, response.remark, response.header_as(h.PullMessageResponseHeader).next_begin_offset


# -- what is found --------------------------------------------------------------------------------------------------


def test_messages_come_in_the_order_of_the_queue(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a", "b", "c")
    response = client.pull("T", 1)
    header = response.header_as(h.PullMessageResponseHeader)
    assert (response.code, response.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert (header.next_begin_offset, header.min_offset, header.max_offset) == (3, 0, 3)
    assert (header.suggest_which_broker_id, header.topic_sys_flag, header.group_sys_flag) == (0, 0, 0)
    assert [m.body for m in messages_of(response)] == [b"b", b"c"]


def test_a_pull_takes_no_more_than_it_asks_for(cluster: Any, client: Any) -> None:
    send_many(cluster, client, *"abcde")
    response = client.pull("T", 0, max_msg_nums=2)
    assert len(messages_of(response)) == 2
    assert response.header_as(h.PullMessageResponseHeader).next_begin_offset == 2


def test_at_most_32_messages_however_many_are_asked_for(cluster: Any, client: Any) -> None:
    send_many(cluster, client, *["a"] * 40)
    assert len(messages_of(client.pull("T", 0, max_msg_nums=1000))) == 32


def test_only_the_wanted_tags_come_and_the_offset_passes_the_others(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a", "b", "c", "a")
    assert [m.body for m in messages_of(client.pull("T", 0, subscription="a || c"))] == [b"a", b"c", b"a"]
    assert answer(client.pull("T", 0, subscription="nothing")) == (20, "NO_MATCHED_MESSAGE", 4)


def test_tags_with_the_same_hash_pass_the_broker(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "Aa", "BB", "C")
    assert [m.body for m in messages_of(client.pull("T", 0, subscription="Aa"))] == [b"Aa", b"BB"]


def test_a_message_without_a_tag_comes_only_to_who_wants_everything(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "", "a")
    assert [m.body for m in messages_of(client.pull("T", 0, subscription="a"))] == [b"a"]
    assert [m.body for m in messages_of(client.pull("T", 0, subscription="*"))] == [b"untagged", b"a"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (3, (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 3)),
        (4, (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3)),
        (10_000, (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3)),
        (-1, (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0)),
    ],
)
def test_offsets_beside_the_queue(cluster: Any, client: Any, offset: int, expected: tuple[int, str, int]) -> None:
    send_many(cluster, client, "a", "b", "c")
    assert answer(client.pull("T", offset)) == expected


def test_an_empty_queue_is_no_surprise_at_its_beginning_only(cluster: Any, client: Any) -> None:
    assert answer(client.pull("T", 0)) == (ResponseCode.PULL_NOT_FOUND, "NO_MATCHED_LOGIC_QUEUE", 0)
    assert answer(client.pull("T", 5)) == (ResponseCode.PULL_OFFSET_MOVED, "NO_MATCHED_LOGIC_QUEUE", 0)


def test_the_lite_code_pulls_just_the_same(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a")
    response = client.call(RequestCode.LITE_PULL_MESSAGE, client.pull_header("T", 0))
    assert [m.body for m in messages_of(response)] == [b"a"]


# -- refusals -------------------------------------------------------------------------------------------------------


def refusal(response: Any) -> tuple[int, str, str | None]:
    return response.code, response.remark, response.ext_field("forbiddenType")


def test_a_broker_that_may_not_be_read(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(broker_permission=PermName.WRITE)
    cluster.topic("T")
    ip = cluster.broker_node.spec.ip
    assert refusal(cluster.client().pull("T")) == (16, f"the broker[{ip}] pulling message is forbidden", "1")


def test_lite_pull_can_be_switched_off(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(lite_pull_message_enable=False)
    cluster.topic("T")
    client = cluster.client()
    response = client.call(RequestCode.LITE_PULL_MESSAGE, client.pull_header("T", 0))
    ip = cluster.broker_node.spec.ip
    assert refusal(response) == (16, f"the broker[{ip}] for lite pull consumer is forbidden", "1")


def test_an_unknown_group_is_made_known_unless_that_is_switched_off(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(auto_create_subscription_group=False)
    cluster.topic("T")
    assert refusal(cluster.client().pull("T")) == (26, f"subscription group [G] does not exist, \n{FAQ}", None)
    cluster = make_cluster()
    cluster.topic("T")
    cluster.client().pull("T")
    assert cluster.broker.subscription_group_manager.contains_subscription_group("G")


@pytest.mark.parametrize("group", ["a b", "组", "g" * 256])
def test_groups_whose_names_are_not_allowed_are_not_made(client: Any, group: str) -> None:
    assert client.pull("T", consumer_group=group).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_a_group_that_is_switched_off(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", consume_enable=False).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    assert refusal(client.pull("T")) == (16, "subscription group no permission, G", "2")


def test_an_unknown_topic(client: Any) -> None:
    assert refusal(client.pull("Nope")) == (17, f"topic[Nope] not exist, apply first please! \n{FAQ}", None)


def test_a_topic_that_may_not_be_read(cluster: Any, client: Any) -> None:
    cluster.topic("WriteOnly", perm=PermName.WRITE)
    assert refusal(client.pull("WriteOnly")) == (16, "the topic[WriteOnly] pulling message is forbidden", "3")


@pytest.mark.parametrize("queue_id", [-1, 1])
def test_a_queue_that_the_topic_does_not_have(client: Any, queue_id: int) -> None:
    code, remark, _ = refusal(client.pull("T", queue_id=queue_id))
    assert code == ResponseCode.INVALID_PARAMETER
    expected = f"queueId[{queue_id}] is illegal, topic:[T] topicConfig.readQueueNums:[1] consumer:[/10.0."
    assert remark.startswith(expected)


def test_an_expression_that_cannot_be_read(client: Any) -> None:
    assert refusal(client.pull("T", subscription="||")) == (23, "parse the consumer's subscription failed", None)


def test_sql_is_not_supported_as_long_as_property_filters_are_off(client: Any) -> None:
    response = client.pull("T", subscription="a > 5", expression_type="SQL92")
    assert refusal(response) == (1, "The broker does not support consumer to filter message by SQL92", None)


def test_a_request_that_lacks_fields_is_answered_with_an_error(client: Any) -> None:
    assert client.call(RequestCode.PULL_MESSAGE).code == ResponseCode.SYSTEM_ERROR


# -- subscriptions of heartbeats ------------------------------------------------------------------------------------


def test_without_a_subscription_in_the_request_the_heartbeats_counts(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a", "b")
    client.heartbeat(build_subscription_data("T", "b", sub_version=5))
    assert [m.body for m in messages_of(client.pull("T", subscription=None, sub_version=5))] == [b"b"]


def test_a_group_that_is_not_online(client: Any) -> None:
    assert refusal(client.pull("T", subscription=None)) == (
        24,
        f"the consumer's group info not exist\n{FAQ}",
        None,
    )


def test_a_topic_that_the_group_does_not_subscribe_to(client: Any) -> None:
    client.heartbeat(build_subscription_data("Other", "*", sub_version=1))
    assert refusal(client.pull("T", subscription=None)) == (
        24,
        f"the consumer's subscription not exist\n{FAQ}",
        None,
    )


def test_a_subscription_that_the_broker_has_not_heard_of_yet(client: Any) -> None:
    client.heartbeat(build_subscription_data("T", "*", sub_version=5))
    assert client.pull("T", subscription=None, sub_version=5).code != ResponseCode.SUBSCRIPTION_NOT_LATEST
    assert refusal(client.pull("T", subscription=None, sub_version=6)) == (
        25,
        "the consumer's subscription not latest",
        None,
    )


def test_broadcasting_can_be_forbidden_to_a_group(client: Any) -> None:
    body = SubscriptionGroupConfig("G", consume_broadcast_enable=False).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    client.heartbeat(model=MessageModel.BROADCASTING)
    assert refusal(client.pull("T", subscription=None)) == (
        16,
        "the consumer group[G] can not consume by broadcast way",
        "4",
    )


# -- offsets on the way ---------------------------------------------------------------------------------------------


def test_a_pull_carries_the_progress_along_when_its_flag_says_so(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a", "b")
    offsets = cluster.broker.consumer_offset_manager
    client.pull("T", 1, commit_offset=1)
    assert offsets.query_offset("G", "T", 0) == -1
    client.pull("T", 1, commit_offset=1, commit=True)
    assert offsets.query_offset("G", "T", 0) == 1
    assert offsets.query_pull_offset("G", "T", 0) == 2


def test_an_offset_reset_by_the_broker_reaches_the_next_pull_once(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a", "b", "c")
    client.heartbeat()
    cluster.broker.consumer_offset_manager.assign_reset_offset("G", "T", 0, 1)
    header = h.UpdateConsumerOffsetRequestHeader("G", "T", 0, 3)
    ignored = client.call(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert (ignored.code, ignored.remark) == (0, "Offset has been previously reset")
    assert answer(client.pull("T", 3)) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", 1)
    assert answer(client.pull("T", 1))[0] == ResponseCode.SUCCESS


def reset(client: Any, timestamp: int = -1, queue_id: int = -1, offset: int | None = None, topic: str = "T") -> Any:
    header = h.ResetOffsetRequestHeader("G", topic, timestamp, True, queue_id, offset)
    return client.call(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


def test_an_administrator_moves_a_group_to_a_time_an_end_or_an_offset(cluster: Any, client: Any) -> None:
    send_many(cluster, client, "a")
    cluster.run(1_000)
    later_ms = cluster.broker_node.now_ms()
    send_many(cluster, client, "b", "c")
    client.heartbeat()
    queue = MessageQueue("T", "broker-a", 0)
    for response, offset in (
        (reset(client, timestamp=later_ms), 1),
        (reset(client, timestamp=0), 0),
        (reset(client), 3),
        (reset(client, queue_id=0, offset=2), 2),
    ):
        assert ResetOffsetBody.decode(response.body).offset_table == {queue: offset}
    assert answer(client.pull("T", 3)) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET", 2)
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 2


def test_moves_that_cannot_be(cluster: Any, client: Any) -> None:
    assert (reset(client).code, reset(client).remark) == (26, "Group G does not exist")
    client.heartbeat()
    assert (reset(client, topic="Nope").code, reset(client, topic="Nope").remark) == (17, "Topic Nope does not exist")
    far = reset(client, queue_id=0, offset=9)
    assert (far.code, far.remark) == (1, "Target offset 9 not in consume queue range [0-0]")
