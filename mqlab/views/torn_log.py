"""The torn log: what a power cut took from a commit log, page by page, and what recovery made of the rest."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.protocol.errors import RecordError
from mqlab.protocol.record import decode_record
from mqlab.sim.disk import PAGE_BYTES
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, byte_axis, ink_on, line, picture, text

KEPT, DROPPED, TORN = PALETTE[0], PALETTE[1], PALETTE[5]
_LEFT, _WIDTH, _PAGES_Y, _RECORDS_Y, _H = 150, 760, 92, 156, 34


class TornRecord(NamedTuple):
    """One record that was written: where, how long, and what became of it ("kept", "dropped" or "torn")."""

    offset: int
    size: int
    state: str


class TornLog(Drawing):
    """One commit-log file before and after a stop: pages that were lost, records that were kept, dropped and torn.

    A torn record has lost bytes. A dropped one is whole, but lies behind `end`, where recovery let the log end.
    `str(torn_log)` says the same as text.
    """

    def __init__(self, before: bytes, after: bytes, end: int) -> None:
        self.end = end
        self.records = [
            TornRecord(at, size, "torn" if before[at : at + size] != after[at : at + size] else _side(at, end))
            for at, size in _records(before)
        ]
        last = self.records[-1].offset + self.records[-1].size if self.records else 0
        self.pages = [
            before[at : at + PAGE_BYTES] == after[at : at + PAGE_BYTES] for at in range(0, max(last, 1), PAGE_BYTES)
        ]
        """One truth for each 4 KiB page that holds data: did it survive?"""

    def count(self, state: str) -> int:
        """How many records were "kept", "dropped" or "torn"."""
        return sum(record.state == state for record in self.records)

    def __str__(self) -> str:
        pages = " ".join("kept" if page else "lost" for page in self.pages)
        lines = [f"pages of 4 KiB: {pages}"]
        for number, record in enumerate(self.records):
            lines.append(f"record {number:>2} at {record.offset:>6}, {record.size} bytes: {record.state}")
        lines.append(f"recovery: the log ends at {self.end}")
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture as SVG text."""
        last = len(self.pages) * PAGE_BYTES
        scale = _WIDTH / last
        body = byte_axis(_LEFT, _PAGES_Y - 6, _WIDTH, 0, last, "offset in the commit log, bytes")
        body += [text(12, _PAGES_Y + 15, "pages", bold=True), text(12, _PAGES_Y + 30, "on the disk", colour=FAINT)]
        body += [text(12, _RECORDS_Y + 15, "records", bold=True), text(12, _RECORDS_Y + 30, "as written", colour=FAINT)]
        for number, kept in enumerate(self.pages):
            body += _page(_LEFT + number * PAGE_BYTES * scale, PAGE_BYTES * scale, kept)
        for number, record in enumerate(self.records):
            body += _record(number, record, _LEFT + record.offset * scale, record.size * scale)
        x = _LEFT + self.end * scale
        anchor = "start" if x < _LEFT + _WIDTH / 2 else "end"
        words = f"recovery: the log ends here, at {self.end:,}"
        body.append(line(x, _PAGES_Y - 4, x, _RECORDS_Y + _H + 14, INK, width=2, dash="5 3"))
        body.append(text(x, _RECORDS_Y + _H + 28, words, anchor=anchor, bold=True))
        body += _legend(_RECORDS_Y + _H + 56)
        title = "After the stop: pages, records, and the end of the log"
        return picture(title, _LEFT + _WIDTH + 40, _RECORDS_Y + _H + 72, body)


def _page(x: float, width: float, kept: bool) -> list[str]:
    body = [box(x + 1, _PAGES_Y, width - 2, _H, "#e8eef4" if kept else PAPER, stroke=KEPT if kept else TORN)]
    if not kept:
        body.append(line(x + 1, _PAGES_Y + _H, x + width - 1, _PAGES_Y, TORN))
    if width > 34:
        word, colour = ("kept", KEPT) if kept else ("lost", TORN)
        body.append(text(x + width / 2, _PAGES_Y + 21, word, colour=colour, anchor="middle", bold=True, halo=PAPER))
    return body


def _record(number: int, record: TornRecord, x: float, width: float) -> list[str]:
    fill = {"kept": KEPT, "dropped": DROPPED, "torn": TORN}[record.state]
    tip = f"record {number}, {record.size} bytes at {record.offset}: {record.state}"
    body = [box(x, _RECORDS_Y, width, _H, fill, tip=tip)]
    if record.state == "torn":
        body.append(line(x, _RECORDS_Y + _H, x + width, _RECORDS_Y, PAPER))
    if width > 14:
        ink = ink_on(fill)
        body.append(text(x + width / 2, _RECORDS_Y + 21, str(number), colour=ink, anchor="middle", bold=True))
    return body


def _records(data: bytes) -> list[tuple[int, int]]:
    """Offset and size of each record in a commit-log file."""
    found: list[tuple[int, int]] = []
    at = 0
    while True:
        try:
            size = decode_record(data, at, decompress=False, read_body=False).store_size
        except RecordError:
            return found
        found.append((at, size))
        at += size


def _side(offset: int, end: int) -> str:
    return "kept" if offset < end else "dropped"


def _legend(y: float) -> list[str]:
    body, x = [], float(_LEFT)
    for colour, words in ((KEPT, "kept"), (TORN, "torn: bytes are gone"), (DROPPED, "whole, but dropped by recovery")):
        body += [box(x, y - 11, 14, 14, colour), text(x + 20, y, words)]
        x += 60 + 7.0 * len(words)
    return body
