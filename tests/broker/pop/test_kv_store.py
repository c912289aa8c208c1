"""The ordered store under the key-value engine: what it promises after a crash, a loss of power and on a full disk."""

from __future__ import annotations

import random

import pytest

from mqlab.broker.pop.kv import ordered_store
from mqlab.broker.pop.kv.ordered_store import OrderedStore
from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord, time_key
from mqlab.broker.pop.kv.pop_consumer_store import PopConsumerStore
from mqlab.sim import FAULTS, DiskFull, MemoryDisk, Node, World

PATH = "store/kvStore/popState.log"


def _disk() -> MemoryDisk:
    return MemoryDisk("broker-a", lambda: 0)


def _opened(disk: MemoryDisk) -> OrderedStore:
    store = OrderedStore(disk, PATH)
    store.open()
    return store


def _all(store: OrderedStore) -> dict[bytes, bytes]:
    return dict(store.scan(b"", b"\xff" * 9, 1 << 30))


def _key(number: int) -> bytes:
    return number.to_bytes(2, "big")


# -- the ordered store ------------------------------------------------------------------------------------------------


def test_scans_give_what_lies_between_the_bounds_in_order() -> None:
    store = _opened(_disk())
    store.write([(_key(n), b"%d" % n) for n in (5, 1, 3, 2, 4)])
    store.write([(_key(3), b"three")], [_key(2), _key(9)])
    assert store.scan(_key(1), _key(5), 10) == [(_key(1), b"1"), (_key(3), b"three"), (_key(4), b"4")]
    assert store.scan(_key(1), _key(5), 2) == [(_key(1), b"1"), (_key(3), b"three")]
    assert len(store) == 4
    assert store.get(_key(2)) is None


def test_a_process_that_is_killed_loses_nothing() -> None:
    disk = _disk()
    store = _opened(disk)
    store.write([(_key(n), b"x") for n in range(10)])
    store.write([], [_key(4)])
    assert _all(_opened(disk)) == {_key(n): b"x" for n in range(10) if n != 4}


def test_a_batch_comes_into_force_whole_or_not_at_all() -> None:
    disk = _disk()
    store = _opened(disk)
    store.write([(_key(1), b"old")])
    store.flush()
    whole = disk.open(PATH).size
    store.write([(_key(2), b"y" * 10_000)], [_key(1)])
    disk.open(PATH).truncate(whole + 5_000)
    again = OrderedStore(disk, PATH)
    assert again.open() == 5_000
    assert _all(again) == {_key(1): b"old"}
    again.write([(_key(3), b"new")])
    assert _all(_opened(disk)) == {_key(1): b"old", _key(3): b"new"}


@pytest.mark.parametrize("seed", range(25))
def test_a_loss_of_power_leaves_a_prefix_that_holds_all_that_was_flushed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_store, "COMPACT_BYTES", 20_000)
    rng = random.Random(seed)
    disk = _disk()
    store = _opened(disk)
    states = [{}]  # what the store held behind each batch
    flushed = 0
    for _ in range(rng.randrange(1, 60)):
        puts = [(_key(rng.randrange(30)), rng.randbytes(rng.randrange(1, 900))) for _ in range(rng.randrange(4))]
        deletes = [_key(rng.randrange(30)) for _ in range(rng.randrange(3))]
        if not puts and not deletes:
            continue
        store.write(puts, deletes)
        states.append(_all(store))
        if rng.randrange(3) == 0:
            store.flush()
            flushed = len(states) - 1
    disk.power_loss(lambda point, n: rng.randrange(n))
    left = _opened(disk)
    assert _all(left) in states[flushed:]
    left.write([(_key(99), b"z")])
    assert _all(_opened(disk)) == _all(left)


def test_a_log_that_is_mostly_past_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_store, "COMPACT_BYTES", 4_000)
    disk = _disk()
    store = _opened(disk)
    for n in range(200):
        store.write([(_key(n), b"x" * 100)], [_key(n - 3)] if n > 2 else [])
        store.flush()
    assert store.log_bytes < 4_500
    assert disk.list("store/kvStore") == ["popState.log"]
    disk.power_loss(lambda point, n: 0)
    assert sorted(_all(_opened(disk))) == [_key(197), _key(198), _key(199)]


def test_a_full_disk_changes_nothing_and_room_lets_it_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_store, "COMPACT_BYTES", 4_000)
    disk = _disk()
    store = _opened(disk)
    store.write([(_key(1), b"x" * 3_500)])
    store.flush()
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(DiskFull):
        store.write([(_key(2), b"y" * 5_000)], [_key(1)])
    assert _all(store) == {_key(1): b"x" * 3_500}
    disk.capacity_bytes = disk.used_bytes + 4_096
    store.write([], [_key(1)])
    store.write([(_key(2), b"y" * 500)])
    disk.capacity_bytes = disk.used_bytes
    store.flush()  # there is no room to write the log anew
    assert _all(_opened(disk)) == {_key(2): b"y" * 500}
    assert disk.list("store/kvStore") == ["popState.log"]


def test_a_log_that_was_being_written_anew_is_dropped() -> None:
    disk = _disk()
    store = _opened(disk)
    store.write([(_key(1), b"x")])
    disk.write_bytes(f"{PATH}.new", b"half")
    assert _all(_opened(disk)) == {_key(1): b"x"}
    assert disk.list("store/kvStore") == ["popState.log"]


# -- records ----------------------------------------------------------------------------------------------------------


def _record(offset: int, pop_time: int = 1_000, invisible_time: int = 10_000, **more: object) -> PopConsumerRecord:
    return PopConsumerRecord(pop_time, "G", "T", 3, 0, invisible_time, offset, **more)  # type: ignore[arg-type]


def test_a_record_is_written_as_rocketmq_writes_it() -> None:
    record = _record(7, attempt_times=2)
    assert record.key() == bytes.fromhex("0000000000002af8") + b"G@T@\0\0\0\x03@" + (7).to_bytes(8, "big")
    assert record.value() == (
        b'{"popTime":1000,"groupId":"G","topicId":"T","queueId":3,"retryFlag":0,"invisibleTime":10000,"offset":7,'
        b'"attemptTimes":2}'
    )
    with_attempt = _record(7, attempt_id='a"1')
    assert with_attempt.value().endswith(b'"attemptTimes":0,"attemptId":"a\\"1"}')
    assert [PopConsumerRecord.decode(one.value()) for one in (record, with_attempt)] == [record, with_attempt]


def _node() -> Node:
    return World(1).node("broker-a")


def _store(node: Node) -> PopConsumerStore:
    store = PopConsumerStore(node, "store/kvStore")
    store.start()
    return store


def test_what_is_due_first_is_found_first_whoever_popped_it_when() -> None:
    store = _store(_node())
    late, soon, sooner = _record(1), _record(2, invisible_time=500), _record(3, pop_time=0, invisible_time=1_400)
    store.write_records([late, soon, sooner])
    assert store.scan_expired_records(0, 1 << 62, 10) == [sooner, soon, late]
    assert store.scan_expired_records(1_401, 11_000, 10) == [soon], "the lower bound counts, the upper one does not"
    assert store.scan_expired_records(0, 11_001, 2) == [sooner, soon]
    store.delete_records([_record(2, invisible_time=500), _record(99)])
    assert len(store) == 2
    assert soon not in store
    assert time_key(1_500) < soon.key()


def test_what_was_written_survives_a_loss_of_power_without_a_flush_of_ones_own() -> None:
    node = _node()
    store = _store(node)
    store.write_records([_record(n) for n in range(100)])
    store.delete_records([_record(50)])
    node.disk.power_loss(lambda point, n: 0)
    assert len(_store(node)) == 99


def test_while_the_disk_hangs_a_write_waits_for_it_with_all_that_come_behind() -> None:
    node = _node()
    store = _store(node)
    FAULTS["hang_disk"](node.world, node="broker-a")
    first, second = store.write_records([_record(1)]), store.delete_records([_record(9)])
    assert first is not None
    assert first is second
    node.world.run_for(5_000_000)
    assert not first.done
    FAULTS["unhang_disk"](node.world, node="broker-a")
    node.world.run_for(1_000)
    assert first.done
    node.disk.power_loss(lambda point, n: 0)
    assert len(_store(node)) == 1
    assert store.write_records([_record(2)]) is None
