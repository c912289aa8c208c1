"""Never a false picture: whenever a view is shown, what is painted is the world at its place, in the size that is shown."""

from __future__ import annotations

import random
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
    assert differences(page, notebook, painted) == []
    notebook.close()
