"""Numbers on the command line: what cannot be is refused at once, with what the option takes and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mqlab.commands.numbers import number, whole
from mqlab.errors import LearnerError
from mqlab.scenarios import get


@pytest.mark.parametrize(
    "arguments",
    [
        ["trace", "first-message", "--seconds", "nan"],
        ["trace", "first-message", "--seconds", "inf"],
        ["trace", "first-message", "--seconds", "-1"],
        ["trace", "first-message", "--seconds", "1e300"],
        ["explore", "push-clustering", "--seeds", "0"],
        ["explore", "push-clustering", "--jobs", "1.5"],
        ["explore", "push-clustering", "--seed", "1", "-p", "consumers=0"],
        ["explore", "push-clustering", "--seed", "1", "-p", "consumers=1000000000000"],
        ["explore", "push-clustering", "--seed", "1", "-p", "messages=-1"],
        ["course", "compare", "nowhere", "--least", "80"],
    ],
    ids=" ".join,
)
def test_a_number_that_cannot_be_is_refused(arguments: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-m", "mqlab", *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "never awaited" not in ended.stderr
    assert any(word in ended.stderr for word in (" from ", " above ", "whole number"))


def test_what_is_within_the_range_is_taken() -> None:
    assert [whole(0)("0"), whole(1, 5)("5"), number(0, 1)("1"), number(0, above=True)("0.5")] == [0, 5, 1.0, 0.5]


def test_a_parameter_takes_below_zero_only_what_its_own_default_is() -> None:
    scenario = get("always-fails")
    assert scenario.check({"max_reconsume_times": "-1"})["max_reconsume_times"] == -1
    with pytest.raises(LearnerError, match="is not possible"):
        scenario.check({"max_reconsume_times": "-2"})
