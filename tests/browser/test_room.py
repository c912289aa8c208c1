"""Stage, sentence and bar are seen together: on a laptop, on a narrow page, enlarged, and before a class."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from mqlab.scenarios.storyboards import STORYBOARDS

from .jupyter_lab import JupyterLab
from .notebook_page import Notebook, NotebookPage, ViewerPage

MOST = 600
"""px of height that are there for a notebook at 1280 x 720."""
PAGES = {"laptop": (1280, 720, 1.0), "narrow": (700, 720, 1.0), "enlarged": (853, 480, 1.5)}
"""Width and height of the window in px of the page, and how many px of the screen one of them is."""
WORLDS = ("demo", *dict.fromkeys(names[0] for names in STORYBOARDS.values() if names[0] != "demo"))
CELL = """from mqlab.scenarios import get
from mqlab_widgets.stepper import Stepper
worlds = iter(%r)
lab = get("demo").build(7).run_for(seconds=5)
stepper = Stepper(lab)
stepper"""
NEXT = """stepper.close()
stepper = Stepper(get(next(worlds)).build(7).run_for(seconds=9))
stepper"""
BOXES = """root => {
    const seen = root.closest(".jp-WindowedPanel-outer").getBoundingClientRect();
    const box = name => {
        const { top, bottom, left, right } = root.querySelector(`[data-part="${name}"]`).getBoundingClientRect();
        return { top, bottom, left, right };
    };
    return { seen: { top: seen.top, bottom: seen.bottom, left: seen.left, right: seen.right },
        stage: box("stage"), said: box("said"), bar: box("bar") };
}"""
SETTLED = """root => new Promise(done => {
    let last = "", same = 0;
    const look = () => {
        const { height, width } = root.querySelector("svg.mq-stage").getBoundingClientRect();
        const foot = root.querySelector(".mq-foot").getBoundingClientRect();
        const now = [height, width, foot.top, foot.height].join();
        same = now === last ? same + 1 : 0;
        last = now;
        if (same > 30) done(true); else requestAnimationFrame(look);
    };
    look();
})"""
CUT = """root => [
    ...root.querySelectorAll('svg.mq-stage [data-key="legend"] > g, svg.mq-stage .mq-card'),
].filter(part => {
    const { left, right, bottom } = part.getBoundingClientRect();
    const stage = part.ownerSVGElement.getBoundingClientRect();
    return left < stage.left - 1 || right > stage.right + 12 || bottom > stage.bottom + 1;
}).map(part => part.dataset.key)"""


@pytest.fixture(scope="module", params=PAGES)
def notebook(request: pytest.FixtureRequest, browser: Browser, jupyter_lab: JupyterLab) -> Iterator[Notebook]:
    """A notebook in a window of this size, with a stepper of the demo's world."""
    width, height, scale = PAGES[request.param]
    page = NotebookPage(
        browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale), jupyter_lab
    )
    page.load()
    opened = page.open(f"room-{request.param}.ipynb", [CELL % (WORLDS,), NEXT])
    opened.run_cell(0)
    yield opened
    assert page.seen == []
    opened.close()
    page.page.close()


def shown(notebook: Notebook, cell: int) -> ViewerPage:
    """The viewer of a cell, at the top of what is seen of the notebook."""
    viewer = notebook.viewer(cell)
    viewer.root.evaluate("root => root.scrollIntoView({ block: 'start' })")
    # The first picture is drawn before the kernel knows what room there is.
    viewer.until(lambda: fits(viewer.root.evaluate(BOXES)))
    viewer.root.evaluate(SETTLED)
    return viewer


def fits(boxes: dict[str, dict[str, float]]) -> bool:
    """Whether the sentence lies below the stage, not on it."""
    return boxes["stage"]["bottom"] <= boxes["said"]["top"] + 1


def test_stage_sentence_and_bar_are_in_sight_together_in_each_world(notebook: Notebook) -> None:
    for _ in WORLDS:
        notebook.run_cell(1)
        viewer = shown(notebook, 1)
        boxes = viewer.root.evaluate(BOXES)
        seen = boxes.pop("seen")
        assert boxes["bar"]["bottom"] - boxes["stage"]["top"] <= MOST
        assert fits(boxes)
        assert boxes["said"]["bottom"] <= boxes["bar"]["top"] + 1
        for box in boxes.values():
            assert seen["top"] - 1 <= box["top"] < box["bottom"] <= seen["bottom"] + 1
            assert seen["left"] <= box["left"] < box["right"] <= seen["right"]
        assert viewer.root.evaluate(CUT) == []


def test_what_is_said_and_the_bar_stay_in_sight_while_part_of_the_stage_is(notebook: Notebook) -> None:
    notebook.run_cell(0)
    viewer = shown(notebook, 0)
    panel = viewer.root.locator("xpath=ancestor::*[contains(@class, 'jp-WindowedPanel-outer')]")
    panel.evaluate("(panel, by) => panel.scrollBy(0, by)", -120)
    boxes = viewer.root.evaluate(BOXES)
    assert boxes["stage"]["bottom"] > boxes["said"]["top"]
    assert boxes["bar"]["bottom"] <= boxes["seen"]["bottom"] + 1
    assert viewer.part("said").is_visible()


def test_before_a_class_the_stage_the_caption_and_the_bar_fill_the_window(notebook: Notebook) -> None:
    viewer = shown(notebook, 0)
    page = viewer.page
    before = page.viewport_size
    page.set_viewport_size({"width": 1280, "height": 720})
    try:
        viewer.press("f")
        expect(viewer.part("bar")).to_be_visible()
        viewer.root.evaluate(SETTLED)
        expect(viewer.part("caption")).not_to_be_empty()
        for name in ("stage", "caption", "bar"):
            box = viewer.part(name).bounding_box()
            assert box
            assert box["height"] > 20
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= 720
        assert viewer.root.evaluate(CUT) == []
        viewer.button("More").click()
        expect(viewer.root.get_by_role("dialog", name="More")).to_be_visible()
        viewer.page.keyboard.press("Escape")
        viewer.page.keyboard.press("Escape")
        expect(viewer.part("timeline")).to_be_visible()
    finally:
        assert before
        page.set_viewport_size(before)
