"""Confinement of a process that runs somebody else's code, and of all that it starts, by bubblewrap (`bwrap`).

Such a process has processes, network, users, host name, /proc, /dev, /dev/shm and /tmp of its own. It sees of this
machine what Python needs (`mqlab.grading.sight`), none of which it can change, and writes into its own /tmp, which has
a size, lies in memory, and is gone with the process. System calls that reach further are refused
(`mqlab.grading.system_calls`). When the process that has begun it ends, so does all of it.

Where that can't be had, `why_not_confined` says why. Without confinement (`Limits.confined` is False) there is only
what every system has: limits of processor time and file size, an environment of its own, and the watchdog.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.outside import remove_tree
from mqlab.grading.sight import PLACE, sight
from mqlab.grading.system_calls import filter_program

MIB, GIB = 1024**2, 1024**3
JAVA_THREADS = 400
SHARED_MEMORY = 64 * MIB
"""The size of /dev/shm."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process, with all that it starts, may use."""

    wall_s: float = 300
    cpu_s: int = 240
    memory_bytes: int = 2 * GIB
    processes: int = 64
    """Processes and threads."""
    file_bytes: int = 200 * MIB
    """The size of one file."""
    disk_bytes: int = 512 * MIB
    """The size of all files together, where it is confined."""
    files: int = 50_000
    """How many files and directories, where it is confined."""
    confined: bool = True

    def with_java(self) -> Limits:
        """The same with room for the threads of a Java, of which Spark has hundreds."""
        return replace(self, processes=self.processes + JAVA_THREADS)

    def as_text(self) -> str:
        """As the confined process takes it."""
        return json.dumps(asdict(self))


def limits_of(fields: dict[str, Any]) -> Limits:
    """The limits that were written with `as_text`."""
    return Limits(**fields)


@contextmanager
def private_directory(limits: Limits) -> Iterator[str]:
    """Where a process may write, as it sees that itself."""
    if limits.confined:
        yield PLACE
        return
    place = mkdtemp(prefix="mqlab-private-")
    try:
        yield place
    finally:
        remove_tree(Path(place))


def begin(
    module: str,
    arguments: Sequence[str],
    limits: Limits,
    place: str,
    *,
    checks: bool = False,
    given: tuple[int, str] | None = None,
    hash_seed: int = 0,
    keeps: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Begin `python -m MODULE LIMITS ARGUMENTS` within limits; the module takes them on by `take_on`.

    `checks`: it may import the labs' checks. `given`: an open file, and its name in there. `keeps`: descriptors that it
    has from here. `hash_seed`: of its Python, so that sets have the same order each time. LearnerError where
    confinement is asked for and can't be had.
    """
    # Not -I, which would not hear of the hash seed; the environment holds nothing else.
    command = [sys.executable, "-s", "-P", "-m", module, limits.as_text(), *arguments]
    passed: list[int] = []
    try:
        if limits.confined:
            see_to_confinement()
            command = [*_bubblewrap(limits, passed, checks), *_handed_in(given), "--chdir", place, "--", *command]
        elif given is not None:
            _copy(given, place)
        return subprocess.Popen(
            command,
            cwd="/" if limits.confined else place,
            env={**bare_environment(place), "PYTHONHASHSEED": str(hash_seed)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[*passed, *keeps, *([given[0]] if given else [])],
            start_new_session=True,
        )
    finally:
        for descriptor in passed:
            os.close(descriptor)


def bare_environment(place: str) -> dict[str, str]:
    """What a confined process knows of this machine: where programs are, and where it may write."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    java = f"-Djava.io.tmpdir={place} -XX:-UsePerfData"
    places = dict.fromkeys(("HOME", "TMPDIR", "SPARK_LOCAL_DIRS"), place)
    own = {"JAVA_TOOL_OPTIONS": java, "MQLAB_SPARK_MASTER": "local[1]", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **places, **own}


# -- bubblewrap --

_ALONE = ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session")
_NOBODY = ("--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", "mqlab")
_FILES = {
    "/etc/passwd": "student:x:1000:1000::/tmp:/bin/sh\n",
    "/etc/group": "student:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost mqlab\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Whom and what it finds in there: itself."""


def _bubblewrap(limits: Limits, passed: list[int], checks: bool) -> list[str]:
    """The beginning of the command; the descriptors that it needs are added to `passed`."""
    command = [shutil.which("bwrap") or "bwrap", *_ALONE, *_NOBODY]
    command += ["--dev", "/dev", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--size", str(limits.disk_bytes), "--tmpfs", PLACE]
    command += sight(checks)
    for name, text in _FILES.items():
        command += ["--ro-bind-data", str(_readable(text.encode(), passed)), name]
    calls = filter_program()
    if calls is not None:
        command += ["--seccomp", str(_readable(calls, passed))]
    return [*command, "--remount-ro", "/"]


def _readable(content: bytes, passed: list[int]) -> int:
    """A descriptor that gives these few bytes."""
    reads, writes = os.pipe()
    os.write(writes, content)
    os.close(writes)
    passed.append(reads)
    return reads


def _handed_in(given: tuple[int, str] | None) -> list[str]:
    return [] if given is None else ["--file", str(given[0]), f"{PLACE}/{given[1]}"]


def _copy(given: tuple[int, str], place: str) -> None:
    with open(os.dup(given[0]), "rb") as source, open(Path(place, given[1]), "xb") as copy:
        shutil.copyfileobj(source, copy)


HOW_TO_CONFINE = (
    "install bubblewrap 0.8 or newer (make bubblewrap; sudo apt-get install bubblewrap; conda install -c conda-forge "
    "bubblewrap), or give --unconfined: then code of students can read, change and remove what you can"
)
_TRIED_S = 60


def see_to_confinement() -> None:
    """LearnerError with the reason and what to do, where students' code can't be confined."""
    why = why_not_confined()
    if why:
        raise LearnerError(f"students' code can't be confined here: {why}", HOW_TO_CONFINE)


@cache
def why_not_confined() -> str:
    """Why nothing can be confined here for this user, in one sentence; "" when it can. It is tried once."""
    if sys.platform != "linux":
        return f"there is no bubblewrap for {sys.platform}"
    if shutil.which("bwrap") is None:
        return "bubblewrap (the program bwrap) is not installed"
    if filter_program() is None:
        return f"there is no filter of system calls for {os.uname().machine}"
    passed: list[int] = []
    try:
        command = [*_bubblewrap(Limits(), passed, False), "--", sys.executable, "-I", "-S", "-c", "pass"]
        tried = subprocess.run(
            command,
            pass_fds=passed,
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIED_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not run: {error}"
    finally:
        for descriptor in passed:
            os.close(descriptor)
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode(errors="replace").strip().splitlines() or [f"it ends with status {tried.returncode}"]
    return f"bubblewrap says: {said[-1]}"


# -- in the process itself --


def take_on(text: str) -> Limits:
    """In the process that was begun: the limits that the system keeps for each process. It is the first thing done."""
    die_with_parent()
    limits = limits_of(json.loads(text))
    for what, most in (
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 1024),
    ):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (_MAPPED * limits.memory_bytes,) * 2)
    with suppress(OSError, ValueError):
        # Counted for the user: in confinement for what is in there only, elsewhere for all that the user has.
        others = 0 if limits.confined else _of_the_user()
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes + others,) * 2)
    return limits


_MAPPED = 3
"""A process may map so many times the memory that it may fill: the watchdog sees what is filled."""


def _of_the_user() -> int:
    """How many processes and threads this user has by now."""
    own = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == os.getuid():
                own += len(list((entry / "task").iterdir()))
    return own


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From now on this process is ended when the one that has started it is gone, where the kernel can do that."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
