"""What is done to a lab's world from outside: processes started and killed, links cut, faults at their times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from mqlab.errors import LearnerError
from mqlab.sim import FAULTS, LinkSpec, World
from mqlab.sim.faults import check_fault, find_node
from mqlab.sim.faults import start as start_process
from mqlab.sim.life import FROZEN, RUNNING
from mqlab.sim.outside import OUTSIDE, from_report
from mqlab.sim.schedule import parse_schedule
from mqlab.sim.timer import Timer
from mqlab.trace.events.world import ActionTaken
from mqlab.trace.history import History

Action = tuple[int, int, str, dict[str, Any]]
"""(slice number, time in us, verb, JSON-able arguments): what was done to the world from outside, and when."""


class HasState(Protocol):
    """A process, as far as it matters here."""

    @property
    def state(self) -> str:
        """ "running", "frozen" or "down"."""
        ...


class Acting:
    """The part of a Lab that breaks and mends its world; every action is recorded, so that it can be played again."""

    world: World
    processes: Mapping[str, HasState]
    actions: list[Action]
    _history: History | None

    def _note_change(self, what: str) -> None:
        """Remember a change from outside that no report can repeat."""
        raise NotImplementedError

    def _done_again_by_itself(self) -> bool:
        """Whether what happens now is part of the world, so that a replay must not do it once more."""
        raise NotImplementedError

    def act(self, verb: str, **arguments: Any) -> None:
        """Do something to the world from outside: a fault of the registered vocabulary, recorded for replays."""
        self.check_action(verb, arguments)
        if verb in OUTSIDE:
            self.from_outside(verb, from_report(verb, arguments))
            return
        try:
            text = json.dumps(arguments, sort_keys=True)
        except TypeError as error:
            raise LearnerError(
                f"the arguments of {verb!r} are not JSON: {error}", "use texts, numbers and lists"
            ) from None
        with self.world.door:
            if not self._done_again_by_itself():
                self.actions.append((self.world.slice_no, self.world.now_us, verb, arguments))
            if self.world.hooks.on:
                self.world.hooks.emit(ActionTaken(verb, text))
            FAULTS[verb](self.world, **arguments)
            if not self.world.door.inside:
                self.world.report_failed_observer()

    def from_outside(self, verb: str, arguments: dict[str, Any]) -> None:
        """Let something come from outside (a verb of `OUTSIDE`), recorded for replays as a fault is.

        A lab without a history can tell no hash, so it writes no reports, and keeps nothing of this.
        """
        with self.world.door:
            if self._history is not None:
                self.actions.append((self.world.slice_no, self.world.now_us, verb, arguments))
            OUTSIDE[verb](self.world, **arguments)

    def check_action(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """LearnerError if there is no such action, or if these cannot be its arguments."""
        if verb in OUTSIDE:
            from_report(verb, arguments)
        elif verb in FAULTS:
            check_fault(self.world, verb, arguments)
        else:
            raise LearnerError(f"there is no action {verb!r}", f"use one of {', '.join(FAULTS)}")

    def start(self, name: str) -> None:
        """Start a process that was added with `start=False` (or that ended); it begins with the next slice."""
        if name in self.processes and self.processes[name].state == "down":
            self.restart(name)
            return
        self._note_change("lab.start(...)")
        with self.world.door:
            start_process(self.world, name)

    def crash(self, name: str) -> None:
        """Kill a process: memory is lost, written data stays with the machine, the others see the connections close."""
        self.act("crash", node=name)

    def power_off(self, name: str) -> None:
        """Pull the plug of a machine: also what was written but not flushed may be lost."""
        self.act("power_off", node=name)

    def restart(self, name: str) -> None:
        """Start a process (again) on its disk."""
        self.act("restart", node=name)

    def freeze(self, name: str) -> None:
        """Let a process hang, connections open. LearnerError where it does not run: then nothing would happen."""
        self._must_be(name, RUNNING, f"{name} is frozen already", f"let it go on: lab.thaw({name!r}), or crash it")
        self.act("freeze", node=name)

    def thaw(self, name: str) -> None:
        """Let a frozen process go on. LearnerError where it is not frozen: then nothing would happen."""
        self._must_be(name, FROZEN, f"{name} is not frozen", f"freeze it first: lab.freeze({name!r})")
        self.act("thaw", node=name)

    def _must_be(self, name: str, state: int, told: str, hint: str) -> None:
        life = find_node(self.world, name).life
        if life.over:
            raise LearnerError(f"{name} is down", f"restart it first: lab.restart({name!r})")
        if life.state != state:
            raise LearnerError(told, hint)

    def partition(self, left: str | list[str], right: str | list[str]) -> None:
        """Cut all links between two groups of machines."""
        self.act("partition", left=left, right=right)

    def heal(self, left: str | list[str], right: str | list[str]) -> None:
        """Mend all links between two groups of machines."""
        self.act("unpartition", left=left, right=right)

    def disconnect(self, a: str, b: str) -> None:
        """Break the connections between two machines; frames in flight are lost."""
        self.act("disconnect", a=a, b=b)

    def faults(self, schedule: str) -> None:
        """Let faults happen at their times, a line each: `at 12.5s: partition broker-a | broker-b for 3s`."""
        faults = parse_schedule(schedule)
        self._note_change("lab.faults(...)")
        with self.world.door:
            for fault in faults:
                timer = Timer(self.world.life, fault.verb, self._fault_now, (fault.verb, fault.arguments))
                self.world.push(fault.at_us, timer, 0)

    def _fault_now(self, verb: str, arguments: dict[str, Any]) -> None:
        if self.world.hooks.on:
            self.world.hooks.emit(ActionTaken(verb, json.dumps(arguments, sort_keys=True)))
        FAULTS[verb](self.world, **arguments)

    def link(self, a: str, b: str, spec: LinkSpec) -> None:
        """Set how frames travel between two machines, both directions; before the first connection between them."""
        for source, target in ((a, b), (b, a)):
            self.world.network.lay(source, target, spec)
