"""The journey of a message: through which topics its copies go while a group fails to consume it, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, dlq_topic, retry_topic
from mqlab.trace.record import Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, circle, legend, line, picture, text
from mqlab.views.table import Table
from mqlab.views.time_axis import LogTimeAxis, TimeAxis

WAITS, GOOD, BAD, DOWN = PALETTE[1], PALETTE[0], PALETTE[5], "#e4e4e4"
_TOP, _ROW, _WIDTH, _RIGHT, _DOT = 84, 46, 620, 24, 8
_LETTER, _BOLD_LETTER = 6.6, 7.6
_STILL = "still runs"
_STORED = ("MessageStored", "MessageParked", "TimerMessageAccepted", "SendBackStored")
_TIMED = -1
"""In place of a delay level: the copy waits for a time of its own, on the timer wheel."""
_HEARD = ("ConsumeStarted", "ConsumeFinished")
CONSUMED = ("CONSUME_SUCCESS", "SUCCESS", "COMMIT")


class Copy(NamedTuple):
    """One record of the message in a commit log; `level` is its delay level while it is parked, -1 on the timer wheel,
    else 0.

    `reconsume_times` is what the broker wrote into it, `node` where the commit log is.
    """

    at_us: int
    node: str
    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    size: int
    level: int
    reconsume_times: int


class Attempt(NamedTuple):
    """One call of the listener: from when to when, and how it ended. `topic` is where the message was taken from."""

    begin_us: int
    end_us: int
    node: str
    topic: str
    reconsume_times: int
    status: str

    @property
    def consumed(self) -> bool:
        """Whether the listener was content."""
        return self.status in CONSUMED


def _wait_of(copy: Copy) -> str:
    return "the timer wheel" if copy.level == _TIMED else f"level {copy.level}"


class Journey(Drawing):
    """One message and one group: a lane for each topic, a bar for each wait, a numbered dot for each attempt.

    Time goes from the first record to the right, in even steps or (`scale="log"`) each factor of ten equally wide.
    `str(journey)` tells the same as text, `attempts` and `copies` hold the numbers; times are counted from the first
    record.
    """

    def __init__(
        self,
        key: str,
        group: str,
        copies: list[Copy],
        attempts: list[Attempt],
        downs: list[tuple[int, int, str]],
        end_us: int,
        *,
        origin: str,
        scale: str,
    ) -> None:
        self.key = key
        self.group = group
        self.copies = copies
        self.attempts = attempts
        self.downs = downs
        zero_us = copies[0].at_us
        order = [origin, retry_topic(group), RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, dlq_topic(group)]
        used = {copy.topic for copy in copies}
        self.topics = [topic for topic in order if topic in used]
        self._left = 34 + _BOLD_LETTER * max(len(topic) for topic in self.topics)
        self._axis = (
            LogTimeAxis(zero_us, end_us, self._left, _WIDTH)
            if scale == "log"
            else TimeAxis(zero_us, end_us, zero_us, self._left, _WIDTH)
        )

    @classmethod
    def of(
        cls, history: Iterable[Record], msg_id: str, group: str, *, end_ms: float | None = None, scale: str = "even"
    ) -> Journey:
        """The journey of the message that `send` gave `msg_id`, as far as it concerns `group`."""
        if scale not in ("even", "log"):
            raise LearnerError(f"scale={scale!r} is unknown", 'use scale="even" or scale="log"')
        reading = _Reading(msg_id, group)
        end_us = None if end_ms is None else round(end_ms * 1_000)
        for record in history:
            if end_us is not None and record.ts_us > end_us:
                break
            reading.note(record)
        if not reading.copies:
            raise LearnerError(f"no broker has stored a message {msg_id!r}", "give the msg_id of what send returned")
        if end_us is None:
            end_us = reading.last_us + (reading.last_us - reading.copies[0].at_us) // 20
        reading.close(end_us)
        return cls(
            msg_id,
            group,
            reading.copies,
            reading.attempts,
            reading.downs,
            end_us,
            origin=reading.origin,
            scale=scale,
        )

    # -- as numbers and as text -------------------------------------------------------------------------------------

    def table(self) -> Table:
        """The attempts: when each one came, after which wait, from which topic, and how it ended."""
        rows: list[tuple[object, ...]] = []
        before_us: int | None = None
        for number, attempt in enumerate(self.attempts, 1):
            waited = None if before_us is None else round((attempt.begin_us - before_us) / 1_000_000, 1)
            at = round((attempt.begin_us - self.copies[0].at_us) / 1_000_000, 1)
            rows.append((number, at, waited, attempt.topic, attempt.reconsume_times, attempt.status))
            before_us = attempt.begin_us
        header = ("attempt", "at s", "s after the last one", "taken from", "reconsumeTimes", "the listener")
        return Table(f"attempts of {self.group}", header, rows)

    @property
    def title(self) -> str:
        """What the picture is about."""
        count = len(self.attempts)
        return f"One message and the group {self.group}: {count} attempt{'s' if count != 1 else ''}"

    def __str__(self) -> str:
        told: list[tuple[int, int, str]] = []
        for copy in self.copies:
            level = f", {'on' if copy.level == _TIMED else 'delay'} {_wait_of(copy)}" if copy.level else ""
            told.append((copy.at_us, 0, f"stored in {copy.topic}, queue {copy.queue_id}{level}"))
        for number, attempt in enumerate(self.attempts, 1):
            took = (attempt.end_us - attempt.begin_us) / 1_000_000
            long = f" after {took:.3f} s" if took else ""
            told.append((attempt.begin_us, 1, f"attempt {number}, from {attempt.topic}: {attempt.status}{long}"))
        for begin_us, end_us, name in self.downs:
            told.append((begin_us, 2, f"{name} is down until {self._axis.told(end_us)}"))
        return "\n".join([self.title, *(f"  {self._axis.told(at):>12}  {words}" for at, _, words in sorted(told))])

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        bottom = _TOP + _ROW * len(self.topics)
        body = [*self._legend(), *self._axis.drawn(_TOP - 6, bottom)]
        for begin_us, end_us, name in self.downs:
            x = self._axis.x(begin_us)
            body.append(box(x, _TOP - 6, self._axis.x(end_us) - x, bottom - _TOP + 6, DOWN, tip=f"{name} is down"))
        for topic in self.topics:
            y = self._y(topic)
            body += [text(12, y + 4, topic, bold=True), line(self._left, y, self._left + _WIDTH, y, "#cfcfcf", width=1)]
        body += [*self._ways(), *self._waits(), *self._dots()]
        return picture(self.title, self._left + _WIDTH + _RIGHT, bottom + 46, body)

    def _y(self, topic: str) -> float:
        return _TOP + _ROW * (self.topics.index(topic) + 0.5)

    def _ways(self) -> list[str]:
        """The steps from lane to lane: a copy comes from where the message was last."""
        body = []
        for earlier, later in zip(self.copies, self.copies[1:], strict=False):
            x = self._axis.x(later.at_us)
            body.append(line(x, self._y(earlier.topic), x, self._y(later.topic), FAINT, dash="3 3"))
        return body

    def _waits(self) -> list[str]:
        """A bar where a copy is parked, with its delay if there is room, and one where it lies for good."""
        body = []
        for number, copy in enumerate(self.copies):
            last = number + 1 == len(self.copies)
            dead = copy.topic == dlq_topic(self.group)
            if not (copy.level or dead):
                continue
            end_us = self._axis.end_us if last else self.copies[number + 1].at_us
            x, y = self._axis.x(copy.at_us), self._y(copy.topic)
            width = self._axis.x(end_us) - x
            told = _span(end_us - copy.at_us)
            tip = f"{_wait_of(copy)}: {told}" if copy.level else "dead letter"
            body.append(box(x, y - 8, max(width, 3), 16, INK if dead else WAITS, tip=tip))
            if copy.level and width > _LETTER * len(told) + 6:
                body.append(text(x + width / 2, y + 4, told, anchor="middle"))
        return body

    def _dots(self) -> list[str]:
        body = []
        last_x, last_y = -1.0, -1.0
        for number, attempt in enumerate(self.attempts, 1):
            x, y = self._axis.x(attempt.begin_us), self._y(attempt.topic)
            if x - last_x < 2 * _DOT and y == last_y:
                y -= 2 * _DOT
            last_x, last_y = x, y
            colour = GOOD if attempt.consumed or attempt.status == _STILL else BAD
            width = self._axis.x(attempt.end_us) - x
            if width > 2:
                body.append(box(x, y - 4, width, 8, colour, tip=f"the listener runs: {attempt.status}"))
            tip = f"attempt {number}, {self._axis.told(attempt.begin_us)}"
            body.append(circle(x, y, _DOT, colour, stroke=PAPER, tip=tip))
            body.append(
                f'<text x="{x:g}" y="{y + 3.5:g}" text-anchor="middle" font-size="10" fill="{PAPER}">{number}</text>'
            )
        return body

    def _legend(self) -> list[str]:
        marks = [(BAD, "an attempt that fails", any(not self._fine(a) for a in self.attempts))]
        marks.append((GOOD, "an attempt that ends well, or has not ended", any(self._fine(a) for a in self.attempts)))
        marks.append((WAITS, "a copy is parked", any(copy.level for copy in self.copies)))
        marks.append((INK, "a dead letter", dlq_topic(self.group) in self.topics))
        marks.append((DOWN, "the broker is down", bool(self.downs)))
        return legend([(colour, words) for colour, words, there in marks if there], 38, _LETTER)[0]

    @staticmethod
    def _fine(attempt: Attempt) -> bool:
        return attempt.consumed or attempt.status == _STILL


class _Reading:
    """What the events say of one message and one group."""

    def __init__(self, key: str, group: str) -> None:
        self.copies: list[Copy] = []
        self.attempts: list[Attempt] = []
        self.downs: list[tuple[int, int, str]] = []
        self.last_us = 0
        self.origin = ""
        self._key = key
        self._group = group
        self._own = (retry_topic(group), dlq_topic(group))
        self._times = 0
        self._parked: tuple[str, int] | None = None
        self._open: list[tuple[Record, str]] = []
        self._down: dict[str, int] = {}

    def note(self, record: Record) -> None:
        """Take one event in."""
        kind = record.kind
        if kind in ("NodeCrashed", "PowerLost", "NodeStarted"):
            self._note_node(record)
        elif kind in _STORED and record.unique_key == self._key:
            self._note_stored(record)
        elif kind in _HEARD and (record.msg_id, record.group) == (self._key, self._group):
            self._note_consumed(record)

    def _note_node(self, record: Record) -> None:
        if record.kind == "NodeStarted":
            begun_us = self._down.pop(record.target, None)
            if begun_us is not None and self.copies:
                self.downs.append((begun_us, record.ts_us, record.target))
        elif any(copy.node == record.target for copy in self.copies):
            self._down[record.target] = record.ts_us

    def _note_stored(self, record: Record) -> None:
        if record.kind == "SendBackStored":
            self._times = record.reconsume_times if record.group == self._group else self._times
        elif record.kind == "MessageParked":
            self._parked = (record.topic, record.delay_level)
        elif record.kind == "TimerMessageAccepted":
            self._parked = (record.topic, _TIMED)
        elif record.kind == "MessageStored":
            target, level = record.topic, 0
            if target in (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC) and self._parked is not None:
                target, level = self._parked
                self._parked = None
            self.origin = self.origin or target
            if target in (*self._own, self.origin):
                self._copied(record, level)

    def _copied(self, record: Record, level: int) -> None:
        self.last_us = record.ts_us
        place = (record.queue_id, record.queue_offset, record.commit_log_offset, record.store_size)
        self.copies.append(Copy(record.ts_us, record.node, record.topic, *place, level, self._times))

    def _note_consumed(self, record: Record) -> None:
        self.last_us = record.ts_us
        if record.kind == "ConsumeStarted":
            hidden = (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, self._own[1])
            readable = [copy.topic for copy in self.copies if copy.topic not in hidden]
            self._open.append((record, readable[-1]))
            return
        place = ("node", "queue_id", "queue_offset")
        for number, (begun, topic) in enumerate(self._open):
            if begun.ts_us == record.ts_us - record.cost_us and all(begun.get(n) == record.get(n) for n in place):
                self._ended(begun, topic, record.ts_us, record.status)
                del self._open[number]
                return

    def _ended(self, begun: Record, topic: str, end_us: int, status: str) -> None:
        self.attempts.append(Attempt(begun.ts_us, end_us, begun.node, topic, begun.reconsume_times, status))

    def close(self, end_us: int) -> None:
        """What has not ended yet runs to the edge of the picture."""
        for begun, topic in self._open:
            self._ended(begun, topic, end_us, _STILL)
        self.attempts.sort()
        self.downs += [(begun_us, end_us, name) for name, begun_us in self._down.items()]


def _span(us: int) -> str:
    """A wait in words: "10 s", "2 min", "1 h"."""
    seconds = us / 1_000_000
    if seconds < 59.5:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 3_570 else f"{seconds / 3_600:.3g} h"
