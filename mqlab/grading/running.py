"""Runs a notebook as its student would, in confinement: the feedback shows its outputs. No points depend on it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.grading.confine import Limits, begin, private_directory
from mqlab.grading.outside import Unreadable, open_file, read_json
from mqlab.grading.printable import printable
from mqlab.grading.watchdog import Watchdog

MOST_BYTES = 50 * 1024 * 1024
"""A larger executed notebook is not kept."""
CELL_S = 120
_LOOK_S = 0.1
_MOST_VERDICT = 10_000


class NotebookRun(NamedTuple):
    """How the run ended, in words ("ok" if every cell ran to its end), how long it took, the most memory it held."""

    verdict: str
    seconds: float
    peak_mib: float


def run_notebook(path: Path, parameters: Mapping[str, Any], out: Path, limits: Limits) -> NotebookRun:
    """Run a copy of the notebook with papermill and these parameters; the result goes to `out`.

    Whatever the notebook has started is ended with it. Unreadable when there is no such file (any more).
    """
    notebook = open_file(path, MOST_BYTES)
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    try:
        with private_directory(limits) as place:
            arguments = [path.name, str(writes), str(CELL_S), json.dumps(dict(parameters))]
            began = time.monotonic()
            try:
                child = begin(
                    "mqlab.grading.notebook_process", arguments, limits, place,
                    checks=True, given=(notebook, path.name), keeps=[writes],
                )  # fmt: skip
            finally:
                os.close(writes)
            watchdog = Watchdog(child.pid, limits)
            said = bytearray()
            stopped = _watched(child, watchdog, began + limits.wall_s, limits, reads, said)
            seconds = time.monotonic() - began
    finally:
        os.close(notebook)
        os.close(reads)
    line, _, ran = said.partition(b"\n")
    if ran:
        out.write_bytes(ran)
    return NotebookRun(stopped or _verdict(bytes(line), child.returncode), seconds, watchdog.most_bytes / 2**20)


def _watched(
    child: subprocess.Popen[bytes], watchdog: Watchdog, end_s: float, limits: Limits, reads: int, said: bytearray
) -> str:
    """Wait for the child, and take what it says; why it was stopped, "" if it ended by itself. Nothing that it has
    started is left.
    """
    excess = ""
    try:
        while child.poll() is None and not excess:
            if _take(reads, said):
                select.select([reads], [], [], _LOOK_S)
            else:
                # It has nothing more to say: the end of the process is all that is waited for.
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
            excess = watchdog.excess() or _too_much(said)
            if time.monotonic() > end_s:
                excess = f"it ran longer than {limits.wall_s:g} s"
    finally:
        watchdog.kill()
        child.wait()
    if not excess:
        _take(reads, said)
        excess = _too_much(said)
    return f"stopped: {excess}" if excess else ""


def _too_much(said: bytearray) -> str:
    if len(said) <= MOST_BYTES + _MOST_VERDICT:
        return ""
    said.clear()
    return f"it gave more than {MOST_BYTES // 2**20} MiB in place of a notebook"


def _take(reads: int, said: bytearray) -> bool:
    """Read what is there to be read, with a limit; whether more may come."""
    while len(said) <= MOST_BYTES + _MOST_VERDICT:
        try:
            piece = os.read(reads, 1 << 20)
        except BlockingIOError:
            return True
        if not piece:
            return False
        said += piece
    return True


def _verdict(line: bytes, status: int | None) -> str:
    """What the run says of itself; it may say what it likes, since no points depend on it."""
    try:
        if len(line) < _MOST_VERDICT:
            return printable(str(read_json(line)["verdict"]), most=500)
    except (Unreadable, KeyError, TypeError, ValueError):
        pass
    return f"failed: the run ended with status {status} and no result"
