"""The bad day of two brokers: what the naive rule makes of it, and what a rule may not ask for."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest

from mqlab.errors import LearnerError
from mqlab.exercises.bad_day import BadDay, Failed, Try, naive_rule


def test_one_seed_is_one_day() -> None:
    first, second = BadDay(naive_rule, 7).play(), BadDay(naive_rule, 7).play()
    assert first.lines == second.lines
    assert (first.delivered, first.duplicates) == (second.delivered, second.duplicates)


def test_a_time_that_is_no_whole_number_is_rounded() -> None:
    def halves(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
        return Try(brokers[0], left_ms / 2) if left_ms > 10 else None  # type: ignore[arg-type]  # as students write it

    assert BadDay(halves, 7).play().delivered > 0


def test_the_naive_rule_gives_messages_up_and_makes_copies() -> None:
    day = BadDay(naive_rule, 7).play()
    assert len(day.orders) == 110
    assert sum(order.legal for order in day.orders) == 108
    assert day.delivered + len(day.not_delivered) == 108
    assert 5 <= len(day.not_delivered) <= 15
    assert day.duplicates > 10


def test_a_message_given_up_has_a_story_and_a_picture() -> None:
    day = BadDay(naive_rule, 7).play()
    number = day.not_delivered[0].number
    assert f"message {number}: the budget is 3000 ms" in day.story(number)
    assert "the rule gives up" in day.story(number)
    assert str(day.budget(number)).count("attempt") >= 3
    assert ET.fromstring(day.budget(number).svg()).tag.endswith("svg")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Try("broker-c", 100), "none of broker-a, broker-b"),
        (Try("broker-a", 2_000, 2_000), "spends 4000 ms with 3000 ms left"),
        (Try("broker-a", 0), "a time-out is more than 0 ms"),
        ("broker-a", "returned str"),
    ],
)
def test_what_cannot_be_is_a_mistake_of_the_rule(wanted: object, said: str) -> None:
    def rule(failed: Sequence[Failed], left_ms: int, brokers: Sequence[str]) -> Try | None:
        return wanted  # type: ignore[return-value]  # some of them are wrong on purpose

    day = BadDay(rule, 7).play()
    assert said in day.orders[0].mistake


def test_a_day_is_played_once() -> None:
    day = BadDay(naive_rule, 7).play()
    with pytest.raises(LearnerError, match="played already"):
        day.play()
