"""The network: connections keep order and break as TCP's do, over links with delays, cuts and bandwidth."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import (
    FAULTS,
    ConnectionRefused,
    ConnectTimeout,
    Endpoint,
    EndpointClosed,
    LinkSpec,
    Node,
    NodeSpec,
    World,
)
from mqlab.trace.bus import Row
from mqlab.trace.events.world import ActionTaken


class Server:
    """Listens at port 10911 and writes down what it sees."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.endpoints: list[Endpoint] = []
        self.frames: list[Any] = []
        self.arrived_us: list[int] = []
        self.closed = 0
        node.boot = self.boot
        self.boot(node)

    def boot(self, node: Node) -> None:
        node.listen(10911, self.accept)

    def accept(self, endpoint: Endpoint) -> None:
        self.endpoints.append(endpoint)
        endpoint.on_frame = self.take
        endpoint.on_close = self.see_close

    def take(self, frame: Any) -> None:
        self.frames.append(frame)
        self.arrived_us.append(self.node.now_us())

    def see_close(self) -> None:
        self.closed += 1


class Client:
    """The connecting side, which writes down what it sees."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.frames: list[Any] = []
        self.closed = 0
        endpoint.on_frame = self.frames.append
        endpoint.on_close = self.see_close

    def see_close(self) -> None:
        self.closed += 1


@pytest.fixture
def server(world: World, node: Node) -> Server:
    """A server on its own machine, "beta"; the client's machine is "alpha"."""
    return Server(world.node("beta"))


def connect(world: World, node: Node, address: str = "10.0.0.2:10911", ms: int = 3_000) -> Client:
    """Connect from outside, by playing the world."""

    async def connecting() -> Client:
        return Client(await node.connect(address, ms))

    client: Client = world.wait_for(node.spawn(connecting(), "connect").join())
    return client


@pytest.fixture
def client(world: World, node: Node, server: Server) -> Client:
    """The client's side of a connection from "alpha" to the server."""
    return connect(world, node)


def test_frames_arrive_in_the_order_in_which_they_were_sent(world: World, client: Client, server: Server) -> None:
    for number in range(200):
        client.endpoint.send(number)
    world.run_for(10_000)
    assert server.frames == list(range(200))


def test_a_connection_that_is_held_back_keeps_its_order(world: World, client: Client, server: Server) -> None:
    for number in range(3):
        client.endpoint.send(number)
    (delivery,) = [entry for entry in world.pending() if entry.source == "alpha"]
    assert delivery.frame == 0
    world.hold(world.pending().index(delivery), 50_000)
    client.endpoint.send(3)
    world.run_for(40_000)
    assert server.frames == []
    world.run_for(20_000)
    assert server.frames == [0, 1, 2, 3]


def test_each_frame_takes_a_time_within_the_links_limits(world: World, node: Node, server: Server) -> None:
    world.network.default = LinkSpec(min_us=400, max_us=900)
    client = connect(world, node)
    delays = []
    for number in range(100):
        sent = world.now_us
        client.endpoint.send(number)
        world.run_for(5_000)
        delays.append(server.arrived_us[-1] - sent)
    assert min(delays) >= 400
    assert max(delays) <= 900
    assert len(set(delays)) > 50


def test_the_delay_of_a_frame_is_a_choice_that_can_be_overridden(node: Node) -> None:
    world = World(7, overrides={("link:alpha>beta", 1): 200})
    client_node = world.node("alpha")
    server = Server(world.node("beta"))
    client = connect(world, client_node)
    sent = world.now_us
    client.endpoint.send("frame")
    world.run_for(1_000)
    assert server.arrived_us == [sent + 300]


def test_both_sides_know_their_addresses(world: World, client: Client, node: Node, server: Server) -> None:
    assert (client.endpoint.local, client.endpoint.remote) == ("10.0.0.1:40000", "10.0.0.2:10911")
    assert (server.endpoints[0].local, server.endpoints[0].remote) == ("10.0.0.2:10911", "10.0.0.1:40000")
    assert connect(world, node).endpoint.local == "10.0.0.1:40001"


def test_the_server_can_speak_first(world: World, node: Node) -> None:
    """A frame that arrives before the connecting task goes on waits for its handler."""

    def greet(endpoint: Endpoint) -> None:
        endpoint.send("hello")
        endpoint.send("again")

    other = world.node("beta")
    other.listen(10911, greet)
    greeted = 0
    for _ in range(50):
        client = connect(world, node)
        world.run_for(2_000)
        greeted += client.frames == ["hello", "again"]
    assert greeted == 50


def test_nobody_listening_is_refused_after_a_round_trip(world: World, node: Node, server: Server) -> None:
    with pytest.raises(ConnectionRefused, match=r"nobody listens at 10\.0\.0\.2:9999"):
        connect(world, node, "10.0.0.2:9999")
    assert 200 <= world.now_us <= 600


def test_a_crashed_process_refuses_connections(world: World, node: Node, server: Server) -> None:
    FAULTS["crash"](world, "beta")
    with pytest.raises(ConnectionRefused):
        connect(world, node)


def test_an_address_without_a_machine_times_out(world: World, node: Node) -> None:
    with pytest.raises(ConnectTimeout, match=r"10\.9\.9\.9:10911 did not answer within 3000 ms"):
        connect(world, node, "10.9.9.9:10911")
    assert world.now_us == 3_000_000


def test_a_machine_without_power_times_out(world: World, node: Node, server: Server) -> None:
    FAULTS["power_off"](world, "beta")
    with pytest.raises(ConnectTimeout):
        connect(world, node)


@pytest.mark.parametrize("direction", [("alpha", "beta"), ("beta", "alpha")])
def test_a_cut_in_either_direction_lets_connecting_time_out(
    world: World, node: Node, server: Server, direction: tuple[str, str]
) -> None:
    FAULTS["cut"](world, *direction)
    with pytest.raises(ConnectTimeout):
        connect(world, node)


@pytest.mark.parametrize("direction", [("alpha", "beta"), ("beta", "alpha")])
@pytest.mark.parametrize(("healed_ms", "connected_s"), [(500, 1), (1_500, 3), (3_500, 7)])
def test_an_attempt_to_connect_is_repeated_until_the_cut_is_healed(
    world: World, node: Node, server: Server, direction: tuple[str, str], healed_ms: int, connected_s: int
) -> None:
    FAULTS["cut"](world, *direction)
    node.call_later(healed_ms, FAULTS["heal"], world, *direction)
    connect(world, node, ms=10_000)
    assert connected_s <= world.now_us / 1_000_000 < connected_s + 0.001
    assert len(server.endpoints) == 1


def test_an_answer_to_the_attempt_that_a_cut_has_lost_is_repeated(world: World, node: Node, server: Server) -> None:
    server.accept = lambda endpoint: FAULTS["cut"](world, "beta", "alpha")  # type: ignore[method-assign]
    server.boot(restarted(world, "beta"))
    node.call_later(500, FAULTS["heal"], world, "beta", "alpha")
    connect(world, node)
    assert 1 <= world.now_us / 1_000_000 < 1.001


def restarted(world: World, name: str) -> Node:
    """A machine whose process is killed and has not begun again."""
    world.nodes[name].boot = lambda node: None
    FAULTS["restart"](world, name)
    return world.nodes[name]


def test_a_machine_that_has_power_again_is_reached_by_the_next_attempt(
    world: World, node: Node, server: Server
) -> None:
    FAULTS["power_off"](world, "beta")
    node.call_later(700, FAULTS["restart"], world, "beta")
    connect(world, node)
    assert 1 <= world.now_us / 1_000_000 < 1.001


def test_nobody_goes_on_trying_to_connect_after_the_time_out(world: World, node: Node, server: Server) -> None:
    FAULTS["cut"](world, "alpha", "beta")
    with pytest.raises(ConnectTimeout):
        connect(world, node, ms=2_000)
    world.run_for(2_000_000)
    assert world.next_due_us() is None


def test_whoever_accepts_a_connection_does_it_in_its_own_process(world: World, node: Node, server: Server) -> None:
    rows: list[Row] = []
    world.hooks.attach(rows.append)

    def accept(endpoint: Endpoint) -> None:
        world.hooks.emit(ActionTaken("accepted", endpoint.remote))
        with pytest.raises(LearnerError, match="beta is playing a slice"):
            FAULTS["crash"](world, "beta")

    server.accept = accept  # type: ignore[method-assign]
    server.boot(restarted(world, "beta"))
    connect(world, node)
    assert [row[3] for row in rows if row[7] == "ActionTaken"] == ["beta"]


def test_a_connection_that_comes_after_the_time_out_is_closed_again(world: World, node: Node, server: Server) -> None:
    FAULTS["delay"](world, "beta", "alpha", 50)
    with pytest.raises(ConnectTimeout):
        connect(world, node, ms=10)
    world.run_for(1_000_000)
    assert server.closed == 1
    assert world.network.connections() == []


def test_a_connecting_task_that_is_cancelled_leaves_no_connection_open(
    world: World, node: Node, server: Server
) -> None:
    async def connecting() -> None:
        await node.connect("10.0.0.2:10911", 3_000)

    task = node.spawn(connecting(), "connect")
    world.run_for(0)
    task.cancel()
    world.run_for(1_000_000)
    assert world.network.connections() == []


def test_a_process_that_dies_while_it_connects_leaves_no_connection_open(
    world: World, node: Node, server: Server
) -> None:
    async def connecting() -> None:
        await node.connect("10.0.0.2:10911", 3_000)

    node.spawn(connecting(), "connect")
    world.run_for(0)
    FAULTS["crash"](world, "alpha")
    world.run_for(1_000_000)
    assert world.network.connections() == []


def test_a_frozen_process_still_accepts_connections_and_answers_after_the_thaw(
    world: World, node: Node, server: Server
) -> None:
    FAULTS["freeze"](world, "beta")
    client = connect(world, node)
    client.endpoint.send("one")
    client.endpoint.send("two")
    world.run_for(1_000_000)
    assert (server.endpoints, server.frames) == ([], [])
    FAULTS["thaw"](world, "beta")
    world.run_for(0)
    assert server.frames == ["one", "two"]


def test_closing_lets_what_was_sent_before_arrive_and_then_the_other_side_sees_the_end(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    client.endpoint.send("last words")
    client.endpoint.close()
    client.endpoint.close()
    world.run_for(10_000)
    assert (server.frames, server.closed) == (["last words"], 1)
    assert not server.endpoints[0].open
    assert client.closed == 0


def test_sending_on_a_closed_connection_is_an_error(client: Client, server: Server) -> None:
    client.endpoint.close()
    with pytest.raises(EndpointClosed, match=r"10\.0\.0\.1:40000 -> 10\.0\.0\.2:10911 is closed"):
        client.endpoint.send("too late")


def test_both_sides_may_close_at_once(world: World, client: Client, server: Server) -> None:
    client.endpoint.close()
    server.endpoints[0].close()
    world.run_for(10_000)
    assert (client.closed, server.closed) == (0, 0)
    assert world.network.connections() == []


def test_connections_that_have_ended_leave_nothing_behind(world: World, node: Node, server: Server) -> None:
    for ending in ("client", "server", "both", "break"):
        client = connect(world, node)
        if ending in ("client", "both"):
            client.endpoint.close()
        if ending in ("server", "both"):
            server.endpoints[-1].close()
        if ending == "break":
            FAULTS["disconnect"](world, "alpha", "beta")
        world.run_for(10_000)
    assert world.network.open_sides == 0
    assert not world.network.link("alpha", "beta").pipes
    assert not world.network.link("beta", "alpha").pipes


def test_a_broken_connection_loses_what_is_in_flight_and_both_sides_see_it(
    world: World, node: Node, server: Server
) -> None:
    rows: list[Row] = []
    client = connect(world, node)
    world.hooks.attach(rows.append)
    client.endpoint.send("lost")
    FAULTS["disconnect"](world, "alpha", "beta")
    world.run_for(10_000)
    assert (server.frames, server.closed, client.closed) == ([], 1, 1)
    assert [(row[3], row[7]) for row in rows] == [("alpha", "ConnectionBroken"), ("beta", "ConnectionBroken")]
    with pytest.raises(EndpointClosed):
        client.endpoint.send("more")


def test_a_new_connection_works_after_one_has_broken(world: World, node: Node, server: Server) -> None:
    connect(world, node)
    FAULTS["disconnect"](world, "beta", "alpha")
    client = connect(world, node)
    client.endpoint.send("again")
    world.run_for(10_000)
    assert server.frames == ["again"]


# -- partitions --------------------------------------------------------------------------------------------------------


def test_a_partition_holds_frames_back_and_healing_delivers_them_in_order(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    FAULTS["partition"](world, "alpha", "beta")
    for number in range(10):
        client.endpoint.send(number)
        world.run_for(100_000)
    server.endpoints[0].send("back")
    world.run_for(1_000_000)
    assert (server.frames, client.frames) == ([], [])
    FAULTS["unpartition"](world, "alpha", "beta")
    client.endpoint.send(10)
    world.run_for(10_000)
    assert (server.frames, client.frames) == (list(range(11)), ["back"])


def test_a_frame_in_flight_when_the_cut_comes_is_held_back_too(world: World, client: Client, server: Server) -> None:
    client.endpoint.send("frame")
    FAULTS["cut"](world, "alpha", "beta")
    world.run_for(10_000)
    assert server.frames == []
    FAULTS["heal"](world, "alpha", "beta")
    world.run_for(10_000)
    assert server.frames == ["frame"]


def test_a_cut_that_is_healed_before_the_frame_is_due_changes_nothing(
    world: World, client: Client, server: Server
) -> None:
    client.endpoint.send("frame")
    FAULTS["cut"](world, "alpha", "beta")
    FAULTS["heal"](world, "alpha", "beta")
    world.run_for(300)
    assert server.frames == ["frame"]


def test_an_asymmetric_cut_stops_one_direction_only(world: World, client: Client, server: Server) -> None:
    FAULTS["cut"](world, "beta", "alpha")
    client.endpoint.send("request")
    server.endpoints[0].send("response")
    world.run_for(1_000_000)
    assert (server.frames, client.frames) == (["request"], [])


def test_a_partition_of_groups_leaves_the_others_alone(world: World, node: Node, server: Server) -> None:
    third = world.node("gamma")
    FAULTS["partition"](world, ["alpha"], ["gamma"])
    connect(world, node)
    connect(world, third)
    assert len(server.endpoints) == 2


def test_the_end_of_a_connection_is_held_back_by_a_cut_too(world: World, client: Client, server: Server) -> None:
    FAULTS["cut"](world, "alpha", "beta")
    client.endpoint.close()
    world.run_for(1_000_000)
    assert server.closed == 0
    FAULTS["heal"](world, "alpha", "beta")
    world.run_for(10_000)
    assert server.closed == 1


# -- delay and bandwidth -----------------------------------------------------------------------------------------------


def test_a_delay_adds_to_the_link_until_it_is_taken_back_and_order_is_kept(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    FAULTS["delay"](world, "alpha", "beta", 250)
    sent = world.now_us
    client.endpoint.send("slow")
    FAULTS["delay"](world, "alpha", "beta", 0)
    client.endpoint.send("behind")
    world.run_for(1_000_000)
    assert server.frames == ["slow", "behind"]
    assert sent + 250_100 <= server.arrived_us[0] <= server.arrived_us[1] <= sent + 250_300
    sent = world.now_us
    client.endpoint.send("fast again")
    world.run_for(1_000)
    assert server.arrived_us[2] - sent <= 300


def test_bandwidth_is_shared_by_all_frames_of_a_link(world: World, node: Node, server: Server) -> None:
    world.network.default = LinkSpec(min_us=100, max_us=100, bytes_per_ms=1_000)
    clients = [connect(world, node), connect(world, node)]
    sent = world.now_us
    for _ in range(5):
        for client in clients:
            client.endpoint.send("frame", size=1_000)
    world.run_for(1_000_000)
    assert [at - sent for at in server.arrived_us] == [100 + 1_000 * n for n in range(1, 11)]


def test_a_link_that_was_idle_has_no_backlog(world: World, node: Node, server: Server) -> None:
    world.network.default = LinkSpec(min_us=100, max_us=100, bytes_per_ms=1_000)
    client = connect(world, node)
    for _ in range(3):
        sent = world.now_us
        client.endpoint.send("frame", size=500)
        world.run_for(10_000)
        assert server.arrived_us[-1] - sent == 600


# -- ends of processes -------------------------------------------------------------------------------------------------


def test_a_crash_closes_the_connections_after_what_was_sent_has_arrived(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    server.endpoints[0].send("answer")
    FAULTS["crash"](world, "beta")
    client.endpoint.send("to a dead process")
    world.run_for(10_000)
    assert (client.frames, client.closed, server.frames) == (["answer"], 1, [])
    assert world.network.open_sides == 0


def test_a_power_loss_is_silent(world: World, client: Client, server: Server) -> None:
    server.endpoints[0].send("never arrives")
    FAULTS["power_off"](world, "beta")
    client.endpoint.send("into the dark")
    world.run_for(60_000_000)
    assert (client.frames, client.closed, client.endpoint.open) == ([], 0, True)


def test_a_machine_that_is_back_after_a_power_loss_resets_its_old_connections(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    FAULTS["power_off"](world, "beta")
    world.run_for(1_000_000)
    FAULTS["restart"](world, "beta")
    world.run_for(10_000)
    assert (client.closed, client.endpoint.open) == (1, False)
    again = connect(world, node)
    again.endpoint.send("hello")
    world.run_for(10_000)
    assert server.frames == ["hello"]


def test_a_frozen_process_sees_the_end_of_a_connection_when_it_thaws(
    world: World, client: Client, server: Server
) -> None:
    FAULTS["freeze"](world, "beta")
    client.endpoint.send("frame")
    client.endpoint.close()
    world.run_for(1_000_000)
    FAULTS["thaw"](world, "beta")
    world.run_for(10_000)
    assert (server.frames, server.closed) == (["frame"], 1)


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_a_port_can_be_opened_once_by_a_process_and_again_by_the_next(world: World, node: Node) -> None:
    node.listen(9876, lambda endpoint: None)
    with pytest.raises(LearnerError, match="alpha listens at port 9876 already"):
        node.listen(9876, lambda endpoint: None)
    node.boot = lambda node: node.listen(9876, lambda endpoint: None)
    FAULTS["restart"](world, "alpha")
    assert world.run_for(1_000)


def test_a_port_that_was_closed_refuses_and_can_be_opened_again(
    world: World, client: Client, node: Node, server: Server
) -> None:
    server.node.stop_listening(10911)
    with pytest.raises(ConnectionRefused):
        connect(world, node)
    client.endpoint.send("still there")
    world.run_for(10_000)
    assert server.frames == ["still there"]
    server.boot(server.node)
    connect(world, node)


def test_two_machines_cannot_have_one_address(world: World, node: Node) -> None:
    with pytest.raises(LearnerError, match=r"beta and alpha have the same address 10\.0\.0\.1"):
        world.node("beta", NodeSpec(ip="10.0.0.1"))


def test_two_machines_cannot_have_one_name(world: World, node: Node) -> None:
    with pytest.raises(LearnerError, match="there is a node 'alpha' already"):
        world.node("alpha")


def test_what_is_under_way_is_seen_in_the_order_in_which_it_will_arrive(
    world: World, node: Node, server: Server
) -> None:
    client = connect(world, node)
    for number in range(5):
        client.endpoint.send(number)
    client.endpoint.close()
    flying = world.network.under_way()
    assert [(link.source, link.target, frame) for _, link, frame in flying] == [("alpha", "beta", n) for n in range(5)]
    world.run_for(10_000)
    assert world.network.under_way() == []
