"""Programs at both sides of a socket: a remoting client, which waits for its answers, and `mqlab serve`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import (
    GetConsumerListByGroupRequestHeader,
    GetRouteInfoRequestHeader,
    PullMessageRequestHeader,
    SendMessageRequestHeader,
)
from mqlab.protocol.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.remoting.frame_reader import FrameReader
from mqlab.serving import Serving

ANY_PORT = ("--port", "0")

TIMEOUT_S = 20
"""No answer takes so long on a machine that works."""


class Program:
    """One connection, as a client program has it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._reader = FrameReader()
        self._opaque = count(1)

    def write(self, command: RemotingCommand) -> int:
        """Send a request and do not wait; its opaque."""
        command.opaque = next(self._opaque)
        self.socket.sendall(command.encode())
        return command.opaque

    def read(self) -> RemotingCommand | None:
        """The next command that comes; None at the end of the connection."""
        while True:
            command = self._reader.next_command()
            if command is not None:
                return command
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._reader.receive_data(data)

    def ask(self, code: int, header: Any = None, body: bytes | None = None) -> RemotingCommand:
        """Send a request and wait for its answer."""
        opaque = self.write(RemotingCommand.request(code, header, body))
        while True:
            answer = self.read()
            assert answer is not None, "the connection ended before the answer"
            if answer.opaque == opaque and answer.is_response:
                return answer

    def ask_or_none(self) -> RemotingCommand | None:
        """Ask for anything; None where the connection ends instead."""
        try:
            self.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)))
        except (BrokenPipeError, ConnectionResetError):
            return None
        return self.read()

    def send(self, body: bytes, *, queue_id: int = 0, properties: str = "") -> RemotingCommand:
        header = SendMessageRequestHeader("P", "T", "TBW102", 4, queue_id, 0, 0, 0, properties)
        return self.ask(RequestCode.SEND_MESSAGE, header, body)

    def pull(self, offset: int, *, queue_id: int = 0, most: int = 32) -> RemotingCommand:
        return self.ask(RequestCode.PULL_MESSAGE, pull_header(offset, queue_id=queue_id, most=most))

    def take(self, offset: int) -> RemotingCommand:
        """Pull as a consumer does: the broker keeps the request until the message has an entry in its queue."""
        flag = PullSysFlag.build(commit_offset=False, suspend=True, subscription=True)
        header = pull_header(offset)._replace(sys_flag=flag, suspend_timeout_millis=TIMEOUT_S * 1_000)
        return self.ask(RequestCode.PULL_MESSAGE, header)

    def heartbeat(self, client_id: str, group: str) -> RemotingCommand:
        consumer = ConsumerData(
            group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            [SubscriptionData("T", "*")],
        )
        return self.ask(RequestCode.HEART_BEAT, body=HeartbeatData(client_id, consumer_data_set=[consumer]).encode())

    def members(self, group: str) -> bytes | None:
        header = GetConsumerListByGroupRequestHeader(group)
        return self.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header).body

    def route(self, topic: str) -> bytes:
        answer = self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        assert answer.code == 0, answer
        return answer.body or b""

    def close(self) -> None:
        self.socket.close()


def pull_header(offset: int, *, queue_id: int = 0, most: int = 32) -> PullMessageRequestHeader:
    """What a plain pull asks for: no commit, no wait, all tags."""
    return PullMessageRequestHeader("C", "T", queue_id, offset, most, 4, 0, 0, "*", 0)


Connects = Callable[[str], Program]


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """What a shell starts in the background ignores a Ctrl-C, and so do the programs that it starts: not here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def connect() -> Iterator[Connects]:
    """Makes programs, and closes them in the end."""
    made: list[Program] = []

    def make(address: str) -> Program:
        made.append(Program(address))
        return made[-1]

    yield make
    for program in made:
        program.close()


@pytest.fixture
def lab() -> Lab:
    """A name server and a broker."""
    lab = Lab(7)
    lab.name_server()
    lab.broker()
    lab.create_topic("T", queues=2)
    return lab


@pytest.fixture
def serving(lab: Lab) -> Iterator[Serving]:
    with lab.serve() as serving:
        yield serving


@pytest.fixture
def broker_address(serving: Serving) -> str:
    return f"127.0.0.1:{serving.ports['broker-a']}"


class Server:
    """A process of `mqlab serve`, and what it said."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mqlab", "serve", *ANY_PORT, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(how)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    made: list[Server] = []
    yield made
    for server in made:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


def start(servers: list[Server], *arguments: str) -> Server:
    servers.append(Server(*arguments))
    return servers[-1]
