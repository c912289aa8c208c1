"""`python -m website.play [LAB ...] [--write]`: run all cells of each lab in JupyterLite once, and print a table of it.

Each lab is opened in a browser that has never seen the site. Its cells are run from the top, and then, in the same
kernel, its solutions with their checks. `--write` puts the table into docs/site.md. It needs the site (`make site`) and
a Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from mqlab.check import VERDICT_MIME
from mqlab.check.bets import tells_of_bets
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from mqlab.labs.project import Project
from tests.browser.chromium import FLAGS, MISSING, chromium
from tests.lite.lite_page import LitePage, SiteServer
from website.lite import runs_without_spark
from website.notebook_for_lite import for_lite

PAGE = Path("docs/site.md")
_FRESH: dict[str, Any] = {"outputs": [], "execution_count": None}
BEGIN, END = "<!-- played: begin -->", "<!-- played: end -->"
HEAD = """\
| lab | kernel ready, s | all cells, s | cells | other outputs than committed | checks passed with the solutions |
|---|---|---|---|---|---|"""


class Played(NamedTuple):
    """What came of a lab.

    How many seconds until its kernel was ready and for all cells, how many cells, those that failed and were not meant
    to, those whose text is not the committed notebook's, and what the checks said of the solutions.
    """

    lab: str
    kernel_s: float
    cells_s: float
    cells: int
    failed: list[int]
    other: list[int]
    states: list[str]

    @property
    def line(self) -> str:
        """Its line of the table."""
        passed = f"{self.states.count('passed')} of {len(self.states)}"
        ran = f"{self.cells}" if not self.failed else f"{self.cells - len(self.failed)} of {self.cells}"
        other = ", ".join(f"[{at}]" for at in self.other) or "none"
        return f"| {self.lab} | {self.kernel_s:.0f} | {self.cells_s:.0f} | {ran} | {other} | {passed} |"


def main() -> int:
    """Play the labs; 1 when a cell failed or a solution did not pass."""
    parser = argparse.ArgumentParser(prog="python -m website.play", description=__doc__)
    parser.add_argument("lab", nargs="*", help="a lab's number or name; all that need no Spark when none is given")
    parser.add_argument("--site", type=Path, default=Path("out/site"), help="where the site is (default: out/site)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    options = parser.parse_args()
    project = Project(Path.cwd())
    found = chromium()
    if found is None:
        parser.error(MISSING)
    lines, well = [HEAD], True
    with sync_playwright() as playwright, SiteServer(options.site.resolve()) as address:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        print(HEAD)
        for source in project.select(options.lab):
            if runs_without_spark(source.stem):
                played = play(browser, address, project, source.stem)
                well &= not played.failed and set(played.states) == {"passed"}
                lines.append(played.line)
                print(played.line, flush=True)
        browser.close()
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        text = "\n".join([before + BEGIN, *lines, END + rest.partition(END)[2]])
        PAGE.write_text(text, encoding="utf-8")
    return 0 if well else 1


def play(browser: Browser, address: str, project: Project, lab: str) -> Played:
    """Run a lab's cells, and its solutions with their checks behind them."""
    solution = make_notebook(read_lab(project.source(lab)), "solution")
    graded = [cell for cell in solution["cells"] if cell["metadata"].get("nbgrader")]
    committed = for_lite(_read(project.student(lab)))
    # Nothing in the page has an output before it has run.
    cells = [cell | _FRESH if cell["cell_type"] == "code" else cell for cell in [*committed["cells"], *graded]]
    named = [{**cell, "id": f"played-{at}"} for at, cell in enumerate(cells)]
    with LitePage(browser, address) as page:
        page.load()
        began = time.monotonic()
        notebook = page.open(f"played-{lab}.ipynb", {**committed, "cells": named})
        ready = time.monotonic()
        notebook.command("notebook:run-all-cells")
        ended = time.monotonic()
        shown = page.cells(notebook)
        problems = page.seen
    if problems:
        raise SystemExit(f"{lab}: {problems}")
    own = [(was, now) for was, now in zip(committed["cells"], shown, strict=False) if was["cell_type"] == "code"]
    failed = [at for at, (was, now) in enumerate(own, 1) if _error(now) and not _error(was)]
    other = [at for at, (was, now) in enumerate(own, 1) if texts(now) != texts(was)]
    outputs = [
        output.get("data", {}) for cell in shown[len(committed["cells"]) :] for output in cell.get("outputs", ())
    ]
    states = [data[VERDICT_MIME]["state"] for data in outputs if VERDICT_MIME in data]
    return Played(lab, ready - began, ended - ready, len(own), failed, other, states)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _error(cell: dict[str, Any]) -> bool:
    """Whether a cell did not run, or shows an error."""
    outputs = cell["outputs"]
    return cell["execution_count"] is None or any(
        output["output_type"] == "error" or output.get("name") == "stderr" for output in outputs
    )


def texts(cell: dict[str, Any]) -> list[str]:
    """What the outputs of a cell say, as text; those that are not compared anywhere are left out, and so is what is
    said of bets: it is told only to who has bet.
    """
    if "nbval-ignore-output" in cell["metadata"].get("tags", ()):
        return []
    outputs = [output for output in cell["outputs"] if not tells_of_bets(output)]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]


if __name__ == "__main__":
    sys.exit(main())
