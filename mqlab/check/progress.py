"""How far a student is: the last line of each lab, and a certificate that a marker can make again.

    how_far(student_id, "05", bets=9)

A notebook holds no secret, so the certificate proves nothing by itself. It says what was claimed, and of which text:
its digest is made of the student's id, the lab, what the checks have said and the text of the solutions. Who has the
notebook can work it out again: `mqlab grade` does so, plays the checks again, and says whether it holds.
"""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from inspect import unwrap
from types import FunctionType
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from mqlab.check import show
from mqlab.check.bets import Bet, notebook_bets
from mqlab.check.registry import PUBLIC_SEEDS, LabCheck, checks_of, noted_checks
from mqlab.check.seeds import whose

DIGITS = 32
"""The hexadecimal digits of a digest in a certificate."""
CERTIFICATE = re.compile(
    r"mqlab-certificate 1 lab=(?P<lab>\d\d) student=(?P<student>\S{1,300}) bets=(?P<made>\d{1,3})/(?P<bets>\d{1,3})"
    rf" checks=(?P<checks>[\w,:/-]{{0,2000}}) digest=(?P<digest>[0-9a-f]{{{DIGITS}}})"
)
_OF_A_CHECK = re.compile(r"([\w-]+):(\d{1,9})/(\d{1,9})")


class Played(NamedTuple):
    """How a check went over the public seeds."""

    well: int
    of: int

    @property
    def passed(self) -> bool:
        """Whether all went well."""
        return self.well == self.of > 0


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says."""

    lab: str
    student: str
    made: int
    """How many bets were made."""
    bets: int
    checks: Mapping[str, Played]
    """exercise -> how its check went; those that were never played are left out."""
    digest: str

    def __str__(self) -> str:
        checks = ",".join(f"{name}:{played.well}/{played.of}" for name, played in sorted(self.checks.items()))
        return (
            f"mqlab-certificate 1 lab={self.lab} student={quote(self.student, safe='@')} bets={self.made}/{self.bets}"
            f" checks={checks} digest={self.digest}"
        )


def certificate(
    lab: str, student: str, made: int, bets: int, checks: Mapping[str, Played], texts: Sequence[str]
) -> Certificate:
    """The certificate of these facts; `texts` are the cells of the solutions, in the order of the lab's checks."""
    claims = [lab, student, made, bets, sorted((name, *played) for name, played in checks.items())]
    stripped = ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in texts]
    digest = sha256(json.dumps([claims, stripped], ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:DIGITS]
    return Certificate(lab, student, made, bets, dict(checks), digest)


def read_certificate(text: str) -> Certificate | None:
    """The last certificate in a text; None when there is none."""
    found = None
    for found in CERTIFICATE.finditer(text):  # noqa: B007  the last one counts
        pass
    if found is None:
        return None
    checks = {name: Played(int(well), int(of)) for name, well, of in _OF_A_CHECK.findall(found["checks"])}
    return Certificate(
        found["lab"], unquote(found["student"]), int(found["made"]), int(found["bets"]), checks, found["digest"]
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far somebody is with a lab."""

    certificate: Certificate
    known: tuple[LabCheck, ...]
    """All checks of the lab."""
    not_run: frozenset[str] = frozenset()
    """The names of those whose cells have not run since the kernel was started."""

    @property
    def headline(self) -> str:
        """The progress line: `lab 05: 7 of 9 bets, 3 of 4 checks passed over 50 seeds, 5 of 9 points`."""
        told = self.certificate
        passed = [check for check in self.known if self._of(check).passed]
        points = f"{sum(check.points for check in passed)} of {sum(check.points for check in self.known)} points"
        checks = f"{len(passed)} of {len(self.known)} checks passed over {len(PUBLIC_SEEDS)} seeds"
        return f"lab {told.lab}: {told.made} of {told.bets} bets, {checks}, {points}"

    @property
    def left(self) -> list[str]:
        """What is left, one line for each check."""
        lines = []
        for check in self.known:
            played = self._of(check)
            if check.name in self.not_run:
                lines.append(f"{check.name}: not run since the kernel was started")
            elif not played.of:
                lines.append(f"{check.name}: not solved yet")
            elif not played.passed:
                lines.append(f"{check.name}: {played.well} of {played.of} seeds went well")
        return lines

    @property
    def line(self) -> str:
        """The certificate as text; "" while no check has passed."""
        return str(self.certificate) if any(played.passed for played in self.certificate.checks.values()) else ""

    def _of(self, check: LabCheck) -> Played:
        return self.certificate.checks.get(_exercise(check.name), Played(0, 0))

    def __repr__(self) -> str:
        return "\n".join([self.headline, *(f"  left: {line}" for line in self.left), *filter(None, [self.line])])

    def _repr_html_(self) -> str:
        return show.box(
            show.AMBER if self.left else show.GREEN,
            self.headline,
            *(show.line("left:", line) for line in self.left),
            _certificate_html(self.line) if self.line else "",
        )


def _certificate_html(line: str) -> str:
    label = show.line("certificate:", "leave it in the notebook that you hand in; whoever marks it makes it again")
    return f'{label}<div style="font-family:monospace;overflow-wrap:anywhere">{escape(line)}</div>'


def how_far(student_id: str, lab: str, *, bets: int) -> Progress:
    """How far you are with the lab of that number, which asks for so many bets.

    Counted is what this notebook has run: the bets that were made, and each check as it ended the last time.
    """
    checks: dict[str, Played] = {}
    texts: list[str] = []
    known = checks_of(lab)
    for check in known:
        verdict, answers = noted_checks.get(check.name, (None, ()))
        if verdict is not None and verdict.state != "not solved yet":
            checks[_exercise(check.name)] = Played(verdict.tried - verdict.failed, verdict.tried)
            texts += [cell_of(answer) for answer in answers]
    made = min(sum(_was_made(asked) for asked in notebook_bets.asked.values()), bets)
    not_run = frozenset(check.name for check in known) - noted_checks.keys()
    return Progress(certificate(lab, whose(student_id), made, bets, checks, texts), tuple(known), not_run)


def _exercise(check: str) -> str:
    return check.partition("/")[2]


def _was_made(asked: Bet) -> bool:
    return asked.answer is not None


def cell_of(answer: Any) -> str:
    """The text of the cell that defines a function or class; "" when nobody knows it any more."""
    return next((text for _, text in _written(answer)), "")


def newest_cell_of(answer: Any) -> str:
    """The text of the cell that has defined a function or class of that name last."""
    for function, text in _written(answer):
        newest = function.__globals__.get(getattr(answer, "__name__", ""), answer)
        return cell_of(newest) or text
    return ""


def _written(answer: Any) -> Iterator[tuple[FunctionType, str]]:
    """The functions of which it is made, itself or a class's methods, each with the text of its cell."""
    for part in vars(answer).values() if isinstance(answer, type) else (answer,):
        function = unwrap(getattr(part, "__func__", None) or getattr(part, "fget", None) or part)
        if isinstance(function, FunctionType):
            text = "".join(linecache.getlines(function.__code__.co_filename))
            if text:
                yield function, text
