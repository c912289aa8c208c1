"""docs/teaching/labs.md: what a teacher needs of each lab, from its source and its notebook as it is committed.

`python -m mqlab.labs.teaching` writes the page: times of all parts, every bet with what is often said and what the
machine shows, the exercises with their points, and the storyboard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mqlab.check import find_check
from mqlab.labs.bets import reveals_in
from mqlab.labs.notebook import code_cells, read_notebook
from mqlab.labs.project import Project
from mqlab.labs.source import LabSource, read_source, text_argument
from mqlab.scenarios.storyboards import STORYBOARDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "teaching" / "labs.md"
_PART = re.compile(r"(?m)^## (.+?)(?: \((\d+) minutes?\))?$")
HEAD = """\
# The labs, for who teaches them

Written by `python -m mqlab.labs.teaching` from the labs' sources and notebooks; do not edit it.

Minutes are those of a reader who thinks before each bet and writes the exercises. "It is" says what the committed
notebook shows, which has no student's id. With an id most numbers are others: `python -m mqlab.labs truths 06 --ids 8`
plays a lab for eight made-up students and marks with `same` the bets whose answer all of them share, and a marked
notebook's `report.html` has those of its student.
"""


def page(project: Project) -> str:
    """The text of the page."""
    labs = [read_source(path) for path in project.select()]
    rows = [
        f"| [{lab.number} {lab.head.title}](#{_anchor(lab)}) | {lab.head.minutes} | {len(list(_bets(lab)))} | "
        f"{sum(points for _, points in _checks(lab))} | {', '.join(lab.head.prerequisites) or '-'} |"
        for lab in labs
    ]
    table = "\n".join(["| lab | minutes | bets | points | needed before |", "|---|---|---|---|---|", *rows])
    return "\n".join([HEAD, table, *(_lab(project, lab) for lab in labs)]) + "\n"


def _anchor(lab: LabSource) -> str:
    return re.sub(r"[^\w -]", "", f"{lab.number} {lab.head.title}".lower()).replace(" ", "-")


def _lab(project: Project, lab: LabSource) -> str:
    shown = _truths(project, lab)
    often = dict(line.partition(": ")[::2] for line in lab.head.wrong_predictions)
    rows = ((f"`{name}`", shown[name][0], often.get(name, ""), *shown[name][1:]) for name in _bets(lab))
    bets = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    parts = ", ".join(f"{name} {minutes}" for name, minutes in _parts(lab))
    told = STORYBOARDS.get(lab.number, ())
    story = f"Storyboard: `mqlab demo {lab.number}` (`{told[0]}`)." if told else ""
    checks = ", ".join(f"`{name}` ({points})" for name, points in _checks(lab))
    pieces = [
        f"\n## {lab.number} {lab.head.title}",
        lab.head.question,
        f"{lab.head.minutes} minutes: {parts}. {story}".strip(),
        f"Exercises, with their points: {checks}.",
        "\n".join(["| bet | asked | often said | it is | say |", "|---|---|---|---|---|", *bets]),
    ]
    return "\n\n".join(pieces)


def _parts(lab: LabSource) -> Iterator[tuple[str, str]]:
    """The parts of a lab that say how long they take, in minutes."""
    for cell in lab.cells:
        if cell.kind == "markdown":
            for name, minutes in _PART.findall(cell.source):
                if minutes:
                    yield name, minutes


def _bets(lab: LabSource) -> Iterator[str]:
    for cell in lab.cells:
        for call in cell.calls("predict"):
            yield text_argument(call) or ""


def _checks(lab: LabSource) -> list[tuple[str, int]]:
    names = [text_argument(cell.calls("check")[0]) or "" for cell in lab.tagged("check")]
    return [(name, find_check(name).points) for name in names]


def _truths(project: Project, lab: LabSource) -> dict[str, tuple[str, str, str]]:
    """Bet -> what was asked, what the committed notebook shows, and why."""
    cells = code_cells(read_notebook(project.student(lab.name).read_text(encoding="utf-8")))
    shown = reveals_in(output for cell in cells for output in cell["outputs"])
    return {
        bet: (facts["question"], facts["truth"], " ".join(facts["why"].split())) for bet, facts in shown.items()
    }


def _cell(text: str) -> str:
    """A text in a table of markdown."""
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(Project(ROOT)), encoding="utf-8")
