"""Marks one submission and writes what came of it: `python -m mqlab.grading.marking JOB`, a process for each.

The result, a JSON object with `"end": true` as its last member, gets its name when it is whole. So one that is there is
complete, and a marker that was killed goes on with those that are not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqlab import __version__
from mqlab.check.exam import MINUTE
from mqlab.errors import LearnerError
from mqlab.grading.claims import certificate_holds, not_as_shown
from mqlab.grading.confine import Limits, die_with_parent, limits_of, see_to_confinement
from mqlab.grading.judging import HIDDEN_SEEDS, Judge, Mark, nothing_for
from mqlab.grading.outside import Unreadable, read_file
from mqlab.grading.printable import all_printable, printable
from mqlab.grading.questions import question_of
from mqlab.grading.release import exam_code
from mqlab.grading.running import NotebookRun, run_notebook
from mqlab.grading.signing import signed_mark
from mqlab.grading.submission import MOST_BYTES, Submission, other_parameters, read_submission
from mqlab.grading.truths import Shown, bet_afterwards, foreign_truths, truths_in
from mqlab.labs.source import LabSource, text_argument

RESULT, EXECUTED = "result.json", "executed.ipynb"


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be marked, and how."""

    notebook: str
    student: str
    source: str
    """The lab's source file."""
    out: str
    """The directory of the result."""
    key_file: str
    hidden: int = HIDDEN_SEEDS
    run: bool = True
    limits: Limits = field(default_factory=Limits)
    exam: str = ""
    """The exam's name; "" for a lab as usual."""

    def as_text(self) -> str:
        """As `python -m mqlab.grading.marking` takes it."""
        return json.dumps(asdict(self))


def read_key(path: str) -> bytes:
    """The course's secret. LearnerError when there is none, or when it is too short to be one."""
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        hint = f"give the course's; if it has none yet: mqlab course key {path}"
        raise LearnerError(f"the key {path} can't be read: {error.strerror}", hint) from None
    if len(key) < 16:
        raise LearnerError(f"{path} has fewer than 16 bytes", f"make a key: mqlab course key {path}")
    return key


def made_of(job: Job) -> dict[str, Any]:
    """What a result depends on: the same again, and it need not be made again."""
    try:
        digest = sha256(read_file(Path(job.notebook), MOST_BYTES)).hexdigest()
    except Unreadable as why:
        digest = str(why)
    return {
        "mqlab": __version__,
        "notebook": digest,
        "lab": sha256(Path(job.source).read_bytes()).hexdigest()[:16],
        "key": sha256(read_key(job.key_file)).hexdigest()[:16],
        "hidden_seeds": job.hidden,
        "run": job.run,
        "exam": job.exam,
        "limits": json.loads(job.limits.as_text()),
    }


def mark(job: Job, lab: LabSource) -> dict[str, Any]:
    """Run and judge one submission; the result as JSON has it, without its end mark.

    Whatever is wrong with it is told in the result: nothing is raised but LearnerError, where the marker itself lacks
    something (its key, confinement).
    """
    began = time.monotonic()
    read_key(job.key_file)
    if job.limits.confined:
        see_to_confinement()
    try:
        return _marked(job, lab, began)
    except Exception as error:  # noqa: BLE001  what nobody has thought of is a mark with its reason, too
        why = printable(f"the marker could not mark it: {type(error).__name__}: {error}", most=MOST_REASON)
        submission = Submission(Path(job.notebook), job.student, lab.name[:2], unreadable=why)
        return _result(job, lab, submission, None, nothing_for(lab, why, job.hidden), began)


MOST_REASON, MOST_TEXT = 2_000, 20_000
"""The characters of why a mark is as it is, and of any other text in a result."""


def _marked(job: Job, lab: LabSource, began: float) -> dict[str, Any]:
    out = Path(job.out)
    # A run of what was handed in before says nothing of what is handed in now.
    (out / EXECUTED).unlink(missing_ok=True)
    submission = read_submission(Path(job.notebook), job.student, lab)
    limits = job.limits.with_java() if lab.needs_spark else job.limits
    ran = None
    if job.run and not submission.unreadable:
        parameters = {**other_parameters(lab), "student_id": job.student}
        ran = run_notebook(Path(job.notebook), parameters, out / EXECUTED, limits)
    if ran is not None:
        foreign = foreign_truths(lab, Path(job.notebook), out / EXECUTED)
        if foreign:
            what = f"what it shows of {', '.join(foreign)} is not what this id gives"
            submission.remarks.append(f"the notebook was run with another id, or changed: {what}")
    judge = Judge(lab, read_key(job.key_file), hidden=job.hidden, limits=limits)
    return _result(job, lab, submission, ran, list(judge.mark(submission)), began)


def _result(
    job: Job, lab: LabSource, submission: Submission, ran: NotebookRun | None, found: Sequence[Mark], began: float
) -> dict[str, Any]:
    out, key = Path(job.out), read_key(job.key_file)
    marks = [each.as_json() for each in found]
    forged = [] if submission.unreadable else not_as_shown(submission.claims, marks)
    if forged:
        what = f"the notebook shows {', '.join(forged)} as passed, and with the solution that was handed in it is not"
        submission.remarks.append(f"{what}: the output is of another solution, or was written by hand")
    changed = datetime.fromtimestamp(submission.changed, UTC).strftime(MINUTE) if submission.changed else ""
    exam = _exam(submission, job.exam, key, changed)
    result: dict[str, Any] = {
        "student": job.student,
        "lab": lab.name,
        "made_of": made_of(job),
        "confined": job.limits.confined,
        "points": round(sum(found["points"] for found in marks), 2),
        "most": sum(found["most"] for found in marks),
        "marks": marks,
        "unreadable": submission.unreadable,
        "remarks": submission.remarks,
        "run": None if ran is None else ran._asdict(),
        "bets": _bets(submission, lab, out / EXECUTED),
        "hints": submission.claims.hints,
        "certificate": certificate_holds(submission.claims.certificate, job.student, lab, submission.cells, marks),
        "exam": exam,
        "changed": changed,
        "seconds": round(time.monotonic() - began, 2),
    }
    result = all_printable(result, MOST_TEXT)
    return {**result, "signed": signed_mark(key, result)}


def _exam(submission: Submission, name: str, key: bytes, changed: str) -> dict[str, Any]:
    """What is known of the exam: `fits` when it is the notebook of this exam; times as others say them."""
    said = submission.claims.exam
    fits = bool(name) and said.get("name") == name and said.get("code") == exam_code(key, name)
    if name and not fits:
        submission.remarks.append(f"this is no notebook of the exam {name!r}")
    if said and not name:
        submission.remarks.append(f"this is the notebook of an exam ({said.get('name', 'without a name')})")
    if not said and not name:
        return {}
    times = {"released": said.get("released", ""), "opened": said.get("opened", ""), "changed": changed}
    return {"name": name or said.get("name", ""), "fits": fits, **times}


def _bets(submission: Submission, lab: LabSource, executed: Path) -> list[dict[str, Any]]:
    """Each bet of the lab: what stands in the notebook's text; question, bet and truth as its own run has shown them.

    `told` is the bet in the form of the truth, also where its own run has not shown the truth.
    """
    shown, afterwards = truths_in(executed), bet_afterwards(submission.path)
    found = []
    for cell in lab.tagged("prediction"):
        for call in cell.calls("predict"):
            name = text_argument(call) or ""
            seen = shown.get(name, Shown("", "", ""))
            found.append(
                {
                    "bet": name,
                    "said": submission.bets.get(name),
                    "question": seen.question,
                    "told": seen.said or question_of(lab, call).told(submission.bets.get(name)) or None,
                    "truth": seen.truth or None,
                    "afterwards": name in afterwards,
                }
            )
    return found


def write_result(out: Path, result: dict[str, Any]) -> None:
    """Write a result under its name when it is whole."""
    unfinished = out / f".{RESULT}.unfinished"
    unfinished.write_text(json.dumps({**result, "end": True}, indent=1, ensure_ascii=False), encoding="utf-8")
    unfinished.replace(out / RESULT)


def read_result(out: Path) -> dict[str, Any] | None:
    """The result in that directory; None while there is none that is whole."""
    try:
        result = json.loads((out / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and result.get("end") is True else None


def main(arguments: list[str]) -> int:
    """Mark what the command line names."""
    from mqlab.labs.build import read_lab

    # A marker that goes on after a kill shall be the only one.
    die_with_parent()
    fields = json.loads(arguments[0])
    job = Job(**{**fields, "limits": limits_of(fields["limits"])})
    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    write_result(out, mark(job, read_lab(Path(job.source))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
