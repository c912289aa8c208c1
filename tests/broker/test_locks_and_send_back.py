"""Queue locks of ordered consumers, and messages that consumers give back."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.group_bodies import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from tests.broker.conftest import messages_of

QUEUES = [MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)]


def lock(client: Any, client_id: str, queues: list[MessageQueue]) -> list[MessageQueue]:
    body = LockBatchRequestBody("G", client_id, queues).encode()
    response = client.call(RequestCode.LOCK_BATCH_MQ, None, body)
    assert response.code == 0
    return LockBatchResponseBody.decode(response.body).lock_ok_mq_set


def unlock(client: Any, client_id: str, queues: list[MessageQueue]) -> None:
    body = UnlockBatchRequestBody("G", client_id, queues).encode()
    assert client.call(RequestCode.UNLOCK_BATCH_MQ, None, body).code == 0


def test_a_queue_has_one_owner_who_may_ask_again(client: Any) -> None:
    assert lock(client, "a", QUEUES) == QUEUES
    assert lock(client, "a", QUEUES) == QUEUES
    assert lock(client, "b", QUEUES) == []


def test_an_unlocked_queue_is_free_and_only_its_owner_unlocks_it(client: Any) -> None:
    lock(client, "a", QUEUES)
    unlock(client, "b", QUEUES)
    assert lock(client, "b", QUEUES) == []
    unlock(client, "a", QUEUES[:1])
    assert lock(client, "b", QUEUES) == QUEUES[:1]


def test_a_lock_expires_60_seconds_after_its_last_renewal(cluster: Any, client: Any) -> None:
    lock(client, "a", QUEUES)
    cluster.run(40_000)
    lock(client, "a", QUEUES[:1])
    cluster.run(21_000)
    assert lock(client, "b", QUEUES) == QUEUES[1:]
    cluster.run(40_000)
    assert lock(client, "b", QUEUES[:1]) == QUEUES[:1]


def test_a_killed_owner_keeps_its_locks_until_they_expire(cluster: Any, client: Any) -> None:
    owner = cluster.client()
    lock(owner, "a", QUEUES)
    cluster.do("crash", node=owner.node.name)
    cluster.run(59_000)
    assert lock(client, "b", QUEUES) == []
    cluster.run(1_500)
    assert lock(client, "b", QUEUES) == QUEUES


def test_while_a_group_holds_locks_its_retries_go_straight_to_the_dead_letters(cluster: Any, client: Any) -> None:
    lock(client, "a", QUEUES)
    client.send("%RETRY%G", reconsume_times=1, max_reconsume_times=16)
    cluster.run(5)
    store = cluster.broker.message_store
    assert store.get_max_offset_in_queue("%DLQ%G", 0) == 1
    cluster.run(61_000)
    client.send("%RETRY%G", reconsume_times=1, max_reconsume_times=16)
    cluster.run(5)
    assert store.get_max_offset_in_queue("%RETRY%G", 0) == 1


# -- messages sent back ---------------------------------------------------------------------------------------------


def send_back(client: Any, offset: int, delay_level: int = 0, group: str = "G", **more: Any) -> Any:
    header = h.ConsumerSendMsgBackRequestHeader(offset, group, delay_level, **more)
    return client.call(RequestCode.CONSUMER_SEND_MSG_BACK, header)


def stored(cluster: Any, client: Any, topic: str, after_ms: int = 5) -> list[Any]:
    cluster.run(after_ms)
    return list(messages_of(client.pull(topic)))


def test_a_message_sent_back_lies_in_the_retry_topic_with_its_history(cluster: Any, client: Any) -> None:
    client.send("T", b"again", properties={"TAGS": "a", "UNIQ_KEY": "U"}, flag=3, born_timestamp=77)
    (original,) = stored(cluster, client, "T")
    assert send_back(client, original.commit_log_offset).code == 0
    assert stored(cluster, client, "%RETRY%G") == []
    (copy,) = stored(cluster, client, "%RETRY%G", 10_100)
    assert (copy.body, copy.flag, copy.born_timestamp, copy.born_host) == (b"again", 3, 77, original.born_host)
    assert copy.reconsume_times == 1
    assert copy.properties == {
        **original.properties,
        "RETRY_TOPIC": "T",
        "WAIT": "false",
        "DELAY": "3",
        "ORIGIN_MESSAGE_ID": original.offset_msg_id,
        "REAL_TOPIC": "%RETRY%G",
        "REAL_QID": "0",
    }


def test_the_level_grows_with_the_tries_and_the_first_topic_and_id_stay(cluster: Any, client: Any) -> None:
    client.send("T", b"again")
    (original,) = stored(cluster, client, "T")
    offset = original.commit_log_offset
    for delay_ms in (10_000, 30_000, 60_000):
        send_back(client, offset)
        offset = stored(cluster, client, "%RETRY%G", delay_ms + 100)[-1].commit_log_offset
    copies = stored(cluster, client, "%RETRY%G")
    assert [(c.reconsume_times, c.properties["DELAY"]) for c in copies] == [(1, "3"), (2, "4"), (3, "5")]
    assert {(c.properties["RETRY_TOPIC"], c.properties["ORIGIN_MESSAGE_ID"]) for c in copies} == {
        ("T", original.offset_msg_id)
    }


@pytest.mark.parametrize(("delay_level", "delay_ms"), [(1, 1_000), (4, 30_000), (18, 7_200_000)])
def test_a_level_of_the_consumers_choice(cluster: Any, client: Any, delay_level: int, delay_ms: int) -> None:
    client.send("T")
    (original,) = stored(cluster, client, "T")
    send_back(client, original.commit_log_offset, delay_level)
    assert stored(cluster, client, "%RETRY%G", delay_ms - 100) == []
    assert stored(cluster, client, "%RETRY%G", 200)[0].properties["DELAY"] == str(delay_level)


def test_a_negative_level_goes_to_the_dead_letters(cluster: Any, client: Any) -> None:
    client.send("T")
    (original,) = stored(cluster, client, "T")
    send_back(client, original.commit_log_offset, -1)
    (dead,) = stored(cluster, client, "%DLQ%G")
    assert (dead.properties["DELAY"], dead.reconsume_times) == ("0", 1)
    config = cluster.broker.topic_config_manager.select_topic_config("%DLQ%G")
    assert (config.write_queue_nums, config.perm) == (1, 6)


def test_after_the_groups_number_of_tries_comes_the_dead_letter_queue(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", retry_max_times=1).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    client.send("T")
    (original,) = stored(cluster, client, "T")
    send_back(client, original.commit_log_offset)
    (copy,) = stored(cluster, client, "%RETRY%G", 10_100)
    send_back(client, copy.commit_log_offset)
    assert len(stored(cluster, client, "%DLQ%G")) == 1


def test_the_consumers_own_number_of_tries_comes_first(cluster: Any, client: Any) -> None:
    client.send("T")
    (original,) = stored(cluster, client, "T")
    send_back(client, original.commit_log_offset, max_reconsume_times=0)
    assert len(stored(cluster, client, "%DLQ%G")) == 1


def test_a_group_without_retry_queues_gives_messages_up(cluster: Any, client: Any) -> None:
    body = SubscriptionGroupConfig("G", retry_queue_nums=0).encode()
    client.call(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    client.send("T")
    (original,) = stored(cluster, client, "T")
    assert send_back(client, original.commit_log_offset).code == 0
    assert cluster.broker.topic_config_manager.select_topic_config("%RETRY%G") is None


@pytest.mark.parametrize(("unit_mode", "sys_flag"), [(False, 0), (True, 2)])
def test_the_retry_topic_of_a_unit_is_marked_and_its_dead_letter_topic_is_not(
    cluster: Any, client: Any, unit_mode: bool, sys_flag: int
) -> None:
    client.send("T")
    (original,) = stored(cluster, client, "T")
    send_back(client, original.commit_log_offset, -1, "New", unit_mode=unit_mode)
    topics = cluster.broker.topic_config_manager.topic_config_table
    assert topics["%RETRY%New"].topic_sys_flag == sys_flag
    assert topics["%DLQ%New"].topic_sys_flag == 0


def test_what_is_not_there_cannot_be_sent_back(client: Any) -> None:
    response = send_back(client, 12345)
    assert (response.code, response.remark) == (ResponseCode.SYSTEM_ERROR, "look message by offset failed, 12345")


def test_a_group_that_may_not_be_made(client: Any) -> None:
    response = send_back(client, 0, group="bad group")
    assert response.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert response.remark.startswith("subscription group not exist, bad group ")
