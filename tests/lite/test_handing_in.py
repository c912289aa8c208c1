"""A student's way in the browser alone: from the front page by a lab to a mark in the teacher's gradebook."""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mqlab.commands.cli import main
from mqlab.grading.hand_in_file import code_of
from mqlab.grading.marking import read_key
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import given_name

from .lite_page import LitePage

ROOT = Path(__file__).parents[2]
LAB, STUDENT = "18_ask_the_broker", "ada"
FORM = json.loads(Path(__file__).with_name("hand_in.json").read_text(encoding="utf-8"))["form"]
OPENED = "() => window.jupyterapp && window.jupyterapp.shell.currentWidget && jupyterapp.shell.currentWidget.context"
READY = """async () => {
    const panel = jupyterapp.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
}"""
EDIT = """async id => {
    const notebook = jupyterapp.shell.currentWidget.content;
    const at = notebook.widgets.findIndex(cell => cell.model.id === id);
    notebook.deselectAll();
    notebook.activeCellIndex = at;
    await notebook.scrollToItem(at);
    await jupyterapp.commands.execute("notebook:enter-edit-mode");
}"""
COMMAND = "name => jupyterapp.commands.execute(name)"
CELLS = "() => jupyterapp.shell.currentWidget.context.model.toJSON().cells"
READ = "async path => (await jupyterapp.serviceManager.contents.get(path, { content: true })).content"


@dataclass
class Student:
    """Somebody who has clicked "Play", and types into the one notebook that this opens."""

    page: Page

    def wait(self) -> None:
        """Until the kernel has started."""
        self.page.wait_for_function(OPENED)
        self.page.evaluate(READY)

    def types(self, cell: str, text: str) -> None:
        """Write a cell anew, with the keyboard."""
        self.page.evaluate(EDIT, cell)
        expect(self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active .cm-content")).to_be_focused()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def commands(self, name: str) -> None:
        """Carry out one of the menu's commands."""
        self.page.evaluate(COMMAND, name)

    def cells(self) -> dict[str, dict[str, Any]]:
        """The notebook's cells by their names, as they are now."""
        return {cell["id"]: cell for cell in self.page.evaluate(CELLS)}


@pytest.fixture(scope="module")
def student(browser: Browser, address: str) -> Iterator[Student]:
    """A student at the front page's "Play". At the end nothing may have been asked of another host."""
    with LitePage(browser, address) as lite:
        lite.page.goto(f"{address}/index.html")
        lite.page.locator(f'a[href$="?path={LAB}.ipynb"]').click()
        student = Student(lite.page)
        student.wait()
        yield student
        assert lite.seen == []


def row(marks: Path) -> dict[str, str]:
    """The only row of a gradebook."""
    (found,) = csv.DictReader((marks / "gradebook.csv").open())
    # When the marker has seen it first.
    del found["arrived"]
    return found


def test_from_the_front_page_to_a_mark_in_the_gradebook(
    student: Student, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The teacher has a course, and has given everybody a code; the site was built with the address of a form.
    assert main(["course", "key", str(tmp_path / "key")]) == 0
    code = code_of(read_key(str(tmp_path / "key")), STUDENT)

    # The student writes an id, a bet, and all solutions but the last one.
    lab = read_lab(ROOT / "labs" / "sources" / f"{LAB}.py")
    (parameters,) = [name for name, cell in student.cells().items() if "parameters" in cell["metadata"].get("tags", ())]
    student.types(parameters, f'student_id = "{STUDENT}"')
    solutions = {given_name(lab, cell) or "": cell.source for cell in lab.tagged("exercise")}
    for name in list(solutions)[:-1]:
        student.types(name, solutions[name])
    bet = given_name(lab, lab.tagged("prediction")[0]) or ""
    student.types(bet, student.cells()[bet]["source"].replace("prediction=...", "prediction=3"))
    written = {name: cell["source"] for name, cell in student.cells().items()}

    # What was done is kept: the page is loaded anew.
    student.commands("docmanager:save")
    student.page.reload()
    student.wait()
    assert {name: cell["source"] for name, cell in student.cells().items()} == written

    # All is run, and handed in.
    student.commands("notebook:run-all-cells")
    student.types("18-hand-in", f'hand_in(student_id, "18", bets=9, done=True, code="{code}")')
    student.commands("notebook:run-cell")
    card = student.page.locator(".jp-Notebook .jp-Cell.jp-mod-active .jp-OutputArea-output")
    expect(card).to_contain_text("lab 18: 1 of 9 bets, 3 of 4 checks passed over 50 seeds")
    expect(card).to_contain_text("18/notes: not solved yet")
    expect(card.get_by_role("link", name=FORM)).to_have_attribute("href", FORM)
    with student.page.expect_download() as downloading:
        card.get_by_role("link", name="Download").click()
    download = downloading.value
    handed_in = tmp_path / "handed-in" / STUDENT / download.suggested_filename
    download.save_as(handed_in)
    assert b64decode(student.page.evaluate(READ, handed_in.name)) == handed_in.read_bytes()

    # The teacher marks the file, and, apart from it, the notebook as the browser gives it out.
    student.commands("docmanager:save")
    with student.page.expect_download() as downloading:
        student.commands("docmanager:download")
    downloading.value.save_as(tmp_path / "notebooks" / STUDENT / f"{LAB}.ipynb")
    for place in ("handed-in", "notebooks"):
        told = ["--out", str(tmp_path / f"marks-{place}"), "--root", str(ROOT), "--hidden", "3"]
        assert main(["grade", str(tmp_path / place), "--key", str(tmp_path / "key"), *told]) == 0
    marked, as_a_notebook = row(tmp_path / "marks-handed-in"), row(tmp_path / "marks-notebooks")
    assert (marked["student"], marked["points"], marked["most"]) == (STUDENT, "3.0", "7")
    assert marked == as_a_notebook
    result = json.loads((tmp_path / "marks-handed-in" / STUDENT / LAB / "result.json").read_text())
    assert result["hand_in"]["signed"] == "with the student's code"
    assert result["certificate"]["holds"] is True
    assert result["run"]["verdict"] == "ok"
    assert "3 of 7" in capsys.readouterr().out
