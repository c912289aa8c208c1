"""A notebook that is opened without its kernel shows the last picture of its views, never "model not found"."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from .conftest import STEADY
from .jupyter_lab import JupyterLab
from .notebook_page import Notebook, NotebookPage

WIDGETS = "@jupyter-widgets/jupyterlab-manager/plugin"


@pytest.fixture(scope="module")
def without_state(jupyter_lab: JupyterLab, browser: Browser) -> Iterator[NotebookPage]:
    """JupyterLab in another page, where the widgets' state is not saved."""
    jupyter_lab.set(WIDGETS, {"saveState": False})
    page = NotebookPage(browser.new_page(viewport={"width": 1500, "height": 1200}), jupyter_lab)
    page.load()
    yield page
    jupyter_lab.set(WIDGETS, {"saveState": True})
    page.page.close()


def saved_and_opened_again(notebooks: NotebookPage, name: str) -> Notebook:
    """A notebook with a view that was run, saved, closed with its kernel, and opened."""
    notebook = notebooks.open(name, [STEADY, "Stepper(lab)"])
    notebook.run()
    viewer = notebook.viewer(1)
    place = viewer.place
    viewer.press("p")
    viewer.until_place(place - 1)
    notebook.command("docmanager:save")
    notebook.close()
    return notebooks.open(name)


def has_state(lab: JupyterLab, name: str) -> bool:
    """Whether the widgets' state is in the file."""
    return "widgets" in json.loads((lab.files / name).read_text(encoding="utf-8"))["metadata"]


def test_a_view_that_was_saved_shows_its_last_picture_and_says_how_to_go_on(notebooks: NotebookPage) -> None:
    notebook = saved_and_opened_again(notebooks, "saved.ipynb")
    assert has_state(notebooks.lab, "saved.ipynb")
    viewer = notebook.viewer(1)
    assert viewer.place == viewer.length - 1
    expect(viewer.machine("broker-a").first).to_be_visible()
    expect(viewer.root).to_contain_text("Run the notebook from the top")
    notebook.close()


def test_a_view_whose_state_was_not_saved_leaves_the_picture_beside_it(without_state: NotebookPage) -> None:
    notebook = saved_and_opened_again(without_state, "stateless.ipynb")
    assert not has_state(without_state.lab, "stateless.ipynb")
    output = notebook.cell(1).locator(".jp-OutputArea-output").first
    expect(output.locator("svg").first).to_be_visible()
    expect(output).not_to_contain_text("model not found")
    notebook.close()
    assert not [line for line in without_state.seen if "model not found" in line]
