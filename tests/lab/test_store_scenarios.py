"""What lab 02 teaches about the store holds in every world: what a stop takes away, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest

from mqlab import Lab, scenarios
from mqlab.protocol.message import MessageExt
from mqlab.scenarios.store import SMALL_FILES
from mqlab.sim import MemoryDisk
from tests.worlds import noting, send, shop, started_producer

DAMAGED_MESSAGE = 127


def left(lab: Lab) -> int:
    """How many messages can be consumed."""
    return sum(int(row[-1]) for row in lab.topics().rows)


def shop_after(damage: Callable[[MemoryDisk], None], *, clean: bool = False, quiet_s: int = 0) -> Lab:
    """A broker with 387 messages, stopped, damaged and started again."""
    lab = scenarios.get("small-files").play(7, seconds=quiet_s)
    broker = lab.brokers[0]
    if clean:
        lab.run(broker.running().shutdown())
    broker.crash()
    damage(broker.node.disk)
    broker.restart()
    return lab.run_for(seconds=1)


def delete_queues(disk: MemoryDisk) -> None:
    disk.rmtree("store/consumequeue")


def rotten_byte(disk: MemoryDisk) -> None:
    """Change a byte in the body of message 127."""
    stored = list(scenarios.get("small-files").build(7).history.find("MessageStored"))
    number, at = divmod(stored[DAMAGED_MESSAGE].commit_log_offset, SMALL_FILES["mapped_file_size_commit_log"])
    file = disk.open(f"store/commitlog/{number * SMALL_FILES['mapped_file_size_commit_log']:020d}")
    file.write(at + 88, bytes([file.read(at + 88, 1)[0] ^ 0xFF]))


def test_a_power_cut_leaves_any_number_of_the_first_acknowledged_orders() -> None:
    found = {left(scenarios.get("orders-cut-off").play(seed)) for seed in range(40)}
    assert {0, 10} < found


@pytest.mark.parametrize("parameters", [{"flush": "SYNC_FLUSH"}, {"how": "crash"}], ids=["sync flush", "kill"])
def test_what_is_flushed_or_only_killed_stays(parameters: dict[str, str]) -> None:
    assert {left(scenarios.get("orders-cut-off").play(seed, parameters=parameters)) for seed in range(10)} == {10}


def test_a_small_message_is_unsafe_for_up_to_ten_seconds() -> None:
    lab = shop(topic="Orders")
    producer = started_producer(lab)
    send(producer, b"hello", topic="Orders")
    lab.run_until_event("CommitLogFlushed")
    send(producer, b"hello", topic="Orders")
    stored = lab.history.last("MessageStored")
    assert stored is not None
    assert 9_990 < lab.run_until_event("CommitLogFlushed").ts_ms - stored.ts_ms < 10_000


def test_deleted_queues_come_back_from_the_log() -> None:
    assert left(shop_after(delete_queues)) == 387
    assert left(shop_after(delete_queues, clean=True, quiet_s=120)) == 387


def test_deleted_queues_of_a_killed_broker_come_back_from_the_checkpoint_on_only() -> None:
    lab = shop_after(delete_queues, quiet_s=120)
    recovery = lab.brokers[0].store.recovery
    assert recovery is not None
    assert recovery.started_at > 0
    assert left(lab) == recovery.records < 387


def test_a_rotten_byte_ends_the_log_of_a_killed_broker() -> None:
    assert left(shop_after(rotten_byte)) == DAMAGED_MESSAGE


def test_after_a_clean_stop_nobody_notices_a_rotten_byte_and_it_is_consumed() -> None:
    lab = shop_after(rotten_byte, clean=True)
    assert left(lab) == 387
    handled: list[MessageExt] = []
    consumer = lab.consumer("auditors")
    consumer.subscribe("Orders", "*")
    consumer.subscribe("Payments", "*")
    consumer.register_message_listener(noting(handled, ""))
    lab.run(consumer.start())
    lab.run_for(seconds=60)
    assert len(handled) == 387
    rotten = [message for message in handled if crc32(message.body) & 0x7FFFFFFF != message.body_crc]
    assert [message.keys for message in rotten] == [f"key-{DAMAGED_MESSAGE}"]
