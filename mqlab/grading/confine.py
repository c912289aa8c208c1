"""Limits for a process that runs somebody else's code: `python -m mqlab.grading.confine LIMITS -- COMMAND ...`.

LIMITS is a JSON object of `Limits`. What holds everywhere: processor time, file size, open files, a process group of
its own. On Linux, where the kernel lets this user: no network and nobody else's processes (namespaces; whatever was
started ends with the first process), and files may be written in one directory only (Landlock). What this machine can't
enforce is said by `what_holds`, and the watchdog looks after memory and the number of processes in any case.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

GIB = 1024**3
JAVA_THREADS = 400


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process, with all that it starts, may use."""

    wall_s: float = 300
    cpu_s: int = 240
    memory_bytes: int = 2 * GIB
    processes: int = 64
    """Processes and threads."""
    file_bytes: int = 200 * 1024 * 1024
    """The size of one file."""
    network: bool = False
    writes: tuple[str, ...] = ()
    """The directories in which it may write (and read)."""
    reads: tuple[str, ...] = ()
    """The directories in which it may read, beside those of Python, of the system and of mqlab; none: everywhere."""

    def with_java(self) -> Limits:
        """The same with room for the threads of a Java, of which Spark has hundreds."""
        return replace(self, processes=self.processes + JAVA_THREADS)

    def as_text(self) -> str:
        """As `confine` takes it."""
        return json.dumps(asdict(self))


def limits_of(fields: dict[str, Any]) -> Limits:
    """The limits that were written with `as_text`."""
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return Limits(**known)


def confined(limits: Limits, command: Sequence[str]) -> list[str]:
    """The command that runs a command within limits."""
    return [sys.executable, "-I", "-m", "mqlab.grading.confine", limits.as_text(), "--", *command]


# -- namespaces --

_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET, _CLONE_NEWIPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unshare(flags: int) -> bool:
    try:
        return bool(_libc().unshare(flags) == 0)
    except AttributeError:  # no Linux
        return False


def _alone(network: bool) -> bool:
    """Leave the processes of this machine behind, and its network; False where this user may not."""
    flags = _CLONE_NEWPID | _CLONE_NEWIPC | (0 if network else _CLONE_NEWNET)
    user, group = os.getuid(), os.getgid()
    if _unshare(_CLONE_NEWUSER | flags):
        # The one user who is known in there is the one who was here.
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    elif not _unshare(flags):
        return False
    if not network:
        _loopback_up()
    return True


def _loopback_up() -> None:
    """A kernel of Jupyter talks over 127.0.0.1, also where there is nobody else."""
    import fcntl
    import socket

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


# -- Landlock --

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITING = (1 << 1) | sum(1 << bit for bit in range(4, 14))
"""Write a file; remove and make files and directories; link across directories."""
_TRUNCATE, _WITH_TRUNCATE = 1 << 14, 3
_LISTING = 1 << 3
_READING = (1 << 0) | (1 << 2) | _LISTING
"""Execute or read a file; list a directory."""
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38


def _landlock_version() -> int:
    with suppress(AttributeError, OSError):
        return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)))
    return 0


def _keeps_to(writes: Sequence[str], reads: Sequence[str], lists: Sequence[str] = ()) -> bool:
    """From now on nothing is written, made or removed outside of `writes`, and with `reads` nothing is read outside of
    both, but for the names of the files in `lists`; False where the kernel can't.
    """
    version = _landlock_version()
    if version < 1:
        return False
    libc = _libc()
    handled = _WRITING | (_TRUNCATE if version >= _WITH_TRUNCATE else 0)
    if version < 2:
        handled &= ~(1 << 13)
    if reads:
        handled |= _READING
    rules = ctypes.create_string_buffer(struct.pack("Q", handled))
    ruleset = libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return False
    try:
        for place in [*writes, *_SHARED]:
            _allow(libc, ruleset, handled, place)
        for place in reads:
            _allow(libc, ruleset, handled & _READING, place)
        for place in lists:
            _allow(libc, ruleset, handled & _LISTING, place)
        kept = libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(kept == 0 and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, rights: int, place: str) -> None:
    with suppress(FileNotFoundError):
        opened = os.open(place, os.O_PATH)
        try:
            # For a file, the kernel takes only what can be done with one.
            allowed = rights if os.path.isdir(place) else rights & ((1 << 0) | (1 << 1) | (1 << 2) | _TRUNCATE)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, opened))
            libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
        finally:
            os.close(opened)


_SHARED = ("/dev/null", "/dev/shm")  # noqa: S108  memory that the processes of one notebook share
_OF_THE_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/dev", "/run")


def _of_python() -> list[str]:
    """Where this Python, its packages and mqlab lie.

    Of a clone only mqlab's own packages: beside them are the labs with their solutions.
    """
    places = [sys.prefix, sys.base_prefix, *filter(None, [os.environ.get("JAVA_HOME")])]
    own = [os.path.join(clone, package) for clone in _clones() for package in os.listdir(clone) if _is_ours(package)]
    return [os.path.realpath(place) for place in [*places, *own] if os.path.exists(place)]


def _clones() -> list[str]:
    """The directories on Python's path that lie outside of it; it has to list them to find what can be imported."""
    inside = tuple(os.path.realpath(place) + os.sep for place in (sys.prefix, sys.base_prefix))
    found = (os.path.realpath(place) for place in sys.path if place)
    return [place for place in found if os.path.isdir(place) and not f"{place}{os.sep}".startswith(inside)]


def _is_ours(package: str) -> bool:
    return package in ("mqlab", "mqlab_widgets", "mqlab_spark")


# -- all of it --


def _limit_resources(limits: Limits, alone: bool) -> None:
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
        # Counted for the user: here for what is in the namespace only, elsewhere for all that the user has.
        resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes + (0 if alone else _of_the_user()),) * 2)


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


def main(arguments: Sequence[str]) -> int:
    """Take on the limits and run the command in them; the exit code is its own (128 + n for signal n)."""
    die_with_parent()
    limits = limits_of(json.loads(arguments[0]))
    command = list(arguments[arguments.index("--") + 1 :])
    alone = _alone(limits.network)
    if limits.writes:
        reads = [*limits.reads, *_OF_THE_SYSTEM, *_of_python()] if limits.reads else []
        _keeps_to(limits.writes, reads, _clones())
    _limit_resources(limits, alone)
    if not alone:
        os.execvp(command[0], command)  # noqa: S606  what this module is for
    child = os.fork()
    if child == 0:
        # The first process of its namespace: when it ends, so do all that it has started.
        die_with_parent()
        os.execvp(command[0], command)  # noqa: S606  what this module is for
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From now on this process is ended when the one that has started it is gone, where the kernel can do that."""
    with suppress(AttributeError):
        _libc().prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


@cache
def what_holds() -> dict[str, bool]:
    """What this machine can enforce for this user, beside what holds everywhere; tried in a child process."""
    return {
        "no network, and nobody else's processes": _in_a_child(lambda: _alone(False)),
        "files only in its own directory": _in_a_child(lambda: _keeps_to(["/usr"], ["/usr"])),
    }


def _in_a_child(tried: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os._exit(0 if tried() else 1)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
