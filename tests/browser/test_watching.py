"""What is seen of a world that passes: each message on each wire, a crowd, and all of it with the keyboard alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from .notebook_page import Notebook, NotebookPage

TOUR = """from mqlab.scenarios import get
from mqlab_widgets import Stepper
lab = get("demo").build(7).run_for(seconds=1)
stepper = Stepper(lab)
stepper"""
CROWD = """from benchmarks import viewer
from mqlab_widgets import Stepper
viewer.CONSUMERS = 10
lab = viewer.crowd().run_for(seconds=5)
Stepper(lab)"""
WATCH_SECONDS = 20
PLACES = 3
"""A frame is seen to move when it was painted in so many places."""

# The texts of a picture that are painted smaller than 12 px.
SMALL_TEXTS = """picture => {
    const scale = picture.getScreenCTM().a;
    return [...picture.querySelectorAll("text")]
        .filter(one => one.getClientRects().length && parseFloat(getComputedStyle(one).fontSize) * scale < 11.5)
        .map(one => `${one.textContent}: ${parseFloat(getComputedStyle(one).fontSize) * scale}`);
}"""
# The frames that were painted in motion during some seconds, and the place of the story at their end.
PAINTED = """async ([root, seconds, places]) => {
    const seen = new Map();
    const until = performance.now() + seconds * 1000;
    while (performance.now() < until) {
        await new Promise(requestAnimationFrame);
        for (const one of root.querySelectorAll('.mq-air > [data-act="fly"], .mq-air > [data-act="land"]')) {
            if (one.style.visibility === "hidden") continue;
            if (!seen.has(one.dataset.key)) seen.set(one.dataset.key, new Set());
            seen.get(one.dataset.key).add(one.getAttribute("transform"));
        }
    }
    const moved = [...seen].filter(([, painted]) => painted.size >= places).map(([key]) => key);
    return { moved, place: Number(root.dataset.place) };
}"""
# Which frames brought the messages that were stored, and those that came to the consumer; written to a file.
CARRIED = """import json
carried = {{"MessageStored": {{}}, "MessagesCached": {{}}}}
for record in lab.history.records({first}, {last}):
    if record.kind in carried and not record.topic.startswith(("SCHEDULE", "%")):
        wire = [cause for cause in lab.history.chain(record) if cause.kind in ("RequestReceived", "ResponseReceived")]
        carried[record.kind][f"{{record.at}}"] = f"{{wire[-1].connection}}:{{wire[-1].remote}}:{{wire[-1].frame}}"
with open("carried.json", "w") as file:
    json.dump(carried, file)"""


@pytest.fixture(scope="module")
def tour(loaded: NotebookPage) -> Iterator[Notebook]:
    """The first view of lab 00."""
    notebook = loaded.open("tour.ipynb", [TOUR])
    notebook.run()
    yield notebook
    notebook.close()


def test_every_message_is_seen_to_move_on_every_wire_that_it_takes(notebooks: NotebookPage, tour: Notebook) -> None:
    viewer = tour.viewer(0)
    first = viewer.place
    viewer.play()
    painted: dict[str, Any] = viewer.root.evaluate(f"root => ({PAINTED})([root, {WATCH_SECONDS}, {PLACES}])")
    viewer.pause()
    tour.execute(CARRIED.format(first=first, last=painted["place"]))
    carried = json.loads((notebooks.lab.files / "carried.json").read_text(encoding="utf-8"))
    stored, cached = set(carried["MessageStored"].values()), set(carried["MessagesCached"].values())
    assert len(stored) >= 3
    assert len(cached) >= 3
    assert (stored | cached) - set(painted["moved"]) == set()


def test_a_crowd_is_played_and_stepped(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("crowd.ipynb", [CROWD])
    notebook.run()
    viewer = notebook.viewer(0)
    viewer.play()
    viewer.until(lambda: int(viewer.attribute("beats") or 0) >= 20)
    viewer.pause()
    place = viewer.place
    viewer.press("n")
    viewer.until_place(place + 1)
    more = viewer.part("stage").locator('[data-do="open_kind"][data-kind="consumer"]')
    hidden = viewer.part("stage").locator('g[data-node^="consumer"]').count()
    more.click(position={"x": 30, "y": 14})
    expect(viewer.part("stage").locator('g[data-node^="consumer"]')).to_have_count(10)
    assert hidden < 10
    notebook.close()


def test_from_the_first_cell_to_a_crash_and_back_with_the_keyboard_alone(notebooks: NotebookPage) -> None:
    notebook = notebooks.open("keyboard.ipynb", [TOUR, "after = 1 + 1"])
    keyboard = notebooks.page.keyboard
    notebook.cell(0).locator(".cm-content").click()
    keyboard.press("Control+Enter")
    viewer = notebook.viewer(0)
    keyboard.press("Escape")
    for _ in range(40):
        keyboard.press("Tab")
        if viewer.root.evaluate("root => document.activeElement === root"):
            break
    expect(viewer.root).to_be_focused()
    place = viewer.place
    keyboard.press("p")
    viewer.until_place(place - 1)
    keyboard.press("End")
    viewer.until_place(place)
    keyboard.press("Tab")
    while not viewer.machine("broker-a").evaluate("machine => document.activeElement === machine"):
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(viewer.root.get_by_role("menuitem", name="Crash broker-a")).to_be_focused()
    keyboard.press("Enter")
    expect(viewer.machine("broker-a")).to_have_attribute("aria-label", "broker-a, broker, down")
    expect(viewer.machine("broker-a")).to_be_focused()
    keyboard.press("Enter")
    expect(viewer.root.get_by_role("menuitem").first).to_be_focused()
    again = viewer.root.get_by_role("menuitem", name="Restart broker-a")
    while not again.evaluate("item => document.activeElement === item"):
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    while "running" not in (viewer.machine("broker-a").get_attribute("aria-label") or ""):
        taken = viewer.taken
        keyboard.press("s")
        viewer.until(lambda: viewer.taken > taken)  # noqa: B023  called at once
        viewer.still()
    assert notebook.root.locator(".jp-Notebook .jp-Cell").count() == 2
    keyboard.press("Escape")
    expect(viewer.root).to_be_focused()
    keyboard.press("Escape")
    expect(viewer.root).not_to_be_focused()
    notebook.close()


def test_at_twice_the_size_all_is_there_and_nothing_sticks_out(notebooks: NotebookPage, tour: Notebook) -> None:
    page = notebooks.page
    before = page.viewport_size
    assert before
    viewer = tour.viewer(0)
    # To a page twice the size is half the room.
    page.set_viewport_size({"width": before["width"] // 2, "height": before["height"] // 2})
    try:
        room = viewer.part("stage")
        viewer.until(lambda: room.evaluate(
            "room => Math.abs(room.clientWidth - room.querySelector('svg').getAttribute('width')) < 3"
        ))  # fmt: skip
        assert room.locator("svg").first.evaluate(SMALL_TEXTS) == []
        assert viewer.root.evaluate("root => root.scrollWidth <= root.clientWidth + 1")
        for name in ("Play", "Break", "More", "List of keys"):
            expect(viewer.button(name)).to_be_visible()
    finally:
        page.set_viewport_size(before)
