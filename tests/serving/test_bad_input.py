"""Rubbish over real sockets: whoever sends it is told, or loses the connection, and nobody else notices anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from random import Random

import grpc
import pytest

from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.v2 import service as v2
from mqlab.protocol.v2.definition import Code
from mqlab.serving import Serving
from tests.serving.conftest import Connects
from tests.serving.rubbish import BROKER_CODES, NAME_SERVER_CODES, Rubbish, say, throw
from tests.serving.test_grpc import Client


@pytest.fixture
def lab() -> Lab:
    """A name server, a broker and a proxy."""
    lab = Lab(7)
    lab.name_server()
    lab.broker()
    lab.proxy()
    lab.create_topic("T", queues=2)
    return lab


@pytest.fixture
def client(serving: Serving) -> Iterator[Client]:
    """A client of 5.x that means what it says."""
    client = Client(serving.endpoints, "good")
    client.telemetry([client.settings()]).next()
    yield client
    client.channel.close()


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 20)


def test_requests_that_mean_nothing_harm_nobody(connect: Connects, serving: Serving, broker_address: str) -> None:
    good = connect(broker_address)
    for address, codes in ((broker_address, BROKER_CODES), (serving.name_server, NAME_SERVER_CODES)):
        assert throw(address, Rubbish(7, codes), 10) > 100_000
        assert good.heartbeat("good", "C").code == 0
        assert connect(serving.name_server).ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0
    assert serving.state == "serving"


def test_calls_that_mean_nothing_harm_nobody(client: Client, serving: Serving) -> None:
    ends: set[grpc.StatusCode] = set()
    rubbish = Rubbish(7, BROKER_CODES).calls()
    with grpc.insecure_channel(serving.endpoints) as channel:
        for _ in range(10):
            said = list(islice(rubbish, 40))
            calls = [say(channel, *each) for each in said]
            assert client.send(b"1").status.code == Code.OK
            assert client.heartbeat().status.code == Code.OK
            for (rpc, _, _), call in zip(said, calls, strict=True):
                if rpc.server_streams:
                    call.cancel()
                else:
                    ends.add(call.code())
    assert grpc.StatusCode.UNKNOWN in ends
    assert grpc.StatusCode.UNAVAILABLE not in ends, "a call was cut off, since another one was bad"
    assert serving.state == "serving"


def test_a_call_whose_message_cannot_be_read_ends_alone(client: Client) -> None:
    waits = client.telemetry([client.settings()])
    waits.next()
    with pytest.raises(grpc.RpcError) as caught:
        say(client.channel, v2.SEND_MESSAGE, dict(client.metadata), b"\x0a\xff").result()
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert caught.value.details() == "", "as the real proxy"
    assert client.send(b"1").status.code == Code.OK
    assert waits.is_active()


def test_what_is_no_http2_ends_its_connection_and_no_other(client: Client, serving: Serving) -> None:
    random = Random(7)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for start in (b"", b"GET / HTTP/1.1\r\n\r\n", preface, preface + b"\0\0\0\4\0\0\0\0\0"):
        for _ in range(5):
            with connected(serving.endpoints) as bad:
                bad.sendall(start + random.randbytes(5_000))
                bad.shutdown(socket.SHUT_WR)
                try:
                    while bad.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    continue
        assert client.send(b"1").status.code == Code.OK


def test_who_says_nothing_is_in_nobodys_way(
    connect: Connects, client: Client, serving: Serving, broker_address: str
) -> None:
    with ExitStack() as silent:
        for address in (broker_address, serving.name_server, serving.endpoints):
            for _ in range(150):
                silent.enter_context(connected(address))
        good = connect(broker_address)
        for number in range(50):
            assert good.send(b"%d" % number).code == 0
            assert client.send(b"%d" % number).status.code == Code.OK
        assert serving.connections >= 300
