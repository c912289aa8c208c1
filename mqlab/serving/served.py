"""What is served: a lab, as far as the door knows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from mqlab.sim import World


class ServedProcess(Protocol):
    """A name server, a broker or a proxy."""

    @property
    def name(self) -> str:
        """The name of its machine."""

    @property
    def address(self) -> str:
        """Where it listens in its world, as "ip:port"."""


class ServedBroker(ServedProcess, Protocol):
    """A broker, which has a second port for its slaves."""

    @property
    def ha_address(self) -> str:
        """Where slaves copy its log from, as "ip:port"."""


class Watcher(Protocol):
    """A view of a world."""

    def changed(self) -> None:
        """Something has happened in the world."""


class Served(Protocol):
    """A lab: its world, the processes that can be served, its views, and what is done to it from outside."""

    world: World

    @property
    def watchers(self) -> Iterable[Watcher]:
        """The views of it."""

    @property
    def name_servers(self) -> Sequence[ServedProcess]:
        """The name servers, in the order in which they were added."""

    @property
    def brokers(self) -> Sequence[ServedBroker]:
        """The brokers, in the order in which they were added."""

    @property
    def proxies(self) -> Sequence[ServedProcess]:
        """The proxies, in the order in which they were added."""

    def act(self, verb: str, **arguments: Any) -> None:
        """Do something to the world, recorded for replays."""

    def from_outside(self, verb: str, arguments: dict[str, Any]) -> None:
        """Let something come from outside, recorded for replays."""

    def report(self, path: str | PurePath) -> None:
        """Write what is needed to play the world again."""
