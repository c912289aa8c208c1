"""The network: connections that keep order and break as TCP does, over links with delays, cuts and bandwidth.

A single frame can be neither lost nor doubled: a cut link holds frames back until it is healed (TCP sends them again),
and losing one for good means that the connection breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.sim.connecting import ConnectionAttempt, ConnectTimeout
from mqlab.sim.future import Future
from mqlab.sim.link import LOOPBACK, Link, LinkSpec, Pipe
from mqlab.sim.node import WaitTimeout
from mqlab.sim.target import Target
from mqlab.sim.transport import Transport
from mqlab.sim.traps import sleep_us
from mqlab.trace.events.network import ConnectionBroken, ConnectionClosed

if TYPE_CHECKING:
    from mqlab.sim.life import Life
    from mqlab.sim.node import Node
    from mqlab.sim.world import World

AcceptHandler = Callable[[Transport], None]


class _Close(NamedTuple):
    """The last thing in a pipe: the other side has closed."""


_CLOSE = _Close()


class Endpoint(Transport):
    """One side of a connection of the world, in one life of a process."""

    __slots__ = ("life", "network", "out", "peer")

    def __init__(self, network: Network, life: Life, local: str, remote: str, connection_id: int) -> None:
        super().__init__(local, remote, connection_id, network.world.wire_bytes)
        self.network = network
        self.life = life
        self.out: Pipe
        self.peer: Endpoint

    @property
    def counts_bytes(self) -> bool:
        """Whether frames are bytes, or take longer the more bytes they have."""
        return self.as_bytes or self.out.link.bytes_per_ms > 0

    def put(self, frame: Any, size: int) -> None:
        """Put a frame into the pipe to the other side."""
        self.out.put(frame, size)

    def close(self) -> None:
        """Close in good order: what was sent before still arrives, then the other side sees the end."""
        if self.open:
            self.open = False
            self.out.put(_CLOSE, 0)
            self.network.forget(self)
            self._emit(ConnectionClosed(self.local, self.remote, self.connection_id))

    def deliver(self, frame: Any) -> None:
        """Take a frame from the pipe (the network calls this)."""
        if frame is _CLOSE:
            self.network.forget(self)
            if self.open:
                self.open = False
                self._emit(ConnectionClosed(self.local, self.remote, self.connection_id))
                self.on_close()
        elif self.open:
            self._on_frame(frame)

    def broken(self) -> None:
        """The connection broke under this side (a reset, a dead peer): nothing more comes or goes."""
        if self.open:
            self.open = False
            self.network.forget(self)
            self._emit(ConnectionBroken(self.local, self.remote, self.connection_id))
            self.on_close()

    def _emit(self, event: tuple[Any, ...]) -> None:
        hooks = self.life.world.hooks
        if hooks.on:
            hooks.emit(event)

    def __repr__(self) -> str:
        return f"<Endpoint {self.local} -> {self.remote}: {'open' if self.open else 'closed'}>"


class Network:
    """All links and connections of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.default = LinkSpec()
        self._links: dict[tuple[str, str], Link] = {}
        self._by_ip: dict[str, Node] = {}
        self._listeners: dict[str, tuple[Life, AcceptHandler]] = {}
        self.also_at: dict[str, str] = {}
        """Addresses that somebody outside uses for those of nodes (`mqlab.sim.outside`): here they lead there, too."""
        self._endpoints: dict[Endpoint, None] = {}
        self._next_connection = 0
        self._next_port: dict[str, int] = {}

    def add(self, node: Node) -> None:
        """Give a new node its place; its address must be free."""
        if node.spec.ip in self._by_ip:
            raise LearnerError(
                f"{node.name} and {self._by_ip[node.spec.ip].name} have the same address {node.spec.ip}",
                "give each node an address of its own",
            )
        self._by_ip[node.spec.ip] = node

    def take_away(self, node: Node) -> None:
        """Forget a node that nobody has reached yet."""
        del self._by_ip[node.spec.ip]

    def link(self, source: str, target: str) -> Link:
        """The direction from one node (by name) to another."""
        link = self._links.get((source, target))
        if link is None:
            spec = LOOPBACK if source == target else self.default
            link = self._links[source, target] = Link(self.world, source, target, spec)
        return link

    def lay(self, source: str, target: str, spec: LinkSpec) -> None:
        """Let the direction from one node to another behave so, before the first connection between them."""
        self._links[source, target] = Link(self.world, source, target, spec)

    def node_at(self, address: str) -> Node | None:
        """The node with the host part of "ip:port", or None."""
        return self._by_ip.get(address.rpartition(":")[0])

    def listen(self, node: Node, port: int, on_accept: AcceptHandler) -> None:
        """Open a port; LearnerError if this process has it open already."""
        address = f"{node.spec.ip}:{port}"
        known = self._listeners.get(address)
        if known is not None and known[0] is node.life:
            raise LearnerError(f"{node.name} listens at port {port} already", "choose another port")
        self._listeners[address] = (node.life, on_accept)

    def stop_listening(self, node: Node, port: int) -> None:
        """Close a port: new connections are refused, those made stay."""
        self._listeners.pop(f"{node.spec.ip}:{port}", None)

    async def connect(self, node: Node, address: str, ms: int) -> Transport:
        """Open a connection from a node: one round trip, refused or timed out as on a real network."""
        await self._load_network_classes(node)
        address = self.also_at.get(address, address)
        target = self.node_at(address)
        answer: Future[Transport] = Future(f"connection to {address}")
        if target is not None:
            ConnectionAttempt(self, node, target, address, answer).send()
        elif self.world.outside.reaches(address):
            self.world.outside.connect(node.life, address, answer)
        try:
            return await node.wait(answer, ms)
        except WaitTimeout:
            raise ConnectTimeout(f"{address} did not answer within {ms} ms") from None
        finally:
            self._give_up(answer)

    async def _load_network_classes(self, node: Node) -> None:
        life, now = node.life, self.world.now_us
        if life.network_ready_us < 0:
            life.network_ready_us = now + node.spec.first_connect_us
        if now < life.network_ready_us:
            await sleep_us(life.network_ready_us - now)

    def _give_up(self, answer: Future[Transport]) -> None:
        """Nobody waits any more: a connection that is made all the same will be closed again."""
        if not answer.done:
            answer.set_exception(ConnectTimeout(f"{answer.label} came too late"))

    def listener(self, address: str, node: Node) -> AcceptHandler | None:
        """Who takes connections in at an address of this node; None when its present process does not listen there."""
        life, on_accept = self._listeners.get(address, (None, None))
        return on_accept if life is node.life and not node.life.over else None

    def next_connection(self) -> int:
        """The number of one more connection."""
        self._next_connection += 1
        return self._next_connection

    def pair(self, caller: Life, callee: Life, address: str) -> tuple[Endpoint, Endpoint]:
        """Both sides of a new connection, the caller's first."""
        number = self.next_connection()
        port = self._next_port.get(caller.node_name, 40_000)
        self._next_port[caller.node_name] = port + 1
        here = f"{self.world.nodes[caller.node_name].spec.ip}:{port}"
        near, far = Endpoint(self, caller, here, address, number), Endpoint(self, callee, address, here, number)
        near.peer, far.peer = far, near
        near.out = Pipe(self.world, self.link(caller.node_name, callee.node_name), far, number * 2)
        far.out = Pipe(self.world, self.link(callee.node_name, caller.node_name), near, number * 2 + 1)
        for endpoint in (near, far):
            endpoint.out.link.pipes[endpoint.out] = None
            self._endpoints[endpoint] = None
        return near, far

    def call_later(self, life: Life, us: int, callback: Callable[[], None]) -> None:
        """Let something of the network's happen to a process, in a slice of its own."""
        self.world.push(self.world.now_us + us, _Call(life, callback), 0)

    def forget(self, endpoint: Endpoint) -> None:
        """Drop a side of a connection that has ended."""
        self._endpoints.pop(endpoint, None)
        endpoint.peer.out.link.pipes.pop(endpoint.peer.out, None)

    @property
    def open_sides(self) -> int:
        """How many sides of connections there are that have not ended yet."""
        return len(self._endpoints)

    def connections(self) -> list[Endpoint]:
        """The open sides of all connections, in the order in which they were opened."""
        return [endpoint for endpoint in self._endpoints if endpoint.open]

    def under_way(self) -> list[tuple[int, Link, Any]]:
        """The frames in flight as (due_us, link, frame), in the order in which they are due."""
        flying = [
            (due, link, frame)
            for link in self._links.values()
            for pipe in link.pipes
            for due, frame, _ in pipe.frames
            if frame is not _CLOSE
        ]
        return sorted(flying, key=lambda flight: flight[0])

    # -- what faults do ---------------------------------------------------------------------------------------------

    def process_died(self, life: Life, *, silent: bool) -> None:
        """End all connections of a process: the others see a close, unless the whole machine went dark (`silent`)."""
        self.world.outside.process_died(life, silent=silent)
        for endpoint in [e for e in self._endpoints if e.life is life]:
            endpoint.open = False
            self.forget(endpoint)
            endpoint.peer.out.drop()
            if silent:
                endpoint.out.drop()
            else:
                endpoint.out.put(_CLOSE, 0)

    def reset_dead_peers(self, node: Node) -> None:
        """A machine is back after a power loss: what still talks to its old connections is answered with a reset."""
        self.world.outside.reset_dead_peers(node.life)
        for endpoint in self.connections():
            if endpoint.peer.life.node_name == node.name and endpoint.peer.life is not node.life:
                delay = self.link(endpoint.life.node_name, node.name).draw_us(0)
                self.call_later(endpoint.life, delay, endpoint.broken)

    def break_connections(self, a: str, b: str) -> int:
        """Break every connection between two nodes: what is in flight is lost, both sides see it. Returns how many."""
        near = [e for e in self.connections() if e.life.node_name == a and e.peer.life.node_name == b]
        for endpoint in near:
            peer = endpoint.peer
            endpoint.out.drop()
            peer.out.drop()
            for side in (endpoint, peer):
                self.call_later(side.life, 0, side.broken)
        return len(near)

    def cut(self, source: str, target: str) -> None:
        """Let nothing through from one node to another (one direction)."""
        self.link(source, target).cut = True

    def heal(self, source: str, target: str) -> None:
        """Let it through again; what was held back follows."""
        link = self.link(source, target)
        if link.cut:
            link.cut = False
            for pipe in list(link.pipes):
                pipe.heal()


class _Call(Target):
    """A callback of the network's own on the agenda."""

    __slots__ = ("callback",)

    def __init__(self, life: Life, callback: Callable[[], None]) -> None:
        self.life = life
        self.callback = callback
        self.name = "network"
        self.token = 0

    def fire(self) -> None:
        """Call back, and never again."""
        self.token = -1
        self.callback()
