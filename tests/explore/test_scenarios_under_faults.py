"""The scenarios of sending, pushing, retrying and pulling hold all rules under seeded faults: here for a few seeds.

`make explore-seeds` plays a thousand of each.
"""

from __future__ import annotations

import pytest

from mqlab import scenarios
from mqlab.explore import Trial, plan_text

UNDER_FAULTS = [name for name in scenarios.names() if scenarios.get(name).faults]
SEEDS = range(15)
COSTLY = {"pull-schedule": range(3), "lite-pull": range(6)}


def test_the_scenarios_of_this_chapter_bear_faults() -> None:
    wanted = {
        "sync-send-two-brokers", "async-send", "one-way", "push-clustering", "push-orderly", "slow-listener",
        "broadcasting", "retry-and-dead-letters", "delayed-messages", "pull-schedule", "lite-pull",
    }  # fmt: skip
    assert wanted <= set(UNDER_FAULTS)


@pytest.mark.parametrize("name", UNDER_FAULTS)
def test_every_rule_holds(name: str) -> None:
    for seed in COSTLY.get(name, SEEDS):
        outcome = Trial(name, seed).outcome
        assert outcome.passed, f"seed {seed}, {plan_text(outcome.plan)}: {outcome.breaches[0]}"


@pytest.mark.parametrize("name", UNDER_FAULTS)
def test_every_rule_holds_without_faults(name: str) -> None:
    outcome = Trial(name, 1, plan=()).outcome
    assert outcome.passed, outcome.breaches[0]
    assert outcome.plan == ()
