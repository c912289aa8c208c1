"""The labs as students open them: all cells run in the browser, and the live views in them work."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from .jupyter_lab import ROOT
from .notebook_page import NotebookPage

LABS = ["00_tour"]


def tells_of_an_error(output: dict[str, Any]) -> bool:
    """Whether an output of a notebook is an error, or is written where errors are."""
    return output["output_type"] == "error" or output.get("name") == "stderr"


@pytest.mark.parametrize("name", LABS)
def test_a_lab_runs_from_top_to_bottom(notebooks: NotebookPage, name: str) -> None:
    file = ROOT / "labs" / f"{name}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    shutil.copy(file, notebooks.lab.files)
    notebook = notebooks.open(file.name)
    notebook.command("notebook:run-all-cells")
    expected = [any(map(tells_of_an_error, cell.get("outputs", ()))) for cell in cells]
    for index, fails in enumerate(expected):
        if cells[index]["cell_type"] == "code" and "".join(cells[index]["source"]):
            cell = notebook.cell(index)
            assert cell.locator(".jp-InputPrompt").first.inner_text().strip("[]: ").isdigit(), index
            assert (cell.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() > 0) == fails, index
    viewers = notebook.root.locator(".mq-viewer")
    for at in range(viewers.count()):
        viewer = viewers.nth(at)
        viewer.locator('[data-part="stage"] svg').wait_for()
        viewer.focus()
        notebooks.page.keyboard.press("Home")
        notebooks.page.wait_for_function("view => view.dataset.place === '0'", arg=viewer.element_handle())
    notebook.close()
