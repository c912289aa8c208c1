"""TLS and plain bytes at the same port, and who begins with neither."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import psutil
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.v2 import definition as d
from mqlab.protocol.v2 import service as v2
from mqlab.protocol.v2.protobuf import Duration, encode
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from mqlab.serving import Serving, gate, line, rpc_edge
from tests.serving.conftest import Connects, Program, pull_header
from tests.serving.test_grpc import METADATA, PARAMETERS, Client

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""How a ClientHello of 512 bytes begins."""

PORTS = ("broker-a", "proxy-1")


def shakes_hands(program: Program, name: str = "", trusted: ssl.SSLContext | None = None) -> Program:
    """Speak TLS from now on; without a context everything is trusted."""
    context = trusted or trusts_everybody()
    program.socket = context.wrap_socket(program.socket, server_hostname=name or None)
    return program


def trusts_everybody() -> ssl.SSLContext:
    """What says nothing against any certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def agrees_on_http2() -> ssl.SSLContext:
    """The same, and in the handshake says that it speaks HTTP/2, without which grpcio ends the connection."""
    context = trusts_everybody()
    context.set_alpn_protocols(["h2"])
    return context


class SecureClient(Client):
    """A client of 5.x that verifies whom it speaks to."""

    def __init__(self, endpoints: str, authority: bytes, client_id: str = "client-1") -> None:
        super().__init__(endpoints, client_id)
        self.channel.close()
        self.channel = grpc.secure_channel(
            endpoints, grpc.ssl_channel_credentials(authority), [("grpc.use_local_subchannel_pool", 1)]
        )


class Pair:
    """A certificate in two files, and the authority that has signed it."""

    def __init__(self, where: Path) -> None:
        authority = trustme.CA()
        made = authority.issue_cert("localhost", "127.0.0.1")
        self.certificate, self.key = where / "server.pem", where / "server.key"
        made.private_key_pem.write_to_path(self.key)
        for pem in made.cert_chain_pems:
            pem.write_to_path(self.certificate, append=True)
        self.authority = authority.cert_pem.bytes()
        self.trusted = ssl.create_default_context(cadata=self.authority.decode())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def lab() -> Lab:
    return get("served").build(7, parameters=PARAMETERS)


@pytest.fixture
def certified(lab: Lab, pair: Pair) -> Iterator[Serving]:
    """Served with a certificate that can be verified."""
    with lab.serve(tls_certificate=pair.certificate, tls_key=str(pair.key)) as serving:
        yield serving


def test_one_port_takes_both_at_once(connect: Connects, serving: Serving) -> None:
    address = serving.addresses["broker-a"]
    plain, secure = connect(address), shakes_hands(connect(address))
    for number in range(4):
        assert [p.send(b"<%d>" % number, queue_id=0).code for p in (plain, secure)] == [0, 0]
    assert [plain.take(offset).code for offset in range(8)] == [0] * 8
    body = plain.pull(0).body or b""
    assert body.count(b"<3>") == 2
    assert body == secure.pull(0).body
    assert shakes_hands(connect(serving.name_server)).route("T") == connect(serving.name_server).route("T")


def test_a_large_message_goes_through_tls_both_ways(connect: Connects, broker_address: str) -> None:
    program = shakes_hands(connect(broker_address))
    body = b"0123456789abcdef" * 200_000
    assert program.send(body).code == 0
    assert body in (program.take(0).body or b"")


def test_a_certificate_that_is_given_can_be_verified(connect: Connects, certified: Serving, pair: Pair) -> None:
    program = shakes_hands(connect(certified.addresses["broker-a"]), "localhost", pair.trusted)
    assert program.send(b"verified").code == 0
    with pytest.raises(ssl.SSLCertVerificationError):
        shakes_hands(connect(certified.addresses["broker-a"]), "example.org", pair.trusted)


def test_calls_come_by_both_and_from_where_they_come(certified: Serving, pair: Pair, lab: Lab) -> None:
    clients = [Client(certified.endpoints, "plain"), SecureClient(certified.endpoints, pair.authority, "secure")]
    for client in clients:
        client.telemetry([client.settings()]).next()
        assert client.send(client.metadata[0][1].encode()).status.code == d.Code.OK
    assert sorted(message.body for message in clients[1].receive()) == [b"plain", b"secure"]
    ours = {
        f"127.0.0.1:{made.laddr.port}"
        for made in psutil.Process().net_connections()
        if made.raddr and made.raddr.port == certified.ports["proxy-1"]
    }
    came = {record.local for record in lab.history.records() if record.kind == "ConnectionOpened"}
    assert len(came & ours) == 2, (came, ours)
    for client in clients:
        client.channel.close()


def test_http2_is_agreed_on_in_the_handshake(serving: Serving) -> None:
    host, _, port = serving.endpoints.rpartition(":")
    with agrees_on_http2().wrap_socket(socket.create_connection((host, int(port)))) as secure:
        assert secure.selected_alpn_protocol() == "h2"


def test_a_session_over_tls_is_recorded_as_plain_bytes(connect: Connects, tmp_path: Path) -> None:
    lab = get("served").build(3)
    with lab.serve() as serving:
        program = shakes_hands(connect(serving.addresses["broker-a"]))
        for number in range(10):
            assert program.send(b"<%d>" % number).code == 0
    serving.report(tmp_path / "session.mqlab")
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result
    assert len([r for r in result.lab.history.records() if r.kind == "MessageStored" and r.topic == "T"]) == 10


@pytest.mark.parametrize("name", PORTS)
@pytest.mark.parametrize(
    "said", [HELLO, HELLO[:1], b"\x16" + b"rubbish" * 200, b"\x16" * 70_000, b"\x00" * 5_000, b"GET / HTTP/1.1\r\n\r\n"]
)
def test_who_cuts_a_handshake_or_speaks_rubbish_is_gone_and_costs_nobody_anything(
    connect: Connects, serving: Serving, name: str, said: bytes
) -> None:
    good, client = shakes_hands(connect(serving.addresses["broker-a"])), Client(serving.endpoints)
    assert (good.send(b"1").code, client.send(b"1").status.code) == (0, d.Code.OK)
    before = serving.connections
    for _ in range(5):
        bad = connect(serving.addresses[name])
        bad.socket.sendall(said)
        bad.socket.shutdown(socket.SHUT_WR)
        while bad.socket.recv(4_096):
            """What it is told at the end, an alert or a GOAWAY."""
    assert (good.send(b"2").code, client.send(b"2").status.code) == (0, d.Code.OK)
    assert until(lambda: serving.connections == before, good), serving.connections
    client.channel.close()


def until(happened: Callable[[], bool], program: Program) -> bool:
    """Let a program ask and ask until something has happened."""
    return any(happened() or program.pull(0).code < 0 for _ in range(5_000))


@pytest.mark.parametrize("name", PORTS)
def test_a_handshake_has_a_deadline(
    connect: Connects, lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (line, rpc_edge):
        monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.2)
    with lab.serve() as serving:
        good, slow = shakes_hands(connect(serving.addresses["broker-a"])), connect(serving.addresses[name])
        slow.socket.sendall(HELLO)
        assert slow.read() is None
        assert good.send(b"1").code == 0
        assert until(lambda: serving.connections == 1, good)


@pytest.mark.parametrize("name", PORTS)
def test_who_says_nothing_is_gone_after_the_idle_limit(
    connect: Connects, lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "IDLE_SECONDS", 0.2)
    with lab.serve() as serving:
        good = connect(serving.addresses["broker-a"])
        good.send(b"1")
        assert connect(serving.addresses[name]).read() is None
        assert good.send(b"2").code == 0


@pytest.mark.parametrize("secure", [False, True])
def test_who_makes_no_call_is_gone_after_the_idle_limit(
    connect: Connects, lab: Lab, secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_edge, "IDLE_CONNECTION_SECONDS", 0.2)
    with lab.serve() as serving:
        idle = connect(serving.endpoints)
        if secure:
            shakes_hands(idle, trusted=agrees_on_http2())
        idle.socket.sendall(PREFACE)
        told = b"".join(iter(lambda: idle.socket.recv(4_096), b""))
    assert frame_types(told)[-1] == GOAWAY


def frame_types(told: bytes) -> list[int]:
    """The types of HTTP/2 frames one after the other (RFC 9113, 4.1): each says its length in front."""
    types = []
    while told:
        types.append(told[3])
        told = told[9 + int.from_bytes(told[:3], "big") :]
    return types


def test_where_it_is_enforced_nobody_speaks_without(connect: Connects, lab: Lab, pair: Pair) -> None:
    with lab.serve(tls="enforcing", tls_certificate=pair.certificate, tls_key=pair.key) as serving:
        refused = connect(serving.addresses["broker-a"])
        refused.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)))
        assert refused.read() is None
        with pytest.raises(grpc.RpcError):
            Client(serving.endpoints).route()
        assert shakes_hands(connect(serving.addresses["broker-a"])).send(b"1").code == 0
        assert SecureClient(serving.endpoints, pair.authority).route().status.code == d.Code.OK


@pytest.mark.parametrize("name", PORTS)
def test_where_it_is_disabled_nobody_speaks_it(connect: Connects, lab: Lab, name: str) -> None:
    with lab.serve(tls="disabled") as serving:
        with pytest.raises(OSError, match=r"EOF|reset|Errno"):
            shakes_hands(connect(serving.addresses[name]))
        assert connect(serving.addresses["broker-a"]).send(b"1").code == 0
        assert Client(serving.endpoints).route().status.code == d.Code.OK


def test_what_is_half_configured_is_told(lab: Lab, pair: Pair, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(other)
    locked = tmp_path / "locked.key"
    key = load_pem_private_key(pair.key.read_bytes(), None)
    locked.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    for wrong, message in (
        ({"tls": "maybe"}, "no TLS mode 'maybe'"),
        ({"tls_certificate": pair.certificate}, "a certificate and no key"),
        ({"tls_key": pair.key}, "a key and no certificate"),
        ({"tls_certificate": pair.certificate, "tls_key": other}, "(?i)mismatch"),
        ({"tls_certificate": tmp_path / "none.pem", "tls_key": pair.key}, "No such file"),
        ({"tls_certificate": pair.key, "tls_key": pair.key}, "cannot use the certificate"),
        ({"tls_certificate": pair.certificate, "tls_key": locked}, "cannot use the certificate"),
    ):
        with pytest.raises(LearnerError, match=message):
            lab.serve(**wrong)  # type: ignore[arg-type]
    assert not lab.world.outside.served


def test_without_what_makes_certificates_it_is_said_once_and_plain_bytes_are_served(
    connect: Connects, lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(LearnerError, match=r"enforced.*trustme.*\n.*or give a certificate"):
        lab.serve(tls="enforcing")
    with lab.serve() as serving:
        for name in (*PORTS, *PORTS):
            with pytest.raises(OSError, match=r"EOF|reset|Errno"):
                shakes_hands(connect(serving.addresses[name]))
        assert connect(serving.addresses["broker-a"]).send(b"1").code == 0
        assert Client(serving.endpoints).route().status.code == d.Code.OK
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert "trustme" in said[0]
    assert "without TLS" in said[0]


@pytest.mark.parametrize("name", PORTS)
def test_connections_are_counted_from_the_first_moment(connect: Connects, lab: Lab, name: str) -> None:
    with lab.serve(most_connections=2) as serving:
        silent = [connect(serving.addresses[name]) for _ in range(2)]
        assert connect(serving.addresses[name]).read() is None
        assert (serving.connections, serving.turned_away) == (2, 1)
        silent[0].close()
        for _ in range(5_000):
            again = connect(serving.addresses["broker-a"])
            if again.ask_or_none() is not None:
                break
        else:
            raise AssertionError("the place is not free again")


def test_who_does_not_read_over_tls_is_cut_off_and_harms_nobody(connect: Connects, broker_address: str) -> None:
    good, lazy = connect(broker_address), shakes_hands(connect(broker_address))
    for _ in range(8):
        good.send(b"x" * 500_000)
    lazy.socket.sendall(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode() * 400)
    for _ in range(200):
        assert good.send(b"served meanwhile").code == 0
    taken = 0
    try:
        while lazy.read() is not None:
            taken += 1
    except ssl.SSLError:
        """Cut off without a goodbye."""
    assert taken < 400


GOAWAY = 7
"""The type of the HTTP/2 frame that ends a connection."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7F, 0xFF, 0xFF, 0xFF])
"""How HTTP/2 begins, with as much room for the answers of a stream as can be said (RFC 9113, sections 3.4 and 6.5)."""

ROOM = bytes([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7F, 0xFE, 0, 0])
"""The same for those of the whole connection (section 6.9)."""


def asks(stream: int, rpc: v2.Rpc, request: object) -> bytes:
    """A call as a client writes it that compresses no header."""
    headers = [(":method", "POST"), (":scheme", "http"), (":path", rpc.path), (":authority", "x")]
    headers += [("te", "trailers"), ("content-type", "application/grpc"), *METADATA]
    block = b"".join(b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in headers)
    said = encode(request)
    data = b"\0" + len(said).to_bytes(4, "big") + said
    return b"".join(
        len(part).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + part
        for kind, flags, part in ((1, 4, block), (0, 1, data))
    )


def test_who_does_not_take_the_answers_to_its_calls_is_not_carried_to_and_harms_nobody(
    connect: Connects, lab: Lab, serving: Serving
) -> None:
    good, client = connect(serving.addresses["broker-a"]), Client(serving.endpoints)
    lazy = connect(serving.endpoints)
    for _ in range(16):
        assert good.send(b"x" * 3_000_000).code == 0
    client.telemetry([client.settings()]).next()
    lazy.socket.sendall(PREFACE + ROOM)
    for number in range(16):
        queue = d.MessageQueue(d.Resource(name="T"), -1, broker=d.Broker("broker-a"))
        everything = d.FilterExpression(d.FilterType.TAG, "*")
        request = v2.ReceiveMessageRequest(
            d.Resource(name="lazy"), queue, everything, 1, Duration(30_000), long_polling_timeout=Duration(1_000)
        )
        lazy.socket.sendall(asks(2 * number + 1, v2.RECEIVE_MESSAGE, request))
    edge = lab.world.outside.output.__self__  # type: ignore[attr-defined]
    (relay,) = [a for a in edge._arrivals if a.remote.endswith(f":{lazy.socket.getsockname()[1]}")]
    for _ in range(2_000):
        assert client.route().status.code == d.Code.OK
        if not relay._grpcio.transport.is_reading():
            break
    assert not relay._grpcio.transport.is_reading()
    assert relay._client.transport.get_write_buffer_size() < 1_000_000
    client.channel.close()


def test_grpcios_own_port_takes_no_call_that_came_past_the_gate(lab: Lab, serving: Serving) -> None:
    client = Client(serving.endpoints)
    assert client.route().status.code == d.Code.OK
    known = set(serving.ports.values())
    listening = {c.laddr.port for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN}
    assert listening - known
    for port in listening - known:
        with pytest.raises(grpc.RpcError) as error:
            Client(f"127.0.0.1:{port}").route()
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    client.channel.close()


def test_the_end_waits_for_nobody_who_does_not_say_goodbye(connect: Connects, lab: Lab) -> None:
    with lab.serve() as serving:
        programs = [shakes_hands(connect(serving.addresses[name])) for name in PORTS]
        programs[0].send(b"1")
        programs += [connect(serving.addresses[name]) for name in PORTS]
        programs[-1].socket.sendall(HELLO)
    assert serving.state == "closed"
    assert serving.connections == 0
    for program in programs:
        program.socket.settimeout(20)
        assert program.read() is None
