"""Cases: a near miss gets a share, and a guess gets none, whatever is guessed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mqlab.check import Cases, Wrong, find_check


def share(asked: Sequence[object], said: Sequence[object]) -> float:
    cases = Cases()
    for want, got in zip(asked, said, strict=True):
        cases.note(want, got == want or Wrong("another one"))
    return cases.share


@pytest.mark.parametrize("asked", [[True] * 9 + [False], [0, 0, 0, 1, 2], [1, 2, 3, 4], [None, 5, None, None]])
def test_one_answer_for_all_cases_gets_nothing(asked: list[object]) -> None:
    for constant in set(asked):
        assert share(asked, [constant] * len(asked)) == 0


def test_all_right_is_one_and_a_near_miss_is_close_to_it() -> None:
    asked = [True, True, True, True, False, False, False, False]
    assert share(asked, asked) == 1
    assert share(asked, [True, True, True, False, *asked[4:]]) == pytest.approx(0.75)
    assert share([1, 2, 3, 4], [1, 2, 3, 0]) == pytest.approx(2 / 3)


def test_a_frequent_answer_weighs_no_more_than_a_seldom_one() -> None:
    asked = [True] * 18 + [False] * 2
    assert share(asked, [True] * 18 + [True, False]) == pytest.approx(0.5)


def test_where_all_cases_have_one_answer_there_is_no_share() -> None:
    assert share([3, 3, 3], [3, 3, 0]) == 0
    assert share([3, 3, 3], [3, 3, 3]) == 1


def test_the_verdict_tells_the_cases_and_the_share() -> None:
    def wakes(pull_offset: int, wanted: set[int], max_offset: int, tags_code: int | None) -> bool:
        return max_offset >= pull_offset and (tags_code is None or not wanted or tags_code in wanted)

    verdict = find_check("05/wakes").play(wakes)
    assert verdict.failed == verdict.tried == 50
    assert 25 < verdict.well < 50
    assert f"0 of 50 seeds went well, and with the cases of the others {verdict.well / 50:.0%}" in verdict.headline
    assert verdict.cases is not None
    assert f"({verdict.cases[0]} of 36 cases right)" in repr(verdict)
