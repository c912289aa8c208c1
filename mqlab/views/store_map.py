"""The store map: the one commit log of a broker, and the queues whose entries point into it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import decode_record
from mqlab.sim import MemoryDisk
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, byte_axis, circle, ink_on, line, picture, text

_ENTRY = struct.Struct(">qiq")
_LEFT, _WIDTH, _LOG_Y, _LOG_H, _ROW, _CELL_W, _CELL_H = 150, 760, 92, 40, 80, 104, 34


class MappedRecord(NamedTuple):
    """One message on the map: its queue and place there, where it begins in the commit log, its bytes and its tag."""

    queue: str
    queue_offset: int
    offset: int
    size: int
    tag: str


class MappedEntry(NamedTuple):
    """One entry of a queue: its queue offset, and the offset and size of the record that it points at."""

    queue_offset: int
    offset: int
    size: int


class StoreMap(Drawing):
    """The first records of a commit log above, the entries of the queues below, a line from each entry to its record.

    `str(store_map)` says the same as text.
    """

    def __init__(self, records: list[MappedRecord], queues: dict[str, list[MappedEntry]]) -> None:
        self.records = records
        self.queues = queues

    @classmethod
    def of(cls, disk: MemoryDisk, folder: str = "store", *, most: int = 8) -> StoreMap:
        """The map of a store directory on a disk, of its first `most` records. LearnerError when it has none."""
        records = _first_records(disk, folder, most)
        if not records:
            raise LearnerError(f"there is no message in {folder}/commitlog", "send one, then draw the map")
        end = records[-1].offset + records[-1].size
        names = sorted({record.queue for record in records})
        return cls(records, {name: _entries(disk, f"{folder}/consumequeue/{name}", end) for name in names})

    def __str__(self) -> str:
        lines = ["commit log"]
        for r in self.records:
            lines.append(f"  {r.offset:>8}  {r.size:>6} bytes  {r.queue} message {r.queue_offset}  {r.tag}")
        for name, entries in self.queues.items():
            lines.append(f"queue {name}")
            lines += [f"  entry {e.queue_offset} -> {e.offset}, {e.size} bytes" for e in entries]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture as SVG text."""
        first, last = self.records[0].offset, self.records[-1].offset + self.records[-1].size
        scale = _WIDTH / (last - first)
        body = byte_axis(_LEFT, _LOG_Y - 6, _WIDTH, first, last, "offset in the commit log, bytes")
        body += [text(12, _LOG_Y + 18, "commit log", bold=True), text(12, _LOG_Y + 34, "all messages", colour=FAINT)]
        x_of = {record.offset: _LEFT + (record.offset - first) * scale for record in self.records}
        rows: list[str] = []
        y = _LOG_Y + _LOG_H + 50
        for number, (name, entries) in enumerate(self.queues.items()):
            colour = PALETTE[number % len(PALETTE)]
            rows += [text(12, y + 14, f"queue {name}", bold=True), text(12, y + 30, "20 bytes an entry", colour=FAINT)]
            rows += _cells(entries, colour, y)
            body += self._records(name, colour, x_of, scale)
            body += _pointers(entries, colour, y, x_of)
            y += _ROW
        title = "Each entry of a queue points at a record of the commit log"
        return picture(title, _LEFT + _WIDTH + 24, y - 34, body + rows)

    def _records(self, name: str, colour: str, x_of: dict[int, float], scale: float) -> list[str]:
        body = []
        for record in self.records:
            if record.queue == name:
                x = x_of[record.offset]
                tip = f"{record.queue}, message {record.queue_offset}, {record.size} bytes at {record.offset}"
                body.append(box(x, _LOG_Y, record.size * scale, _LOG_H, colour, tip=tip))
                label = f"{record.queue_offset}" + (f" {record.tag}" if record.size * scale > 60 else "")
                middle, ink = x + record.size * scale / 2, ink_on(colour)
                body.append(text(middle, _LOG_Y + 25, label, colour=ink, anchor="middle", bold=True))
        return body


def _pointers(entries: list[MappedEntry], colour: str, y: float, x_of: dict[int, float]) -> list[str]:
    """A line from each entry to the first byte of its record."""
    body = []
    for number, entry in enumerate(entries):
        source, target = _LEFT + (number + 0.5) * _CELL_W, x_of[entry.offset] + 3
        body.append(line(source, y, target, _LOG_Y + _LOG_H + 4, colour))
        body.append(circle(target, _LOG_Y + _LOG_H + 2, 4, colour))
    return body


def _cells(entries: list[MappedEntry], colour: str, y: float) -> list[str]:
    """The entries of one queue as boxes."""
    body = []
    for number, entry in enumerate(entries):
        x = _LEFT + number * _CELL_W
        body.append(box(x, y, _CELL_W, _CELL_H, PAPER, stroke=colour))
        body.append(text(x + _CELL_W / 2, y + 14, f"entry {entry.queue_offset}", anchor="middle", bold=True))
        body.append(text(x + _CELL_W / 2, y + 28, f"at {entry.offset}, {entry.size} B", colour=INK, anchor="middle"))
    return body


def _first_records(disk: MemoryDisk, folder: str, most: int) -> list[MappedRecord]:
    names = disk.list(f"{folder}/commitlog")
    if not names:
        return []
    file = disk.open(f"{folder}/commitlog/{names[0]}")
    data, base, at = file.read(0, file.size), int(names[0]), 0
    records: list[MappedRecord] = []
    while len(records) < most:
        try:
            message = decode_record(data, at, decompress=False)
        except RecordError:
            break
        queue = f"{message.topic}/{message.queue_id}"
        records.append(MappedRecord(queue, message.queue_offset, base + at, message.store_size, message.tags or ""))
        at += message.store_size
    return records


def _entries(disk: MemoryDisk, folder: str, end: int) -> list[MappedEntry]:
    entries: list[MappedEntry] = []
    for name in disk.list(folder):
        data = disk.read_bytes(f"{folder}/{name}")
        for number, (offset, size, _) in enumerate(_ENTRY.iter_unpack(data[: len(data) // 20 * 20]), int(name) // 20):
            if size <= 0 or offset >= end:
                return entries
            entries.append(MappedEntry(number, offset, size))
    return entries
