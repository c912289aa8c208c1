"""docs/checks.md names every rule, every exception and every goal in the words of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.explore import RULES, Trial, goals

from .goal_table import rows

PLAYED = (
    "message-is-stored-twice", "broadcast-reaches-two-members", "levels-overtake-each-other", "retry-succeeds",
    "check-point-is-settled-in-memory", "pop-record-is-revived", "ordered-messages-are-visible-again", "log-is-cut",
    "two-owners-at-once", "transaction-is-ended-twice", "reply-comes-too-late",
)  # fmt: skip
"""Goals that are reached soon in worlds that are played soon."""
PAGE = " ".join((Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8").split())


def test_the_page_names_every_rule() -> None:
    for rule in RULES:
        assert f"**{rule.__name__}**: {(rule.__doc__ or '').partition(chr(10))[0]}" in PAGE


def test_the_page_explains_every_exception() -> None:
    for rule in RULES:
        for name, text in rule.EXCEPTIONS.items():
            assert f"**{name}** (" in PAGE
            assert text in PAGE


def test_the_page_has_a_line_for_every_goal() -> None:
    assert [(row.subject, row.goal, row.words) for row in rows()] == [
        (goal.subject, goal.name, goal.words) for goal in goals().values()
    ]


def test_the_page_says_why_a_goal_was_not_reached() -> None:
    for row in rows():
        assert row.place is not None or row.reached.startswith("not reached: "), row


@pytest.mark.parametrize("name", PLAYED)
def test_a_goal_is_reached_where_the_page_says(name: str) -> None:
    (row,) = [row for row in rows() if row.goal == name]
    assert row.place is not None
    scenario, seed = row.place
    assert Trial(scenario, seed).outcome.goals.get(name, 0) > 0
