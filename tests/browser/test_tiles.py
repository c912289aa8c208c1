"""Numbers can be read on every message that the stage can draw, and messages that differ can be told apart: measured on
the pixels that the browser paints, for three kinds of eyes, in both themes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from mqlab import Lab
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import DOWN, FROZEN, RUNNING, Consumer, Producer, Strip
from mqlab_widgets.scene.scene import Look, scene_of
from mqlab_widgets.scene.style import OWNER_COLOURS, TOKEN_COLOURS
from mqlab_widgets.viewer import Viewer

from .notebook_page import NotebookPage
from .pixels import EYES, Pixels, apart, contrast_of, pixels_of, seen_by

ENOUGH = 4.5
"""WCAG, level AA, for text of this size."""
APART = 24.0
"""How far the colours of any two messages are apart at least; 2 is just seen."""
TOPIC = "Orders"
WAITS, DONE, UNNOTED, OUT, ACKED, REVIVED = range(6)
STATES = (RUNNING, FROZEN, DOWN)
COUNT = len(TOKEN_COLOURS)
LOOKS = {"large": (1500.0, 0.0), "middle": (1100.0, 400.0), "small": (1300.0, 300.0), "hall": (1252.0, 607.0)}
HOST = """html => {
    document.querySelector("#sheet")?.remove();
    const host = document.createElement("div");
    host.id = "sheet";
    host.style = "inset: 0; margin: 0; border: 0; padding: 0; width: 100%; height: 100%; max-width: none; "
        + "max-height: none; overflow: auto; background: var(--jp-layout-color0)";
    host.innerHTML = html;
    document.body.append(host);
    // Above all, whatever a view has put there.
    host.popover = "manual";
    host.showPopover();
}"""
NUMBERS = """() => [...document.querySelectorAll("#sheet :is(.mq-token, .chip) text")].map(text => {
    const { x, y, width, height } = text.getBoundingClientRect();
    const state = text.closest(".mq-token, .chip").getAttribute("class");
    const card = text.closest(".mq-card")?.getAttribute("class") ?? "";
    return { x, y, width, height, words: text.textContent, what: `${text.textContent}: ${state} in ${card}` };
})"""
HIDE = "#sheet :is(.mq-token, .chip) text { visibility: hidden !important }"


def key(number: int) -> str:
    """The unique key of the message with this number."""
    return f"0A00000403EC14AE5A5A0000081E{number:04X}"


def board_of(state: str, first: int) -> StageBoard:
    """A stage with messages of each colour in each state: in a broker's queues, a producer, and a consumer."""
    board = StageBoard(Lab(seed=1))
    broker = "broker-a"
    board.states = dict.fromkeys((broker, "producer-1", "consumer-1"), state)
    board.states |= {f"consumer-{number}": RUNNING for number in range(2, 3)}
    board.slaves = {broker: broker}
    board.groups = dict.fromkeys(board.states, "readers")
    for queue_id in range(6):
        strip = board.strips[broker, TOPIC, queue_id] = Strip()
        for offset in range(COUNT):
            place = (broker, TOPIC, queue_id, offset)
            board._keys[place] = key(first + offset)
            strip.append(offset, 100 * offset, board._keys[place])
            if queue_id in (OUT, ACKED, REVIVED):
                strip.hand_out("readers", offset)
                strip.pop(offset, 0, 10_000_000)
                if queue_id != OUT:
                    strip.settle(offset, "acked" if queue_id == ACKED else "revived")
        strip.committed["readers"] = COUNT if queue_id == DONE else 0
        if queue_id == UNNOTED:
            strip.owners["consumer-1"], strip.read["consumer-1"] = "readers", COUNT
        elif queue_id == DONE:
            strip.owners["consumer-2"], strip.read["consumer-2"] = "readers", COUNT
    board.producers["producer-1"] = Producer({key(first): 1, key(first + 1): 2}, 2, 1, "", key(first + 2))
    consumer = board.consumers["consumer-1"] = Consumer()
    for number in range(COUNT):
        consumer.take((key(first + number),))
    consumer.listening[(broker, TOPIC, 0), 3] = 1
    return board


def sheet(state: str, first: int, width: float, height: float, followed: str = "", *, big: bool = False) -> str:
    """A stage with all of them."""
    look = Look(width=width, height=height, big=big, followed=followed, now_us=5_000_000)
    return scene_of(board_of(state, first), look).svg()


def chips() -> str:
    """A sign for each owner."""
    owners = "".join(
        f'<g class="chip o{place}" transform="translate({20 + 30 * place} 12)"><rect x="-11" y="-8" width="22" '
        'height="16" rx="5"/><text>c8</text></g>'
        for place in range(len(OWNER_COLOURS))
    )
    return f'<svg class="mq-stage" width="400" height="24">{owners}</svg>'


def show(page: Page, svg: str) -> tuple[Pixels, Pixels, float, float]:
    """Show a stage in a viewer: it with its numbers, it without, and where its upper left corner is."""
    page.evaluate(HOST, f'<style>{Viewer._css}</style><div class="mq-viewer">{svg}{chips()}</div>')
    host = page.locator("#sheet > .mq-viewer")
    box = host.bounding_box()
    assert box
    words = pixels_of(host.screenshot(animations="disabled"))
    style = page.add_style_tag(content=HIDE)
    behind = pixels_of(host.screenshot(animations="disabled"))
    style.evaluate("element => element.remove()")
    return words, behind, box["x"], box["y"]


@pytest.fixture(scope="module", params=[("JupyterLab Dark", "false"), ("JupyterLab Light", "true")],
                ids=["dark", "light"])  # fmt: skip
def page(request: pytest.FixtureRequest, loaded: NotebookPage) -> Iterator[Page]:
    """JupyterLab in a theme, in which a sheet can be shown."""
    theme, light = request.param
    shown = loaded.page
    shown.evaluate(f"() => jupyterapp.commands.execute('apputils:change-theme', {{ theme: {json.dumps(theme)} }})")
    expect(shown.locator("body")).to_have_attribute("data-jp-theme-light", light)
    shown.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=theme)
    yield shown
    shown.evaluate("() => document.querySelector('#sheet')?.remove()")


@pytest.mark.parametrize("look", LOOKS)
def test_every_number_on_every_tile_can_be_read(page: Page, look: str) -> None:
    width, height = LOOKS[look]
    faint = []
    for state, (first, followed) in product(STATES, ((0, ""), (21, key(23)), (105, ""))):
        words, behind, x, y = show(page, sheet(state, first, width, height, followed, big=look == "hall"))
        numbers = page.evaluate(NUMBERS)
        assert len(numbers) > 40
        for eyes, number in product(EYES, numbers):
            left, top = round(number["x"] - x), round(number["y"] - y)
            bottom, right = top + round(number["height"]) + 1, left + round(number["width"]) + 1
            area = np.s_[max(0, top - 1) : bottom, max(0, left - 1) : right]
            found = contrast_of(seen_by(eyes, words[area]), seen_by(eyes, behind[area]))
            if found < ENOUGH:
                faint.append(f"{found:.2f} for {eyes}: {number['what']}")
    assert not faint, "\n".join(sorted(set(faint))[:40])


def test_two_messages_with_different_colours_are_told_apart_by_all_eyes(page: Page) -> None:
    _, behind, left, top = show(page, sheet(RUNNING, 0, 1500, 0))
    tiles = page.evaluate(
        """() => [...document.querySelectorAll("#sheet .mq-token")].filter(
            tile => /^mq-token t\\d slide$/.test(tile.getAttribute("class")) && tile.querySelector("text")
        ).map(tile => {
            const { x, y } = tile.querySelector("rect").getBoundingClientRect();
            return [tile.getAttribute("class"), x + 4, y + 5];
        })"""
    )
    colours = {css: behind[round(y - top), round(x - left)] for css, x, y in tiles}
    assert len(colours) == COUNT
    near = [
        f"{found:.1f} for {eyes}: {one}, {other}"
        for eyes in EYES
        for one, other in combinations(colours, 2)
        if (found := apart(seen_by(eyes, colours[one]), seen_by(eyes, colours[other]))) < APART
    ]
    assert not near, "\n".join(near)
