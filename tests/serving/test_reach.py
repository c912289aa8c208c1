"""A world that reaches out: a slave in it copies from a master outside, here that of another served world."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.headers import GetRouteInfoRequestHeader
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from mqlab.serving import Serving
from mqlab.trace.events.ha import MasterConnectFailed, MasterDisconnected
from tests.serving.conftest import TIMEOUT_S, Connects, Program


def world_of_a_slave(master: str) -> Lab:
    """A slave whose master is at an address outside."""
    settings = f"brokerRole=SLAVE;brokerId=1;haMasterAddress={master}"
    return get("served").build(8, parameters={"settings": settings})


@pytest.fixture
def master(serving: Serving) -> str:
    """Where the served world's master gives its log away."""
    return serving.addresses["broker-a-ha"]


def until(serving: Serving, is_so: Callable[[], bool], asking: str = "broker-a") -> None:
    """Let a served world go on, by asking a process of it something, until it is so."""
    program = Program(serving.addresses[asking])
    began_s = time.monotonic()
    try:
        while time.monotonic() - began_s < TIMEOUT_S:
            program.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader("T"))
            with serving.lab.world.door:
                if is_so():
                    return
    finally:
        program.close()
    raise AssertionError("it never was so")


@contextmanager
def reaching(copy: Lab, *reach: str) -> Iterator[Serving]:
    """The slave's world, served, with a slave that starts now, and so connects now."""
    with copy.serve(reach=reach) as serving:
        copy.crash("broker-a")
        copy.restart("broker-a")
        yield serving


def log_of(lab: Lab) -> bytes:
    store = lab.brokers[0].store
    return store.commit_log.mapped_file_queue.read(0, store.max_phy_offset)


def test_a_slave_copies_a_log_from_outside_and_its_session_is_replayed(
    lab: Lab, broker_address: str, master: str, connect: Connects, tmp_path: Path
) -> None:
    program, copy = connect(broker_address), world_of_a_slave(master)

    def has_all() -> bool:
        with lab.world.door:
            return copy.brokers[0].store.max_phy_offset == lab.brokers[0].store.max_phy_offset

    for number in range(50):
        program.send(b"%d" % number)
    with reaching(copy, master) as copying:
        until(copying, has_all)
        for number in range(50):
            program.send(b"later %d" % number)
        until(copying, has_all)
        log = log_of(lab)
        lab.crash("broker-a")
        until(copying, lambda: copy.history.last(MasterDisconnected, reason="the master is gone") is not None)
        copying.report(tmp_path / "session.mqlab")
    assert log_of(copy) == log
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result
    assert log_of(result.lab) == log


def test_a_slave_that_dies_leaves_its_master_and_finds_it_again(lab: Lab, master: str) -> None:
    def slaves() -> int:
        with lab.world.door:
            made = lab.brokers[0].running().made_ha
            return 0 if made is None else len(made.connection_list)

    copy = world_of_a_slave(master)
    with reaching(copy, "127.0.0.1") as copying:
        until(copying, lambda: slaves() == 1)
        copy.crash("broker-a")
        until(copying, lambda: slaves() == 0, asking="namesrv-1")
        copy.restart("broker-a")
        until(copying, lambda: slaves() == 1)


def test_where_nobody_listens_the_connection_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    copy = world_of_a_slave(nobody)
    with reaching(copy, nobody) as copying:
        until(copying, lambda: copy.history.last(MasterConnectFailed, reason=f"nobody listens at {nobody}") is not None)


def test_what_may_not_be_reached_is_not_dialled(lab: Lab, master: str) -> None:
    copy = world_of_a_slave(master)
    port = int(master.rpartition(":")[2])
    with reaching(copy, f"127.0.0.1:{port - 1}") as copying:
        before = len(copy.history)
        copying.fast_forward("20s")
    failed = next(copy.history.find(MasterConnectFailed, start=before))
    assert failed.event == MasterConnectFailed(master, f"{master} did not answer within 5000 ms")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:abc", "127.0.0.1:99999", "a..b:80"])
def test_what_cannot_be_dialled_is_refused_at_once(address: str) -> None:
    copy = world_of_a_slave(address)
    with reaching(copy, "127.0.0.1", "a..b") as copying:
        until(copying, lambda: copy.history.last(MasterConnectFailed, remote=address) is not None)
        last = copy.history.last(MasterConnectFailed)
    assert last is not None
    assert last.event.reason in (f"nobody listens at {address}", f"{address} did not answer within 5000 ms")


@pytest.mark.parametrize("size", [-2_000_000_000, -12, -5, (4 << 20) + 1])
def test_a_master_that_sends_what_is_no_piece_of_a_log_is_left(size: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        master = f"127.0.0.1:{listening.getsockname()[1]}"
        copy = world_of_a_slave(master)
        with reaching(copy, master) as copying:
            peer, _ = listening.accept()
            peer.sendall(struct.pack(">qi", 0, size) + bytes(100))
            until(copying, lambda: copy.history.last(MasterDisconnected) is not None)
            peer.close()
    last = copy.history.last(MasterDisconnected)
    assert last is not None
    assert last.event.reason == "the master sends what is no piece of a log"


def test_the_next_serving_reaches_what_it_is_told(lab: Lab) -> None:
    for reach in (["127.0.0.1"], []):
        with lab.serve(reach=reach):
            assert lab.world.outside.reachable == set(reach)


@pytest.mark.parametrize("reach", ["127.0.0.1", [5], ["h:0"], ["h:99999"], ["10.0.0.2:80"]])
def test_what_cannot_be_reached_is_refused(lab: Lab, reach: Any) -> None:
    with pytest.raises(LearnerError):
        lab.serve(reach=reach)
    assert not lab.world.outside.served


@pytest.mark.parametrize("address", ["", ":80", "a:b", "a:1:2", "::1", "a b:80"])
def test_what_is_no_address_is_refused(lab: Lab, address: str) -> None:
    with pytest.raises(LearnerError, match="is no address"):
        lab.serve(reach=[address])
    assert not lab.world.outside.served
