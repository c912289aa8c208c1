"""Looking into a store directory of this machine, without ever writing to it: what it holds, and what a broker would
recover.

File sizes are read off the files. A directory that contains `store/` stands for that one.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.protocol import compression
from mqlab.protocol.errors import CompressionError, RecordError
from mqlab.protocol.message import MessageExt
from mqlab.protocol.record import BLANK_MAGIC_CODE, decode_record
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.sim.disk import File, MemoryDisk
from mqlab.store.errors import StoreError
from mqlab.store.host import DiskHost
from mqlab.store.message_store_config import BATCH_CQ_STORE_UNIT_SIZE, CQ_STORE_UNIT_SIZE, MessageStoreConfig
from mqlab.store.readable_store import ReadableStore
from mqlab.store.store_layout import offset_of_name

_MARKS = ("commitlog", "consumequeue", "batchconsumequeue", "checkpoint", "abort")
_MAGIC_CODES = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab")
_HEAD = struct.Struct(">ii")
"""The size of a record and its magic code."""

_WINDOW_BYTES = 65_536
"""So much is read at a time of what is only looked through: many records, or the beginning of a large one."""


def find_store(directory: str | os.PathLike[str]) -> str:
    """The store directory that is meant; StoreError when there is none."""
    given = os.fspath(directory)
    if not os.path.isdir(given):
        raise StoreError(
            given, "there is no such directory", "give the directory that holds commitlog/ and consumequeue/"
        )
    for path in (given, os.path.join(given, "store")):
        if any(os.path.exists(os.path.join(path, mark)) for mark in _MARKS):
            return path
    raise StoreError(
        given,
        "this is not a store directory: it has no commitlog/, consumequeue/ or checkpoint",
        "give the broker's storePathRootDir, or the directory that contains it as store/",
    )


def read_config(
    disk: MemoryDisk, commit_log_file_size: int = 0, consume_queue_file_size: int = 0
) -> MessageStoreConfig:
    """The settings that a store was written with, as far as its files show them; sizes that are given go first.

    Where files of one kind differ in size, the size that most of them have is taken.
    """
    config = MessageStoreConfig(store_path_root_dir="", max_message_size=(1 << 31) - 1)
    config.mapped_file_size_commit_log = (
        commit_log_file_size or _usual_size(disk, "commitlog/") or config.mapped_file_size_commit_log
    )
    config.mapped_file_size_consume_queue = (
        consume_queue_file_size
        or _usual_size(disk, "consumequeue/", CQ_STORE_UNIT_SIZE)
        or config.mapped_file_size_consume_queue
    )
    config.mapper_file_size_batch_consume_queue = (
        _usual_size(disk, "batchconsumequeue/", BATCH_CQ_STORE_UNIT_SIZE) or config.mapper_file_size_batch_consume_queue
    )
    ext_size = _usual_size(disk, "consumequeue_ext/")
    if ext_size:
        config.enable_consume_queue_ext, config.mapped_file_size_consume_queue_ext = True, ext_size
    return config


def _usual_size(disk: MemoryDisk, folder: str, unit: int = 1) -> int:
    """The size that most files have, of those that hold whole units if there are any."""
    sizes = [disk.open(path).size for path in disk.files() if path.startswith(folder)]
    counts = Counter(size for size in sizes if size and size % unit == 0) or Counter(size for size in sizes if size)
    return max(counts, key=lambda size: (counts[size], size)) if counts else 0


def open_store(
    directory: str | os.PathLike[str], commit_log_file_size: int = 0, consume_queue_file_size: int = 0
) -> ReadableStore:
    """The store in a directory, recovered in memory as a broker would do on the disk; the directory stays as it is."""
    disk = MemoryDisk.over_directory(find_store(directory))
    store = ReadableStore(DiskHost(disk), read_config(disk, commit_log_file_size, consume_queue_file_size))
    store.load()
    return store


# -- listing --------------------------------------------------------------------------------------------------------


class Damage(LearnerError):
    """Bytes of a commit log that are no record, at a commit-log offset."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(
            f"damage in the commit log at offset {offset}: {reason}",
            "`mqlab store recover` says what a broker would keep",
        )
        self.offset = offset
        self.reason = reason


def list_records(
    directory: str | os.PathLike[str], commit_log_file_size: int = 0
) -> Iterator[tuple[MessageExt, bytes] | Damage]:
    """Every record in a store's commit log, in order, with its unpacked body; a Damage where there is something else.

    Behind damage inside a record the listing goes on with the next one, behind any other with the next file.
    """
    yield from records_on(MemoryDisk.over_directory(find_store(directory)), commit_log_file_size)


def log_stretches(
    directory: str | os.PathLike[str], commit_log_file_size: int = 0, most_bytes: int | None = None
) -> list[Stretch | Damage]:
    """The commit log of a store in parts that can be read alone, each of about `most_bytes` (None: one for each file).

    A file that is none of the log's is a Damage. Of each record only the length is read.
    """
    disk = MemoryDisk.over_directory(find_store(directory))
    return list(stretches(disk, commit_log_file_size, most_bytes))


def stretch_records(
    directory: str | os.PathLike[str], stretch: Stretch
) -> Iterator[tuple[MessageExt, bytes] | Damage]:
    """The records of one of those parts, as `list_records` gives those of all."""
    return records_of(MemoryDisk.over_directory(find_store(directory)), stretch)


def records_on(disk: MemoryDisk, commit_log_file_size: int = 0) -> Iterator[tuple[MessageExt, bytes] | Damage]:
    """The same for a store that lies on a disk."""
    for part in stretches(disk, commit_log_file_size):
        if isinstance(part, Damage):
            yield part
        else:
            yield from records_of(disk, part)


class Stretch(NamedTuple):
    """Bytes `begin` to `end` of a file of the commit log: they begin with a record, or the file begins with damage."""

    name: str
    from_offset: int
    begin: int
    end: int
    file_size: int


def stretches(
    disk: MemoryDisk, commit_log_file_size: int = 0, most_bytes: int | None = None
) -> Iterator[Stretch | Damage]:
    """The parts of a commit log on a disk (`log_stretches`)."""
    size = commit_log_file_size or _usual_size(disk, "commitlog/")
    for name in disk.list("commitlog"):
        if disk.is_dir(f"commitlog/{name}"):
            continue
        file = disk.open(f"commitlog/{name}")
        from_offset = offset_of_name(name)
        if file.size == 0:
            continue
        if from_offset is None or file.size != size:
            yield Damage(
                -1 if from_offset is None else from_offset,
                f"the file {name} has {file.size} bytes, others have {size}"
                if file.size != size
                else f"the name of the file {name} is not an offset of 20 digits",
            )
        if from_offset is not None:
            end = file.data_end()
            begin = 0
            for cut in _cuts(file, end, most_bytes or end):
                yield Stretch(name, from_offset, begin, cut, file.size)
                begin = cut
            yield Stretch(name, from_offset, begin, end, file.size)


def _cuts(file: File, end: int, most_bytes: int) -> Iterator[int]:
    """Where a file can be cut: in front of a record, whenever that many bytes lie behind the last cut."""
    at = cut = begin = 0
    window = b""
    while at - cut < end - cut > most_bytes:
        if at + _HEAD.size > begin + len(window):
            window, begin = file.read(at, _WINDOW_BYTES), at
        size = int.from_bytes(window[at - begin : at - begin + 4], "big", signed=True)
        if not _goes_on(window, at - begin, size):
            return
        at += size
        if most_bytes <= at - cut < end - cut:
            yield at
            cut = at


def records_of(disk: MemoryDisk, stretch: Stretch) -> Iterator[tuple[MessageExt, bytes] | Damage]:
    """Every record of a stretch, with its unpacked body; a Damage where there is something else."""
    data = disk.open(f"commitlog/{stretch.name}").read(stretch.begin, stretch.end - stretch.begin)
    from_offset, left = stretch.from_offset + stretch.begin, stretch.file_size - stretch.begin
    at = 0
    while at + 8 <= len(data):
        size, magic = _HEAD.unpack_from(data, at)
        if magic == BLANK_MAGIC_CODE:
            return
        # A record may end in zeros, which the end of the data does not count.
        record = data[at : at + size].ljust(size, b"\0") if 0 < size <= left - at else data[at:]
        try:
            message = decode_record(record, check_crc=True, decompress=False)
            yield message, _unpacked_body(message)
        except (RecordError, CompressionError) as problem:
            yield Damage(from_offset + at, getattr(problem, "reason", str(problem)))
            if not _goes_on(data, at + size, size):
                return
        at += size


def _goes_on(data: bytes, at: int, size: int) -> bool:
    return size > 0 and data[at + 4 : at + 8] in _MAGIC_CODES


def _unpacked_body(message: MessageExt) -> bytes:
    if message.sys_flag & MessageSysFlag.COMPRESSED:
        return compression.decompress(message.sys_flag, message.body)
    return message.body


def record_fields(message: MessageExt, body: bytes, with_body: bool = False) -> dict[str, Any]:
    """A stored message as JSON fields, named as RocketMQ names them; `body` is the unpacked one."""
    fields: dict[str, Any] = {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "storeSize": message.store_size,
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "bodyCRC": message.body_crc,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": message.born_host,
        "storeTimestamp": message.store_timestamp,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "tags": message.tags,
        "keys": message.keys,
        "properties": message.properties,
        "bodyLength": len(body),
        "bodySha256": hashlib.sha256(body).hexdigest(),
    }
    if with_body:
        fields["bodyBase64"] = base64.b64encode(body).decode()
    return fields


# -- recovery -------------------------------------------------------------------------------------------------------


def recovered_fields(store: ReadableStore) -> dict[str, Any]:
    """What recovery left of a store: queue offsets, the range of the commit log, and what was cut with the reason."""
    recovery = store.recovery
    assert recovery is not None
    return {
        "queueOffsets": queue_offset_fields(store),
        "commitLogMinOffset": store.min_phy_offset,
        "commitLogMaxOffset": store.max_phy_offset,
        "lastExit": "clean" if recovery.clean else "unclean",
        "cut": recovery.cuts,
    }


def queue_offset_fields(store: ReadableStore) -> dict[str, dict[str, dict[str, int]]]:
    """topic -> queue id -> min, max and lastUpdateTimestamp, for each queue that ever had a message."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for topic, queue_ids in store.consume_queue_store.topics().items():
        for queue_id in queue_ids:
            top = store.get_max_offset_in_queue(topic, queue_id)
            if top > 0:
                table.setdefault(topic, {})[str(queue_id)] = {
                    "min": store.get_min_offset_in_queue(topic, queue_id),
                    "max": top,
                    "lastUpdateTimestamp": max(store.get_message_store_timestamp(topic, queue_id, top - 1), 0),
                }
    return table
