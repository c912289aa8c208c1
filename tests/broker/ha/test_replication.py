"""A slave's log is its master's, whatever happens to either of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab import Lab
from mqlab.explore import Trial, plan_from_text
from mqlab.sim.disk import MemoryDisk
from tests.broker.ha.conftest import FILE_BYTES, SIZES, Pair, log_bytes, members


def _equal(pair: Pair) -> bool:
    """Has the slave the same bytes as its master from where it begins up to the very end?"""
    start = pair.slave.store.min_phy_offset
    return log_bytes(pair.slave.store) == log_bytes(pair.master.store, start)


def _queue(store: Any) -> list[tuple[int, int, int]]:
    return [(unit.pos, unit.size, unit.tags_code) for unit in store.find_consume_queue("T", 0).units()]


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_slave_has_its_masters_bytes_and_makes_its_own_queues(pair: type[Pair], wire: str) -> None:
    p = pair(wire=wire).replicated()
    p.send(150, 1_000)
    p.send(3, 30_000)
    p.lab.run_for(ms=300)
    assert p.master.store.max_phy_offset > 3 * FILE_BYTES
    assert _equal(p)
    assert _queue(p.slave.store) == _queue(p.master.store)


def test_a_new_slave_begins_with_the_masters_last_file(pair: type[Pair]) -> None:
    p = pair()
    p.send(60, 2_500)
    p.replicated()
    assert p.slave.store.min_phy_offset == 2 * FILE_BYTES
    assert _equal(p)
    (begun,) = p.events("ReplicationBegun")
    assert (begun.asked_offset, begun.commit_log_offset) == (0, 2 * FILE_BYTES)


def test_an_asynchronous_slave_lags_by_a_look_of_its_master_at_most(pair: type[Pair]) -> None:
    p = pair().replicated()
    for number in range(20):
        p.lab.run_for(ms=137 + number)
        p.send()
    p.lab.run_for(ms=200)
    sent = p.events("MessageStored")
    lags = []
    for stored in sent:
        end = stored.commit_log_offset + stored.store_size
        acked = next(r.ts_us for r in p.events("ReplicaAcked") if r.ack_offset >= end)
        lags.append((acked - stored.ts_us) / 1_000)
    assert 60 < max(lags) <= 101
    assert min(lags) < 40


def test_reports_and_heartbeats_of_an_idle_pair(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.lab.run_for(ms=31_000)
    reports, heartbeats = p.at("ReplicaAcked"), p.at("ReplicaHeartbeatSent")
    assert all(4_990 <= after - before <= 5_010 for before, after in pairwise(reports))
    assert all(5_000 <= after - before <= 5_100 for before, after in pairwise(heartbeats))
    assert min(len(reports), len(heartbeats)) >= 6


def test_a_killed_slave_goes_on_where_it_was(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.send(20, 1_000)
    p.lab.run_for(ms=200)
    end = p.slave.store.max_phy_offset
    p.slave.crash()
    p.send(30, 1_000)
    p.slave.restart()
    p.lab.run_for(ms=7_000)
    assert _equal(p)
    assert p.events("ReplicationBegun")[-1].commit_log_offset == end
    assert [r.reason for r in p.events("ReplicaDisconnected")] == ["the slave is gone"]


def test_a_slave_comes_back_to_a_restarted_master_in_5_s(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.send(5)
    p.lab.run_for(ms=200)
    p.master.crash()
    p.lab.run_for(ms=3_000)
    p.master.restart()
    p.lab.run_for(ms=40_000)
    p.send(5)
    p.lab.run_for(ms=200)
    assert _equal(p)
    (gone,) = p.at("MasterDisconnected")
    assert 5_000 <= p.at("MasterConnected")[-1] - gone <= 5_010


def test_a_slave_that_lost_its_power_fetches_again_what_it_had_not_flushed(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.send(40, 1_000)
    p.lab.run_for(ms=50)
    p.slave.power_off()
    p.slave.restart()
    p.lab.run_for(ms=7_000)
    assert _equal(p)


def test_a_slave_that_is_longer_than_its_master_keeps_what_it_has(pair: type[Pair]) -> None:
    """Nothing is cut off; when the master's log passes the slave's end, it goes on in the middle of a record."""
    p = pair().replicated()
    p.send(4, 500)
    p.lab.run_for(ms=200)
    p.send(5, 500)
    p.lab.run_for(ms=200)
    end = p.slave.store.max_phy_offset
    own = log_bytes(p.slave.store)
    p.master.crash()
    p.master.node.disk.rmtree("store")
    p.master.restart()
    p.lab.run_for(ms=7_000)
    p.master.create_topic("T", 1)
    p.lab.run_for(ms=40_000)
    assert {r.commit_log_offset for r in p.events("ReplicaHeartbeatSent")[-3:]} == {end}
    assert p.slave.store.max_phy_offset == end
    p.send(12, 900)
    p.lab.run_for(ms=500)
    assert p.slave.store.max_phy_offset == p.master.store.max_phy_offset
    assert log_bytes(p.slave.store)[:end] == own
    assert log_bytes(p.slave.store)[end:] == log_bytes(p.master.store)[end:]
    assert p.slave.store.dispatch_behind_bytes > 0, "what begins in the middle of a record can't be dispatched"
    p.slave.crash()
    p.slave.restart()
    p.lab.run_for(ms=7_000)
    assert p.slave.store.max_phy_offset == p.master.store.max_phy_offset


def test_frames_that_do_not_continue_the_log_break_the_connection(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.send(3)
    p.lab.run_for(ms=200)
    (connection,) = p.master.running().ha_service.connection_list
    connection.write_socket_service.next_transfer_from_where -= 1
    p.send()
    p.lab.run_for(ms=200)
    (gone,) = p.events("MasterDisconnected")
    assert gone.reason.startswith("the master sends from ")
    p.lab.run_for(ms=6_000)
    assert 5_000 <= p.at("MasterConnected")[-1] - gone.ts_us / 1_000 <= 5_010
    p.send(3)
    p.lab.run_for(ms=200)
    assert _equal(p)


def test_a_frozen_slave_is_closed_after_20_s_and_comes_back(pair: type[Pair]) -> None:
    p = pair().replicated()
    last = p.at("ReplicaAcked")[-1]
    p.slave.freeze()
    p.lab.run_for(ms=25_000)
    (closed,) = p.at("ReplicaDisconnected")
    assert 20_000 <= closed - last <= 20_010
    p.send(3)
    p.slave.thaw()
    p.lab.run_for(ms=6_000)
    assert _equal(p)


def test_a_slave_whose_master_is_silent_connects_again_at_once(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.master.freeze()
    p.lab.run_for(ms=21_000)
    (expired,) = p.events("MasterDisconnected")
    assert expired.reason == "nothing from the master for too long"
    p.master.thaw()
    p.lab.run_for(ms=6_000)
    p.send(3)
    p.lab.run_for(ms=200)
    assert _equal(p)


def test_a_master_that_was_frozen_for_long_sends_nothing_over_a_connection_that_has_ended() -> None:
    # It goes on with a look at its log that was due, before it hears that its slave has gone.
    plan = plan_from_text("at 75006ms: freeze broker-a for 113453ms")
    outcome = Trial("sync-replication", 511, plan=plan).outcome
    assert outcome.passed, outcome.breaches[0]


def test_a_full_disk_of_a_slave_breaks_the_connection_until_there_is_room(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.lab.act("fill_disk", node="slave-a", free_bytes=20_000)
    p.send(3, 20_000)
    p.lab.run_for(ms=1_000)
    assert p.slave.store.max_phy_offset < p.master.store.max_phy_offset
    assert p.events("MasterDisconnected")
    p.lab.act("fill_disk", node="slave-a", free_bytes=10_000_000)
    p.lab.run_for(ms=6_000)
    assert _equal(p)


def _pair_of_real_stores(lab: Lab, disks: tuple[MemoryDisk, MemoryDisk | None]) -> Any:
    """A slave of a master whose disks begin as those; without one the slave's is empty."""
    lab.name_server()
    master = lab.broker("broker-a", start=False, **SIZES)
    master.node.disk = disks[0]
    lab.start("broker-a")
    lab.run_for(ms=2_000)
    slave = lab.broker(slave_of="broker-a", start=False)
    if disks[1] is not None:
        slave.node.disk = disks[1]
    lab.start("slave-a")
    lab.run_for(ms=8_000)
    return slave


def test_a_late_slave_of_what_a_real_master_held_gets_what_the_real_slave_got(
    golden_disk: Callable[[str], MemoryDisk],
) -> None:
    disk = golden_disk("late-joiner-master")
    disk.open(f"store/commitlog/{2 * FILE_BYTES:020d}").write(169_642 - 2 * FILE_BYTES, bytes(3 * FILE_BYTES - 169_642))
    for number in (3, 4):
        disk.remove(f"store/commitlog/{number * FILE_BYTES:020d}")
    slave = _pair_of_real_stores(Lab(seed=3), (disk, None))
    real = members("store-late-joiner-slave")[f"store/commitlog/{2 * FILE_BYTES:020d}"]
    assert (slave.store.min_phy_offset, slave.store.max_phy_offset) == (2 * FILE_BYTES, 169_642)
    assert log_bytes(slave.store) == real[: 169_642 - 2 * FILE_BYTES]


@pytest.mark.parametrize("name", ["clean", "unclean"])
def test_a_real_pair_goes_on_here(golden_disk: Callable[[str], MemoryDisk], name: str) -> None:
    lab = Lab(seed=3)
    slave = _pair_of_real_stores(lab, (golden_disk(f"{name}-master"), golden_disk(f"{name}-slave")))
    assert log_bytes(slave.store) == log_bytes(lab.masters[0].store)
    (begun,) = lab.history.find("ReplicationBegun")
    assert begun.commit_log_offset > 0


def test_a_real_pair_that_has_diverged_goes_on_where_the_slave_ends(
    golden_disk: Callable[[str], MemoryDisk],
) -> None:
    """The slave's recovery keeps its own records in front of that place, and fetches what follows them anew."""
    lab = Lab(seed=3)
    slave = _pair_of_real_stores(lab, (golden_disk("diverged-master"), golden_disk("diverged-slave")))
    ours, masters = log_bytes(slave.store), log_bytes(lab.masters[0].store)
    (begun,) = lab.history.find("ReplicationBegun")
    at = begun.commit_log_offset
    assert len(ours) == len(masters)
    assert ours[at:] == masters[at:]
    assert ours[:at] != masters[:at]
    assert slave.store.dispatch_behind_bytes > 0


def test_a_broker_that_shuts_down_leaves_its_pair(pair: type[Pair]) -> None:
    p = pair().replicated()
    p.send(3)
    p.lab.run_for(ms=200)
    p.lab.run(p.slave.running().shutdown())
    p.lab.run_for(ms=10)
    assert p.master.running().ha_service.connection_list == []
    p.slave.restart()
    p.lab.run_for(ms=7_000)
    p.lab.run(p.master.running().shutdown())
    p.lab.run_for(ms=10)
    assert not p.slave.running().ha_service.ha_client.is_connected
    assert _equal(p)


def test_a_slave_of_another_cluster_finds_no_master(pair: type[Pair]) -> None:
    p = pair(slave={"broker_cluster_name": "Other"})
    p.lab.run_for(ms=40_000)
    assert not p.slave.running().ha_service.ha_client.is_connected
    assert p.events("MasterConnected") == p.events("MasterConnectFailed") == []


def test_a_slave_that_is_told_where_its_master_is_asks_no_name_server(pair: type[Pair]) -> None:
    p = pair(slave={"broker_cluster_name": "Other", "ha_master_address": "10.0.0.2:10912"})
    p.lab.run_for(ms=6_000)
    p.send(3)
    p.lab.run_for(ms=200)
    assert [r.remote for r in p.events("MasterConnected")] == ["10.0.0.2:10912"]
    assert _equal(p)


def test_a_world_without_slaves_makes_nothing_of_replication(pair: type[Pair]) -> None:
    p = pair()
    p.slave.crash()
    p.lab.run_for(ms=1_000)
    assert p.master.running().made_ha is None
    assert p.master.store.handle_ha is None


def test_what_is_under_way_between_a_master_and_its_slave_is_shown(pair: type[Pair]) -> None:
    p = pair().replicated()
    begin = p.master.store.max_phy_offset
    p.send(1, 500)
    p.lab.run_until_event("ReplicaDataSent")
    wire = p.lab.under_way()
    assert [frame.says for frame in wire.frames] == [f"log from {begin}"]
    labels = wire.frame(0)
    assert labels["physicOffset"].value == str(begin)
    assert labels["body"].length == p.master.store.max_phy_offset - begin
    p.lab.run_until_event("ReplicaDataAppended")
    wire = p.lab.under_way()
    assert wire.frames[0].says == f"slave has {p.slave.store.max_phy_offset}"
    assert wire.frame(0)["maxOffset"].length == 8
    p.lab.run_until_event("ReplicaHeartbeatSent")
    assert [frame.says for frame in p.lab.under_way().frames if frame.target == "slave-a"] == [
        f"heartbeat at {p.master.store.max_phy_offset}"
    ]


def test_a_slave_gives_its_log_to_a_slave_of_its_own(pair: type[Pair]) -> None:
    p = pair().replicated()
    second = p.lab.broker(slave_of="broker-a", ha_master_address=f"{p.slave.node.spec.ip}:10912")
    p.lab.run_for(ms=6_000)
    p.send(5, 1_000)
    p.lab.run_for(ms=300)
    assert log_bytes(second.store) == log_bytes(p.slave.store) == log_bytes(p.master.store)
