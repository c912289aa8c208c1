"""Walking through the museum: one world and its verdict, the first seed that breaks a rule, and the smallest load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.explore.rule import Case
from mqlab.museum.exhibits import Exhibit, exhibit
from mqlab.museum.rules import MuseumRule, is_about
from mqlab.progress import counted
from mqlab.scenarios import registry
from mqlab.scenarios.museum import BROKEN
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.lab import Lab

LOOK_EACH_S = 5
"""A world that has broken its rule is not played to its end: one looks so often."""
SEEDS_PER_TURN = 5


class Visit(NamedTuple):
    """What became of one world. It is plain data, so it travels between processes.

    `reason` says what was wrong, "" when the rule held; `story` are the events about it, as text; `parameters` are
    those of the scenario that were given.
    """

    number: str
    seed: int
    code: str
    reason: str
    now_ms: float
    story: tuple[str, ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def holds(self) -> bool:
        """Did the rule hold?"""
        return not self.reason


def visit(one: Exhibit, seed: int, code: str = BROKEN, **parameters: Any) -> Visit:
    """Play an exhibit's world from a seed, with the broken or the fixed code, until its rule is broken or it ends."""
    scenario = registry.get(one.scenario)
    lab = scenario.build(seed, parameters={"code": code, **parameters})
    found = watch(lab, (one.rule,), scenario.seconds)
    reason, story = (found.reason, found.story) if found is not None else ("", ())
    return Visit(one.number, seed, code, reason, lab.now_ms, story, tuple(parameters.items()))


class Found(NamedTuple):
    """A rule that was broken: what must hold, what was wrong, and the events about it, as text."""

    invariant: str
    reason: str
    story: tuple[str, ...]


def watch(lab: Lab, kinds: Sequence[type[MuseumRule]], seconds: float) -> Found | None:
    """Play a room for so long, or until one of the rules is broken; the first that was, None if all hold."""
    watching = [kind(Case(lab)) for kind in kinds]
    for row in lab.history.rows():
        for rule in watching:
            rule(row)
    for rule in watching:
        lab.world.hooks.attach(rule)
    until_ms = lab.now_ms + seconds * 1_000
    while lab.now_ms < until_ms and not any(rule.violations for rule in watching):
        lab.run_for(ms=min(LOOK_EACH_S * 1_000, until_ms - lab.now_ms))
    for rule in watching:
        lab.world.hooks.detach(rule)
    if not any(rule.violations for rule in watching):
        for rule in watching:
            rule.case.ledger.last = lab.history.row(len(lab.history) - 1)
            rule.at_end()
    for rule in watching:
        if rule.violations:
            breach = rule.violations[0]
            story = tuple(str(record) for record in story_of(lab.history.rows(), breach.record, rule.tells))
            return Found(rule.rule, breach.reason, story)
    return None


def story_of(
    rows: Iterable[Any], breach: Record, tells: Callable[[Record, Record], bool] = is_about
) -> list[Record]:
    """The events that tell of a breach, in order, up to it: those about its batch, unless its rule says otherwise."""
    told = [record for record in map(Record, rows) if record.at <= breach.at and tells(record, breach)]
    return told or [breach]


# -- seeds ----------------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One world to visit, for another process."""

    number: str
    seed: int
    code: str


def play_task(task: Task) -> Visit:
    """Visit it."""
    return visit(exhibit(task.number), task.seed, task.code)._replace(story=())


def visits(one: Exhibit, seeds: Iterable[int], code: str = BROKEN, *, jobs: int = 1) -> Iterator[Visit]:
    """Visit an exhibit from each of these seeds, in `jobs` processes; in the order of the seeds."""
    tasks = [Task(one.number, seed, code) for seed in seeds]
    if jobs <= 1 or len(tasks) <= SEEDS_PER_TURN:
        yield from map(play_task, tasks)
        return
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(play_task, tasks, chunksize=SEEDS_PER_TURN)


def first_broken(one: Exhibit, seeds: Iterable[int], code: str = BROKEN) -> Visit | None:
    """The first of these seeds in which the rule is broken; None when it holds in all of them."""
    return next((seen for seed in seeds if not (seen := visit(one, seed, code)).holds), None)


def shortest(one: Exhibit, seed: int, most: int = 30) -> Visit | None:
    """The same seed with the fewest messages that still break the rule; None when 150 do not.

    Above `most` they are counted in tens.
    """
    loads = (*range(1, most + 1), *range(most + 10, 151, 10))
    for messages in counted("loads", loads, len(loads)):
        seen = visit(one, seed, BROKEN, messages=messages)
        if not seen.holds:
            return seen
    return None
