"""The picture of steps: stairs when they were done in turn, a frame around what was begun too early."""

from __future__ import annotations

from math import inf
from xml.etree import ElementTree as ET

import pytest

from mqlab.errors import LearnerError
from mqlab.views import StepBars, Work

NAMES = ("placed", "paid", "packed")
IN_TURN = [Work(1_000, 1_100, "A", 1), Work(1_100, 1_200, "A", 2), Work(1_250, 1_300, "B", 3)]
FRAMED = "stroke-width"


def bars(works: list[Work]) -> StepBars:
    return StepBars({"order-7": works}, NAMES, "A day")


def test_steps_that_were_done_in_turn_have_no_frame() -> None:
    drawn = bars(IN_TURN)
    assert drawn.too_early("order-7") == []
    assert FRAMED not in _bars_of(drawn)


def _bars_of(drawn: StepBars) -> str:
    """The picture without its axis and its lines."""
    return "".join(part for part in drawn.svg().split("<") if part.startswith("rect"))


def test_what_began_before_the_step_in_front_of_it_was_done_has_a_frame() -> None:
    early = Work(1_099, 1_200, "A", 2)
    drawn = bars([IN_TURN[0], early, IN_TURN[2]])
    assert drawn.too_early("order-7") == [early]
    assert _bars_of(drawn).count(FRAMED) == 1
    assert "paid by A, 99.0 ms to 200.0 ms !" in str(drawn)


def test_a_step_that_was_done_twice_counts_by_its_first_end() -> None:
    """Once it is done the next one may begin, also while somebody does it again."""
    again = Work(1_150, 1_400, "B", 1)
    assert bars([*IN_TURN, again]).too_early("order-7") == []


def test_nothing_may_follow_a_step_that_nobody_has_ended() -> None:
    never = Work(1_000, inf, "A", 1)
    late = Work(9_000, 9_100, "A", 2)
    drawn = bars([never, late])
    assert drawn.too_early("order-7") == [late]
    assert "placed by A, 0.000 s to never" in str(drawn)


def test_the_picture_is_a_whole_svg_that_says_its_title() -> None:
    picture = ET.fromstring(bars(IN_TURN).svg())
    assert picture.get("aria-label") == "A day"


def test_orders_that_nobody_has_begun_are_no_picture() -> None:
    with pytest.raises(LearnerError, match="none of these orders was begun"):
        bars([])
