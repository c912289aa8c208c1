"""Calls with streams over the links of a world: answers, deadlines, cancellation, connections that end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import ProtocolError
from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.protobuf import Timestamp
from mqlab.rpc import RpcClient, RpcError, RpcFrame, RpcServer, ServerStream, StatusCode
from mqlab.rpc.frame import decode_frame
from mqlab.rpc.server import timeout_us
from mqlab.sim import FAULTS, World

SERVER = "10.0.0.1:8081"
ASK = service.HeartbeatRequest(v2.Resource(name="g"), v2.ClientType.PUSH_CONSUMER)
HEARD = service.HeartbeatResponse(v2.Status(v2.Code.OK, "OK"))


class Pair:
    """A server that does what a test says, and a client."""

    def __init__(self, *, wire_bytes: bool = False) -> None:
        self.world = World(3, wire_bytes=wire_bytes)
        self.rows: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.rows.append)
        self.served: list[ServerStream] = []
        self.asked: list[Any] = []
        self.on_ask: Callable[[ServerStream, Any], object] = lambda stream, _: stream.answer(HEARD)
        node = self.world.node("server")
        self.server = RpcServer(node, 8081, self._serve)
        self.server.start()
        self.client = RpcClient(self.world.node("client"), {"x-mq-client-id": "me"})

    def _serve(self, stream: ServerStream) -> None:
        self.served.append(stream)

        def heard(request: Any) -> None:
            self.asked.append(request)
            self.on_ask(stream, request)

        stream.on_message = heard

    def run(self, work: Any) -> Any:
        return self.world.wait_for(self.client.node.spawn(work, "test").join(), 60_000)

    def run_ms(self, ms: int) -> None:
        self.world.run_for(ms * 1_000)

    def ask(self, timeout_ms: int = 3_000) -> Any:
        return self.run(self.client.unary(SERVER, service.HEARTBEAT, ASK, timeout_ms))

    def kinds(self) -> list[str]:
        return [row[7] for row in self.rows]


@pytest.fixture(params=[False, True], ids=["objects", "bytes"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(wire_bytes=request.param)


def refused(work: Callable[[], Any]) -> RpcError:
    with pytest.raises(RpcError) as caught:
        work()
    return caught.value


def test_a_call_is_answered(pair: Pair) -> None:
    assert pair.ask() == HEARD
    assert pair.asked == [ASK]
    assert pair.served[0].metadata["x-mq-client-id"] == "me"
    assert [kind for kind in pair.kinds() if kind.startswith("Re")] == [
        "RequestSent", "RequestReceived", "ResponseSent", "ResponseReceived",
    ]  # fmt: skip


def test_calls_share_a_connection(pair: Pair) -> None:
    pair.ask()
    pair.ask()
    assert [stream.stream_id for stream in pair.served] == [1, 3]
    assert pair.kinds().count("ConnectionOpened") == 1


def test_a_server_may_send_many_messages(pair: Pair) -> None:
    def answer(stream: ServerStream, _: Any) -> None:
        stream.write(service.ReceiveMessageResponse(status=v2.Status(v2.Code.OK, "OK")))
        stream.answer(service.ReceiveMessageResponse(delivery_timestamp=Timestamp(5)))

    pair.on_ask = answer
    said = pair.run(
        pair.client.server_stream(SERVER, service.RECEIVE_MESSAGE, service.ReceiveMessageRequest(batch_size=3), 3_000)
    )
    assert [part.delivery_timestamp for part in said] == [None, 5]


def test_both_sides_of_a_stream_speak_as_long_as_it_stands(pair: Pair) -> None:
    pair.on_ask = lambda stream, command: stream.write(command._replace(status=v2.Status(v2.Code.OK, "OK")))
    heard: list[Any] = []
    ended: list[RpcError | None] = []
    command = service.TelemetryCommand(settings=v2.Settings(v2.ClientType.PRODUCER))
    stream = pair.run(pair.client.open(SERVER, service.TELEMETRY, command, 3_000, heard.append, ended.append))
    pair.run_ms(1_000)
    stream.write(command)
    pair.run_ms(1_000)
    assert len(heard) == 2
    pair.served[0].on_end = pair.served[0].end
    stream.complete()
    pair.run_ms(1_000)
    assert ended == [None]
    assert refused(lambda: stream.write(command)).code == StatusCode.CANCELLED


def test_a_call_without_an_answer_ends_at_its_deadline_and_the_server_hears_of_it(pair: Pair) -> None:
    pair.on_ask = lambda stream, _: None
    begin = pair.world.now_us
    assert refused(pair.ask).code == StatusCode.DEADLINE_EXCEEDED
    assert (pair.world.now_us - begin) // 1_000 == 3_000
    assert "RequestTimedOut" in pair.kinds()
    pair.run_ms(10)
    (stream,) = pair.served
    assert stream.over
    assert "RpcCancelled" in pair.kinds()
    assert refused(lambda: stream.answer(HEARD)).code == StatusCode.CANCELLED


def test_a_server_knows_how_long_its_client_waits(pair: Pair) -> None:
    left: list[int] = []
    pair.on_ask = lambda stream, _: (left.append(stream.remaining_ms), stream.answer(HEARD))
    pair.ask()
    assert 2_990 < left[0] <= 3_000


def test_a_call_that_ends_badly_says_why(pair: Pair) -> None:
    pair.on_ask = lambda stream, _: stream.end(StatusCode.INVALID_ARGUMENT, "100 % wrong\nWhat to do: nothing: at all")
    error = refused(pair.ask)
    assert (error.code, error.description) == (
        StatusCode.INVALID_ARGUMENT, "100 % wrong\nWhat to do: nothing: at all",
    )  # fmt: skip


def test_an_unknown_call_is_unimplemented(pair: Pair) -> None:
    unknown = service.Rpc("PullMessage", service.HeartbeatRequest, service.HeartbeatResponse)
    error = refused(lambda: pair.run(pair.client.unary(SERVER, unknown, ASK, 3_000)))
    # Who sends bytes of it ends the connection: nobody could read the message in them.
    assert error.code == (StatusCode.UNAVAILABLE if pair.world.wire_bytes else StatusCode.UNIMPLEMENTED)


def test_nobody_listens(pair: Pair) -> None:
    pair.server.shutdown()
    assert refused(pair.ask).code == StatusCode.UNAVAILABLE


def test_a_dead_host_is_waited_for_as_long_as_the_deadline(pair: Pair) -> None:
    FAULTS["power_off"](pair.world, "server")
    assert refused(pair.ask).code == StatusCode.DEADLINE_EXCEEDED


def test_a_server_that_dies_ends_its_calls(pair: Pair) -> None:
    pair.on_ask = lambda stream, _: None
    asking = pair.client.node.spawn(pair.client.unary(SERVER, service.HEARTBEAT, ASK, 3_000), "ask").join()
    pair.run_ms(100)
    FAULTS["crash"](pair.world, "server")
    assert refused(lambda: pair.world.wait_for(asking, 1_000)).code == StatusCode.UNAVAILABLE
    assert "RequestFailed" in pair.kinds()


def test_a_client_that_dies_cancels_its_calls(pair: Pair) -> None:
    pair.on_ask = lambda stream, _: None
    pair.client.node.spawn(pair.client.unary(SERVER, service.HEARTBEAT, ASK, 30_000), "ask")
    pair.run_ms(100)
    ended: list[bool] = []
    pair.served[0].on_end = lambda: ended.append(True)
    FAULTS["crash"](pair.world, "client")
    pair.run_ms(100)
    assert ended == [True]
    assert refused(lambda: pair.served[0].write(HEARD)).code == StatusCode.CANCELLED


def test_the_first_address_that_answers_is_used(pair: Pair) -> None:
    both = f"10.0.0.2:8081;{SERVER}"
    assert pair.run(pair.client.unary(both, service.HEARTBEAT, ASK, 3_000)) == HEARD


def test_callers_wait_for_one_connection(pair: Pair) -> None:
    asked = [
        pair.client.node.spawn(pair.client.unary(SERVER, service.HEARTBEAT, ASK, 3_000), "ask").join() for _ in "ab"
    ]
    assert [pair.world.wait_for(each, 3_000) for each in asked] == [HEARD, HEARD]
    assert pair.kinds().count("ConnectionOpened") == 1


def test_a_client_that_was_shut_down_closes_its_connections(pair: Pair) -> None:
    pair.ask()
    pair.client.shutdown()
    pair.run_ms(10)
    assert not pair.server.connections


# -- bytes -------------------------------------------------------------------------------------------------------------


def test_a_frame_is_http2_frames_around_a_grpc_message() -> None:
    frame = RpcFrame(1, service.HEARTBEAT.path, False, {"a": "b"}, ASK, True)
    data = frame.encode()
    head = b":path: /apache.rocketmq.v2.MessagingService/Heartbeat\na: b\n"
    assert data[:9] == len(head).to_bytes(3, "big") + b"\x01\x04\0\0\0\x01"
    assert data[9 : 9 + len(head)] == head
    assert data[9 + len(head) :].hex() == "00000c" "00" "01" "00000001" "00" "00000007" "0a0312016710" "02"
    assert decode_frame(data, {}, is_answer=False) == frame


def test_a_reset_is_a_frame_of_its_own() -> None:
    frame = RpcFrame(3, service.HEARTBEAT.path, False, reset=True)
    assert decode_frame(frame.encode(), {3: service.HEARTBEAT.path}, is_answer=False) == frame


@pytest.mark.parametrize("data", [b"\0\0\0", b"\0\0\x09\x01\x04\0\0\0\x01ab", b"\0\0\x05\0\0\0\0\0\x07\0\0\0\0\0"])
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_frame(data, {}, is_answer=True)


@pytest.mark.parametrize("timeout", ["", "m", "10", "-1m", "1.5S", "123456789m", "1x", "٣m"])
def test_a_timeout_that_is_none_ends_the_call_and_nothing_else(timeout: str) -> None:
    pair = Pair(wire_bytes=True)
    with_timeout = {"grpc-timeout": timeout}
    said: list[Any] = []
    connection = pair.run(pair.client._connection(SERVER, 3_000))
    connection.open(service.HEARTBEAT, said.append, said.append).begin(with_timeout, ASK, None)
    pair.run_ms(50)
    (error,) = said
    assert error.code is StatusCode.INTERNAL
    assert f"malformed grpc-timeout {timeout!r}" in str(error)
    assert pair.ask() == HEARD


@pytest.mark.parametrize(
    ("timeout", "us"), [("2S", 2_000_000), ("3m", 3_000), ("7u", 7), ("1H", 3_600_000_000), ("5n", 0)]
)
def test_a_timeout_has_a_unit(timeout: str, us: int) -> None:
    assert timeout_us(timeout) == us


def test_a_status_that_nobody_knows_is_unknown() -> None:
    frame = RpcFrame(1, service.HEARTBEAT.path, True, None, None, True, StatusCode.INTERNAL, "no")
    data = frame.encode().replace(b"grpc-status: 13", b"grpc-status: 99")
    assert decode_frame(data, {1: service.HEARTBEAT.path}, is_answer=True).status is StatusCode.UNKNOWN


def test_a_code_that_nobody_knows_is_told_by_its_number(pair: Pair) -> None:
    strange = service.HeartbeatResponse(v2.Status(77_777, "from the future"))
    pair.on_ask = lambda stream, _: stream.answer(strange)
    assert pair.ask().status.code == 77_777
    assert [row[-2] for row in pair.rows if row[7] == "ResponseReceived"] == ["77777"]


def test_a_connection_on_which_nonsense_comes_is_closed() -> None:
    pair = Pair(wire_bytes=True)
    pair.ask()
    (connection,) = pair.server.connections
    connection.endpoint.peer.out.put(b"GET / HTTP/1.1\r\n\r\n", 18)
    pair.run_ms(10)
    assert "FrameRefused" in pair.kinds()
    assert not pair.server.connections
