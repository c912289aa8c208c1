"""A broker opens what a real one left in the midst of its transactions, and does what the real one did next."""

from __future__ import annotations

import json
import tarfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.client import LocalTransactionState, TransactionListener
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, RMQ_SYS_TRANS_OP_HALF_TOPIC
from mqlab.sim.disk import MemoryDisk
from tests.golden.recorded import STORES, manifest

RECORDED = manifest("txn")
SETTINGS: dict[str, Any] = {
    "mapped_file_size_commit_log": 65_536, "mapped_file_size_consume_queue": 400, "max_hash_slot_num": 100,
    "max_index_num": 400, "transaction_check_interval": 3_000, "transaction_time_out": 2_000,
    "transaction_check_max": 3, "timer_wheel_enable": False,
}  # fmt: skip
"""Those of the real broker, as the manifest has them."""

CUTS = {27_849: (41, 3), 28_320: (43, 4), 28_791: (44, 4), 29_262: (45, 4)}
"""Where the log is cut: in front of each of the last four records, and how far the broker had come then with the half
messages and with the op messages. The last transaction is open, and its producer never knows.
"""


class NeverKnows(TransactionListener):
    """A producer whose transaction stays open, as that of the recording."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def check_local_transaction(self, message: Any) -> LocalTransactionState:
        self.asked.append(message)
        return LocalTransactionState.UNKNOW


def opened(directory: Path, clock_ms: int) -> Lab:
    """A lab whose broker is the real one's directory, its clock as late as that."""
    lab = Lab(seed=3)
    lab.name_server()
    broker = lab.broker("broker-a", start=False, **SETTINGS)
    broker.node.disk = MemoryDisk.over_directory(directory)
    broker.node.set_drift(0, clock_ms - broker.node.now_ms())
    return lab


def cut(directory: Path, at: int, half: int, op: int) -> None:
    """Let the log end at `at`, as a broker that is killed there leaves it, with that progress of its checks."""
    store = directory / "store"
    path = store / "commitlog" / "00000000000000000000"
    log = path.read_bytes()
    path.write_bytes(log[:at].ljust(len(log), b"\0"))
    for file in [*store.glob("consumequeue/*/*/*"), *store.glob("index/*")]:
        file.unlink()
    (store / "abort").write_bytes(b"1")
    (store / "checkpoint").write_bytes(bytes(4_096))
    (store / "config" / "consumerOffset.json.bak").unlink()
    group = "CID_RMQ_SYS_TRANS"
    table = {f"{RMQ_SYS_TRANS_HALF_TOPIC}@{group}": {"0": half}, f"{RMQ_SYS_TRANS_OP_HALF_TOPIC}@{group}": {"0": op}}
    (store / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def without_time_and_host(record: bytes) -> bytes:
    """A record but for when and where it was stored."""
    return record[:56] + record[72:]


@pytest.mark.parametrize("at", CUTS)
def test_it_asks_and_stores_what_the_real_one_did_in_the_same_order(tmp_path: Path, at: int) -> None:
    with tarfile.open(STORES / "txn.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    log = (tmp_path / "store" / "commitlog" / "00000000000000000000").read_bytes()
    wanted, offset = [], at
    while size := int.from_bytes(log[offset : offset + 4], "big"):
        wanted.append(log[offset : offset + size])
        offset += size
    clock_ms = decode_record(wanted[0]).store_timestamp - 1_500
    cut(tmp_path, at, *CUTS[at])
    lab = opened(tmp_path, clock_ms)
    lab.start("broker-a")
    listener = NeverKnows()
    producer = lab.transaction_producer("PG_TX", listener)
    lab.run(producer.start())
    lab.run(producer.fetch_publish_message_queues("GoldenTx"))  # so that it greets the broker
    lab.run_for(seconds=60)
    store = lab.brokers[0].running().message_store
    assert store.max_phy_offset == offset == int(RECORDED["reopened"]["runtimeInfo"]["commitLogMaxOffset"])
    begin = at
    for record in wanted:
        mine = store.commit_log.get_message(begin, len(record))
        assert mine is not None
        assert without_time_and_host(mine) == without_time_and_host(record)
        begin += len(record)
    # The last record is the message that is given up: who is asked gets the one that was just stored again.
    assert [message.properties["TRANSACTION_CHECK_TIMES"] for message in listener.asked] == [
        decode_record(record).properties["TRANSACTION_CHECK_TIMES"] for record in wanted[:-1]
    ]
    times_ms = [stored.ts_ms for stored in lab.history.find("MessageStored")]
    assert all(2_999 <= later - earlier <= 3_100 for earlier, later in pairwise(times_ms))


def test_a_broker_goes_on_with_what_a_real_one_left(tmp_path: Path) -> None:
    """All that the real one had begun was over; it did nothing more, nor does this one."""
    with tarfile.open(STORES / "txn.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    reopened = RECORDED["reopened"]
    lab = opened(tmp_path, 1_795_204_040_000)
    lab.start("broker-a")
    lab.run_for(seconds=60)
    broker = lab.brokers[0].running()
    store = broker.message_store
    for topic, queues in reopened["queueOffsets"].items():
        for queue_id, bounds in queues.items():
            assert store.get_min_offset_in_queue(topic, int(queue_id)) == bounds["min"], topic
            assert store.get_max_offset_in_queue(topic, int(queue_id)) == bounds["max"], topic
    info = reopened["runtimeInfo"]
    assert store.min_phy_offset == int(info["commitLogMinOffset"])
    assert store.max_phy_offset == int(info["commitLogMaxOffset"])
    assert store.get_earliest_message_time() == int(info["earliestMessageTimeStamp"])
    assert store.dispatch_behind_bytes == int(info["dispatchBehindBytes"])
    transactions = broker.transactions
    assert transactions.half_messages.offset(RMQ_SYS_TRANS_HALF_TOPIC) == 46
    assert transactions.half_messages.offset(RMQ_SYS_TRANS_OP_HALF_TOPIC) == 4
    assert transactions.metrics.counts == {"GoldenTx": -7}
    assert not list(lab.history.find("TransactionChecked"))
