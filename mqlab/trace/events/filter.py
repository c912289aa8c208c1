"""Events of the broker's filters by SQL92: which there are, what is noted of a message ahead, what is held back."""

from __future__ import annotations

from typing import NamedTuple


class ConsumerFilterChanged(NamedTuple):
    """A broker's filter of a group for a topic changed; `change` says how.

    "registered", "replaced" (another expression), "dead" (the group has gone, or wants no more of the topic), "alive
    again", "dropped" (dead for a day), "refused" (cannot be read, so that there is none now).
    """

    group: str
    topic: str
    expression: str
    change: str


class FilterBitMapCalculated(NamedTuple):
    """A message was judged by all filters of its topic when it was dispatched; `groups` are those that want it."""

    topic: str
    queue_id: int
    queue_offset: int
    groups: str


class MessagesFilteredByBroker(NamedTuple):
    """A broker read for a group from `queue_offset` to before `next_offset` and held messages back.

    `messages` were given; `by_bit_map` were passed over without being read, `by_expression` were read and judged, and
    `not_judged` of these could not be, since a property is no number where the expression needs one.
    """

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    next_offset: int
    messages: int
    by_bit_map: int
    by_expression: int
    not_judged: int
    expression: str
