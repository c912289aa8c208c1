"""What a store needs of the machine that it is opened on; a node is one."""

from __future__ import annotations

from typing import Any, Protocol

from mqlab.sim.disk import Disk


class Hooks(Protocol):
    """What a store needs of a world's hooks: whether anybody listens, and where events go."""

    @property
    def on(self) -> bool: ...
    def emit(self, event: tuple[Any, ...]) -> None: ...


class Spec(Protocol):
    """The facts of a machine that a store asks for."""

    @property
    def memory_bytes(self) -> int: ...
    @property
    def pid(self) -> int: ...


class Host(Protocol):
    """A machine with a disk and a clock: enough to open a store and to read it, not to run its threads."""

    name: str

    @property
    def disk(self) -> Disk: ...
    @property
    def hooks(self) -> Hooks: ...
    @property
    def spec(self) -> Spec: ...
    def now_ms(self) -> int: ...


class _NoHooks:
    on = False

    def emit(self, event: tuple[Any, ...]) -> None:
        """Drop the event, since nobody listens."""


class _QuietSpec:
    memory_bytes = 16 * 1024**3
    pid = 1


class DiskHost:
    """A disk by itself, for looking into a store without a world: time stands still there and nobody listens."""

    def __init__(self, disk: Disk) -> None:
        self.name = "reader"
        self.disk = disk
        self.hooks: Hooks = _NoHooks()
        self.spec: Spec = _QuietSpec()

    def now_ms(self) -> int:
        """The clock of a machine that does nothing."""
        return 0
