"""Ordered pop's memory of what is out, against the steps that RocketMQ's own class went through."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker.pop.consumer_order_info_manager import ConsumerOrderInfoManager
from mqlab.protocol import fastjson
from mqlab.protocol.topic_config import SubscriptionGroupConfig

GOLDEN = Path(__file__).parents[2] / "golden"
POP_MS = 1_700_000_000_000
KEY = ("T", "G", 0)


@pytest.fixture
def cluster(make_cluster: Callable[..., Any]) -> Any:
    """A broker whose clock says what the recorded steps were made at, with the topic and the group of the steps."""
    cluster = make_cluster(epoch_ms=POP_MS)
    cluster.topic("T", 4)
    cluster.broker.subscription_group_manager.update_subscription_group_config(SubscriptionGroupConfig("G"))
    return cluster


@pytest.fixture
def told() -> list[tuple[str, str, int]]:
    """Whose block has ended."""
    return []


@pytest.fixture
def manager(cluster: Any, told: list[tuple[str, str, int]]) -> ConsumerOrderInfoManager:
    """The manager of the broker."""
    return ConsumerOrderInfoManager(cluster.broker, lambda *key: told.append(key))


def update(
    manager: ConsumerOrderInfoManager, attempt: str | None, offsets: list[int], pop_ms: int, invisible: int = 30_000
) -> str:
    """What a pop does; the text of its orderCountInfo."""
    info: list[str] = []
    manager.update(attempt, False, *KEY, pop_ms, invisible, offsets, info)
    return ";".join(info)


def text_of(manager: ConsumerOrderInfoManager) -> str:
    """The table on one line, with the time of the last pop as the recording has it."""
    value = manager.encode()
    for queues in value["table"].values():
        for info in queues.values():
            info["l"] = 0
    return fastjson.dumps(value)


def test_the_recorded_steps_give_the_recorded_answers_and_files(manager: ConsumerOrderInfoManager) -> None:
    rows = json.loads((GOLDEN / "vectors" / "pop-json.json").read_text("utf-8"))["rows"]
    (steps,) = (row["steps"] for row in rows if row["kind"] == "ConsumerOrderInfoManager")
    calls: list[Callable[[], Any]] = [
        lambda: update(manager, "a1", [10, 11, 13], POP_MS),
        lambda: manager.commit_and_next(*KEY, 11, POP_MS),
        lambda: manager.commit_and_next(*KEY, 12, POP_MS),
        lambda: manager.commit_and_next(*KEY, 10, POP_MS + 1),
        lambda: manager.commit_and_next(*KEY, 10, POP_MS),
        lambda: update(manager, "a2", [13, 14], POP_MS + 100_000),
        lambda: update(manager, "a3", [13, 14, 15], POP_MS + 200_000),
        lambda: update(manager, "a3", [13, 14, 15], POP_MS + 300_000),
        lambda: manager.update_next_visible_time(*KEY, 14, POP_MS + 300_000, 1_700_000_900_000),
        lambda: manager.commit_and_next("T", "G", 3, 5, POP_MS),
    ]
    assert len(steps) == len(calls)
    for step, call in zip(steps, calls, strict=True):
        result = call()
        assert result == step.get("orderCountInfo", step.get("result")), step["call"]
        if "json" in step:
            assert text_of(manager) == step["json"], step["call"]


@pytest.mark.parametrize("name", ["pop-store", "pop-merge"])
def test_a_recorded_file_is_read_and_written_again_with_the_same_bytes(
    make_cluster: Callable[..., Any], name: str
) -> None:
    with tarfile.open(GOLDEN / "store" / f"{name}.tar.xz") as archive:
        file = archive.extractfile("store/config/consumerOrderInfo.json")
        assert file is not None
        recorded = file.read()
    cluster = make_cluster(epoch_ms=1_795_204_230_000)
    cluster.topic("PopOrder", 2)
    cluster.broker.subscription_group_manager.update_subscription_group_config(SubscriptionGroupConfig("PG_ORDER"))
    manager = ConsumerOrderInfoManager(cluster.broker, lambda *key: None)
    cluster.broker_node.disk.write_bytes(manager.path, recorded, flush=True)
    assert manager.load()
    assert manager.persist()
    assert cluster.broker_node.disk.read_bytes(manager.path) == recorded


def blocked(manager: ConsumerOrderInfoManager, attempt: str | None) -> bool:
    """Is the queue blocked for an attempt?"""
    return manager.check_block(attempt, *KEY, 30_000)


def test_a_queue_is_blocked_until_all_is_acknowledged_except_for_the_attempt_that_holds_it(
    cluster: Any, manager: ConsumerOrderInfoManager
) -> None:
    assert not blocked(manager, "a1"), "nothing is out"
    now = cluster.broker_node.now_ms()
    update(manager, "a1", [10, 11], now)
    assert not blocked(manager, "a1")
    assert blocked(manager, "a2")
    assert blocked(manager, None)
    manager.commit_and_next(*KEY, 10, now)
    assert blocked(manager, "a2")
    assert manager.commit_and_next(*KEY, 11, now) == 12
    assert not blocked(manager, "a2")


def test_a_block_without_an_attempt_stops_everybody(cluster: Any, manager: ConsumerOrderInfoManager) -> None:
    update(manager, None, [10], cluster.broker_node.now_ms())
    assert blocked(manager, None)
    assert blocked(manager, "a1")


def test_a_block_ends_with_the_invisible_time_of_its_last_message(
    cluster: Any, manager: ConsumerOrderInfoManager
) -> None:
    now = cluster.broker_node.now_ms()
    update(manager, "a1", [10, 11], now)
    manager.update_next_visible_time(*KEY, 11, now, now + 50_000)
    manager.update_next_visible_time(*KEY, 10, now - 1, now + 90_000)
    cluster.run(49_999)
    assert blocked(manager, "a2"), "message 11 was given longer; message 10 of another pop was not"
    cluster.run(1)
    assert not blocked(manager, "a2")


def test_who_waits_hears_of_the_end_of_a_block_at_the_next_tick_of_the_wheel(
    cluster: Any, manager: ConsumerOrderInfoManager, told: list[tuple[str, str, int]]
) -> None:
    update(manager, "a1", [10], cluster.broker_node.now_ms(), 1_050)
    cluster.run(1_099)
    assert told == []
    cluster.run(1)
    assert told == [KEY]


def test_an_acknowledgement_brings_the_end_of_the_block_forward(
    cluster: Any, manager: ConsumerOrderInfoManager, told: list[tuple[str, str, int]]
) -> None:
    now = cluster.broker_node.now_ms()
    update(manager, "a1", [10], now)
    cluster.run(5_030)
    manager.commit_and_next(*KEY, 10, now)
    cluster.run(69)
    assert told == []
    cluster.run(1)
    assert told == [KEY]
    cluster.run(60_000)
    assert told == [KEY], "the first alarm was taken back"


def test_a_reset_frees_the_queue(cluster: Any, manager: ConsumerOrderInfoManager) -> None:
    update(manager, "a1", [10], cluster.broker_node.now_ms())
    manager.clear_block(*KEY)
    assert not blocked(manager, "a2")
    assert manager.commit_and_next(*KEY, 10, 1) == 11, "an ack that comes now moves on behind its message"


def test_with_the_notification_off_nobody_is_told(
    cluster: Any, manager: ConsumerOrderInfoManager, told: list[tuple[str, str, int]]
) -> None:
    cluster.broker.broker_config.enable_notify_after_pop_order_lock_release = False
    update(manager, "a1", [10], cluster.broker_node.now_ms(), 1_000)
    cluster.run(5_000)
    assert told == []


def test_the_file_follows_every_10_s_and_a_new_life_goes_on_with_it(cluster: Any, told: list[Any]) -> None:
    first = ConsumerOrderInfoManager(cluster.broker, lambda *key: told.append(key))
    now = cluster.broker_node.now_ms()
    update(first, "a1", [10, 11], now, 40_000)
    first.commit_and_next(*KEY, 11, now)
    disk = cluster.broker_node.disk
    cluster.run(10_000 - cluster.now_ms % 10_000 - 1)
    assert not disk.exists(first.path)
    cluster.run(2)
    assert disk.exists(first.path)
    first.lock_manager.shutdown()
    second = ConsumerOrderInfoManager(cluster.broker, lambda *key: told.append(("second", *key)))
    second.load_or_fail()
    assert blocked(second, "a2")
    cluster.run(now + 40_000 - cluster.broker_node.now_ms() - 1)
    assert told == []
    cluster.run(101)
    assert told == [("second", *KEY)], "the alarm was set again from the file"
    assert not blocked(second, "a2")


def test_what_belongs_to_nothing_any_more_is_left_out_of_the_file(
    cluster: Any, manager: ConsumerOrderInfoManager
) -> None:
    now = cluster.broker_node.now_ms()
    for queue_id in (0, 3):
        manager.update("a", False, "T", "G", queue_id, now, 1_000, [1], [])
    manager.update("a", False, "Gone", "G", 0, now, 1_000, [1], [])
    manager.update("a", False, "T", "Gone", 0, now, 1_000, [1], [])
    cluster.broker.create_topic("T", 2)
    manager.encode()
    assert {key: set(queues) for key, queues in manager.table.items()} == {"T@G": {0}}
    cluster.run(24 * 3_600_000)
    assert set(manager.table) == {"T@G"}
    cluster.run(20_000)
    assert manager.table == {}, "not popped for a day: the queue goes, and then the empty entry"


def test_a_broken_file_keeps_the_broker_from_starting_with_an_empty_table(
    cluster: Any, manager: ConsumerOrderInfoManager
) -> None:
    cluster.broker_node.disk.write_bytes(manager.path, b'{"table":7}', flush=True)
    assert not manager.load()
