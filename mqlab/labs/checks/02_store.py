"""The checks of lab 02: entries of a consume queue, and the end of a torn commit log."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from mqlab.check import Wrong, lab_check
from mqlab.sim import FAULTS, MemoryDisk, Node, World
from mqlab.store import DefaultMessageStore, DiskHost, MessageExtBrokerInner, MessageStoreConfig, ReadableStore

Entry = tuple[int, int, int, int]
"""Queue offset, physical offset, size, tags code."""

TAGS = ("paid", "sent", "TagA", "refunded", "Aa", "a long tag with a negative hash", "")
LOG_FILE_BYTES = 32768
LINES_AROUND = 3
TOPIC = "Orders"

POWER_CUT, WHOLE = "a power cut", "a kill without damage"
ROTTEN_BODY, ROTTEN_LENGTH = "a rotten byte in a body", "a rotten byte in the length of a body"
ROTTEN_PROPERTIES_LENGTH = "a rotten byte in the length of properties"
DAMAGES = (WHOLE, POWER_CUT, ROTTEN_BODY, POWER_CUT, ROTTEN_LENGTH, ROTTEN_PROPERTIES_LENGTH, POWER_CUT)


class Written(NamedTuple):
    """One record that a store acknowledged: where it begins in the commit log, its bytes, and those of its body."""

    offset: int
    size: int
    body_length: int


class RunningStore:
    """A store with small files on a machine of its own, filled with messages by chance of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(seed)
        self.node: Node = self.world.node("broker-a")
        self.config = MessageStoreConfig(
            mapped_file_size_commit_log=LOG_FILE_BYTES, mapped_file_size_consume_queue=400, max_message_size=8192
        )
        self.store = self.open()
        self.store.start()
        self.written: list[Written] = []
        self.entries: dict[int, list[Entry]] = {}

    def open(self) -> DefaultMessageStore:
        """The store of the machine's disk, recovered."""
        store = DefaultMessageStore(self.node, self.config)
        store.load()
        return store

    def put(self, count: int, *, queues: int = 1, most_bytes: int = 600) -> None:
        """Store `count` messages of up to `most_bytes`."""
        for _ in range(count):
            tag = self.random.choice(TAGS)
            properties = {"KEYS": f"order-{len(self.written)}", **({"TAGS": tag} if tag else {})}
            message = MessageExtBrokerInner(
                TOPIC,
                self.random.randbytes(self.random.randint(1, most_bytes)),
                queue_id=self.random.randrange(queues),
                properties=properties,
                born_timestamp=self.node.now_ms(),
            )
            result: Any = self.store.put_message(message)
            self.written.append(Written(result.wrote_offset, result.wrote_bytes, len(message.body)))
            self.entries.setdefault(message.queue_id, []).append(
                (result.logics_offset, result.wrote_offset, result.wrote_bytes, _java_hash(tag))
            )
        self.world.run_for(2_000)

    def files(self, folder: str) -> dict[str, bytes]:
        """The content of each file of a folder, by name."""
        path = self.config.path(*folder.split("/"))
        return {name: self.node.disk.read_bytes(f"{path}/{name}") for name in self.node.disk.list(path)}


def _java_hash(text: str) -> int:
    value = 0
    for unit in text:
        value = (31 * value + ord(unit)) % 2**32
    return value - 2**32 if value >= 2**31 else value


# -- entries of a consume queue ------------------------------------------------------------------------------------


@lab_check("02/read-entries", points=1)
def read_entries(answer: Callable[[str, bytes], list[Entry]], *, seed: int) -> Wrong | None:
    """Every file of a queue is read: first and later ones, full and half empty, some with fillers at their head."""
    machine = RunningStore(seed)
    machine.put(machine.random.randint(1, 90), queues=2)
    first_log_byte = 0
    if seed % 4 == 0:
        machine.put(120, queues=2)
        first_log_byte = _lose_the_oldest_log_file(machine)
    for queue_id in sorted(machine.entries):
        known = [entry for entry in machine.entries[queue_id] if entry[1] >= first_log_byte]
        for name, data in machine.files(f"consumequeue/{TOPIC}/{queue_id}").items():
            first = int(name) // 20
            want = [entry for entry in known if first <= entry[0] < first + len(data) // 20]
            wrong = _compare_entries(answer(name, data), want, name, data)
            if wrong is not None:
                return wrong
    return None


def _lose_the_oldest_log_file(machine: RunningStore) -> int:
    """Delete the first commit-log file and all queues, and let the store build them anew; the first byte left."""
    FAULTS["crash"](machine.world, node="broker-a")
    log = machine.config.path("commitlog")
    machine.node.disk.remove(f"{log}/{machine.node.disk.list(log)[0]}")
    machine.node.disk.rmtree(machine.config.path("consumequeue"))
    return machine.open().min_phy_offset


def _compare_entries(got: Any, want: list[Entry], name: str, data: bytes) -> Wrong | None:
    read = [tuple(entry) for entry in got] if isinstance(got, list) else got
    if read == want:
        return None
    if not isinstance(read, list):
        return Wrong(f"a list of entries is wanted, and yours gives {type(got).__name__}", _hex_lines(name, data, 0))
    for number, (mine, right) in enumerate(zip(read, want, strict=False)):
        if mine != right:
            story = f"entry {number} of file {name} is {right}, yours says {mine}"
            return Wrong(story, _hex_lines(name, data, right[0] - int(name) // 20))
    story = f"file {name} has {_messages(len(want))}, yours finds {len(read)}"
    if len(read) > len(want):
        place = want[-1][0] - int(name) // 20 if want else 0
        return Wrong(f"{story}; the first one too many is {read[len(want)]}", _hex_lines(name, data, place))
    missing = want[len(read)]
    return Wrong(f"{story}; the first one missing is {missing}", _hex_lines(name, data, missing[0] - int(name) // 20))


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _hex_lines(name: str, data: bytes, place: int) -> str:
    first = max(0, place - 1)
    rows = [f"file {name}, {len(data)} bytes"]
    for number in range(first, min(first + 4, len(data) // 20)):
        offset, size, tags_code = struct.unpack_from(">qiq", data, number * 20)
        raw = data[number * 20 : number * 20 + 20].hex(" ")
        rows.append(f"  byte {number * 20:>3}: {raw}   = {offset}, {size}, {tags_code}")
    return "\n".join(rows)


# -- the end of a torn log -----------------------------------------------------------------------------------------


@lab_check("02/find-end", points=3)
def find_end(answer: Callable[[list[bytes]], int], *, seed: int) -> Wrong | None:
    """Logs of several files, whole or damaged by power cuts and rotten bytes, end where the store lets them end."""
    machine = RunningStore(seed)
    machine.put(machine.random.randint(3, 30), most_bytes=2_000)
    machine.store.flush_commit_log(0)
    machine.put(machine.random.randint(3, 30), most_bytes=2_000)
    before = b"".join(machine.files("commitlog").values())
    what = _damage(machine, seed)
    files = list(machine.files("commitlog").values())
    want = _recovered_end(files)
    got = answer(list(files))
    if got == want and isinstance(got, int):
        return None
    if not isinstance(got, int) or isinstance(got, bool):
        return Wrong(f"an offset is wanted, and yours gives {got!r}")
    kept = [record for record in machine.written if record.offset < want]
    story = (
        f"after {what} the log ends at {want}, behind {len(kept)} of {len(machine.written)} records; yours says {got}"
    )
    return Wrong(story, _records_around(machine.written, before, b"".join(files), want, got))


def _damage(machine: RunningStore, seed: int) -> str:
    """Do to the log what the seed says; in words."""
    kind = DAMAGES[seed % len(DAMAGES)]
    FAULTS["power_off" if kind == POWER_CUT else "crash"](machine.world, node="broker-a")
    record = machine.random.choice(machine.written)
    behind_body = 88 + record.body_length
    places = {ROTTEN_BODY: 88, ROTTEN_LENGTH: 87, ROTTEN_PROPERTIES_LENGTH: behind_body + 1 + len(TOPIC) + 1}
    if kind in places:
        _flip(machine, record.offset + places[kind])
    return kind


def _flip(machine: RunningStore, offset: int) -> None:
    log = machine.config.path("commitlog")
    file = machine.node.disk.open(f"{log}/{offset // LOG_FILE_BYTES * LOG_FILE_BYTES:020d}")
    at = offset % LOG_FILE_BYTES
    file.write(at, bytes([file.read(at, 1)[0] ^ 0xFF]))


def _recovered_end(files: list[bytes]) -> int:
    """Where the store itself lets a log of these files end after a crash, when it reads all of it."""
    disk = MemoryDisk("judge", lambda: 0)
    config = MessageStoreConfig(mapped_file_size_commit_log=LOG_FILE_BYTES, mapped_file_size_consume_queue=400)
    disk.write_bytes(config.path("abort"), b"1")
    for number, data in enumerate(files):
        disk.write_bytes(config.path("commitlog", f"{number * LOG_FILE_BYTES:020d}"), data)
    return ReadableStore(DiskHost(disk), config).load().end


def _records_around(written: list[Written], before: bytes, after: bytes, want: int, got: int) -> str:
    rows = []
    for record in written:
        end = record.offset + record.size
        torn = before[record.offset : end] != after[record.offset : end]
        state = "torn" if torn else "whole" if record.offset < want else "whole, but behind the end"
        rows.append((record.offset, f"  {record.offset:>6} to {end:>6}  {state}"))
    near = [n for n, (offset, _) in enumerate(rows) if offset >= want][:1] or [len(rows)]
    first = max(0, near[0] - LINES_AROUND)
    shown = [row for _, row in rows[first : near[0] + LINES_AROUND]]
    shown.insert(near[0] - first, f"  {want:>6}  <- the log ends here")
    head = [f"records {first} to {min(len(rows), near[0] + LINES_AROUND) - 1} of {len(rows)}, as they are on the disk:"]
    return "\n".join([*head, *shown, f"  {got:>6}  <- yours"])
