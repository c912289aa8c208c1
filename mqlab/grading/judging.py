"""The judge of one submission: each check over public and hidden seeds, with the solution in another process."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Self

from mqlab.check import PUBLIC_SEEDS, LabCheck, NotSolvedYet, Verdict, find_check
from mqlab.check.patience import MARKING_PATIENCE_S, EndlessLoop
from mqlab.grading.confine import Limits
from mqlab.grading.printable import printable
from mqlab.grading.students_process import ASLEEP_S, StudentsProcess
from mqlab.grading.submission import Submission, defined_instead
from mqlab.grading.wire_errors import PeerLost
from mqlab.labs.rules import answers_of
from mqlab.labs.source import LabSource, text_argument

HIDDEN_SEEDS = 20
JOB_TIMES = 5
"""How much more patience one answer has that is a job of Spark for many seeds, the start of a Java included."""
LEAST_SHARE = 0.5
"""Of the seeds that must go well for any points at all: a number that is right now and then is no solution."""
FIRST_HIDDEN, LAST_HIDDEN = 1_000, 2**31
"""Hidden seeds are far from the public ones."""


@dataclass(slots=True)
class Mark:
    """What one check gave."""

    check: str
    points: float
    most: int
    reason: str
    """Why these points: a sentence."""
    public: tuple[int, int]
    """How many public seeds went well, and of how many."""
    hidden: tuple[int, int]
    shares: tuple[float, float] = (0.0, 0.0)
    """The share of the public and of the hidden seeds, where of a seed with several cases its own share counts."""
    functions: list[str] = field(default_factory=list)
    """What the check was given."""
    failing_seed: int | None = None
    """The seed with the shortest story, public if one failed."""
    story: str = ""
    has_world: bool = False
    """Whether the failing seed has a world that can be opened."""

    def as_json(self) -> dict[str, Any]:
        """The mark as it is written to `result.json`."""
        return asdict(self)


def hidden_seeds(key: bytes, student: str, check: str, count: int = HIDDEN_SEEDS, together: int = 1) -> list[int]:
    """The seeds that a student does not know: from the course key, the id and the check, the same on every machine.

    Of a check that judges seeds `together` they are neighbours, as many as there are: one job judges them.
    """

    def drawn(number: int | str, first: int, last: int) -> int:
        digest = hmac.new(key, f"{check}/{student.strip().lower()}/{number}".encode(), sha256).digest()
        return first + int.from_bytes(digest[:8], "big") % (last - first)

    if together == 1:
        return [drawn(number, FIRST_HIDDEN, LAST_HIDDEN) for number in range(count)]
    seeds: list[int] = []
    while len(seeds) < count:
        block = drawn(len(seeds), FIRST_HIDDEN // together + 1, LAST_HIDDEN // together)
        of_block = range(block * together + 1, (block + 1) * together + 1)
        chosen = sorted(of_block, key=lambda seed: drawn(f"seed {seed}", 0, LAST_HIDDEN))
        seeds += sorted(chosen[: count - len(seeds)])
    return seeds


def checks_in(lab: LabSource) -> Iterator[tuple[str, list[str]]]:
    """The name of each check of a lab, and of the functions that it is given."""
    for cell in lab.tagged("check"):
        for call in cell.calls("check"):
            yield text_argument(call) or "", list(answers_of(call))


def points_of(most: int, *shares: float) -> float:
    """What a check gives, to a hundredth: its points times the smallest of the shares (of the public and of the hidden
    seeds); nothing below `LEAST_SHARE`.
    """
    share = min(shares, default=0)
    return round(most * share, 2) if share >= LEAST_SHARE else 0


def share_of(verdicts: Sequence[Verdict]) -> float | None:
    """The mean share of seeds that were played one by one; None where there were none."""
    return sum(verdict.well for verdict in verdicts) / len(verdicts) if verdicts else None


_STUB = "not solved: the stub is still there"


class _Respondent:
    """Answers for one submission, check after check: one process, and another one after a check that failed."""

    def __init__(
        self, cells: list[str], limits: Limits, patient: int, until_s: float, missing: Callable[[str], str]
    ) -> None:
        """`patient`: how many times as long as elsewhere an answer may take. `until_s`: when all of it ends.

        `missing`: what to say of a name that no cell defines.
        """
        self._cells = cells
        self._missing = missing
        self._limits = limits
        self._patient = patient
        self._until_s = until_s
        self._process: StudentsProcess | None = None
        self._lost = ""
        """Why there is no process: that ends each time in which the cells are run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.begin_anew()

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or was broken off."""
        return self._process is None or self._process.is_over

    def answers(self, functions: list[str]) -> tuple[Any, ...] | str:
        """The functions of those names, or in words why there are none."""
        if self._lost:
            return self._lost
        try:
            return self._running().answers(functions)
        except NotSolvedYet:
            return _STUB
        except EndlessLoop:
            self._lost = "the cells of the exercises do not come to an end when they are run"
            return self._lost
        except KeyError as missing:
            return self._missing(str(missing.args[0]))
        except Exception as error:  # noqa: BLE001  a student's cell may raise anything
            said = str(error).partition("\n")[0]
            told = f"the cells of the exercises can't be run: {type(error).__name__}: {said}"
            self._lost = told if isinstance(error, PeerLost) else ""
            return told

    def _running(self) -> StudentsProcess:
        if self._process is not None and (self._process.is_over or self._process.used_s() > self._limits.cpu_s / 10):
            self.begin_anew()
        if self._process is None:
            begun = StudentsProcess(
                self._cells,
                limits=self._limits,
                patience_s=self._patient * MARKING_PATIENCE_S,
                # Whoever sleeps in one check shall not spend the time of all.
                asleep_s=min(self._patient * ASLEEP_S, self._limits.wall_s / 2),
                until_s=self._until_s,
            )
            self._process = begun.__enter__()
        return self._process

    def begin_anew(self) -> None:
        """End the process; the next question starts another one."""
        process, self._process = self._process, None
        if process is not None:
            process.__exit__(None, None, None)


@dataclass(slots=True)
class Judge:
    """Judges submissions of one lab; `key` is the course's secret."""

    lab: LabSource
    key: bytes
    public: Sequence[int] = field(default_factory=lambda: list(PUBLIC_SEEDS))
    hidden: int = HIDDEN_SEEDS
    limits: Limits = field(default_factory=Limits)

    def mark(self, submission: Submission, only: Sequence[str] = ()) -> Iterator[Mark]:
        """One mark for each check of the lab, or for `only` these, in the lab's order."""
        patient = JOB_TIMES if self.lab.needs_spark else 1
        until_s = time.monotonic() + self.limits.wall_s

        def missing(name: str) -> str:
            return defined_instead(submission, self.lab, name) or f"no cell of an exercise defines {name}"

        cells = list(submission.cells.values())
        with _Respondent(cells, self.limits, patient, until_s, missing) as respondent:
            for name, functions in checks_in(self.lab):
                if only and name not in only:
                    continue
                mark = self._mark(find_check(name), functions, submission, respondent, until_s)
                if mark.points < mark.most:
                    respondent.begin_anew()
                yield mark

    def _mark(
        self, check: LabCheck, functions: list[str], submission: Submission, respondent: _Respondent, until_s: float
    ) -> Mark:
        hidden = hidden_seeds(self.key, submission.student, check.name, self.hidden, check.together)
        seeds = [*self.public, *hidden]
        if submission.unreadable:
            return _nothing(check, submission.unreadable, len(self.public), self.hidden)
        verdicts = self._played(check, functions, respondent, seeds, until_s)
        none = len(self.public), self.hidden
        mark = _nothing(check, verdicts, *none) if isinstance(verdicts, str) else self._counted(check, verdicts)
        mark.functions = functions
        return mark

    def _played(
        self, check: LabCheck, functions: list[str], respondent: _Respondent, seeds: list[int], until_s: float
    ) -> list[tuple[int, Verdict]] | str:
        """A verdict for each seed that was played, or why none could be."""
        if time.monotonic() > until_s:
            return f"{self._too_long} before this check began"
        answers = respondent.answers(functions)
        if isinstance(answers, str):
            return answers
        verdicts: list[tuple[int, Verdict]] = []
        for seed in seeds:
            verdict = _cut(_one_played(check, answers, seed, min(MARKING_PATIENCE_S, until_s - time.monotonic())))
            if verdict.state == "not solved yet":
                return _STUB
            verdicts.append((seed, verdict))
            if respondent.is_over or time.monotonic() > until_s:
                # What was not played did not go well.
                why = verdict.explanation or f"{self._too_long}; what was left did not count"
                late = replace(verdict, state="wrong", well=0, explanation=why)
                verdicts += [(left, late) for left in seeds[len(verdicts) :]]
                break
        return verdicts

    @property
    def _too_long(self) -> str:
        return f"the {self.limits.wall_s:g} s for all checks were over"

    def _counted(self, check: LabCheck, verdicts: list[tuple[int, Verdict]]) -> Mark:
        known = set(self.public)
        of_public = [verdict for seed, verdict in verdicts if seed in known]
        of_hidden = [verdict for seed, verdict in verdicts if seed not in known]
        public, hidden = ((sum(each.passed for each in played), len(played)) for played in (of_public, of_hidden))
        shares = [share_of(of_public), share_of(of_hidden)]
        points = points_of(check.points, *(share for share in shares if share is not None))
        failed = [(seed, verdict) for seed, verdict in verdicts if not verdict.passed]
        mark = Mark(check.name, points, check.points, "all seeds went well", public, hidden)
        mark.shares = (round(shares[0] or 0, 4), round(shares[1] or 0, 4))
        if failed:
            seed, shortest = min(failed, key=lambda found: len(found[1].trace.splitlines()))
            mark.reason, mark.failing_seed, mark.story = shortest.explanation, seed, shortest.trace
            mark.has_world = shortest.has_world
        return mark


def nothing_for(lab: LabSource, reason: str, hidden: int = HIDDEN_SEEDS) -> list[Mark]:
    """Marks of 0 for all checks of a lab: nothing could be judged."""
    return [_nothing(find_check(name), reason, len(PUBLIC_SEEDS), hidden) for name, _ in checks_in(lab)]


def _nothing(check: LabCheck, reason: str, public: int, hidden: int) -> Mark:
    return Mark(check.name, 0, check.points, reason, (0, public), (0, hidden))


MOST_REASON, MOST_STORY = 2_000, 20_000
"""The characters of a verdict that are kept: what a solution gives may be long, and is told for many seeds."""


_COROUTINE = re.compile(r"<coroutine object Peer\.awaited at 0x[0-9a-fA-F]+>")
"""What stands for a coroutine of a solution: an address would be another one each time."""


def _cut(verdict: Verdict) -> Verdict:
    """The verdict without what nobody reads, and without what holds the judge's world."""
    explanation = printable(_COROUTINE.sub("<coroutine>", verdict.explanation), lines=True, most=MOST_REASON)
    return replace(
        verdict, explanation=explanation, trace=printable(verdict.trace, lines=True, most=MOST_STORY), failure=None
    )


def _one_played(check: LabCheck, answers: tuple[Any, ...], seed: int, patience_s: float) -> Verdict:
    """A verdict for one seed. What happens to a check that a solution gives something odd is told there, too."""
    try:
        return check.play(*answers, seeds=[seed], patience_s=patience_s)
    except Exception as error:  # noqa: BLE001  a check that fails has found something
        why = f"the check could not be finished with what your code gave: {type(error).__name__}: {error}"
        return Verdict(
            name=check.name, tries=check.tries, points=check.points, state="wrong", tried=1, failed=1,
            failed_seed=seed, explanation=why,
        )  # fmt: skip
