"""The world: one clock, one agenda, one slice after the other.

A slice is one task resumed or one callback, on one node. Entries due at one instant play in the order in which they
came, unless ties are choices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from heapq import heappop
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MqlabError, ObserverError, SimulationError
from mqlab.sim.agenda import Agenda, Ready
from mqlab.sim.choices import Choices, Policy
from mqlab.sim.door import Door
from mqlab.sim.fences import put_up_fences
from mqlab.sim.life import ENDED, FROZEN, Life
from mqlab.sim.network import Network
from mqlab.sim.node import Node, NodeSpec
from mqlab.sim.pending import Pending, hold_pending, pending_of, pick_pending
from mqlab.sim.task import Task
from mqlab.sim.timer import Lane
from mqlab.trace.bus import Bus

if TYPE_CHECKING:
    from mqlab.sim.future import Future

EPOCH_MS = 1_767_225_600_000
"""The wall-clock time at which every world begins: 2026-01-01 00:00:00 UTC, in ms since 1970."""

WAIT_LIMIT_MS = 600_000
"""How much virtual time a wait from outside may take unless told otherwise: ten minutes."""

_NEVER = 1 << 62
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Halted(MqlabError):
    """A world that is replayed up to a slice has reached it."""

    def __init__(self, slice_no: int) -> None:
        super().__init__(f"the replay ends at slice {slice_no}")
        self.slice_no = slice_no


class World(Agenda):
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
        super().__init__()
        self.seed = seed
        self.epoch_ms = epoch_ms
        self.wire_bytes = wire_bytes
        self.max_slices_per_instant = max_slices_per_instant
        self.choices = Choices(seed, overrides, policy)
        self.choose = self.choices.choose
        self.slice_no = 0
        self.life = Life(self, None)
        self.current = self.life
        self.hooks = Bus(self)
        self.nodes: dict[str, Node] = {}
        self.broken: str | None = None
        self.tie_is_choice = tie_is_choice
        self._picked = False
        self.door = Door(self)
        self.attention = False
        self.stop_requested = False
        self.halt_at_slice: int | None = None
        """The last slice of this world, when it is a replay up to there; going on raises Halted."""
        self.outside_calls: list[str] = []
        """The calls that were awaited from outside, which no replay can repeat."""
        self._endless_at = max_slices_per_instant
        self._died: tuple[Task, BaseException] | None = None
        self._observer_error: ObserverError | None = None
        self.network = Network(self)
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

    def play_next(self, entry: Ready) -> None:
        """Let this entry go before all else that is due now, whatever the choice among ties would be."""
        self.ready.appendleft(entry)
        self._picked = True

    # -- playing ----------------------------------------------------------------------------------------------------

    def play(self, limit_us: int = _NEVER, slices: int = _NEVER) -> int:
        """Play what is due up to `limit_us`, at most `slices` slices, until `attention` is set; the number of slices
        played.

        This is the hot loop: everything rare (an interrupt, a command, a dead task, a breakpoint) sets `attention`, and
        the caller looks what it was.
        """
        heap, ready, ties = self.heap, self.ready, self.tie_is_choice
        take = self._choose_ready if ties else ready.popleft
        slice_no = first = self.slice_no
        last = first + slices if self.halt_at_slice is None else min(first + slices, self.halt_at_slice)
        stop = min(last, self._endless_at)
        try:
            while True:
                if slice_no >= stop:
                    if slice_no >= last:
                        break
                    self._report_endless_instant()
                if ready:
                    target, token, cause = take()
                elif heap and heap[0][0] <= limit_us:
                    due, seq, target, token, cause = heappop(heap)
                    if token != target.token:
                        continue
                    if type(target) is Lane:
                        if not target.settle(seq):
                            continue
                        target = target.take()
                        token, cause = target.token, target.cause
                    if due > self.now_us:
                        self.now_us = due
                        self._endless_at = stop = slice_no + self.max_slices_per_instant
                        if stop > last:
                            stop = last
                    if heap and heap[0][0] <= self.now_us:
                        self.make_ready()
                    if ties:
                        ready.appendleft((target, token, cause))
                        continue
                else:
                    break
                if token != target.token:
                    continue
                if target.life.state:
                    if target.life.state == FROZEN:
                        target.life.parked.append((target, token, cause))
                    continue
                self.slice_no = slice_no = slice_no + 1
                self.cause = cause
                self.current = target
                target.fire()
                if self.attention:
                    break
        except MqlabError:
            raise
        except Exception as error:
            who = f"{self.current.name!r} on {self.current.life.node_name}"
            raise SimulationError(f"{who} raised {type(error).__name__}: {error}") from error
        finally:
            self.current = self.life
        return slice_no - first

    def _choose_ready(self) -> Ready:
        if self._picked:
            self._picked = False
            return self.ready.popleft()
        live = [e for e in self.ready if e[1] == e[0].token and e[0].life.state < ENDED]
        if not live:
            return self.ready.popleft()
        self.ready.clear()
        self.ready.extend(live)
        k = self.choose("ties", len(live))
        entry = self.ready[k]
        del self.ready[k]
        return entry

    def advance(self, to_us: int) -> None:
        """Set the clock forward; what is due by then stays where it is."""
        if to_us > self.now_us:
            self.now_us = to_us
            self._endless_at = self.slice_no + self.max_slices_per_instant

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

    def request_stop(self) -> None:
        """Stop playing after the current slice (breakpoints and the stop button do this)."""
        self.stop_requested = True
        self.attention = True

    def _attend(self) -> bool:
        """Look at what set `attention`; True if the world shall stop."""
        self.attention = False
        try:
            self.report_failed_observer()
            if self._died is not None:
                self._report_dead_task()
            self.door.attend()
            return self.stop_requested
        finally:
            # An error stops the world, too, and what was asked for has been done.
            self.stop_requested = False

    def _run(self, limit_us: int, done: Callable[[], bool] | None = None) -> bool:
        """Play until `done()` or the limit; False if somebody asked to stop before."""
        slices = _NEVER if done is None else 1
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
        limit_us = _NEVER if until_us is None else until_us
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

    # -- loud failures ----------------------------------------------------------------------------------------------

    def task_died(self, task: Task, error: BaseException) -> None:
        """Remember that a task ended with an error nobody waits for; the world stops after this slice."""
        if self._died is None:
            self._died = (task, error)
        self.attention = True

    def _report_dead_task(self) -> None:
        assert self._died is not None
        task, error = self._died
        self._died = None
        raise SimulationError(
            f"task {task.name!r} on {task.life.node_name} died: {type(error).__name__}: {error}"
        ) from error

    def observer_failed(self, error: ObserverError) -> None:
        """Remember that a sink failed; the world stops after this slice, and is broken, for what was to be seen is not.
        """
        if self._observer_error is None:
            self._observer_error = error
            self.broken = str(error)
        self.attention = True

    def report_failed_observer(self) -> None:
        """Raise the error of an observer that nobody was told of yet."""
        error, self._observer_error = self._observer_error, None
        if error is not None:
            raise error

    def _report_endless_instant(self) -> None:
        names: Counter[str] = Counter()
        for entry in list(self.ready)[:1_000]:
            names[f"{entry[0].name} on {entry[0].life.node_name}"] += 1
        self._endless_at = self.slice_no + self.max_slices_per_instant
        busy = ", ".join(name for name, _ in names.most_common(5)) or "(nobody now)"
        raise SimulationError(
            f"{self.max_slices_per_instant} slices were played at one instant ({self.now_us} us): time stands still. "
            f"Ready again: {busy}. A loop there waits for nothing that takes time."
        )

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
