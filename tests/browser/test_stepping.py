"""Stepping, scrubbing and playing with the mouse and with keys."""

from __future__ import annotations

import pytest

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
    viewer.button("event").click()
    viewer.until_place(before + 1)
    assert f"event {before + 1:,} of" in viewer.text("where")
    viewer.button("slice").click()
    viewer.until(lambda: viewer.place > before + 1)
    viewer.button("back").click()
    viewer.until(lambda: viewer.place == viewer.length - 1)
    assert "in the past" in viewer.text("where")


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
    assert "Nothing has happened yet" in viewer.text("side")
    viewer.press("End")
    viewer.until(lambda: viewer.place == viewer.length)


def test_the_kind_keys_go_to_the_next_and_the_previous_event_of_the_kind(viewer: ViewerPage) -> None:
    viewer.press("Home")
    viewer.until_place(0)
    viewer.cell.locator("select").nth(1).select_option("PullHeld")
    viewer.press("]")
    viewer.until(lambda: "PullHeld" in viewer.text("side"))
    first = viewer.place
    viewer.button("next").click()
    viewer.until(lambda: viewer.place > first)
    viewer.press("[")
    viewer.until_place(first)


def test_the_time_line_scrubs_both_ways(viewer: ViewerPage) -> None:
    slider = viewer.cell.get_by_role("slider")
    length = viewer.length
    slider.focus()
    viewer.page.keyboard.press("Home")
    viewer.until_place(0)
    assert "no machine has started yet" in viewer.text("text")
    assert viewer.root.locator("[data-node]").count() == 0
    box = slider.bounding_box() or viewer.cell.locator(".noUi-target").bounding_box()
    assert box is not None
    track = viewer.cell.locator(".noUi-target").bounding_box()
    assert track is not None
    viewer.page.mouse.click(track["x"] + track["width"] / 2, track["y"] + track["height"] / 2)
    viewer.until(lambda: length / 3 < viewer.place < length * 2 / 3)
    assert viewer.machine("broker-a").count() == 1
    assert viewer.length == length


def test_playing_moves_the_world_until_it_is_paused(viewer: ViewerPage) -> None:
    before = viewer.length
    viewer.button("play").click()
    viewer.until(lambda: viewer.length > before + 10)
    assert "playing at 1 times real time" in viewer.text("where")
    viewer.button("pause").click()
    viewer.until(lambda: "playing" not in viewer.text("where"))
    stands = viewer.length
    viewer.press(" ")
    viewer.until(lambda: viewer.length > stands)
    viewer.press(" ")
    viewer.until(lambda: "playing" not in viewer.text("where"))
    viewer.button("play").wait_for()


def test_to_a_time_forward_and_back(viewer: ViewerPage) -> None:
    length = viewer.length
    box = viewer.cell.locator('input[type="number"]')
    box.fill("1000")
    box.press("Enter")
    viewer.button("go").click()
    viewer.until(lambda: viewer.place < length)
    ms = float(viewer.root.locator('[data-part="where"] b').inner_text().removesuffix(" ms").replace(",", ""))
    assert ms <= 1000
    assert viewer.length == length


def test_the_last_step_shows_its_source_and_its_causes(viewer: ViewerPage) -> None:
    viewer.button("next").click()
    side = viewer.root.locator('[data-part="side"]')
    side.locator("[data-key=source] summary").wait_for()
    side.locator("[data-key=source] summary").click()
    assert "emit" in side.locator("[data-key=source]").inner_text()
    side.locator("[data-key=causes] summary").click()
    place = viewer.place
    side.locator("[data-key=causes] button").first.click()
    viewer.until(lambda: viewer.place < place)
