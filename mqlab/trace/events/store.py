"""Events of the store: what was written, dispatched, flushed, read back after a stop, and deleted."""

from __future__ import annotations

from typing import NamedTuple


class MessageStored(NamedTuple):
    """A message is in the commit log: `commit_log_offset` is its first byte, `store_size` its length there."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    store_size: int
    unique_key: str


class PutRefused(NamedTuple):
    """The store did not take a message; `status` is RocketMQ's word, `reason` says why in plain words."""

    topic: str
    queue_id: int
    status: str
    reason: str


class PutHeldLock(NamedTuple):
    """On a slow disk a put has held the lock of the commit log for `held_us`; `waiting` more wait for it."""

    topic: str
    queue_id: int
    held_us: int
    waiting: int


class CommitLogFileCreated(NamedTuple):
    """The commit log goes on in a new file, which begins at this offset."""

    commit_log_offset: int


class MessageDispatched(NamedTuple):
    """A message has its entry in the consume queue: from now on it can be pulled."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    tags_code: int


class DispatchStalled(NamedTuple):
    """Consume queues cannot grow any more: messages from `commit_log_offset` on are stored and cannot be pulled."""

    commit_log_offset: int
    reason: str


class CommitLogFlushed(NamedTuple):
    """The commit log is safe from a power loss up to `flushed_where`."""

    flushed_where: int
    thorough: bool


class FlushTimedOut(NamedTuple):
    """A producer waits for a flush no longer; the message is stored all the same."""

    flush_target: int
    flushed_where: int


class ConsumeQueuesFlushed(NamedTuple):
    """The consume queues are safe from a power loss, all of them when `thorough`."""

    queues: int
    thorough: bool


class CheckpointWritten(NamedTuple):
    """The checkpoint file says up to which times (ms) messages are safe."""

    physic_msg_timestamp: int
    logics_msg_timestamp: int
    index_msg_timestamp: int


class IndexBuilt(NamedTuple):
    """The index has caught up with the commit log: `keys` more keys, all messages before `commit_log_offset`."""

    keys: int
    commit_log_offset: int


class StoreLoaded(NamedTuple):
    """A store directory was opened; `clean` says whether its last process ended in good order."""

    clean: bool
    commit_log_files: int
    queues: int


class StoreRecovered(NamedTuple):
    """Recovery has read `records` records and taken the log to end at `commit_log_max_offset`; `cut_bytes` were
    dropped.
    """

    clean: bool
    records: int
    dispatched: int
    commit_log_min_offset: int
    commit_log_max_offset: int
    cut_bytes: int
    reason: str


class StoreStopped(NamedTuple):
    """The store was closed in good order; `clean` says whether the next start will see it so."""

    clean: bool


class FileDeleted(NamedTuple):
    """A file or folder of the store was deleted.

    `reason`: "expired", "space", "below the commit log", "topic deleted", or "newer than the checkpoint" (an index
    file).
    """

    file: str
    reason: str


class DiskFullChanged(NamedTuple):
    """The store refuses messages because the disk is full, or takes them again."""

    full: bool
    used_percent: int
