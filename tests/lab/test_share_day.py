"""The day of a share group: what a right state machine meets there, and that nothing wrong is overlooked."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.exercises.share_day import ShareDay

WRONG = runpy.run_path(str(Path(__file__).parents[1] / "labs" / "wrong" / "31_cousins.py"))
RIGHT: Any = WRONG["Right"]


@pytest.fixture(scope="module")
def days() -> list[ShareDay]:
    """The days of some seeds with a state machine that is right."""
    return [ShareDay(RIGHT, seed).play() for seed in range(1, 16)]


def test_nothing_is_wrong_with_one_that_is_right(days: list[ShareDay]) -> None:
    assert {day.wrong for day in days} == {""}


def test_a_day_has_each_move_of_a_record(days: list[ShareDay]) -> None:
    said = {(kind, told) for day in days for line in day.lines for kind, told in re.findall(
        r"says (\w+) of -?\d+, and is told (True|False)", line.text
    )}  # fmt: skip
    assert said == {(kind, told) for kind in ("ACCEPT", "RELEASE", "REJECT", "RENEW") for told in ("True", "False")}
    assert all(any("end" in line.text and "locks" in line.text for line in day.lines) for day in days)


def test_some_records_end_with_their_last_delivery_and_some_windows_are_full(days: list[ShareDay]) -> None:
    told = [(day, line.text) for day in days for line in day.lines]
    assert any(f"x{day.limit}" in text for day, text in told)
    assert {day.most_locks for day in days} == {4, 6, 40}
    assert any("gets nothing" in text for _, text in told)


def test_the_same_seed_has_the_same_day() -> None:
    once, again = (ShareDay(WRONG["LateIsFine"], 2).play() for _ in range(2))
    assert once.wrong == again.wrong != ""
    assert once.both_ends() == again.both_ends()


def test_what_is_no_list_of_pairs_is_told_so() -> None:
    class Nothing(RIGHT):  # type: ignore[misc]
        def acquire(self, *asked: Any) -> Any:
            return None

    with pytest.raises(LearnerError, match="a list of"):
        ShareDay(Nothing, 1).play()
