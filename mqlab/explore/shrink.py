"""Shrinking: from what makes a seed fail to less that still does: fewer faults, and of a drawn world fewer lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mqlab.errors import LearnerError
from mqlab.explore.fault_plan import Plan
from mqlab.explore.trial import Outcome, Trial
from mqlab.scenarios.drawing import draw_world, shorter_worlds, world_from_text, world_text

MOST_TRIALS = 16
MOST_WORLDS = 60
"""A world has more parts than a plan has faults."""
DRAWN = "drawn"
"""The scenario whose world is drawn, and can do with less."""


def shrink(scenario: str, failed: Outcome, parameters: dict[str, Any] | None = None) -> Outcome:
    """The outcome of the shortest plan that was found to break the same rule, dropping one fault after the other.

    At most 16 worlds are played. A seed that fails without any fault ends with an empty plan. Of a drawn world lines
    are dropped, too, and what lines say, in at most 60 more worlds; the outcome then has the text of what is left.
    """
    best = _fewer_faults(scenario, failed, parameters or {})
    return _less_world(best, failed, parameters or {}) if scenario == DRAWN else best


def _fewer_faults(scenario: str, failed: Outcome, parameters: dict[str, Any]) -> Outcome:
    best = failed
    tried = 0
    place = 0
    while place < len(best.plan) and tried < MOST_TRIALS:
        shorter: Plan = best.plan[:place] + best.plan[place + 1 :]
        outcome = Trial(scenario, failed.seed, parameters, shorter).outcome
        tried += 1
        if _fails_alike(outcome, failed):
            best = outcome
        else:
            place += 1
    return best


def _less_world(best: Outcome, failed: Outcome, parameters: dict[str, Any]) -> Outcome:
    """Walk once through all that can be left out; what was left out stays so."""
    world = parameters.get("world") or world_text(draw_world(failed.seed))
    steps, place = list(_shorter(world)), 0
    for _ in range(MOST_WORLDS):
        if place >= len(steps):
            break
        outcome = _played(failed.seed, {**parameters, "world": steps[place]}, best.plan)
        if outcome is not None and _fails_alike(outcome, failed):
            best = outcome._replace(world=steps[place])
            steps = list(_shorter(steps[place]))
        else:
            place += 1
    return best


def _shorter(world: str) -> Iterator[str]:
    return map(world_text, shorter_worlds(world_from_text(world)))


def _played(seed: int | str, parameters: dict[str, Any], plan: Plan) -> Outcome | None:
    """The outcome; None where a fault of the plan, or a line of the world, names what is not there any more."""
    try:
        return Trial(DRAWN, seed, parameters, plan).outcome
    except LearnerError:
        return None


def _fails_alike(outcome: Outcome, failed: Outcome) -> bool:
    rule = failed.breaches[0].rule
    return any(breach.rule == rule for breach in outcome.breaches)
