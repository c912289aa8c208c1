"""Never a false picture: whenever a view is shown, it is the world at its place, in the size that is shown."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import STEADY
from .jupyter_lab import JupyterLab
from .notebook_page import Notebook, NotebookPage, ViewerPage
from .painted import differences, shot_now, shots, watched

SIZES = ((1500, 1000), (1280, 720), (960, 800), (700, 900))
RELOADS = 4
STEPPER = "stepper = Stepper(lab)\nstepper"


@pytest.fixture(scope="module")
def page(jupyter_lab: JupyterLab, browser: Browser) -> Iterator[NotebookPage]:
    """JupyterLab in a page of its own, which notes what it paints."""
    page = NotebookPage(browser.new_page(viewport={"width": 1500, "height": 1000}), jupyter_lab)
    watched(page.page)
    page.load()
    yield page
    page.page.close()


def drawn(viewer: ViewerPage) -> int:
    """The number of the whole picture that was painted last."""
    return int(viewer.attribute("drawn") or 0)


def until_beats(page: Page, beats: int) -> None:
    """Wait until so many beats of a story have been seen since the page was loaded."""
    page.wait_for_function(
        "beats => Number(document.querySelector('.mq-viewer')?.dataset.beats ?? 0) >= beats", arg=beats
    )


def reloaded(page: NotebookPage, name: str) -> Notebook:
    """The page loaded anew, with the notebook that was open in it."""
    page.page.goto(f"{page.lab.address}/lab/tree/{name}")
    page.page.wait_for_function("() => document.querySelector('.mq-viewer')?.dataset.drawn")
    return page.open(name)


def fits(shot: dict[str, Any]) -> bool:
    """Whether it was drawn for the room that it has, in the mode that is shown."""
    return abs(shot["width"] - shot["room"]) <= 3 and shot["big"] == shot["projected"]


def test_twenty_reloads_while_it_plays_show_the_world_as_it_is(page: NotebookPage) -> None:
    chance, painted = random.Random(7), []
    notebook = page.open("reloads.ipynb", [STEADY, STEPPER])
    notebook.run()
    notebook.command("docmanager:save")
    notebook.viewer(1).play()
    for number in range(RELOADS):
        if chance.random() < 0.3:
            notebook.viewer(1).press("f")
        until_beats(page.page, chance.randrange(1, 6))
        painted.append(shot_now(page.page, notebook.viewer(1).id))
        wide, high = SIZES[number * len(SIZES) // RELOADS]
        page.page.set_viewport_size({"width": wide, "height": high})
        notebook = reloaded(page, "reloads.ipynb")
        viewer = notebook.viewer(1)
        assert viewer.attribute("playing") == "true"
        painted += shots(page.page)
    viewer.pause()
    painted.append(shot_now(page.page, viewer.id))
    whole = [shot for shot in painted if shot["why"] != "kept"]
    assert len(whole) >= RELOADS
    assert [shot["place"] for shot in whole if not fits(shot)] == []
    # What was kept of a projector was drawn for a height that the page no longer has.
    known = [shot for shot in painted if shot["why"] != "kept" or not shot["big"]]
    assert differences(page, notebook, known) == []
    notebook.close()


def test_two_views_of_different_sizes_show_the_same_world(page: NotebookPage, browser: Browser) -> None:
    notebook = page.open("second.ipynb", [STEADY, STEPPER])
    notebook.run()
    notebook.command("docmanager:save")
    viewer = notebook.viewer(1)
    viewer.play()
    until_beats(page.page, 2)
    other = NotebookPage(browser.new_page(viewport={"width": 1280, "height": 720}), page.lab)
    watched(other.page)
    other.load()
    second = other.open("second.ipynb").viewer(1)
    expect(second.root).to_have_attribute("data-drawn", re.compile("."))
    second.press("f")
    other.page.wait_for_function("() => document.querySelector('svg.mq-stage.big')")
    until_beats(other.page, 2)
    viewer.pause()
    second.still()
    painted = shots(other.page)
    assert any(shot["big"] for shot in painted)
    assert differences(page, notebook, painted) == []
    # Who does something is drawn for; the other one shows the same picture, reduced.
    viewer.press("p")
    expect(viewer.part("stage").locator("svg")).not_to_contain_class("big")
    second.until(lambda: second.place == viewer.place)
    both = [shot_now(page.page, viewer.id), shot_now(other.page, second.id)]
    assert fits(both[0])
    assert differences(page, notebook, both) == []
    other.page.close()
    notebook.close()
    assert other.seen == []


def test_a_world_that_plays_is_shared_as_it_was_seen(page: NotebookPage) -> None:
    notebook = page.open("share.ipynb", [STEADY, STEPPER, "Stepper.reopen(open('line.txt').read())"])
    notebook.run_cell(0)
    notebook.run_cell(1)
    viewer = notebook.viewer(1)
    viewer.play()
    until_beats(page.page, 3)
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    viewer.button("Share").click()
    dialog = viewer.root.get_by_role("dialog", name="Share")
    dialog.get_by_role("button", name="Copy the line").click()
    expect(dialog.get_by_role("status").first).to_have_text("Copied.")
    line = page.page.evaluate("() => navigator.clipboard.readText()")
    assert line == dialog.get_by_role("textbox").first.input_value()
    assert viewer.attribute("playing") == "true"
    page.page.keyboard.press("Escape")
    expect(viewer.button("Share")).to_be_focused()
    viewer.pause()
    (page.lab.files / "line.txt").write_text(line, encoding="utf-8")
    notebook.run_cell(2)
    again = notebook.viewer(2)
    shot = shot_now(page.page, again.id)
    assert differences(page, notebook, [shot]) == []
    assert 0 < shot["place"] < viewer.length
    notebook.close()


@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_a_kernel_that_goes_while_it_plays_is_told_at_once(page: NotebookPage, how: str) -> None:
    notebook = page.open(f"{how}.ipynb", [STEADY, STEPPER])
    notebook.run()
    viewer = notebook.viewer(1)
    viewer.play()
    until_beats(page.page, 2)
    if how == "restarted":
        notebook.restart()
    else:
        notebook.send("import os; os._exit(1)")
        page.page.get_by_role("button", name="Ok", exact=True).click()
    viewer.until_said("run the notebook from the top")
    expect(viewer.root).to_have_attribute("data-playing", "false")
    assert viewer.button("Pause").evaluate("button => Boolean(button.closest('[inert]'))")
    viewer.press("n")
    viewer.until_said("run the notebook from the top")
    notebook.run()
    viewer = notebook.viewer(1)
    viewer.play()
    until_beats(page.page, 2)
    viewer.pause()
    assert differences(page, notebook, [shot_now(page.page, viewer.id)]) == []
    notebook.close()
