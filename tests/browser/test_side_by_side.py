"""Push and Pop beside each other in a page: an act plays at a press, both halves move, and the last picture stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from .notebook_page import Notebook, NotebookPage, ViewerPage

CELLS = [
    "from mqlab.scenarios.take_or_own import three_acts\nfrom mqlab_widgets import SideBySide",
    "SideBySide(three_acts(7))",
]
NAME = "side_by_side.ipynb"


@pytest.fixture
def notebook(notebooks: NotebookPage) -> Iterator[Notebook]:
    opened = notebooks.open(NAME, CELLS)
    opened.run()
    yield opened
    opened.close()


def begin(viewer: ViewerPage, act: str) -> None:
    """Press the button of an act, and wait until it plays."""
    viewer.part("acts").get_by_role("button", name=act).click()
    expect(viewer.part("acts").get_by_role("button", name=act)).to_have_attribute("aria-pressed", "true")
    expect(viewer.root).to_have_attribute("data-playing", "true")


def test_an_act_plays_and_both_halves_move(notebook: Notebook) -> None:
    viewer = notebook.viewer(1)
    expect(viewer.part("stage")).to_contain_text("push-1 hangs and keeps")
    begin(viewer, "A member joins")
    expect(viewer.part("acts")).to_contain_text("push-3 and pop-3 join")
    half = viewer.part("stage").locator('[data-key="owners:words"]')
    expect(half).to_contain_text("to nobody now")
    expect(viewer.part("stage").locator('[data-key="takers:words"]')).to_contain_text("Nobody owns anything")
    begin(viewer, "Nine members")
    expect(viewer.part("stage").locator('[data-key="owners:words"]')).to_contain_text("owns no queue")
    viewer.pause()


def test_in_projector_mode_the_acts_stay_and_the_halves_fill_the_window(notebook: Notebook) -> None:
    viewer = notebook.viewer(1)
    viewer.root.focus()
    viewer.page.keyboard.press("f")
    viewer.part("timeline").wait_for(state="hidden")
    begin(viewer, "Nine members")
    expect(viewer.part("acts")).to_contain_text("stays idle")
    expect(viewer.part("said")).to_be_hidden()
    size = viewer.part("stage").locator("svg.mq-stage.big").bounding_box()
    window = viewer.page.viewport_size
    assert size is not None
    assert window is not None
    assert size["width"] > window["width"] * 0.9
    viewer.page.keyboard.press("Escape")
    viewer.part("timeline").wait_for()


def test_a_notebook_that_was_saved_shows_the_last_picture(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("saved_side.ipynb", CELLS)
    notebook.run()
    expect(notebook.viewer(1).part("stage")).to_contain_text("push-1 hangs and keeps")
    notebook.command("docmanager:save")
    notebook.close()
    again = notebooks.open("saved_side.ipynb")
    viewer = again.viewer(1)
    expect(viewer.part("stage")).to_contain_text("push-1 hangs and keeps")
    expect(viewer.part("stage").locator('[data-key="takers:orders"]')).to_be_visible()
    expect(viewer.part("acts")).to_contain_text("A member joins")
    again.close()
