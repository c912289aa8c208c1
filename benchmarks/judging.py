"""What judging a world costs beside playing it: trials of an exploration, and the same worlds with nobody to judge."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from benchmarks.harness import Figure, figure, operations_per_second
from mqlab.explore.fault_plan import faults_of
from mqlab.explore.trial import Outcome, Trial, draws_ties
from mqlab.scenarios import registry

SEEDS = {"push-clustering": 12, "drawn": 6}
"""How many seeds of a scenario are a run."""
AIM = 1 / 1.2
"""Judging takes at most a fifth of playing."""


def judged(scenario: str) -> Callable[[], int]:
    """Play some seeds under their faults, and ask the rules."""

    def run() -> int:
        for seed in range(SEEDS[scenario]):
            assert Trial(scenario, seed).outcome.passed
        return SEEDS[scenario]

    return run


@cache
def _outcomes(scenario: str) -> list[Outcome]:
    return [Trial(scenario, seed).outcome for seed in range(SEEDS[scenario])]


def played(scenario: str) -> Callable[[], int]:
    """Play the same worlds under the same faults to the same ends, and ask nobody."""
    outcomes = _outcomes(scenario)

    def run() -> int:
        found = registry.get(scenario)
        for outcome in outcomes:
            ties = draws_ties(outcome.seed)
            lab = found.build(outcome.seed, parameters=dict(found.explored_with), tie_is_choice=ties)
            for fault in faults_of(outcome.plan):
                lab.world.run_to(fault.at_us)
                lab.act(fault.verb, **fault.arguments)
            lab.world.run_to(round(outcome.now_ms * 1_000))
        return len(outcomes)

    return run


def worlds_a_minute() -> list[Figure]:
    """How many worlds are judged in a minute of one core, beside those that are only played."""
    figures = []
    for scenario in SEEDS:
        rates = operations_per_second({"judged": partial(judged, scenario), "played": partial(played, scenario)})
        name = f"{scenario}: worlds judged / only played"
        judged_rate, played_rate = 60 * rates["judged"], 60 * rates["played"]
        figures.append(figure(name, judged_rate, "worlds/min", versus=played_rate, aim=AIM, better="higher"))
    return figures
