"""Runs a notebook as its student would, in confinement: the feedback shows its outputs. No points depend on it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mqlab.check.exam import OVER
from mqlab.grading.confine import Limits, confined
from mqlab.grading.students_process import bare_environment
from mqlab.grading.watchdog import Watchdog

MOST_BYTES = 50 * 1024 * 1024
"""A larger executed notebook is not kept."""
CELL_S = 120
_LOOK_S = 0.1


class NotebookRun(NamedTuple):
    """How the run ended, in words ("ok" if every cell ran to its end), how long it took, the most memory it held."""

    verdict: str
    seconds: float
    peak_mib: float


def run_notebook(path: Path, parameters: Mapping[str, Any], out: Path, limits: Limits) -> NotebookRun:
    """Run a copy of the notebook with papermill and these parameters; the result goes to `out`.

    Whatever the notebook has started is ended with it.
    """
    with TemporaryDirectory(prefix="mqlab-run-") as place:
        lab, ran, result = (Path(place) / name for name in (path.name, "ran.ipynb", "result.json"))
        copyfile(path, lab, follow_symlinks=False)
        command = [sys.executable, "-I", "-m", "mqlab.run_one_lab", str(lab), str(ran), str(result), str(CELL_S)]
        command.append(json.dumps(dict(parameters)))
        began = time.monotonic()
        child = subprocess.Popen(
            confined(replace(limits, writes=(place,), reads=(place,)), command),
            cwd=place,
            env={**bare_environment(place), OVER: "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        watchdog = Watchdog(child.pid, limits)
        stopped = _watched(child, watchdog, began + limits.wall_s, limits)
        seconds = time.monotonic() - began
        verdict = stopped or _verdict(result, child.returncode)
        _keep(ran, out)
    return NotebookRun(verdict, seconds, watchdog.most_bytes / 2**20)


def _watched(child: subprocess.Popen[bytes], watchdog: Watchdog, end_s: float, limits: Limits) -> str:
    """Wait for the child; why it was stopped, "" if it ended by itself. Nothing that it has started is left."""
    excess = ""
    try:
        while child.poll() is None and not excess:
            try:
                child.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                excess = watchdog.excess()
            if time.monotonic() > end_s:
                excess = f"it ran longer than {limits.wall_s:g} s"
    finally:
        watchdog.kill()
        child.wait()
    return f"stopped: {excess}" if excess else ""


def _verdict(result: Path, status: int | None) -> str:
    """What the run says of itself; it may say what it likes, since no points depend on it."""
    try:
        if result.stat().st_size < 10_000 and not result.is_symlink():
            return str(json.loads(result.read_text(encoding="utf-8"))["verdict"])[:500]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return f"failed: the run ended with status {status} and no result"


def _keep(ran: Path, out: Path) -> None:
    if ran.is_file() and not ran.is_symlink() and ran.stat().st_size <= MOST_BYTES:
        copyfile(ran, out, follow_symlinks=False)
