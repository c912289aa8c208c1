"""Seeded damage to a store directory, and what must hold on it whatever was done.

`python -m tests.store.damage STORE COUNT [FIRST]` does it by hand, with as many seeds as wanted: a line for each
that fails.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.errors import LearnerError
from mqlab.sim import World
from mqlab.sim.disk import MemoryDisk
from mqlab.store import BoundaryType, DiskHost, MessageExtBrokerInner, PutMessageResult, ReadableStore
from mqlab.store.store_directory import records_on, recovered_fields
from tests.store.conftest import GoldenStore, unpack

_STRAY_NAMES = (".DS_Store", "Thumbs.db", "99999999999999999999", "00000000000000131072", "00000000000000070000", "7",
                "-5", "+8", "20261120194649545", "x.bak", "\u0662", "\u00b2", "00000000000000000000")  # fmt: skip
_FOLDERS = ("commitlog", "index", "consumequeue", "config", "")


class Damager:
    """Draws damages from a seed and does them to a disk; `done` says in words what they were."""

    def __init__(self, disk: MemoryDisk, seed: int) -> None:
        self.disk = disk
        self.draw = random.Random(seed)
        self.done: list[str] = []

    def damage(self, times: int) -> None:
        """Do so many damages of any kind."""
        kinds: tuple[Callable[[], str], ...] = (
            self.flip, self.flip, self.zero, self.garble, self.cut, self.cut, self.grow, self.delete, self.double,
            self.rename, self.swap, self.stray, self.stray, self.folder_for_file, self.file_for_folder,
        )  # fmt: skip
        for _ in range(times):
            try:
                self.done.append(self.draw.choice(kinds)())
            except OSError as problem:
                self.done.append(f"(impossible: {problem})")

    # -- what to damage ---------------------------------------------------------------------------------------------

    def _path(self) -> str:
        paths = self.disk.files()
        part = self.draw.choice(_FOLDERS)
        return self.draw.choice([path for path in paths if path.startswith(part)] or paths)

    def _place(self, path: str) -> int:
        end = max(self.disk.open(path).data_end(), 1)
        return self.draw.choice((0, end - 1, self.draw.randrange(end), self.draw.randrange(min(end, 64))))

    # -- the kinds --------------------------------------------------------------------------------------------------

    def flip(self) -> str:
        path = self._path()
        at = self._place(path)
        file = self.disk.open(path)
        file.write(at, bytes([(file.read(at, 1) or b"\0")[0] ^ 1 << self.draw.randrange(8)]))
        return f"flipped a bit of {path} at {at}"

    def zero(self) -> str:
        path = self._path()
        at, n = self._place(path), self.draw.choice((4, 20, 4096))
        file = self.disk.open(path)
        file.write(at, bytes(min(n, max(file.size - at, 0))))
        return f"zeroed {n} bytes of {path} at {at}"

    def garble(self) -> str:
        path = self._path()
        at, n = self._place(path), self.draw.choice((4, 8, 40, 400))
        file = self.disk.open(path)
        file.write(at, self.draw.randbytes(n)[: max(file.size - at, 0)])
        return f"garbled {n} bytes of {path} at {at}"

    def cut(self) -> str:
        path = self._path()
        size = self.disk.open(path).size
        to = self.draw.choice((0, size // 2, size - 1, self.draw.randrange(size + 1)))
        self.disk.open(path).truncate(max(to, 0))
        return f"cut {path} from {size} to {to}"

    def grow(self) -> str:
        path = self._path()
        file = self.disk.open(path)
        file.truncate(file.size + self.draw.choice((1, 7, 4096, file.size)))
        return f"grew {path} to {file.size}"

    def delete(self) -> str:
        path = self._path()
        if self.draw.randrange(4) == 0:
            path = path.rpartition("/")[0] or path
            if self.disk.is_dir(path):
                self.disk.rmtree(path)
                return f"deleted the folder {path}"
        self.disk.remove(path)
        return f"deleted {path}"

    def _new_name(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        size = self.disk.open(path).size
        near = f"{int(name) + size:020d}" if name.isascii() and name.isdigit() else name + ".bak"
        return f"{folder}/{self.draw.choice((near, near, *_STRAY_NAMES))}".lstrip("/")

    def _put(self, path: str, data: bytes) -> None:
        if self.disk.exists(path):
            self.disk.rmtree(path) if self.disk.is_dir(path) else self.disk.remove(path)
        self.disk.write_bytes(path, data)

    def double(self) -> str:
        path = self._path()
        name = self._new_name(path)
        self._put(name, self.disk.read_bytes(path))
        return f"copied {path} to {name}"

    def rename(self) -> str:
        path = self._path()
        name = self._new_name(path)
        data = self.disk.read_bytes(path)
        self.disk.remove(path)
        self._put(name, data)
        return f"renamed {path} to {name}"

    def swap(self) -> str:
        one, other = self._path(), self._path()
        data = self.disk.read_bytes(one), self.disk.read_bytes(other)
        self.disk.write_bytes(one, data[1])
        self.disk.write_bytes(other, data[0])
        return f"swapped {one} and {other}"

    def stray(self) -> str:
        folder = self.draw.choice([path for path in self._folders() if path.count("/") < 3])
        name = f"{folder}/{self.draw.choice(_STRAY_NAMES)}".lstrip("/")
        noise = self.draw.randbytes(8440)
        data = self.draw.choice((b"", b"\0\0\0\1Bud1", noise[:400], noise, bytes(65536)))
        self._put(name, data)
        return f"put {len(data)} bytes into {name}"

    def folder_for_file(self) -> str:
        path = self._path()
        self.disk.remove(path)
        self.disk.write_bytes(f"{path}/inside", b"something")
        return f"made a folder of {path}"

    def file_for_folder(self) -> str:
        path = self.draw.choice(self._folders()[1:])
        self.disk.rmtree(path)
        self.disk.write_bytes(path, b"something")
        return f"made a file of {path}"

    def _folders(self) -> list[str]:
        found = {""}
        for path in self.disk.files():
            parts = path.split("/")[:-1]
            found.update("/".join(parts[:i]) for i in range(1, len(parts) + 1))
        return sorted(found)


# -- what must hold -------------------------------------------------------------------------------------------------


def outcome(recorded: GoldenStore, seed: int, times: int = 1) -> str:
    """What becomes of a damaged directory: `served`, or `refused` with a sentence that says what to do.

    Anything else is raised, with the damage as a note.
    """
    disk = recorded.disk()
    damager = Damager(disk, seed)
    damager.damage(times)
    try:
        for _ in records_on(disk):
            pass
        _recover_it(recorded, disk)
        return _serve_it(recorded, disk)
    except Exception as problem:
        problem.add_note(f"seed {seed}: {'; '.join(damager.done)}")
        raise


def _copy(disk: MemoryDisk) -> MemoryDisk:
    copy = MemoryDisk(disk.name, disk.now_ms)
    for path in disk.files():
        copy.write_bytes(path, disk.read_bytes(path))
    return copy


def _says_what_to_do(problem: LearnerError) -> str:
    assert problem.hint, f"the error does not say what to do: {problem}"
    return "refused"


def _recover_it(recorded: GoldenStore, disk: MemoryDisk) -> None:
    before = {path: disk.read_bytes(path) for path in disk.files()}
    store = ReadableStore(DiskHost(_copy(disk)), recorded.config())
    try:
        store.load()
    except LearnerError as problem:
        _says_what_to_do(problem)
        return
    recovered_fields(store)
    _read_everything(store)
    assert {path: disk.read_bytes(path) for path in disk.files()} == before


def _read_everything(store: ReadableStore) -> None:
    moments = (0, store.store_checkpoint.physic_msg_timestamp, 1 << 62)
    for topic, queue_ids in store.consume_queue_store.topics().items():
        for queue_id in queue_ids:
            low, high = store.get_min_offset_in_queue(topic, queue_id), store.get_max_offset_in_queue(topic, queue_id)
            for offset in sorted({low - 1, low, (low + high) // 2, high - 1, high, high + 1}):
                store.get_message("G", topic, queue_id, offset, 32)
                store.get_message_store_timestamp(topic, queue_id, offset)
            for moment, boundary in product(moments, BoundaryType):
                store.get_offset_in_queue_by_time(topic, queue_id, moment, boundary)
        store.query_message(topic, "k1", 32, 0, 1 << 62)
    store.get_earliest_message_time()
    repr(store)


def _serve_it(recorded: GoldenStore, disk: MemoryDisk) -> str:
    """Start a broker, use it, stop it, start it again."""
    for is_second in (False, True):
        world = World(1)
        node = world.node("broker-a")
        node.disk = disk
        try:
            broker = BrokerController(node, BrokerConfig(), recorded.config())
            broker.start()
        except LearnerError as problem:
            if is_second:
                raise
            return _says_what_to_do(problem)
        store = broker.message_store
        world.run_for(50_000)
        stored = {}
        for i, topic in enumerate([*store.consume_queue_store.topics(), "New"]):
            properties = {"KEYS": f"after{i}", "UNIQ_KEY": f"{i:032X}"}
            result = store.put_message(MessageExtBrokerInner(topic, b"after the damage", properties=properties))
            assert isinstance(result, PutMessageResult)
            if result.is_ok:
                stored[result.wrote_offset] = topic
        world.run_for(50_000)
        for offset, topic in stored.items():
            message = store.look_message_by_offset(offset)
            assert message is not None
            assert (message.topic, message.body) == (topic, b"after the damage")
        _read_everything(store)
        broker.shutdown().play()
        assert world.broken is None
    return "served"


def main(name: str, count: str, first: str = "0") -> None:
    """Play so many seeds; tell of each that breaks a rule, and how often directories were served or refused."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        recorded = GoldenStore(name, unpack(name, Path(folder)))
        for seed in range(int(first), int(first) + int(count)):
            try:
                found = outcome(recorded, seed, times=1 + seed % 3)
            except Exception as problem:  # noqa: BLE001 - told below, and the next seed is played
                found = type(problem).__name__
                last = traceback.extract_tb(problem.__traceback__)[-1]
                print(f"{found}: {problem} ({last.filename}:{last.lineno}) {problem.__notes__}"[:600])
            outcomes[found] += 1
    print(dict(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
