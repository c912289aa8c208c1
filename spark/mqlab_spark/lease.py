"""Who writes into a folder alone: a lease, which its holder renews, and which ends with it.

The files FOLDER/00000001, 00000002, ... are the holders, one after another; the last one has the lease until it says
that it has ended. So whoever wants it makes the next file, which of many can be made by one alone, and no clocks are
compared: a holder whose file does not change while others watch it for LEASE_S is dead, and one of this machine whose
process has ended is dead at once.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

from mqlab.errors import LearnerError
from mqlab_spark.storage import Folder

BEAT_S = 3.0
"""A holder renews its lease each so many seconds."""

LEASE_S = 30.0
"""A lease that was not renewed for so long has ended."""

UNREADABLE_S = 3.0
"""A holder that nobody can read was killed while it wrote its first few bytes, which takes no longer."""

WATCH_S = 0.25


class Lease:
    """The lease number `number` of a folder, held by this process since it was taken (`take`)."""

    def __init__(self, folder: Folder, number: int, holder: dict[str, Any]) -> None:
        self._folder = folder
        self._number = number
        self._holder = holder
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._renew, daemon=True)
        self._beats.start()

    def _renew(self) -> None:
        beat = 0
        while not self._ended.wait(BEAT_S):
            beat += 1
            # A store that is not there, or full, for a moment may be back before the lease has ended.
            with suppress(OSError):
                self._folder.swap(_name(self._number), _text({**self._holder, "beat": beat}))

    def check(self) -> None:
        """LearnerError if somebody else has taken the lease, since this process was stopped for so long."""
        if max(_numbers(self._folder), default=0) != self._number:
            raise LearnerError(
                f"somebody else has begun to write into {self._folder.parent()[0].address}, since this process was "
                f"silent for more than {LEASE_S:.0f} s",
                "run the same command again when the other has ended",
            )

    def end(self) -> None:
        """Give the lease back."""
        self._ended.set()
        self._beats.join()
        try:
            self._folder.swap(_name(self._number), _text({**self._holder, "ended": True}))
        except OSError:
            # Where there is no room for a few bytes, removing needs none.
            with suppress(OSError):
                self._folder.remove(_name(self._number))


def take(folder: Folder, what: str) -> Lease:
    """Take the lease of a folder, until `end`; LearnerError, which says `what` it is for, while somebody else has it.

    It takes up to LEASE_S to see that a holder on another machine is dead, and up to BEAT_S that it is not.
    """
    me = {"host": socket.gethostname(), "pid": os.getpid(), "id": uuid4().hex}
    while True:
        last = max(_numbers(folder), default=0)
        if last and not _is_over(folder, _name(last)):
            seen = folder.look(_name(last))
            holder = _read(seen.data) if seen else {}
            raise LearnerError(
                f"somebody {what}: process {holder.get('pid')} on {holder.get('host')}", "wait until it has ended"
            )
        mine = last + 1
        if folder.create(_name(mine), _text(me)):
            if max(_numbers(folder)) == mine:
                for file in folder.files():
                    if file.path < _name(mine):
                        folder.remove(file.path)
                return Lease(folder, mine, me)
            # This process slept while others took the lease and gave it back, all the files that it knew of.
            folder.remove(_name(mine))


def _is_over(folder: Folder, name: str) -> bool:
    """Has the holder given the lease back, or died? It is watched until that is known."""
    first = folder.look(name)
    began = time.monotonic()
    while first is not None:
        holder = _read(first.data)
        if holder.get("ended") or _has_died(holder):
            return True
        patience = LEASE_S if holder else UNREADABLE_S
        now = folder.look(name)
        if now is None or now.state != first.state:
            return now is None or bool(_read(now.data).get("ended"))
        if time.monotonic() - began > patience:
            return True
        time.sleep(WATCH_S)
    return True


def _has_died(holder: dict[str, Any]) -> bool:
    """Is it known that the process has ended? Of another machine nobody knows, nor when its number was given anew."""
    if holder.get("host") != socket.gethostname() or type(holder.get("pid")) is not int:
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _numbers(folder: Folder) -> list[int]:
    return [int(file.path) for file in folder.files() if file.path.isdigit()]


def _name(number: int) -> str:
    return f"{number:08}"


def _text(holder: dict[str, Any]) -> bytes:
    return json.dumps(holder).encode()


def _read(text: bytes) -> dict[str, Any]:
    try:
        holder = json.loads(text)
    except ValueError:
        holder = {}
    return holder if isinstance(holder, dict) else {}
