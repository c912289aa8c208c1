"""Checks by name: each judges a student's function with one seed, and is played over many.

    @lab_check("02/read-entry", points=2)
    def read_entry(answer, *, seed):
        '''Entries of a consume queue are read back as they were written.'''
        ...
        return Wrong(f"offset {want}, yours says {got}", trace=...)      # or None: this seed went well

The checks of a lab live in `mqlab/labs/checks/<lab>.py`, apart from the notebook, so that whoever marks it imports them
without it.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mqlab.check.failure import Failure
from mqlab.check.found import Right, Wrong
from mqlab.check.given import NoAnswer, taken
from mqlab.check.patience import PATIENCE_S, CodeIsGone, EndlessLoop, Patience
from mqlab.check.verdict import Verdict
from mqlab.errors import LearnerError, MqlabError, SimulationError
from mqlab.lab import noting_labs

PUBLIC_SEEDS = range(1, 51)
GRADED = "MQLAB_GRADED"
"""The environment variable that says that a notebook is run to be marked."""
_FRAMES_SHOWN = 5
ENOUGH_FAILURES, ENOUGH_MORE = 3, 9
"""In a notebook so many failures are enough to tell what is wrong, or so many seeds more behind the first of them."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where Python says in whose place of the memory an object lies: other digits each time."""


class NotSolvedYet(LearnerError):
    """This exercise is still to be written: put your own lines where this is raised."""

    def __init__(self) -> None:
        super().__init__("this exercise is not solved yet", "write your code in place of `raise NotSolvedYet`")


class CheckFailed(MqlabError):
    """Where a notebook is marked (`MQLAB_GRADED` is set), a check that does not pass raises, as nbgrader expects."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(repr(verdict))
        self.verdict = verdict


Judge = Callable[..., Right | Wrong | None]
"""judge(*answers, seed=...): None or `Right` when that seed went well, else `Wrong`."""


@dataclass(frozen=True, slots=True)
class LabCheck:
    """A judge with a name and points."""

    name: str
    points: int
    judge: Judge
    together: int = 1
    """How many seeds it judges with one job of Spark, from n * together + 1 on: one more of them costs next to nothing,
    one elsewhere as much as all."""

    @property
    def tries(self) -> str:
        """What is tried, in one sentence: the first line of the judge's docstring."""
        return (self.judge.__doc__ or "").strip().partition("\n")[0]

    def play(
        self,
        *answers: Any,
        seeds: Iterable[int] = PUBLIC_SEEDS,
        patience_s: float = PATIENCE_S,
        failures_wanted: int | None = None,
        more_wanted: int | None = None,
    ) -> Verdict:
        """Judge the answers with every seed. What they print meanwhile is not shown.

        An exception in the student's code is a finding like any other. `NotSolvedYet` and code that does not come to
        an end (`patience_s` of processor time for a seed) end the play at once; so do `failures_wanted` failures, and
        `more_wanted` seeds behind the first failure.
        """
        played, left = 0, more_wanted
        failures: list[tuple[int, Wrong]] = []
        worlds: set[int] = set()
        """The failed seeds whose worlds can be opened."""
        figures: dict[str, dict[str, float]] = {}
        for seed in seeds:
            try:
                with noting_labs() as labs:
                    found = self.judge_one(answers, seed, patience_s)
            except NotSolvedYet:
                return Verdict(name=self.name, tries=self.tries, points=self.points, state="not solved yet", tried=0)
            except EndlessLoop as endless:
                when = str(endless) or f"it was broken off after {patience_s:g} s of computing"
                look = "Look for a loop whose condition stays true, or for a wait without an end"
                told = f"your code does not come to an end: {when}. {look}"
                failures.append((seed, Wrong(told, students_frames(endless))))
                played += 1
                break
            played += 1
            if isinstance(found, Right):
                _add_up(figures, found.figures)
            if isinstance(found, Wrong):
                failures.append((seed, found))
                if labs:
                    worlds.add(seed)
                if len(failures) == failures_wanted:
                    break
            if failures and left is not None:
                left -= 1
                if left < 0:
                    break
        if not failures:
            return Verdict(
                name=self.name, tries=self.tries, points=self.points, state="passed", tried=played, well=played,
                figures=figures,
            )  # fmt: skip
        failed_seed, shortest = min(failures, key=lambda failure: len(failure[1].trace.splitlines()))
        return Verdict(
            name=self.name,
            tries=self.tries,
            points=self.points,
            state="wrong",
            tried=played,
            failed=len(failures),
            well=played - len(failures) + sum(wrong.share for _, wrong in failures),
            cases=shortest.cases,
            failed_seed=failed_seed,
            explanation=_ADDRESS.sub("", shortest.explanation),
            trace=_ADDRESS.sub("", shortest.trace),
            failure=Failure(self, failed_seed, answers),
            has_world=failed_seed in worlds or shortest.world is not None,
        )

    def judge_one(
        self, answers: tuple[Any, ...], seed: int, patience_s: float = PATIENCE_S
    ) -> Right | Wrong | None:
        """Judge the answers with one seed. NotSolvedYet or EndlessLoop where there is nothing to be judged."""
        patience = Patience(patience_s)
        try:
            # In this order: what gives the output back shall not be broken off.
            with redirect_stdout(io.StringIO()), patience:
                return self.judge(*map(taken, answers), seed=seed)
        except Exception as error:
            if patience.ran_out:
                raise EndlessLoop() from error
            if _was_not_solved(error):
                raise NotSolvedYet() from error
            first = _what_a_task_died_of(error)
            return Wrong(_told(first), students_frames(first))


def _told(error: Exception) -> str:
    if isinstance(error, NoAnswer):
        return error.told
    return str(error) if isinstance(error, CodeIsGone) else f"your code raised {type(error).__name__}: {error}"


def _add_up(figures: dict[str, dict[str, float]], more: Mapping[str, Mapping[str, float]]) -> None:
    for what, counts in more.items():
        for whose, count in counts.items():
            of_what = figures.setdefault(what, {})
            of_what[whose] = of_what.get(whose, 0) + count


def _was_not_solved(error: BaseException) -> bool:
    """Whether the exception is NotSolvedYet, or stands in for one that stopped a world."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, NotSolvedYet):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _what_a_task_died_of(error: Exception) -> Exception:
    """What stopped a world, where that was an exception in one of its tasks; any other one is itself."""
    cause = error.__cause__
    return cause if isinstance(error, SimulationError) and isinstance(cause, Exception) else error


def students_frames(error: BaseException) -> str:
    """Where the exception first came from, in the student's own lines; file names differ between machines.

    An exception from another process says so itself: `students_frames`.
    """
    first: BaseException = error
    while first.__cause__ is not None:
        first = first.__cause__
    if hasattr(first, "students_frames"):
        return str(first.students_frames)
    frames = [
        f"in {frame.f_code.co_name}, line {number}"
        for frame, number in traceback.walk_tb(first.__traceback__)
        if _is_students(str(frame.f_globals.get("__name__", "")))
    ]
    return "\n".join(frames[-_FRAMES_SHOWN:])


def _is_students(module: str) -> bool:
    top = module.partition(".")[0]
    return top != "mqlab" and top not in sys.stdlib_module_names


_checks: dict[str, LabCheck] = {}
noted_checks: dict[str, tuple[Verdict, tuple[Any, ...]]] = {}
"""How each check that this process has played over the public seeds ended the last time, and what it was given."""


def lab_check(name: str, *, points: int, together: int = 1) -> Callable[[Judge], LabCheck]:
    """Make a judge the check of that name ("02/read-entry": lab number, then exercise).

    The first line of the judge's docstring says what is tried, and is shown with every verdict. `together` is the
    number of seeds that one job of Spark judges, where it is one (`LabCheck.together`).
    """
    lab, slash, exercise = name.partition("/")
    if not (lab.isdigit() and slash and exercise):
        raise LearnerError(f"{name!r} is no name of a check", 'name it "NN/exercise", for example "02/read-entry"')

    def register(judge: Judge) -> LabCheck:
        if not (judge.__doc__ or "").strip():
            raise LearnerError(f"the check {name!r} does not say what it tries", "give its function a docstring")
        _checks[name] = LabCheck(name, points, judge, together)
        return _checks[name]

    return register


def checks_of(lab: str) -> list[LabCheck]:
    """The checks of the lab with that number ("02"), in the order in which they are written."""
    _load(lab)
    return [check for name, check in _checks.items() if name.startswith(f"{lab}/")]


def find_check(name: str) -> LabCheck:
    """The check of that name; raises LearnerError with the name that was meant, or with those that there are."""
    if not isinstance(name, str):
        raise LearnerError(f"{name!r} is no name of a check", 'write check("02/read-entry", your_function)')
    known = checks_of(name.partition("/")[0])
    if name not in _checks:
        _load("")
        meant = get_close_matches(name, _checks, n=1)
        names = ", ".join(check.name for check in known) or ", ".join(sorted(_checks))
        hint = f"did you mean {meant[0]!r}?" if meant else f"checks that there are: {names}"
        raise LearnerError(f"there is no check {name!r}", hint)
    return _checks[name]


def _load(lab: str) -> None:
    """Import the modules of checks whose name begins with the lab's number; all of them when there is none."""
    package = importlib.import_module("mqlab.labs.checks")
    for module in pkgutil.iter_modules(package.__path__):
        if not lab or module.name.startswith(f"{lab}_"):
            importlib.import_module(f"mqlab.labs.checks.{module.name}")


def check(name: str, *answers: Any, seeds: Iterable[int] = PUBLIC_SEEDS) -> Verdict:
    """Play your function over public seeds and say how it went: `check("02/read-entry", read_entry)`.

    Give the function (or class) itself, without brackets behind it. When it is wrong, the play ends as soon as enough
    is known to say why.
    """
    found = find_check(name)
    for answer in answers:
        if not callable(answer):
            raise LearnerError(
                f"the check {name!r} wants your function itself, and got {type(answer).__name__}",
                f'write check("{name}", your_function), without brackets behind the function\'s name',
            )
    verdict = found.play(*answers, seeds=seeds, failures_wanted=ENOUGH_FAILURES, more_wanted=ENOUGH_MORE)
    if seeds is PUBLIC_SEEDS:
        noted_checks[name] = verdict, answers
    if os.environ.get(GRADED) and not verdict.passed:
        raise CheckFailed(verdict)
    return verdict
