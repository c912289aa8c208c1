"""Looks after what no limit of the system holds for a family of processes: memory, how many they are, their files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from mqlab.grading.confine import Limits
from mqlab.grading.sight import PLACE


class Watchdog:
    """The processes below one, that one included."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self._pid = pid
        self._limits = limits
        self.most_bytes = 0
        """The most that they held at once, when somebody looked."""

    def cpu_s(self) -> float:
        """Their processor time so far; of those that have ended, too, when somebody has waited for them."""
        used = 0.0
        for process in self._family():
            try:
                used += sum(process.cpu_times()[:4])
            except psutil.Error:
                continue
        return used

    def excess(self) -> str:
        """What they have too much of, in words that are the same each time; "" for nothing."""
        held = tables = count = 0
        family = self._family()
        for process in family:
            try:
                held += process.memory_info().rss
                tables += _page_tables(process.pid)
                count += process.num_threads()
            except psutil.Error:
                continue
        self.most_bytes = max(self.most_bytes, held)
        if self._limits.confined:
            tables += _in_sockets(family)
        if held + tables > self._limits.memory_bytes:
            return f"it used more than the {self._limits.memory_bytes / 2**30:g} GiB of memory that are allowed"
        if count > self._limits.processes:
            return f"it had more than the {self._limits.processes} processes and threads that are allowed"
        if self._limits.confined and _files(family) > self._limits.files:
            return f"it made more than the {self._limits.files:,} files that are allowed"
        return ""

    def _family(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._pid)
            return [first, *first.children(recursive=True)]
        except psutil.Error:
            return []

    def kill(self) -> None:
        """End all of them."""
        for process in reversed(self._family()):
            try:
                process.kill()
            except psutil.Error:
                continue


def _in_sockets(family: Sequence[psutil.Process]) -> int:
    """What may wait in the sockets of their own network, which no process's memory shows.

    What lies in those of TCP and UDP the kernel tells. Of Unix's it tells only how many there are, those that are
    on their way in another one included: each counts with its whole buffer.
    """
    for process in family[1:]:
        network = Path("/proc", str(process.pid), "net")
        try:
            # One that is about to be confined still has the network of everybody.
            if os.readlink("/proc/self/ns/net") == os.readlink(f"/proc/{process.pid}/ns/net"):
                continue
            tables = [network / name for name in ("tcp", "tcp6", "udp", "udp6")]
            waiting = sum(_queued(table.read_text()) for table in tables if table.exists())
            return waiting + _UNIX_BUFFER * ((network / "unix").read_bytes().count(b"\n") - 1)
        except (OSError, ValueError):
            continue
    return 0


def _files(family: Sequence[psutil.Process]) -> int:
    """How many files there are in its own file systems; their size is theirs to keep."""
    for process in family[1:]:
        own = f"/proc/{process.pid}/root"
        places = [f"{own}{place}" for place in (PLACE, "/dev/shm")]  # noqa: S108
        try:
            # One that is about to be confined still sees the files of everybody.
            if os.stat("/dev/shm").st_dev == os.stat(places[1]).st_dev:  # noqa: S108
                continue
            status = [os.statvfs(place) for place in places]
        except OSError:
            continue
        return max(each.f_files - each.f_ffree for each in status)
    return 0


def _unix_buffer() -> int:
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text())
    except (OSError, ValueError):
        return 212_992


_UNIX_BUFFER = _unix_buffer()
"""How many bytes may wait in a Unix socket: `net.core.wmem_default`, which no confined process may change."""


_SYN_SENT = "02"


def _queued(table: str) -> int:
    """Bytes in the columns tx_queue:rx_queue of /proc/net/tcp and its like, in hexadecimal digits.

    A socket that is being connected takes no bytes yet, and for a moment its line shows a number of chance, its first
    sequence number: such lines are left out.
    """
    lines = [line.split() for line in table.splitlines()[1:]]
    queues = (fields[4].split(":") for fields in lines if fields[3] != _SYN_SENT)
    return sum(int(sent, 16) + int(received, 16) for sent, received in queues)


def _page_tables(pid: int) -> int:
    """What the kernel keeps to find a process's pages, those that were only read and are all the same one included."""
    try:
        status = Path("/proc", str(pid), "status").read_bytes()
    except OSError:
        return 0
    found = status.partition(b"\nVmPTE:")[2].split(maxsplit=1)
    return int(found[0]) * 1024 if found else 0
