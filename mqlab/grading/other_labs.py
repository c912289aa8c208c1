"""Labs that were marked before into the directory of the marks: their rows stay in the gradebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mqlab.grading.course import HandedIn, Settings, handed_in, missing, nothing
from mqlab.grading.marking import read_result

NOT_MARKED = "this is not marked: give the command with this lab"
GONE = "this notebook is no longer where it was handed in"


def results_of_other_labs(
    submissions: Path, settings: Settings, work: Iterable[HandedIn], students: Sequence[str]
) -> list[dict[str, Any]]:
    """The results in `settings.out` of labs that are not in the work, for each lab that has one.

    What is handed in of such a lab and not marked, and each of the students who has handed in nothing, has a result
    without points. A result whose notebook was taken away, where others are still there, has a remark.
    """
    everything, left = handed_in(submissions, replace(settings, labs=()))
    begun = {each.source.stem for each in work}
    found: list[dict[str, Any]] = []
    for lab in sorted(path.stem for path in settings.sources.glob("*.py") if path.stem not in begun):
        known = {path.parent.name: read_result(path) for path in settings.out.glob(f"*/{lab}")}
        whole = {owner: result for owner, result in known.items() if result is not None}
        if not whole:
            continue
        most = max(result["most"] for result in whole.values())
        handed = {settings.names.shown(each.student) for each in everything if each.source.stem == lab}
        there = handed or set(known)
        own = [_remarked(result, gone=owner not in there) for owner, result in whole.items()]
        own += [nothing(owner, lab, most, NOT_MARKED) for owner in there - whole.keys()]
        found += [*own, *missing(own, students, left)]
    return found


def _remarked(result: dict[str, Any], *, gone: bool) -> dict[str, Any]:
    return {**result, "remarks": [*result["remarks"], GONE]} if gone else result
