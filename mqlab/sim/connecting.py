"""Making a connection: an attempt that TCP repeats until somebody answers, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.errors import MqlabError
from mqlab.sim.life import RUNNING
from mqlab.sim.target import Target
from mqlab.trace.events.network import ConnectionOpened, ConnectionRefusedByHost

if TYPE_CHECKING:
    from mqlab.sim.future import Future
    from mqlab.sim.network import Network
    from mqlab.sim.node import Node
    from mqlab.sim.transport import Transport
    from mqlab.sim.world import World

FIRST_RETRY_US = 1_000_000
"""When Linux sends the first frame of a connection again; it waits twice as long each time after."""


class ConnectionRefused(MqlabError):
    """Nobody listens at that address."""


class ConnectTimeout(MqlabError):
    """The host did not answer the attempt to connect."""


class ConnectionAttempt(Target):
    """One try to open a connection: sent again after 1, 3, 7 seconds while the network loses it or the host is dark.

    On the agenda it is the network's own; when a process takes the connection in, the rest of the slice is that
    process's.
    """

    __slots__ = (
        "_address",
        "_answer",
        "_callee",
        "_caller",
        "_network",
        "_retry_us",
        "_sent_us",
    )

    def __init__(self, network: Network, caller: Node, callee: Node, address: str, answer: Future[Transport]) -> None:
        self.name = "network"
        self.token = 0
        self.life = network.world.life
        self._network = network
        self._caller = caller.life
        self._callee = callee
        self._address = address
        self._answer = answer
        self._retry_us = FIRST_RETRY_US
        self._sent_us = network.world.now_us

    def send(self) -> None:
        """Let it travel to the host."""
        network = self._network
        out = network.link(self._caller.node_name, self._callee.name)
        network.world.push(self._sent_us + out.draw_us(0), self, 0)

    def _send_again(self) -> None:
        if not self._answer.done:
            self._sent_us = max(self._sent_us + self._retry_us, self._network.world.now_us)
            self._retry_us *= 2
            self.send()

    def fire(self) -> None:
        """Arrive at the host: the process there takes the connection in, or the host refuses it."""
        network, callee = self._network, self._callee
        if self._caller.over:
            return
        if self._is_cut() or not callee.powered:
            self._send_again()
            return
        accept = network.listener(self._address, callee)
        if accept is None:
            self._answer_with(lambda: refuse(network.world, self._answer, self._address))
            return
        near, far = network.pair(self._caller, callee.life, self._address)
        self._answer_with(lambda: establish(network.world, self._answer, near))
        if callee.life.state == RUNNING:
            self.life = callee.life
            accept(far)
        else:
            network.call_later(callee.life, 0, lambda: accept(far))

    def _is_cut(self) -> bool:
        here, there = self._caller.node_name, self._callee.name
        return self._network.link(here, there).cut or self._network.link(there, here).cut

    def _answer_with(self, outcome: Callable[[], None]) -> None:
        back = self._network.link(self._callee.name, self._caller.node_name)

        def arrive() -> None:
            if back.cut and not self._answer.done:
                self._network.call_later(self._caller, FIRST_RETRY_US + back.draw_us(0), arrive)
            else:
                outcome()

        self._network.call_later(self._caller, back.draw_us(0), arrive)


def establish(world: World, answer: Future[Transport], near: Transport) -> None:
    """A connection is there: whoever waits gets their side of it; where nobody does any more it is closed again."""
    if world.hooks.on:
        world.hooks.emit(ConnectionOpened(near.local, near.remote, near.connection_id))
    if not answer.try_set_result(near):
        near.close()


def refuse(world: World, answer: Future[Transport], address: str) -> None:
    """Nobody is at the address; whoever waits hears of it."""
    if not answer.done:
        refused = ConnectionRefused(f"nobody listens at {address}")
        if world.hooks.on:
            world.hooks.emit(ConnectionRefusedByHost(str(refused)))
        answer.set_exception(refused)
