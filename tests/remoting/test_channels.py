"""Channels: idleness, bad bytes, listeners, and the choice of a name server."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import RemotingConnectException
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import (
    Channel,
    ChannelEventListener,
    RemotingClient,
    RemotingServer,
    RequestProcessor,
    waiting_request,
)
from mqlab.remoting.endpoint_channel import EndpointChannel
from mqlab.remoting.frame_reader import FrameReader
from mqlab.sim import EndpointClosed, Node, Transport, World


class Ok(RequestProcessor):
    """Says yes to everything."""

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(0)


@pytest.fixture
def world() -> World:
    return World(1)


def serve(world: World, name: str, port: int = 9876) -> tuple[Node, RemotingServer]:
    node = world.node(name)
    server = RemotingServer(node, port)
    server.register_default_processor(Ok())
    server.start()
    return node, server


def ask(world: World, node: Node, client: RemotingClient, address: str | None) -> RemotingCommand:
    call = client.invoke_sync(address, RemotingCommand.request(1), 3000)
    answer: RemotingCommand = world.wait_for(node.spawn(call, "ask").join())
    return answer


def test_a_channel_that_is_idle_for_120_seconds_is_closed_and_not_a_moment_earlier(world: World) -> None:
    _, server = serve(world, "server")
    node = world.node("client")
    client = RemotingClient(node)
    ask(world, node, client, "10.0.0.1:9876")
    world.run_for(100_000_000)
    ask(world, node, client, "10.0.0.1:9876")
    last_us = world.now_us
    world.run_to(last_us + 119_900_000)
    assert client.is_channel_writable("10.0.0.1:9876")
    assert len(server.channels) == 1
    world.run_to(last_us + 120_100_000)
    assert not client.is_channel_writable("10.0.0.1:9876")
    assert not server.channels


def test_an_idle_channel_costs_no_slice_per_frame(world: World) -> None:
    serve(world, "server")
    node = world.node("client")
    client = RemotingClient(node)
    for _ in range(100):
        ask(world, node, client, "10.0.0.1:9876")
    before = world.slice_no
    world.run_for(119_000_000)
    assert world.slice_no - before <= 2


def test_listeners_hear_of_connections_that_come_and_go(world: World) -> None:
    _, server = serve(world, "server")
    node = world.node("client")
    client = RemotingClient(node)
    heard: list[str] = []

    class Listening(ChannelEventListener):
        def __init__(self, side: str) -> None:
            self.side = side

        def on_connect(self, channel: Channel) -> None:
            heard.append(f"{self.side} connected to {channel.remote_address}")

        def on_close(self, channel: Channel) -> None:
            heard.append(f"{self.side} lost {channel.remote_address}")

    server.channel_listeners.append(Listening("server"))
    client.channel_listeners.append(Listening("client"))
    ask(world, node, client, "10.0.0.1:9876")
    client.shutdown()
    world.run_for(1_000_000)
    assert heard == [
        "server connected to 10.0.0.2:40000",
        "client connected to 10.0.0.1:9876",
        "client lost 10.0.0.1:9876",
        "server lost 10.0.0.2:40000",
    ]


def test_bytes_that_are_no_command_close_the_connection(world: World) -> None:
    _, server = serve(world, "server")
    node = world.node("client")
    rows: list[tuple[Any, ...]] = []
    world.hooks.attach(rows.append)

    async def send_nonsense() -> Any:
        endpoint = await node.connect("10.0.0.1:9876", 3000)
        endpoint.send(b"GET / HTTP/1.1\r\n")
        return endpoint

    endpoint = world.wait_for(node.spawn(send_nonsense(), "nonsense").join())
    world.run_for(1_000_000)
    assert not endpoint.open
    assert not server.channels
    assert [row[7] for row in rows].count("FrameRefused") == 1


def test_a_command_that_comes_in_pieces_is_answered_once_it_is_whole(world: World) -> None:
    serve(world, "server")
    node = world.node("client")
    heard: list[RemotingCommand] = []
    frame = RemotingCommand.request(9_999).encode()

    async def send_in_pieces() -> None:
        endpoint = await node.connect("10.0.0.1:9876", 3000)
        endpoint.on_frame = heard.append
        endpoint.send(frame[:3])
        await node.sleep(5)
        endpoint.send(frame[3:] + frame)

    world.wait_for(node.spawn(send_in_pieces(), "pieces").join())
    world.run_for(1_000_000)
    assert [answer.code for answer in heard] == [0, 0]


def test_a_server_that_was_shut_down_refuses_connections(world: World) -> None:
    _, server = serve(world, "server")
    node = world.node("client")
    server.shutdown()
    with pytest.raises(RemotingConnectException):
        ask(world, node, RemotingClient(node), "10.0.0.1:9876")


def test_a_client_stays_with_its_name_server_until_that_breaks_and_then_takes_the_next() -> None:
    world = World(3)
    servers = [serve(world, f"namesrv-{k}") for k in range(3)]
    node = world.node("client")
    client = RemotingClient(node)
    addresses = [f"10.0.0.{k}:9876" for k in (1, 2, 3)]
    client.update_name_server_address_list(addresses)
    for _ in range(5):
        ask(world, node, client, None)
    first = client.name_server_chosen
    assert first in addresses
    servers[addresses.index(first)][1].shutdown()
    world.run_for(100_000)
    ask(world, node, client, None)
    assert client.name_server_chosen == addresses[(addresses.index(first) + 1) % 3]


def test_a_started_client_connects_to_every_name_server_and_comes_back_to_one_that_was_away() -> None:
    world = World(3)
    nodes = [serve(world, f"namesrv-{k}") for k in range(2)]
    node = world.node("client")
    client = RemotingClient(node)
    client.update_name_server_address_list(["10.0.0.1:9876", "10.0.0.2:9876"])
    client.start()
    world.run_for(1_000_000)
    assert sorted(client.channel_table) == ["10.0.0.1:9876", "10.0.0.2:9876"]
    nodes[0][1].shutdown()
    world.run_for(1_000_000)
    assert sorted(client.channel_table) == ["10.0.0.2:9876"]
    again = RemotingServer(nodes[0][0], 9876)
    again.start()
    world.run_for(3_000_000)
    assert sorted(client.channel_table) == ["10.0.0.1:9876", "10.0.0.2:9876"]


def test_without_a_name_server_a_call_to_it_fails(world: World) -> None:
    node = world.node("client")
    with pytest.raises(RemotingConnectException, match="connect to null failed"):
        ask(world, node, RemotingClient(node), None)


def test_a_job_of_a_pool_tells_which_request_waits_in_it(world: World) -> None:
    server_node, server = serve(world, "server")
    pool = server_node.pool("narrow", 1)
    server.register_processor(7, Ok(), pool, service_us=500_000)
    node = world.node("client")
    client = RemotingClient(node)
    for _ in range(2):
        client.invoke_async("10.0.0.1:9876", RemotingCommand.request(7), 3000, lambda _: None)
    world.run_for(400_000)
    (job,) = pool.take_older_than(200_000)
    waiting = waiting_request(job)
    assert waiting is not None
    assert waiting[1].code == 7
    server.refuse(*waiting, 2, "[TIMEOUT_CLEAN_QUEUE]broker busy")
    world.run_for(10_000)
    assert client.semaphore_async.permits == 65534


def silent_pair(world: World) -> tuple[list[RemotingCommand], Channel, Node]:
    """A client that hears and never says a word, and the server's side of its connection, idle after 120 s."""
    _, server = serve(world, "server")
    node = world.node("client")
    heard: list[RemotingCommand] = []

    async def connect() -> None:
        endpoint = await node.connect("10.0.0.1:9876", 3000)
        endpoint.on_frame = heard.append

    world.wait_for(node.spawn(connect(), "connect").join())
    world.run_for(1_000_000)
    (channel,) = server.channels
    return heard, channel, node


def test_a_channel_that_only_writes_is_not_idle(world: World) -> None:
    heard, channel, _ = silent_pair(world)
    for _ in range(5):
        world.run_for(100_000_000)
        channel.write(RemotingCommand.request(1))
    world.run_for(119_000_000)
    assert channel.is_active
    assert len(heard) == 5
    world.run_for(2_000_000)
    assert not channel.is_active


def test_a_channel_that_only_reads_is_not_idle(world: World) -> None:
    _, server = serve(world, "server")
    node = world.node("client")

    async def connect() -> Any:
        return await node.connect("10.0.0.1:9876", 3000)

    endpoint = world.wait_for(node.spawn(connect(), "connect").join())
    request = RemotingCommand.request(1)
    request.mark_oneway()
    for _ in range(5):
        world.run_for(100_000_000)
        endpoint.send(request)
    world.run_for(119_000_000)
    assert len(server.channels) == 1
    world.run_for(2_000_000)
    assert not server.channels


def test_what_was_written_is_not_changed_by_its_writer_afterwards(world: World) -> None:
    heard, channel, _ = silent_pair(world)
    command = RemotingCommand.request(1)
    command.remark = "as written"
    channel.write(command)
    command.remark = "too late"
    world.run_for(1_000_000)
    assert [each.remark for each in heard] == ["as written"]


def test_a_closed_channel_takes_no_command(world: World) -> None:
    _, channel, _ = silent_pair(world)
    channel.close()
    with pytest.raises(EndpointClosed, match="is closed"):
        channel.write(RemotingCommand.request(1))


def test_what_comes_behind_bytes_that_are_no_command_is_not_looked_at(world: World) -> None:
    serve(world, "server")
    node = world.node("client")
    rows: list[tuple[Any, ...]] = []
    world.hooks.attach(rows.append)
    bad = b"\x00\x00\x00\x05\x00\x00\x00\x01{"

    async def send_all() -> None:
        endpoint = await node.connect("10.0.0.1:9876", 3000)
        endpoint.send(bad + bad + RemotingCommand.request(1).encode())

    world.wait_for(node.spawn(send_all(), "nonsense").join())
    world.run_for(1_000_000)
    kinds = [row[7] for row in rows]
    assert (kinds.count("FrameRefused"), kinds.count("RequestReceived")) == (1, 0)


def test_behind_a_command_that_closes_the_channel_nothing_is_read(world: World) -> None:
    server, node = world.node("server"), world.node("client")
    heard: list[int] = []

    def closing(channel: Channel, command: RemotingCommand) -> None:
        heard.append(command.code)
        channel.close()

    server.listen(9876, lambda endpoint: EndpointChannel(server, endpoint, closing, lambda _: None, 0))

    async def send_two() -> None:
        endpoint = await node.connect("10.0.0.1:9876", 3000)
        endpoint.send(RemotingCommand.request(1).encode() + RemotingCommand.request(2).encode())

    world.wait_for(node.spawn(send_two(), "two in one piece").join())
    world.run_for(1_000_000)
    assert heard == [1]


class Outside(Transport):
    """A connection that no link of the world carries: bytes come and go."""

    def __init__(self) -> None:
        super().__init__("10.0.0.1:9876", "127.0.0.1:50000", connection_id=7, as_bytes=True)
        self.written = b""

    def put(self, frame: bytes, size: int) -> None:
        assert len(frame) == size
        self.written += frame

    def close(self) -> None:
        self.open = False


def test_one_connection_may_be_bytes_in_a_world_where_commands_travel_as_they_are(world: World) -> None:
    node, server = serve(world, "server")
    outside = Outside()
    server.accept(outside)
    request = RemotingCommand.request(1)
    whole = request.encode()
    for piece in (whole[:5], whole[5:]):
        node.call_soon(outside.on_frame, piece)
    world.run_for(1_000_000)
    answers = FrameReader()
    answers.receive_data(outside.written)
    answer = answers.next_command()
    assert answer is not None
    assert (answer.code, answer.opaque) == (0, request.opaque)
    assert answers.next_command() is None
    assert ask(world, world.node("inside"), RemotingClient(world.nodes["inside"]), "10.0.0.1:9876").code == 0


def test_what_no_link_carries_is_closed_when_it_is_idle_or_the_server_ends(world: World) -> None:
    _, server = serve(world, "server")
    idle, left = Outside(), Outside()
    server.accept(idle)
    world.run_for(121_000_000)
    assert not idle.open
    server.accept(left)
    server.shutdown()
    assert not left.open
    assert not server.channels
