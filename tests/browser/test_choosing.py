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


def play_a_slice(viewer: ViewerPage) -> None:
    """One slice on, and its picture."""
    before = viewer.taken
    viewer.press("s")
    viewer.until(lambda: viewer.taken > before)
    viewer.still()


def frame_that_may_arrive(viewer: ViewerPage) -> Locator:
    """The first row of a frame in the list of what may happen next; the world is played until there is one."""
    row = viewer.open("Next").locator(".mq-next > .mq-row").first
    while not row.count():
        play_a_slice(viewer)
    return row


def test_what_is_picked_happens_next(viewer: ViewerPage) -> None:
    button, before = frame_that_may_arrive(viewer).locator('[data-do="pick"]'), viewer.place
    machine = (button.get_attribute("data-entry") or "?").partition("/")[0]
    button.click()
    viewer.until(lambda: viewer.place > before)
    assert "pick" not in viewer.text("said")
    assert machine in (viewer.open("Step").text_content() or "")


def due_ms(row: Locator) -> float:
    """In how many ms is due what a row is about."""
    (told,) = re.findall(r"in ([\d.,]+) ms", row.inner_text())
    return float(told.replace(",", ""))


def test_what_is_held_back_is_due_later(viewer: ViewerPage) -> None:
    row = frame_that_may_arrive(viewer)
    entry, before = row.locator('[data-do="hold"]').get_attribute("data-entry"), due_ms(row)
    row.locator('[data-do="hold"]').click()
    held = viewer.part("next").locator(".mq-row", has=viewer.page.locator(f'[data-do="pick"][data-entry="{entry}"]'))
    viewer.until(lambda: due_ms(held) > before)
    assert due_ms(held) == pytest.approx(before + 100, abs=1)


def test_a_connection_is_broken_instead_of_delivering(viewer: ViewerPage) -> None:
    breaking = frame_that_may_arrive(viewer).locator('[data-do="disconnect"]')
    source, target = (breaking.get_attribute(f"data-{end}") or "?" for end in ("source", "target"))
    breaking.click()
    step = viewer.open("Step")
    expect(step).to_contain_text("disconnect")
    play_a_slice(viewer)
    expect(step).to_contain_text("ConnectionBroken")
    assert source in step.inner_text() or target in step.inner_text()


def test_a_token_in_the_air_has_handles_that_let_it_arrive_and_hold_it(viewer: ViewerPage) -> None:
    handle = viewer.part("handles").locator(".mq-handle:visible").first
    while not handle.count():
        play_a_slice(viewer)
    flight = handle.get_attribute("data-flight")
    hold = handle.get_by_role("button", name=re.compile("^Hold back "))
    held = viewer.taken
    hold.click()
    viewer.until(lambda: viewer.taken > held)
    mine = viewer.part("handles").locator(f'[data-flight="{flight}"]')
    expect(mine).to_be_visible()
    mine.get_by_role("button", name=re.compile("^Let .* arrive$")).click()
    expect(viewer.part("stage").locator(f'.mq-flight[data-key="{flight}"]')).to_have_count(0)


def test_a_world_is_taken_back_and_goes_on_in_another_way(viewer: ViewerPage) -> None:
    viewer.press("[")
    viewer.until(lambda: viewer.place < viewer.length)
    first_length = viewer.length
    viewer.open("Next").locator('[data-do="take_back"]').click()
    viewer.until(lambda: viewer.attribute("world") == "1")
    assert viewer.length < first_length
    viewer.choose("broker-a")
    viewer.do("Crash broker-a")
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    worlds = viewer.open("Worlds")
    expect(worlds).to_contain_text("events in common")
    worlds.locator('[data-do="branch"]').first.click()
    viewer.until(lambda: viewer.attribute("world") == "0")
    assert viewer.length == first_length
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, running")


def test_a_shared_world_reopens_at_the_same_event_in_another_kernel(
    viewer: ViewerPage, notebook: Notebook, notebooks: NotebookPage
) -> None:
    viewer.press("p")
    viewer.until(lambda: viewer.place < viewer.length)
    text = viewer.share()
    (notebooks.lab.files / "shared.txt").write_text(text, encoding="utf-8")
    twin = viewer.twin()
    other = notebooks.open("reopened.ipynb", [STEADY, "Stepper.reopen(open('shared.txt').read())"])
    other.run()
    reopened = other.viewer(1)
    assert (reopened.place, reopened.length) == (viewer.place, viewer.length)
    assert reopened.attribute("us") == viewer.attribute("us")
    assert reopened.twin() == twin
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
