"""What is seen of a world that passes: each message on each wire, also in a crowd, and what a saved page keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from .jupyter_lab import JupyterLab
from .notebook_page import Notebook, NotebookPage

TOUR = """from mqlab.scenarios import get
from mqlab_widgets import Stepper
lab = get("steady-load").build(7).run_for(seconds=6.2)
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


def test_a_saved_page_shows_the_last_picture_without_its_kernel(
    notebooks: NotebookPage, jupyter_lab: JupyterLab
) -> None:
    notebook = notebooks.open("saved.ipynb", [TOUR])
    notebook.run()
    viewer = notebook.viewer(0)
    viewer.press("Home")
    viewer.until_place(0)
    for place in range(1, 40):
        viewer.press("n")
        viewer.until_place(place)
    viewer.still()
    shown = viewer.part("stage").locator("text").all_text_contents()
    notebook.command("docmanager:save")
    notebook.close()
    again = notebooks.open("saved.ipynb")
    kept = again.viewer(0)
    assert kept.part("stage").locator("text").all_text_contents() == shown
    expect(kept.root).to_have_attribute("data-kernel", "none")
    kept.until_said("no kernel answers")
    kept.press("n")
    kept.until_said("Run this cell to go on")
    assert kept.place == 39
    again.close()
