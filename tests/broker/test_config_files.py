"""The broker's tables in their files: the bytes are RocketMQ's, and a damaged file is replaced by its copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker.broker_config import BrokerConfig
from mqlab.broker.config_manager import ConfigManager
from mqlab.broker.consumer_offset_manager import ConsumerOffsetManager
from mqlab.broker.subscription_group_manager import SubscriptionGroupManager
from mqlab.broker.topic_config_manager import TopicConfigManager
from mqlab.errors import LearnerError
from mqlab.protocol import fastjson
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.headers import UpdateConsumerOffsetRequestHeader
from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicConfig, TopicConfigSerializeWrapper
from mqlab.sim import Node, World

GOLDEN = Path(__file__).parent.parent / "golden" / "vectors" / "config"

CONFIG = "store/config"


@pytest.fixture
def node() -> Node:
    return World(1).node("broker-a")


def topics(node: Node) -> TopicConfigManager:
    return TopicConfigManager(node, "config/topics.json", BrokerConfig(), lambda changed: None)


def groups(node: Node) -> SubscriptionGroupManager:
    return SubscriptionGroupManager(node, "config/subscriptionGroup.json", BrokerConfig())


def offsets(node: Node) -> ConsumerOffsetManager:
    return ConsumerOffsetManager(node, "config/consumerOffset.json")


def golden_files(name: str) -> list[Path]:
    return sorted(GOLDEN.rglob(f"*{name}*"))


@pytest.mark.parametrize(
    ("make", "name"), [(topics, "topics.json"), (groups, "subscriptionGroup.json"), (offsets, "consumerOffset.json")]
)
def test_what_a_real_broker_wrote_is_written_again_byte_for_byte(
    node: Node, make: Callable[[Node], ConfigManager], name: str
) -> None:
    files = golden_files(name)
    assert files
    for file in files:
        data = file.read_bytes()
        manager = make(node)
        if isinstance(manager, TopicConfigManager):
            manager.topic_config_table.clear()  # that broker had one system topic less: its timer was off
        node.disk.write_bytes(manager.path, data)
        assert manager.load()
        ConfigManager.persist(manager)
        assert node.disk.read_bytes(manager.path) == data, file.name


def test_the_queues_of_a_group_are_written_in_the_order_of_their_ids(node: Node) -> None:
    manager = offsets(node)
    for queue_id in (3, 0, 17, 1):
        manager.commit_offset("G", "T", queue_id, 10 + queue_id)
    manager.persist()
    assert b'"T@G":{0:10,1:11,3:13,17:27\n' in node.disk.read_bytes(manager.path).replace(b"\t", b"")


def test_the_content_before_stays_beside_the_file(node: Node) -> None:
    manager = topics(node)
    manager.create_topic_in_send_message_back_method("%RETRY%a", 1, 6)
    before = node.disk.read_bytes(manager.path)
    manager.create_topic_in_send_message_back_method("%RETRY%b", 1, 6)
    assert node.disk.read_bytes(f"{manager.path}.bak") == before


def test_a_damaged_file_is_replaced_by_the_copy_beside_it(node: Node) -> None:
    manager = topics(node)
    manager.create_topic_in_send_message_back_method("%RETRY%a", 1, 6)
    manager.create_topic_in_send_message_back_method("%RETRY%b", 1, 6)
    node.disk.write_bytes(manager.path, b'{"dataVersion":{"coun')
    again = topics(node)
    again.load_or_fail()
    assert "%RETRY%a" in again.topic_config_table
    assert "%RETRY%b" not in again.topic_config_table


def test_with_both_copies_damaged_the_broker_refuses_to_start(node: Node) -> None:
    manager = topics(node)
    node.disk.write_bytes(manager.path, b"[]")
    node.disk.write_bytes(f"{manager.path}.bak", b"{,")
    with pytest.raises(LearnerError, match="put back a good copy"):
        manager.load_or_fail()


def test_a_full_disk_leaves_the_old_file_and_the_new_table(node: Node) -> None:
    manager = topics(node)
    manager.create_topic_in_send_message_back_method("%RETRY%a", 1, 6)
    before = node.disk.read_bytes(manager.path)
    node.disk.capacity_bytes = node.disk.used_bytes
    manager.create_topic_in_send_message_back_method("%RETRY%" + "b" * 200, 1, 6)
    assert node.disk.read_bytes(manager.path) == before
    assert "%RETRY%" + "b" * 200 in manager.topic_config_table


def commit(client: Any, offset: int) -> None:
    header = UpdateConsumerOffsetRequestHeader("G", "T", 0, offset)
    assert client.call(RequestCode.UPDATE_CONSUMER_OFFSET, header).code == 0


def test_offsets_reach_the_disk_every_five_seconds_after_the_first_ten(cluster: Any, client: Any) -> None:
    client.heartbeat()
    path = f"{CONFIG}/consumerOffset.json"
    commit(client, 3)
    cluster.run(9_900 - cluster.now_ms)
    assert not cluster.broker_node.disk.exists(path)
    cluster.run(200)
    assert b'"T@G":{0:3' in cluster.broker_node.disk.read_bytes(path)
    commit(client, 4)
    cluster.run(14_900 - cluster.now_ms)
    assert b'"T@G":{0:3' in cluster.broker_node.disk.read_bytes(path)
    cluster.run(200)
    assert b'"T@G":{0:4' in cluster.broker_node.disk.read_bytes(path)


def test_a_crash_sets_a_group_back_to_what_was_written_last(cluster: Any, client: Any) -> None:
    client.heartbeat()
    commit(client, 3)
    cluster.run(10_100 - cluster.now_ms)
    commit(client, 7)
    cluster.do("crash", node="broker-a")
    cluster.restart(100)
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 3


def test_a_clean_stop_loses_no_offset_and_restarts_with_all_topics_and_groups(cluster: Any, client: Any) -> None:
    client.heartbeat()
    commit(client, 7)
    cluster.broker.shutdown().play()
    cluster.restart(100)
    assert cluster.broker.consumer_offset_manager.query_offset("G", "T", 0) == 7
    assert cluster.broker.topic_config_manager.select_topic_config("%RETRY%G") is not None
    assert cluster.broker.subscription_group_manager.contains_subscription_group("G")
    assert cluster.broker.message_store.recovery.clean


def test_offsets_that_found_no_room_are_written_as_soon_as_there_is(cluster: Any, client: Any) -> None:
    """Nobody commits again: it is the next turn that writes them."""
    client.heartbeat()
    commit(client, 3)
    disk = cluster.broker_node.disk
    disk.capacity_bytes = disk.used_bytes
    cluster.run(10_100 - cluster.now_ms)
    path = f"{CONFIG}/consumerOffset.json"
    assert not disk.exists(path) or not disk.read_bytes(path)
    disk.capacity_bytes = None
    cluster.run(5_000)
    assert b'"T@G":{0:3' in disk.read_bytes(path)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every value of which a text was made."""
    made: list[Any] = []
    dumps = fastjson.dumps

    def counted(value: Any, **how: Any) -> str:
        made.append(value)
        return dumps(value, **how)

    monkeypatch.setattr(fastjson, "dumps", counted)
    return made


def test_a_change_writes_the_other_topics_as_they_were(node: Node, made: list[Any]) -> None:
    """So many topics cost no more than their number; a setting changed in place is seen all the same."""
    manager = topics(node)
    for number in range(20):
        manager.update_topic_config(TopicConfig(f"T{number}"))
    assert sum("topicName" in value for value in made) == len(manager.topic_config_table)
    manager.topic_config_table["T7"].order = True
    manager.update_topic_config(TopicConfig("T20"))
    whole = TopicConfigSerializeWrapper(manager.topic_config_table, manager.data_version)
    again = topics(node)
    again.load_or_fail()
    assert again.topic_config_table == manager.topic_config_table
    assert len(node.disk.read_bytes(manager.path)) == len(whole.encode_pretty())


def test_a_change_writes_the_other_groups_as_they_were(node: Node, made: list[Any]) -> None:
    """So many groups cost no more than their number; a setting changed in place is seen all the same."""
    manager = groups(node)
    for number in range(20):
        manager.update_subscription_group_config(SubscriptionGroupConfig(f"G{number}"))
    assert sum("groupName" in value for value in made) == len(manager.subscription_group_table)
    manager.subscription_group_table["G7"].attributes["a"] = "b"
    manager.delete_subscription_group_config("G8")
    manager.update_subscription_group_config(SubscriptionGroupConfig("G8", retry_max_times=3))
    again = groups(node)
    again.load_or_fail()
    assert again.subscription_group_table == manager.subscription_group_table
    assert len(node.disk.read_bytes(manager.path)) == len(manager.wrapper().encode_pretty())
