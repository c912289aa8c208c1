"""A master and its slave in a lab, and what a real pair sent and left."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqlab import Lab, Message, MessageQueue
from mqlab.sim.disk import MemoryDisk
from tests.broker.conftest import RawClient
from tests.worlds import shop, started_producer

GOLDEN = Path(__file__).parents[2] / "golden" / "ha"
FILE_BYTES = 65536
SIZES: dict[str, Any] = {
    "mapped_file_size_commit_log": FILE_BYTES,
    "mapped_file_size_consume_queue": 400,
    "mapped_file_size_timer_log": 2048,
    "max_hash_slot_num": 100,
    "max_index_num": 400,
    "max_message_size": 32768,
}


class Pair:
    """broker-a and its slave slave-a with a topic T of one queue, and a producer."""

    def __init__(
        self, seed: int = 7, *, slave: dict[str, Any] | None = None, wire: str = "objects", **master: Any
    ) -> None:
        self.lab: Lab = shop(seed=seed, wire=wire, queues=1, **{**SIZES, **master})
        (self.master,) = self.lab.brokers
        self.slave = self.lab.broker(slave_of="broker-a", **(slave or {}))
        self.producer = started_producer(
            self.lab,
            send_msg_timeout=10_000,
            retry_times_when_send_failed=0,
            compress_msg_body_over_howmuch=1 << 20,
        )

    def replicated(self) -> Pair:
        """The pair once the slave has connected, 5 s after its start, and has all."""
        self.lab.run_for(ms=6_000)
        return self

    def send(self, count: int = 1, size: int = 100, **more: Any) -> list[Any]:
        """Send so many messages of so many bytes, one after the other."""
        bodies = [bytes([65 + number % 26]) * size for number in range(count)]
        return [self.producer.send(Message("T", body, **more), queue=self.queue).play() for body in bodies]

    @property
    def queue(self) -> MessageQueue:
        """The one queue of the topic."""
        return MessageQueue("T", "broker-a", 0)

    def asker(self, name: str = "asker") -> RawClient:
        """A process that sends commands, to the slave unless told."""
        address = f"{self.slave.node.spec.ip}:10911"
        return RawClient(SimpleNamespace(world=self.lab.world, broker_address=address), name)  # type: ignore[arg-type]

    def at(self, kind: str, **fields: Any) -> list[float]:
        """When events of a kind happened, in ms."""
        return [record.ts_us / 1_000 for record in self.events(kind, **fields)]

    def events(self, kind: str, **fields: Any) -> list[Any]:
        """The events of a kind."""
        return list(self.lab.history.find(kind, **fields))


def log_bytes(store: Any, start: int | None = None) -> bytes:
    """The bytes of a commit log, from its beginning or from an offset on."""
    queue = store.commit_log.mapped_file_queue
    return b"".join(
        file.file.read(0, file.wrote_position)
        for file in queue.mapped_files
        if start is None or file.file_from_offset >= start
    )


@pytest.fixture
def pair() -> type[Pair]:
    """The class that builds a pair: `pair(broker_role="SYNC_MASTER")`."""
    return Pair


@cache
def members(name: str) -> dict[str, bytes]:
    """The files of a golden archive by name."""
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        return {
            member.name.removeprefix("./"): source.read()
            for member in archive
            if member.isfile() and (source := archive.extractfile(member)) is not None
        }


def stream(name: str) -> list[dict[str, Any]]:
    """The reads of a recorded connection, `data` as bytes."""
    rows = [json.loads(line) for line in members("streams")[f"stream-{name}.jsonl"].splitlines()]
    return [{**row, "data": base64.b64decode(row["data"])} if "data" in row else row for row in rows]


def timeline(name: str) -> dict[str, Any]:
    """A recorded time-line."""
    found: dict[str, Any] = json.loads(members("timelines")[f"timeline-{name}.json"])
    return found


@pytest.fixture
def golden_disk(tmp_path: Path) -> Callable[[str], MemoryDisk]:
    """golden_disk("clean-master"): a store that a real broker left, as a disk with the folder `store`."""

    def get(name: str) -> MemoryDisk:
        with tarfile.open(GOLDEN / f"store-{name}.tar.xz") as archive:
            archive.extractall(tmp_path / name, filter="data")
        return MemoryDisk.over_directory(tmp_path / name)

    return get
