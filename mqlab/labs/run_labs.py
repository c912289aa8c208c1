"""Executes labs headless, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError, MissingExtraError
from mqlab.material import INSTALL

if TYPE_CHECKING:
    import psutil

CELL_TIMEOUT_S = 300
_SAMPLE_S = 0.1


class LabRun(NamedTuple):
    """What came of one lab. `peak_mib` is the most that its kernel and the processes under it held at once."""

    lab: str
    seconds: float
    peak_mib: float
    verdict: str

    @property
    def ok(self) -> bool:
        """Whether every cell ran to its end."""
        return self.verdict == "ok"


def select_labs(directory: Path, wanted: Sequence[str] = ()) -> list[Path]:
    """The notebooks of a directory in order of their names; only those whose name or number is wanted, when any is."""
    labs = sorted(directory.glob("*.ipynb"))
    if not labs:
        raise LearnerError(f"there is no notebook in {directory}", INSTALL)
    if not wanted:
        return labs
    for name in wanted:
        if not any(_is_named(lab, name) for lab in labs):
            names = ", ".join(lab.stem for lab in labs)
            raise LearnerError(f"there is no lab {name!r}", f"labs that there are: {names}")
    return [lab for lab in labs if any(_is_named(lab, name) for name in wanted)]


def _is_named(lab: Path, name: str) -> bool:
    return name in (lab.stem, lab.stem.partition("_")[0])


def run_lab(lab: Path, out: Path, cell_timeout_s: int = CELL_TIMEOUT_S) -> LabRun:
    """Execute one notebook into the directory `out`, in a process of its own with a fresh kernel.

    Raises MissingExtraError when the packages for it are not installed.
    """
    require_packages()
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="mqlab-run-") as place:
        result = Path(place) / "result.json"
        log = Path(place) / "log.txt"
        command = [sys.executable, "-m", "mqlab.labs.run_one_lab"]
        command += [str(lab.resolve()), str(out.resolve() / lab.name), str(result), str(cell_timeout_s)]
        started = time.monotonic()
        with log.open("wb") as sink:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT)
            peak_bytes = _watch(child)
        seconds = time.monotonic() - started
        verdict = _verdict(child, result, log)
    return LabRun(lab.stem, seconds, peak_bytes / 2**20, verdict)


def require_packages() -> None:
    """MissingExtraError when what runs a notebook is not installed."""
    from importlib.util import find_spec

    for package in ("papermill", "psutil"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "labs")


def _watch(child: subprocess.Popen[bytes]) -> int:
    """Wait for the child to end; returns the most bytes that the processes under it (kernel, Java) held at once.

    Whatever the child leaves running is ended: a kernel that died leaves its Java behind.
    """
    peak = 0
    seen: dict[int, psutil.Process] = {}
    try:
        while child.poll() is None:
            below = _descendants(child.pid)
            seen.update((process.pid, process) for process in below)
            peak = max(peak, sum(map(_held_bytes, below)))
            try:
                child.wait(_SAMPLE_S)
            except subprocess.TimeoutExpired:
                continue
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for process in seen.values():
            # psutil compares start times, so a process number that the system gave away again is not hit.
            if process.is_running():
                _end(process)
    return peak


def _descendants(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _held_bytes(process: psutil.Process) -> int:
    """What a process holds of the machine's memory: its proportional set size, in which a page that several processes
    have (Python's workers are forked from one) is counted once, each having a part of it. Where the system does not
    tell that, its resident set size.
    """
    import psutil

    try:
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        # No Linux, or the process has ended.
        pass
    try:
        return int(process.memory_info().rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def _end(process: psutil.Process) -> None:
    import psutil

    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _verdict(child: subprocess.Popen[bytes], result: Path, log: Path) -> str:
    """What the child wrote, else how it ended: a run without a result did not go well."""
    if child.returncode == 0 and result.exists():
        return str(json.loads(result.read_text(encoding="utf-8"))["verdict"])
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = lines[-1] if lines else "no output"
    return f"failed: the run ended with status {child.returncode}: {last}"
