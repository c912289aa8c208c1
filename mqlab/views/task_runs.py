"""Task runs: when the pull task of each queue ran, what it brought, and when it ended for good."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.record import Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import INK, Drawing, box, legend, picture, text
from mqlab.views.time_axis import TimeAxis

FOUND, NOTHING, FAILED, UNDER_WAY = PALETTE[0], PALETTE[1], PALETTE[5], "#d9d9d9"
_COLOURS = {"brought messages": FOUND, "found nothing": NOTHING, "failed": FAILED, "still runs": UNDER_WAY}
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER = 172, 684, 76, 30, 18, 6.4

Lane = tuple[str, str, int]
"""(machine, broker, queue id)."""


class TaskRun(NamedTuple):
    """One run of a task: from when to when, and how it came out."""

    begin_us: int
    end_us: int
    outcome: str
    messages: int


class TaskRuns(Drawing):
    """One row for each machine and queue, a bar for each run of the pull task, a cross where the task ended for good.

    `str(runs)` says the same as text; times are counted from `zero_ms`.
    """

    def __init__(
        self, runs: dict[Lane, list[TaskRun]], ends: dict[Lane, list[int]], axis: TimeAxis, title: str
    ) -> None:
        self.runs = runs
        self.ends = ends
        self.title = title
        self._axis = axis

    @classmethod
    def of(
        cls,
        history: Iterable[Record],
        *,
        start_ms: float,
        end_ms: float,
        zero_ms: float | None = None,
        title: str = "Pull tasks",
    ) -> TaskRuns:
        """The runs from `start_ms` to `end_ms` of the world's time. LearnerError if there are none."""
        axis = TimeAxis.between(start_ms, end_ms, _LEFT, _WIDTH, zero_ms=zero_ms)
        begin_us, end_us = axis.begin_us, axis.end_us
        reading = _Reading(end_us)
        for record in history:
            if record.ts_us <= end_us:
                reading.note(record)
        reading.close()
        runs = {lane: [run for run in found if run.end_us >= begin_us] for lane, found in sorted(reading.runs.items())}
        ends = {lane: [at for at in found if begin_us <= at <= end_us] for lane, found in reading.ends.items()}
        runs = {lane: found for lane, found in runs.items() if found or ends.get(lane)}
        if not runs:
            raise LearnerError("no pull task ran then", "give a stretch in which a schedule service was at work")
        return cls(runs, ends, axis, title)

    def __str__(self) -> str:
        lines = [self.title]
        for lane, runs in self.runs.items():
            for run in runs:
                brought = f" ({run.messages})" if run.messages else ""
                begin, end = self._axis.told(run.begin_us), self._axis.told(run.end_us)
                lines.append(f"  {_told(lane):<22} {begin:>10} to {end:>10}  {run.outcome}{brought}")
            lines += [
                f"  {_told(lane):<22} {self._axis.told(at):>10}{'':<14}  ended for good"
                for at in self.ends.get(lane, [])
            ]
        return "\n".join(lines)

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        bottom = _TOP + len(self.runs) * _ROW
        body = self._legend() + self._axis.drawn(_TOP - 6, bottom)
        for number, (lane, runs) in enumerate(self.runs.items()):
            y = _TOP + number * _ROW
            body.append(text(12, y + 13, _told(lane), bold=True))
            for run in runs:
                x = self._axis.x(run.begin_us)
                width = max(2.5, self._axis.x(run.end_us) - x)
                tip = f"{run.outcome}, {self._axis.told(run.begin_us)} to {self._axis.told(run.end_us)}"
                body.append(box(x, y, width, _BAR, _COLOURS[run.outcome], tip=tip))
                if run.messages and width > 20:
                    body.append(text(x + width / 2, y + 13, str(run.messages), colour="#ffffff", anchor="middle"))
            body += [
                text(self._axis.x(at) + 8, y + 14, "\u00d7", colour=INK, anchor="middle", bold=True)
                for at in self.ends.get(lane, [])
            ]
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)

    def _legend(self) -> list[str]:
        present = {run.outcome for runs in self.runs.values() for run in runs}
        body, x = legend([(colour, words) for words, colour in _COLOURS.items() if words in present], 40, _LETTER)
        if any(self.ends.values()):
            body.append(text(x, 52, "\u00d7 ended for good"))
        return body


class _Reading:
    """What the events say of tasks, run by run."""

    def __init__(self, end_us: int) -> None:
        self.runs: dict[Lane, list[TaskRun]] = {}
        self.ends: dict[Lane, list[int]] = {}
        self._end_us = end_us
        self._open: dict[Lane, list[int]] = {}
        self._found: dict[Lane, int] = {}

    def note(self, record: Record) -> None:
        """Take one event in."""
        kind = record.kind
        if kind not in _HANDLED:
            return
        lane = (record.node, record.broker_name, record.queue_id)
        if kind == "PullTaskStarted":
            self._open.setdefault(lane, []).append(record.ts_us)
            self.runs.setdefault(lane, [])
        elif kind == "PullFinished":
            self._found[lane] = self._found.get(lane, 0) + record.messages
        elif kind == "PullTaskEnded":
            self.ends.setdefault(lane, []).append(record.ts_us)
        else:
            self._ended(lane, record)

    def _ended(self, lane: Lane, record: Record) -> None:
        begin_us = record.ts_us - record.cost_us
        self._open[lane].remove(begin_us)
        messages = self._found.pop(lane, 0)
        outcome = "failed" if record.kind == "PullTaskFailed" else "brought messages" if messages else "found nothing"
        self.runs[lane].append(TaskRun(begin_us, record.ts_us, outcome, messages))

    def close(self) -> None:
        """What has not ended yet runs to the edge of the picture."""
        for lane, begun in self._open.items():
            self.runs[lane] += [TaskRun(begin_us, self._end_us, "still runs", 0) for begin_us in begun]


_HANDLED = ("PullTaskStarted", "PullTaskFinished", "PullTaskFailed", "PullTaskEnded", "PullFinished")


def _told(lane: Lane) -> str:
    node, _, queue_id = lane
    return f"{node}, queue {queue_id}"
