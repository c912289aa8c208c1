"""The file that `hand_in` makes, read as text: it becomes the lab's own notebook with the student's answers in it.

So everything that is done with a notebook (judging, running, comparing) is done with a hand-in in the same way. Of what
it says of itself nothing is believed: its marks are compared with those that the judge finds, as a notebook's outputs.
"""

from __future__ import annotations

import base64
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from mqlab import __version__
from mqlab.check.bets import REVEAL_MIME
from mqlab.check.hand_in import FORMAT, seal_of
from mqlab.errors import LearnerError
from mqlab.grading.outside import Unreadable, read_file, read_json
from mqlab.grading.release import with_id
from mqlab.labs.notebook import HOW_FAR, Notebook, given_name, make_notebook
from mqlab.labs.rules import answers_of
from mqlab.labs.source import Cell, LabSource, text_argument

MOST_BYTES = 4 * 2**20
"""Of a hand-in; one of a lab has a few KB."""
SUFFIX = ".json"
WITH_THE_CODE, OTHERWISE = "with the student's code", "with another code"
"""How a hand-in is signed, where it is."""
_SAYS_SO = b'"mqlab-hand-in '
_AGAIN = "hand it in again, as hand_in has made it"
_CODE_LETTERS = 16
_PLAIN = (str, int, float)


@dataclass(frozen=True, slots=True)
class HandedInFile:
    """A hand-in whose seal fits."""

    lab: str
    student: str
    """Whose it is, as it says."""
    mqlab: str
    """The version of mqlab that has made it."""
    times: Mapping[str, str]
    """When its first question was asked, and when it was made: by the clock of that machine."""
    keyed: str
    """The keyed hash of its seal; "" where no code was given."""
    content: Mapping[str, Any]

    def is_signed(self, key: bytes, student: str) -> bool:
        """Whether it was made with the code of that student."""
        wanted = seal_of(self.content, code_of(key, student))["keyed"]
        return hmac.compare_digest(wanted, self.keyed)

    def facts(self, key: bytes, student: str) -> dict[str, Any]:
        """What a result keeps of it."""
        signed = WITH_THE_CODE if self.is_signed(key, student) else OTHERWISE if self.keyed else "no"
        return {"mqlab": self.mqlab, **self.times, "signed": signed}


def code_of(key: bytes, student: str) -> str:
    """The code with which a student signs: it comes from the course's key and the id, 80 bits of them."""
    made = hmac.new(key, f"mqlab-hand-in/{student.strip().lower()}".encode(), sha256).digest()
    letters = base64.b32encode(made).decode().lower()[:_CODE_LETTERS]
    return "-".join(letters[at : at + 4] for at in range(0, _CODE_LETTERS, 4))


def says_it_is_one(path: Path) -> bool:
    """Whether a file that is no notebook wants to be a hand-in, whole or damaged."""
    try:
        return path.suffix.lower() == SUFFIX and _SAYS_SO in read_file(path, MOST_BYTES)
    except Unreadable:
        return False


def is_hand_in(read: Any) -> bool:
    """Whether what was read of a file is a hand-in, of this version or another."""
    return isinstance(read, dict) and "cells" not in read and str(read.get("format")).startswith("mqlab-hand-in")


def read_hand_in(content: Mapping[str, Any]) -> HandedInFile:
    """A hand-in as it was read. LearnerError where it is of another form, or its seal does not fit."""
    if content.get("format") != FORMAT:
        made = str(content.get("format"))[:40]
        raise LearnerError(f"this hand-in has the form {made!r}, and {FORMAT!r} is read here", _AGAIN)
    seal = content.get("seal")
    try:
        fits = isinstance(seal, dict) and hmac.compare_digest(str(seal["sha256"]), seal_of(content)["sha256"])
    except (KeyError, TypeError, ValueError, RecursionError):
        fits = False
    if not fits or not isinstance(seal, dict):
        raise LearnerError("this hand-in was changed or damaged after it was made: its seal does not fit", _AGAIN)
    texts = [content.get(name) for name in ("lab", "student", "mqlab", "public_mark", "certificate")]
    times = content.get("times")
    if not all(isinstance(text, str) for text in texts) or not isinstance(times, dict):
        _not_ours("what it says of itself")
    plain_times = {name: str(times.get(name, ""))[:20] for name in ("begun", "made")}
    return HandedInFile(
        content["lab"], content["student"], content["mqlab"][:20], plain_times, str(seal.get("keyed", "")), content
    )


def signed_by(path: Path, key: bytes) -> str:
    """The student whose hand-in this is, where it is signed with that one's own code; "" where it is not."""
    try:
        handed = read_hand_in(read_json(read_file(path, MOST_BYTES)))
    except (Unreadable, LearnerError, AttributeError):
        return ""
    return handed.student if handed.is_signed(key, handed.student) else ""


def _not_ours(what: str) -> NoReturn:
    raise LearnerError(f"this hand-in was not made by hand_in: {what} has another form", _AGAIN)


def version_remark(handed: HandedInFile) -> str:
    """The remark that another mqlab has made it; "" where it was this one."""
    return "" if handed.mqlab == __version__ else f"made with mqlab {handed.mqlab}; marked with {__version__}"


def notebook_of(handed: HandedInFile, lab: LabSource) -> Notebook:
    """The student's notebook of the lab with what was handed in. LearnerError where it is of another lab."""
    if handed.lab != lab.name:
        raise LearnerError(f"this hand-in is of the lab {handed.lab[:60]!r}, and its name says {lab.name}", "rename it")
    solutions, bets, checks = _solutions(handed, lab), _bets(handed), handed.content.get("checks")
    if not isinstance(checks, dict):
        _not_ours("what its checks have said")
    notebook = make_notebook(lab, "student")
    by_name: dict[str, Cell] = {name: cell for cell in lab.cells if (name := given_name(lab, cell))}
    for cell in notebook["cells"]:
        name = cell["id"]
        source = by_name.get(name)
        if "parameters" in cell["metadata"].get("tags", ()):
            cell["source"] = with_id(cell["source"], handed.student)
        elif name in solutions:
            cell["source"] = solutions[name]
        elif name == f"{lab.number}-{HOW_FAR}":
            _show(cell, {"text/plain": handed.content["certificate"]})
        elif source is not None and "check" in source.tags:
            _show(cell, {"text/plain": str(checks.get(_named(source, "check"), ""))})
        elif source is not None and (bet := bets.get(_named(source, "predict"))):
            cell["source"] = cell["source"].replace("prediction=...", f"prediction={bet['answer']!r}")
            if bet["truth"]:
                _show(cell, {REVEAL_MIME: {each: bet[each] for each in ("bet", "question", "said", "truth")}})
    return notebook


def _named(cell: Cell, function: str) -> str:
    return next((text_argument(call) or "" for call in cell.calls(function)), "")


def _show(cell: dict[str, Any], data: dict[str, Any]) -> None:
    shown = {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}
    cell |= {"outputs": [shown], "execution_count": 1}


def _solutions(handed: HandedInFile, lab: LabSource) -> dict[str, str]:
    """The texts of the exercises by their names.

    The cells of one exercise that was written in several come one after the other, in the order of the check.
    """
    answers = handed.content.get("answers")
    if not isinstance(answers, dict):
        _not_ours("its answers")
    home = {name: given_name(lab, cell) or "" for cell in lab.tagged("exercise") for name in cell.definitions}
    texts: dict[str, list[str]] = {}
    for cell in lab.tagged("check"):
        for call in cell.calls("check"):
            given = answers.get(text_argument(call) or "", [])
            if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
                _not_ours("its answers")
            for function, text in zip(answers_of(call), given, strict=False):
                of_exercise = texts.setdefault(home[function], [])
                if text not in of_exercise:
                    of_exercise.append(text)
    return {name: "\n\n".join(text.rstrip("\n") for text in parts) for name, parts in texts.items()}


def _bets(handed: HandedInFile) -> dict[str, dict[str, Any]]:
    said = handed.content.get("bets")
    if not isinstance(said, list):
        _not_ours("its bets")
    bets = {}
    for bet in said:
        texts = ("bet", "question", "said", "truth")
        if not isinstance(bet, dict) or not all(isinstance(bet.get(name), str) for name in texts):
            _not_ours("a bet")
        answer = bet.get("answer")
        if not isinstance(answer, _PLAIN) or (isinstance(answer, float) and not math.isfinite(answer)):
            _not_ours("a bet")
        bets[bet["bet"]] = bet
    return bets
