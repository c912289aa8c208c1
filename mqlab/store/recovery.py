"""Recovery: where a commit log ends after a stop, found by reading its records from a point that is known to be safe.

After a clean stop only the tail is read; after a crash everything since the checkpoint, and all of it is dispatched
again. The first bytes that are no record end the log: what follows them is dropped, even whole records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import (
    BLANK_MAGIC_CODE,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    STORE_TIMESTAMP_OFFSET,
    SYS_FLAG_OFFSET,
)
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.store.commit_log import CommitLog
from mqlab.store.dispatch_request import DispatchRequest, read_request
from mqlab.store.mapped_file import MappedFile

_WINDOW_BYTES = 1 << 20


@dataclass
class Recovery:
    """What a recovery found: the log's new end, what it read and dispatched, and what it dropped for which reason.

    `cut_bytes` counts the bytes up to the last one that is not zero; 0 when nothing but blank space was dropped.
    """

    clean: bool
    started_at: int = 0
    known_end: int = -1
    """Up to where queues had entries, as far as they were read; -1 for nothing."""
    end: int = 0
    records: int = 0
    dispatched: int = 0
    cut_bytes: int = 0
    reason: str = ""
    cuts: list[dict[str, int | str]] = field(default_factory=list)
    """All that was dropped, piece by piece, as JSON objects: `what`, where, how much, and `reason`."""


def recover_commit_log(
    log: CommitLog,
    *,
    clean: bool,
    dispatch_from: int,
    safe_timestamp: int,
    dispatch: Callable[[DispatchRequest], None],
) -> Recovery:
    """Find the end of the log and cut it there; CommitLog.recoverNormally and recoverAbnormally.

    After a clean stop records behind `dispatch_from` (the end of what the queues know, -1 for nothing) are dispatched,
    after a crash all that are read; reading starts where messages are older than `safe_timestamp`. The log must have a
    file.

    Java: org.apache.rocketmq.store.CommitLog.recoverAbnormally.
    """
    recovery = Recovery(clean, known_end=dispatch_from)
    files = log.mapped_file_queue.mapped_files
    index = _start_index(files, clean, dispatch_from, safe_timestamp)
    recovery.started_at = files[index].file_from_offset
    reason = ""
    for file in files[index:]:
        position, reason = _read_file(log, file, dispatch_from if clean else None, dispatch, recovery)
        recovery.end = file.file_from_offset + position
        if reason:
            break
    recovery.cut_bytes = _bytes_behind(log, recovery.end)
    if recovery.cut_bytes:
        recovery.reason = reason
        recovery.cuts.append(
            {"what": "commit log", "offset": recovery.end, "bytes": recovery.cut_bytes, "reason": reason}
        )
    return recovery


def _start_index(files: list[MappedFile], clean: bool, dispatch_from: int, safe_timestamp: int) -> int:
    """The newest file that is known to be safe, the first one if there is none: after a clean stop one that begins
    before the end of what the queues know, after a crash one that begins with a message stored early enough.
    """
    for index in range(len(files) - 1, 0, -1):
        if files[index].file_from_offset <= dispatch_from if clean else _begins_safe(files[index], safe_timestamp):
            return index
    return 0


def _begins_safe(file: MappedFile, safe_timestamp: int) -> bool:
    head = file.file.read(0, STORE_TIMESTAMP_OFFSET + 20)
    if int.from_bytes(head[4:8], "big", signed=True) not in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2):
        return False
    sys_flag = int.from_bytes(head[SYS_FLAG_OFFSET : SYS_FLAG_OFFSET + 4], "big")
    at = STORE_TIMESTAMP_OFFSET + (12 if sys_flag & MessageSysFlag.BORNHOST_V6 else 0)
    store_timestamp = int.from_bytes(head[at : at + 8], "big", signed=True)
    return store_timestamp != 0 and store_timestamp <= safe_timestamp


def _read_file(
    log: CommitLog,
    file: MappedFile,
    dispatch_behind: int | None,
    dispatch: Callable[[DispatchRequest], None],
    recovery: Recovery,
) -> tuple[int, str]:
    """Read the records of one file: where they end, and why; no reason when a blank ends them, so that the next file
    follows.
    """
    window, window_at = b"", 0
    position = 0
    while True:
        left = file.file_size - position
        if position + 8 > window_at + len(window):
            window, window_at = file.file.read(position, min(left, _WINDOW_BYTES)), position
        at = position - window_at
        size = int.from_bytes(window[at : at + 4], "big", signed=True)
        if int.from_bytes(window[at + 4 : at + 8], "big", signed=True) == BLANK_MAGIC_CODE:
            return position, ""
        if not any(window[at : at + 8]):
            return position, "its size and magic code are zero"
        if size > left:
            return position, f"its total size is {size}, {left} bytes are left in the file"
        if size > window_at + len(window) - position:
            window, window_at, at = file.file.read(position, min(left, max(size, _WINDOW_BYTES))), position, 0
        try:
            request = read_request(window, at, log.delays_ms, check_crc=log.config.check_crc_on_recover)
        except RecordError as problem:
            return position, problem.reason
        recovery.records += 1
        if dispatch_behind is None or request.commit_log_offset > dispatch_behind:
            recovery.dispatched += 1
            dispatch(request)
        position += request.msg_size


def _bytes_behind(log: CommitLog, end: int) -> int:
    """How many bytes of data lie behind the log's new end, zeros at the very end not counted."""
    for file in reversed(log.mapped_file_queue.mapped_files):
        data_end = file.file.data_end()
        if data_end:
            return max(0, file.file_from_offset + data_end - end)
    return 0
