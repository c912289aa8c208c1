"""What attacks look for on this machine, and how it is seen that all of it is as it was."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

import mqlab

CLONE = Path(__file__).parents[2]
SLEEPERS = ("31415",)
_SHARED = (Path("/dev/shm"), Path("/tmp"), Path("/var/tmp"), Path("/dev/mqueue"))
_WITH_CONTENT = 1_000_000

CONFINED_TRIES = """
import os
if os.getpid() > 200 or os.getuid() != 1000: raise SystemExit("this is not confined, and nothing is tried")
FOUND = []
def tried(what, attempt):
    try:
        got = attempt()
    except BaseException:
        return
    FOUND.append(what if got is None else f"{what}: {got!r:.80}")
"""
"""How the text of an attack begins that tries things: where it is not confined it ends. What has worked is in FOUND."""


class Outside:
    """Files, and a server on a socket, that nothing which is marked may touch."""

    def __init__(self, place: Path) -> None:
        self.victim, self.socket = place / "victim", place / "s"
        self.connected = 0
        (self.victim / "directory").mkdir(parents=True)
        for name, mode in {"file": 0o644, "secret": 0o600, "program": 0o755, "locked": 0o000}.items():
            (self.victim / name).write_text(f"this is {name}")
            (self.victim / name).chmod(mode)
        with suppress(OSError):
            os.setxattr(self.victim / "file", "user.mark", b"before")

    def __enter__(self) -> Self:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.socket))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._server.accept()[0].close()
                self.connected += 1

    def __exit__(self, *_: object) -> None:
        self._server.close()


def picture(*places: Path) -> dict[str, object]:
    """path -> what it is: mode, owner, size, times but for that of reading, extended attributes, content."""
    seen: dict[str, object] = {}
    for place in places:
        for path in [place, *_below(place)]:
            status = path.lstat()
            content = ""
            if stat.S_ISREG(status.st_mode) and status.st_size < _WITH_CONTENT:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            seen[str(path)] = (
                status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_nlink, status.st_mtime_ns,
                status.st_ctime_ns, _attributes(path), content,
            )  # fmt: skip
    return seen


def _below(place: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(place):
        # What Python itself keeps of modules changes when a module is imported for the first time.
        directories[:] = sorted(name for name in directories if name != "__pycache__")
        yield from (Path(directory, name) for name in sorted([*directories, *names]))


def _attributes(path: Path) -> dict[str, bytes]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
    except OSError:
        return {}


def watched(outside: Outside, *more: Path) -> dict[str, object]:
    """All that is compared before and after."""
    own = Path(mqlab.__file__).parent
    return picture(outside.victim, own, CLONE / "labs" / "sources", *more)


def shared_memory() -> list[str]:
    """What there is of System V, and what attacks have left in places that all processes share."""
    tables = [Path("/proc/sysvipc", name).read_text() for name in ("shm", "msg", "sem")]
    left = [str(path) for place in _SHARED if place.is_dir() for path in place.glob("mqlab-attack*")]
    return [*tables, *left]


def processes() -> list[str]:
    """Processes of this clone that run somebody else's code, and those that attacks have left."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        ours = str(CLONE) in " ".join(words) and any("mqlab.grading.far_" in word for word in words)
        if ours or (words[1:] and words[1] in SLEEPERS):
            found.append(" ".join(words)[-200:])
    return found
