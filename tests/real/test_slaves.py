"""A real slave copies from a master of a served world, and a slave of one from a real master: the same bytes, whoever
is killed meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator
from itertools import count
from pathlib import Path

import pytest

from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.topic_config import TopicConfigAndMappingSerializeWrapper
from mqlab.serving import Serving
from tests.real.rocketmq import RealBroker, RealRocketMQ
from tests.serving.conftest import Program

FILE_BYTES = 1 << 20
"""A commit log of several files."""


@pytest.fixture(params=["ASYNC_MASTER", "SYNC_MASTER"])
def lab(request: pytest.FixtureRequest) -> Lab:
    lab = Lab(7)
    lab.name_server()
    lab.broker(broker_role=request.param, in_sync_replicas=2, mapped_file_size_commit_log=FILE_BYTES)
    lab.create_topic("T", queues=4)
    return lab


@pytest.fixture
def serving(lab: Lab) -> Iterator[Serving]:
    with lab.serve() as serving:
        yield serving


def slave_of(serving: Serving, real: RealRocketMQ) -> RealBroker:
    return real.broker(
        "broker-a",
        brokerRole="SLAVE",
        brokerId=1,
        namesrvAddr=serving.name_server,
        mappedFileSizeCommitLog=FILE_BYTES,
    )


def files_of(broker: RealBroker) -> tuple[int, bytes]:
    """Where the log begins (a slave's at a file of the master's, the last one when the slave was new), and the log with
    the nothing that is behind it.
    """
    files = sorted((broker.directory / "store" / "commitlog").iterdir())
    return int(files[0].name), b"".join(file.read_bytes() for file in files)


def log_of(lab: Lab) -> bytes:
    read = lab.brokers[0].store.commit_log.mapped_file_queue.read
    log = b""
    while more := read(len(log), FILE_BYTES):
        log += more
    return log


class Load:
    """Sends until it is ended; `acknowledged` are the messages whose sender was told that all is well."""

    def __init__(self, address: str, name: str, enough: int) -> None:
        self.acknowledged: list[bytes] = []
        self.enough = threading.Event()
        self._program = Program(address)
        self._ended = False
        self._thread = threading.Thread(target=self._send, args=(name, enough))
        self._thread.start()

    def _send(self, name: str, enough: int) -> None:
        for number in count():
            body = f"<{name} {number}>".encode() * 50
            if self._program.send(body, queue_id=number % 4).code == ResponseCode.SUCCESS:
                self.acknowledged.append(body)
            if len(self.acknowledged) == enough:
                self.enough.set()
            if self._ended:
                return

    def end(self) -> list[bytes]:
        self._ended = True
        self._thread.join()
        self._program.close()
        return self.acknowledged


def topics_of(slave: RealBroker) -> Container[str]:
    """The topics that it knows; after a minute those of its master, which it asks for at the port for VIPs."""
    program = Program(slave.address)
    answer = program.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    program.close()
    return TopicConfigAndMappingSerializeWrapper.decode(answer.body or b"").topic_config_table


def becomes(serving: Serving, is_so: Callable[[], bool], within_s: float = 60) -> bool:
    """Is it so, or does it become so? The world is asked for some time."""
    program = Program(serving.addresses["broker-a"])
    began_s = time.monotonic()
    try:
        while time.monotonic() - began_s < within_s:
            program.heartbeat("waits", "C")
            with serving.lab.world.door:
                if is_so():
                    return True
    finally:
        program.close()
    return False


def has_all(lab: Lab, serving: Serving) -> bool:
    """Has the slave acknowledged the whole log?"""

    def is_so() -> bool:
        made = lab.brokers[0].running().made_ha
        return made is not None and any(c.slave_ack_offset == made.max_phy_offset for c in made.connection_list)

    return becomes(serving, is_so)


def test_a_real_slave_has_the_masters_bytes_whoever_is_killed(lab: Lab, serving: Serving, tmp_path: Path) -> None:
    is_sync = lab.brokers[0].settings["broker_role"] == "SYNC_MASTER"
    with RealRocketMQ(tmp_path) as real:
        for life in range(3):
            slave = slave_of(serving, real)
            load = Load(serving.addresses["broker-a"], f"life {life}", 1_000)
            assert load.enough.wait(120)
            slave.kill()
            acknowledged = load.end()
            if is_sync:
                _, copied = files_of(slave)
                assert [body for body in acknowledged if body not in copied] == []
        slave = slave_of(serving, real)
        assert has_all(lab, serving)
        lab.crash("broker-a")
        lab.restart("broker-a")
        load = Load(serving.addresses["broker-a"], "after the crash", 1_000)
        assert load.enough.wait(120)
        load.end()
        assert has_all(lab, serving)
        assert becomes(serving, lambda: "T" in topics_of(slave), 90)
        slave.stop()
    whole = log_of(lab)
    began, copied = files_of(slave)
    assert len(whole) - began > FILE_BYTES
    assert copied[: len(whole) - began] == whole[began:]


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
def test_a_slave_here_has_a_real_masters_bytes_whoever_is_killed(role: str, tmp_path: Path) -> None:
    copy = Lab(7)
    copy.name_server()
    copy.broker(broker_role="SLAVE", broker_id=1, mapped_file_size_commit_log=FILE_BYTES)
    with copy.serve(reach=["127.0.0.1"]) as copying, RealRocketMQ(tmp_path) as real:

        def master(port: int = 0) -> RealBroker:
            return real.broker(
                "broker-a",
                port=port,
                brokerRole=role,
                inSyncReplicas=2,
                namesrvAddr=copying.name_server,
                mappedFileSizeCommitLog=FILE_BYTES,
            )

        def has_slave() -> bool:
            return any(end.life.node_name == "broker-a" and n < 0 for n, end in copy.world.outside.ends.items())

        running = master()
        for life in range(3):
            assert becomes(copying, has_slave)
            load = Load(running.address, f"life {life}", 1_000)
            assert load.enough.wait(120)
            copy.crash("broker-a")
            acknowledged = load.end()
            copy.restart("broker-a")
            assert becomes(copying, lambda: copy.brokers[0].controller is not None)
            if role == "SYNC_MASTER":
                copied = log_of(copy)
                assert [body for body in acknowledged if body not in copied] == []
            running.kill()
            running = master(running.port)
        load = Load(running.address, "the last", 1_000)
        assert load.enough.wait(120)
        load.end()
        assert becomes(copying, lambda: len(files_of(running)[1].rstrip(b"\0")) <= copy.brokers[0].store.max_phy_offset)
        copied = log_of(copy)
        assert len(copied) > FILE_BYTES
        assert files_of(running)[1][: len(copied)] == copied
        assert not files_of(running)[1][len(copied) :].strip(b"\0")
