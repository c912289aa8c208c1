"""The checks of lab 02: an entry of a queue, tags that share a hash, a flush, and the end of a torn commit log."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from string import ascii_lowercase
from typing import Any, NamedTuple

from mqlab.check import Cases, Wrong, lab_check
from mqlab.lab import Lab
from mqlab.protocol.hashing import java_string_hash
from mqlab.sim import FAULTS, MemoryDisk, Node
from mqlab.store import DefaultMessageStore, DiskHost, MessageExtBrokerInner, MessageStoreConfig, ReadableStore

Entry = tuple[int, int, int]
"""Physical offset, size, tags code."""

TAGS = ("paid", "sent", "TagA", "refunded", "Aa", "a long tag with a negative hash", "")
LOG_FILE_BYTES = 32768
ENTRY_BYTES, TAGS_TRIED = 20, 5
LINES_AROUND = 3
PAGE_BYTES, LEAST_PAGES, THOROUGH_MS, LOOKS_TRIED = 4_096, 4, 10_000, 12
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
        self.lab = Lab(seed, history=False)
        self.world = self.lab.world
        self.node: Node = self.lab.node("broker-a")
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
                (result.wrote_offset, result.wrote_bytes, java_string_hash(tag))
            )
        self.world.run_for(2_000)

    def files(self, folder: str) -> dict[str, bytes]:
        """The content of each file of a folder, by name."""
        path = self.config.path(*folder.split("/"))
        return {name: self.node.disk.read_bytes(f"{path}/{name}") for name in self.node.disk.list(path)}


# -- an entry of a consume queue -----------------------------------------------------------------------------------


@lab_check("02/read-entry", points=1)
def read_entry(answer: Callable[[dict[str, bytes], int], Entry], *, seed: int) -> Wrong | None:
    """Any entry of a queue is found, in its first file and in later ones."""
    machine, cases = RunningStore(seed), Cases()
    machine.put(machine.random.randint(1, 90), queues=2)
    for queue_id, entries in sorted(machine.entries.items()):
        files = machine.files(f"consumequeue/{TOPIC}/{queue_id}")
        for number in sorted({0, machine.random.randrange(len(entries)), len(entries) - 1}):
            got = answer(dict(files), number)
            told = f"entry {number} is {entries[number]}, yours says {got!r}"
            cases.note(entries[number], got == entries[number] or Wrong(told, _hex_lines(files, number)))
    return cases.result


def _hex_lines(files: dict[str, bytes], number: int) -> str:
    rows = []
    for name, data in sorted(files.items()):
        rows.append(f"file {name}, {len(data)} bytes")
        at = number * ENTRY_BYTES - int(name)
        if 0 <= at < len(data):
            rows.append(f"  byte {at:>3}: {data[at : at + ENTRY_BYTES].hex(' ')}   <- entry {number}")
    return "\n".join(rows)


# -- tags that share a hash ----------------------------------------------------------------------------------------


@lab_check("02/same-hash", points=1)
def same_hash(answer: Callable[[str], str], *, seed: int) -> Wrong | None:
    """Tags of 2 to 8 small letters get a partner of the same length with the same hash."""
    random, cases = Random(seed), Cases()
    for _ in range(TAGS_TRIED):
        tag = "".join(random.choice(ascii_lowercase) for _ in range(random.randint(2, 8)))
        cases.note(tag, _shares_its_hash(tag, answer(tag)))
    return cases.result


def _shares_its_hash(tag: str, got: object) -> Wrong | bool:
    if not isinstance(got, str) or got == tag or len(got) != len(tag):
        return Wrong(f"for {tag!r} yours gives {got!r}; another text of {len(tag)} characters is wanted")
    if java_string_hash(got) == java_string_hash(tag):
        return True
    told = f"{tag!r} has the hash {java_string_hash(tag)}, yours, {got!r}, has {java_string_hash(got)}"
    return Wrong(told, f"they differ by {java_string_hash(got) - java_string_hash(tag)}")


# -- when the log is flushed ---------------------------------------------------------------------------------------


@lab_check("02/flushes", points=1)
def flushes(answer: Callable[[int, int, int], bool], *, seed: int) -> Wrong | None:
    """Few and many dirty pages, early and late: flushed is what MappedFile.isAbleToFlush would flush."""
    random, cases = Random(f"02/flushes/{seed}"), Cases()
    for _ in range(LOOKS_TRIED):
        flushed = random.randrange(20 * PAGE_BYTES)
        written = flushed + random.choice((0, random.randrange(PAGE_BYTES), random.randrange(6 * PAGE_BYTES)))
        since_ms = random.choice((random.randrange(10_000), 9_999, 10_000, random.randrange(10_000, 11_000)))
        pages = written // PAGE_BYTES - flushed // PAGE_BYTES
        want = written > flushed if since_ms >= THOROUGH_MS else pages >= LEAST_PAGES
        got = answer(written, flushed, since_ms)
        asked = f"flushes({written}, {flushed}, {since_ms})"
        told = f"{asked} is {got!r}, and should be {want}: {pages} pages further, after {since_ms} ms"
        cases.note(want, got is want or Wrong(told))
    return cases.result


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
