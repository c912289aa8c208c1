"""What belongs where in a store directory, and the sentences for what does not."""

from __future__ import annotations

import re

from mqlab.sim.disk import Disk
from mqlab.store.errors import StoreError
from mqlab.store.message_store_config import MessageStoreConfig

_OFFSET_DIGITS = 20
_LONG_MAX = (1 << 63) - 1
_INT_MAX = (1 << 31) - 1
_TOPIC = re.compile(r"[%|a-zA-Z0-9_-]+")
_MOVE_AWAY = "move what does not belong there away"


def offset_of_name(name: str) -> int | None:
    """The offset that a file is named for, None for a name that no file of a sequence has."""
    if len(name) != _OFFSET_DIGITS or not (name.isascii() and name.isdigit()):
        return None
    offset = int(name)
    return offset if offset <= _LONG_MAX else None


def queue_id_of_name(name: str) -> int | None:
    """The queue id that a folder is named for, None for any other name: RocketMQ passes over those."""
    if not (name.isascii() and name.isdigit()) or name != str(int(name)):
        return None
    queue_id = int(name)
    return queue_id if queue_id <= _INT_MAX else None


def check_layout(disk: Disk, config: MessageStoreConfig) -> None:
    """StoreError when there is a file where a store has a folder, or a folder where it has a file.

    Differs from RocketMQ: it starts on some of these and fails later, at the first write there.
    """
    for name in ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index", "config", "compaction"):
        check_folder(disk, config.path(name))
    for name in ("checkpoint", "abort", "abort.bak", "lock"):
        check_file(disk, config.path(name))
    check_file(disk, config.path("compaction", "position-checkpoint"))
    for kind in ("consumequeue", "consumequeue_ext", "batchconsumequeue"):
        for topic in disk.list(config.path(kind)):
            if _TOPIC.fullmatch(topic):
                check_folder(disk, config.path(kind, topic))
            for name in disk.list(config.path(kind, topic)):
                if queue_id_of_name(name) is not None:
                    check_folder(disk, config.path(kind, topic, name))


def check_folder(disk: Disk, path: str) -> None:
    """StoreError when something else than a folder has this path."""
    if disk.exists(path) and not disk.is_dir(path):
        raise StoreError(path, "there is a file where a folder belongs", _MOVE_AWAY)


def check_file(disk: Disk, path: str) -> None:
    """StoreError when a folder has this path."""
    if disk.is_dir(path):
        raise StoreError(path, "there is a folder where a file belongs", _MOVE_AWAY)
