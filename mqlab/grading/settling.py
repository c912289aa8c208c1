"""From what the judge has found to the points that count: marks set by hand, and what being late takes.

What the judge has found stays beside it (`judged` of a mark, `before_late` of a result), so a result can be settled
again and again, and always comes to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.grading.arrivals import Arrivals
from mqlab.grading.by_hand import ByHand, SetMark
from mqlab.grading.deadlines import Arrival, Deadlines
from mqlab.grading.marking import read_result, write_result
from mqlab.grading.printable import printable
from mqlab.grading.pseudonyms import Names, without_names
from mqlab.grading.report import write_report
from mqlab.grading.roster import Member
from mqlab.grading.signing import signed_mark
from mqlab.grading.times import shown

REPORT = "report.html"
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settling:
    """What a course says of its results beside the judge."""

    key: bytes
    deadlines: Deadlines
    arrivals: Arrivals
    by_hand: ByHand
    names: Names = field(default_factory=Names)
    members: Mapping[str, Member] = field(default_factory=dict)
    """The name that is shown, in small letters -> who it is."""

    def settled(self, result: Mapping[str, Any]) -> Result:
        """The result with the points that count."""
        own = self._with_hand(_as_judged(result))
        arrival = self._arrival(own)
        own["arrival"] = _arrival_as_json(arrival)
        own["late"] = self._late(own, arrival)
        own["points"] = round(own["before_late"] - own["late"].get("taken", 0), 2)
        member = self.members.get(own["student"].lower())
        if member is not None:
            # A roster that came later says more names, and so may the reason of a mark by hand.
            own = without_names(own, self.names.words_of(member.id), own["student"])
        if "made_of" in own:
            own["signed"] = signed_mark(self.key, own)
        return own

    def kept(self, result: Result, place: Path) -> Result:
        """The same, also where the result lies: `result.json` and the report say what counts."""
        settled = self.settled(result)
        if "made_of" in result and (settled != result or not (place / REPORT).exists()):
            write_report(settled, place / REPORT)
            write_result(place, settled)
        return settled

    def _with_hand(self, result: Result) -> Result:
        marks, by_hand = [], []
        for mark in result["marks"]:
            set_mark = self.by_hand.of(result["student"], result["lab"], mark["check"])
            if set_mark is None:
                marks.append(mark)
                continue
            marks.append({**mark, "points": set_mark.points, "judged": mark["points"]})
            by_hand.append(_hand_as_json(set_mark, mark["points"]))
        points = sum(mark["points"] for mark in marks)
        whole = self.by_hand.of(result["student"], result["lab"])
        if whole is not None:
            by_hand.append(_hand_as_json(whole, round(points, 2)))
            points = whole.points
        return {**result, "marks": marks, "by_hand": by_hand, "before_late": round(points, 2)}

    def _arrival(self, result: Result) -> Arrival | None:
        digest = result.get("made_of", {}).get("notebook")
        return self.arrivals.of(result["student"], result["lab"][:2], digest) if digest else None

    def _late(self, result: Result, arrival: Arrival | None) -> dict[str, Any]:
        """What is said of the deadline: {} where there is none, or where nothing came in."""
        if arrival is None:
            return {}
        member = self.members.get(result["student"].lower()) or Member(result["student"])
        late = self.deadlines.lateness(result["lab"][:2], member, arrival)
        if late is None:
            return {}
        # A mark of all of the lab that was set by hand is the last word.
        whole = any(not each["check"] for each in result["by_hand"])
        return {
            "due": shown(late.due),
            "seconds": late.seconds,
            "least": late.least,
            "told": late.in_words(arrival),
            "days": late.days,
            "taken": 0 if whole else self.deadlines.taken(result["before_late"], late),
        }


def _as_judged(result: Mapping[str, Any]) -> Result:
    marks = [
        {**{name: value for name, value in mark.items() if name != "judged"}, "points": judged_points(mark)}
        for mark in result["marks"]
    ]
    return {**result, "marks": marks}


def judged_points(mark: Mapping[str, Any]) -> float:
    """What the judge gave for a check, whatever was set by hand since."""
    points: float = mark.get("judged", mark["points"])
    return points


def _hand_as_json(mark: SetMark, judged: float) -> dict[str, Any]:
    reason, by = printable(mark.reason), printable(mark.by)
    return {"check": mark.check, "points": mark.points, "judged": judged, "reason": reason, "by": by, "at": mark.at}


def _arrival_as_json(arrival: Arrival | None) -> dict[str, Any]:
    if arrival is None:
        return {}
    not_before = shown(arrival.not_before) if arrival.not_before else ""
    by = "learning platform" if arrival.by_platform else "first seen by the marker"
    return {"at": shown(arrival.at), "said_by": by, "not_before": not_before}


def results_below(marks: Path) -> list[Result]:
    """All whole results in a directory of marks."""
    found = (read_result(path.parent) for path in sorted(marks.glob("*/*/result.json")))
    return [result for result in found if result is not None]
