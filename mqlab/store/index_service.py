"""The index over the commit log: from a topic and a key to the messages that may have it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.sim.disk import Disk, DiskFull
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.index_file import IndexFile
from mqlab.store.message_store_config import MessageStoreConfig
from mqlab.store.store_checkpoint import StoreCheckpoint
from mqlab.store.store_layout import check_file

ReadRequests = Callable[[int, int], tuple[list[DispatchRequest], int]]
_STRETCH_BYTES = 1 << 20
_LONG_MAX = (1 << 63) - 1
_LAST_MOMENT_MS = 253_402_300_799_999
"""The end of the year 9999: a damaged record may say that it was stored later."""


class IndexService:
    """The index files of a store (org.apache.rocketmq.store.index.IndexService).

    Differs from RocketMQ: in when, not in what; `watermark` says up to which commit-log offset keys are in the files,
    and they catch up with the dispatched messages, which end at `dispatched_to`, when somebody asks for a key, and when
    the store stops. A file is named for the store time of its first message, which in RocketMQ is the moment of its
    making, some ms later.
    """

    def __init__(self, disk: Disk, config: MessageStoreConfig, checkpoint: StoreCheckpoint, read: ReadRequests) -> None:
        self.disk = disk
        self.config = config
        self.checkpoint = checkpoint
        self.read = read
        self.files: list[IndexFile] = []
        self.watermark = 0
        self.dispatched_to = 0
        self._partly_built = -1, 0
        """The message whose keys were put last, and how many of them."""

    def load(self, clean: bool) -> list[str]:
        """Open the files; after a crash those newer than the checkpoint are deleted, to be built again: their paths.

        As in RocketMQ what is not named by a number is passed over, and a file of another size is taken as one of the
        right size: cut there, or with zeros behind it.
        """
        removed = []
        folder = self.config.path("index")
        for name in self.disk.list(folder):
            path = f"{folder}/{name}"
            if not (name.isascii() and name.isdigit() and int(name) <= _LONG_MAX):
                continue
            check_file(self.disk, path)
            file = IndexFile(self.disk, path, self.config.max_hash_slot_num, self.config.max_index_num)
            if not clean and file.end_timestamp > self.checkpoint.index_msg_timestamp:
                self.disk.remove(path)
                removed.append(path)
            else:
                self.files.append(file)
        return removed

    @property
    def end_phy_offset(self) -> int:
        """The offset of the newest message with a key in the files, -1 without files."""
        return self.files[-1].end_phy_offset if self.files else -1

    # -- growing ----------------------------------------------------------------------------------------------------

    def begin_at(self, watermark: int, dispatched_to: int) -> None:
        """The keys of all messages before `watermark` are in the files; those up to `dispatched_to` shall follow."""
        self.watermark = watermark
        self.dispatched_to = dispatched_to

    def dispatch(self, request: DispatchRequest) -> None:
        """Note that the keys of one more message belong into the files.

        Java: org.apache.rocketmq.store.DefaultMessageStore.CommitLogDispatcherBuildIndex.
        """
        self.dispatched_to = request.commit_log_offset + request.msg_size

    @property
    def is_behind(self) -> bool:
        """Are there dispatched messages whose keys are not in the files?"""
        return self.config.message_index_enable and self.watermark < self.dispatched_to

    def catch_up(self) -> int:
        """Put the keys of all dispatched messages into the files; how many keys that were.

        On a full disk the rest stays for the next time.
        """
        before = self._key_count()
        with suppress(DiskFull):
            while self.is_behind:
                end = min(self.dispatched_to, self.watermark + _STRETCH_BYTES)
                requests, after = self.read(self.watermark, end)
                if after <= self.watermark:
                    break
                for request in requests:
                    self.watermark = request.commit_log_offset
                    self._build(request)
                self.watermark = after
        keys = self._key_count() - before
        if keys:
            with suppress(DiskFull):
                self.files[-1].write_header()
        return keys

    def _key_count(self) -> int:
        return sum(file.index_count - 1 for file in self.files)

    def _build(self, request: DispatchRequest) -> None:
        """Put the keys of one message into the files; a message that they know already is passed over.

        Those that were put before the disk was full are not put again.
        """
        offset = request.commit_log_offset
        if offset < self.end_phy_offset:
            return
        if MessageSysFlag.transaction_value(request.sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK:
            return
        properties = request.properties
        names = [properties["UNIQ_KEY"]] if properties.get("UNIQ_KEY") else []
        names += [word for word in properties.get("KEYS", "").split(" ") if word]
        begun, there = self._partly_built
        for number, name in enumerate(names):
            if offset == begun and number < there:
                continue
            self._file(request.store_timestamp).put_key(f"{request.topic}#{name}", offset, request.store_timestamp)
            self._partly_built = offset, number + 1

    def _file(self, store_timestamp: int) -> IndexFile:
        if self.files and not self.files[-1].is_full:
            return self.files[-1]
        previous = self.files[-1] if self.files else None
        folder = self.config.path("index")
        moment = min(max(store_timestamp, 0), _LAST_MOMENT_MS)
        while self.disk.exists(path := f"{folder}/{_file_name(moment)}"):
            moment += 1
        if previous is not None:
            previous.flush()
            self.checkpoint.index_msg_timestamp = previous.end_timestamp
            self.checkpoint.flush()
        file = IndexFile(self.disk, path, self.config.max_hash_slot_num, self.config.max_index_num)
        if previous is not None:
            file.begin_after(previous)
        self.files.append(file)
        return file

    # -- asking -----------------------------------------------------------------------------------------------------

    def query_offset(self, topic: str, key: str, max_num: int, begin: int, end: int) -> list[int]:
        """Commit-log offsets of messages that may have the key and were stored in [begin, end], newest first."""
        found: list[int] = []
        max_num = min(max_num, self.config.max_msgs_num_batch)
        for file in reversed(self.files):
            if file.is_time_matched(begin, end):
                file.select_phy_offset(found, f"{topic}#{key}", max_num, begin, end)
            if file.begin_timestamp < begin or len(found) >= max_num:
                break
        return found

    # -- flushing and deleting --------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make all files safe from a power loss; one that found no room for its head stays without."""
        for file in self.files:
            with suppress(DiskFull):
                file.flush()

    def delete_expired_file(self, min_commit_log_offset: int) -> list[str]:
        """Delete the files that know only messages before that offset, never the last one; the paths of those
        deleted.
        """
        deleted = []
        while len(self.files) > 1 and self.files[0].end_phy_offset < min_commit_log_offset:
            path = self.files.pop(0).file.path
            self.disk.remove(path)
            deleted.append(path)
        return deleted


def _file_name(moment_ms: int) -> str:
    moment = datetime.fromtimestamp(moment_ms // 1_000, UTC)
    return f"{moment:%Y%m%d%H%M%S}{moment_ms % 1_000:03d}"
