"""A check that failed offers its world: a button in the card, and behind it the viewer at the failing event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from .jupyter_lab import ROOT

if TYPE_CHECKING:
    from .notebook_page import NotebookPage

WRONG = """%load_ext mqlab
from runpy import run_path
from mqlab.check import check
wrong = run_path("{file}")["WRONG"]"""


def test_the_button_opens_the_world_where_it_went_wrong(notebooks: NotebookPage) -> None:
    file = ROOT / "tests" / "labs" / "wrong" / "05_push_is_pull.py"
    checks = [f'check("05/{name}", wrong["05/{name}"][0])' for name in ("hold", "wakes")]
    cells = [WRONG.format(file=file), *checks]
    notebook = notebooks.open("card.ipynb", cells)
    notebook.run()
    card = notebook.cell(1).locator(".jp-OutputArea-output").first
    expect(card).to_contain_text("not right yet")
    expect(card).not_to_contain_text("Stepper(_.open())")
    expect(card.locator(".mq-viewer")).to_have_count(0)
    card.get_by_role("button", name="Open this world").click()
    viewer = notebook.viewer(1)
    assert viewer.place == viewer.length > 0
    expect(card).to_contain_text("as the judge has left it")
    viewer.press("p")
    viewer.until_place(viewer.length - 1)
    card.get_by_role("button", name="Close it").click()
    expect(card.locator("svg")).to_have_count(0)
    # A check without a world offers none.
    expect(notebook.cell(2).get_by_role("button", name="Open this world")).to_have_count(0)

    # Elsewhere the saved text says what to write.
    notebook.command("docmanager:save")
    saved = json.loads((notebooks.lab.files / "card.ipynb").read_text())["cells"][1]["outputs"][0]["data"]
    assert "Stepper(_.open())" in "".join(saved["text/plain"])
    assert "application/vnd.mqlab.verdict+json" in saved
    notebook.close()
