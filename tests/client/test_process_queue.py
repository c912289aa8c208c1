"""A process queue: what is held, what may be committed, what is too old."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import MessageExt, ProcessQueue
from mqlab.protocol import MessageConst
from mqlab.sim import Node, World


def message(offset: int, body: bytes = b"ten bytes!", max_offset: int = 0) -> MessageExt:
    return MessageExt("T", body, queue_offset=offset, properties={MessageConst.MAX_OFFSET: str(max_offset)})


@pytest.fixture
def node() -> Node:
    return World(1).node("consumer")


@pytest.fixture
def queue(node: Node) -> ProcessQueue:
    held = ProcessQueue(node)
    held.put_message([message(offset) for offset in range(10, 15)])
    return held


def test_it_counts_messages_bytes_and_span(queue: ProcessQueue) -> None:
    assert (queue.msg_count, queue.msg_size, queue.max_span()) == (5, 50, 4)
    queue.put_message([message(14)])
    assert queue.msg_count == 5
    assert "5 messages, 50 bytes, offsets 10..14" in repr(queue)


def test_the_offset_to_commit_is_the_smallest_one_still_held(queue: ProcessQueue) -> None:
    assert queue.remove_message([message(11), message(12)]) == 10
    assert queue.remove_message([message(10)]) == 13
    assert queue.remove_message([message(13), message(14)]) == 15
    assert (queue.msg_count, queue.msg_size, queue.max_span()) == (0, 0, 0)
    assert queue.remove_message([message(14)]) == -1


def test_one_stuck_message_holds_all_commits_back(queue: ProcessQueue) -> None:
    for offset in range(11, 15):
        assert queue.remove_message([message(offset)]) == 10
    assert queue.contains_message(message(10))


def test_orderly_consumption_takes_commits_and_rolls_back(queue: ProcessQueue) -> None:
    assert not queue.put_message([message(15)])
    taken = queue.take_messages(2)
    assert [m.queue_offset for m in taken] == [10, 11]
    queue.rollback()
    assert [m.queue_offset for m in queue.take_messages(3)] == [10, 11, 12]
    queue.make_message_to_consume_again([message(12)])
    assert queue.commit() == 12
    assert (queue.msg_count, queue.commit()) == (4, -1)
    assert [m.queue_offset for m in queue.take_messages(10)] == [12, 13, 14, 15]
    queue.commit()
    assert queue.take_messages(1) == []
    assert queue.put_message([message(16)])


def test_the_distance_to_the_end_of_the_queue_is_kept(node: Node) -> None:
    queue = ProcessQueue(node)
    queue.put_message([message(5, max_offset=105)])
    assert queue.msg_acc_cnt == 100


def test_a_queue_expires_120_seconds_after_its_last_pull_and_its_lock_after_30(node: Node) -> None:
    queue = ProcessQueue(node)
    node.world.run_for(30_000_000)
    assert not queue.is_lock_expired
    node.world.run_for(1)
    assert queue.is_lock_expired
    node.world.run_for(90_000_000 - 1)
    assert not queue.is_pull_expired
    node.world.run_for(1)
    assert queue.is_pull_expired


def test_messages_consumed_for_too_long_are_given_back_from_the_front_and_16_at_most(node: Node) -> None:
    queue = ProcessQueue(node)
    queue.put_message([message(offset) for offset in range(20)])
    given_back: list[tuple[int, int]] = []

    async def send_back(late: MessageExt, delay_level: int) -> bool:
        given_back.append((late.queue_offset, delay_level))
        return True

    def clean() -> Any:
        node.world.wait_for(node.spawn(queue.clean_expired_msg(15, send_back), "clean").join())

    for held in queue.msg_tree_map.values():
        held.properties[MessageConst.CONSUME_START_TIMESTAMP] = str(node.now_ms())
    node.world.run_for(15 * 60_000_000)
    clean()
    assert given_back == []
    node.world.run_for(1_000)
    clean()
    assert given_back == [(offset, 3) for offset in range(16)]
    assert queue.msg_count == 4


def test_a_message_that_nobody_takes_back_stays_and_is_offered_again(node: Node) -> None:
    queue = ProcessQueue(node)
    queue.put_message([message(offset) for offset in range(3)])
    offered: list[int] = []

    async def send_back(late: MessageExt, delay_level: int) -> bool:
        offered.append(late.queue_offset)
        return len(offered) == 2

    for held in queue.msg_tree_map.values():
        held.properties[MessageConst.CONSUME_START_TIMESTAMP] = str(node.now_ms())
    node.world.run_for(15 * 60_000_000 + 1_000)
    node.world.wait_for(node.spawn(queue.clean_expired_msg(15, send_back), "clean").join())
    assert offered == [0, 0, 1]
    assert list(queue.msg_tree_map) == [1, 2]


@pytest.mark.parametrize("started", ["", "soon", "1.5"])
def test_a_time_that_is_none_ends_the_look_for_old_messages(node: Node, started: str) -> None:
    queue = ProcessQueue(node)
    queue.put_message([message(1)])
    queue.msg_tree_map[1].properties[MessageConst.CONSUME_START_TIMESTAMP] = started

    async def send_back(late: MessageExt, delay_level: int) -> bool:
        raise AssertionError("nothing is late")

    node.world.run_for(60 * 60_000_000)
    node.world.wait_for(node.spawn(queue.clean_expired_msg(15, send_back), "clean").join())
    assert queue.msg_count == 1


def test_clear_forgets_everything(queue: ProcessQueue) -> None:
    queue.take_messages(1)
    queue.clear()
    assert (queue.msg_count, queue.msg_size, queue.remove_message([message(10)])) == (0, 0, -1)
