"""The window of a share partition: from the SPSO to the SPEO, with the state of each record."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.views.colours import BLUE, GREEN, ORANGE
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, ink_on, legend, line, picture, text

if TYPE_CHECKING:
    from mqlab.trace.record import Record

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"
_COLOURS = {AVAILABLE: PAPER, ACQUIRED: BLUE, ACKNOWLEDGED: GREEN, ARCHIVED: ORANGE}
_LEFT, _TOP, _WIDE, _HIGH, _MOST, _LETTER = 24, 96, 76, 44, 12, 6.4
_WRITTEN = re.compile(r"(\d+)(?:-(\d+))? (\w+) x(\d+)")


class Cell(NamedTuple):
    """A record as the leader of the partition has it."""

    state: str
    delivery_count: int
    member: str = ""


class ShareWindow(Drawing):
    """The records of a share partition, as events tell of them. `ShareWindow.of(lab.history)`."""

    def __init__(self, start_offset: int, end_offset: int, cells: dict[int, Cell], title: str) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.cells = cells
        self.title = title

    @classmethod
    def of(cls, history: Iterable[Record], title: str = "The share partition") -> ShareWindow:
        """The window behind the last event. A broker that starts anew knows only what was written."""
        start, end, cells = 0, 0, dict[int, Cell]()
        for record in history:
            if record.kind == "ShareStateRead":
                start = end = record.start_offset
                cells = {}
                for first, last, state, count in _WRITTEN.findall(record.states):
                    for offset in range(int(first), int(last or first) + 1):
                        cells[offset] = Cell(state, int(count))
                        end = max(end, offset + 1)
            elif record.kind == "RecordAcquired":
                cells[record.queue_offset] = Cell(ACQUIRED, record.delivery_count, record.member)
                end = max(end, record.queue_offset + 1)
            elif record.kind == "RecordAcknowledged" and record.queue_offset in cells:
                cell = cells[record.queue_offset]
                member = record.member if record.state == ACQUIRED else ""
                cells[record.queue_offset] = cell._replace(state=record.state, member=member)
            elif record.kind == "RecordLetGo":
                cells[record.queue_offset] = Cell(record.state, cells[record.queue_offset].delivery_count)
            elif record.kind == "StartOffsetMoved":
                start = record.to_offset
        return cls(start, end, cells, title)

    def __str__(self) -> str:
        lines = [f"{self.title}: SPSO {self.start_offset}, SPEO {self.end_offset}"]
        for offset in self._shown():
            cell = self._cell(offset)
            whose = f", held by {cell.member}" if cell.member else ""
            lines.append(f"  record {offset}: {cell.state}, deliveries: {cell.delivery_count}{whose}")
        return "\n".join(lines)

    def _shown(self) -> list[int]:
        """The last ones before the window, all of it, and one behind it; not too many."""
        first = max(0, self.start_offset - 2)
        return list(range(first, min(self.end_offset + 1, first + _MOST)))

    def _cell(self, offset: int) -> Cell:
        return self.cells.get(offset, Cell(AVAILABLE, 0))

    def svg(self) -> str:
        """The picture as SVG text."""
        body, _ = legend([(colour, state.lower()) for state, colour in _COLOURS.items()], 38, _LETTER, stroke=FAINT)
        shown = self._shown()
        for place, offset in enumerate(shown):
            cell, x = self._cell(offset), _LEFT + place * _WIDE
            fill = _COLOURS.get(cell.state, PAPER)
            done = offset < self.start_offset
            tip = f"record {offset}: {cell.state}, deliveries: {cell.delivery_count}"
            body.append(box(x, _TOP, _WIDE - 6, _HIGH, fill, tip=tip, stroke=FAINT))
            ink = ink_on(fill)
            body.append(text(x + 8, _TOP + 18, str(offset), colour=ink, bold=True))
            body.append(text(x + _WIDE - 14, _TOP + 18, f"x{cell.delivery_count}", colour=ink, anchor="end"))
            body.append(text(x + 8, _TOP + 36, "finished" if done else cell.member, colour=ink))
        for name, offset in (("SPSO", self.start_offset), ("SPEO", self.end_offset)):
            if offset in shown:
                x = _LEFT + shown.index(offset) * _WIDE - 3
                low = name == "SPEO"
                y = _TOP + _HIGH + 24 if low else _TOP - 12
                body.append(line(x, _TOP - 8, x, _TOP + _HIGH + 8, INK, width=2))
                body.append(text(x, y, name, bold=True, anchor="middle"))
        return picture(self.title, _LEFT * 2 + max(5, len(shown)) * _WIDE, _TOP + _HIGH + 40, body)
