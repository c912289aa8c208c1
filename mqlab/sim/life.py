"""The life of a process: from its start to its end, with everything that begins and ends with it.

                 freeze           thaw            crash             power_off
    RUNNING      -> FROZEN                        -> ENDED          -> DARK
    FROZEN                        -> RUNNING      -> ENDED          -> DARK
    ENDED                                                           -> DARK
    DARK

What stands nowhere changes nothing. ENDED and DARK are ends: a restart makes a new life on the machine. DARK is the end
of a process whose machine has lost its power, so that the machine does not even refuse a connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.errors import SimulationError
    from mqlab.sim.agenda import Ready
    from mqlab.sim.future import Future
    from mqlab.sim.scheduler import Scheduler
    from mqlab.sim.task import Task

RUNNING, FROZEN, ENDED, DARK = 0, 1, 2, 3
"""States of a life; what runs is 0, so that the scheduler needs one test for the others."""

STATE_NAMES = ("running", "frozen", "down", "down")

_MOVES = {
    (RUNNING, "freeze"): FROZEN,
    (FROZEN, "thaw"): RUNNING,
    (RUNNING, "crash"): ENDED,
    (FROZEN, "crash"): ENDED,
    (RUNNING, "power_off"): DARK,
    (FROZEN, "power_off"): DARK,
    (ENDED, "power_off"): DARK,
}


class ProcessEndedError(LearnerError):
    """What was asked of a process has no answer, because the process has ended."""

    def __init__(self, node_name: str, asked: str) -> None:
        super().__init__(
            f"the process on {node_name} has ended, and {asked} with it: there will be no answer",
            f"lab.restart({node_name!r}), then ask again",
        )


class Life:
    """One life of a node's process; what dies with the process hangs on it, and on nothing else."""

    __slots__ = (
        "asked",
        "clock_listeners",
        "name",
        "network_ready_us",
        "node_name",
        "number",
        "parked",
        "program",
        "singletons",
        "started",
        "state",
        "tasks",
        "world",
    )

    def __init__(self, world: Scheduler, node_name: str, number: int = 0) -> None:
        self.world = world
        self.node_name = node_name
        self.number = number
        self.name = ""
        self.state = RUNNING
        self.started = False
        """Whether the main function has begun."""
        self.program: Any = None
        """What the main function has made: the controller of a server, the clients of an application."""
        self.tasks: dict[Task, None] = {}
        self.parked: deque[Ready] = deque()
        """What came due while the process was frozen."""
        self.network_ready_us = -1
        """When the process can use the network: set by its first connection (see NodeSpec.first_connect_us)."""
        self.singletons: dict[str, Any] = {}
        """What a Java process keeps in static fields, such as the table of its client instances."""
        self.asked: dict[Future[Any], None] = {}
        """What somebody outside of the process has asked of it, and has no answer to yet; each has a label."""
        self.clock_listeners: list[Callable[[], None]] = []
        """Called when the wall clock is set or begins to run wrong: by those who wait for a time of day."""

    @property
    def life(self) -> Life:
        """Itself: outside of all slices the world's own life is the actor."""
        return self

    @property
    def over(self) -> bool:
        """Whether the process has ended."""
        return self.state >= ENDED

    def move(self, verb: str) -> bool:
        """Freeze, thaw, crash or power off; False if that changes nothing in this state."""
        state = _MOVES.get((self.state, verb))
        if state is None:
            return False
        self.state = state
        return True

    def end(self) -> list[SimulationError]:
        """Drop all that the process had, when its state says that it has ended; the errors of its `finally` blocks."""
        errors = [error for error in [task.kill() for task in list(self.tasks)] if error is not None]
        self.parked.clear()
        self.clock_listeners.clear()
        self.singletons.clear()
        self.program = None
        for answer in list(self.asked):
            answer.set_exception(ProcessEndedError(self.node_name, answer.label))
        return errors
