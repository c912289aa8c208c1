"""Looks after what no limit of the system holds for a family of processes: memory, how many they are, their files."""

from __future__ import annotations

import os

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
        held = count = 0
        for process in self._family():
            try:
                held += process.memory_info().rss
                count += process.num_threads()
            except psutil.Error:
                continue
        self.most_bytes = max(self.most_bytes, held)
        if held > self._limits.memory_bytes:
            return f"it used more than the {self._limits.memory_bytes / 2**30:g} GiB of memory that are allowed"
        if count > self._limits.processes:
            return f"it had more than the {self._limits.processes} processes and threads that are allowed"
        if self._limits.confined and self._files() > self._limits.files:
            return f"it made more than the {self._limits.files:,} files that are allowed"
        return ""

    def _files(self) -> int:
        """How many files there are in its own file systems; their size is theirs to keep."""
        for process in self._family()[1:]:
            own = f"/proc/{process.pid}/root"
            try:
                status = [os.statvfs(f"{own}{place}") for place in (PLACE, "/dev/shm")]  # noqa: S108
            except OSError:
                continue
            return max(each.f_files - each.f_ffree for each in status)
        return 0

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
