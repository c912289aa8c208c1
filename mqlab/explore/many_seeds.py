"""Many seeds: one trial after the other, in this process or in several, with the outcomes in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mqlab.explore.fault_plan import Plan
from mqlab.explore.shrink import shrink
from mqlab.explore.trial import Outcome, Trial

SEEDS_PER_TURN = 5


class Task(NamedTuple):
    """What one process is asked to play: a scenario with its parameters, from one seed, under a plan or a drawn one."""

    scenario: str
    seed: int
    parameters: dict[str, Any]
    plan: Plan | None


class Result(NamedTuple):
    """The outcome of a seed, and when it failed that of the shortest plan that fails, too."""

    outcome: Outcome
    shortest: Outcome | None


def play_task(task: Task) -> Result:
    """Play one seed; a failure under faults that were drawn is shrunk."""
    outcome = Trial(task.scenario, task.seed, task.parameters, task.plan).outcome
    return Result(outcome, None if outcome.passed else shrink(task.scenario, outcome, task.parameters))


def play_seeds(
    scenario: str,
    seeds: Iterable[int],
    parameters: dict[str, Any] | None = None,
    plan: Plan | None = None,
    *,
    jobs: int = 1,
) -> Iterator[Result]:
    """Play a scenario from each of these seeds, in `jobs` processes; the results come in the order of the seeds.

    With several processes the scenario must be one of the registry that comes with mqlab: a new process knows no cells.
    """
    tasks = [Task(scenario, seed, parameters or {}, plan) for seed in seeds]
    if jobs <= 1 or len(tasks) <= SEEDS_PER_TURN:
        yield from map(play_task, tasks)
        return
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(min(jobs, len(tasks))) as pool:
        yield from pool.imap(play_task, tasks, chunksize=SEEDS_PER_TURN)
