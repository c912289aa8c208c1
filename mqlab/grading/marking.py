"""Marks one submission and writes what came of it: `python -m mqlab.grading.marking JOB`, a process for each.

The result, a JSON object with `"end": true` as its last member, gets its name when it is whole. So one that is there is
complete, and a marker that was killed goes on with those that are not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mqlab import __version__
from mqlab.errors import LearnerError
from mqlab.grading.claims import certificate_holds, not_as_shown
from mqlab.grading.confine import Limits, die_with_parent, limits_of, see_to_confinement
from mqlab.grading.hand_in_file import OTHERWISE, notebook_of
from mqlab.grading.judging import HIDDEN_SEEDS, Judge, Mark, nothing_for
from mqlab.grading.outside import Unreadable, read_file
from mqlab.grading.printable import all_printable, printable
from mqlab.grading.pseudonyms import pseudonym, without_names
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
    shown: str = ""
    """The name that the result shows; "": the student's id."""
    words: Sequence[str] = ()
    """What would tell who a student with another name is: it is replaced in the result's texts."""
    again: Mapping[str, int] = field(default_factory=dict)
    """How often it was asked to mark the lab ("05"), or a check of it ("05/hold"), again."""
    only: Sequence[str] = ()
    """The checks that are marked in the result that is there, whose other marks stay; none: all is marked."""

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


def digest_of(notebook: Path) -> str:
    """The SHA-256 of a notebook; why it can't be read, where it can't."""
    try:
        return sha256(read_file(notebook, MOST_BYTES)).hexdigest()
    except Unreadable as why:
        return str(why)


def made_of(job: Job) -> dict[str, Any]:
    """What a result depends on: the same again, and it need not be made again."""
    made = {
        "mqlab": __version__,
        "notebook": digest_of(Path(job.notebook)),
        "lab": sha256(Path(job.source).read_bytes()).hexdigest()[:16],
        "key": sha256(read_key(job.key_file)).hexdigest()[:16],
        "hidden_seeds": job.hidden,
        "run": job.run,
        "exam": job.exam,
        "limits": json.loads(job.limits.as_text()),
    }
    return {**made, "again": dict(job.again)} if job.again else made


def checks_left(known: Mapping[str, Any] | None, made: Mapping[str, Any]) -> list[str] | None:
    """Which checks of a known result are to be marked: [] when it is what would be made, None when all of it is.

    Where a check alone is asked for again, another version of mqlab is no reason to mark the others.
    """
    if known is None:
        return None
    before = known.get("made_of") or {}
    if before == made:
        return []
    asked, had = made.get("again", {}), before.get("again", {})
    left = [name for name in asked if asked[name] != had.get(name)]
    same = all(before.get(name) == made[name] for name in made if name not in ("mqlab", "lab", "again"))
    there = {mark["check"] for mark in known["marks"]}
    return left if left and same and there.issuperset(left) else None


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
        known = read_result(Path(job.out)) if job.only else None
        return _marked(job, lab, began) if known is None else _marked_again(job, lab, known)
    except Exception as error:  # noqa: BLE001  what nobody has thought of is a mark with its reason, too
        why = printable(f"the marker could not mark it: {type(error).__name__}: {error}", most=MOST_REASON)
        submission = Submission(Path(job.notebook), job.student, lab.name[:2], unreadable=why)
        return _result(job, lab, submission, None, nothing_for(lab, why, job.hidden), began)


def _marked_again(job: Job, lab: LabSource, known: dict[str, Any]) -> dict[str, Any]:
    """The known result with some checks marked anew; the notebook is not run once more."""
    key = read_key(job.key_file)
    submission = read_submission(Path(job.notebook), job.student, lab)
    limits = job.limits.with_java() if lab.needs_spark else job.limits
    judge = Judge(lab, key, hidden=job.hidden, limits=limits)
    anew = {each.check: each.as_json() for each in judge.mark(submission, job.only)}
    before = [{**mark, "points": mark.get("judged", mark["points"])} for mark in known["marks"]]
    marks = [anew.get(mark["check"], mark) for mark in before]
    remarks = [each for each in known["remarks"] if each not in _forged(submission, before)]
    holds = certificate_holds(submission.claims.certificate, job.student, lab, submission.cells, marks)
    result = {
        **known,
        "made_of": made_of(job),
        "marks": marks,
        "points": round(sum(mark["points"] for mark in marks), 2),
        "most": sum(mark["most"] for mark in marks),
        "remarks": [*remarks, *_forged(submission, marks)],
        "certificate": holds,
    }
    return _as_shown(job, key, result, submission)


MOST_REASON, MOST_TEXT = 2_000, 20_000
"""The characters of why a mark is as it is, and of any other text in a result."""


def _marked(job: Job, lab: LabSource, began: float) -> dict[str, Any]:
    out = Path(job.out)
    # A run of what was handed in before says nothing of what is handed in now.
    (out / EXECUTED).unlink(missing_ok=True)
    submission = read_submission(Path(job.notebook), job.student, lab)
    with TemporaryDirectory(prefix="mqlab-hand-in-") as place:
        if submission.hand_in is not None:
            submission.path = Path(place) / f"{lab.name}.ipynb"
            submission.path.write_text(json.dumps(notebook_of(submission.hand_in, lab)), encoding="utf-8")
        limits = job.limits.with_java() if lab.needs_spark else job.limits
        ran = None
        if job.run and not submission.unreadable:
            parameters = {**other_parameters(lab), "student_id": job.student}
            ran = run_notebook(submission.path, parameters, out / EXECUTED, limits)
        if ran is not None:
            foreign = foreign_truths(lab, submission.path, out / EXECUTED)
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
    submission.remarks += _forged(submission, marks)
    exam = _exam(submission, job.exam, key)
    hand_in = {} if submission.hand_in is None else submission.hand_in.facts(key, job.student)
    if hand_in.get("signed") == OTHERWISE:
        submission.remarks.append("it was signed with another code than this student's")
    result: dict[str, Any] = {
        "student": job.shown or job.student,
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
        "hand_in": hand_in,
        "seconds": round(time.monotonic() - began, 2),
    }
    return _as_shown(job, key, result, submission)


def _as_shown(job: Job, key: bytes, result: dict[str, Any], submission: Submission) -> dict[str, Any]:
    """The result as it is kept: printable, signed, and without what would tell whose it is where that is hidden."""
    if job.shown and job.words:
        result = without_names(result, job.words, job.shown)
        # A notebook may name somebody else, who is in the class as well.
        claims = submission.claims
        others = [submission.said_id, claims.made_for, claims.certificate.student if claims.certificate else ""]
        for other in filter(None, map(str.strip, others)):
            result = without_names(result, [other], pseudonym(key, other))
        # The notebook that was run has the id in it.
        (Path(job.out) / EXECUTED).unlink(missing_ok=True)
    result = all_printable(result, MOST_TEXT)
    return {**result, "signed": signed_mark(key, result)}


def _forged(submission: Submission, marks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The remark that outputs show what is not so."""
    forged = [] if submission.unreadable else not_as_shown(submission.claims, marks)
    if not forged:
        return []
    what = f"the notebook shows {', '.join(forged)} as passed, and with the solution that was handed in it is not"
    return [f"{what}: the output is of another solution, or was written by hand"]


def _exam(submission: Submission, name: str, key: bytes) -> dict[str, Any]:
    """What is known of the exam: `fits` when it is the notebook of this exam; times as others say them."""
    said = submission.claims.exam
    fits = bool(name) and said.get("name") == name and said.get("code") == exam_code(key, name)
    if name and not fits:
        submission.remarks.append(f"this is no notebook of the exam {name!r}")
    if said and not name:
        submission.remarks.append(f"this is the notebook of an exam ({said.get('name', 'without a name')})")
    if not said and not name:
        return {}
    times = {"released": said.get("released", ""), "opened": said.get("opened", "")}
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
