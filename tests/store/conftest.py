"""The recorded store directories of a real broker, unpacked once, and small worlds with a store in them."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.sim import Node, World
from mqlab.sim.disk import MemoryDisk
from mqlab.store import DefaultMessageStore, DiskHost, MessageExtBrokerInner, MessageStoreConfig, ReadableStore
from tests.golden.recorded import STORES, manifest


class GoldenStore:
    """One recorded directory with its manifest. Nothing writes to `directory`: `disk()` keeps changes in memory."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.manifest = manifest(name)

    def disk(self) -> MemoryDisk:
        """The directory as a disk of its own."""
        return MemoryDisk.over_directory(self.directory)

    @staticmethod
    def config(**settings: Any) -> MessageStoreConfig:
        """What the recording broker was configured with."""
        sizes = {
            "mapped_file_size_commit_log": 65536,
            "mapped_file_size_consume_queue": 400,
            "mapped_file_size_timer_log": 2048,
            "max_hash_slot_num": 100,
            "max_index_num": 400,
            "max_message_size": 32768,
            "store_path_root_dir": "",
        }
        return MessageStoreConfig(**{**sizes, **settings})

    def open(self, disk: MemoryDisk | None = None) -> ReadableStore:
        """The store, recovered, without threads."""
        store = ReadableStore(DiskHost(disk or self.disk()), self.config())
        store.load()
        return store


def unpack(name: str, target: Path) -> Path:
    """Unpack an archive; the long runs of zeros become holes."""
    with tarfile.open(STORES / f"{name}.tar.xz") as archive:
        for member in archive:
            path = target / member.name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            source = archive.extractfile(member)
            assert source is not None
            with path.open("wb") as out:
                while block := source.read(1 << 20):
                    if block.count(0) == len(block):
                        out.seek(len(block), 1)
                    else:
                        out.write(block)
                out.truncate(member.size)
    return target / "store"


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], GoldenStore]:
    """golden("plain"): a recorded store."""
    unpacked: dict[str, GoldenStore] = {}

    def get(name: str) -> GoldenStore:
        if name not in unpacked:
            unpacked[name] = GoldenStore(name, unpack(name, tmp_path_factory.mktemp(name)))
        return unpacked[name]

    return get


SMALL = {"mapped_file_size_commit_log": 65536, "mapped_file_size_consume_queue": 400, "max_hash_slot_num": 100,
         "max_index_num": 400}  # fmt: skip


class StoreWorld:
    """A world with one node and a running store on it."""

    def __init__(self, **settings: Any) -> None:
        self.world = World(7)
        self.config = MessageStoreConfig(**{**SMALL, **settings})
        self.batch_topics: set[str] = set()
        self.node: Node = self.world.node("broker-a")
        self.node.boot = self._boot
        self.store = self._open()
        self.run(0)

    def _open(self) -> DefaultMessageStore:
        store = DefaultMessageStore(self.node, self.config, is_batch_topic=lambda topic: topic in self.batch_topics)
        store.load()
        store.start()
        return store

    def _boot(self, node: Node) -> None:
        self.store = self._open()

    def run(self, ms: float = 2) -> None:
        """Let time pass, so that what was stored is dispatched."""
        self.world.run_for(round(ms * 1_000))

    def message(self, i: int = 0, topic: str = "TopicTest", size: int = 100, **settings: Any) -> MessageExtBrokerInner:
        """A message as the broker hands it to its store."""
        properties = {"TAGS": f"Tag{i % 3}", "KEYS": f"k{i}", "UNIQ_KEY": f"{i:032X}", "WAIT": "true"}
        fields: dict[str, Any] = {
            "queue_id": 0,
            "properties": properties,
            "born_timestamp": self.node.now_ms(),
            "born_host": "10.0.0.9:40000",
            "store_host": "10.0.0.1:10911",
        }
        return MessageExtBrokerInner(topic, f"message {i} ".encode().ljust(size, b"."), **{**fields, **settings})

    def put(self, count: int = 1, **settings: Any) -> list[Any]:
        """Store messages and let them be dispatched; what the store answered."""
        results = [self.store.put_message(self.message(i, **settings)) for i in range(count)]
        self.run()
        return results


@pytest.fixture
def store_world() -> Callable[..., StoreWorld]:
    """store_world(flush_disk_type=...): a running store with small files in a world with seed 7."""
    return StoreWorld


@pytest.fixture
def sw() -> StoreWorld:
    """A running store with small files in a world with seed 7."""
    return StoreWorld()
