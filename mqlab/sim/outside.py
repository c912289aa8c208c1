"""What comes from outside: connections that begin and end in no node of the world, such as a program's over a socket.
And what goes there: those that a process of the world opens to an address which it may reach outside.

Each thing that happens to such a connection is an action, like a fault: it has a slice and a time, stands in the
report, and a replay does it again, with nobody outside. `OUTSIDE` is the vocabulary.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab.sim.connecting import establish, refuse
from mqlab.sim.transport import Transport
from mqlab.trace.events.network import ConnectionBroken, ConnectionClosed, ConnectionOpened

if TYPE_CHECKING:
    from mqlab.sim.future import Future
    from mqlab.sim.life import Life
    from mqlab.sim.world import World

Output = Callable[[int, "bytes | None", bool], None]
"""Takes what the world sends to a connection: (its number, bytes or None for its end, whether it broke)."""

Dial = Callable[[int, str], None]
"""Connects to an address outside: (the number of the connection, "HOST:PORT")."""


def _nobody(number: int, data: bytes | None, broken: bool) -> None:
    """Nobody is outside: a replay."""


def _nowhere(number: int, address: str) -> None:
    """Nobody is outside: what is dialled is answered by the recording, or by nobody."""


class OutsideEnd(Transport):
    """The world's side of a connection from outside, in one life of the process that took it in."""

    __slots__ = ("_things", "came_to", "life", "number", "outside")

    def __init__(self, outside: Outside, life: Life, number: int, local: str, remote: str, came_to: str) -> None:
        super().__init__(local, remote, outside.world.network.next_connection(), True, True)
        self.outside = outside
        self.life = life
        self.number = number
        """Its number among the connections from outside."""
        self.came_to = came_to
        """The host that the other side used to come here."""
        self._things: deque[Callable[[], None]] = deque()

    def happens(self, thing: Callable[[], None]) -> None:
        """Let something happen to the connection in a slice of its process, after all that has happened before."""
        self._things.append(thing)
        self.outside.world.network.call_later(self.life, 0, self._next)

    def _next(self) -> None:
        self._things.popleft()()

    def put(self, frame: Any, size: int) -> None:
        """Hand bytes to whoever is outside."""
        self.outside.output(self.number, frame, False)

    def close(self) -> None:
        """Close in good order: what was sent before still arrives."""
        if self.open:
            self._end(ConnectionClosed(self.local, self.remote, self.connection_id))
            self.outside.output(self.number, None, False)

    def outer_address(self, address: str) -> str:
        """How the other side can reach a process at an address of the world; the same one where it cannot."""
        outer = self.outside.advertised.get(address, address)
        return self.came_to + outer if outer.startswith(":") else outer

    def bring(self, data: bytes) -> None:
        """Take in bytes that came from the other side."""
        if self.open:
            self._on_frame(data)

    def ended(self, broken: bool) -> None:
        """The other side has closed the connection, or it broke."""
        if self.open:
            kind = ConnectionBroken if broken else ConnectionClosed
            self._end(kind(self.local, self.remote, self.connection_id))
            self.on_close()

    def reset(self) -> None:
        """The process here is gone, and its machine says so."""
        self.open = False
        self.outside.ends.pop(self.number, None)
        self.outside.output(self.number, None, True)

    def _end(self, event: tuple[Any, ...]) -> None:
        self.open = False
        self.outside.ends.pop(self.number, None)
        hooks = self.outside.world.hooks
        if hooks.on:
            hooks.emit(event)

    def __repr__(self) -> str:
        return f"<OutsideEnd {self.number} {self.local} -> {self.remote}: {'open' if self.open else 'closed'}>"


class Attempt:
    """A process has dialled an address outside, and waits for who is there."""

    def __init__(self, outside: Outside, life: Life, number: int, address: str, answer: Future[Transport]) -> None:
        self.life = life
        self._outside = outside
        self._number = number
        self._address = address
        self._answer = answer

    def reached(self, local: str) -> None:
        """There is a connection; on this side its address is `local`."""
        outside = self._outside
        end = outside.ends[self._number] = OutsideEnd(outside, self.life, self._number, local, self._address, "")
        end.happens(lambda: establish(outside.world, self._answer, end))

    def refused(self) -> None:
        """Nobody is there."""
        world = self._outside.world
        world.network.call_later(self.life, 0, lambda: refuse(world, self._answer, self._address))


class Outside:
    """All that is connected from outside of a world.

    `advertised` says for an address of the world which one outside leads there: "HOST:PORT", or ":PORT" at the host
    that a client itself has used. `output` is whoever carries bytes out, and `dial` whoever connects to an address
    outside; in a replay nobody.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.ends: dict[int, OutsideEnd] = {}
        self.advertised: Mapping[str, str] = MappingProxyType({})
        self.located: Mapping[str, str] = MappingProxyType({})
        """Where programs find an address of the world, as "IP:PORT": what brokers write into messages."""
        self.output: Output = _nobody
        self.dial: Dial = _nowhere
        self.reachable: frozenset[str] = frozenset()
        """What processes of the world may connect to outside: "HOST:PORT", or "HOST" for all its ports."""
        self.attempts: dict[int, Attempt] = {}
        """Who has dialled and was not answered yet, by the number that the connection will have."""
        self._dialled = 0
        self.served = False
        """Whether real sockets lead here at this moment."""
        self.paused = False
        """Whether the time of a served world stands still."""
        self.thread = 0
        """The thread that plays a served world; 0 while nobody serves it."""
        self.last_number = 0
        """The number of the connection that came last."""

    @property
    def passes(self) -> bool:
        """Whether the world's time passes by itself, as the real time does."""
        return self.served and not self.paused

    def forget_output(self) -> None:
        """From now on nobody is outside."""
        self.output, self.dial = _nobody, _nowhere

    def reaches(self, address: str) -> bool:
        """May processes of the world connect to this address outside?"""
        return address in self.reachable or address.rpartition(":")[0] in self.reachable

    def connect(self, life: Life, address: str, answer: Future[Transport]) -> None:
        """Dial an address outside: `answer` gets the connection, or ConnectionRefused. Those that go out have numbers
        below 0.
        """
        self._dialled -= 1
        number = self._dialled
        self.attempts[number] = Attempt(self, life, number, address, answer)
        answer.add_done_callback(lambda _: self._answered(number))
        self.dial(number, address)

    def _answered(self, number: int) -> None:
        """Nobody waits for a connection any more: it is there, or whoever is outside need not go on trying."""
        if self.attempts.pop(number, None) is not None:
            self.output(number, None, True)

    def process_died(self, life: Life, *, silent: bool) -> None:
        """End the connections of a process; from a machine that went dark (`silent`) the other sides hear nothing."""
        for end in [end for end in self.ends.values() if end.life is life]:
            if silent:
                end.open = False
            else:
                end.reset()
        for number in [number for number, attempt in self.attempts.items() if attempt.life is life]:
            self._answered(number)

    def reset_dead_peers(self, life: Life) -> None:
        """The machine of `life` is back after a power loss: it resets what it does not know."""
        for end in [e for e in self.ends.values() if e.life.node_name == life.node_name and e.life is not life]:
            end.reset()


def advertise(world: World, addresses: dict[str, str]) -> None:
    """From now on tell clients from outside these addresses (outer) in place of the world's own (keys)."""
    world.outside.advertised = dict(addresses)


def locate(world: World, addresses: dict[str, str]) -> None:
    """From now on messages say that they lie at these addresses (outer); inside of the world they lead there, too.

    `addresses` has the outer ones, "IP:PORT", by the world's own.
    """
    world.outside.located = dict(addresses)
    world.network.also_at.update({outer: address for address, outer in addresses.items()})


def set_epoch(world: World, epoch_ms: int) -> None:
    """Let the clocks of all machines show another time of day: what they showed when the world began."""
    world.epoch_ms = epoch_ms
    for node in world.nodes.values():
        for listener in node.life.clock_listeners:
            listener()


def reach(world: World, addresses: list[str]) -> None:
    """From now on processes of the world may connect to these addresses outside ("HOST:PORT" or "HOST"), and to no
    others.
    """
    world.outside.reachable = frozenset(addresses)


def reached(world: World, number: int, local: str) -> None:
    """The connection that the world has dialled under `number` is there; its own address outside is `local`."""
    attempt = world.outside.attempts.pop(number, None)
    if attempt is None:
        world.outside.output(number, None, True)
    else:
        attempt.reached(local)


def come_in(world: World, number: int, address: str, remote: str, came_to: str) -> None:
    """A program at `remote`, which reached us under the host `came_to`, connects to an address of the world.

    Its process takes the connection in with its next slice; where nobody listens, the connection breaks at once.
    """
    outside = world.outside
    outside.last_number = number
    node = world.network.node_at(address)
    accept = None if node is None else world.network.listener(address, node)
    if node is None or accept is None:
        outside.output(number, None, True)
        return
    end = outside.ends[number] = OutsideEnd(outside, node.life, number, address, remote, came_to)

    def take_in() -> None:
        if world.hooks.on:
            world.hooks.emit(ConnectionOpened(end.remote, end.local, end.connection_id))
        accept(end)

    end.happens(take_in)


def bring(world: World, number: int, data: bytes) -> None:
    """Bytes came over connection `number`; they are read in a slice of the process at its end."""
    end = world.outside.ends.get(number)
    if end is not None:
        end.happens(lambda: end.bring(data))


def hang_up(world: World, number: int, broken: bool) -> None:
    """Connection `number` was closed from outside, or broke; if it was dialled and is not there yet, it was refused."""
    attempt = world.outside.attempts.pop(number, None)
    if attempt is not None:
        attempt.refused()
    end = world.outside.ends.get(number)
    if end is not None:
        end.happens(lambda: end.ended(broken))


OUTSIDE: dict[str, Callable[..., None]] = {
    "advertise": advertise, "locate": locate, "set_epoch": set_epoch,
    "reach": reach, "reached": reached, "come_in": come_in, "bring": bring, "hang_up": hang_up,
}  # fmt: skip
"""The vocabulary: verb -> what it does to a world."""

_TYPES: dict[str, dict[str, type]] = {
    "advertise": {"addresses": dict},
    "locate": {"addresses": dict},
    "set_epoch": {"epoch_ms": int},
    "reach": {"addresses": list},
    "reached": {"number": int, "local": str},
    "come_in": {"number": int, "address": str, "remote": str, "came_to": str},
    "bring": {"number": int, "data": str},
    "hang_up": {"number": int, "broken": bool},
}
"""What a report has for each argument; bytes stand in it as base64."""


def to_report(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an action as JSON has them: bytes as base64."""
    return {
        name: b64encode(value).decode("ascii") if isinstance(value, bytes) else value
        for name, value in arguments.items()
    }


def from_report(verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a verb of OUTSIDE as a report has them; LearnerError if they cannot be, as in a damaged one."""
    wanted, read = _TYPES[verb], dict(arguments)
    fits = read.keys() == wanted.keys() and all(type(read[name]) is kind for name, kind in wanted.items())
    if fits and verb == "bring":
        try:
            read["data"] = b64decode(read["data"], validate=True)
        except ValueError:
            fits = False
    if fits and verb == "reach":
        fits = all(isinstance(text, str) for text in read["addresses"])
    elif fits and "addresses" in read:
        fits = all(isinstance(text, str) for pair in read["addresses"].items() for text in pair)
    if not fits:
        words = ", ".join(f"{name} ({kind.__name__})" for name, kind in wanted.items())
        raise LearnerError(f"{verb} takes {words}, not {dict(arguments)!r}"[:300], "record the session once more")
    return read
