"""Hints stop one step before the answer, whatever they call their variables; and labs' hints do."""

from __future__ import annotations

import pytest

from mqlab.labs.giveaway import MOST_TOLD, giveaway_problems, told_share

EXERCISE = '''def may_judge(pop_ms, invisible_ms, newest_ms):
    """Whether the reviver may judge a check point."""
    ### BEGIN SOLUTION
    revive_ms = pop_ms + invisible_ms
    return newest_ms - revive_ms > 2_000
    ### END SOLUTION
'''
NUDGES = "- When is its time over?\n- The newest must be later than that.\n"


@pytest.mark.parametrize(
    "last",
    [
        "- `revive_ms = pop_ms + invisible_ms`, and then `newest_ms - revive_ms > 2_000`",
        "- `end = pop_ms + invisible_ms`, and then `return newest_ms - end > 2_000`",
        "- with `the_end = pop_ms + invisible_ms` it is `newest_ms - the_end > 2_000`",
    ],
)
def test_a_hint_that_is_the_solution_is_refused(last: str) -> None:
    assert told_share(NUDGES + last, EXERCISE) > 0.7
    assert "one step before the answer" in giveaway_problems(NUDGES + last, EXERCISE)[0]


@pytest.mark.parametrize("last", ["- Compare it with two seconds.", "- `newest_ms` and `pop_ms` are on one clock."])
def test_a_hint_in_words_or_with_names_is_none(last: str) -> None:
    assert told_share(NUDGES + last, EXERCISE) == 0
    assert giveaway_problems(NUDGES + last, EXERCISE) == []


def test_all_three_hints_count_together() -> None:
    parts = ["`end = pop_ms + invisible_ms`", "`newest_ms - end > 2_000`", "and return it"]
    shares = [told_share("\n".join(f"- {part}" for part in parts[:count]), EXERCISE) for count in (1, 2, 3)]
    assert 0 < shares[0] < shares[1] == shares[2]
    assert shares[2] > MOST_TOLD


def test_code_that_is_no_whole_line_is_read_as_far_as_it_goes() -> None:
    assert told_share("- `if newest_ms - (`\n- `)`\n- `'`", EXERCISE) == 0
