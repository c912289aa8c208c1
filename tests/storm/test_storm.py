"""`mqlab serve` under what no network of friends brings, in quantities (`make storm-test`); figures are printed."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from signal import SIGKILL

import grpc
import psutil
import pytest

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.record import scan_records
from mqlab.protocol.v2.definition import Code
from tests.serving.conftest import Connects, Program, Server, pull_header, start
from tests.serving.rubbish import BROKER_CODES, NAME_SERVER_CODES, PER_CONNECTION, Rubbish, say, throw
from tests.serving.test_grpc import Client

MOST_GROWTH_MB = 128
"""What a process may grow by while rubbish comes: 16 MiB wait at its edge at most, and some of it is stored."""


def memory_mb(server: Server) -> float:
    return psutil.Process(server.process.pid).memory_info().rss / (1 << 20)


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def test_a_million_bad_frames(servers: list[Server], connect: Connects) -> None:
    server = start(servers)
    broker, name_server = server.told["processes"]["broker-a"], server.told["name_server"]
    good, before_mb = connect(broker), memory_mb(server)
    to_broker, to_name_server = Rubbish(1, BROKER_CODES), Rubbish(2, NAME_SERVER_CODES)
    frames = 0
    while frames < 1_000_000:
        for address, rubbish in ((broker, to_broker), (name_server, to_name_server)):
            throw(address, rubbish, 25)
            frames += 25 * (PER_CONNECTION + 1)
        assert good.heartbeat("good", "C").code == 0
    grown_mb = memory_mb(server) - before_mb
    print(f"\n{frames:,} frames, {grown_mb:.0f} MB more than the {before_mb:.0f} MB before")
    assert grown_mb < MOST_GROWTH_MB
    assert server.end() == 0


def test_a_hundred_thousand_bad_calls(servers: list[Server]) -> None:
    server = start(servers, "--topic", "T")
    endpoints = server.told["endpoints"]
    good, before_mb = Client(endpoints, "good"), memory_mb(server)
    good.telemetry([good.settings()]).next()
    rubbish = Rubbish(3, BROKER_CODES).calls()
    for _ in range(500):
        with grpc.insecure_channel(endpoints) as channel:
            said = list(islice(rubbish, 200))
            calls = [say(channel, *each) for each in said]
            assert good.send(b"1").status.code == Code.OK
            for (rpc, _, _), call in zip(said, calls, strict=True):
                if rpc.server_streams:
                    call.cancel()
                else:
                    call.code()
    good.channel.close()
    grown_mb = memory_mb(server) - before_mb
    print(f"\n100,000 calls, {grown_mb:.0f} MB more than the {before_mb:.0f} MB before")
    assert grown_mb < MOST_GROWTH_MB
    assert server.end() == 0


def test_a_thousand_that_say_nothing_and_a_hundred_that_are_slow(servers: list[Server], connect: Connects) -> None:
    server = start(servers)
    broker = server.told["processes"]["broker-a"]
    good, before_mb = connect(broker), memory_mb(server)
    frame = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode()
    with ExitStack() as all_of_them:
        silent = [all_of_them.enter_context(connected(broker)) for _ in range(1_000)]
        slow = [all_of_them.enter_context(connected(broker)) for _ in range(100)]
        for at in range(len(frame)):
            for each in slow:
                each.sendall(frame[at : at + 1])
            assert good.send(b"served meanwhile").code == 0
        for each in slow:
            assert each.recv(1 << 16)
        grown_mb = memory_mb(server) - before_mb
        print(f"\n1,100 connections, {grown_mb:.0f} MB more than the {before_mb:.0f} MB before")
        # After two minutes in which nothing came RocketMQ closes a connection, and so do we.
        for each in silent:
            each.settimeout(180)
            assert each.recv(1) == b""
    assert grown_mb < MOST_GROWTH_MB


def test_half_open_connections_are_forgotten(servers: list[Server], connect: Connects) -> None:
    server = start(servers, "--most-connections", "100")
    broker = server.told["processes"]["broker-a"]
    frame = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode()
    for _ in range(1_000):
        with connected(broker) as half:
            half.sendall(frame[:20])
            half.shutdown(socket.SHUT_WR)
            assert half.recv(1) == b"", "who has nothing more to say is not answered"
    assert connect(broker).send(b"1").code == 0


class Load:
    """Some programs that send as fast as they are answered, until the broker is gone."""

    def __init__(self, broker: str, life: int, enough: int) -> None:
        self.acknowledged: list[bytes] = []
        self.enough = threading.Event()
        self._enough, self._life = enough, life
        self._programs = [Program(broker) for _ in range(8)]
        self._threads = [threading.Thread(target=self._send, args=(n,)) for n in range(8)]
        for thread in self._threads:
            thread.start()

    def _send(self, sender: int) -> None:
        number = 0
        try:
            while True:
                body = b"%d:%d:%d" % (self._life, sender, number)
                assert self._programs[sender].send(body, queue_id=sender % 4).code == 0
                self.acknowledged.append(body)
                number += 1
                if len(self.acknowledged) >= self._enough:
                    self.enough.set()
        except (OSError, AssertionError):
            self.enough.set()

    def end(self) -> list[bytes]:
        """Wait until all have seen the end; what they were told is stored."""
        for thread in self._threads:
            thread.join()
        for program in self._programs:
            program.close()
        return self.acknowledged


def all_stored(program: Program) -> list[bytes]:
    found: list[bytes] = []
    for queue_id in range(4):
        offset = 0
        while body := program.pull(offset, queue_id=queue_id).body:
            messages = list(scan_records(body))
            found += [message.body or b"" for message in messages]
            offset = messages[-1].queue_offset + 1
    return found


def test_twenty_kills_under_load_lose_nothing_that_was_acknowledged(
    servers: list[Server], connect: Connects, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    acknowledged: list[bytes] = []
    for life in range(21):
        server = start(servers, "--store", str(tmp_path), "--sync-flush")
        broker = server.told["processes"]["broker-a"]
        if life:
            found = all_stored(connect(broker))
            assert len(found) == len(set(found)), "a message is there twice"
            assert set(acknowledged) <= set(found)
        load = Load(broker, life, 100 + 37 * life)
        assert load.enough.wait(60)
        server.end(SIGKILL)
        acknowledged += load.end()
    assert "Traceback" not in capfd.readouterr().err
    with capfd.disabled():
        print(f"\n20 kills, {len(acknowledged):,} messages acknowledged, all found")
