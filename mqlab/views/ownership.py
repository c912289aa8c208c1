"""Ownership: which consumer holds which queue, over time, and where two hold it at once or nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.record import Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.owners import Owners, Queue, Read, queue_of, read_of
from mqlab.views.stretches import states_between
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, circle, line, picture, text
from mqlab.views.time_axis import TimeAxis

_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER = 84, 700, 92, 26, 18, 6.6
_NOBODY = "nobody"
_HATCHED = "hatched-owners"
_MARKS = {
    "ClientStarted": "starts",
    "ClientStopped": "leaves",
    "NodeCrashed": "is killed",
    "PowerLost": "is killed",
    "NodeFrozen": "hangs",
    "NodeThawed": "goes on",
}
_MOVES = ("QueueAllocated", "QueueDropped", "ClientStopped", "NodeCrashed", "PowerLost")
"""What makes somebody an owner, or no owner any more."""


class Stretch(NamedTuple):
    """From `begin_us` to `end_us` a queue had these owners: one, none, or more than one."""

    begin_us: int
    end_us: int
    owners: tuple[str, ...]


class Mark(NamedTuple):
    """Something that happened to a member of the group."""

    at_us: int
    who: str
    what: str


class Ownership(Drawing):
    """One row for each queue, coloured by its owner; hatched where several hold it at once, or nobody does.

    Who owns is what the consumers themselves believe (`Owners`). Circles are pulls. `str(ownership)` says the same as
    text.
    """

    def __init__(
        self,
        rows: dict[Queue, list[Stretch]],
        pulls: dict[Queue, list[int]],
        marks: Sequence[Mark],
        axis: TimeAxis,
        title: str,
    ) -> None:
        self.rows = rows
        self.pulls = pulls
        self.marks = list(marks)
        self.title = title
        self._axis = axis
        owners = sorted({owner for stretches in rows.values() for stretch in stretches for owner in stretch.owners})
        self._colours = {owner: PALETTE[number % len(PALETTE)] for number, owner in enumerate(owners)}

    @classmethod
    def of(
        cls,
        history: Iterable[Record],
        topic: str,
        *,
        start_ms: float,
        end_ms: float,
        zero_ms: float | None = None,
        pulls: bool = False,
        group: str = "",
        title: str = "",
    ) -> Ownership:
        """Who owned the queues of `topic` from `start_ms` to `end_ms`; of one `group` only, where there are several.

        Times are told from `zero_ms` (else from `start_ms`). LearnerError when nobody ever owned one.
        """
        axis = TimeAxis.between(start_ms, end_ms, _LEFT, _WIDTH, zero_ms=zero_ms)
        begin_us, end_us = axis.begin_us, axis.end_us
        reading = _Reading(topic, group)
        for record in reading.follow(history):
            if record.ts_us > end_us:
                break
            reading.note(record)
        if not reading.changes:
            raise LearnerError(f"nobody has owned a queue of {topic!r} until then", "start a consumer, and let it run")
        rows = {
            queue: [Stretch(*found) for found in states_between([(begin_us, ()), *changes], begin_us, end_us)]
            for queue, changes in sorted(reading.changes.items())
        }
        asked = {queue: [at for at in found if at >= begin_us] for queue, found in reading.pulls.items() if pulls}
        marks = [mark for mark in reading.marks if mark.at_us >= begin_us]
        return cls(rows, asked, marks, axis, title or f"Who owns which queue of {topic}")

    def shared_ms(self) -> float:
        """For how long, at most, one queue had several owners at once, in ms."""
        return self._longest(lambda stretch: len(stretch.owners) > 1)

    def orphaned_ms(self) -> float:
        """For how long, at most, one queue had no owner, in ms."""
        return self._longest(lambda stretch: not stretch.owners)

    def _longest(self, counts: Callable[[Stretch], bool]) -> float:
        us = [s.end_us - s.begin_us for stretches in self.rows.values() for s in stretches if counts(s)]
        return max(us, default=0) / 1_000

    def __str__(self) -> str:
        lines = [self.title]
        lines += [f"  {self._axis.told(mark.at_us):>10}  {mark.who} {mark.what}" for mark in self.marks]
        for (broker, queue_id), stretches in self.rows.items():
            told = [
                f"{_owners_told(stretch)} {self._axis.told(stretch.begin_us)} to {self._axis.told(stretch.end_us)}"
                for stretch in stretches
            ]
            lines.append(f"  {broker}, queue {queue_id}: {'; '.join(told)}")
        return "\n".join(lines)

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        levels = self._levels()
        top = _TOP + 14 * max([level for _, level in levels], default=0)
        bottom = top + len(self.rows) * _ROW
        body = self._patterns() + self._legend() + self._axis.drawn(top - 6, bottom)
        body += self._marks(levels, top, bottom)
        for number, (queue, stretches) in enumerate(self.rows.items()):
            y = top + number * _ROW
            body.append(text(12, y + 13, self._row_name(queue)))
            body += [part for stretch in stretches for part in self._bar(stretch, y)]
            body += [self._pull(at_us, y) for at_us in self.pulls.get(queue, [])]
        # A pattern in a hidden picture fills nothing in another one, so their names are this picture's own.
        digest = blake2b("".join(body).encode(), digest_size=4).hexdigest()
        body = [part.replace(_HATCHED, f"{_HATCHED}-{digest}") for part in body]
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)

    def _row_name(self, queue: Queue) -> str:
        broker, queue_id = queue
        several = len({name for name, _ in self.rows}) > 1
        return f"{broker[-4:]} {queue_id}" if several else f"queue {queue_id}"

    def _bar(self, stretch: Stretch, y: float) -> list[str]:
        x = self._axis.x(stretch.begin_us)
        tip = f"{_owners_told(stretch)}, {self._axis.told(stretch.begin_us)} to {self._axis.told(stretch.end_us)}"
        width = self._axis.x(stretch.end_us) - x
        stroke = FAINT if len(stretch.owners) != 1 and width > 1 else "none"
        bar = box(x, y, width, _BAR, self._fill(stretch.owners), tip=tip, stroke=stroke)
        owner = stretch.owners[0] if len(stretch.owners) == 1 else ""
        if not owner or width < len(owner) * _LETTER + 16:
            return [bar]
        colour = "#ffffff" if self._colours[owner] == PALETTE[0] else INK
        return [bar, text(x + 5, y + 13, owner, colour=colour, bold=True)]

    def _pull(self, at_us: int, y: float) -> str:
        return circle(self._axis.x(at_us), y + _BAR / 2, 3, PAPER, stroke=INK)

    def _fill(self, owners: tuple[str, ...]) -> str:
        return (
            self._colours[owners[0]]
            if len(owners) == 1
            else f"url(#{_pattern_name([self._colours[o] for o in owners])})"
        )

    def _patterns(self) -> list[str]:
        kinds = {s.owners for stretches in self.rows.values() for s in stretches if len(s.owners) != 1}
        patterns = [_pattern([self._colours[owner] for owner in owners]) for owners in sorted(kinds)]
        return [f"<defs>{''.join(patterns)}</defs>"] if patterns else []

    def _legend(self) -> list[str]:
        body: list[str] = []
        x = 12.0
        kinds = {s.owners for stretches in self.rows.values() for s in stretches}
        samples: list[tuple[tuple[str, ...], str]] = [
            ((owner,), owner) for owner in self._colours if any(owner in owners for owners in kinds)
        ]
        samples += [(owners, f"{' and '.join(owners)} at once") for owners in sorted(kinds) if len(owners) > 1]
        samples += [(owners, _NOBODY) for owners in kinds if not owners]
        for owners, words in samples:
            stroke = FAINT if len(owners) != 1 else "none"
            body += [box(x, 36, 16, 14, self._fill(owners), stroke=stroke), text(x + 22, 48, words)]
            x += 40 + len(words) * _LETTER
        if self.pulls:
            body += [circle(x + 6, 43, 3, PAPER, stroke=INK), text(x + 16, 48, "a pull")]
        return body

    def _levels(self) -> list[tuple[Mark, int]]:
        """Each mark with the line of text on which its words have room."""
        ends: list[float] = []
        levels: list[tuple[Mark, int]] = []
        for mark in self.marks:
            begin, words = self._words_at(mark)
            level = next((n for n, end in enumerate(ends) if end <= begin), len(ends))
            ends[level:] = [begin + len(words) * _LETTER + 8, *ends[level + 1 :]]
            levels.append((mark, level))
        return levels

    def _words_at(self, mark: Mark) -> tuple[float, str]:
        words = f"{mark.who} {mark.what}"
        return min(self._axis.x(mark.at_us), _LEFT + _WIDTH - len(words) * _LETTER), words

    def _marks(self, levels: list[tuple[Mark, int]], top: float, bottom: float) -> list[str]:
        body: list[str] = []
        for mark, level in levels:
            x, (begin, words) = self._axis.x(mark.at_us), self._words_at(mark)
            y = top - 14 - 14 * level
            body += [line(x, y + 3, x, bottom, INK, width=1, dash="3 3"), text(begin, y, words, bold=True)]
        return body


class _Reading(Owners):
    """What the events say of the queues of one topic."""

    def __init__(self, topic: str, group: str) -> None:
        super().__init__()
        self.changes: dict[Queue, list[tuple[int, tuple[str, ...]]]] = {}
        self.pulls: dict[Queue, list[int]] = {}
        self.marks: list[Mark] = []
        self._topic = topic
        self._group = group
        self._members: set[str] = set()

    def note(self, record: Record) -> None:
        """Note what has come of an event that was taken."""
        kind = record.kind
        if kind == "PullRequested":
            if self._is_mine(read_of(record)):
                self.pulls.setdefault(queue_of(record), []).append(record.ts_us)
        elif kind in ("ClientStarted", "ClientStopped"):
            if record.role == "consumer" and self._group in ("", record.group):
                self._members.add(record.node)
                self.marks.append(Mark(record.ts_us, record.node, _MARKS[kind]))
        elif kind in _MARKS and record.target in self._members:
            self.marks.append(Mark(record.ts_us, record.target, _MARKS[kind]))
        if kind in _MOVES:
            self._compare(record.ts_us)

    def _is_mine(self, read: Read) -> bool:
        return read[1] == self._topic and self._group in ("", read[0])

    def _compare(self, at_us: int) -> None:
        """Note which queues have other owners than before."""
        now: dict[Queue, set[str]] = {}
        for read in filter(self._is_mine, self.known):
            for queue, names in self.of(read).items():
                now.setdefault(queue, set()).update(names)
        for queue, who in now.items():
            found, owners = self.changes.setdefault(queue, []), tuple(sorted(who))
            if owners != (found[-1][1] if found else ()):
                found.append((at_us, owners))


def _owners_told(stretch: Stretch) -> str:
    return " and ".join(stretch.owners) or _NOBODY


def _pattern_name(colours: Sequence[str]) -> str:
    return "-".join([_HATCHED, *(colour.removeprefix("#") for colour in colours)])


def _pattern(colours: Sequence[str]) -> str:
    """Slanted stripes: of the colours of all owners, or thin grey ones on white for nobody."""
    stripes = [(colour, 6.0) for colour in colours] or [("#ffffff", 5.0), ("#9a9a9a", 1.5)]
    width = sum(size for _, size in stripes)
    drawn, x = [], 0.0
    for colour, size in stripes:
        drawn.append(f'<rect x="{x:g}" y="0" width="{size:g}" height="{width:g}" fill="{colour}"/>')
        x += size
    return (
        f'<pattern id="{_pattern_name(colours)}" width="{width:g}" height="{width:g}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)">{"".join(drawn)}</pattern>'
    )
