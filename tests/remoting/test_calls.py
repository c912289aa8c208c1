"""Sync, async and one-way calls between two nodes, and every way in which they can end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from mqlab.errors import (
    RemotingConnectException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import (
    AbortProcessException,
    Channel,
    RemotingClient,
    RemotingClientConfig,
    RemotingServer,
    RequestProcessor,
    ResponseFuture,
    RPCHook,
)
from mqlab.sim import Future, Node, World

ECHO, SLOW, BROKEN, ABORT, SILENT, LATER, CALL_BACK = 1, 2, 3, 4, 5, 6, 7


class Echo(RequestProcessor):
    """Gives the body back; some codes do something else first."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.seen: list[int] = []
        self.channels: list[Channel] = []
        self.refusal: str | None = None

    def reject_request(self) -> str | None:
        return self.refusal

    def process_request(self, channel: Channel, request: RemotingCommand) -> Any:
        self.seen.append(request.code)
        self.channels.append(channel)
        if request.code == SLOW:
            return self._slow(request)
        if request.code == BROKEN:
            raise ValueError("no such thing")
        if request.code == ABORT:
            raise AbortProcessException(16, "not allowed")
        if request.code == SILENT:
            return None
        if request.code == LATER:
            answer: Future[RemotingCommand | None] = self.node.future("later")
            self.node.call_later(50, answer.set_result, RemotingCommand.response(0, body=request.body))
            return answer
        return RemotingCommand.response(0, body=request.body)

    async def _slow(self, request: RemotingCommand) -> RemotingCommand:
        await self.node.sleep(int(request.body or b"1000"))
        return RemotingCommand.response(0, body=b"slow")


class Setting:
    """One client and one server with the echo processor at port 10911."""

    def __init__(self, *, wire_bytes: bool = False, threads: int = 4, capacity: int = 10, **settings: Any) -> None:
        self.world = World(7, wire_bytes=wire_bytes)
        self.server_node = self.world.node("server")
        self.client_node = self.world.node("client")
        self.echo = Echo(self.server_node)
        self.server = RemotingServer(self.server_node, 10911)
        self.server.register_default_processor(self.echo, self.server_node.pool("echo", threads, capacity))
        self.server.start()
        self.client = RemotingClient(self.client_node, RemotingClientConfig(**settings))
        self.address = f"{self.server_node.spec.ip}:10911"
        self.rows: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.rows.append)

    def play(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.world.wait_for(self.client_node.spawn(coroutine, "test").join())

    def call(self, code: int = ECHO, body: bytes = b"hello", timeout_ms: int = 3000) -> RemotingCommand:
        request = RemotingCommand.request(code, body=body)
        answer: RemotingCommand = self.play(self.client.invoke_sync(self.address, request, timeout_ms))
        return answer

    def events(self, kind: str) -> list[tuple[Any, ...]]:
        return [row[8:] for row in self.rows if row[7] == kind]


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.mark.parametrize("wire_bytes", [False, True])
def test_a_synchronous_call_returns_the_answer_to_its_own_request(wire_bytes: bool) -> None:
    setting = Setting(wire_bytes=wire_bytes)
    assert [setting.call(body=body).body for body in (b"one", b"two")] == [b"one", b"two"]
    assert setting.client.response_table == {}
    assert [event[4] for event in setting.events("RequestSent")] == [0, 1]


def test_commands_as_objects_and_as_bytes_give_the_same_trace() -> None:
    traces = []
    for wire_bytes in (False, True):
        setting = Setting(wire_bytes=wire_bytes)
        setting.call()
        setting.call(LATER)
        traces.append(setting.rows)
    assert traces[0] == traces[1]


def test_every_frame_can_be_matched_between_its_sender_and_its_receiver(setting: Setting) -> None:
    setting.call()
    setting.call(LATER)
    for sent, received in (("RequestSent", "RequestReceived"), ("ResponseSent", "ResponseReceived")):
        out = [(row[0], row[1], row[2], row[3], *row[4:]) for row in setting.events(sent)]
        into = [(row[0], row[1], row[3], row[2], *row[4:]) for row in setting.events(received)]
        assert out == into
        assert len(out) == 2


def test_an_asynchronous_call_calls_back_once_with_the_answer(setting: Setting) -> None:
    outcomes: list[ResponseFuture] = []
    setting.client.invoke_async(setting.address, RemotingCommand.request(ECHO, body=b"x"), 3000, outcomes.append)
    setting.world.run_for(1_000_000)
    assert [future.response.body for future in outcomes if future.response] == [b"x"]
    assert setting.client.semaphore_async.permits == 65535


def test_a_one_way_request_is_processed_and_never_answered(setting: Setting) -> None:
    setting.client.invoke_oneway(setting.address, RemotingCommand.request(ECHO), 3000)
    setting.world.run_for(1_000_000)
    assert setting.echo.seen == [ECHO]
    assert setting.events("ResponseSent") == []


def test_callers_that_come_at_the_same_time_share_one_connection(setting: Setting) -> None:
    for _ in range(5):
        setting.client.invoke_async(setting.address, RemotingCommand.request(ECHO), 3000, lambda _: None)
    setting.world.run_for(1_000_000)
    assert len(setting.events("ConnectionOpened")) == 1
    assert len(setting.echo.seen) == 5


def test_a_timed_out_synchronous_call_raises_at_once_and_closes_its_channel(setting: Setting) -> None:
    with pytest.raises(
        RemotingTimeoutException, match=r"wait response on the channel <10.0.0.1:10911> timeout, 3000\(ms\)"
    ):
        setting.call(SLOW, b"60000")
    assert 3_000_000 <= setting.world.now_us < 3_001_000
    assert setting.client.channel_table == {}


def test_a_channel_survives_a_time_out_for_which_connecting_left_hardly_any_time(setting: Setting) -> None:
    setting.world.network.link("client", "server").extra_us = 2_950_000
    with pytest.raises(RemotingTimeoutException):
        setting.call()
    assert 3_000_000 <= setting.world.now_us < 3_001_000
    assert setting.client.is_channel_writable(setting.address)


def test_closing_on_time_out_can_be_switched_off() -> None:
    kept = Setting(client_close_socket_if_timeout=False)
    with pytest.raises(RemotingTimeoutException):
        kept.call(SLOW, b"60000", 500)
    assert kept.client.is_channel_writable(kept.address)
    assert len(kept.client.response_table) == 1
    kept.world.run_for(10_000_000)
    assert kept.client.response_table == {}


def test_the_scan_finds_expired_requests_a_second_after_their_time_out_on_its_own_grid(setting: Setting) -> None:
    outcomes: list[tuple[int, ResponseFuture]] = []

    def note(future: ResponseFuture) -> None:
        outcomes.append((setting.world.now_us, future))

    setting.client.invoke_async(setting.address, RemotingCommand.request(SILENT), 3000, note)
    setting.world.run_for(20_000_000)
    (when_us, future) = outcomes[0]
    assert isinstance(future.error, RemotingTimeoutException)
    assert when_us == 3_000_000 + 1_100_000
    assert setting.client.semaphore_async.permits == 65535


def test_an_answer_after_the_scan_is_dropped(setting: Setting) -> None:
    setting.client.invoke_async(setting.address, RemotingCommand.request(SLOW, body=b"6000"), 500, lambda _: None)
    setting.world.run_for(10_000_000)
    assert [event[2] for event in setting.events("ResponseDropped")] == [0]


def test_nobody_listens_is_a_connect_exception_for_sync_and_async_alike(setting: Setting) -> None:
    request = RemotingCommand.request(ECHO)
    with pytest.raises(RemotingConnectException, match=r"connect to 10.0.0.1:1 failed"):
        setting.play(setting.client.invoke_sync("10.0.0.1:1", request, 3000))
    outcomes: list[ResponseFuture] = []
    setting.client.invoke_async("10.0.0.1:1", request, 3000, outcomes.append)
    setting.client.invoke_oneway("10.0.0.1:1", request, 3000)
    setting.world.run_for(5_000_000)
    assert [type(future.error) for future in outcomes] == [RemotingConnectException]


def test_a_closed_connection_fails_at_once_whatever_waits_for_it(setting: Setting) -> None:
    outcomes: list[int] = []
    setting.client.invoke_async(
        setting.address, RemotingCommand.request(SILENT), 30_000, lambda _: outcomes.append(setting.world.now_us)
    )
    setting.world.run_for(100_000)
    setting.world.network.break_connections("client", "server")
    setting.world.run_for(1)
    assert outcomes == [100_000]
    setting.call(ECHO)
    setting.client_node.call_later(10, setting.client.close_channel, setting.address)
    with pytest.raises(RemotingSendRequestException):
        setting.call(SILENT)


def test_without_permits_async_calls_wait_and_one_way_calls_are_refused() -> None:
    setting = Setting(client_async_semaphore_value=1, client_oneway_semaphore_value=0)
    outcomes: list[tuple[int, RemotingCommand | None, str]] = []

    def note(future: ResponseFuture) -> None:
        outcomes.append((setting.world.now_us // 1_000, future.response, type(future.error).__name__))

    client, address = setting.client, setting.address
    for code, timeout_ms in ((LATER, 3000), (ECHO, 3000), (LATER, 60)):
        client.invoke_async(address, RemotingCommand.request(code), timeout_ms, note)
    setting.world.run_for(5_000_000)
    assert [(when_ms, error) for when_ms, _, error in outcomes] == [
        (50, "NoneType"),
        (51, "NoneType"),
        (101, "NoneType"),
    ]
    client.invoke_async(address, RemotingCommand.request(SILENT), 3000, note)
    client.invoke_async(address, RemotingCommand.request(ECHO), 0, note)
    client.invoke_async(address, RemotingCommand.request(ECHO), 70, note)
    setting.world.run_for(2_000_000)
    assert [error for _, _, error in outcomes[3:]] == ["RemotingTooMuchRequestException", "RemotingTimeoutException"]
    with pytest.raises(RemotingTooMuchRequestException, match="invoke too fast"):
        client.invoke_oneway(address, RemotingCommand.request(ECHO), 0)


def test_an_unknown_request_code_is_answered_with_code_3(setting: Setting) -> None:
    setting.server.default_processor = None
    answer = setting.call(9999)
    assert (answer.code, answer.remark) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 9999 not supported")


def test_a_processor_that_rejects_makes_the_server_answer_busy(setting: Setting) -> None:
    setting.echo.refusal = ""
    answer = setting.call()
    assert (answer.code, answer.remark) == (2, "[REJECTREQUEST]system busy, start flow control for a while")
    assert setting.echo.seen == []


def test_a_full_pool_makes_the_server_answer_busy() -> None:
    setting = Setting(threads=1, capacity=1)
    outcomes: list[ResponseFuture] = []
    for _ in range(3):
        request = RemotingCommand.request(SLOW, body=b"100")
        setting.client.invoke_async(setting.address, request, 3000, outcomes.append)
    setting.world.run_for(1_000_000)
    remarks = [future.response.remark for future in outcomes if future.response]
    assert remarks == ["[OVERLOAD]system busy, start flow control for a while", None, None]


def test_errors_of_a_processor_reach_the_caller_as_short_texts(setting: Setting) -> None:
    broken, aborted = setting.call(BROKEN), setting.call(ABORT)
    assert (broken.code, broken.remark) == (ResponseCode.SYSTEM_ERROR, "ValueError: no such thing")
    assert (aborted.code, aborted.remark) == (16, "not allowed")
    assert len(setting.events("ProcessorFailed")) == 2


def test_a_server_can_call_its_clients(setting: Setting) -> None:
    setting.client.register_processor(CALL_BACK, Echo(setting.client_node))
    setting.call()
    channel = setting.echo.channels[0]
    request = RemotingCommand.request(CALL_BACK, body=b"who are you")
    answer = setting.play(setting.server.invoke_sync(channel, request, 3000))
    assert answer.body == b"who are you"
    setting.server.invoke_oneway(channel, RemotingCommand.request(CALL_BACK), 10)
    setting.world.run_for(1_000_000)
    assert setting.server.semaphore_oneway.permits == 256


def test_rpc_hooks_see_requests_and_answers_on_both_sides(setting: Setting) -> None:
    seen: list[str] = []

    class Noting(RPCHook):
        def __init__(self, side: str) -> None:
            self.side = side

        def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
            seen.append(f"{self.side} before {request.code}")
            request.add_ext_field("zone", "a")

        def do_after_response(
            self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
        ) -> None:
            seen.append(f"{self.side} after {response.code if response else None} {request.ext_field('zone')}")

    setting.client.rpc_hooks.append(Noting("client"))
    setting.server.rpc_hooks.append(Noting("server"))
    setting.call()
    setting.client.invoke_async(setting.address, RemotingCommand.request(ECHO), 3000, lambda _: None)
    setting.world.run_for(1_000_000)
    assert seen == ["client before 1", "server before 1", "server after 0 a", "client after 0 a"] * 2


@pytest.mark.parametrize(
    ("before", "after", "code", "seen", "remark"),
    [
        (None, None, BROKEN, [], "ValueError: no such thing"),
        (None, None, ABORT, [], "not allowed"),
        (OSError("early"), None, ECHO, [(1, None)], "OSError: early"),
        (AbortProcessException(16, "closed"), None, ECHO, [], "closed"),
        (None, OSError("late"), ECHO, [(0, None)], "OSError: late"),
        (None, AbortProcessException(16, "closed"), ECHO, [(0, None)], "closed"),
        (None, OSError("late"), LATER, [(0, None)], "OSError: late"),
    ],
)
def test_an_error_is_answered_and_the_hooks_behind_the_call_see_only_what_a_processor_or_a_refused_call_gave(
    before: Exception | None, after: Exception | None, code: int, seen: list[Any], remark: str
) -> None:
    setting = Setting()
    shown: list[Any] = []

    class Failing(RPCHook):
        def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
            if before is not None:
                raise before

        def do_after_response(
            self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
        ) -> None:
            shown.append((response.code, response.remark) if response else None)
            if after is not None:
                raise after

    setting.server.rpc_hooks.append(Failing())
    assert setting.call(code).remark == remark
    assert shown == seen


def test_go_away_is_answered_by_one_more_attempt_on_a_new_channel(setting: Setting) -> None:
    setting.call()
    setting.server.shutting_down = True
    with pytest.raises(RemotingSendRequestException):
        setting.call()
    assert len(setting.events("ConnectionOpened")) == 2

    def come_back(row: tuple[Any, ...]) -> None:
        if row[7] == "ResponseSent":
            setting.server.shutting_down = False

    setting.world.hooks.attach(come_back)
    assert setting.call().code == 0
    assert len(setting.events("ConnectionOpened")) == 3
