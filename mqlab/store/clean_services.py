"""Deleting what is old, and refusing messages when the disk is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlab.sim.service import ServiceThread
from mqlab.store.running_flags import RunningFlags
from mqlab.trace.events.store import DiskFullChanged, FileDeleted

if TYPE_CHECKING:
    from mqlab.store.default_message_store import DefaultMessageStore

_FIRST_RUN_MS = 60_000
_HOUR_MS = 3_600_000
_FORCIBLY_RATIO = (30, 85)
_WARNING_RATIO = (35, 90)
_ASKED_ROUNDS = 20


class CleanCommitLogService(ServiceThread):
    """Looks every 10 s for commit-log files to delete, and at the space on the disk.

    Java: org.apache.rocketmq.store.DefaultMessageStore.CleanCommitLogService, and CleanConsumeQueueService, which runs
    after it. Differs from RocketMQ: hours of the day are UTC, and a file is never held by a reader, so none has to be
    deleted by force.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store.node, period_ms=store.config.clean_resource_interval)
        self.store = store
        self._first_us = 0
        self._last_min_offset = 0
        self._asked_until_us = 0

    def has_work(self) -> bool:
        """Is there a file that could go, a limit on space, or a mark that the disk is full? Who writes, or sets that
        mark, wakes the service.
        """
        log, flags = self.store.commit_log.mapped_file_queue, self.store.running_flags
        return len(log.mapped_files) > 1 or self.store.disk.capacity_bytes is not None or flags.is_disk_full

    async def run(self) -> None:
        """One round at each turn, the first 60 s after the start."""
        self._first_us = self.node.now_us() + _FIRST_RUN_MS * 1_000
        while not self.stopped:
            await self.wait_for_running()
            if self.node.now_us() >= self._first_us:
                await self.clean()

    async def clean(self) -> None:
        """Delete expired files, or more when space is short, with a pause after each; then what only pointed to
        them.
        """
        force = self.check_space()
        config = self.store.config
        is_asked = self.node.now_us() < self._asked_until_us
        if force or is_asked or self.is_time_to_delete() or self.used_percent() > config.disk_max_used_space_ratio:
            for _ in self.delete_expired_commit_log_files(force and config.clean_file_forcibly_enable):
                await self.node.sleep(config.delete_commit_log_files_interval)
            self.check_space()
        await self.clean_consume_queues()

    # -- space ------------------------------------------------------------------------------------------------------

    def used_percent(self) -> int:
        """How much of the disk is in use, 0 for a disk without a limit."""
        disk = self.store.disk
        return disk.used_bytes * 100 // disk.capacity_bytes if disk.capacity_bytes else 0

    def check_space(self) -> bool:
        """Set or clear the mark that the disk is full; True when files must go even if they have not expired."""
        config, used = self.store.config, self.used_percent()
        warning = min(max(config.disk_space_warning_level_ratio, _WARNING_RATIO[0]), _WARNING_RATIO[1])
        forcibly = min(max(config.disk_space_clean_forcibly_ratio, _FORCIBLY_RATIO[0]), _FORCIBLY_RATIO[1])
        full = used > warning
        flags = self.store.running_flags
        if flags.set(RunningFlags.DISK_FULL, full) != full and self.store.hooks.on:
            self.store.hooks.emit(DiskFullChanged(full, used))
        if not full:
            flags.set(RunningFlags.LOGIC_DISK_FULL, False)
            self.store.resume_dispatch()
        return used > forcibly

    def is_time_to_delete(self) -> bool:
        """Is it the hour of the day at which expired files go?"""
        hour = self.node.now_ms() // _HOUR_MS % 24
        return any(int(word) == hour for word in self.store.config.delete_when.split(";") if word.strip().isdigit())

    def execute_delete_files_manually(self) -> None:
        """Let expired files go in so many rounds from now on, whatever the hour of the day is."""
        self._asked_until_us = self.node.now_us() + _ASKED_ROUNDS * self.store.config.clean_resource_interval * 1_000

    # -- deleting ---------------------------------------------------------------------------------------------------

    def delete_expired_commit_log_files(self, at_once: bool) -> Iterator[str]:
        """Delete files of the commit log, oldest first, never the newest, at most 10; each path after its deletion."""
        store, config = self.store, self.store.config
        files = store.commit_log.mapped_file_queue
        for _ in range(min(config.delete_file_batch_max, len(files.mapped_files) - 1)):
            path = files.mapped_files[0].file.path
            age_ms = self.node.now_ms() - store.disk.mtime_ms(path)
            if not at_once and age_ms < config.file_reserved_time * _HOUR_MS:
                return
            files.drop_first()
            self._report(path, "space" if at_once else "expired")
            yield path

    async def clean_consume_queues(self) -> None:
        """Delete queue and index files that only know messages which the commit log has lost."""
        store = self.store
        min_offset = store.commit_log.min_offset
        if min_offset <= self._last_min_offset:
            return
        self._last_min_offset = min_offset
        for queue in list(store.consume_queue_store.consume_queue_table.values()):
            deleted = queue.delete_expired_file(min_offset)
            for path in deleted:
                self._report(path, "below the commit log")
            if deleted:
                await self.node.sleep(store.config.delete_consume_queue_files_interval)
        for path in store.index_service.delete_expired_file(min_offset):
            self._report(path, "below the commit log")

    def _report(self, path: str, reason: str) -> None:
        if self.store.hooks.on:
            self.store.hooks.emit(FileDeleted(path, reason))
