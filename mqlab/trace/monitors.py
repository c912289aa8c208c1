"""Monitors: small judges that watch events and say whether what must always hold has held.

The same class lights a lamp while a world plays, judges a student's run, and reads a recorded trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from .bus import Row
from .matching import Kinds, row_filter
from .record import Record


class Violation(NamedTuple):
    """One breach: what was wrong, in a sentence, and the event that showed it."""

    reason: str
    record: Record

    def __str__(self) -> str:
        return f"{self.reason}\n  {self.record}"


class Judgement(NamedTuple):
    """What a monitor has to say: the rule, whether it held, and every breach."""

    rule: str
    holds: bool
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        if self.holds:
            return f"holds: {self.rule}"
        return "\n".join([f"BROKEN {len(self.violations)} times: {self.rule}", *map(str, self.violations)])


class Monitor(ABC):
    """A sink that judges: it looks at the events of its `kinds` and notes every one that breaks its rule.

    The rule is the first line of the class's docstring.
    """

    kinds: Kinds = None

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._matches = row_filter(self.kinds)

    @property
    def rule(self) -> str:
        """The rule in one sentence."""
        return (type(self).__doc__ or type(self).__name__).partition("\n")[0]

    def __call__(self, row: Row) -> None:
        if self._matches(row):
            self.on_event(Record(row))

    @abstractmethod
    def on_event(self, record: Record) -> None:
        """Look at one event of the monitor's kinds."""

    def broken(self, record: Record, reason: str) -> None:
        """Note that `record` breaks the rule."""
        self.violations.append(Violation(reason, record))

    def verdict(self) -> Judgement:
        """The judgement on all events so far."""
        return Judgement(self.rule, not self.violations, tuple(self.violations))


def judge(rows: Iterable[Row], *monitors: Monitor) -> list[Judgement]:
    """Let monitors read a whole trace, and return their judgements in the same order."""
    for row in rows:
        for monitor in monitors:
            monitor(row)
    return [monitor.verdict() for monitor in monitors]


class AcknowledgedIsStored(Monitor):
    """A message that a producer was told is stored is in a broker's store, and survives every restart of it.

    The first half must always hold; the second does not when a broker that flushes later loses power, and this shows
    which messages it cost. An answer other than SEND_OK (a flush that took too long, say) promises less and is not
    judged.
    """

    kinds = ("MessageStored", "SendSucceeded", "StoreRecovered")

    def __init__(self) -> None:
        super().__init__()
        self._stored: dict[str, set[tuple[str, int]]] = {}
        self._acknowledged: dict[str, None] = {}

    def on_event(self, record: Record) -> None:
        """Note what is stored, and judge answers to producers and recoveries."""
        if record.kind == "MessageStored":
            self._stored.setdefault(record.unique_key, set()).add((record.node, record.commit_log_offset))
        elif record.kind == "SendSucceeded" and record.send_status == "SEND_OK":
            for msg_id in record.msg_id.split(","):
                self._acknowledged[msg_id] = None
                if not self._stored.get(msg_id):
                    self.broken(record, f"message {msg_id} was acknowledged and is in no store")
        elif record.kind == "StoreRecovered":
            self._recovered(record)

    def _recovered(self, record: Record) -> None:
        for msg_id, places in self._stored.items():
            kept = {(node, at) for node, at in places if node != record.node or at < record.commit_log_max_offset}
            if places and not kept and msg_id in self._acknowledged:
                self.broken(record, f"message {msg_id} was acknowledged and is lost")
            self._stored[msg_id] = kept


class NothingConsumedThatWasNotStored(Monitor):
    """No listener is given a message that no broker had stored before."""

    kinds = ("MessageStored", "ConsumeStarted")

    def __init__(self) -> None:
        super().__init__()
        self._stored: set[str] = set()

    def on_event(self, record: Record) -> None:
        """Note what is stored, and judge the calls of listeners."""
        if record.kind == "MessageStored":
            self._stored.add(record.unique_key)
        elif record.msg_id not in self._stored:
            self.broken(record, f"message {record.msg_id} was given to a listener and never stored")


class OffsetNeverPassesUnconsumed(Monitor):
    """A consumer's offset never passes a message whose listener is still running.

    Else the message would be lost if the consumer ended now. Messages that come for the first time are judged, and of a
    call with several messages the first, which is the one that the events name.
    """

    kinds = ("ConsumeStarted", "ConsumeFinished", "QueueDropped", "OffsetUpdated", "NodeCrashed")

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[tuple[str, ...], set[int]] = {}

    def on_event(self, record: Record) -> None:
        """Note which listeners run, and judge the offsets."""
        if record.kind == "NodeCrashed":
            self._running = {queue: offsets for queue, offsets in self._running.items() if queue[0] != record.target}
            return
        queue = (record.node, record.group, record.topic, record.broker_name, record.queue_id)
        running = self._running.setdefault(queue, set())
        if record.kind == "ConsumeStarted" and record.reconsume_times == 0:
            running.add(record.queue_offset)
        elif record.kind == "ConsumeFinished":
            running.discard(record.queue_offset)
        elif record.kind == "QueueDropped":
            running.clear()
        elif record.kind == "OffsetUpdated" and running and min(running) < record.queue_offset:
            self.broken(record, f"the listener of the message at offset {min(running)} is still running")


GROUND_RULES: tuple[type[Monitor], ...] = (
    AcknowledgedIsStored,
    NothingConsumedThatWasNotStored,
    OffsetNeverPassesUnconsumed,
)
"""The monitors that judge any world which was recorded from its beginning."""
