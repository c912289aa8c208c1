"""Many seeds: one trial after the other, in this process or in several, with the outcomes in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore.fault_plan import Plan
from mqlab.explore.seen import seen_in
from mqlab.explore.shrink import shrink
from mqlab.explore.trial import Outcome, Trial

SEEDS_PER_TURN = 5
TURNS_AHEAD = 4
"""So many turns for each process may be under way, or wait behind one that takes longer."""

INTERRUPTED = 130
"""The status of a process that Ctrl-C has ended, as shells say it."""


class Task(NamedTuple):
    """What one process is asked to play: a scenario with its parameters, from one seed, under a plan or a drawn one.

    `look` says whether the result shall tell what the world has shown.
    """

    scenario: str
    seed: int
    parameters: dict[str, Any]
    plan: Plan | None
    look: bool = False


class Result(NamedTuple):
    """The outcome of a seed, when it failed that of the shortest plan that fails, too, and what the world has shown."""

    outcome: Outcome
    shortest: Outcome | None
    seen: frozenset[str] = frozenset()


def play_task(task: Task) -> Result:
    """Play one seed; a failure under faults that were drawn is shrunk."""
    trial = Trial(task.scenario, task.seed, task.parameters, task.plan)
    outcome = trial.outcome
    seen = seen_in(trial, task.parameters) if task.look else frozenset()
    return Result(outcome, None if outcome.passed else shrink(task.scenario, outcome, task.parameters), seen)


def play_seeds(
    scenario: str,
    seeds: Iterable[int],
    parameters: dict[str, Any] | None = None,
    plan: Plan | None = None,
    *,
    jobs: int = 1,
    look: bool = False,
) -> Iterator[Result]:
    """Play a scenario from each of these seeds, in `jobs` processes; the results come in the order of the seeds.

    With `look` each result says what its world has shown. With several processes the scenario must be one of the
    registry that comes with mqlab: a new process knows no cells. LearnerError when a process is ended from outside.
    """
    tasks = [Task(scenario, seed, parameters or {}, plan, look) for seed in seeds]
    if jobs <= 1 or len(tasks) <= SEEDS_PER_TURN:
        yield from map(play_task, tasks)
        return
    yield from _in_processes([tasks[n : n + SEEDS_PER_TURN] for n in range(0, len(tasks), SEEDS_PER_TURN)], jobs)


def _in_processes(turns: list[list[Task]], jobs: int) -> Iterator[Result]:
    """Play turn after turn; each process has one to go on with, so that a few at most are played in vain."""
    import multiprocessing
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    under_way: deque[tuple[list[Task], Future[list[Result]]]] = deque()
    pool = ProcessPoolExecutor(min(jobs, len(turns)), multiprocessing.get_context("spawn"), _end_at_interrupt)
    try:
        for turn in turns:
            under_way.append((turn, pool.submit(_play_turn, turn)))
            if len(under_way) >= TURNS_AHEAD * jobs:
                yield from under_way[0][1].result()
                under_way.popleft()
        while under_way:
            yield from under_way[0][1].result()
            under_way.popleft()
    except BrokenProcessPool:
        raise _ended(under_way[0][0][0].seed) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _play_turn(turn: list[Task]) -> list[Result]:
    return [play_task(task) for task in turn]


def _end_at_interrupt() -> None:
    """Let Ctrl-C, which goes to all processes of a terminal, end this one at once and without a word.

    The process that has asked for worlds says what there is to say.
    """
    import os
    import signal

    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))


def _ended(seed: int) -> LearnerError:
    return LearnerError(
        f"a process that played worlds was ended from outside; seed {seed} and those behind it were not finished",
        "start the same command again (with --corpus it goes on where it stopped); when that happens again, memory may "
        "be short: give fewer --jobs",
    )
