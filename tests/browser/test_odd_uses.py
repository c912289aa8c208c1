"""What people do that nobody planned: two views of a world, a view of an empty one, a restart, a cell that plays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from .conftest import STEADY
from .jupyter_lab import JupyterLab
from .notebook_page import Notebook, NotebookPage

KERNELS = "@jupyterlab/apputils-extension/kernels-settings"
UNTIL_TOLD = """lab.run_until(lambda: Path("enough").exists(), limit_ms=10**12)
"ended at event", len(lab.history)"""
UNTIL_CRASHED = """crash = lab.run_until_event("NodeCrashed", limit_ms=10**12)
"ended by", crash.kind"""


@pytest.fixture(scope="module")
def without_subshells(jupyter_lab: JupyterLab, browser: Browser) -> Iterator[NotebookPage]:
    """JupyterLab in another page, where a widget's messages wait for the cell that runs."""
    jupyter_lab.set(KERNELS, {"commsOverSubshells": "disabled"})
    page = NotebookPage(browser.new_page(viewport={"width": 1500, "height": 1200}), jupyter_lab)
    page.load()
    page.page.wait_for_function("() => jupyterapp.serviceManager.kernels.commsOverSubshells === 'disabled'")
    jupyter_lab.set(KERNELS, {})
    yield page
    page.page.close()


def test_two_views_of_one_world_follow_each_other(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("two_views.ipynb", [STEADY, "Stepper(lab)", "Stepper(lab)", "_ = lab.run_for(ms=500)"])
    notebook.run()
    first, second = notebook.viewer(1), notebook.viewer(2)
    second.until(lambda: first.place == second.place == second.length)
    place = first.place
    first.button("One event back").click()
    second.until_place(place - 1)
    second.press("Home")
    first.until_place(0)
    second.machine("broker-a").count()
    first.press("End")
    second.until(lambda: second.place == second.length)
    second.choose("broker-a")
    second.do("Crash broker-a")
    expect(first.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    notebook.close()


def test_a_view_of_a_world_without_machines_shows_them_when_they_come(notebooks: NotebookPage) -> None:
    cells = [STEADY, "empty = Lab(seed=1)\nStepper(empty)", "empty.name_server()\n_ = empty.broker('broker-a')"]
    notebook = notebooks.open("empty.ipynb", cells)
    notebook.run_cell(0)
    notebook.run_cell(1)
    viewer = notebook.viewer(1)
    assert "No machine has started yet" in viewer.text("stage")
    expect(viewer.button("Play")).to_have_attribute("aria-disabled", "true")
    viewer.press("s")
    viewer.until_said("Nothing is left to happen")
    notebook.run_cell(2)
    viewer.machine("broker-a").wait_for()
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, running")
    notebook.close()


def test_after_a_restart_of_the_kernel_a_view_says_what_to_do(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("stale.ipynb", [STEADY, "Stepper(lab)"])
    notebook.run()
    viewer = notebook.viewer(1)
    notebook.restart()
    viewer.root.focus()
    viewer.until_said("run the notebook from the top")
    viewer.press("n")
    viewer.until_said("run the notebook from the top")
    notebook.run()
    viewer = notebook.viewer(1)
    expect(viewer.root).not_to_contain_text("from the top")
    place = viewer.place
    viewer.press("n")
    viewer.until_place(place + 1)
    assert viewer.length > place
    notebook.close()


def test_an_answer_that_was_on_its_way_does_not_make_a_lost_kernel_look_alive(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("late_answer.ipynb", [STEADY, "Stepper(lab)"])
    notebook.run()
    viewer = notebook.viewer(1)
    viewer.until(lambda: viewer.attribute("kernel") == "answers")
    place = viewer.place
    # JupyterLab marks a view with this class when its kernel is restarted.
    viewer.root.evaluate("""element => {
        element.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
        element.classList.add("jupyter-widgets-disconnected");
    }""")
    viewer.until_place(place + 1)
    assert viewer.attribute("kernel") == "gone"
    assert "run the notebook from the top" in viewer.text("said")
    notebook.close()


def test_a_click_while_a_cell_plays_takes_effect_at_once(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("busy.ipynb", [STEADY, "Stepper(lab)", UNTIL_CRASHED])
    notebook.run_cell(0)
    notebook.run_cell(1)
    viewer = notebook.viewer(1)
    before = viewer.length
    notebook.begin_cell(2)
    viewer.until(lambda: viewer.length > before)
    viewer.press("s")
    viewer.until_said("A cell is playing this world")
    viewer.choose("broker-a")
    viewer.do("Crash broker-a")
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("NodeCrashed")
    notebook.close()


def test_without_subshells_all_works_as_with_them(without_subshells: NotebookPage) -> None:
    notebook = without_subshells.open("no_subshells.ipynb", [STEADY, "Stepper(lab)", UNTIL_TOLD])
    notebook.run_cell(0)
    notebook.run_cell(1)
    viewer = notebook.viewer(1)
    place = viewer.place
    viewer.button("One event on").click()
    viewer.until_place(place + 1)
    viewer.press("n")
    viewer.until_place(place + 2)
    viewer.play()
    viewer.until(lambda: viewer.place > place + 20)
    viewer.pause()
    wait_while_a_cell_plays(without_subshells, notebook)
    notebook.close()
    assert without_subshells.seen == []


def wait_while_a_cell_plays(page: NotebookPage, notebook: Notebook) -> None:
    """A click waits for the end of the cell, the page says so meanwhile, and then it takes effect."""
    viewer = notebook.viewer(1)
    notebook.begin_cell(2)
    before = viewer.length
    viewer.until(lambda: viewer.length > before)
    viewer.machine("broker-a").click(position={"x": 30, "y": 14})
    viewer.until_said("If a cell is running, wait for it")
    (page.lab.files / "enough").touch()
    expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("ended at event")
    viewer.do("Crash broker-a")
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    assert "does not answer" not in viewer.text("said")
