"""The mutants: every one can still be applied, and some are found here; `make mutants` looks for all of them."""

from __future__ import annotations

import pytest

from mqlab.explore import Breach, Rule, Trial
from mqlab.explore.rules_of_delivery import CommittedIsConsumed, OnlySubscribedIsDelivered
from mqlab.explore.rules_of_flushing import EveryKeyIsFound
from mqlab.explore.rules_of_offsets import GivenUpIsWritten, OffsetsKeepUp, ProgressIsKept
from mqlab.explore.rules_of_order import LockedIsConsumed
from mqlab.explore.rules_of_questions import QuestionsComeAtTheirTime, QuestionsNameTheCopy
from mqlab.explore.rules_of_queues import DroppedIsLeftAlone
from mqlab.explore.rules_of_replication import (
    ReadersComeHome,
    ReportsAreTrue,
    SafeIsCopied,
    SlavesFollow,
    SlavesOnlyGive,
)
from mqlab.explore.rules_of_time import RetriesComeInTime, SignsOfLifeGoOn
from mqlab.explore.rules_of_transactions import EndsAreSaid

from .broken.mutants import MUTANTS, Mutant

QUICK: dict[int, tuple[str, int, type[Rule]]] = {
    4: ("orderly-backlog", 15, LockedIsConsumed),
    6: ("push-clustering", 0, OffsetsKeepUp),
    9: ("retry-and-dead-letters", 0, DroppedIsLeftAlone),
    22: ("many-files", 3, EveryKeyIsFound),
    33: ("retry-and-dead-letters", 0, RetriesComeInTime),
    37: ("delayed-messages", 0, RetriesComeInTime),
    39: ("push-clustering", 10, OffsetsKeepUp),
    40: ("push-clustering", 1, GivenUpIsWritten),
    51: ("push-clustering", 0, SignsOfLifeGoOn),
    57: ("lite-pull", 0, CommittedIsConsumed),
    72: ("bank-transfers", 0, QuestionsNameTheCopy),
    74: ("bank-transfers", 0, QuestionsComeAtTheirTime),
    78: ("bank-transfers", 0, EndsAreSaid),
    79: ("sync-replication", 0, SafeIsCopied),
    80: ("sync-replication", 0, ReportsAreTrue),
    82: ("slave-reads", 1, SlavesFollow),
    84: ("slave-reads", 0, ProgressIsKept),
    85: ("slave-reads", 1, ReadersComeHome),
    86: ("slave-reads", 0, SlavesOnlyGive),
    90: ("sql-filters", 0, OnlySubscribedIsDelivered),
    112: ("proxy-transactions", 2, EndsAreSaid),
}
"""Number -> a scenario, a seed and the rule that find the mutant. Of 4, 9, 22, 37, 39 and 40 no other test knows."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.number)
def test_the_words_that_a_mutant_changes_are_in_the_code(mutant: Mutant) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)


@pytest.mark.parametrize("number", QUICK)
def test_a_mutant_is_found(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, seed, rule = QUICK[number]
    assert Trial(scenario, seed).outcome.passed
    text = (rule.__doc__ or "").partition("\n")[0]
    assert text in [breach.rule for breach in _breaches_of(number, scenario, seed, monkeypatch)]


def test_a_slave_that_corrects_who_is_ahead_of_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the right code passes in this seed, and takes long, is a test of the exception that it needs there."""
    breaches = _breaches_of(87, "sync-replication", 112, monkeypatch)
    assert any("a slave that may be behind corrects a pull" in breach.reason for breach in breaches)


def _breaches_of(number: int, scenario: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Breach, ...]:
    next(mutant for mutant in MUTANTS if mutant.number == number).apply(monkeypatch)
    return Trial(scenario, seed).outcome.breaches
