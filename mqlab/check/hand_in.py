"""Handing in: one file with what the checks have judged and what was bet, which `mqlab grade` takes as a notebook.

    hand_in(student_id, "05", bets=9, done=True)

It is made of what this kernel has run, so it needs neither the notebook's file nor a server, and works in a browser
alone. Its seal is a SHA-256, which tells damage. With a code that the teacher has given, it is a keyed hash, too, which
only whoever has that code (or the course's key) can make. The marks in it are never believed: a marker plays all anew.
"""

from __future__ import annotations

import base64
import hmac
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from types import EllipsisType
from typing import Any, NamedTuple
from urllib.parse import quote

from mqlab import __version__
from mqlab.check import show
from mqlab.check.bets import notebook_bets
from mqlab.check.progress import cell_of, how_far, newest_cell_of
from mqlab.check.registry import checks_of, noted_checks
from mqlab.check.seeds import whose
from mqlab.check.verdict import Verdict
from mqlab.errors import LearnerError

FORMAT = "mqlab-hand-in 1"
SETTINGS = "hand_in.json"
"""The teacher's settings, beside the notebooks: `{"folder": DIRECTORY}`, `{"form": ADDRESS}`, or both."""
SETTINGS_FILE = "MQLAB_HAND_IN"
"""The environment variable that names a file of settings elsewhere: for a JupyterHub."""
INSTALLED = Path(__file__).with_name(SETTINGS)
"""Where they are for all who use this copy of mqlab and have none beside the notebooks: so in a web site's Python."""
MOMENT = "%Y-%m-%dT%H:%M:%SZ"
NOT_DONE = "nothing is handed in yet: write done=True in place of the dots, and run this cell"
MOST_TEXT = 5_000
"""The characters of what a check has said, and of a bet."""
_LARGEST = 1e300
_LONGEST_ID = 100


class HandInSettings(NamedTuple):
    """Where a teacher wants hand-ins: in a folder that students' kernels reach, by a form, or as each has agreed."""

    folder: str = ""
    form: str = ""


def read_settings(path: Path) -> HandInSettings:
    """The settings in that file; none are as good as no file. LearnerError for what is no such file."""
    hint = f'write {{"folder": "/shared/handed-in"}} or {{"form": "https://..."}} into {path.name}'
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return HandInSettings()
    except (OSError, ValueError) as error:
        raise LearnerError(f"{path.name} can't be read: {error}", hint) from None
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise LearnerError(f"{path.name} is no list of settings", hint)
    unknown = sorted(set(said) - set(HandInSettings._fields))
    if unknown:
        raise LearnerError(f"{path.name} has a setting {unknown[0]!r}, which is none", hint)
    settings = HandInSettings(**said)
    if settings.form and not settings.form.startswith(("https://", "http://")):
        raise LearnerError(f"{path.name} has a form that is no address: {settings.form!r}", hint)
    return settings


def canonical(content: Mapping[str, Any]) -> bytes:
    """The bytes over which a seal is made: all but the seal, always written the same way."""
    bare = {name: value for name, value in content.items() if name != "seal"}
    return json.dumps(bare, sort_keys=True, separators=(",", ":")).encode()


def seal_of(content: Mapping[str, Any], code: str = "") -> dict[str, str]:
    """The seal of a hand-in: its SHA-256, and with a code the keyed hash that only this code makes."""
    text = canonical(content)
    keyed = hmac.new(plain_code(code), text, sha256).hexdigest() if plain_code(code) else ""
    return {"sha256": sha256(text).hexdigest(), "keyed": keyed}


def plain_code(code: str) -> bytes:
    """A code as it was meant: without the spaces, hyphens and capitals with which it was typed."""
    return "".join(letter for letter in code.lower() if letter.isalnum()).encode()


@dataclass(frozen=True, slots=True)
class HandIn:
    """A hand-in that was made, or the line that says how to make it."""

    name: str = ""
    """The file's name; "" while nothing is handed in."""
    data: bytes = b""
    mark: str = ""
    """The public mark, in a line."""
    verdicts: tuple[Verdict, ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    """What became of the file: where, and how."""
    form: str = ""
    in_folder: bool = False

    @property
    def headline(self) -> str:
        """The first line."""
        if not self.name:
            return NOT_DONE
        return f"handed in: {self.name}" if self.in_folder else f"made for your teacher: {self.name}"

    def __repr__(self) -> str:
        if not self.name:
            return self.headline
        rows = [self.headline, f"  public mark: {self.mark}"]
        for verdict in self.verdicts:
            rows.append(f"  {verdict.headline}")
            if verdict.explanation:
                rows.append(show.indent(verdict.explanation, 4))
        rows += [f"  {where} {how}" for where, how in self.told]
        return "\n".join([*rows, f"  then give it in here: {self.form}"] if self.form else rows)

    def _repr_html_(self) -> str:
        if not self.name:
            return show.box(show.GREY, self.headline)
        whole = all(verdict.passed for verdict in self.verdicts)
        lines = [show.line("public mark:", self.mark)]
        lines += [show.line(f"{verdict.headline}", verdict.explanation or " ") for verdict in self.verdicts]
        lines += [show.line(where, how) for where, how in self.told]
        link = f"data:application/json;base64,{base64.b64encode(self.data).decode()}"
        lines.append(f'<div><a download="{escape(self.name)}" href="{link}">Download {escape(self.name)}</a></div>')
        if self.form:
            there = f'<a href="{escape(self.form)}" target="_blank" rel="noopener">{escape(self.form)}</a>'
            lines.append(f'<div><span style="color:{show.GREY}">then give it in here:</span> {there}</div>')
        return show.box(show.GREEN if whole else show.AMBER, self.headline, *lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def hand_in(student_id: str, lab: str, *, bets: int, done: bool | EllipsisType = ..., code: str = "") -> HandIn:
    """Make the file of what this notebook's checks have judged, when you are done with the lab of that number.

    Nothing is made while there are dots in place of `done=True`. `code` is the one that your teacher has given you, if
    any. The file is kept beside the notebook and offered as a download; where the teacher has set a folder, it is put
    there. LearnerError without an id, in an exam, and where a solution was changed since its check ran.
    """
    if isinstance(done, EllipsisType) or done is False:
        return HandIn()
    if done is not True:
        raise LearnerError(f"done={done!r} says neither yes nor no", "write done=True")
    content = content_of(student_id, lab, bets)
    content["seal"] = seal_of(content, code)
    data = (json.dumps(content, sort_keys=True, indent=1) + "\n").encode()
    name = f"{content['lab']}-{quote(content['student'], safe='@')}-{content['seal']['sha256'][:8]}.json"
    told = [("in the list of files:", _kept(name, data))]
    settings, problem = _settings()
    in_folder = False
    if problem:
        told.append(("your teacher's settings:", problem))
    if settings.folder:
        problem = put_into(Path(settings.folder), content["student"], name, data)
        in_folder = not problem
        told.append(("your teacher's folder:", problem or "it is there"))
    verdicts = tuple(noted_checks[check.name][0] for check in checks_of(lab))
    return HandIn(name, data, content["public_mark"], verdicts, tuple(told), settings.form, in_folder)


def content_of(student_id: str, lab: str, bets: int) -> dict[str, Any]:
    """What is handed in, without its seal. LearnerError as `hand_in` raises it."""
    student, known = whose(student_id), checks_of(lab)
    if not known:
        raise LearnerError(f"there is no lab {lab!r} with checks", 'write its number: hand_in(student_id, "05", ...)')
    if not student:
        raise LearnerError("nobody hands this in", "write your id into student_id, and run the notebook from its top")
    if "/" in student or "\\" in student or student.startswith(".") or len(student) > _LONGEST_ID:
        raise LearnerError(f"{student!r} can't be the name of a directory", "take the id that your teacher has given")
    if notebook_bets.sealed:
        raise LearnerError("an exam is handed in as its notebook", "save it, and hand in the .ipynb file")
    missing = [check.name for check in known if check.name not in noted_checks]
    if missing:
        names = ", ".join(missing)
        raise LearnerError(f"not run since the kernel was started: {names}", "run all cells, and then this one again")
    answers = {check.name: [_text(check.name, answer) for answer in noted_checks[check.name][1]] for check in known}
    now = datetime.now(UTC)
    progress = how_far(student_id, lab, bets=bets)
    return {
        "format": FORMAT,
        "lab": known[0].judge.__module__.rpartition(".")[2],
        "student": student,
        "mqlab": __version__,
        "times": {"begun": (notebook_bets.begun or now).strftime(MOMENT), "made": now.strftime(MOMENT)},
        "answers": answers,
        "bets": [_short(bet) for bet in notebook_bets.facts() if _is_plain(bet["answer"])],
        "checks": {check.name: repr(noted_checks[check.name][0])[:MOST_TEXT] for check in known},
        "public_mark": progress.headline,
        "certificate": progress.line,
    }


def _text(check: str, answer: Any) -> str:
    text, name = cell_of(answer), getattr(answer, "__name__", "it")
    if not text:
        hint = "define it with `def` or `class` in one cell, run that, and then its check"
        raise LearnerError(f"nobody knows the text of {name}, which {check} has judged", hint)
    if newest_cell_of(answer).strip() != text.strip():
        raise LearnerError(f"{name} was changed since {check} has judged it", "run its check again, and then this cell")
    return text


def _is_plain(answer: Any) -> bool:
    if isinstance(answer, str):
        return len(answer) <= MOST_TEXT
    number = isinstance(answer, int | float) and not isinstance(answer, bool)
    return number and -_LARGEST < answer < _LARGEST and math.isfinite(answer)


def _short(bet: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[:MOST_TEXT] if isinstance(value, str) else value for name, value in bet.items()}


def _kept(name: str, data: bytes) -> str:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        return f"it could not be kept there ({error.strerror}): download it"
    return "it is there, beside this notebook"


def _settings() -> tuple[HandInSettings, str]:
    """The teacher's settings, and why they can't be used, "" where they can: a file is made all the same."""
    try:
        named = os.environ.get(SETTINGS_FILE)
        return read_settings(Path(named or (SETTINGS if os.path.exists(SETTINGS) else INSTALLED))), ""
    except LearnerError as problem:
        return HandInSettings(), f"{problem.message}; tell your teacher, and hand in the file yourself"


def put_into(folder: Path, student: str, name: str, data: bytes) -> str:
    """Put a file into FOLDER/STUDENT/, whole or not at all; why that was not possible, "" where it was.

    The name tells the content, so nothing else is ever written over.
    """
    target = folder / student / name
    unfinished = target.with_name(f".{name}.{os.getpid()}")
    try:
        target.parent.mkdir(exist_ok=True)
        unfinished.write_bytes(data)
        unfinished.replace(target)
    except OSError as error:
        return f"it could not be put there ({error.strerror}): hand in the file yourself"
    return ""
