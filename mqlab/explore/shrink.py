"""Shrinking: from a plan that makes a seed fail to a shorter one that still does."""

from __future__ import annotations

from typing import Any

from mqlab.explore.fault_plan import Plan
from mqlab.explore.trial import Outcome, Trial

MOST_TRIALS = 16


def shrink(scenario: str, failed: Outcome, parameters: dict[str, Any] | None = None) -> Outcome:
    """The outcome of the shortest plan that was found to break the same rule, dropping one fault after the other.

    At most 16 worlds are played. A seed that fails without any fault ends with an empty plan.
    """
    rule = failed.breaches[0].rule
    best = failed
    tried = 0
    place = 0
    while place < len(best.plan) and tried < MOST_TRIALS:
        shorter: Plan = best.plan[:place] + best.plan[place + 1 :]
        outcome = Trial(scenario, failed.seed, parameters, shorter).outcome
        tried += 1
        if any(breach.rule == rule for breach in outcome.breaches):
            best = outcome
        else:
            place += 1
    return best
