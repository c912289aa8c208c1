"""How long messages wait until a listener is called with them, in each group by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import LearnerError
from mqlab.views.colours import BLUE, GREEN, ORANGE, VERMILION
from mqlab.views.time_chart import Series, TimeChart

if TYPE_CHECKING:
    from mqlab.trace.history import History

_COLOURS = (VERMILION, BLUE, ORANGE, GREEN)
_SHAPES = ("cross", "dot")


class Delay(NamedTuple):
    """One message and one group: stored when, first given to a listener after how long (ms), where, from which queue.

    A message that no listener has got yet has no node, and has waited until the end of what was looked at.
    """

    msg_id: str
    stored_ms: float
    waited_ms: float
    node: str
    queue_id: int


class Delays:
    """The delays of all messages of a topic that were stored from a time on; the first call of a listener counts."""

    def __init__(self, by_group: dict[str, list[Delay]]) -> None:
        self.by_group = by_group

    @classmethod
    def of(cls, history: History, topic: str, *groups: str, since_ms: float = 0) -> Delays:
        """The delays in these groups, read off MessageStored and ConsumeStarted."""
        stored = {event.unique_key: event for event in history.find("MessageStored", topic=topic)}
        called: dict[tuple[str, str], tuple[float, str]] = {}
        for event in history.find("ConsumeStarted"):
            called.setdefault((event.group, event.msg_id), (event.ts_ms, event.node))
        end_ms = max((event.ts_ms for event in stored.values()), default=0.0)
        end_ms = max([end_ms, *(at_ms for at_ms, _ in called.values())])
        by_group: dict[str, list[Delay]] = {group: [] for group in groups}
        for group, delays in by_group.items():
            for key, event in stored.items():
                if event.ts_ms >= since_ms:
                    at_ms, node = called.get((group, key), (end_ms, ""))
                    delays.append(Delay(key, event.ts_ms, at_ms - event.ts_ms, node, event.queue_id))
        return cls(by_group)

    def _of(self, group: str) -> list[Delay]:
        if group not in self.by_group:
            raise LearnerError(f"nothing is known of the group {group!r}", f"it has {', '.join(self.by_group)}")
        return self.by_group[group]

    def still_waiting(self, group: str) -> int:
        """How many messages no listener of the group has got."""
        return sum(not delay.node for delay in self._of(group))

    def longer_than(self, group: str, ms: float) -> int:
        """How many messages wait, or have waited, for longer."""
        return sum(delay.waited_ms > ms for delay in self._of(group))

    def longest_ms(self, group: str) -> float:
        """The longest that a message has waited, or waits."""
        return max((delay.waited_ms for delay in self._of(group)), default=0.0)

    def by_member(self, group: str) -> dict[str, int]:
        """How many messages each member got first."""
        return dict(sorted(Counter(delay.node for delay in self._of(group) if delay.node).items()))

    def chart(self, title: str) -> TimeChart:
        """A mark for each message and group: when it was stored, and how long it waited."""
        series = [
            Series(
                group,
                [(delay.stored_ms / 1_000, delay.waited_ms / 1_000) for delay in delays],
                _COLOURS[place % len(_COLOURS)],
                _SHAPES[place % len(_SHAPES)],
            )
            for place, (group, delays) in enumerate(self.by_group.items())
        ]
        return TimeChart(title, "waited, s", series, x_label="stored at, s")
