"""Clients of 5.x from outside: calls over gRPC's own HTTP/2, to a proxy of a served world."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import grpc
import pytest

from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.protocol.v2 import definition as d
from mqlab.protocol.v2 import service as v2
from mqlab.protocol.v2.protobuf import Duration, decode, encode
from mqlab.replay import read_report, replay
from mqlab.scenarios import get
from mqlab.serving import Serving, edge
from mqlab.trace.record import KIND
from tests.serving.conftest import Connects

PARAMETERS = {"proxies": 1, "topics": "T"}
METADATA = (("x-mq-client-id", "client-1"), ("x-mq-language", "PYTHON"), ("x-mq-client-version", "5.0.0"))
GROUP = d.Resource(name="G")


class Client:
    """A channel to a proxy, and the calls of a 5.x client as it writes them."""

    def __init__(self, endpoints: str, client_id: str = "client-1") -> None:
        self.endpoints = endpoints
        self.channel = grpc.insecure_channel(endpoints, options=[("grpc.use_local_subchannel_pool", 1)])
        self.metadata = (("x-mq-client-id", client_id), *METADATA[1:])

    def call(self, rpc: v2.Rpc, request: Any, timeout: float = 20) -> Any:
        """A call with one answer, or a list of answers."""
        kind = "unary_stream" if rpc.server_streams else "unary_unary"
        made = getattr(self.channel, kind)(
            rpc.path, request_serializer=encode, response_deserializer=lambda data: decode(rpc.response, data)
        )
        answer = made(request, timeout=timeout, metadata=self.metadata)
        return list(answer) if rpc.server_streams else answer

    def endpoints_said(self) -> d.Endpoints:
        host, _, port = self.endpoints.rpartition(":")
        return d.Endpoints(d.AddressScheme.IPV4, (d.Address(host, int(port)),))

    def route(self) -> v2.QueryRouteResponse:
        request = v2.QueryRouteRequest(d.Resource(name="T"), self.endpoints_said())
        answer: v2.QueryRouteResponse = self.call(v2.QUERY_ROUTE, request)
        return answer

    def send(self, body: bytes) -> v2.SendMessageResponse:
        system = d.SystemProperties(message_id=f"id-{body.decode()}", message_type=d.MessageType.NORMAL)
        message = d.Message(d.Resource(name="T"), system_properties=system, body=body)
        answer: v2.SendMessageResponse = self.call(v2.SEND_MESSAGE, v2.SendMessageRequest((message,)))
        return answer

    def receive(self, *, wait_s: int = 1, timeout: float = 20) -> list[d.Message]:
        request = v2.ReceiveMessageRequest(
            GROUP,
            d.MessageQueue(d.Resource(name="T"), -1, broker=d.Broker("broker-a")),
            d.FilterExpression(d.FilterType.TAG, "*"),
            8,
            Duration(30_000),
            long_polling_timeout=Duration(wait_s * 1_000),
        )
        answers = self.call(v2.RECEIVE_MESSAGE, request, timeout)
        return [answer.message for answer in answers if answer.message is not None]

    def acknowledge(self, message: d.Message) -> v2.AckMessageResponse:
        system = message.system_properties
        entry = v2.AckMessageEntry(system.message_id, system.receipt_handle or "")
        answer: v2.AckMessageResponse = self.call(
            v2.ACK_MESSAGE, v2.AckMessageRequest(GROUP, d.Resource(name="T"), (entry,))
        )
        return answer

    def heartbeat(self) -> v2.HeartbeatResponse:
        answer: v2.HeartbeatResponse = self.call(
            v2.HEARTBEAT, v2.HeartbeatRequest(GROUP, d.ClientType.SIMPLE_CONSUMER)
        )
        return answer

    def telemetry(self, said: list[v2.TelemetryCommand]) -> Any:
        """The standing stream, in which the client has said these things."""
        made = self.channel.stream_stream(
            v2.TELEMETRY.path,
            request_serializer=encode,
            response_deserializer=lambda data: decode(v2.TELEMETRY.response, data),
        )
        return made(_then_waits(said), timeout=60, metadata=self.metadata)

    @staticmethod
    def settings() -> v2.TelemetryCommand:
        subscription = d.Subscription(GROUP, (d.SubscriptionEntry(d.Resource(name="T")),))
        return v2.TelemetryCommand(
            settings=d.Settings(client_type=d.ClientType.SIMPLE_CONSUMER, subscription=subscription)
        )


def _then_waits(said: list[v2.TelemetryCommand]) -> Iterator[v2.TelemetryCommand]:
    yield from said
    threading.Event().wait(60)


@pytest.fixture
def lab() -> Lab:
    return get("served").build(7, parameters=PARAMETERS)


@pytest.fixture
def client(serving: Serving) -> Iterator[Client]:
    client = Client(serving.endpoints)
    yield client
    client.channel.close()


def kinds(lab: Lab) -> set[str]:
    return {record.kind for record in lab.history.records()}


def test_a_route_names_the_endpoints_that_the_client_has_used(client: Client) -> None:
    queues = client.route().message_queues
    assert len(queues) == 4
    assert {queue.broker.endpoints for queue in queues} == {client.endpoints_said()}


def test_a_message_is_sent_received_and_acknowledged(client: Client, lab: Lab) -> None:
    client.telemetry([client.settings()]).next()
    assert client.send(b"1").status.code == d.Code.OK
    (message,) = client.receive()
    assert message.body == b"1"
    assert client.acknowledge(message).status.code == d.Code.OK
    assert "AckReceived" in kinds(lab)


def test_a_client_that_waits_is_woken_by_what_is_sent(client: Client, serving: Serving) -> None:
    client.telemetry([client.settings()]).next()
    client.send(b"0")
    client.receive()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(client.receive, wait_s=15)
        sender = Client(serving.endpoints, "client-2")
        sender.send(b"woken")
        assert [message.body for message in waiting.result(14)] == [b"woken"]
        sender.channel.close()


@pytest.mark.parametrize(
    ("path", "details"),
    [
        (f"/{v2.SERVICE}/PullMessage", f"Method {v2.SERVICE}/PullMessage is unimplemented"),
        (f"/{v2.SERVICE}/UpdateOffset", f"Method {v2.SERVICE}/UpdateOffset is unimplemented"),
        (f"/{v2.SERVICE}/GetOffset", f"Method {v2.SERVICE}/GetOffset is unimplemented"),
        (f"/{v2.SERVICE}/QueryOffset", f"Method {v2.SERVICE}/QueryOffset is unimplemented"),
        (f"/{v2.SERVICE}/SyncLiteSubscription", f"Method not found: {v2.SERVICE}/SyncLiteSubscription"),
        (f"/{v2.SERVICE}/Nothing", f"Method not found: {v2.SERVICE}/Nothing"),
        ("/grpc.health.v1.Health/Check", "Method not found: grpc.health.v1.Health/Check"),
    ],
)
def test_a_call_that_nobody_serves_is_unimplemented_in_the_words_of_the_real_proxy(
    client: Client, path: str, details: str
) -> None:
    with pytest.raises(grpc.RpcError) as error:
        client.channel.unary_unary(path)(b"\x0a\x00", timeout=20, metadata=client.metadata)
    assert (error.value.code(), error.value.details()) == (grpc.StatusCode.UNIMPLEMENTED, details)


def test_a_client_that_gives_up_cancels_its_call(client: Client, lab: Lab, serving: Serving) -> None:
    stream = client.telemetry([client.settings()])
    stream.next()
    stream.cancel()
    for _ in range(1_000):
        client.route()
        if "RpcCancelled" in kinds(lab):
            return
    raise AssertionError("the world was not told")


def test_a_proxy_that_crashes_cuts_its_calls_off_and_takes_new_ones_later(
    client: Client, lab: Lab, serving: Serving
) -> None:
    stream = client.telemetry([client.settings()])
    stream.next()
    lab.crash("proxy-1")
    with pytest.raises(grpc.RpcError) as error:
        stream.next()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    with pytest.raises(grpc.RpcError) as error:
        client.route()
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    lab.restart("proxy-1")
    serving.fast_forward("5s")
    assert client.route().status.code == d.Code.OK


@contextmanager
def polls(client: Client, lab: Lab, number: int) -> Iterator[Queue[d.Message]]:
    """So many polls of 19 s that wait in the proxy; what they get, when all have ended."""
    came, got = threading.Semaphore(0), Queue[d.Message]()

    def note(row: tuple[Any, ...]) -> None:
        if row[KIND] == "RequestReceived" and "ReceiveMessage" in row:
            came.release()

    lab.world.hooks.attach(note)

    def receive() -> None:
        for message in client.receive(wait_s=19):
            got.put(message)

    threads = [threading.Thread(target=receive) for _ in range(number)]
    for thread in threads:
        thread.start()
        assert came.acquire(timeout=20)
    yield got
    for thread in threads:
        thread.join()


def test_what_comes_in_the_middle_of_a_jump_can_be_acknowledged(
    client: Client, lab: Lab, serving: Serving, connect: Connects
) -> None:
    client.telemetry([client.settings()]).next()
    assert connect(serving.addresses["broker-a"]).send(b"in ten seconds", properties="DELAY\x013\x02").code == 0
    acknowledged: list[int] = []
    with polls(client, lab, 1) as got:

        def settle() -> None:
            message = got.get(timeout=20)
            for _ in range(20):
                client.route()
            acknowledged.append(client.acknowledge(message).status.code)

        consumer = threading.Thread(target=settle)
        consumer.start()
        serving.fast_forward("2h")
        consumer.join()
    assert acknowledged == [d.Code.OK]


def test_who_never_acknowledges_holds_a_jump_up_once(
    client: Client, lab: Lab, serving: Serving, connect: Connects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "PATIENCE_S", 0.2)
    client.telemetry([client.settings()]).next()
    program = connect(serving.addresses["broker-a"])
    for level in (1, 2, 3):
        assert program.send(b"after 1, 5 and 10 s", properties=f"DELAY\x01{level}\x02").code == 0
    looks: list[int] = []
    run_to = lab.world.run_to

    def watched(us: int) -> bool:
        if us - lab.world.now_us == edge.LOOK_US:
            looks.append(us)
        return run_to(us)

    with polls(client, lab, 3) as got, monkeypatch.context() as patch:
        patch.setattr(lab.world, "run_to", watched)
        serving.fast_forward("2h")
    assert got.qsize() == 3
    # Each look takes two milliseconds at least, so this is one patience and not three.
    assert 10 < len(looks) <= edge.PATIENCE_S * 1_000_000 / edge.LOOK_US


def test_a_session_is_played_again_to_the_same_hash(tmp_path: Path) -> None:
    lab = get("served").build(3, parameters=PARAMETERS)
    with lab.serve() as serving:
        client = Client(serving.endpoints)
        client.telemetry([client.settings()]).next()
        client.heartbeat()
        for number in range(10):
            client.send(b"%d" % number)
        assert client.receive()
        serving.fast_forward("10m")
        client.channel.close()
    serving.report(tmp_path / "session.mqlab")
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result


def test_a_port_that_is_taken_is_told(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LearnerError, match=f"cannot be served at 127.0.0.1:{port}"):
            lab.serve(ports={"proxy-1": port})
    assert not lab.world.outside.served
    with lab.serve() as serving:
        assert serving.endpoints.startswith("127.0.0.1:")


def test_the_end_is_told_to_who_is_connected_and_leaves_nothing_in_the_terminal(
    lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    with lab.serve() as serving:
        client = Client(serving.endpoints)
        stream = client.telemetry([client.settings()])
        stream.next()
    with pytest.raises(grpc.RpcError) as error:
        stream.next()
    assert (error.value.code(), error.value.details()) == (
        grpc.StatusCode.UNAVAILABLE, "the connection was closed by the proxy",
    )  # fmt: skip
    assert "Traceback" not in capfd.readouterr().err


def test_calls_that_are_over_before_they_are_taken_leave_nothing_in_the_terminal(
    lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    with lab.serve() as serving:
        client = Client(serving.endpoints)
        made = client.channel.unary_unary(v2.QUERY_ROUTE.path)
        request = encode(v2.QueryRouteRequest(d.Resource(name="T"), client.endpoints_said()))
        calls = [made.future(request, timeout=0.02, metadata=client.metadata) for _ in range(300)]
        assert {call.code() for call in calls} <= {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}
        assert client.route().status.code == d.Code.OK
        client.channel.close()
    assert "Error" not in capfd.readouterr().err
