"""The site's JupyterLite is played: a lab is opened, its first picture moves, it is stepped and scrubbed, exercises are
judged, and nothing is asked of another host.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from mqlab.check import VERDICT_MIME
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from tests.browser.notebook_page import Notebook, ViewerPage
from website.notebook_for_lite import for_lite

from .lite_page import LitePage

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[LitePage]:
    """JupyterLite. At the end nothing may have gone wrong in it, and nothing have been asked of another host."""
    with LitePage(browser, address) as page:
        yield page
        assert page.seen == []


@pytest.fixture(scope="module")
def tour(page: LitePage) -> Iterator[ViewerPage]:
    """The first live view of lab 00, as soon as its picture has moved."""
    began = time.monotonic()
    page.load()
    notebook = page.open("00_tour.ipynb")
    viewer = page.run_to_first_view(notebook)
    place = viewer.place
    viewer.play()
    viewer.until(lambda: viewer.place != place)
    # The aim is 30 s. No test fails by it: the machine may be busy with other things.
    print(f"\nfrom the first request to the first moving picture: {time.monotonic() - began:.1f} s")
    viewer.pause()
    yield viewer
    notebook.close()


def solved(lab: str) -> dict[str, Any]:
    """A lab's notebook with its solutions, not yet run."""
    return for_lite(make_notebook(read_lab(ROOT / "labs" / "sources" / f"{lab}.py"), "solution"))


def of_cells(*sources: str) -> dict[str, Any]:
    """A notebook of code cells."""
    empty: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**empty, "id": f"cell-{at}", "source": source} for at, source in enumerate(sources)]
    return for_lite({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def test_play_on_the_front_page_opens_the_first_lab(page: LitePage, tour: ViewerPage) -> None:
    front = tour.page.context.new_page()
    front.goto(f"{page.address}/index.html")
    front.get_by_role("link", name="Play the first lab in this browser").click()
    expect(front.locator(".jp-Notebook h1").first).to_contain_text("Tour: where is my message?")
    front.close()


def test_the_first_picture_moves_and_can_be_stepped(tour: ViewerPage) -> None:
    tour.press("Home")
    tour.until_place(0)
    tour.press("n")
    tour.until_place(1)
    tour.press("p")
    tour.until_place(0)


def test_it_can_be_scrubbed_along_the_line_of_time(tour: ViewerPage) -> None:
    tour.press("End")
    tour.until_place(tour.length)
    line = tour.part("timeline").get_by_role("slider")
    line.focus()
    tour.page.keyboard.press("Home")
    tour.until_place(0)
    expect(tour.machine("broker-a")).to_have_count(0)
    tour.page.keyboard.press("End")
    tour.until_place(tour.length)
    expect(tour.machine("broker-a").first).to_be_visible()


def test_every_check_of_a_lab_passes_with_its_solution(page: LitePage, tour: ViewerPage) -> None:
    notebook = page.open("solved.ipynb", solved("00_tour"))
    notebook.command("notebook:run-all-cells")
    data = [output.get("data", {}) for cell in page.cells(notebook) for output in cell.get("outputs", ())]
    verdicts = [shown[VERDICT_MIME]["state"] for shown in data if VERDICT_MIME in shown]
    assert verdicts == ["passed"] * 4
    notebook.close()


@pytest.fixture(scope="module")
def wrong(page: LitePage, tour: ViewerPage) -> Iterator[Notebook]:
    """A notebook with a wrong answer, which was judged, and with a world that somebody has shared."""
    answers = (ROOT / "tests" / "labs" / "wrong" / "05_push_is_pull.py").read_text(encoding="utf-8")
    asked = 'from mqlab.check import check\ncheck("05/hold", WRONG["05/hold"][0])'
    lab = 'from mqlab.scenarios import get\nlab = get("demo").build(7).run_for(seconds=6)'
    shared = f"from mqlab_widgets import Stepper\n{lab}\nline = Stepper(lab).share()"
    notebook = page.open("wrong.ipynb", of_cells("%load_ext mqlab", answers, asked, shared, "Stepper.reopen(line)"))
    for index in range(4):
        notebook.run_cell(index)
    yield notebook
    notebook.close()


@pytest.fixture
def failed(wrong: Notebook) -> Iterator[ViewerPage]:
    """The world of the wrong answer, opened by a double click."""
    card = wrong.cell(2).locator(".jp-OutputArea-output").first
    expect(card).to_contain_text("not right yet")
    card.get_by_role("button", name="Open this world").dblclick()
    yield wrong.viewer(2)
    card.get_by_role("button", name="Close it").click()
    card.get_by_role("button", name="Open this world").wait_for()


def test_the_world_of_a_wrong_answer_goes_back_at_once_as_often_as_it_is_asked_to(failed: ViewerPage) -> None:
    failed.press("p")
    failed.until_place(failed.length - 1)
    place = failed.place
    for _ in range(10):
        failed.button("One event back").click()
    failed.until_place(place - 10)


def test_at_its_first_slice_it_goes_back_to_the_beginning_and_says_that_there_is_nothing_before(
    failed: ViewerPage,
) -> None:
    back = failed.button("One event back")
    failed.press("Home")
    failed.until_place(0)
    expect(back).to_have_attribute("aria-disabled", "true")
    failed.press("s")
    failed.until(lambda: failed.place > 0)
    failed.still()
    first = failed.place
    for _ in range(first):
        failed.press("p")
    failed.until_place(0)
    expect(back).to_have_attribute("aria-disabled", "true")
    failed.press("p")
    failed.until_said("This is the beginning")
    assert failed.place == 0


def test_it_can_be_scrubbed_to_its_beginning_and_from_there(failed: ViewerPage) -> None:
    # Hovering waits until the page has been laid out and scrolled: the time line stands still, and nothing is above it.
    failed.part("timeline").hover()
    line = failed.part("timeline").bounding_box()
    assert line is not None
    middle = line["y"] + line["height"] / 2
    mouse = failed.page.mouse
    mouse.move(line["x"] + line["width"] / 2, middle)
    mouse.down()
    mouse.move(line["x"] - 50, middle, steps=10)
    mouse.up()
    # The machines are started at time 0: the line goes back to the time, and its key to before the first of them.
    expect(failed.root).to_have_attribute("data-us", "0")
    failed.part("timeline").get_by_role("slider").press("Home")
    failed.until_place(0)
    failed.press("p")
    failed.until_said("This is the beginning")
    failed.press("n")
    failed.until_place(1)


def test_a_shared_world_goes_back_while_it_is_still_being_opened(wrong: Notebook) -> None:
    wrong.begin_cell(4)
    viewer = wrong.cell(4).locator(".mq-viewer")
    viewer.focus()
    for _ in range(3):
        wrong.page.keyboard.press("p")
    opened = wrong.viewer(4)
    opened.until_place(opened.length - 3)


def test_an_answer_that_never_ends_is_broken_off(page: LitePage, tour: ViewerPage) -> None:
    loop = "from mqlab.check.patience import EndlessLoop, Patience\ndef forever():\n    while True:\n        pass"
    tried = "try:\n    with Patience(0.2) as patience:\n        forever()\nexcept EndlessLoop:\n    print('broken off')"
    notebook = page.open("endless.ipynb", of_cells(loop, tried, "print(patience.ran_out, 6 * 7)"))
    notebook.run()
    texts = [output["text"] for cell in page.cells(notebook) for output in cell["outputs"]]
    assert texts == ["broken off\n", "True 42\n"]
    notebook.close()


def test_what_is_not_there_is_an_error_and_no_request(page: LitePage, tour: ViewerPage) -> None:
    numpy = "try:\n    import numpy\nexcept ImportError as error:\n    print(error.name)"
    shown = "chart = show_bars('title', 'x', 'y', ['a', 'b'], {'how many': [1, 2]})\nchart"
    chart = f"from mqlab_widgets.charts import show_bars\n{shown}"
    tried = "try:\n    chart.live()\nexcept MissingExtraError as error:\n    print(error)"
    live = f"from mqlab.errors import MissingExtraError\n{tried}"
    notebook = page.open("missing.ipynb", of_cells(numpy, chart, live))
    notebook.run()
    missing, drawn, told = (cell["outputs"][0] for cell in page.cells(notebook))
    assert missing["text"] == "numpy\n"
    assert "image/svg+xml" in drawn["data"]
    assert "'bokeh'" in told["text"]
    assert "outside of the browser" in told["text"]
    notebook.close()
