"""What a producer gets from a SYNC_MASTER whose slave lives, hangs, dies and comes back, as recorded of a real pair."""

from __future__ import annotations

from functools import cache
from typing import Any

from mqlab import Message
from mqlab.client import SendStatus
from mqlab.errors import RemotingException
from mqlab.protocol import RequestCode
from mqlab.protocol.bodies import HARuntimeInfo
from tests.broker.ha.conftest import Pair, timeline
from tests.worlds import started_producer

SETTINGS = {
    "inSyncReplicas=1 set at run time": {"in_sync_replicas": 1},
    "inSyncReplicas=2, allAckInSyncStateSet=true, minInSyncReplicas=2 (no controller, no acting master)": {
        "in_sync_replicas": 2
    },
    "slaveTimeout=500": {"slave_timeout": 500},
    "slave starts again, a send every 300 ms": {"slave_timeout": 3_000},
    "== inSyncReplicas=3 with one slave": {"in_sync_replicas": 3},
}
"""What the steps of the recording set at run time."""

CONNECTED_AGAIN_MS = 88_880
"""When the real slave, whose JVM took its time, had connected again; ours does so 5 s after its start."""


@cache
def _played() -> list[tuple[dict[str, Any], str, float]]:
    """Each recorded send, what came of the same one here, and how long it took in ms."""
    p = Pair(broker_role="SYNC_MASTER", in_sync_replicas=2).replicated()
    producers = {"p1": p.producer, "p2": started_producer(p.lab, "PG2", node="P2")}
    p.send(3)
    start_us = p.lab.world.now_us
    results: list[tuple[dict[str, Any], str, float]] = []

    async def one(noted: dict[str, Any]) -> None:
        producer, begin_us = producers[noted["producer"]], p.lab.world.now_us
        if "batch" in noted:
            message: Any = [Message("T", b"x" * 20) for _ in range(noted["batch"])]
        else:
            message = Message("T", b"x" * 100)
            message.wait_store_msg_ok = noted.get("waitStoreMsgOK", True)
        try:
            said = (await producer.send(message)).send_status.value
        except RemotingException as error:
            said = str(error)
        results.append((noted, said, (p.lab.world.now_us - begin_us) / 1_000))

    def at(ms: float) -> None:
        p.lab.world.run_to(max(p.lab.world.now_us, start_us + round(ms * 1_000)))

    signals = {"SIGSTOP": p.slave.freeze, "SIGCONT": p.slave.thaw, "SIGKILL": p.slave.crash}
    for noted in timeline("sync-master-sends")["steps"]:
        if noted["ms"] > 92_400:
            break
        if noted["ms"] > CONNECTED_AGAIN_MS - 5_030 and not p.slave.is_up() and p.slave.state == "down":
            at(CONNECTED_AGAIN_MS - 5_030)
            p.slave.restart()
        at(noted["ms"])
        if noted["event"] == "signal":
            signals[noted["signal"]]()
        elif noted["event"] == "step":
            for name, value in SETTINGS.get(noted["step"], {}).items():
                setattr(p.master.running().message_store_config, name, value)
        elif noted["event"] == "send" and "producer" in noted:
            node = producers[noted["producer"]].node
            node.spawn(one(noted), f"send at {noted['ms']}")
    p.lab.run_for(ms=12_000)
    return sorted(results, key=lambda result: result[0]["ms"])


def test_every_send_ends_as_that_to_the_real_master() -> None:
    played = _played()
    assert len(played) == 55
    wrong = [
        (noted["ms"], said)
        for noted, said, _ in played
        if not said.startswith(noted.get("sendStatus") or noted["error"])
    ]
    assert wrong == []


def test_a_producer_waits_as_long_as_that_of_the_real_master() -> None:
    """A real machine adds up to 60 ms; where a slave comes back, when exactly is its own doing."""
    for noted, _, took_ms in _played():
        assert -350 <= noted["tookMs"] - took_ms <= 60, (noted["ms"], noted["tookMs"], took_ms)
    timeouts = [took for noted, said, took in _played() if said == "FLUSH_SLAVE_TIMEOUT" and noted["tookMs"] > 600]
    assert all(3_000 <= took <= 3_002 for took in timeouts)


def test_with_one_replica_a_synchronous_master_waits_for_nobody(pair: type[Pair]) -> None:
    p = pair(broker_role="SYNC_MASTER").replicated()
    p.slave.crash()
    (result,) = p.send()
    assert result.send_status is SendStatus.SEND_OK
    assert p.events("ReplicaPutWaiting") == []


def test_without_any_slave_the_time_passes_all_the_same(pair: type[Pair]) -> None:
    p = pair(broker_role="SYNC_MASTER", in_sync_replicas=2)
    p.slave.crash()
    (result,) = p.send()
    assert result.send_status is SendStatus.FLUSH_SLAVE_TIMEOUT
    (waited,) = p.events("ReplicaPutAnswered")
    assert (waited.status, waited.waited_ms) == ("FLUSH_SLAVE_TIMEOUT", 3_000)


def test_two_slaves_make_three_copies(pair: type[Pair]) -> None:
    p = pair(broker_role="SYNC_MASTER", in_sync_replicas=3)
    second = p.lab.broker(slave_of="broker-a")
    p.lab.run_for(ms=7_000)
    assert p.send()[0].send_status is SendStatus.SEND_OK
    assert second.running().broker_config.broker_id == 2
    assert p.slave.store.max_phy_offset == second.store.max_phy_offset == p.master.store.max_phy_offset
    second.freeze()
    assert p.send()[0].send_status is SendStatus.FLUSH_SLAVE_TIMEOUT


def test_with_a_synchronous_flush_the_copy_counts_more(pair: type[Pair]) -> None:
    p = pair(broker_role="SYNC_MASTER", in_sync_replicas=2, flush_disk_type="SYNC_FLUSH").replicated()
    assert p.send()[0].send_status is SendStatus.SEND_OK
    p.slave.freeze()
    assert p.send()[0].send_status is SendStatus.FLUSH_SLAVE_TIMEOUT


def test_who_asks_how_replication_is_doing_is_answered_as_by_the_real_master(pair: type[Pair]) -> None:
    real = [step["body"] for step in timeline("sync-master-sends")["steps"] if step.get("code") == 907]
    p = pair(broker_role="SYNC_MASTER", in_sync_replicas=2).replicated()
    p.send(3)
    p.slave.freeze()
    p.send(2)
    asker, master = p.asker(), f"{p.master.node.spec.ip}:10911"
    end = p.master.store.max_phy_offset
    answer = asker.call(RequestCode.GET_BROKER_HA_STATUS, to=master).body
    info = HARuntimeInfo.decode(answer)
    (slave,) = info.ha_connection_info
    assert (slave.diff, slave.transfer_from_where, slave.in_sync) == (end - slave.slave_ack_offset, end, True)
    assert info.master_commit_log_max_offset == end
    assert [HARuntimeInfo.decode(body.encode()).encode().decode() for body in real] == real
    said = HARuntimeInfo.decode(real[1].encode())
    said.master_commit_log_max_offset = end
    said.ha_connection_info = [slave]
    assert said.encode() == answer
    p.slave.thaw()
    p.lab.run_for(ms=10)
    client = HARuntimeInfo.decode(asker.call(RequestCode.GET_BROKER_HA_STATUS).body)
    assert not client.master
    assert client.ha_client_runtime_info.master_addr == f"{p.master.node.spec.ip}:10912"
    assert client.ha_client_runtime_info.max_offset == end
    assert 0 < client.ha_client_runtime_info.last_read_timestamp <= p.slave.node.now_ms()


def test_a_master_that_never_had_a_slave_says_so(pair: type[Pair]) -> None:
    p = pair()
    p.slave.crash()
    answer = p.asker().call(RequestCode.GET_BROKER_HA_STATUS, to=f"{p.master.node.spec.ip}:10911").body
    assert HARuntimeInfo.decode(answer) == HARuntimeInfo(master=True)
