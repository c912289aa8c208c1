"""The scheduler of a world: takes from the agenda what goes next, and plays it.

A slice is one task resumed or one callback, on one node. Entries due at one instant play in the order in which they
came, unless ties are choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heappop

from mqlab.errors import MqlabError, ObserverError, SimulationError
from mqlab.sim.agenda import Agenda, Ready
from mqlab.sim.choices import Choices, Policy
from mqlab.sim.life import ENDED, FROZEN, Life
from mqlab.sim.task import Task
from mqlab.sim.timer import Lane
from mqlab.trace.bus import Bus

NEVER = 1 << 62
"""A time in microseconds, and a number of slices, that no world comes to."""


class Scheduler(Agenda):
    """An agenda that is played, one slice after the other; all that a process, a connection or a door sees of a world.

    `slice_no` is the number of slices played, `current` what plays now (outside of all slices `life`, the world's own).
    With `tie_is_choice` the seed decides what goes first of all that is due at one instant, and where a task is
    preempted.
    """

    def __init__(
        self,
        seed: int | str,
        overrides: Mapping[tuple[str, int], int] | None,
        policy: Policy | None,
        *,
        epoch_ms: int,
        tie_is_choice: bool,
        max_slices_per_instant: int,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.epoch_ms = epoch_ms
        self.max_slices_per_instant = max_slices_per_instant
        self.choices = Choices(seed, overrides, policy)
        self.choose = self.choices.choose
        self.slice_no = 0
        self.life = Life(self, "world")
        self.current = self.life
        self.hooks = Bus(self)
        self.broken: str | None = None
        self.tie_is_choice = tie_is_choice
        self._picked = False
        self.attention = False
        self.stop_requested = False
        self.halt_at_slice: int | None = None
        """The last slice of this world, when it is a replay up to there; going on raises Halted."""
        self._endless_at = max_slices_per_instant
        self._died: tuple[Task, BaseException] | None = None
        self._observer_error: ObserverError | None = None

    def play_next(self, entry: Ready) -> None:
        """Let this entry go before all else that is due now, whatever the choice among ties would be."""
        self.ready.appendleft(entry)
        self._picked = True

    def play(self, limit_us: int = NEVER, slices: int = NEVER) -> int:
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
        # By name, whatever the order in which they came: what an override chooses is the same thing in every world.
        named = sorted([(f"{e[0].life.node_name}: {e[0].name}", k) for k, e in enumerate(live)])
        entry = live.pop(named[self.choices.choose_tied([name for name, _ in named])][1])
        self.ready.clear()
        self.ready.extend(live)
        return entry

    def advance(self, to_us: int) -> None:
        """Set the clock forward; what is due by then stays where it is."""
        if to_us > self.now_us:
            self.now_us = to_us
            self._endless_at = self.slice_no + self.max_slices_per_instant

    def request_stop(self) -> None:
        """Stop playing after the current slice (breakpoints and the stop button do this)."""
        self.stop_requested = True
        self.attention = True

    # -- loud failures ----------------------------------------------------------------------------------------------

    def task_died(self, task: Task, error: BaseException) -> None:
        """Remember that a task ended with an error nobody waits for; the world stops after this slice."""
        if self._died is None:
            self._died = (task, error)
        self.attention = True

    def observer_failed(self, error: ObserverError) -> None:
        """Remember that a sink failed; the world stops after this slice, and is broken, for something was not seen."""
        if self._observer_error is None:
            self._observer_error = error
            self.broken = str(error)
        self.attention = True

    def report_failures(self) -> None:
        """Raise the error of an observer or of a task that nobody was told of yet."""
        self.report_failed_observer()
        if self._died is not None:
            self._report_dead_task()

    def report_failed_observer(self) -> None:
        """Raise the error of an observer that nobody was told of yet."""
        error, self._observer_error = self._observer_error, None
        if error is not None:
            raise error

    def _report_dead_task(self) -> None:
        assert self._died is not None
        task, error = self._died
        self._died = None
        raise SimulationError(
            f"task {task.name!r} on {task.life.node_name} died: {type(error).__name__}: {error}"
        ) from error

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
