"""The durable state of a share partition: snapshots, updates, and who may write."""

from __future__ import annotations

import json

import pytest

from mqlab.cousins.share_partition import RecordState, StateBatch
from mqlab.cousins.share_state import FILE, FencedLeaderEpoch, ShareGroupState
from mqlab.sim.disk import MemoryDisk


def disk() -> MemoryDisk:
    return MemoryDisk("broker", lambda: 0)


def available(offset: int, count: int = 1) -> StateBatch:
    return StateBatch(offset, offset, RecordState.AVAILABLE, count)


def kinds(of: MemoryDisk) -> list[str]:
    return [json.loads(line)[0] for line in of.read_bytes(FILE).splitlines()]


def test_a_snapshot_comes_first_and_again_behind_so_many_updates() -> None:
    on = disk()
    state = ShareGroupState(on, updates_per_snapshot=2)
    for offset in range(5):
        state.write(1, 0, [available(offset)])
    assert kinds(on) == ["ShareSnapshot", "ShareUpdate", "ShareUpdate", "ShareSnapshot", "ShareUpdate"]
    assert ShareGroupState(on, updates_per_snapshot=2).read(1).batches == tuple(available(n) for n in range(5))


def test_what_was_written_last_counts_and_what_lies_before_the_start_is_forgotten() -> None:
    on = disk()
    state = ShareGroupState(on)
    state.write(1, 0, [StateBatch(0, 3, RecordState.AVAILABLE, 1)])
    state.write(1, 2, [available(3, 2)])
    assert ShareGroupState(on).read(1) == (1, 2, (available(2), available(3, 2)))


def test_who_led_the_partition_before_can_write_no_more() -> None:
    on = disk()
    old = ShareGroupState(on)
    old.read(1)
    old.write(1, 0, [])
    old.read(2)
    with pytest.raises(FencedLeaderEpoch):
        old.write(1, 0, [available(0)])
    with pytest.raises(FencedLeaderEpoch):
        old.read(1)
    old.write(2, 0, [available(0)])
    assert ShareGroupState(on).leader_epoch == 2


@pytest.mark.parametrize("page", [0, -1])
def test_all_of_it_is_safe_from_a_loss_of_power(page: int) -> None:
    on = disk()
    ShareGroupState(on).write(1, 0, [available(7)])
    on.power_loss(lambda point, n: page % n)
    assert ShareGroupState(on).read(2).batches == (available(7),)
