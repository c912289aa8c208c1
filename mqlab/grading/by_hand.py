"""Marks that a teacher has set by hand: a line of `by_hand.jsonl` beside the marks for each, signed with the key.

Lines are only ever added: a mark that is taken back is a line more. Of a student, a lab and a check the last counts.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.pseudonyms import pseudonym
from mqlab.grading.times import now, shown

BY_HAND = "by_hand.jsonl"
MOST_POINTS = 1_000
MOST_TEXT = 1_000
"""The characters of a reason, or of a name."""


@dataclass(frozen=True, slots=True)
class SetMark:
    """One mark that was set, or taken back."""

    student: str
    lab: str
    """The lab's name: 05_push_is_pull."""
    check: str
    """05/hold; "" for all of the lab."""
    points: float | None
    """None: what was set before is taken back."""
    reason: str
    by: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class ByHand:
    """What counts of all that was set."""

    key: bytes
    marks: dict[tuple[str, str, str], SetMark]
    """The pseudonym of a student, a lab and a check (or "")."""

    def of(self, student: str, lab: str, check: str = "") -> SetMark | None:
        """The mark that was set for a check, or for all of the lab; None where there is none, or no longer."""
        return self.marks.get((pseudonym(self.key, student), lab, check))


def add_by_hand(marks: Path, key: bytes, mark: SetMark) -> None:
    """Add a line to the file; what is in it stays. Each line is signed together with the line before it."""
    lines = _lines(marks)
    _checked(marks, key, lines)
    said = {**asdict(mark), "at": shown(now())}
    line = json.dumps({**said, "signed": _signature(key, lines[-1] if lines else "", said)})
    with (marks / BY_HAND).open("a", encoding="ascii") as sink:
        sink.write(line + "\n")
        sink.flush()
        os.fsync(sink.fileno())


def read_by_hand(marks: Path, key: bytes) -> ByHand:
    """What counts. LearnerError when a line was not written with this key, was changed, or one before it is gone."""
    found: dict[tuple[str, str, str], SetMark] = {}
    for each in _checked(marks, key, _lines(marks)):
        own = pseudonym(key, each.student), each.lab, each.check
        found.pop(own, None)
        if each.points is not None:
            found[own] = each
    return ByHand(key, found)


def _lines(marks: Path) -> list[str]:
    try:
        return (marks / BY_HAND).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise LearnerError(f"{marks / BY_HAND} can't be read: {error}", "put back the file as it was") from None


def _checked(marks: Path, key: bytes, lines: Iterable[str]) -> list[SetMark]:
    before, found = "", []
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
            if not hmac.compare_digest(str(said.pop("signed")), _signature(key, before, said)):
                raise ValueError
            found.append(SetMark(**said))
        except (ValueError, KeyError, TypeError, AttributeError):
            told = (
                f"line {number} of {marks / BY_HAND} was not written with this key, or it or one before it was changed"
            )
            raise LearnerError(told, "put back the file as it was; set-mark and --take-back change marks") from None
        before = line
    return found


def _signature(key: bytes, before: str, said: Mapping[str, Any]) -> str:
    text = f"mqlab-by-hand/{before}/{json.dumps(said, sort_keys=True)}"
    return hmac.new(key, text.encode(), sha256).hexdigest()[:32]
