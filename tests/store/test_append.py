"""What gets into the commit log is dispatched, whoever wrote it; what a put waits for; who is shown each message."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.sim import DiskFull, Future
from mqlab.store import BrokerRole, DispatchRequest, FlushDiskType, PutMessageStatus


def _filled(store_world: Any, count: int = 60) -> Any:
    """A master with messages in two queues and a log of three files."""
    master = store_world()
    for i in range(count):
        master.store.put_message(master.message(i, queue_id=i % 2, size=2_000))
    master.run()
    return master


def _log_bytes(master: Any) -> bytes:
    files = master.store.commit_log.mapped_file_queue.mapped_files
    return b"".join(file.file.read(0, file.wrote_position) for file in files)


def _queues(sw: Any) -> dict[tuple[str, int], list[Any]]:
    return {key: list(queue.units()) for key, queue in sw.store.consume_queue_store.consume_queue_table.items()}


@pytest.mark.parametrize("step", [1_000, 4_096, 32_768])
def test_the_bytes_of_a_master_become_the_same_queues_and_index(store_world: Any, step: int) -> None:
    """As a slave gets them: pieces that end anywhere, never behind the end of a file."""
    master = _filled(store_world)
    slave = store_world(broker_role=BrokerRole.SLAVE)
    log = _log_bytes(master)
    at = 0
    while at < len(log):
        end = min(at + step, at + 65536 - at % 65536, len(log))
        assert slave.store.append_to_commit_log(at, log[at:end])
        slave.run()
        at = end
    assert _log_bytes(slave) == log
    assert _queues(slave) == _queues(master)
    assert slave.store.dispatch_behind_bytes == 0
    found = [sw.store.query_message("TopicTest", "k17", 32, 0, 1 << 60).messages for sw in (master, slave)]
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_a_piece_of_a_record_waits_for_the_rest_without_a_turn(store_world: Any) -> None:
    master = _filled(store_world, 2)
    slave = store_world(broker_role=BrokerRole.SLAVE)
    log = _log_bytes(master)
    assert slave.store.append_to_commit_log(0, log[:-1])
    slave.run(20_000)
    before = slave.world.slice_no
    slave.run(1_000)
    assert slave.world.slice_no == before
    assert slave.store.get_max_offset_in_queue("TopicTest", 1) == 0
    assert slave.store.append_to_commit_log(len(log) - 1, log[-1:])
    slave.run()
    assert slave.store.get_max_offset_in_queue("TopicTest", 1) == 1


def test_bytes_that_do_not_continue_the_log_are_not_taken(store_world: Any) -> None:
    master = _filled(store_world)
    slave = store_world(broker_role=BrokerRole.SLAVE)
    log = _log_bytes(master)
    assert not slave.store.append_to_commit_log(100, log[100:200])
    assert not slave.store.append_to_commit_log(0, log[:70_000])
    assert slave.store.append_to_commit_log(0, log[:100])
    assert not slave.store.append_to_commit_log(0, log[:100])
    assert slave.store.append_to_commit_log(100, log[100:200])
    slave.store.shutdown()
    assert not slave.store.append_to_commit_log(200, log[200:300])


def test_a_log_whose_only_file_a_full_disk_has_left_empty_may_begin_with_another_one(store_world: Any) -> None:
    master = _filled(store_world)
    log = _log_bytes(master)
    slave = store_world(broker_role=BrokerRole.SLAVE)
    slave.node.disk.capacity_bytes = slave.node.disk.used_bytes + 8_192
    with pytest.raises(DiskFull):
        slave.store.append_to_commit_log(0, log[:20_000])
    slave.node.disk.capacity_bytes = 100 << 20
    assert not slave.store.append_to_commit_log(65_000, log[65_000:65_536])
    assert slave.store.append_to_commit_log(65536, log[65536 : 2 * 65536])
    slave.run()
    queue, same = (sw.store.find_consume_queue("TopicTest", 0) for sw in (slave, master))
    assert slave.store.min_phy_offset == 65536
    assert queue.get(queue.min_offset_in_queue) == same.get(queue.min_offset_in_queue)


@pytest.mark.parametrize("disk_was_full", [False, True])
def test_a_log_without_files_may_begin_with_any_file(store_world: Any, disk_was_full: bool) -> None:
    master = _filled(store_world)
    slave = store_world(broker_role=BrokerRole.SLAVE)
    assert slave.store.append_to_commit_log(65536, _log_bytes(master)[65536 : 2 * 65536])
    if disk_was_full:
        slave.node.disk.capacity_bytes = slave.node.disk.used_bytes
        slave.run()
        assert slave.store.get_max_offset_in_queue("TopicTest", 0) == 0
        slave.node.disk.capacity_bytes = 100 << 20
        slave.run(70_000)
    slave.run()
    queue, same = (sw.store.find_consume_queue("TopicTest", 0) for sw in (slave, master))
    first = queue.min_offset_in_queue
    assert slave.store.min_phy_offset == 65536
    assert queue.get(first) == same.get(first)
    assert queue.get(first).pos >= 65536 > same.get(first - 1).pos


# -- dispatchers ----------------------------------------------------------------------------------------------------


def test_each_message_is_shown_to_all_dispatchers_once_also_after_a_crash(sw: Any) -> None:
    seen: list[DispatchRequest] = []
    sw.store.dispatcher_list.append(seen.append)
    sw.put(3)
    assert [request.consume_queue_offset for request in seen] == [0, 1, 2]
    reader = type(sw.store)(sw.node, sw.config)
    again: list[DispatchRequest] = []
    reader.dispatcher_list.append(again.append)
    reader.load()
    assert [request.fields() for request in again] == [request.fields() for request in seen]


def test_what_finds_no_room_for_an_entry_is_shown_to_all_again(sw: Any) -> None:
    seen: list[DispatchRequest] = []
    sw.store.dispatcher_list.append(seen.append)
    sw.store.put_message(sw.message())
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes
    sw.run()
    assert seen == []
    sw.node.disk.capacity_bytes = 100 << 20
    sw.run(70_000)
    assert len(seen) == 1


# -- what a put waits for -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flush_disk_type", list(FlushDiskType))
def test_a_put_waits_for_flush_and_replicas(store_world: Any, flush_disk_type: FlushDiskType) -> None:
    sw = store_world(flush_disk_type=flush_disk_type)
    replicas: list[Future[PutMessageStatus]] = []

    def handle_ha(message: Any, result: Any) -> Future[PutMessageStatus] | None:
        assert result.wrote_bytes == message.store_size
        if message.keys == "k0":
            return None
        replicas.append(Future("a slave"))
        return replicas[-1]

    sw.store.handle_ha = handle_ha
    alone = sw.store.put_message(sw.message(0))
    sw.run(20)
    assert (alone.result() if isinstance(alone, Future) else alone).is_ok
    good, late = sw.store.put_message(sw.message(1)), sw.store.put_message(sw.message(2))
    sw.run(20)
    assert not good.done
    replicas[0].set_result(PutMessageStatus.PUT_OK)
    replicas[1].set_result(PutMessageStatus.FLUSH_SLAVE_TIMEOUT)
    assert (good.result().status, late.result().status) == (
        PutMessageStatus.PUT_OK,
        PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    )


def test_replicas_that_are_there_first_wait_for_the_flush(store_world: Any) -> None:
    sw = store_world(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    sw.node.disk.hang()
    replica: Future[PutMessageStatus] = Future("a slave")
    sw.store.handle_ha = lambda message, result: replica
    put = sw.store.put_message(sw.message())
    replica.set_result(PutMessageStatus.PUT_OK)
    sw.run(4_000)
    assert not put.done
    sw.run(2_000)
    assert put.result().status is PutMessageStatus.FLUSH_DISK_TIMEOUT
