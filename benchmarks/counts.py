"""How much Python a message executes: bytecodes and calls, counted. The same on every machine with the same Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from benchmarks.harness import garbage_collector_off


class Counts(NamedTuple):
    """What one message costs: bytecodes executed, and Python functions entered or coroutines resumed."""

    bytecodes: float
    calls: float


def counted(run: Callable[[], Any]) -> Counts:
    """The bytecodes and calls of one call of `run`."""
    bytecodes = calls = 0

    def on_opcode(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal bytecodes
        bytecodes += event == "opcode"
        return on_opcode

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal calls
        calls += 1
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return on_opcode

    before = sys.gettrace()
    # What an earlier run has left is collected first, so that nothing of its end is counted here.
    with garbage_collector_off():
        sys.settrace(on_call)
        try:
            run()
        finally:
            sys.settrace(before)
    return Counts(bytecodes, calls)


def per_message(prepare: Callable[[int], Callable[[], Any]], few: int = 320, many: int = 960) -> Counts:
    """What one more message costs: `prepare(n)` gives a run of n messages, and what all runs share is taken off.

    A run before them fills what is cached for the whole process.
    """
    prepare(few)()
    small, large = counted(prepare(few)), counted(prepare(many))
    return Counts(*((more - less) / (many - few) for less, more in zip(small, large, strict=True)))
