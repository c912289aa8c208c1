"""Space-time diagrams: a stretch of history with the nodes as lanes and the frames between them as arrows.

Time runs downwards, one row per event, so that a chain of microseconds is as readable as a wait of seconds; the left
margin says when, and a gap in time is drawn as a gap. The picture is static SVG, so that it also shows on a page of the
repository.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape
from typing import Any, NamedTuple

from .errors import LearnerError
from .trace.history import History
from .trace.record import Record

SENT = {"RequestSent", "ResponseSent"}
RECEIVED = {"RequestReceived", "ResponseReceived"}
SHOWN_AS_DOTS = (
    "MessageStored",
    "CommitLogFlushed",
    "PullHeld",
    "PullWoken",
    "FlowControlled",
    "ConsumeStarted",
    "ConsumeFinished",
    "OffsetCommitted",
    "QueueAllocated",
    "QueueDropped",
    "BrokerRegistered",
    "BrokerUnregistered",
    "TopicCreated",
    "NodeStarted",
    "NodeCrashed",
    "PowerLost",
    "NodeFrozen",
    "NodeThawed",
    "LinkCut",
    "LinkHealed",
    "ConnectionBroken",
    "RequestTimedOut",
)
"""The kinds that are drawn on their lanes unless other `kinds` are asked for."""

REQUEST, RESPONSE, DOT, HOLD, INK, FAINT = "#0072B2", "#009E73", "#D55E00", "#E69F00", "#1a1a1a", "#8c8c8c"
ROW, LANE, LEFT, TOP = 24, 250, 96, 64
GAP_US = 10_000
MOST_ROWS = 120


class Mark(NamedTuple):
    """One row: an event on a lane; an arrow's rows share a `frame` key."""

    record: Record
    lane: str
    frame: tuple[int, int, str] | None
    text: str


class SpaceTimeDiagram:
    """A drawn stretch of history. `str(diagram)` is its text twin; `save(path)` writes the SVG."""

    def __init__(self, marks: list[Mark], lanes: list[str], left_out: int = 0) -> None:
        self.marks = marks
        self.lanes = lanes
        self.left_out = left_out

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
        most: int = MOST_ROWS,
    ) -> SpaceTimeDiagram:
        """The stretch from `start_ms` to `end_ms` of the world's time.

        `nodes` restricts the lanes, `kinds` the events drawn as dots, `requests` the frames to those of these request
        names (with their responses). More than `most` rows are left out, and the diagram says so.
        """
        if end_ms < start_ms:
            raise LearnerError(f"the stretch ends ({end_ms} ms) before it begins ({start_ms} ms)", "swap the two times")
        marks: list[Mark] = []
        wanted_opaques: set[tuple[int, int]] = set()
        for record in history.between(start_ms, end_ms):
            if nodes and record.node not in nodes:
                continue
            mark = _mark(record, kinds)
            if mark is not None and (not requests or _wanted(record, requests, wanted_opaques)):
                marks.append(mark)
        lanes = [node for node in _order_of_appearance(marks) if node != "world"]
        return cls(marks[:most], lanes, max(0, len(marks) - most))

    def __str__(self) -> str:
        width = max((len(lane) for lane in self.lanes), default=4)
        lines = [f"{_ms(m.record.ts_us):>12}  {m.lane:<{width}}  {_arrow_sign(m)} {m.text}" for m in self.marks]
        return "\n".join([*lines, *([self._note] if self._note else [])]) or "(nothing happened in this stretch)"

    __repr__ = __str__

    @property
    def _note(self) -> str:
        return (
            f"... and {self.left_out} more rows: ask for a shorter stretch, fewer nodes or kinds"
            if self.left_out
            else ""
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}

    def save(self, path: str) -> None:
        """Write the picture to an .svg file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())

    # -- drawing ----------------------------------------------------------------------------------------------------

    def _rows(self) -> list[float]:
        """The height of each mark; a gap in time leaves room for a word about it."""
        heights, y, before = [], TOP + ROW, None
        for mark in self.marks:
            if before is not None and mark.record.ts_us - before > GAP_US:
                y += ROW
            heights.append(y)
            y += ROW
            before = mark.record.ts_us
        return [float(h) for h in heights]

    def svg(self) -> str:
        """The picture as SVG text."""
        rows = self._rows()
        bottom = (rows[-1] if rows else TOP) + ROW
        width = LEFT + LANE * max(1, len(self.lanes))
        x_of = {lane: LEFT + LANE * n + 40 for n, lane in enumerate(self.lanes)}
        body = [
            *self._lane_lines(x_of, bottom),
            *self._hold_bars(x_of, rows, bottom),
            *self._arrows(x_of, rows),
            *self._dots(x_of, rows),
            *self._times(rows),
        ]
        if self._note:
            body.append(_label(LEFT, bottom + 14, self._note, FAINT))
        title = f"Space-time diagram, {self._span()}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 28:g}" width="{width}" '
            f'height="{bottom + 28:g}" font-family="system-ui,sans-serif" font-size="12" role="img" '
            f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" fill="context-stroke"/></marker></defs>'
            f'<rect width="100%" height="100%" fill="#ffffff"/>'
            f'<text x="12" y="20" font-size="14" font-weight="600" fill="{INK}">{escape(title)}</text>'
            f"{_legend()}{''.join(body)}</svg>"
        )

    def _span(self) -> str:
        if not self.marks:
            return "empty stretch"
        return f"{_ms(self.marks[0].record.ts_us)} to {_ms(self.marks[-1].record.ts_us)} of the world's time"

    def _lane_lines(self, x_of: dict[str, int], bottom: float) -> Iterable[str]:
        for lane, x in x_of.items():
            yield (
                f'<text x="{x}" y="{TOP - 8}" text-anchor="middle" font-weight="600" fill="{INK}">{escape(lane)}</text>'
                f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom:g}" stroke="{FAINT}" stroke-width="1.5"/>'
            )

    def _hold_bars(self, x_of: dict[str, int], rows: list[float], bottom: float) -> Iterable[str]:
        began: dict[tuple[Any, ...], float] = {}
        for mark, y in zip(self.marks, rows, strict=True):
            kind = mark.record.kind
            if kind not in ("PullHeld", "PullWoken") or mark.lane not in x_of:
                continue
            key = (mark.lane, mark.record.topic, mark.record.queue_id, mark.record.group, mark.record.opaque)
            if kind == "PullHeld":
                began[key] = y
            else:
                yield _bar(x_of[mark.lane], began.pop(key, TOP), y)
        for key, y in began.items():
            yield _bar(x_of[key[0]], y, bottom)

    def _arrows(self, x_of: dict[str, int], rows: list[float]) -> Iterable[str]:
        sent: dict[tuple[int, int, str], tuple[float, Mark]] = {}
        for mark, y in zip(self.marks, rows, strict=True):
            if mark.frame is None or mark.lane not in x_of:
                continue
            if mark.record.kind in SENT:
                sent[mark.frame] = (y, mark)
                continue
            begin = sent.pop(mark.frame, None)
            if begin is not None:
                yield _arrow(x_of[begin[1].lane], begin[0], x_of[mark.lane], y, begin[1])
        for y, mark in sent.values():
            x = x_of[mark.lane]
            yield (
                f'<line x1="{x}" y1="{y:g}" x2="{x + 60}" y2="{y + 8:g}" stroke="{_colour(mark)}" stroke-width="1.5" '
                f'stroke-dasharray="4 3"/>{_label(x + 66, y + 12, f"{mark.text} (under way)", _colour(mark))}'
            )

    def _dots(self, x_of: dict[str, int], rows: list[float]) -> Iterable[str]:
        for mark, y in zip(self.marks, rows, strict=True):
            if mark.frame is None and mark.lane in x_of:
                x = x_of[mark.lane]
                yield (
                    f'<circle cx="{x}" cy="{y:g}" r="4.5" fill="{DOT}">'
                    f"<title>{escape(str(mark.record))}</title></circle>"
                    f"{_label(x + 10, y + 4, mark.text, INK)}"
                )
            elif mark.lane == "world":
                yield (
                    f'<line x1="{LEFT}" y1="{y:g}" x2="100%" y2="{y:g}" stroke="{DOT}" stroke-dasharray="2 3"/>'
                    f"{_label(LEFT, y - 4, mark.text, DOT)}"
                )

    def _times(self, rows: list[float]) -> Iterable[str]:
        before = None
        for mark, y in zip(self.marks, rows, strict=True):
            at = mark.record.ts_us
            if before is not None and at - before > GAP_US:
                yield _label(12, y - ROW + 4, f"+ {_ms(at - before)}", DOT)
            if at != before:
                yield f'<text x="{LEFT - 12}" y="{y + 4:g}" text-anchor="end" fill="{FAINT}">{_ms(at)}</text>'
            before = at


def _mark(record: Record, kinds: Collection[str]) -> Mark | None:
    kind = record.kind
    if kind in SENT:
        return Mark(record, record.node, (record.connection, record.frame, record.local), _frame_text(record))
    if kind in RECEIVED:
        return Mark(record, record.node, (record.connection, record.frame, record.remote), _frame_text(record))
    if kind in kinds:
        return Mark(record, record.node, None, _dot_text(record))
    return None


def _wanted(record: Record, requests: Collection[str], opaques: set[tuple[int, int]]) -> bool:
    if record.kind not in SENT | RECEIVED:
        return True
    key = (record.connection, record.opaque)
    if record.kind.startswith("Request"):
        if record.request_name in requests:
            opaques.add(key)
            return True
        return False
    return key in opaques


def _frame_text(record: Record) -> str:
    name: str = record.request_name if record.kind.startswith("Request") else f"{record.response_name}"
    size = f" ({record.body_bytes} B)" if record.body_bytes else ""
    return f"{name}{size}"


def _dot_text(record: Record) -> str:
    fields = record.fields
    parts = []
    for name in ("topic", "queue_id", "queue_offset", "reason", "status", "target", "broker_name"):
        value = fields.get(name)
        if value is not None and value != "":
            parts.append(f"{'q' if name == 'queue_id' else '@' if name == 'queue_offset' else ''}{value}")
    return f"{record.kind} {' '.join(parts)}".strip()


def _order_of_appearance(marks: list[Mark]) -> list[str]:
    """Lanes from left to right: clients, brokers, name servers; within a kind as they appear."""
    names = list(dict.fromkeys(mark.lane for mark in marks))
    return sorted(names, key=lambda name: 2 if name.startswith("namesrv") else 1 if name.startswith("broker") else 0)


def _colour(mark: Mark) -> str:
    return REQUEST if mark.record.kind.startswith("Request") else RESPONSE


def _arrow_sign(mark: Mark) -> str:
    return "|" if mark.frame is None else ">" if mark.record.kind in SENT else "<"


def _arrow(x1: int, y1: float, x2: int, y2: float, mark: Mark) -> str:
    colour = _colour(mark)
    dash = "" if mark.record.kind.startswith("Request") else ' stroke-dasharray="7 3"'
    shift = 6 if x2 > x1 else -6
    middle = (x1 + x2) / 2
    return (
        f'<line x1="{x1 + shift}" y1="{y1:g}" x2="{x2 - shift}" y2="{y2:g}" stroke="{colour}" stroke-width="1.8"{dash} '
        f'marker-end="url(#tip)"/>{_label(middle, (y1 + y2) / 2 - 3, mark.text, colour, anchor="middle")}'
    )


def _bar(x: int, y1: float, y2: float) -> str:
    return (
        f'<rect x="{x - 7}" y="{y1:g}" width="14" height="{max(6.0, y2 - y1):g}" fill="{HOLD}" '
        'fill-opacity="0.45" rx="4">'
        "<title>a held pull</title></rect>"
    )


def _label(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" stroke="#ffffff" stroke-width="3" '
        f'paint-order="stroke">{escape(text)}</text>'
    )


def _legend() -> str:
    entries = (
        (REQUEST, "request", ' stroke-width="2"'),
        (RESPONSE, "response", ' stroke-width="2" stroke-dasharray="7 3"'),
        (HOLD, "held pull", ' stroke-width="10" stroke-opacity="0.45"'),
    )
    parts, x = [], 12
    for colour, word, extra in entries:
        parts.append(
            f'<line x1="{x}" y1="36" x2="{x + 26}" y2="36" stroke="{colour}"{extra}/>'
            f'<text x="{x + 32}" y="40" fill="{INK}">{word}</text>'
        )
        x += 110
    parts.append(
        f'<circle cx="{x + 6}" cy="36" r="4.5" fill="{DOT}"/><text x="{x + 16}" y="40" fill="{INK}">event</text>'
    )
    return "".join(parts)


def _ms(us: int) -> str:
    return f"{us / 1_000_000:.3f} s" if us >= 10_000_000 else f"{us / 1_000:.3f} ms"
