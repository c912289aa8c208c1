"""Goals of filters: who leaves a message out, and by what."""

from __future__ import annotations

from mqlab.explore.sights.sights import Sights, seen


class SightsOfFilters(Sights):
    """Filters: tags that look alike, bit maps, and conditions that cannot be judged."""

    SUBJECT = "filters"
    SEEN = (
        seen(
            "client-filters-what-the-broker-let-through", "MessagesFiltered",
            "A consumer leaves a message out whose tag has the hash code of another tag.",
        ),
        seen(
            "message-is-passed-over-by-its-bits", "MessagesFilteredByBroker",
            "A broker passes a message over by its bit map, without reading it.", lambda r: r.by_bit_map > 0,
        ),
        seen(
            "message-is-read-and-held-back", "MessagesFilteredByBroker",
            "A broker reads a message, judges a condition, and holds it back.", lambda r: r.by_expression > 0,
        ),
        seen(
            "condition-cannot-be-judged", "MessagesFilteredByBroker",
            "A condition needs a number of a message, and its property is none.", lambda r: r.not_judged > 0,
        ),
        seen(
            "filter-outlives-its-group", "ConsumerFilterChanged",
            "A broker keeps the filter of a group that has no member any more.", change="dead",
        ),
        seen(
            "filter-comes-alive-again", "ConsumerFilterChanged",
            "A group comes back to a filter that its broker has kept.", change="alive again",
        ),
        seen(
            "filter-is-replaced", "ConsumerFilterChanged",
            "A group wants something else than before, and its filter is replaced.", change="replaced",
        ),
        seen(
            "message-that-nobody-wants", "FilterBitMapCalculated",
            "A message is judged by all conditions for its topic, and none wants it.", groups="",
        ),
    )  # fmt: skip
