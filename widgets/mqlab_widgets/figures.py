"""What a world comes to in figures: counted from its events, so that the same settings always give the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.topics import is_retry_topic, is_system_topic
from mqlab_widgets.world_numbers import WorldNumbers

if TYPE_CHECKING:
    from mqlab import Lab

KINDS = {
    "SendSucceeded": "sends that succeeded",
    "SendFailed": "sends that failed",
    "RequestSent": "requests on the wire",
    "PullHeld": "pulls held by a broker",
    "FlowControlled": "pulls that a full consumer put off",
    "MessageGivenBack": "messages that a listener gave back",
    "MessagePopped": "messages handed out by Pop",
    "MessageRevived": "popped messages that came back",
}
"""The kinds of events that are counted as they are, and what they are called."""
CALM_MS = 1_000
"""Refusals of a queue that lie so far apart belong to two episodes."""


class Figure(NamedTuple):
    """One figure: its name, its value, and the unit ("" for a count)."""

    name: str
    value: float
    unit: str = ""

    def __str__(self) -> str:
        number = f"{self.value:,.1f}" if self.unit == "ms" else f"{self.value:,.0f}"
        return f"{number} {self.unit}".strip()


def figures_of(lab: Lab) -> list[Figure]:
    """The figures of a world up to now, always the same ones in the same order."""
    counts = dict.fromkeys(KINDS, 0)
    stored_us: dict[str, int] = {}
    delays_ms: dict[tuple[str, str], float] = {}
    again = consumed = episodes = 0
    refused_us: dict[tuple[str, str, str, int], int] = {}
    for record in lab.history.find((*KINDS, "MessageStored", "ConsumeStarted", "ConsumeFinished")):
        kind = record.kind
        if kind in counts:
            counts[kind] += 1
        if kind == "MessageStored":
            if not is_system_topic(record.topic) and not is_retry_topic(record.topic):
                stored_us.setdefault(record.unique_key, record.ts_us)
        elif kind == "ConsumeFinished":
            consumed += 1
        elif kind == "ConsumeStarted":
            taken = (record.group, record.msg_id)
            if taken in delays_ms:
                again += 1
            elif record.msg_id in stored_us:
                delays_ms[taken] = (record.ts_us - stored_us[record.msg_id]) / 1_000
        elif kind == "FlowControlled":
            queue = (record.node, record.topic, record.broker_name, record.queue_id)
            last_us = refused_us.get(queue)
            episodes += last_us is None or record.ts_us - last_us > CALM_MS * 1_000
            refused_us[queue] = record.ts_us
    numbers = WorldNumbers(lab)
    numbers.follow()
    last = numbers.intervals[-1] if numbers.intervals else None
    return [
        Figure("messages stored", len(stored_us)),
        Figure("listener's calls that ended", consumed),
        Figure("delay to the listener, half of all at most", percentile(delays_ms.values(), 50), "ms"),
        Figure("delay to the listener, 99 of 100 at most", percentile(delays_ms.values(), 99), "ms"),
        Figure("messages that a listener got again", again),
        Figure("messages beyond the group's offset at the end", sum(last.backlog.values()) if last else 0),
        Figure("age of the oldest one at the end", max(last.lag_ms.values(), default=0.0) if last else 0.0, "ms"),
        *(Figure(words, counts[kind]) for kind, words in KINDS.items()),
        Figure("times that a queue was put off (a second apart)", episodes),
    ]


def percentile(values: Iterable[float], percent: int) -> float:
    """The smallest of the values that so many percent of them do not exceed; 0 of none."""
    rising = sorted(values)
    return float(rising[-(-len(rising) * percent // 100) - 1]) if rising else 0.0
