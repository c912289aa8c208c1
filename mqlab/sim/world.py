"""The world: machines, links and a door around one scheduler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MqlabError, SimulationError
from mqlab.sim.choices import Policy
from mqlab.sim.door import Door
from mqlab.sim.fences import put_up_fences
from mqlab.sim.network import Network
from mqlab.sim.node import Node, NodeSpec
from mqlab.sim.outside import Outside
from mqlab.sim.pending import Pending, hold_pending, pending_of, pick_pending
from mqlab.sim.scheduler import NEVER, Scheduler

if TYPE_CHECKING:
    from mqlab.sim.future import Future

EPOCH_MS = 1_767_225_600_000
"""The wall-clock time at which every world begins: 2026-01-01 00:00:00 UTC, in ms since 1970."""

WAIT_LIMIT_MS = 600_000
"""How much virtual time a wait from outside may take unless told otherwise: ten minutes."""

_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Halted(MqlabError):
    """A world that is replayed up to a slice has reached it."""

    def __init__(self, slice_no: int) -> None:
        super().__init__(f"the replay ends at slice {slice_no}")
        self.slice_no = slice_no


class World(Scheduler):
    """A deterministic world: a pure function of its code, its seed and what is done to it.

    `now_us` is the time in integer microseconds since the world began, `slice_no` the number of slices played. With
    `wire_bytes` every remoting command is encoded and decoded on its way; nothing else may differ. With `tie_is_choice`
    the seed decides what goes first of all that is due at one instant, and where a task is preempted.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        overrides: Mapping[tuple[str, int], int] | None = None,
        policy: Policy | None = None,
        epoch_ms: int = EPOCH_MS,
        wire_bytes: bool = False,
        tie_is_choice: bool = False,
        max_slices_per_instant: int = 100_000,
    ) -> None:
        super().__init__(
            seed,
            overrides,
            policy,
            epoch_ms=epoch_ms,
            tie_is_choice=tie_is_choice,
            max_slices_per_instant=max_slices_per_instant,
        )
        self.wire_bytes = wire_bytes
        self.nodes: dict[str, Node] = {}
        self.door = Door(self)
        self.outside_calls: list[str] = []
        """The calls that were awaited from outside, which no replay can repeat."""
        self.network = Network(self)
        self.outside = Outside(self)
        put_up_fences()

    def __del__(self) -> None:
        for node in getattr(self, "nodes", {}).values():
            for task in node.life.tasks:
                task.discard()

    # -- what goes next ------------------------------------------------------------------------------------------------

    def pending(self) -> list[Pending]:
        """What may legally go next: what is due now, the head of each connection, the next timer or task of each
        node.
        """
        with self.door:
            return pending_of(self)

    def pick(self, index: int) -> None:
        """Let the `index`-th of `pending()` go next: a delivery happens now, a timer moves the clock to its time."""
        with self.door:
            pick_pending(self, index)

    def hold(self, index: int, us: int) -> None:
        """Let the `index`-th of `pending()` happen `us` microseconds later than it would have."""
        with self.door:
            hold_pending(self, index, us)

    # -- playing ----------------------------------------------------------------------------------------------------

    def _check_halt(self, limit_us: int) -> None:
        if self.slice_no == self.halt_at_slice:
            due_us = self.next_due_us()
            if due_us is not None and due_us <= limit_us:
                raise Halted(self.slice_no)

    def move_clock(self, to_us: int) -> None:
        """Set the clock forward to a time before which nothing is due (replays place actions so)."""
        if self.heap and self.heap[0][0] < to_us and self.play(to_us - 1):
            raise SimulationError(f"slices were due before {to_us} us: the recorded times do not fit this world")
        self.advance(to_us)

    def _attend(self) -> bool:
        """Look at what set `attention`; True if the world shall stop."""
        self.attention = False
        try:
            self.report_failures()
            self.door.attend()
            return self.stop_requested
        finally:
            # An error stops the world, too, and what was asked for has been done.
            self.stop_requested = False

    def _run(self, limit_us: int, done: Callable[[], bool] | None = None) -> bool:
        """Play until `done()` or the limit; False if somebody asked to stop before."""
        slices = NEVER if done is None else 1
        with self.door.playing():
            while True:
                if self.attention and self._attend():
                    return False
                if done is not None and done():
                    return True
                if not self.play(limit_us, slices) and not self.attention:
                    self._check_halt(limit_us)
                    self.advance(limit_us)
                    return True

    def step(self) -> bool:
        """Play one slice; False if the agenda is empty."""
        with self.door.playing():
            played = self.play(slices=1) > 0
            if self.attention:
                self._attend()
            return played

    def run_for(self, us: int) -> bool:
        """Let `us` microseconds pass; False if a breakpoint stopped the world before."""
        with self.door:
            return self._run(self.now_us + us)

    def run_to(self, at_us: int) -> bool:
        """Let time pass up to `at_us`; False if a breakpoint stopped the world before."""
        with self.door:
            return self._run(max(at_us, self.now_us))

    def run_to_slice(self, slice_no: int, until_us: int | None = None) -> None:
        """Play up to and including slice `slice_no`, through breakpoints; SimulationError if the agenda ends before,
        or has nothing more that is due by `until_us`.
        """
        limit_us = NEVER if until_us is None else until_us
        with self.door.playing():
            while self.slice_no < slice_no:
                if not self.play(limit_us, slices=slice_no - self.slice_no) and not self.attention:
                    raise SimulationError(f"the agenda ended at slice {self.slice_no}, before slice {slice_no}")
                if self.attention and self._attend() and self.door.interrupted:
                    return

    def run_until(
        self,
        done: Callable[[], bool],
        limit_ms: int = WAIT_LIMIT_MS,
        what: str = "the condition",
        since_us: int | None = None,
    ) -> bool:
        """Play until `done()` holds; False if a breakpoint came first, SimulationError after `limit_ms` of virtual
        time, counted from `since_us` by those who go on waiting after a breakpoint.
        """
        with self.door:
            holds = False

            def look() -> bool:
                nonlocal holds
                holds = done()
                return holds

            began_us = self.now_us if since_us is None else since_us
            came_to_its_end = self._run(began_us + limit_ms * 1_000, look)
            if came_to_its_end and not holds:
                raise SimulationError(self._too_late(what, limit_ms))
            return holds

    def wait_for(self, future: Future[Any], limit_ms: int = WAIT_LIMIT_MS) -> Any:
        """Play until the future is complete and return its result, through any number of breakpoints."""
        with self.door:
            limit_us = self.now_us + limit_ms * 1_000
            if not future.done:
                future.add_done_callback(self._wake_outside)
            try:
                while not future.done:
                    self._run(limit_us)
                    if not future.done and self.now_us >= limit_us:
                        raise SimulationError(self._too_late(future.label or "the answer", limit_ms))
            finally:
                future.remove_done_callback(self._wake_outside)
            return future.result()

    def _wake_outside(self, _: Future[Any]) -> None:
        self.request_stop()

    def _too_late(self, what: str, limit_ms: int) -> str:
        waits = self.describe_waits()
        return f"{what} did not come within {limit_ms} ms of the world's time. Who waits for what:\n{waits}"

    def describe_waits(self) -> str:
        """One line per task: node, task and what it waits for; the running services of a node are one line."""
        with self.door:
            lines = [
                f"  {node.name}: {task.name} {task.describe_wait()}"
                for node in self.nodes.values()
                for task in node.life.tasks
            ]
        return "\n".join(lines) or "  (no task is alive)"

    # -- nodes ------------------------------------------------------------------------------------------------------

    def next_spec(self) -> NodeSpec:
        """The specification that the next node gets unless told otherwise: the next free address and process id."""
        number = len(self.nodes) + 1
        return NodeSpec(ip=f"10.0.{number // 250}.{number % 250}", pid=1_000 + number)

    def node(self, name: str, spec: NodeSpec | None = None) -> Node:
        """Add a machine with one process to the world; addresses are given out in the order of creation."""
        if name in self.nodes:
            raise LearnerError(f"there is a node {name!r} already", "choose another name")
        if not isinstance(name, str) or not _NODE_NAME.fullmatch(name):
            raise LearnerError(f"{name!r} is not a name for a node", "use letters, digits, '-', '_' and '.'")
        node = Node(self, name, spec or self.next_spec())
        self.network.add(node)
        self.nodes[name] = node
        return node

    def take_away(self, node: Node) -> None:
        """Undo the making of a machine for which no process could be made."""
        self.network.take_away(node)
        del self.nodes[node.name]
