"""The process in which a student's code runs, with two file descriptors.

    python -m mqlab.grading.solution_process LIMITS READ WRITE

The first line that it reads has the exercise cells of a submission; it defines them in their order. Then it answers
whoever asks for the functions. It has no seeds, no judge and no result, and whatever it prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from mqlab.check import NotSolvedYet
from mqlab.check.registry import students_frames
from mqlab.grading.confine import take_on
from mqlab.grading.data_frames import FRAMES, Frames
from mqlab.grading.peer import Peer
from mqlab.grading.wire_errors import PeerLost


class FarPipe:
    """The pipe as this side has it."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = os.fdopen(reads, "rb")
        self._writes = os.fdopen(writes, "wb")

    def write(self, line: bytes) -> None:
        """Send a line to the judge."""
        self._writes.write(line)
        self._writes.flush()

    def read(self) -> bytes:
        """The next line that the judge has sent; waits for it."""
        line = self._reads.readline()
        if not line:
            raise PeerLost("the judge has hung up")
        return line


class FarGate:
    """The judge may have all that the student has written."""

    has_the_clock = False

    def may_have(self, value: Any, *, read: bool) -> bool:
        """Anything."""
        return True

    def may_read(self, owner: Any, name: str) -> bool:
        """Anything."""
        return True

    def may_set(self, owner: Any, name: str) -> bool:
        """Anything."""
        return True

    def may_import(self, module: str) -> bool:
        """Classes of mqlab are the same on both sides; those of the checks only the judge has."""
        return f"{module}.".startswith("mqlab.") and not module.startswith("mqlab.labs")

    def told(self, error: BaseException) -> str:
        """Where the student's code raised it."""
        return students_frames(error)


class Solution:
    """What the judge asks first: the functions of the cells, by name."""

    def __init__(self, module: str) -> None:
        self._names: dict[str, Any] = {"__name__": module, "NotSolvedYet": NotSolvedYet}

    def define(self, cell: str) -> None:
        """Run an exercise cell."""
        exec(compile(cell, "your solution", "exec", dont_inherit=True), self._names)  # noqa: S102

    def function(self, name: str) -> Any:
        """The function (or class) of that name; KeyError when no cell defines it."""
        return self._names[name]


def main(arguments: list[str]) -> None:
    """Serve until the judge hangs up."""
    take_on(arguments[0])
    pipe = FarPipe(int(arguments[1]), int(arguments[2]))
    module = json.loads(pipe.read())["module"]
    peer = Peer(pipe, FarGate(), Frames(Path(FRAMES).absolute(), as_told=True))
    peer.hand_out(Solution(module))
    pipe.write(b'["ready", 0]\n')
    peer.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
