"""A hint that was opened is noted in the notebook, and stays noted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mqlab.labs.hints import folded

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from .notebook_page import Notebook, NotebookPage

HINTS = "- A nudge\n- The way\n- Nearly the answer"


def write(notebooks: NotebookPage, name: str) -> None:
    """A notebook with hints to an exercise, and with a text that folds something else away."""
    notebooks.lab.write(name, ["1 + 1"])
    file = notebooks.lab.files / name
    notebook = json.loads(file.read_text())
    hints = {"tags": ["hints"], "mqlab": {"hints_for": "01-queues"}}
    other = "<details><summary>Something else</summary>\n\ntext\n\n</details>"
    notebook["cells"] += [
        {"cell_type": "markdown", "id": "hints", "metadata": hints, "source": folded(HINTS)},
        {"cell_type": "markdown", "id": "other", "metadata": {}, "source": other},
    ]
    file.write_text(json.dumps(notebook))


def shown(notebook: Notebook, cell: int, text: str) -> Locator:
    """A text where a rendered cell shows it; the cell's source, which is hidden, has it, too."""
    return notebook.cell(cell).locator(".jp-RenderedMarkdown").get_by_text(text, exact=True)


def noted(notebooks: NotebookPage, name: str) -> list[Any]:
    """What the saved notebook says of its text cells."""
    cells = json.loads((notebooks.lab.files / name).read_text())["cells"]
    return [cell["metadata"].get("mqlab") for cell in cells if cell["cell_type"] == "markdown"]


def test_opened_hints_are_kept_in_the_saved_notebook(notebooks: NotebookPage) -> None:
    write(notebooks, "hints.ipynb")
    notebook = notebooks.open("hints.ipynb")
    shown(notebook, 1, "Hint 2 of 3").click()
    shown(notebook, 1, "The way").wait_for()
    shown(notebook, 1, "Hint 1 of 3").click()
    shown(notebook, 2, "Something else").click()
    shown(notebook, 2, "text").wait_for()
    notebook.command("docmanager:save")
    assert noted(notebooks, "hints.ipynb") == [{"hints_for": "01-queues", "hints_opened": [1, 2]}, None]
    notebook.close()

    # Loaded again, run and saved: what was noted stays, and more is added.
    notebook = notebooks.open("hints.ipynb")
    notebook.run()
    shown(notebook, 1, "Hint 3 of 3").click()
    shown(notebook, 1, "Nearly the answer").wait_for()
    notebook.command("docmanager:save")
    assert noted(notebooks, "hints.ipynb")[0]["hints_opened"] == [1, 2, 3]
    notebook.close()
