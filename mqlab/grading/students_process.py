"""The judge's end: starts the process of a solution, and gives its functions as if they were here."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from mqlab.check.own_process import in_own_process
from mqlab.check.patience import MARKING_PATIENCE_S, EndlessLoop
from mqlab.exercises.handed_over import is_compared, is_handed_over
from mqlab.grading.clock import Clock
from mqlab.grading.confine import Limits, begin, private_directory
from mqlab.grading.data_frames import Frames
from mqlab.grading.outside import MOST_VALUES, has_more_values
from mqlab.grading.peer import Peer
from mqlab.grading.watchdog import Watchdog
from mqlab.grading.wire_errors import PeerLost
from mqlab.sim import Future, Node, Task

LONGEST_LINE = 32 * 1024 * 1024
"""The answer to one question; a DataFrame of 16 MiB is one."""
_LOOK_S = 0.1
MEMBERS_SHARE = 4
"""Each of the processes that may not talk to each other may fill this part of the memory of one."""
ASLEEP_S = 120.0
"""A process that does nothing (it sleeps, or the machine is busy) is waited for so long."""

_OURS = ("mqlab.protocol.", "mqlab.client.", "mqlab.trace.record.", "mqlab.errors.", "mqlab.rebalance.")
"""Objects of these packages are what applications have of RocketMQ."""
_LITTLE: dict[type, tuple[str, ...]] = {
    Node: ("name", "now_ms", "now_us", "sleep", "spawn", "call_later"),
    Clock: ("future", "sleep_us", "at_most"),
    Future: ("set_result",),
    Task: ("cancel", "done", "result"),
}
"""What a solution may do with the machine that it is given, and with a task that it has begun there."""
_MAY_SET = ("ConsumeConcurrentlyContext", "ConsumeOrderlyContext")


class JudgeGate:
    """A solution may have what it was given: no world, no judge, no file."""

    has_the_clock = True

    def may_have(self, value: Any, *, read: bool) -> bool:
        """What applications have of RocketMQ, functions, and what the check hands it: a ledger, a pull that waits."""
        module = f"{type(value).__module__}."
        if type(value) in _LITTLE:
            return not read
        if is_compared(value) or module.startswith(_OURS):
            return True
        if callable(value) and not isinstance(value, type):
            return not module.startswith("mqlab.") or is_handed_over(value)
        return isawaitable(value) or (is_handed_over(value) and not read)

    def may_read(self, owner: Any, name: str) -> bool:
        """Of a machine little, of other objects of mqlab what is public; nothing of functions and what they hold."""
        ours = is_handed_over(owner) or f"{type(owner).__module__}.".startswith("mqlab.")
        return ours and name in _LITTLE.get(type(owner), (name,))

    def may_set(self, owner: Any, name: str) -> bool:
        """What a listener sets in its context."""
        return type(owner).__name__ in _MAY_SET and hasattr(owner, name)

    def may_import(self, module: str) -> bool:
        """Modules that are here already, but for those of the judge."""
        return (
            module in sys.modules
            and f"{module}.".startswith("mqlab.")
            and not module.startswith(("mqlab.labs", "mqlab.grading", "mqlab.check"))
        )

    def told(self, error: BaseException) -> str:
        """Nothing: where the judge raised something is no business of a solution."""
        return ""


class StudentsProcess:
    """A process with the exercise cells of one submission.

        with StudentsProcess(cells) as theirs:
            find_check("05/hold").play(*theirs.answers(["HoldService"]))

    EndlessLoop when an answer takes more than `patience_s` of processor time, or `asleep_s` in all, and when it is
    later than `until_s` of `time.monotonic`.
    """

    def __init__(
        self,
        cells: Iterable[str],
        *,
        module: str = "your_solution",
        patience_s: float = MARKING_PATIENCE_S,
        asleep_s: float = ASLEEP_S,
        until_s: float = math.inf,
        limits: Limits | None = None,
        member: int = 0,
    ) -> None:
        """`member`: which one it is of those that may not talk to each other; 0: it is none of them."""
        self._cells = list(cells)
        self._every_cell = list(self._cells)
        self._member = member
        self._members: dict[int, StudentsProcess] = {}
        self._failed: Exception | None = None
        self._module = module
        self._patience_s = patience_s
        self._asleep_s = asleep_s
        self._until_s = until_s
        self._limits = limits or Limits()

    def __enter__(self) -> Self:
        with ExitStack() as places:
            own = places.enter_context(private_directory(self._limits))
            frames = places.enter_context(TemporaryDirectory(prefix="mqlab-frames-"))
            ours, theirs = os.pipe(), os.pipe()
            self._writes, self._reads = ours[1], theirs[0]
            given = (ours[0], theirs[1])
            try:
                arguments = [str(descriptor) for descriptor in given]
                self._process = begin(
                    "mqlab.grading.solution_process", arguments, self._limits, own, keeps=given, hash_seed=self._member
                )
            except BaseException:
                os.close(self._writes)
                os.close(self._reads)
                raise
            finally:
                for descriptor in given:
                    os.close(descriptor)
            self._places = places.pop_all()
        self._watchdog = Watchdog(self._process.pid, self._limits)
        self._got = bytearray()
        self._began = False
        self._answered = selectors.DefaultSelector()
        self._answered.register(self._reads, selectors.EVENT_READ)
        os.set_blocking(self._writes, False)
        self._readable = selectors.DefaultSelector()
        self._readable.register(self._writes, selectors.EVENT_WRITE)
        self._peer = Peer(self, JudgeGate(), Frames(Path(frames)))
        self._peer.hand_out(Clock())
        self.write(json.dumps({"module": self._module}).encode() + b"\n")
        self.read()
        self._began = True
        self._solution = self._peer.remote(0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._peer.is_closed = True
        self._end()
        while self._members:
            self._members.popitem()[1].__exit__(None, None, None)
        self._answered.close()
        self._readable.close()
        os.close(self._writes)
        os.close(self._reads)
        self._places.close()

    def _end(self) -> None:
        self._watchdog.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def answers(self, names: Iterable[str]) -> tuple[Any, ...]:
        """The functions of those names. The cells are run when it is called for the first time.

        A cell that fails spoils no other one: what the first of them has raised is raised here when a function of those
        names is missing, and KeyError when nothing failed.
        """
        cells, self._cells = self._cells, []
        for cell in cells:
            try:
                self._solution.define(cell)
            except PeerLost:
                raise
            except Exception as error:  # noqa: BLE001  a student's cell may raise anything
                self._failed = self._failed or error
        try:
            return tuple(self._with_members(name, self._solution.function(name)) for name in names)
        except KeyError:
            if self._failed:
                raise self._failed from None
            raise

    def _with_members(self, name: str, answer: Any) -> Any:
        """A class that is asked for one of its own for each process (`in_own_process`) gets such processes."""
        if isinstance(answer, type) and not self._member:
            answer.__mqlab_own_process__ = staticmethod(partial(self._of_member, name))  # type: ignore[attr-defined]
        return answer

    def _of_member(self, name: str, member: int) -> Any:
        """The class as that member has it: from a process of its own, which all seeds' members of that number have."""
        there = self._members.get(member)
        if there is None or there.is_over:
            there = StudentsProcess(
                self._every_cell,
                module=self._module,
                patience_s=self._patience_s,
                asleep_s=self._asleep_s,
                until_s=self._until_s,
                limits=replace(self._limits, memory_bytes=self._limits.memory_bytes // MEMBERS_SHARE),
                member=member,
            )
            there.__enter__()
            self._members[member] = there
        (answer,) = there.answers([name])
        return in_own_process(answer, member)

    def used_s(self) -> float:
        """The processor time that the process has used so far, with all that it has started."""
        return self._watchdog.cpu_s()

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or was broken off: there will be no more answers."""
        return self._process.poll() is not None

    # -- the pipe --

    def write(self, line: bytes) -> None:
        """Send a line; PeerLost when the process has ended, EndlessLoop when it does not read."""
        view, end_s = memoryview(line), time.monotonic() + self._asleep_s
        while view:
            try:
                view = view[os.write(self._writes, view) :]
            except BlockingIOError:
                self._readable.select(_LOOK_S)
                self._see_to_the_end()
                if time.monotonic() > end_s:
                    self._end()
                    raise self._asleep() from None
            except BrokenPipeError:
                raise self._lost() from None

    def read(self) -> bytes:
        """The next line; PeerLost when the process has ended, EndlessLoop when it does not come to an end."""
        cpu_s, began_s = None, time.monotonic()
        self._see_to_the_end()
        while (end := self._got.find(b"\n")) < 0:
            ready = self._answered.select(_LOOK_S)
            if ready:
                piece = os.read(self._reads, 1 << 20)
                if not piece:
                    raise self._lost()
                self._got += piece
                if len(self._got) > LONGEST_LINE:
                    self._end()
                    raise PeerLost("your code gave more than 32 MiB at once")
            self._see_to_the_end()
            if not ready:
                excess = self._watchdog.excess()
                if excess:
                    self._end()
                    raise PeerLost(f"your code was broken off: {excess}")
                cpu_s = self._watchdog.cpu_s() if cpu_s is None else cpu_s
                waited_s = time.monotonic() - began_s
                if not self._began:
                    continue
                if self._watchdog.cpu_s() - cpu_s > self._patience_s:
                    self._end()
                    raise EndlessLoop(f"it was broken off after {self._patience_s:g} s of computing")
                if waited_s > self._asleep_s:
                    self._end()
                    raise self._asleep()
        line = bytes(self._got[:end])
        del self._got[: end + 1]
        if has_more_values(line, MOST_VALUES):
            self._end()
            raise PeerLost(f"your code gave more than {MOST_VALUES:,} values at once")
        return line

    def _see_to_the_end(self) -> None:
        """The time for all checks is over at some moment, whoever is waited for."""
        if time.monotonic() > self._until_s:
            self._end()
            raise EndlessLoop("it was broken off when the time for all checks was over")

    def _asleep(self) -> EndlessLoop:
        return EndlessLoop(f"it was broken off after {self._asleep_s:g} s without an answer")

    def _lost(self) -> PeerLost:
        # It may be about to end. A wait with a limit would sleep, which nobody may in a world.
        end_s = time.monotonic() + 1
        while self._process.poll() is None and time.monotonic() < end_s:
            os.sched_yield()
        code = self._process.returncode
        if code is None:
            return PeerLost("your code closed the pipe to the judge")
        number = -code if code < 0 else code - 128
        known = number in signal.valid_signals()
        how = f"signal {number} ({signal.Signals(number).name})" if known else f"exit code {code}"
        return PeerLost(f"the process of your solution ended with {how} before it answered")
