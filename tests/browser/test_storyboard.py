"""A storyboard fills the page as soon as its cell has run, and goes from caption to caption by a presenter's keys."""

from __future__ import annotations

from playwright.sync_api import expect

from .notebook_page import NotebookPage

WHOLE = "element => element.scrollHeight <= element.clientHeight + 1"
CELL = 'from mqlab_widgets import storyboard\nstoryboard("02")'


def test_a_storyboard_fills_the_page_and_page_down_tells_on(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("storyboard.ipynb", [CELL])
    notebook.run()
    viewer = notebook.viewer(0)
    caption = viewer.part("caption")
    expect(caption).to_contain_text("A shop sends ten orders")
    viewer.part("timeline").wait_for(state="hidden")
    expect(viewer.part("bar")).to_be_visible()
    size = viewer.root.bounding_box()
    window = viewer.page.viewport_size
    assert size is not None
    assert window is not None
    assert (size["width"], size["height"]) == (window["width"], window["height"])
    viewer.page.keyboard.press("PageDown")
    expect(caption).to_contain_text("at the end of one file")
    viewer.page.keyboard.press("PageDown")
    expect(caption).to_contain_text("not on its disk")
    assert caption.evaluate(WHOLE)
    viewer.page.keyboard.press("PageUp")
    expect(caption).to_contain_text("at the end of one file")
    viewer.page.keyboard.press("Escape")
    expect(viewer.part("timeline")).to_be_visible()
    notebook.close()
