"""How an entry leaves the response table, what the two semaphores limit, and how a server says that it is leaving."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import (
    RemotingConnectException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import (
    Channel,
    RemotingClient,
    RemotingClientConfig,
    RemotingServer,
    RemotingServerConfig,
    RequestProcessor,
    ResponseFuture,
    RPCHook,
)
from mqlab.sim import FAULTS, World

ANSWERED, SILENT = 1, 2


class Some(RequestProcessor):
    """Answers ANSWERED with the body that came, and SILENT never."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand | None:
        self.seen.append(request.body or b"")
        return RemotingCommand.response(0, body=request.body) if request.code == ANSWERED else None


class Setting:
    """A client, and a server at port 10911 with an address of its own."""

    def __init__(self, server_config: RemotingServerConfig | None = None, **settings: Any) -> None:
        self.world = World(7)
        self.server_node = self.world.node("server")
        self.node = self.world.node("client")
        self.some = Some()
        self.server = RemotingServer(self.server_node, 10911, config=server_config)
        self.server.register_default_processor(self.some)
        self.server.start()
        self.address = f"{self.server_node.spec.ip}:10911"
        self.client = RemotingClient(self.node, RemotingClientConfig(**settings))
        self.rows: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.rows.append)
        self.outcomes: list[tuple[float, ResponseFuture]] = []

    @property
    def now_ms(self) -> float:
        return self.world.now_us / 1_000

    def run_ms(self, ms: float) -> None:
        self.world.run_for(round(ms * 1_000))

    def note(self, future: ResponseFuture) -> None:
        self.outcomes.append((self.now_ms, future))

    def begin(self, code: int = ANSWERED, timeout_ms: int = 3_000, body: bytes = b"x") -> None:
        self.client.invoke_async(self.address, RemotingCommand.request(code, body=body), timeout_ms, self.note)

    def call(self, code: int = ANSWERED, timeout_ms: int = 3_000) -> RemotingCommand:
        call = self.client.invoke_sync(self.address, RemotingCommand.request(code, body=b"x"), timeout_ms)
        answer: RemotingCommand = self.world.wait_for(self.node.spawn(call, "call").join())
        return answer

    def events(self, kind: str) -> list[tuple[Any, ...]]:
        return [row[8:] for row in self.rows if row[7] == kind]

    @property
    def permits(self) -> int:
        return self.client.semaphore_async.permits


@pytest.fixture
def setting() -> Setting:
    return Setting()


# -- the three ways out of the response table -----------------------------------------------------------------------


def test_the_answer_takes_the_entry_out_and_gives_the_permit_back(setting: Setting) -> None:
    setting.begin()
    setting.world.run_until(lambda: setting.client.response_table)
    ((number, future),) = setting.client.response_table.items()
    assert number == future.opaque == future.request.opaque
    assert (future.send_request_ok, future.done, setting.permits) == (True, False, 65_534)
    setting.run_ms(10)
    assert setting.outcomes[0][1] is future
    assert (len(setting.outcomes), setting.client.response_table, setting.permits) == (1, {}, 65_535)


def test_a_failure_to_send_takes_the_entry_out_at_once_with_a_send_error(setting: Setting) -> None:
    setting.call()
    channel = setting.client.channel_table[setting.address]
    setting.world.network.break_connections("client", "server")
    setting.client.invoke_on_channel(channel, RemotingCommand.request(ANSWERED), 3_000, setting.note)
    setting.run_ms(1)
    ((_, future),) = setting.outcomes
    assert isinstance(future.error, RemotingSendRequestException)
    assert (future.send_request_ok, setting.client.response_table, setting.permits) == (False, {}, 65_535)


def test_the_end_of_a_channel_fails_all_that_wait_on_it_and_nobody_else(setting: Setting) -> None:
    other_node = setting.world.node("other")
    other = RemotingServer(other_node, 10911)
    other.register_default_processor(Some())
    other.start()
    for _ in range(3):
        setting.begin(SILENT)
    address = f"{other_node.spec.ip}:10911"
    setting.client.invoke_async(address, RemotingCommand.request(SILENT), 3_000, setting.note)
    setting.run_ms(50)
    setting.world.network.break_connections("client", "server")
    setting.run_ms(1)
    assert [type(future.error) for _, future in setting.outcomes] == [RemotingSendRequestException] * 3
    assert [future.channel.remote_address for future in setting.client.response_table.values() if future.channel] == [
        address
    ]


@pytest.mark.parametrize(("sent_at_ms", "found_at_ms"), [(0, 4_100), (1_090, 4_100), (1_110, 5_200), (2_500, 7_400)])
def test_the_scan_looks_at_3_s_and_then_every_1100_ms_and_takes_out_what_is_a_second_late(
    sent_at_ms: int, found_at_ms: int
) -> None:
    setting = Setting()
    setting.run_ms(sent_at_ms)
    timeout_ms = 2_000 if sent_at_ms < 2_000 else 3_000
    setting.begin(SILENT, timeout_ms)
    setting.run_ms(20_000)
    ((when_ms, future),) = setting.outcomes
    # The connection takes a moment, so the entry is a little younger than the call.
    assert when_ms == found_at_ms
    assert when_ms - future.begin_us / 1_000 >= timeout_ms + 1_000
    assert isinstance(future.error, RemotingTimeoutException)
    assert (setting.client.response_table, setting.permits) == ({}, 65_535)


def test_a_synchronous_caller_leaves_at_its_time_out_and_its_entry_stays_for_the_scan() -> None:
    setting = Setting(client_close_socket_if_timeout=False)
    with pytest.raises(RemotingTimeoutException):
        setting.call(SILENT, 500)
    assert setting.now_ms == pytest.approx(500, abs=1)
    assert (len(setting.client.response_table), setting.permits) == (1, 65_534)
    setting.run_ms(2_400)
    assert len(setting.client.response_table) == 1
    setting.run_ms(200)
    assert (len(setting.client.response_table), setting.permits) == (0, 65_535)


def test_a_callback_is_called_once_although_the_answer_comes_after_the_end(setting: Setting) -> None:
    setting.begin(SILENT)
    setting.run_ms(10)
    (future,) = setting.client.response_table.values()
    setting.client.fail(future, "the test says so")
    setting.client.complete(future, RemotingCommand.response(0), None)
    setting.run_ms(10_000)
    assert len(setting.outcomes) == 1
    assert future.response is None


# -- the budget -----------------------------------------------------------------------------------------------------


def test_connecting_is_taken_off_the_time_for_the_answer(setting: Setting) -> None:
    setting.world.network.link("client", "server").extra_us = 400_000
    setting.begin(SILENT)
    setting.world.run_until(lambda: setting.client.response_table)
    (future,) = setting.client.response_table.values()
    assert future.timeout_ms == 3_000 - setting.world.now_us // 1_000
    assert future.timeout_ms <= 2_600


def test_a_connection_that_takes_longer_than_the_budget_is_too_much_for_async_and_a_time_out_for_sync() -> None:
    for sync in (False, True):
        setting = Setting()
        setting.world.network.link("client", "server").extra_us = 500_000
        if sync:
            with pytest.raises(RemotingTimeoutException, match=r"invokeSync call the addr\[10.0.0.1:10911\] timeout"):
                setting.call(ANSWERED, 300)
        else:
            setting.begin(ANSWERED, 300)
            setting.run_ms(2_000)
            ((_, future),) = setting.outcomes
            assert isinstance(future.error, RemotingTooMuchRequestException)
            assert str(future.error) == "invokeAsync call the addr[10.0.0.1:10911] timeout"
        assert setting.some.seen == []


def test_making_a_connection_is_given_up_after_3_seconds(setting: Setting) -> None:
    FAULTS["cut"](setting.world, "client", "server")
    with pytest.raises(RemotingConnectException, match=r"connect to 10\.0\.0\.1:10911 failed"):
        setting.call(ANSWERED, 60_000)
    assert setting.now_ms == pytest.approx(3_000, abs=1)
    setting = Setting(connect_timeout_millis=500)
    FAULTS["cut"](setting.world, "client", "server")
    with pytest.raises(RemotingConnectException):
        setting.call(ANSWERED, 60_000)
    assert setting.now_ms == pytest.approx(500, abs=1)


# -- the semaphores -------------------------------------------------------------------------------------------------


def test_both_semaphores_hold_65535_permits_unless_told() -> None:
    assert (Setting().client.semaphore_async.permits, Setting().client.semaphore_oneway.permits) == (65_535, 65_535)
    setting = Setting(client_async_semaphore_value=3, client_oneway_semaphore_value=4)
    assert (setting.client.semaphore_async.permits, setting.client.semaphore_oneway.permits) == (3, 4)


def test_a_synchronous_caller_has_one_call_under_way_and_an_asynchronous_one_as_many_as_there_are_permits() -> None:
    setting = Setting(client_async_semaphore_value=100)
    most = 0

    def watch(row: tuple[Any, ...]) -> None:
        nonlocal most
        most = max(most, len(setting.client.response_table))

    setting.world.hooks.attach(watch)
    for _ in range(300):
        setting.call()
    assert most == 1
    for _ in range(300):
        setting.begin()
    setting.run_ms(5_000)
    assert most == 100
    assert len(setting.outcomes) == 300
    assert all(future.response for _, future in setting.outcomes)


def test_without_a_permit_an_asynchronous_call_ends_with_its_time_out_or_with_too_much() -> None:
    setting = Setting(client_async_semaphore_value=1)
    setting.begin(SILENT, 30_000)
    setting.run_ms(10)
    setting.begin(ANSWERED, 100)
    setting.begin(ANSWERED, 0)
    setting.run_ms(500)
    late, too_much = sorted(setting.outcomes, key=lambda outcome: -outcome[0])
    assert isinstance(late[1].error, RemotingTimeoutException)
    assert str(late[1].error).startswith("invokeAsyncImpl tryAcquire semaphore timeout, 100ms, waiting thread nums: ")
    assert str(late[1].error).endswith("semaphoreAsyncValue: 0")
    assert late[0] == 110
    assert isinstance(too_much[1].error, RemotingTooMuchRequestException)
    assert str(too_much[1].error) == "invokeAsyncImpl invoke too fast"


def test_without_a_permit_a_synchronous_call_is_a_send_error_that_costs_the_channel() -> None:
    setting = Setting(client_async_semaphore_value=1)
    setting.begin(SILENT, 30_000)
    setting.run_ms(10)
    begin_ms = setting.now_ms
    with pytest.raises(RemotingSendRequestException) as caught:
        setting.call(ANSWERED, 700)
    assert isinstance(caught.value.__cause__, RemotingTimeoutException)
    assert setting.now_ms - begin_ms == pytest.approx(700)
    # Whoever held the permit loses its connection to it.
    setting.run_ms(1)
    assert [type(future.error) for _, future in setting.outcomes] == [RemotingSendRequestException]
    assert setting.permits == 1


def test_a_synchronous_call_with_a_late_permit_has_the_whole_time_out_again_unless_the_scan_comes_first() -> None:
    setting = Setting(client_async_semaphore_value=1)
    setting.begin(SILENT, 1_000)
    setting.run_ms(10)
    with pytest.raises(RemotingSendRequestException):
        setting.call(SILENT, 5_000)
    # The permit came at 3000, with 2010 ms of the budget left; a second after that the entry is old, at 6010.
    assert (setting.outcomes[0][0], setting.now_ms) == (3_000, 6_300)
    setting = Setting(client_async_semaphore_value=1)
    setting.begin(SILENT, 1_000)
    setting.run_ms(2_900)
    with pytest.raises(RemotingTimeoutException):
        setting.call(SILENT, 1_000)
    assert (setting.outcomes[0][0], setting.now_ms) == (3_000, 4_000)


def test_without_a_permit_a_one_way_call_is_an_error_for_its_caller() -> None:
    setting = Setting(client_oneway_semaphore_value=0)
    setting.call()
    with pytest.raises(RemotingTimeoutException, match="invokeOnewayImpl tryAcquire semaphore timeout, 3000ms"):
        setting.client.invoke_oneway(setting.address, RemotingCommand.request(ANSWERED), 3_000)
    with pytest.raises(RemotingTooMuchRequestException, match="invokeOnewayImpl invoke too fast"):
        setting.client.invoke_oneway(setting.address, RemotingCommand.request(ANSWERED), 0)


def test_65535_requests_are_under_way_at_most(setting: Setting) -> None:
    setting.call()
    asynchronous, oneway = setting.client.semaphore_async, setting.client.semaphore_oneway
    assert all(asynchronous.try_acquire() for _ in range(65_534))
    setting.begin(SILENT, 30_000)
    setting.begin(ANSWERED, 100)
    setting.run_ms(500)
    ((_, future),) = setting.outcomes
    assert str(future.error).startswith("invokeAsyncImpl tryAcquire semaphore timeout, 100ms")
    assert all(oneway.try_acquire() for _ in range(65_534))
    setting.client.invoke_oneway(setting.address, RemotingCommand.request(ANSWERED), 100)
    assert oneway.try_acquire()
    with pytest.raises(RemotingTimeoutException, match="invokeOnewayImpl tryAcquire semaphore timeout"):
        setting.client.invoke_oneway(setting.address, RemotingCommand.request(ANSWERED), 100)


def test_a_server_has_fewer_permits_for_calls_to_its_clients(setting: Setting) -> None:
    assert (setting.server.semaphore_async.permits, setting.server.semaphore_oneway.permits) == (64, 256)


# -- a server that leaves -------------------------------------------------------------------------------------------


def leaving(**settings: Any) -> Setting:
    """A server that answers GO_AWAY for 30 s before it closes its channels; another takes over behind its address."""
    graceful = RemotingServerConfig(enable_shutdown_gracefully=True)
    setting = Setting(graceful, **settings)
    setting.call()
    return setting


def test_a_server_may_answer_go_away_for_30_seconds_before_it_closes() -> None:
    setting = leaving()
    setting.server_node.spawn(setting.server.leave(), "leave")
    setting.run_ms(29_900)
    assert len(setting.server.channels) == 1
    setting.run_ms(200)
    assert not setting.server.channels
    at_once = Setting()
    at_once.call()
    at_once.server_node.spawn(at_once.server.leave(), "leave")
    at_once.run_ms(1)
    assert not at_once.server.channels


def test_after_go_away_an_asynchronous_request_is_sent_once_more_over_a_new_channel() -> None:
    setting = leaving()
    setting.begin(SILENT, 60_000, b"waits on the old channel")
    setting.run_ms(10)
    setting.server.shutting_down = True

    def take_over(row: tuple[Any, ...]) -> None:
        if row[7] == "ResponseSent":
            setting.server.shutting_down = False

    setting.world.hooks.attach(take_over)
    setting.begin()
    setting.run_ms(100)
    ((_, future),) = setting.outcomes
    assert future.response is not None
    assert future.response.code == 0
    assert len(setting.events("ConnectionOpened")) == 2
    # What waits on the old channel is left in peace.
    assert len(setting.client.response_table) == 1
    assert len(setting.server.channels) == 2
    assert [event[6] for event in setting.events("ResponseReceived")].count("GO_AWAY") == 1


def test_a_second_go_away_is_a_send_error_and_so_is_the_first_where_reconnecting_is_off() -> None:
    for settings, connections in (({}, 3), ({"enable_reconnect_for_go_away": False}, 1)):
        setting = leaving(**settings)
        setting.server.shutting_down = True
        setting.begin()
        setting.run_ms(100)
        assert [type(future.error) for _, future in setting.outcomes] == [RemotingSendRequestException]
        with pytest.raises(RemotingSendRequestException):
            setting.call()
        assert len(setting.events("ConnectionOpened")) == connections


def test_a_peer_of_version_5_3_1_or_before_is_served_to_the_end() -> None:
    setting = leaving()
    setting.server.shutting_down = True
    request = RemotingCommand.request(ANSWERED, body=b"old")
    request.version = 475
    answer = setting.world.wait_for(
        setting.node.spawn(setting.client.invoke_sync(setting.address, request, 3_000), "call").join()
    )
    assert (answer.code, answer.body) == (0, b"old")


def test_hooks_hear_of_the_last_answer_only_when_a_request_was_sent_twice() -> None:
    setting = leaving()
    heard: list[str] = []

    class Noting(RPCHook):
        def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
            heard.append("before")

        def do_after_response(
            self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
        ) -> None:
            heard.append(f"after {response.code if response else None}")

    setting.client.rpc_hooks.append(Noting())
    setting.server.shutting_down = True

    def take_over(row: tuple[Any, ...]) -> None:
        if row[7] == "ResponseSent":
            setting.server.shutting_down = False

    setting.world.hooks.attach(take_over)
    setting.call()
    assert heard == ["before", "after 0"]
    setting.begin(SILENT, 100)
    setting.run_ms(5_000)
    assert heard == ["before", "after 0", "before"]


# -- name servers ---------------------------------------------------------------------------------------------------


def name_servers(seed: int, running: int = 3) -> tuple[World, RemotingClient, list[str]]:
    world = World(seed)
    addresses = []
    for k in range(3):
        node = world.node(f"namesrv-{k}")
        addresses.append(f"{node.spec.ip}:9876")
        if k < running:
            server = RemotingServer(node, 9876)
            server.register_default_processor(Some())
            server.start()
    client = RemotingClient(world.node("client"))
    client.update_name_server_address_list(addresses)
    return world, client, addresses


def test_the_list_of_name_servers_is_shuffled_and_the_same_ones_again_change_nothing() -> None:
    orders = set()
    for seed in range(12):
        _, client, addresses = name_servers(seed)
        order = client.name_server_addresses
        assert sorted(order) == addresses
        client.update_name_server_address_list(list(reversed(addresses)))
        assert client.name_server_addresses == order
        orders.add(tuple(order))
    assert len(orders) > 3


def test_the_first_name_server_is_drawn_and_each_failure_moves_on_to_the_next_of_the_list() -> None:
    world, client, _ = name_servers(5, running=0)
    node = world.nodes["client"]
    asked = []
    for _ in range(5):
        call = client.invoke_sync(None, RemotingCommand.request(ANSWERED), 3_000)
        with pytest.raises(RemotingConnectException):
            world.wait_for(node.spawn(call, "ask").join())
        asked.append(client.name_server_addresses.index(client.name_server_chosen or ""))
    assert asked == [(asked[0] + k) % 3 for k in range(5)]
    first = {name_servers(seed)[1].node.choose("name-server-index", 999) % 3 for seed in range(12)}
    assert first == {0, 1, 2}


def test_a_chosen_name_server_that_leaves_the_list_loses_its_channel() -> None:
    world, client, addresses = name_servers(5)
    node = world.nodes["client"]
    world.wait_for(node.spawn(client.invoke_sync(None, RemotingCommand.request(ANSWERED), 3_000), "ask").join())
    chosen = client.name_server_chosen
    client.update_name_server_address_list([address for address in addresses if address != chosen])
    assert client.name_server_chosen is None
    assert chosen not in client.channel_table
