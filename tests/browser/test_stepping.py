"""Stepping, scrubbing and playing with the mouse and with keys."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .notebook_page import Notebook, NotebookPage, ViewerPage


@pytest.fixture
def viewer(notebooks: NotebookPage, two_brokers: Notebook) -> ViewerPage:
    """The stepper of two_brokers, at its newest event."""
    shown = two_brokers.viewer(1)
    shown.press("End")
    shown.until(lambda: shown.place == shown.length > 0)
    return shown


def test_buttons_step_one_event_and_one_slice(viewer: ViewerPage) -> None:
    before = viewer.place
    viewer.button("One event on").click()
    viewer.until_place(before + 1)
    viewer.more("One slice on")
    viewer.until(lambda: viewer.place > before + 1)
    viewer.button("One event back").click()
    viewer.until(lambda: viewer.place == viewer.length - 1 and viewer.attribute("past") == "true")
    viewer.button("Now").click()
    viewer.until(lambda: viewer.place == viewer.length)
    assert viewer.button("Now").count() == 0


def test_keys_step_and_jump(viewer: ViewerPage) -> None:
    before = viewer.place
    viewer.press("n")
    viewer.until_place(before + 1)
    viewer.press("p")
    viewer.until_place(before)
    viewer.press("ArrowLeft")
    viewer.until_place(before - 1)
    viewer.press("ArrowRight")
    viewer.until_place(before)
    viewer.press("Home")
    viewer.until_place(0)
    expect(viewer.root.locator('[data-key="clock"]')).to_have_text("0.000 s")
    assert "Nothing has happened yet" in (viewer.open("Step").text_content() or "")
    viewer.press("End")
    viewer.until(lambda: viewer.place == viewer.length)


def test_the_kind_keys_go_to_the_next_and_the_previous_event_of_the_kind(viewer: ViewerPage) -> None:
    step = viewer.open("Step")
    viewer.press("Home")
    viewer.until_place(0)
    viewer.button("More").click()
    viewer.root.get_by_label("event kind").select_option("PullHeld")
    viewer.press("]")
    expect(step).to_contain_text("PullHeld")
    first = viewer.place
    viewer.more("Next")
    viewer.until(lambda: viewer.place > first)
    viewer.press("[")
    viewer.until_place(first)


def test_the_time_line_scrubs_both_ways(viewer: ViewerPage) -> None:
    line = viewer.part("timeline").get_by_role("slider")
    length = viewer.length
    line.focus()
    viewer.page.keyboard.press("Home")
    viewer.until_place(0)
    assert viewer.part("stage").locator("[data-node]").count() == 0
    line.click()
    viewer.until(lambda: 0 < viewer.place < length)
    assert viewer.machine("broker-a").count() == 1
    viewer.page.keyboard.press("ArrowLeft")
    viewer.page.keyboard.press("End")
    viewer.until_place(length)
    assert viewer.length == length


def test_playing_moves_the_world_until_it_is_paused(viewer: ViewerPage) -> None:
    before = viewer.length
    viewer.play()
    viewer.until(lambda: viewer.place > before + 10)
    viewer.pause()
    stands = viewer.place
    assert stands == viewer.length
    viewer.press(" ")
    viewer.until(lambda: viewer.place > stands)
    viewer.press(" ")
    expect(viewer.root).to_have_attribute("data-playing", "false")
    viewer.button("Play").wait_for()


def test_playing_in_the_past_shows_the_record(viewer: ViewerPage) -> None:
    length = viewer.length
    viewer.press("Home")
    viewer.until_place(0)
    viewer.play()
    viewer.until(lambda: viewer.place > 5)
    viewer.pause()
    assert viewer.place < length
    assert viewer.length == length


def test_to_a_time_forward_and_back(viewer: ViewerPage) -> None:
    length = viewer.length
    viewer.button("More").click()
    box = viewer.root.get_by_role("spinbutton", name="time")
    box.fill("1000")
    box.press("Enter")
    viewer.until(lambda: viewer.place < length)
    assert 0 < int(viewer.attribute("us")) <= 1_000_000
    assert viewer.length == length


def test_the_last_step_shows_its_source_and_its_causes(viewer: ViewerPage) -> None:
    step = viewer.open("Step")
    before = viewer.place
    viewer.press("]")
    viewer.until(lambda: viewer.place > before)
    step.locator("[data-key=source] summary").click()
    assert "emit" in step.locator("[data-key=source]").inner_text()
    step.locator("[data-key=causes] summary").click()
    place = viewer.place
    step.locator("[data-key=causes] button").first.click()
    viewer.until(lambda: viewer.place < place)
