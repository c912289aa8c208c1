"""A limit for code that does not come to an end: somebody's own loop, inside a world or outside of one.

No slice ends in such a loop, so no clock of a world helps. A second thread looks at the processor time of the process,
not at the real clock: a slow machine, or one that was busy with other things, breaks nothing off.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

PATIENCE_S = 20.0
"""How much processor time the judgement of one seed may take; it takes less than one second in every lab."""
_LOOK_S = 0.1


class EndlessLoop(BaseException):
    """The limit was reached. No `Exception`, since code that loops may well catch those."""


class Patience:
    """`with Patience(): ...` raises EndlessLoop inside, again and again, once the processor time is used up."""

    def __init__(self, limit_s: float = PATIENCE_S) -> None:
        self._limit_s = limit_s
        self.ran_out = False

    def __enter__(self) -> Self:
        import threading

        self._over = threading.Event()
        self._raising = threading.RLock()
        self._who = threading.get_ident()
        watch = threading.Thread(target=self._watch, args=(time.process_time() + self._limit_s,), daemon=True)
        watch.start()
        return self

    def _watch(self, end_s: float) -> None:
        while not self._over.wait(_LOOK_S):
            if time.process_time() >= end_s:
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


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Let a thread raise the error before its next instruction; None takes back what was not raised yet."""
    raised = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
