"""What a notebook says of itself: opened hints, its certificate, for whom and for which exam it was made.

None of it is believed, and none of it gives points. It is read as text, compared with what the marker finds out by
itself, and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.check import checks_of
from mqlab.check.exam import OPENED
from mqlab.check.progress import Certificate, certificate, read_certificate
from mqlab.labs.hints import HINTS, HINTS_FOR, HINTS_OPENED
from mqlab.labs.notebook import given_name
from mqlab.labs.rules import answers_of
from mqlab.labs.source import LabSource, text_argument

MOST_OUTPUT = 20_000
"""The characters of one output in which a certificate is looked for; `how_far` shows less than 3,000."""
_PASSED = re.compile(r"(?m)^(\d\d/[\w-]{1,80}): passed \(\d+ points?\)$")
"""The first line of a verdict (`Verdict.headline`)."""
MOST_TEXT = 200
"""A longer text of the metadata is cut off."""


@dataclass(slots=True)
class Claims:
    """What stands in a notebook beside its cells' texts."""

    hints: dict[str, list[int]] = field(default_factory=dict)
    """grade_id of an exercise -> the hints that were opened, as JupyterLab has noted them: [1, 2]."""
    certificate: Certificate | None = None
    made_for: str = ""
    """The student for whom the notebook was handed out; "" if that is not said."""
    passed: set[str] = field(default_factory=set)
    """The checks of which the notebook's outputs say that they were passed."""
    exam: dict[str, str] = field(default_factory=dict)
    """Of an exam: its name and code, when it was released and, as the student's machine said, opened."""


def read_claims(notebook: Mapping[str, Any], exercises: Iterable[str]) -> Claims:
    """What a notebook says of itself; anything may stand there."""
    claims = Claims()
    ours = _mapping(_mapping(notebook.get("metadata")).get("mqlab"))
    claims.made_for = _text(ours.get("student"))
    exam = _mapping(ours.get("exam"))
    claims.exam = {name: _text(exam.get(name)) for name in ("name", "code", "released") if _text(exam.get(name))}
    known = set(exercises)
    for cell in notebook["cells"]:
        if not isinstance(cell, dict):
            continue
        noted = _mapping(_mapping(cell.get("metadata")).get("mqlab"))
        exercise = _text(noted.get(HINTS_FOR))
        if cell.get("cell_type") == "markdown" and exercise in known:
            claims.hints[exercise] = sorted({*claims.hints.get(exercise, ()), *_numbers(noted.get(HINTS_OPENED))})
        for text in _shown(cell):
            claims.passed |= set(_PASSED.findall(text))
            claims.certificate = read_certificate(text) or claims.certificate
            opened = _opened(text)
            if opened and claims.exam:
                claims.exam["opened"] = opened
    return claims


def _opened(text: str) -> str:
    found = OPENED.search(text)
    return found[1] if found else ""


def _numbers(value: Any) -> list[int]:
    numbers = value if isinstance(value, list) else []
    return [number for number in numbers if type(number) is int and 1 <= number <= HINTS]


def _shown(cell: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a cell's results, as far as somebody would read them."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        text = _mapping(_mapping(output).get("data")).get("text/plain")
        if isinstance(text, list) and all(isinstance(line, str) for line in text):
            text = "".join(text)
        if isinstance(text, str) and len(text) <= MOST_OUTPUT:
            yield text


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value[:MOST_TEXT] if isinstance(value, str) else ""


Marks = Sequence[Mapping[str, Any]]
"""What the judge has said of each check, as `result.json` has it."""


def not_as_shown(claims: Claims, marks: Marks) -> list[str]:
    """The checks that the notebook shows as passed, and that were not when the judge played the same public seeds."""
    return [mark["check"] for mark in marks if mark["check"] in claims.passed and mark["public"][0] < mark["public"][1]]


def certificate_holds(
    claimed: Certificate | None, student: str, lab: LabSource, cells: Mapping[str, str], marks: Marks
) -> dict[str, Any]:
    """A certificate beside what was found: `line`, `holds` (None when there is none) and `why`, a sentence.

    `cells` are the texts of the exercises.
    """
    if claimed is None:
        return {"line": "", "holds": None, "why": "the notebook has no certificate"}
    why = _what_is_wrong(claimed, student, lab, cells, marks)
    return {"line": str(claimed), "holds": not why, "why": why or "it says what was found when it was made again"}


def _what_is_wrong(claimed: Certificate, student: str, lab: LabSource, cells: Mapping[str, str], marks: Marks) -> str:
    if claimed.lab != lab.number:
        return f"it is of lab {claimed.lab}"
    if claimed.student != student.strip().lower():
        return f"it is of {claimed.student or 'nobody'!r}, and the notebook was handed in by {student!r}"
    for mark in marks:
        exercise = mark["check"].partition("/")[2]
        said, found = claimed.checks.get(exercise), tuple(mark["public"])
        # A notebook plays no further once enough is known of a failure: then it says fewer seeds, and that some failed.
        ended_early = said is not None and said.of < found[1] and not said.passed and found[0] < found[1]
        if said is not None and tuple(said) != found and not ended_early:
            again = f"played again, {found[0]} of {found[1]} did"
            return f"it says that {said.well} of {said.of} seeds of {mark['check']} went well; {again}"
    texts = texts_of_checks(lab, cells, claimed.checks)
    anew = certificate(lab.number, claimed.student, claimed.made, claimed.bets, claimed.checks, texts)
    return "" if anew.digest == claimed.digest else "it was made of another text: a solution or the line was changed"


def texts_of_checks(lab: LabSource, cells: Mapping[str, str], exercises: Iterable[str]) -> list[str]:
    """The cells that those checks of the lab were given, in the order in which `how_far` takes them."""
    home = {name: given_name(lab, cell) or "" for cell in lab.tagged("exercise") for name in cell.definitions}
    given = {
        text_argument(call) or "": answers_of(call) for cell in lab.tagged("check") for call in cell.calls("check")
    }
    wanted = set(exercises)
    return [
        cells.get(home.get(function, ""), "")
        for check in checks_of(lab.number)
        if check.name.partition("/")[2] in wanted
        for function in given.get(check.name, ())
    ]
