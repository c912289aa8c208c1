"""The edge of a served world: its sockets and its pace, on one asyncio loop.

What the sockets bring waits in the inbox until the world has come to the present; then it is done to the world, and
what follows from it is played. One thread does both, so nothing of the world needs a lock of its own; whoever steps or
breaks the world meanwhile, from a cell, holds the world's door.
"""

from __future__ import annotations

import asyncio
import socket
from _thread import get_ident
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import MqlabError
from mqlab.serving.gate import LAST_SECONDS, Arrival, Gate
from mqlab.serving.line import MOST_UNREAD_BYTES, Line, LineOut
from mqlab.serving.tls import Tls

if TYPE_CHECKING:
    from mqlab.serving.rpc_edge import Peer
    from mqlab.serving.served import Served

LEAD_US = 2_000
"""What is due so soon is played at once: no loop wakes up for less."""

PIECE_US = 5_000
"""After so much of the world's time the sockets have their turn, when the world is behind."""

FIRST_STEP_US, SMALL_STEPS_US, STEP_US = 50_000, 1_000_000, 5_000_000
"""In a jump the world plays in steps: for the first second small ones."""

SAID_EVERY_US = 10_000_000
"""How often clients say in a jump that they are alive; the broker's own scan comes every 10 s, its limit is 120 s."""

PATIENCE_S, LOOK_US = 1.0, 2_000
"""In a jump a client has so long to acknowledge what it got, once; it is looked so often whether it has."""

TOLD_EVERY_S = 0.25
"""So often views are told at most that there is something new."""

QUIET_S = 0.15
"""When for so long nothing was said to any client, what they had asked is answered; what is held for longer is not."""

LONGEST_GOODBYE_S = 2.0
"""Clients of old versions, which do not know that they shall go, may ask on and on."""

LONGEST_PAUSE_S = 0.05
"""At least so often the world's clock follows, for those who look at it."""


class Edge:
    """Lets connections in at `sockets` and calls at `proxies` (both: an address of the world, and a socket that listens
    for it), and plays the lab's world in real time.

    `most_connections` are there at a time; who comes then is turned away. `tls` says who may speak it. `told` is called
    when something has happened in the world, four times a second at most.
    """

    def __init__(
        self,
        lab: Served,
        sockets: Sequence[tuple[str, socket.socket]],
        proxies: Sequence[tuple[str, socket.socket]],
        most_connections: int,
        tls: Tls,
        told: Callable[[], object] | None,
    ) -> None:
        self.lab = lab
        self._told = told
        self._told_s = 0.0
        self._told_slice = lab.world.slice_no
        self.paused = False
        self.error: MqlabError | None = None
        """What ended the serving: a task of the world that died."""
        self.turned_away = 0
        """How many connections were one too many."""
        self._sockets = sockets
        self._proxies = proxies
        self._most_connections = most_connections
        self.tls = tls
        self._arrivals: set[Arrival] = set()
        self._lines: dict[int, Line | Peer] = {}
        self._last_number = lab.world.outside.last_number
        self._inbox: deque[tuple[str, dict[str, Any]]] = deque()
        self._unread_bytes = 0
        self.held = False
        """Whether nothing is read, since too much waits for the world."""
        self.closing = False
        """Whether the serving ends: whoever asks now is told to go elsewhere."""
        self._said_s = 0.0
        self._jumping = False
        self._loop: asyncio.AbstractEventLoop
        self._thread = 0
        self._pause: asyncio.Future[None] | None = None
        self._began_s = 0.0
        self._began_us = 0

    @property
    def paused(self) -> bool:
        """Whether the world's time stands still."""
        return self.lab.world.outside.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self.lab.world.outside.paused = paused

    @property
    def connections(self) -> int:
        """How many programs are connected at this moment."""
        return sum(not isinstance(arrival, LineOut) for arrival in self._arrivals)

    async def run(self, ready: Any) -> None:
        """Serve until `close` is called or the world breaks; `ready` (an Event) is set when connections are taken."""
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        gates: list[Gate] = []
        outside, door = self.lab.world.outside, self.lab.world.door
        outside.output, outside.dial, outside.thread = self._output, self._dial, self._thread
        self._from_now_on()
        calls = None
        try:
            if self._proxies:
                from mqlab.serving.relay import Relay
                from mqlab.serving.rpc_edge import RpcEdge

                calls = RpcEdge(self)
                for address, sock in self._proxies:
                    gates.append(Gate(self, sock, partial(Relay, self, calls, address)))
            for address, sock in self._sockets:
                gates.append(Gate(self, sock, partial(Line, self, address)))
            ready.set()
            with door.posts_told(lambda: self._loop.call_soon_threadsafe(self._wake)):
                while not self.closing:
                    await self._turn()
                self._stop_listening(gates)
                if calls is not None:
                    calls.leave()
                await self._answer_what_is_begun()
        except MqlabError as error:
            self.error = error
        finally:
            self.closing = True
            self._stop_listening(gates)
            ending = None if calls is None else asyncio.ensure_future(calls.close())
            if ending is not None:
                await asyncio.wait([ending], timeout=LAST_SECONDS)
            self._hang_up_all()
            outside.forget_output()
            await self._all_gone()
            if ending is not None:
                # grpcio waits long for a client that does not read; its relay is gone now.
                await ending

    def _stop_listening(self, gates: list[Gate]) -> None:
        """Take in no more connections."""
        for gate in gates:
            gate.close()
        gates.clear()
        for _, sock in (*self._sockets, *self._proxies):
            sock.close()

    async def _answer_what_is_begun(self) -> None:
        """Play on until nothing more is said to clients: what they had asked is done, and they know that it is."""
        self._said_s = began_s = self._loop.time()
        while self._lines and not self.paused:
            await self._turn()
            now_s = self._loop.time()
            if now_s - self._said_s >= QUIET_S or now_s - began_s >= LONGEST_GOODBYE_S:
                return

    def _hang_up_all(self) -> None:
        """End all connections, for those outside and for the world."""
        for number, line in self._lines.items():
            self._inbox.append(("hang_up", {"number": number, "broken": False}))
            line.end(broken=False)
        self._lines.clear()
        with suppress(MqlabError):
            self._take_in()
            self.lab.world.run_to(self.lab.world.now_us)

    async def _all_gone(self) -> None:
        """Let clients take the last that they were sent, but not for long."""
        for arrival in list(self._arrivals):
            arrival.close()
        for _ in range(2):
            if self._arrivals:
                await asyncio.wait([arrival.gone for arrival in self._arrivals], timeout=LAST_SECONDS)
            for arrival in list(self._arrivals):
                arrival.abort()

    async def _turn(self) -> None:
        """Bring the world to the present, let in what has come, play what follows, and wait."""
        self._tell()
        if not self.paused and not self._jumping:
            behind = self._catch_up()
            if self._inbox:
                self._take_in()
                behind = self._catch_up() or behind
            if behind:
                await asyncio.sleep(0)
                return
        self._pause = self._loop.create_future()
        timer = self._loop.call_later(self._pause_s(), self._wake)
        try:
            await self._pause
        finally:
            timer.cancel()
            self._pause = None

    def _tell(self) -> None:
        """Tell who looks at the world, now and then, that something has happened in it."""
        now_s, slice_no = self._loop.time(), self.lab.world.slice_no
        if self._told is not None and slice_no != self._told_slice and now_s - self._told_s >= TOLD_EVERY_S:
            self._told_s, self._told_slice = now_s, slice_no
            self._told()

    def _catch_up(self) -> bool:
        """Play a piece of the way to the present; True if the world is still behind it."""
        world = self.lab.world
        present_us = self._present_us()
        if world.now_us > present_us + LEAD_US:
            # Somebody has let time pass in a cell: the present is where the world is.
            self._from_now_on()
            present_us = world.now_us
        limit_us = present_us + LEAD_US
        piece_us = min(limit_us, world.now_us + PIECE_US)
        if not world.run_to(piece_us):
            self.paused = True
            return False
        return piece_us < limit_us

    def _present_us(self) -> int:
        return self._began_us + int((self._loop.time() - self._began_s) * 1_000_000)

    def _from_now_on(self) -> None:
        self._began_s, self._began_us = self._loop.time(), self.lab.world.now_us

    def _pause_s(self) -> float:
        if self.paused:
            return LONGEST_PAUSE_S
        due_us = self.lab.world.next_due_us()
        if due_us is None:
            return LONGEST_PAUSE_S
        return min(LONGEST_PAUSE_S, max(0.0, (due_us - LEAD_US - self._present_us()) / 1_000_000))

    def _wake(self) -> None:
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)

    # -- what comes in ----------------------------------------------------------------------------------------------

    def enter(self, arrival: Arrival) -> bool:
        """Count a new connection; False when there are too many already."""
        if self.connections >= self._most_connections or self.closing:
            self.turned_away += 1
            return False
        self._arrivals.add(arrival)
        return True

    def left(self, arrival: Arrival) -> None:
        """Its socket is closed."""
        self._arrivals.discard(arrival)

    def admit(self, line: Line | Peer) -> bool:
        """Give a new line its number; False at the end of the serving."""
        if self.closing:
            return False
        self._last_number += 1
        line.number = self._last_number
        self._lines[line.number] = line
        return True

    def leave(self, line: Line | Peer) -> bool:
        """Forget a line; False if it was never admitted, or was ended by the world."""
        return self._lines.pop(line.number, None) is not None

    def bring(self, verb: str, arguments: dict[str, Any]) -> None:
        """Something for the world; it is done when the world has come to the present."""
        self._inbox.append((verb, arguments))
        self._wake()

    def bring_data(self, line: Line | Peer, data: bytes) -> None:
        """Bytes came over a line; with too many that wait, all lines are held."""
        self.bring("bring", {"number": line.number, "data": data})
        self._unread_bytes += len(data)
        if not self.held and self._unread_bytes > MOST_UNREAD_BYTES:
            self._hold(True)

    def _hold(self, held: bool) -> None:
        self.held = held
        for line in self._lines.values():
            line.hold(held)

    def _take_in(self) -> None:
        inbox, self._inbox = self._inbox, deque()
        self._unread_bytes = 0
        with self.lab.world.door:
            for verb, arguments in inbox:
                self.lab.from_outside(verb, arguments)
        if self.held:
            self._hold(False)

    # -- what goes out ----------------------------------------------------------------------------------------------

    def _output(self, number: int, data: bytes | None, broken: bool) -> None:
        if get_ident() == self._thread:
            self._write(number, data, broken)
        else:
            self._loop.call_soon_threadsafe(self._write, number, data, broken)

    def _write(self, number: int, data: bytes | None, broken: bool) -> None:
        line = self._lines.get(number)
        if line is None:
            return
        if data is not None:
            self._said_s = self._loop.time()
            line.write(data)
        else:
            del self._lines[number]
            line.end(broken)

    def _dial(self, number: int, address: str) -> None:
        """Connect to it, but not in the slice of the world that asks for it: there no socket may be opened."""
        self._loop.call_soon_threadsafe(self._go_out, number, address)

    def _go_out(self, number: int, address: str) -> None:
        try:
            line = LineOut(self, number, address)
        except (OSError, ValueError):
            # No port, or this machine has no room for one more socket.
            self.bring("hang_up", {"number": number, "broken": True})
            return
        self._lines[number] = line
        self._arrivals.add(line)
        line.come_in()

    # -- time that jumps --------------------------------------------------------------------------------------------

    async def _jump(self, us: int) -> bool:
        """Let `us` of the world's time go by as fast as it can be played; False if a breakpoint ended it before.

        It begins with small steps, so that calls under way are answered; between two steps the sockets have their turn,
        and who got messages with an invisible time has a moment to acknowledge them.
        """
        world = self.lab.world
        began_us, end_us = world.now_us, world.now_us + us
        said_us = began_us
        slow: set[Line | Peer] = set()
        self._jumping = True
        try:
            while world.now_us < end_us and not self.closing:
                self._take_in()
                if world.now_us - said_us >= SAID_EVERY_US:
                    said_us = world.now_us
                    self._say_again()
                step_us = FIRST_STEP_US if world.now_us - began_us < SMALL_STEPS_US else STEP_US
                if not world.run_to(min(end_us, world.now_us + step_us)):
                    self.paused = True
                    return False
                await asyncio.sleep(0)
                if not await self._settled(slow):
                    self.paused = True
                    return False
            return not self.closing
        finally:
            self._jumping = False
            self._from_now_on()
            self._wake()

    async def _settled(self, slow: set[Line | Peer]) -> bool:
        """Let time go by as outside until clients of 5.x have settled what they got.

        Who takes too long is `slow`, and is not waited for again, so that a jump ends. False if a breakpoint ended it.
        """
        world, until_s = self.lab.world, self._loop.time() + PATIENCE_S
        while late := {line for line in self._lines.values() if line.unsettled} - slow:
            if self._loop.time() >= until_s:
                slow |= late
                break
            await asyncio.sleep(LOOK_US / 1_000_000)
            self._take_in()
            if not world.run_to(world.now_us + LOOK_US):
                return False
        for line in self._lines.values():
            line.unsettled = 0
        return True

    def _say_again(self) -> None:
        """Let each client say what it would have said meanwhile, so that it counts as alive."""
        for number, line in self._lines.items():
            for said in line.said_again(self.lab.world.now_us):
                self.lab.from_outside("bring", {"number": number, "data": said})

    def jump(self, us: int) -> bool:
        """Let time jump (from any thread), and wait for the end of it."""
        jumping = asyncio.run_coroutine_threadsafe(self._jump(us), self._loop)
        try:
            return jumping.result()
        except KeyboardInterrupt:
            jumping.cancel()
            raise

    # -- from other threads -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop serving (from any thread)."""
        self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        self.closing = True
        self._wake()

    def set_paused(self, paused: bool) -> None:
        """Let the world's time stand still, or go on (from any thread); it holds when this returns."""
        if self.paused and not paused:
            self._from_now_on()
        self.paused = paused
        self._loop.call_soon_threadsafe(self._wake)
