"""A served world: opened with `lab.serve()`, closed with `close()` or at the end of a `with` block."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from mqlab.arguments import check_count
from mqlab.errors import LearnerError, SimulationError
from mqlab.protocol.hosts import decode_host, encode_host
from mqlab.serving.edge import Edge
from mqlab.serving.tls import Tls
from mqlab.sim.schedule import parse_time_us

if TYPE_CHECKING:
    from pathlib import PurePath

    from mqlab.serving.served import Served, ServedProcess

    Listener = tuple[str, socket.socket]

BACKLOG = 1_024
"""How many connections may wait to be taken in at a port (NettyServerConfig.serverSocketBacklog)."""

HA = "-ha"
"""Behind a broker's name: its port for slaves."""

VIP, VIP_BELOW = "-vip", 2
"""Behind a broker's name: its port for what shall not wait behind messages, so far below the broker's. All is answered
there, where RocketMQ refuses to pull and to pop; a real slave asks there for topics (BrokerController's
fastRemotingServer).
"""

ATTEMPTS = 20
"""So often a free port is looked for that has a free one for VIPs below."""

ANY_HOST = ("0.0.0.0", "::")  # noqa: S104  # compared with, not bound to
"""Hosts at which all addresses of this machine are listened to: it finds itself at the first of its own."""

THIS_MACHINE = "127.0.0.1"

START_SECONDS = 10.0

LOOK_S = 0.5
"""So often who waits for the end of a serving looks whether somebody has pressed Ctrl-C."""

SETTLED_US = 31_000_000
"""When clocks are set, nobody seems to have been heard of for long. Each says every 30 s that it is there."""

MOST_AHEAD_US = 3 * 24 * 3_600_000_000
"""As far ahead as a timer message may be due (timerMaxDelaySec)."""


class Serving:
    """The name servers, brokers and proxies of a lab's world, at ports of this machine, for as long as it is open.

    `ports` says at which port a process is served, by its name; 0, which all others get, is any free port. A route
    names the host that the client itself has used, with the port of the broker; `advertise` gives another host, or for
    each process (by name) a "HOST:PORT" of its own. Processes of the world may connect to the addresses in `reach`
    ("HOST:PORT", or "HOST" for all its ports), such as a slave to a real master. `tls` says whether clients may speak
    TLS ("permissive"), must ("enforcing") or must not ("disabled"), with a certificate and its key in two files (PEM),
    or with one that is made at the first need. The wall clocks of the world are set to this machine's time.
    """

    def __init__(
        self,
        lab: Served,
        *,
        host: str,
        ports: Mapping[str, int] | None,
        advertise: str | Mapping[str, str],
        reach: Sequence[str],
        most_connections: int,
        tls: str,
        tls_certificate: str | PurePath | None,
        tls_key: str | PurePath | None,
    ) -> None:
        check_count("most_connections", most_connections, "write lab.serve(most_connections=100)")
        certified = Tls(tls, tls_certificate, tls_key)
        wanted = _reachable(lab, reach)
        served = _servable(lab)
        self.lab = lab
        self.host = host
        sockets = _open(host, _checked(ports or {}, [*served, *_named(lab.proxies)]), _named(lab.brokers))
        self.ports: dict[str, int] = {
            name: sockets[name].getsockname()[1] for name in (*served, *_named(lab.proxies))
        }
        """The port of each process, by its name."""
        try:
            outer = _outer(served, self.ports, advertise)
        except LearnerError:
            for sock in sockets.values():
                sock.close()
            raise
        with lab.world.door:
            _set_clocks(lab)
            self._tell_the_world(outer, wanted)
        self._edge = Edge(lab, *_listeners(lab, served, sockets), most_connections, certified, _teller(lab))
        self._thread = threading.Thread(target=self._run, name="mqlab serving", daemon=True)
        self._ready = threading.Event()
        self._over = threading.Event()
        self._begin()

    def _tell_the_world(self, outer: Mapping[str, str], reachable: Sequence[str]) -> None:
        """Whom its brokers are to be found at from outside, and whom its processes may reach there."""
        lab = self.lab
        lab.act("advertise", addresses=outer)
        if lab.world.outside.reachable != set(reachable):
            lab.act("reach", addresses=reachable)
        lab.act("locate", addresses=_located(lab, outer, THIS_MACHINE if self.host in ANY_HOST else self.host))

    def _begin(self) -> None:
        """Take in connections from now on; raises what prevents it."""
        self.lab.world.outside.served = True
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise SimulationError(f"the sockets were not open after {START_SECONDS:g} s")
        if self._edge.error is not None:
            raise self._edge.error

    def _run(self) -> None:
        try:
            if self.lab.proxies:
                _run_with_grpcio(self._edge.run(self._ready))
            else:
                asyncio.run(self._edge.run(self._ready))
        finally:
            self.lab.world.outside.served, self.lab.world.outside.thread = False, 0
            self._ready.set()
            self._over.set()

    @property
    def name_server(self) -> str:
        """What clients are given as the address of the name servers: "127.0.0.1:9876", or several with ";" between."""
        return ";".join(self.addresses[process.name] for process in self.lab.name_servers)

    @property
    def endpoints(self) -> str:
        """What clients of 5.x are given: "127.0.0.1:8081", or several with ";" between; "" without a proxy."""
        return ";".join(self.addresses[process.name] for process in self.lab.proxies)

    @property
    def addresses(self) -> dict[str, str]:
        """Where this machine reaches each process, by its name: "127.0.0.1:10911"."""
        host = THIS_MACHINE if self.host in ANY_HOST else self.host
        return {name: f"{host}:{port}" for name, port in self.ports.items()}

    @property
    def connections(self) -> int:
        """How many connections from outside there are."""
        return self._edge.connections

    @property
    def turned_away(self) -> int:
        """How many connections were one too many (`most_connections`)."""
        return self._edge.turned_away

    @property
    def state(self) -> str:
        """ "serving", "paused" (by a breakpoint, or by `pause`) or "closed"."""
        if self._over.is_set():
            return "closed"
        return "paused" if self._edge.paused else "serving"

    def pause(self) -> None:
        """Let the world's time stand still: what clients send waits at the door, and what is stepped is answered."""
        self._must_be_open()
        self._edge.set_paused(True)

    def resume(self) -> None:
        """Let time go on, from where the world is."""
        self._must_be_open()
        self._edge.set_paused(False)

    def _must_be_open(self) -> None:
        if self._over.is_set():
            raise LearnerError("this world is no longer served", "open it again: lab.serve()")

    def fast_forward(self, span: str) -> None:
        """Let so much time of the world ("2h", "90s", "500ms"; three days at most) go by at once, in its order.

        What waits in the world comes due: delay levels, timers, invisible times, retries, questions about
        transactions, expiry. What waits in a client (its back-offs, its own time-outs) does not. Connected clients
        count as alive across the jump. Afterwards the world's clocks are ahead of this machine's by as much.
        LearnerError where a breakpoint ended it before.
        """
        self._must_be_open()
        us = parse_time_us(span)
        if us > MOST_AHEAD_US:
            raise LearnerError(f"{span!r} is too far to jump at once", "jump three days (72h) at most")
        if self._edge.paused:
            raise LearnerError("the world's time stands still", "let it go on first: serving.resume()")
        if not self._edge.jump(us):
            raise LearnerError("a breakpoint ended the jump before its end", "look at lab.stopped_at, then resume()")

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the serving has ended, or for a while; raises what ended it, if the world broke."""
        end_s = math.inf if seconds is None else time.monotonic() + seconds
        # Not by joining the thread alone: after a Ctrl-C there Python takes it for ended. And not in one go: the system
        # may give a Ctrl-C to another thread, which wakes up nobody, and Python only looks for it between two waits.
        while not self._over.wait(min(LOOK_S, max(0.0, end_s - time.monotonic()))):
            if time.monotonic() >= end_s:
                break
        else:
            # Python may never end where a thread is about to.
            self._thread.join()
        if self._edge.error is not None:
            raise self._edge.error

    def report(self, path: str | PurePath) -> None:
        """Write the session so far, as `mqlab replay` plays it again without any client."""
        with self.lab.world.door:
            self.lab.report(path)

    def close(self) -> None:
        """Close all connections and ports; the world stays as it is, and can be stepped, and served again."""
        if not self._over.is_set():
            self._edge.close()
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = ", ".join(f"{name} {address}" for name, address in self.addresses.items())
        return f"<Serving {where}: {self.state}, {self.connections} connections>"


_loops_of_grpcio: list[asyncio.AbstractEventLoop] = []
"""Loops in which grpcio has served, for those who serve next.

It may have something to tell a loop that has done its work, and loses what it has for others where that is closed.
"""


def _run_with_grpcio(serving: Coroutine[Any, Any, None]) -> None:
    """As `asyncio.run`, in a loop that is not closed."""
    loop = _loops_of_grpcio.pop() if _loops_of_grpcio else asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(serving)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        asyncio.set_event_loop(None)
        _loops_of_grpcio.append(loop)


def _teller(lab: Served) -> Callable[[], object] | None:
    """Tells the views of a lab, in the loop of the notebook that opens it here; None where there is no such loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None

    def tell() -> None:
        with lab.world.door:
            for watcher in list(lab.watchers):
                watcher.changed()

    def ask() -> None:
        with suppress(RuntimeError):
            # The loop of a kernel that ends is closed.
            loop.call_soon_threadsafe(tell)

    return ask


def _servable(lab: Served) -> dict[str, str]:
    """What can be served: the address in its world of each name server and broker, by its name; "broker-a-ha" is where
    slaves copy broker-a's log from. LearnerError if there is nothing, or all of it is served already.
    """
    served = _named(lab.name_servers)
    for process in lab.brokers:
        served |= {process.name: process.address, f"{process.name}{HA}": process.ha_address}
    if not served:
        raise LearnerError("there is nothing to serve in this world", "start a name server and a broker first")
    if lab.world.outside.served:
        raise LearnerError("this world is served already", "close that one first: serving.close()")
    return served


def _named(processes: Iterable[ServedProcess]) -> dict[str, str]:
    """The address in its world of each process, by its name."""
    return {process.name: process.address for process in processes}


def _set_clocks(lab: Served) -> None:
    """Let the world's clocks show this machine's time, in a world of which nobody has heard for a while."""
    settled_us = lab.world.now_us + SETTLED_US
    lab.act("set_epoch", epoch_ms=(time.time_ns() // 1_000 - settled_us) // 1_000)
    while lab.world.now_us < settled_us:
        lab.world.run_to(settled_us)


def _listeners(
    lab: Served, served: Mapping[str, str], sockets: Mapping[str, socket.socket]
) -> tuple[list[Listener], list[Listener]]:
    """Each address in the world with the socket at which it is served: of what speaks remoting, and of proxies."""
    remoting = [
        *((address, sockets[name]) for name, address in served.items()),
        *((address, sockets[f"{name}{VIP}"]) for name, address in _named(lab.brokers).items()),
    ]
    return remoting, [(address, sockets[name]) for name, address in _named(lab.proxies).items()]


_REACHABLE = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]\s]+)(:(?P<port>[1-9]\d{0,4}))?")


def _reachable(lab: Served, addresses: Sequence[str]) -> list[str]:
    """The addresses, if they can be connected to; else LearnerError."""
    if isinstance(addresses, str):
        raise LearnerError(f"reach={addresses!r} is one text", f"give a list: reach=[{addresses!r}]")
    for address in addresses:
        found = _REACHABLE.fullmatch(address) if isinstance(address, str) else None
        if found is None or int(found["port"] or 1) > 65_535:
            raise LearnerError(
                f"{address!r} is no address", "give HOST:PORT, or HOST for all its ports; IPv6: [::1]:PORT"
            )
        node = lab.world.network.node_at(f"{found['host']}:0")
        if node is not None:
            raise LearnerError(
                f"{found['host']} is {node.name} in this world, so nothing outside is reached there",
                "reach the program outside under another address of its machine",
            )
    return list(addresses)


def _checked(ports: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """For each process its port or 0; LearnerError where one cannot be, or its process is not there."""
    for name, port in ports.items():
        if name not in names:
            raise LearnerError(f"no process {name!r} is served", f"choose among {', '.join(names)}")
        if type(port) is not int or not 0 <= port < 65_536:
            raise LearnerError(f"{port!r} is no port for {name}", "give a number from 0 (any free one) to 65535")
    return {name: ports.get(name, 0) for name in names}


def _open(host: str, ports: Mapping[str, int], brokers: Container[str]) -> dict[str, socket.socket]:
    """A listening socket for each process, and one more for VIPs for each broker; LearnerError, with none left open,
    where one cannot be.
    """
    opened: dict[str, socket.socket] = {}
    try:
        for name, port in ports.items():
            if name in brokers:
                opened[name], opened[f"{name}{VIP}"] = _listening_pair(name, host, port)
            else:
                opened[name] = _listening(name, host, port)
    except LearnerError:
        for sock in opened.values():
            sock.close()
        raise
    return opened


def _listening_pair(name: str, host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """A broker's port, and the one below for VIPs."""
    left = 1 if port else ATTEMPTS
    while True:
        sock = _listening(name, host, port)
        try:
            return sock, _listening(f"{name}{VIP}", host, sock.getsockname()[1] - VIP_BELOW)
        except LearnerError:
            sock.close()
            left -= 1
            if not left:
                raise


def _listening(name: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY, as RocketMQ does, where the protocol is named.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except (OSError, OverflowError) as error:
        sock.close()
        raise LearnerError(
            f"{name} cannot be served at {host}:{port}: {getattr(error, 'strerror', error)}",
            "another program may have the port: choose another one, or 0 for any free one",
        ) from None
    return sock


def _outer(served: Mapping[str, str], ports: Mapping[str, int], advertise: str | Mapping[str, str]) -> dict[str, str]:
    """For each address of the world what clients are told in its place."""
    if isinstance(advertise, str):
        host = "" if advertise == "auto" else advertise
        if ":" in host.strip("[]") and not host.startswith("["):
            raise LearnerError(
                f"advertise={advertise!r} is no host",
                "give a host without a port, or one address for each process: {'broker-a': 'HOST:PORT'}",
            )
        return {address: f"{host}:{ports[name]}" for name, address in served.items()}
    unknown = sorted(advertise.keys() - served.keys())
    if unknown:
        raise LearnerError(f"no process {unknown[0]!r} is served", f"choose among {', '.join(served)}")
    return {address: advertise.get(name, f":{ports[name]}") for name, address in served.items()}


def _located(lab: Served, outer: Mapping[str, str], host: str) -> dict[str, str]:
    """Where messages say that each broker is: numbers, of the address that clients are told.

    Where they are told the host that they have used themselves it is `host`. A name that this machine does not
    know says nothing here: then it is the address in the world.
    """
    located = {}
    for address in (process.address for process in lab.brokers):
        name, _, port = outer[address].rpartition(":")
        with suppress(OSError, ValueError):
            found = socket.getaddrinfo(name.strip("[]") or host, int(port), type=socket.SOCK_STREAM)
            located[address] = decode_host(encode_host(f"{found[0][4][0]}:{port}"))
    return located
