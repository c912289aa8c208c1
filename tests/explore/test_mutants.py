"""The mutants: every one can still be applied, and some are found here; `make mutants` looks for all of them."""

from __future__ import annotations

import pytest

from mqlab.explore import Trial

from .broken.mutants import MUTANTS, Mutant

QUICK = {6: ("push-clustering", 0), 19: ("push-clustering", 0), 33: ("retry-and-dead-letters", 0),
         51: ("push-clustering", 0), 57: ("lite-pull", 0)}  # fmt: skip
"""Number -> a scenario and a seed that find the mutant."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.number)
def test_the_words_that_a_mutant_changes_are_in_the_code(mutant: Mutant) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)


@pytest.mark.parametrize("number", sorted(QUICK))
def test_a_mutant_is_found(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, seed = QUICK[number]
    assert Trial(scenario, seed).outcome.passed
    next(mutant for mutant in MUTANTS if mutant.number == number).apply(monkeypatch)
    assert not Trial(scenario, seed).outcome.passed
