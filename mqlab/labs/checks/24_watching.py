"""Judges for lab 24: watermarks, what is too late, the smallest delay, and the state of a stream over real worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple, Protocol

from mqlab import Lab, scenarios
from mqlab.check import Wrong, lab_check
from mqlab.trace.history import History
from mqlab.views.journey import CONSUMED

Times = list[list[int]]
"""The times (ms) of the events of each micro-batch, in the order in which they came."""

SCENARIO, GROUP = "every-delivery", "packers"
SEGMENT_MS = 500
LINES_SHOWN = 14


# -- watermarks -------------------------------------------------------------------------------------------------------


def _batches(draw: Random) -> tuple[Times, int]:
    """Micro-batches of some seconds each, with events that come late, and a delay; some are late by just so much."""
    late_ms = draw.choice([0, 500, 2_000, 5_000])
    batches: Times = []
    for number in range(draw.randint(2, 8)):
        began = number * 1_000
        fresh = [began + draw.randrange(1_000) for _ in range(draw.randint(0, 3))]
        old = [draw.randrange(began + 1) for _ in range(draw.randint(0, 2))]
        newest = max((time for batch in batches for time in batch), default=-1)
        exact = [newest - late_ms] if draw.random() < 0.3 else []
        times = [time for time in [*fresh, *old, *exact] if time >= 0] or [began]
        batches.append(draw.sample(times, len(times)))
    return batches, late_ms


def _watermarks(batches: Times, late_ms: int) -> list[int]:
    seen = [0]
    for batch in batches[:-1]:
        seen.append(max([seen[-1], *batch]))
    return [max(0, newest - late_ms) for newest in seen]


def _story(batches: Times) -> str:
    return "\n".join(f"batch {number}: {', '.join(map(str, batch))} ms" for number, batch in enumerate(batches))


@lab_check("24/watermarks", points=1)
def watermarks(answer: Callable[[Times, int], list[int]], *, seed: int) -> Wrong | None:
    """Two to eight micro-batches, with events that are late, and delays from 0 to 5 s."""
    batches, late_ms = _batches(Random(f"24/watermarks/{seed}"))
    want = _watermarks(batches, late_ms)
    got = answer([list(batch) for batch in batches], late_ms)
    if got == want:
        return None
    return Wrong(f"with late_ms={late_ms} the watermarks are {want}, and yours says {got!r}", trace=_story(batches))


def _dropped(batches: Times, late_ms: int) -> list[int]:
    marks = _watermarks(batches, late_ms)
    return [time for n, batch in enumerate(batches) if n for time in batch if marks[n - 1] and time <= marks[n - 1]]


@lab_check("24/dropped", points=1)
def dropped(answer: Callable[[Times, int], list[int]], *, seed: int) -> Wrong | None:
    """The same kind of micro-batches; some events are late by exactly the delay."""
    draw = Random(f"24/dropped/{seed}")
    for _ in range(3):
        batches, late_ms = _batches(draw)
        want = _dropped(batches, late_ms)
        got = answer([list(batch) for batch in batches], late_ms)
        if got != want:
            story = f"{_story(batches)}\nwatermarks: {_watermarks(batches, late_ms)}"
            told = f"with late_ms={late_ms} the events at {want} ms are dropped, and yours says {got!r}"
            return Wrong(told, trace=story)
    return None


@lab_check("24/smallest-delay", points=1)
def smallest_delay(answer: Callable[[Times], int], *, seed: int) -> Wrong | None:
    """The smallest delay with which nothing is dropped, for the same kind of micro-batches."""
    batches, _ = _batches(Random(f"24/smallest-delay/{seed}"))
    want = next(late_ms for late_ms in range(20_000) if not _dropped(batches, late_ms))
    got = answer([list(batch) for batch in batches])
    if got == want:
        return None
    return Wrong(f"with a delay of {want} ms nothing is dropped, and with less something is; yours says {got!r}",
                 trace=_story(batches))  # fmt: skip


# -- the state of a stream --------------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """What an event says of a message: "sent" or "consumed"."""

    ts_ms: int
    what: str
    msg_id: str


class Batch(NamedTuple):
    """What a stream is handed: the marks that are not too late, and the watermark."""

    marks: list[Mark]
    watermark_ms: int


class Stream(Protocol):
    """What the student writes."""

    kept: Any

    def batch(self, marks: list[tuple[int, str, str]], watermark_ms: int) -> Any: ...


Answer = Callable[[], Stream]
Rows = list[tuple[str, int, int]]


@lab_check("24/lives", points=3)
def lives(answer: Answer, *, seed: int) -> Wrong | None:
    """Fifty worlds: a machine's log comes late, messages come twice; each life once, and nothing kept too long.

    A new object answers each micro-batch and is given what the last one has kept, as Spark does with a state.
    """
    story: list[str] = []
    stream: Stream | None = None
    for number, (batch, want, needed) in enumerate(_wanted(_stream_of(seed))):
        before, stream = stream, answer()
        if before is not None:
            stream.kept = before.kept
        story += [f"batch {number}, watermark {batch.watermark_ms} ms", *_told(batch.marks)]
        got = stream.batch([(mark.ts_ms, mark.what, mark.msg_id) for mark in batch.marks], batch.watermark_ms)
        wrong = _compare(number, got, want, needed, stream)
        if wrong is not None:
            return Wrong(wrong, trace="\n".join(story[-LINES_SHOWN:]), world=partial(_world, seed))
    return None


def _world(seed: int) -> Lab:
    return scenarios.get(SCENARIO).play(seed)


def _told(marks: list[Mark]) -> list[str]:
    return [f"  {mark.ts_ms:>6} ms  {mark.what:<8}  {mark.msg_id}" for mark in marks]


def _compare(number: int, got: Any, want: Rows, needed: set[str], stream: Stream) -> str | None:
    if not isinstance(got, list) or not all(isinstance(row, tuple) and len(row) == 3 for row in got):
        return f"batch() gives a list of (msg_id, sent_ms, consumed_ms), and yours gives {got!r}"
    missing = [row for row in want if row not in got]
    if missing:
        return f"batch {number} has to put out {missing[0]}, and yours does not"
    surplus = [row for row in got if row not in want or got.count(row) > 1]
    if surplus:
        return f"batch {number}: yours puts out {surplus[0]}, which is no life that ended now"
    try:
        kept = len(stream.kept)
    except (AttributeError, TypeError):
        return "your class needs a dict `kept`, with what it remembers of each message"
    if kept > len(needed):
        return f"after batch {number} your state holds {kept} messages, and {len(needed)} are enough"
    return None


def _wanted(batches: list[Batch]) -> Iterator[tuple[Batch, Rows, set[str]]]:
    """For each micro-batch what is put out in it, and of whom something has to be known after it."""
    sent: dict[str, int] = {}
    consumed: dict[str, int] = {}
    ended: set[str] = set()
    for batch in batches:
        for mark in batch.marks:
            times = sent if mark.what == "sent" else consumed
            times[mark.msg_id] = min(mark.ts_ms, times.get(mark.msg_id, mark.ts_ms))
        now = [name for name in sent if name not in ended and consumed.get(name, 1 << 62) <= batch.watermark_ms]
        rows = [(name, sent[name], consumed[name]) for name in now]
        ended.update(now)
        orphans = {name for name, at in consumed.items() if name not in sent and at <= batch.watermark_ms}
        yield batch, rows, (sent.keys() | consumed.keys()) - ended - orphans


@cache
def _stream_of(seed: int) -> list[Batch]:
    """The marks of a world in the order in which they come, without those that are too late for the stream's delay."""
    draw = Random(f"24/lives/{seed}")
    history = _world(seed).history
    hung = draw.choice(sorted({event.node for event in history.find(("SendAttempted", "ConsumeFinished"))}))
    begin_ms = draw.randrange(4_000)
    end_ms = begin_ms + draw.randrange(1_000, 6_000)
    late_ms = draw.choice([300, 1_500, 8_000])

    def comes_in(ts_ms: int, machine: str) -> int:
        late = machine == hung and begin_ms <= ts_ms < end_ms
        return (end_ms if late else ts_ms) // SEGMENT_MS

    times: dict[int, list[int]] = {}
    for _, _, ts_us, machine, *_ in history.rows():
        times.setdefault(comes_in(ts_us // 1_000, machine), []).append(ts_us // 1_000)
    marks: dict[int, list[Mark]] = {}
    for machine, mark in _marks(history):
        marks.setdefault(comes_in(mark.ts_ms, machine), []).append(mark)
    stretches = sorted(times)
    # The trace ends: nothing can come any more.
    watermarks = [*_watermarks([times[stretch] for stretch in stretches], late_ms), 1 << 40]
    before = [0, *watermarks]
    return [
        Batch([mark for mark in marks.get(stretch, []) if not before[n] or mark.ts_ms > before[n]], watermarks[n])
        for n, stretch in enumerate([*stretches, -1])
    ]


def _marks(history: History) -> Iterator[tuple[str, Mark]]:
    for event in history.find(("SendAttempted", "ConsumeFinished")):
        if event.kind == "SendAttempted":
            yield event.node, Mark(event.ts_us // 1_000, "sent", event.msg_id)
        elif event.group == GROUP and event.status in CONSUMED:
            yield event.node, Mark(event.ts_us // 1_000, "consumed", event.msg_id)
