"""From a key to a message: the steps through an index file, with the bytes that each step reads."""

from __future__ import annotations

import struct
from typing import Any

from mqlab.errors import LearnerError
from mqlab.protocol.hashing import index_key_hash
from mqlab.sim import MemoryDisk
from mqlab.views.table import Table

HEADER_BYTES, SLOT_BYTES = 40, 4
_ITEM = struct.Struct(">iqii")


def index_steps(disk: MemoryDisk, topic: str, key: str, *, slots: int, folder: str = "store") -> Table:
    """How the newest index file leads from `topic#key` to places in the commit log.

    `slots` is the number of its hash slots. LearnerError while there is no index file.
    Java: org.apache.rocketmq.store.index.IndexFile.
    """
    names = disk.list(f"{folder}/index")
    if not names:
        raise LearnerError("there is no index file yet", "ask the store for a key first, or stop it in good order")
    file = disk.open(f"{folder}/index/{names[-1]}")
    key_hash = index_key_hash(f"{topic}#{key}")
    slot = key_hash % slots
    at = HEADER_BYTES + slot * SLOT_BYTES
    raw = file.read(at, SLOT_BYTES)
    number = int.from_bytes(raw, "big")
    rows: list[tuple[Any, ...]] = [
        ("hash", "", "", f"hash of {topic}#{key}: {key_hash}"),
        (f"slot {slot}", at, raw.hex(" "), f"{key_hash} mod {slots}; newest item: {number or 'none'}"),
    ]
    while number:
        at = HEADER_BYTES + slots * SLOT_BYTES + number * _ITEM.size
        raw = file.read(at, _ITEM.size)
        item_hash, offset, seconds, before = _ITEM.unpack(raw)
        verdict = f"message at {offset}" if item_hash == key_hash else f"another key (hash {item_hash})"
        said = f"{verdict}, +{seconds} s; item before: {before or 'none'}"
        rows.append((f"item {number}", at, raw.hex(" "), said))
        if not 0 < before < number:
            break
        number = before
    return Table(f"index file: looking for {key!r} of {topic}", ("step", "at byte", "bytes", "says"), rows)
