"""The labs as students open them: all cells run in the browser, and the live views in them work."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from mqlab.labs.my_labs import copy_labs

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


def test_what_comes_of_a_bet_is_shown_when_its_cell_is_run(notebooks: NotebookPage) -> None:
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    output = {"output_type": "execute_result", "data": {"text/plain": "18.5"}, "metadata": {}, "execution_count": 1}
    cell = {"cell_type": "code", "id": "end", "source": "37 / 2", "outputs": [output], "execution_count": 1}
    hidden = cell | {"metadata": {"collapsed": True, "jupyter": {"outputs_hidden": True}}}
    made = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": [hidden]}
    (notebooks.lab.files / "bet.ipynb").write_text(json.dumps(made), encoding="utf-8")
    notebook = notebooks.open("bet.ipynb")
    shown = notebook.cell(0).locator(".jp-OutputArea-output:visible")
    assert shown.count() == 0
    notebook.run_cell(0)
    shown.first.wait_for()
    assert shown.all_inner_texts() == ["18.5"]


def test_the_working_copy_draws_its_pictures_before_any_cell_has_run(
    notebooks: NotebookPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", notebooks.lab.environment()["JUPYTER_DATA_DIR"])
    copy_labs(ROOT, notebooks.lab.files / "my-labs")
    notebook = notebooks.open("my-labs/00_tour.ipynb")
    notebook.root.locator(".jp-OutputArea-output :is(svg, img)").first.wait_for()
    cells = json.loads((ROOT / "labs" / "00_tour.ipynb").read_text(encoding="utf-8"))["cells"]
    kept = [index for index, cell in enumerate(cells) if cell.get("outputs")]
    drawn = [index for index in kept if notebook.cell(index).locator(".jp-OutputArea-output:visible").count()]
    assert drawn == [index for index in kept if not hidden(cells[index])]
    # In the place of a hidden output JupyterLab shows the beginning of its text.
    shown = notebook.root.locator(".jp-OutputPlaceholder").all_inner_texts()
    assert [text for text in shown if text.strip()] == []


def hidden(cell: dict[str, Any]) -> bool:
    """Whether the outputs of a cell are not shown until it runs."""
    return bool(cell["metadata"].get("jupyter", {}).get("outputs_hidden"))
