"""Choosing what happens next, and the tree of worlds that comes of it; sharing a world."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from .conftest import STEADY
from .notebook_page import Notebook, NotebookPage, ViewerPage


@pytest.fixture(scope="module")
def notebook(loaded: NotebookPage) -> Iterator[Notebook]:
    """A stepper of a steady load, two more that reopen what it shares, and one of a text that was never shared."""
    cells = [
        STEADY,
        "stepper = Stepper(lab)\nstepper",
        "shared = open('shared.txt').read()",
        "Stepper.reopen(shared)",
        "Stepper.reopen(shared[:-40])",
        "Stepper.reopen('https://example.com/what-is-this')",
    ]
    opened = loaded.open("choosing.ipynb", cells)
    for index in (0, 1):
        opened.run_cell(index)
    yield opened
    opened.close()


@pytest.fixture
def viewer(notebooks: NotebookPage, notebook: Notebook) -> ViewerPage:
    """The stepper, in its present."""
    shown = notebook.viewer(1)
    shown.press("End")
    shown.until(lambda: shown.place == shown.length)
    return shown


def rows(viewer: ViewerPage) -> Locator:
    """What may happen next, one row each."""
    return viewer.root.locator('[data-part="side"] [data-key="next"] .mq-row')


def words(row: Locator) -> str:
    """What a row says: on which machine, and what."""
    return row.locator("span").first.inner_text()


def play_a_slice(viewer: ViewerPage) -> None:
    """One slice on, and its picture."""
    place = viewer.place
    viewer.button("slice").click()
    viewer.until(lambda: viewer.place > place)


def test_what_is_picked_happens_next(viewer: ViewerPage) -> None:
    row = rows(viewer).first
    machine, before = words(row).partition(":")[0], viewer.place
    row.get_by_role("button", name="now").click()
    viewer.until(lambda: viewer.place > before)
    assert "pick" not in viewer.text("said")
    assert machine in viewer.text("side")


def test_what_is_held_back_is_due_later(viewer: ViewerPage) -> None:
    row = rows(viewer).filter(has=viewer.page.get_by_role("button", name="later")).first
    what, due = words(row), row.locator(".mq-faint").inner_text()
    row.get_by_role("button", name="later").click()
    waited = viewer.root.locator(".mq-row", has_text=what).first.locator(".mq-faint")
    expect(waited).not_to_have_text(due)
    before, after = (float(re.sub(r"[^\d.]", "", text)) for text in (due, waited.inner_text()))
    assert after == pytest.approx(before + 100)


def test_a_connection_is_broken_instead_of_delivering(viewer: ViewerPage) -> None:
    breaking = rows(viewer).get_by_role("button", name="break").first
    while not breaking.count():
        play_a_slice(viewer)
    source, target = (breaking.get_attribute(f"data-{end}") or "?" for end in ("source", "target"))
    breaking.click()
    viewer.until(lambda: "disconnect" in viewer.text("side"))
    play_a_slice(viewer)
    viewer.root.locator('[data-key="step"]', has_text="ConnectionBroken").wait_for()
    step = viewer.root.locator('[data-key="step"]').inner_text()
    assert source in step or target in step


def test_a_world_is_taken_back_and_goes_on_in_another_way(viewer: ViewerPage) -> None:
    viewer.press("[")
    viewer.until(lambda: viewer.place < viewer.length)
    first_length = viewer.length
    viewer.root.get_by_role("button", name="play a new world up to here").click()
    viewer.until(lambda: viewer.attribute("world") == "1")
    assert viewer.length < first_length
    viewer.machine("broker-a").click()
    viewer.button("crash").click()
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    assert "events in common" in viewer.text("side")
    viewer.root.get_by_role("button", name="show", exact=True).click()
    viewer.until(lambda: viewer.attribute("world") == "0")
    assert viewer.length == first_length
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, running")


def test_a_shared_world_reopens_at_the_same_event_in_another_kernel(
    viewer: ViewerPage, notebook: Notebook, notebooks: NotebookPage
) -> None:
    viewer.press("p")
    viewer.until(lambda: viewer.place < viewer.length)
    viewer.button("share").click()
    text = viewer.root.locator('[data-part="said"] input').input_value()
    assert text.startswith("mqlab:")
    (notebooks.lab.files / "shared.txt").write_text(text, encoding="utf-8")
    other = notebooks.open("reopened.ipynb", [STEADY, "Stepper.reopen(open('shared.txt').read())"])
    other.run()
    reopened = other.viewer(1)
    assert (reopened.place, reopened.length) == (viewer.place, viewer.length)
    assert reopened.text("where").partition(" · world")[0] == viewer.text("where").partition(" · world")[0]
    assert reopened.text("text") == viewer.text("text")
    other.close()


@pytest.mark.parametrize("index", [4, 5])
def test_a_text_that_was_not_shared_is_refused_with_what_to_do(
    notebooks: NotebookPage, notebook: Notebook, index: int
) -> None:
    notebook.execute("shared = 'mqlab:abc'")
    notebook.begin_cell(index)
    output = notebook.cell(index).locator(".jp-OutputArea-output")
    expect(output).to_contain_text("Error")
    assert re.search(r"copy all of it|is no report|is not", output.inner_text())
    assert notebook.cell(index).locator(".mq-viewer").count() == 0
