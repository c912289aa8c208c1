"""Space-time diagrams: a stretch of history with the nodes as lanes and the frames between them as arrows.

Time runs downwards, one row per event, so that a chain of microseconds is as readable as a wait of seconds; the left
margin says when, and a long wait is a grey band that says how long. The picture is static SVG, so that it also shows on
a page of the repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape
from math import atan2, degrees
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.trace.history import History
from mqlab.trace.record import Record
from mqlab.trace.recorded import read_json_lines, read_parquet
from mqlab.views.colours import BLUE, VERMILION
from mqlab.views.diagram_reading import SHOWN_AS_DOTS, WHO_AND_WHAT, Mark, Reading, in_words
from mqlab.views.svg import INK, Drawing, picture

REQUEST, RESPONSE, DOT, HOLD = BLUE, "#007A5A", VERMILION, "#F3D08A"
FAINT, LINE, BAND = "#6e6e6e", "#9a9a9a", "#f2f2f2"
ROW, LANE, LEFT, TOP, HEAD = 24, 204, 128, 96, 14
DASHED = 'stroke-dasharray="7 3"'
TIP = "M1.6,0 L-11,-6.3 L-11,6.3 z"
"""The head of an arrow to the right. No marker: a marker has a name, and of two pictures on a page with one name the
second loses its heads when the first is hidden.
"""
GAP_US = 10_000
MOST_ROWS = 120
SMALL_LETTER, LETTER, BOLD_LETTER = 6.2, 6.8, 7.7
"""How wide a letter is at most on average, in the picture's units; labels are given room by it."""
BAR, BAR_STEP, BAR_COLUMNS = 10, 13, 8
TIME_EDGE = LEFT - 56
"""Where the numbers of the time column end."""


class SpaceTimeDiagram(Drawing):
    """A drawn stretch of history. `str(diagram)` is its text twin; `save(path)` writes the SVG."""

    def __init__(
        self, marks: list[Mark], lanes: list[str], *, title: str = "", left_out: int = 0, hosts: dict[str, str]
    ) -> None:
        self.marks = marks
        self.lanes = lanes
        self.title = title
        self.left_out = left_out
        self._hosts = hosts
        self._x = {lane: LEFT + LANE * n for n, lane in enumerate(lanes)}

    @classmethod
    def of(
        cls,
        history: History,
        start_ms: float,
        end_ms: float,
        *,
        nodes: Collection[str] = (),
        kinds: Collection[str] = SHOWN_AS_DOTS,
        requests: Collection[str] = (),
        title: str = "",
        most: int = MOST_ROWS,
    ) -> SpaceTimeDiagram:
        """The stretch from `start_ms` to `end_ms` of the world's time.

        `nodes` restricts the lanes, `kinds` the events drawn as dots, `requests` the frames to those of these request
        names (with their responses). More than `most` rows are left out, and the diagram says so.
        """
        _check_stretch(start_ms, end_ms)
        reading = Reading(kinds, requests)
        for record in history.find(WHO_AND_WHAT):
            if record.ts_us >= start_ms * 1_000:
                break
            reading.mark(record)
        return cls.of_records(history.between(start_ms, end_ms), reading, nodes=nodes, title=title, most=most)

    @classmethod
    def of_trace(
        cls,
        path: str | Path,
        start_ms: float,
        end_ms: float,
        *,
        nodes: Collection[str] = (),
        kinds: Collection[str] = SHOWN_AS_DOTS,
        requests: Collection[str] = (),
        title: str = "",
        most: int = MOST_ROWS,
    ) -> SpaceTimeDiagram:
        """The same of a recorded trace: a .jsonl or .parquet file that `mqlab trace ... --out FILE` wrote.

        The file is read once, from its beginning. LearnerError if there is no such file, ProtocolError if it is no
        trace.
        """
        _check_stretch(start_ms, end_ms)
        reading = Reading(kinds, requests)
        rows = read_parquet(path) if str(path).endswith(".parquet") else read_json_lines(path)

        def stretch() -> Iterator[Record]:
            for row in rows:
                record = Record(row)
                if record.ts_us > round(end_ms * 1_000):
                    return
                if record.ts_us >= round(start_ms * 1_000):
                    yield record
                elif record.kind in WHO_AND_WHAT:
                    reading.mark(record)

        return cls.of_records(stretch(), reading, nodes=nodes, title=title, most=most)

    @classmethod
    def of_records(
        cls,
        records: Iterable[Record],
        reading: Reading,
        *,
        nodes: Collection[str] = (),
        title: str = "",
        most: int = MOST_ROWS,
    ) -> SpaceTimeDiagram:
        """The events of a stretch, by a reading that knows what came before it."""
        marks: list[Mark] = []
        for record in records:
            mark = reading.mark(record)
            if mark is not None and (not nodes or record.node in nodes):
                marks.append(mark)
        shown = reading.detailed(marks[:most])
        lanes = list(dict.fromkeys(mark.lane for mark in shown if mark.lane != "world"))
        lanes.sort(key=reading.place)
        return cls(shown, lanes, title=title, left_out=max(0, len(marks) - most), hosts=reading.hosts)

    def __str__(self) -> str:
        width = max((len(lane) for lane in self.lanes), default=4)
        lines = [self.title] if self.title else []
        lines += [
            f"{_ms(mark.record.ts_us):>12} ms  {mark.lane:<{width}}  {_sign(mark)} {mark.text} {mark.detail}".rstrip()
            for mark in self.marks
        ]
        return "\n".join([*lines, *self._notes()]) or "(nothing happened in this stretch)"

    def _notes(self) -> list[str]:
        return [f"... and {self.left_out} more rows: ask for less"] if self.left_out else []

    def save(self, path: str) -> None:
        """Write the picture to an .svg file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        rows = self._rows()
        bottom = (rows[-1] if rows else TOP) + ROW
        body = [
            f'{_legend()}<text x="{TIME_EDGE}" y="{TOP - HEAD + 4}" text-anchor="end" fill="{FAINT}">ms</text>',
            *self._gaps(rows),
            *self._lane_lines(bottom),
            *self._holds(rows, bottom),
            *self._arrows(rows),
            *self._dots(rows),
            *self._times(rows),
        ]
        body += [_text(LEFT, bottom + 18, note, FAINT) for note in self._notes()]
        width, height = self._width(), bottom + (28 if self.left_out else 8)
        title = self.title or f"Space-time diagram, {self._span()}"
        return picture(title, width, height, body, line_y=24, letter=15)

    def _span(self) -> str:
        if not self.marks:
            return "nothing happened"
        return f"{_ms(self.marks[0].record.ts_us)} to {_ms(self.marks[-1].record.ts_us)} ms of the world's time"

    def _rows(self) -> list[float]:
        """The height of each mark; a long wait leaves room for a word about it."""
        heights, y, before = [], TOP + ROW * 0.75, None
        for mark in self.marks:
            if before is not None and mark.record.ts_us - before > GAP_US:
                y += ROW * 1.25
            heights.append(y)
            y += ROW
            before = mark.record.ts_us
        return heights

    def _width(self) -> float:
        """Wide enough for the longest label beside each lane."""
        ends = [LEFT + LANE * max(0, len(self.lanes) - 1) + 80.0, 520.0]
        for mark in self.marks:
            if mark.frame is None:
                words = BOLD_LETTER * len(mark.text) + LETTER * (len(mark.detail) + 1)
                ends.append(self._x.get(mark.lane, LEFT) + 12 + words)
        return max(ends) + 8

    def _gaps(self, rows: list[float]) -> Iterator[str]:
        for n in range(1, len(rows)):
            waited_us = self.marks[n].record.ts_us - self.marks[n - 1].record.ts_us
            if waited_us > GAP_US:
                y = rows[n] - ROW * 1.6
                yield f'<rect x="0" y="{y:g}" width="100%" height="{ROW * 0.95:g}" fill="{BAND}"/>'
                yield _text(TIME_EDGE, y + 16, f"+ {in_words(waited_us)}", DOT, anchor="end")

    def _lane_lines(self, bottom: float) -> Iterator[str]:
        for lane, x in self._x.items():
            half = 8 + BOLD_LETTER * len(lane) / 2
            yield (
                f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom:g}" stroke="{LINE}" stroke-width="1.5"/>'
                f'<rect x="{x - half:g}" y="{TOP - 2 * HEAD}" width="{2 * half:g}" height="{2 * HEAD}" rx="6" '
                f'fill="#ffffff" stroke="{LINE}"/><text x="{x}" y="{TOP - HEAD + 4}" text-anchor="middle" '
                f'font-weight="600" fill="{INK}">{escape(lane)}</text>'
            )

    def _holds(self, rows: list[float], bottom: float) -> Iterator[str]:
        """A bar for each pull that is held: from where it was laid aside (or the top) to where it was answered."""
        began: dict[tuple[object, ...], float] = {}
        bars: list[tuple[str, float, float]] = []
        for mark, y in zip(self.marks, rows, strict=True):
            record = mark.record
            if record.kind not in ("PullHeld", "PullWoken"):
                continue
            key = (mark.lane, record.topic, record.queue_id, record.group, record.opaque)
            if record.kind == "PullHeld":
                began[key] = y
            else:
                bars.append((mark.lane, began.pop(key, TOP), y))
        bars += [(str(key[0]), y, bottom) for key, y in began.items()]
        free: dict[str, list[float]] = {}
        for lane, y1, y2 in sorted(bars, key=lambda bar: bar[1]):
            ends = free.setdefault(lane, [0.0] * BAR_COLUMNS)
            column = next((n for n, end in enumerate(ends) if end < y1), BAR_COLUMNS - 1)
            ends[column] = max(ends[column], y2)
            x = self._x[lane] - BAR / 2 - BAR_STEP * column
            yield f'<rect x="{x:g}" y="{y1:g}" width="{BAR}" height="{max(6.0, y2 - y1):g}" fill="{HOLD}" rx="4"/>'

    def _arrows(self, rows: list[float]) -> Iterator[str]:
        begun: dict[tuple[int, int, str], tuple[float, Mark]] = {}
        for mark, y in zip(self.marks, rows, strict=True):
            if mark.frame is None:
                continue
            if mark.sent:
                begun[mark.frame] = (y, mark)
                continue
            y1, begin = begun.pop(mark.frame, (0.0, None))
            if begin is not None:
                yield _arrow(self._x[begin.lane], y1, self._x[mark.lane], y, mark)
            else:
                yield self._half_arrow(mark, y)
        for y, mark in begun.values():
            yield self._half_arrow(mark, y)

    def _half_arrow(self, mark: Mark, y: float) -> str:
        """A frame whose other end lies outside of the picture: still under way, lost, or sent before."""
        x = self._x[mark.lane]
        other = self._x.get(self._hosts.get(mark.record.remote.rpartition(":")[0], ""), x + 1)
        side = 70 if other > x else -70
        anchor = "start" if side > 0 else "end"
        ends = ((x, y), (x + side, y + 7)) if mark.sent else ((x + side, y - 7), (x, y))
        (x1, y1), (x2, y2) = ends
        label, label_y = (f"{mark.text} (under way)", y + 12) if mark.sent else (mark.text, y - 4)
        return (
            f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}" stroke="{_colour(mark)}" stroke-width="1.6" '
            f'stroke-dasharray="2 4"/>{_text(x + side * 1.08, label_y, label, _colour(mark), anchor)}'
        )

    def _dots(self, rows: list[float]) -> Iterator[str]:
        for mark, y in zip(self.marks, rows, strict=True):
            if mark.frame is not None:
                continue
            words = f'<tspan font-weight="600">{escape(mark.text)}</tspan> {escape(mark.detail)}'
            if mark.lane == "world":
                yield f'<line x1="{LEFT}" y1="{y:g}" x2="100%" y2="{y:g}" stroke="{DOT}" stroke-dasharray="2 3"/>'
                yield _halo(LEFT, y - 4, words, DOT)
            else:
                x = self._x[mark.lane]
                yield f'<circle cx="{x}" cy="{y:g}" r="5" fill="{DOT}" stroke="#ffffff"/>{_halo(x + 12, y + 4, words)}'

    def _times(self, rows: list[float]) -> Iterator[str]:
        before = None
        for mark, y in zip(self.marks, rows, strict=True):
            if mark.record.ts_us != before:
                yield _text(TIME_EDGE, y + 4, _ms(mark.record.ts_us), FAINT, anchor="end")
            before = mark.record.ts_us


def _check_stretch(start_ms: float, end_ms: float) -> None:
    if end_ms < start_ms:
        raise LearnerError(f"the stretch ends ({end_ms} ms) before it begins ({start_ms} ms)", "swap the two times")


def _is_request(mark: Mark) -> bool:
    return mark.record.kind.startswith("Request")


def _colour(mark: Mark) -> str:
    return REQUEST if _is_request(mark) else RESPONSE


def _sign(mark: Mark) -> str:
    return "|" if mark.frame is None else ">" if mark.sent else "<"


def _arrow(x1: int, y1: float, x2: int, y2: float, mark: Mark) -> str:
    """An arrow with its label above it, near the sender, where arrows that cross it are still far apart."""
    step = 1 if x2 > x1 else -1
    dashes = "" if _is_request(mark) else f" {DASHED}"
    room = min(SMALL_LETTER * len(mark.text), LANE - 26)
    ahead = max(LANE * 0.4, room / 2 + 18) * step
    slope = (y2 - y1) / (x2 - x1)
    x, y = x1 + ahead, y1 + slope * ahead
    turn = degrees(atan2(slope, 1))
    ahead_to = degrees(atan2(y2 - y1, x2 - x1 - 14 * step))
    label = _text(x, y - 4, mark.text, _colour(mark), "middle", 11, room)
    return (
        f'<line class="arrow" x1="{x1 + 7 * step}" y1="{y1:g}" x2="{x2 - 7 * step}" y2="{y2:g}" '
        f'stroke="{_colour(mark)}" stroke-width="1.8"{dashes}/>'
        f'<path transform="translate({x2 - 7 * step} {y2:g}) rotate({ahead_to:.4g})" d="{TIP}" '
        f'fill="{_colour(mark)}"/>'
        f'<g transform="rotate({turn:.3g} {x:g} {y:g})">{label}</g>'
    )


def _text(
    x: float, y: float, text: str, colour: str, anchor: str = "start", size: int = 12, room: float = 1_000
) -> str:
    """Text of one colour, pressed together where it would not fit into its room."""
    pressed = f' textLength="{room:g}" lengthAdjust="spacingAndGlyphs"' if len(text) * SMALL_LETTER > room else ""
    return _halo(x, y, escape(text), colour, f' text-anchor="{anchor}" font-size="{size}"{pressed}')


def _halo(x: float, y: float, content: str, colour: str = INK, more: str = "") -> str:
    """Text that stays readable where it crosses a line."""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" stroke="#ffffff" stroke-width="3" stroke-linejoin="round" '
        f'paint-order="stroke"{more}>{content}</text>'
    )


def _legend() -> str:
    return (
        f'<g stroke-width="2"><line x1="12" y1="44" x2="38" y2="44" stroke="{REQUEST}"/>'
        f'<line x1="111" y1="44" x2="137" y2="44" stroke="{RESPONSE}" {DASHED}/></g>'
        f'<circle cx="215" cy="44" r="5" fill="{DOT}"/>'
        f'<rect x="278" y="37" width="{BAR}" height="14" rx="4" fill="{HOLD}"/>'
        f'<g fill="{INK}"><text x="45" y="48">request</text><text x="144" y="48">response</text>'
        '<text x="226" y="48">event</text><text x="295" y="48">a pull, held by the broker</text></g>'
    )


def _ms(us: int) -> str:
    return f"{us / 1_000:.3f}"
