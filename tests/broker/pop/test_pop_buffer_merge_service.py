"""The merge buffer: what stays in memory, what goes to the store, and how far a group's progress gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol.pop_check_point import BatchAckMsg
from mqlab.store import BrokerRole
from tests.broker.pop.popped_batches import KEY, Popped


@pytest.fixture
def popped(make_cluster: Callable[..., Any]) -> Popped:
    """A broker with the buffer on."""
    return Popped(make_cluster)


# -- in memory ------------------------------------------------------------------------------------------------------


def test_what_is_acknowledged_in_time_is_never_written(popped: Popped) -> None:
    point = popped.pop(0, 3)
    assert popped.service.get_latest_offset(KEY) == 3
    assert popped.ack(point, 0, 2)
    popped.cluster.run(1_000)
    assert popped.committed == -1, "message 1 is still out"
    assert popped.ack(point, 1)
    popped.cluster.run(5)
    assert popped.committed == 3
    assert popped.service.buffer == {}
    assert popped.service.get_latest_offset(KEY) == -1
    popped.cluster.run(60_000)
    assert popped.at("CheckPointStored") == []


def test_progress_does_not_go_past_an_older_batch(popped: Popped) -> None:
    first, second = popped.pop(0, 2), popped.pop(2, 1)
    assert popped.ack(second, 2)
    popped.cluster.run(100)
    assert popped.committed == -1
    assert popped.ack(first, 0, 1)
    popped.cluster.run(5)
    assert popped.committed == 3
    assert [row[3] for row in popped.fields("OffsetCommitted")] == [2, 3]


def test_the_scan_comes_on_the_grid_of_5_ms_that_began_with_the_broker(popped: Popped) -> None:
    popped.cluster.run(7.3)
    point = popped.pop(0, 1)
    popped.ack(point, 0)
    popped.cluster.run(5)
    (row,) = (row for row in popped.rows if row[7] == "OffsetCommitted")
    assert (row[2] - popped.cluster.broker.start_us) % 5_000 == 0


def test_a_pop_that_found_nothing_moves_the_offset_in_its_turn(popped: Popped) -> None:
    point = popped.pop(0, 1)
    popped.service.add_ck_mock("G", "T", 0, 1, 60_000, popped.node.now_ms(), 3, 9, "broker-a")
    assert popped.service.get_latest_offset(KEY) == 9
    popped.cluster.run(100)
    assert popped.committed == -1
    popped.ack(point, 0)
    popped.cluster.run(5)
    assert popped.committed == 9


def test_a_queue_that_is_being_popped_is_committed_at_a_later_tick(popped: Popped) -> None:
    point = popped.pop(0, 1)
    assert popped.cluster.broker.pop.locks.try_lock("T", "G", 0)
    popped.ack(point, 0)
    popped.cluster.run(1_000)
    assert popped.committed == -1
    popped.cluster.broker.pop.locks.unlock("T", "G", 0)
    popped.cluster.run(5)
    assert popped.committed == 1
    assert popped.cluster.broker.pop.locks.try_lock("T", "G", 0), "the scan gave the lock back"


def test_a_stranger_in_an_ack_is_passed_over(popped: Popped) -> None:
    point = popped.take_in(popped.check_point(0, 2, diffs=[0, 4]))
    assert popped.ack(point, 3), "swallowed, as in RocketMQ"
    assert popped.fields("AckLost") == [("G", "T", 0, 3, 0, point.pop_time, "not in the check point")]
    batch = BatchAckMsg(-1, 0, "G", "T", 0, point.pop_time, "broker-a", ack_offset_list=[0, 1, 4])
    assert popped.service.add_ak(3, batch)
    popped.cluster.run(5)
    assert popped.committed == 5


# -- refusals -------------------------------------------------------------------------------------------------------


def test_a_check_point_is_refused_when_memory_could_not_keep_it_long(popped: Popped) -> None:
    service = popped.service
    assert not service.add_ck(popped.check_point(0, 1, 4_499), 0, -1, 1)
    assert service.add_ck(popped.check_point(0, 1, 4_500), 0, -1, 1)
    assert not service.add_ck(popped.check_point(0, 1), 0, -1, 1), "the same key"


def test_full_tables_refuse(popped: Popped) -> None:
    config = popped.cluster.broker.broker_config
    assert (config.pop_ck_max_buffer_size, config.pop_ck_offset_max_queue_size) == (200_000, 20_000)
    config.pop_ck_offset_max_queue_size = 2
    popped.pop(0, 1)
    popped.pop(1, 1)
    assert not popped.service.add_ck(popped.check_point(2, 1), 0, -1, 3)
    config.pop_ck_offset_max_queue_size = 20_000
    config.pop_ck_max_buffer_size = 1
    assert not popped.service.add_ck(popped.check_point(2, 1), 0, -1, 3)


def test_acks_are_refused_when_the_check_point_is_about_to_be_stored(popped: Popped) -> None:
    long_out, soon_due = popped.pop(0, 2), popped.pop(2, 2, 10_000)
    popped.cluster.run(5_500)
    assert popped.ack(soon_due, 2)
    popped.cluster.run(1)
    assert not popped.ack(soon_due, 3), "4.5 s before they become visible"
    popped.cluster.run(2_999)
    assert popped.ack(long_out, 0)
    popped.cluster.run(1)
    assert not popped.ack(long_out, 1), "8.5 s in memory"


def test_without_the_buffer_nothing_is_kept(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, enable_pop_buffer_merge=False)
    point = popped.check_point(0, 1)
    assert not popped.service.add_ck(point, 0, -1, 1)
    assert not popped.ack(point, 0)


# -- garbage, resets, slaves ------------------------------------------------------------------------------------------


def test_offsets_of_a_topic_or_a_group_that_is_gone_are_dropped_within_30_s(make_cluster: Callable[..., Any]) -> None:
    for gone in ("topic", "group"):
        popped = Popped(make_cluster, pop_ck_stay_buffer_time=100_000)
        popped.pop(0, 1)
        if gone == "topic":
            popped.cluster.broker.topic_config_manager.delete_topic_config("T")
        else:
            popped.cluster.broker.subscription_group_manager.delete_subscription_group_config("G")
            popped.cluster.broker.broker_config.auto_create_subscription_group = False
        passed_ms = (popped.cluster.world.now_us - popped.cluster.broker.start_us) / 1_000
        popped.cluster.run(30_000 - passed_ms - 1)
        assert popped.service.get_latest_offset(KEY) == 1
        popped.cluster.run(1)
        assert popped.service.get_latest_offset(KEY) == -1
        assert popped.fields("OffsetQueueDropped") == [("G", "T", 0, 1, f"{gone} gone")]


def test_a_queue_that_nobody_pops_for_5_minutes_is_forgotten_and_then_nothing_is_armed(popped: Popped) -> None:
    point = popped.pop(0, 1)
    popped.ack(point, 0)
    popped.cluster.run(300_000)
    assert KEY in popped.service.commit_offsets.table
    popped.cluster.run(30_000)
    assert popped.service.commit_offsets.table == {}
    assert popped.service.idle


def test_a_reset_forgets_the_offsets_that_wait(popped: Popped) -> None:
    point = popped.pop(0, 1)
    popped.service.clear_offset_queue(KEY)
    assert popped.service.get_latest_offset(KEY) == -1
    popped.ack(point, 0)
    popped.cluster.run(100)
    assert popped.committed == -1
    assert popped.service.buffer == {}


def test_a_slave_forgets_everything_every_5_s(make_cluster: Callable[..., Any]) -> None:
    popped = Popped(make_cluster, {"broker_role": BrokerRole.SLAVE}, broker_id=1)
    popped.pop(0, 1)
    passed_ms = (popped.cluster.world.now_us - popped.cluster.broker.start_us) / 1_000
    popped.cluster.run(5_000 - passed_ms - 1)
    assert popped.service.buffer
    popped.cluster.run(1)
    assert not popped.service.buffer
    assert popped.service.get_latest_offset(KEY) == -1
    assert popped.at("CheckPointStored") == []


# -- what it costs --------------------------------------------------------------------------------------------------


def test_nothing_turns_while_nothing_can_happen(popped: Popped) -> None:
    popped.cluster.run(50)
    began = popped.cluster.world.slice_no
    for start in range(0, 300, 3):
        popped.pop(start, 3)
    popped.cluster.run(5_000)
    assert popped.cluster.world.slice_no - began < 20, "a hundred batches are out, and the first is due in 5 s"
