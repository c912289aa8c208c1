"""An administrator of a drawn world: a machine of its own that asks brokers what administrators ask."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import RemotingException
from mqlab.lab.processes import BrokerProcess, NameServerProcess
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RemotingClient
from mqlab.scenarios.drawing.kinds import ADMINISTRATOR
from mqlab.scenarios.drawing.questions import Ask, Asked

if TYPE_CHECKING:
    from mqlab.lab import Lab

TIMEOUT_MS = 5_000


class Administrator:
    """Asks all masters that are up; who cannot be reached, or refuses, is left as it is."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._remoting = RemotingClient(lab.node(ADMINISTRATOR))

    def now_ms(self) -> int:
        """What the clock of the machine says, in ms since 1970."""
        return self._remoting.node.now_ms()

    def ask(self, code: int, header: Any, *, of: str = "", body: bytes | None = None) -> None:
        """Ask all masters, or the one named `of`, from now on and without waiting."""
        for broker in self._lab.masters:
            if broker.is_up() and of in ("", broker.name):
                request = RemotingCommand.request(code, header, body)
                self._remoting.node.spawn(self._ask(broker.running().broker_addr, request), "ask")

    def ask_name_servers(self, code: int, header: Any) -> None:
        """Ask all name servers, from now on and without waiting."""
        for name_server in self._lab.name_servers:
            request = RemotingCommand.request(code, header, None)
            self._remoting.node.spawn(self._ask(name_server.address, request), "ask")

    def ask_about(self, name: str, questions: Sequence[Ask], topic: str, groups: Sequence[str]) -> None:
        """Ask a broker or a name server, if it is up, all questions about one thing after the other."""
        process = self._lab.processes[name]
        if isinstance(process, BrokerProcess) and process.is_up():
            address, broker = process.running().broker_addr, str(process.settings["broker_name"])
        elif isinstance(process, NameServerProcess) and process.is_up():
            address, broker = process.address, str(self._lab.masters[0].settings["broker_name"])
        else:
            return
        asked = Asked(partial(self._answer, address), broker, address, topic, tuple(groups), self.now_ms())
        self._remoting.node.spawn(_ask_all(questions, asked), "ask about")

    async def _answer(
        self, address: str, code: int, header: Any, body: bytes | None = None
    ) -> RemotingCommand | None:
        with suppress(RemotingException):
            return await self._remoting.invoke_sync(address, RemotingCommand.request(code, header, body), TIMEOUT_MS)
        return None

    async def _ask(self, address: str, request: RemotingCommand) -> None:
        with suppress(RemotingException):
            await self._remoting.invoke_sync(address, request, TIMEOUT_MS)


async def _ask_all(questions: Sequence[Ask], asked: Asked) -> None:
    for ask in questions:
        await ask(asked)
