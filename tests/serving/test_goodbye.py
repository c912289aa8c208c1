"""The end of a serving: what was asked is answered, and who still asks is told to go elsewhere."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.lab import Lab
from mqlab.protocol.codes import V5_3_1, RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import SendMessageRequestHeader
from mqlab.protocol.v2.definition import Code
from mqlab.protocol.v2.protobuf import encode
from mqlab.remoting.frame_reader import FrameReader
from mqlab.scenarios import get
from mqlab.serving import Serving
from mqlab.serving.goodbye import Goodbye

from .conftest import TIMEOUT_S, Connects, Program
from .test_grpc import Client

SEND = SendMessageRequestHeader("P", "T", "TBW102", 4, 0, 0, 0, 0, "")


@contextmanager
def closing(serving: Serving) -> Iterator[None]:
    """The serving is being closed meanwhile."""
    ending = threading.Thread(target=serving.close)
    ending.start()
    try:
        yield
    finally:
        ending.join(TIMEOUT_S)
        assert serving.state == "closed"


def send(program: Program, version: int) -> int:
    """Send a message as a client of this version; the code of the answer."""
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, b"x")
    request.version = version
    opaque = program.write(request)
    answer = program.read()
    assert answer is not None
    assert answer.opaque == opaque
    return answer.code


def stored(lab: Lab, topic: str = "T") -> int:
    return len([r for r in lab.history.records() if r.kind == "MessageStored" and r.topic == topic])


def test_who_still_sends_is_told_to_go_away_and_nothing_of_it_is_stored(
    connect: Connects, serving: Serving, broker_address: str, lab: Lab
) -> None:
    new, old = connect(broker_address), connect(broker_address)
    assert (send(new, V5_3_1 + 1), send(old, V5_3_1)) == (ResponseCode.SUCCESS, ResponseCode.SUCCESS)
    sent = 2
    with closing(serving):
        while (code := send(new, V5_3_1 + 1)) == ResponseCode.SUCCESS:
            sent += 1
        assert code == ResponseCode.GO_AWAY
        assert send(old, V5_3_1) == ResponseCode.SUCCESS, "it does not know this code"
        assert send(new, V5_3_1 + 1) == ResponseCode.GO_AWAY
        while new.read() is not None:
            raise AssertionError("nobody has asked for more")
    assert stored(lab) == sent + 1


def test_what_was_asked_before_is_answered(connect: Connects, serving: Serving, broker_address: str, lab: Lab) -> None:
    program = connect(broker_address)
    assert program.send(b"first").code == ResponseCode.SUCCESS
    for _ in range(200):
        program.write(RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, b"x"))
    with closing(serving):
        codes = []
        while (answer := program.read()) is not None:
            codes.append(answer.code)
    assert len(codes) == 200
    assert set(codes) <= {ResponseCode.SUCCESS, ResponseCode.GO_AWAY}
    assert stored(lab) == 1 + codes.count(ResponseCode.SUCCESS)


def test_who_comes_at_the_last_moment_is_turned_away(
    connect: Connects, serving: Serving, broker_address: str
) -> None:
    programs = [connect(broker_address) for _ in range(30)]
    with closing(serving):
        assert [program.read() for program in programs] == [None] * 30


def frames(*commands: tuple[int, bytes]) -> list[bytes]:
    """Requests of these versions with these bodies."""
    made = []
    for opaque, (version, body) in enumerate(commands):
        command = RemotingCommand.request(RequestCode.SEND_MESSAGE, SEND, body)
        command.version, command.opaque = version, opaque
        made.append(command.encode())
    return made


@given(st.data())
def test_wherever_bytes_are_cut_what_has_begun_is_handed_on(data: st.DataObject) -> None:
    versions = st.sampled_from([V5_3_1, V5_3_1 + 1])
    commands = data.draw(st.lists(st.tuples(versions, st.binary(max_size=40)), min_size=1, max_size=5))
    written = frames(*commands)
    stream = b"".join(written)
    begun = data.draw(st.integers(0, len(written[0]) - 1))
    goodbye, for_world, for_client = Goodbye(stream[:begun]), stream[:begun], b""
    cuts = sorted(data.draw(st.lists(st.integers(begun, len(stream)), max_size=9)))
    for start, end in pairwise((begun, *cuts, len(stream))):
        world, client = goodbye.hear(stream[start:end])
        for_world, for_client = for_world + world, for_client + client
    handed_on = [(begun > 0 and i == 0) or version <= V5_3_1 for i, (version, _) in enumerate(commands)]
    assert for_world == b"".join(frame for frame, on in zip(written, handed_on, strict=True) if on)
    reader = FrameReader()
    reader.receive_data(for_client)
    refused = list(iter(reader.next_command, None))
    assert [each.opaque for each in refused] == [i for i, on in enumerate(handed_on) if not on]
    assert {each.code for each in refused} <= {ResponseCode.GO_AWAY}


# -- over gRPC ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxied() -> Lab:
    """A world with a proxy."""
    return get("served").build(7, parameters={"proxies": 1, "topics": "T"})


def test_a_call_over_grpc_is_answered_or_not_begun(proxied: Lab) -> None:
    serving = proxied.serve()
    client = Client(serving.endpoints)
    sent = 0
    with closing(serving):
        while True:
            try:
                answer = client.send(b"%d" % sent)
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017  # the loop ends by it
                break
            assert answer.status.code == Code.OK
            sent += 1
    client.channel.close()
    assert stored(proxied) == sent


DATA, HEADERS, GOAWAY = 0, 1, 7
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def test_http2_says_goaway_twice_before_the_standing_streams_end(proxied: Lab) -> None:
    """First for all streams to come, then with the last one that it has taken; only then the streams are ended."""
    serving = proxied.serve()
    host, _, port = serving.endpoints.rpartition(":")
    lines = {
        ":method": "POST", ":scheme": "http", ":path": "/apache.rocketmq.v2.MessagingService/Telemetry",
        ":authority": "x", "content-type": "application/grpc", "te": "trailers", "x-mq-client-id": "raw",
    }  # fmt: skip
    block = b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in lines.items()
    )
    said: list[tuple[int, int, bytes]] = []
    with socket.create_connection((host, int(port)), TIMEOUT_S) as connection:
        settings = encode(Client.settings())
        message = b"\0" + len(settings).to_bytes(4, "big") + settings
        connection.sendall(HTTP2 + frame(4, 0, 0) + frame(HEADERS, 4, 1, block) + frame(DATA, 0, 1, message))
        reader = connection.makefile("rb")
        closer: threading.Thread | None = None
        while len(head := reader.read(9)) == 9:
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            said.append((kind, int.from_bytes(head[5:9], "big"), reader.read(size)))
            if kind == 4 and not flags:
                connection.sendall(frame(4, 1, 0))
            if kind == 6 and not flags:
                connection.sendall(frame(6, 1, 0, said[-1][2]))
            if closer is None and kind == DATA:
                closer = threading.Thread(target=serving.close)
                closer.start()
    assert closer is not None
    closer.join(TIMEOUT_S)
    goodbyes = [(i, *struct.unpack(">II", each[2][:8])) for i, each in enumerate(said) if each[0] == GOAWAY]
    assert [(last, code) for _, last, code in goodbyes] == [(2**31 - 1, 0), (1, 0)]
    ended = max(i for i, each in enumerate(said) if each[:2] == (HEADERS, 1))
    assert ended > goodbyes[-1][0], "the trailers come last"
