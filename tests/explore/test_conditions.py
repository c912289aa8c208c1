"""Groups that subscribe by SQL92 are judged, by somebody who does not share mqlab's filter: SQLite."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial
from mqlab.explore.conditions import condition_of
from mqlab.filter import compile_filter

ORDERS = [
    {"amount": "150", "city": "Berlin"},
    {"amount": "9", "city": "Oslo"},
    {"amount": "100", "city": "Berlin"},
    {"amount": "150"},
    {"city": "Oslo"},
    {},
]

ALONE = {"also": "", "nameless": 0, "bit_maps": False}
"""Three groups, and a broker without bit maps."""


@pytest.mark.parametrize(
    "text",
    [
        "amount > 100 AND city = 'Berlin'",
        "amount <= 100 OR NOT (city = 'Oslo')",
        "amount BETWEEN 9 AND 100 AND city IS NOT NULL",
        "city IN ('Oslo', 'It''s') OR amount IS NULL",
        "city <> 'Oslo'",
    ],
)
def test_sqlite_and_the_filter_agree(text: str) -> None:
    condition, expression = condition_of(text), compile_filter("SQL92", text)
    assert condition is not None
    wanted = [condition.is_true(order) for order in ORDERS]
    assert wanted == [expression.evaluate(order) is True for order in ORDERS]
    assert len(set(wanted)) == 2


@pytest.mark.parametrize("text", ["paid = TRUE", "city CONTAINS 'er'", "amount >"])
def test_what_sqlite_does_not_know_is_not_judged(text: str) -> None:
    assert condition_of(text) is None


@pytest.mark.parametrize(("seed", "plan"), [
    (176, "at 11402ms: power_off broker-a for 1128ms; at 12588ms: freeze broker-a for 14046ms"),
    (692, "at 6731ms: partition broker-a | consumer-3 for 86094ms; at 16235ms: crash consumer-3 for 928ms"),
])  # fmt: skip
def test_pulls_that_piled_up_and_a_start_that_failed_are_no_breach(seed: int, plan: str) -> None:
    """Four answers that come at once to one pull, and a consumer that could not ask a broker at first."""
    assert Trial("sql-filters", seed, ALONE, plan=tuple(plan.split("; "))).outcome.passed
