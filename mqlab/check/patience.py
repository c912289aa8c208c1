"""A limit for code that does not come to an end: somebody's own loop, inside a world or outside of one.

No slice ends in such a loop, so no clock of a world helps. A second thread looks at the processor time of the process,
not at the real clock: a slow machine, or one that was busy with other things, breaks nothing off. What a judge does
for itself, `not_counted`, is not the student's either.

A browser's Python has no second thread. There each loop of a student's code looks at the clock itself whenever it goes
back to its beginning; the loops of libraries, and mqlab's own, do not, so they cost nothing.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType, TracebackType
from typing import Any, Self

from mqlab.errors import MqlabError

PATIENCE_S = 8.0
"""How much processor time the judgement of one seed may take in a notebook, where somebody waits for it; it takes less
than one second in every lab.
"""
MARKING_PATIENCE_S = 20.0
"""The same when a notebook is marked, where each call of the solution crosses to another process."""
_LOOK_S = 0.1
_INSTALLED = "/lib/python"
"""Where in a browser the code lies that no student wrote."""
_TOOL = "mqlab.check"


class EndlessLoop(BaseException):
    """The limit was reached. No `Exception`, since code that loops may well catch those.

    Its text says which limit, where it is another one than that of the check.
    """


class CodeIsGone(MqlabError):
    """A student's code can't be asked any more, and the text says why: its process has ended, or was broken off."""


class _JudgesOwn:
    """The processor time that judges spend for themselves."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._since_s: float | None = None

    def counted_s(self) -> float:
        """The processor time of this process without it: it stands still while a judge is at work."""
        since_s = self._since_s
        return (time.process_time() if since_s is None else since_s) - self._spent_s

    @contextmanager
    def not_counted(self) -> Iterator[None]:
        """What is done inside is the judge's own work, as playing the worlds of its question: no patience is spent."""
        self._since_s = since_s = time.process_time()
        try:
            yield
        finally:
            self._spent_s += time.process_time() - since_s
            self._since_s = None


_own = _JudgesOwn()
not_counted = _own.not_counted


class _WatchingThread:
    """Raises EndlessLoop inside, again and again, once the processor time is used up."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.ran_out = False

    def __enter__(self) -> Self:
        import threading

        self._over = threading.Event()
        self._raising = threading.RLock()
        self._who = threading.get_ident()
        watch = threading.Thread(target=self._watch, args=(_own.counted_s() + self._limit_s,), daemon=True)
        watch.start()
        return self

    def _watch(self, end_s: float) -> None:
        while not self._over.wait(_LOOK_S):
            if _own.counted_s() >= end_s:
                with self._raising:
                    if not self._over.is_set():
                        self.ran_out = True
                        _raise_in(self._who, EndlessLoop)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        while not self._over.is_set():
            # The limit may be reached in here, too. A watch that nobody has ended would break off whatever comes next.
            with suppress(EndlessLoop), self._raising:
                self._over.set()
                if self.ran_out:
                    _raise_in(self._who, None)


class _WatchedLoops:
    """Raises EndlessLoop in the student's own loops once the processor time is used up."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self.ran_out = False

    def __enter__(self) -> Self:
        self._end_s = _own.counted_s() + self._limit_s
        watch: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
        watch.use_tool_id(watch.DEBUGGER_ID, _TOOL)
        watch.register_callback(watch.DEBUGGER_ID, watch.events.JUMP, self._jumped)
        watch.set_events(watch.DEBUGGER_ID, watch.events.JUMP)
        self._monitoring = watch
        return self

    def _jumped(self, code: CodeType, _from: int, _to: int) -> Any:
        if code.co_filename.startswith(_INSTALLED):
            return self._monitoring.DISABLE
        if _own.counted_s() >= self._end_s:
            self.ran_out = True
            raise EndlessLoop
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._monitoring.set_events(self._monitoring.DEBUGGER_ID, 0)
        self._monitoring.free_tool_id(self._monitoring.DEBUGGER_ID)


Patience = _WatchedLoops if sys.platform == "emscripten" else _WatchingThread
"""`with Patience(limit_s) as patience: ...`; afterwards `patience.ran_out` says whether the limit was reached."""


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Let a thread raise the error before its next instruction; None takes back what was not raised yet."""
    raised = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
