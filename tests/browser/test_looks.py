"""What everybody can see and use: themes, widths, names and roles."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from mqlab_widgets.controls import TABS

from .conftest import STEADY
from .notebook_page import Notebook, NotebookPage, ViewerPage

ENOUGH = 3.8
"""WCAG (level AA) asks for a contrast of 4.5, and of 3 for what is large; the orange of the palette for colour-blind
people has 3.87 on white."""

# Each text of the viewer against what is painted behind it: in the stage its card or the paper, else the first
# ancestor with a background.
FAINT_TEXTS = """([root, enough]) => {
    // A mixed colour has shares: color(srgb 0.2 0.2 0.2 / 0.9).
    const numbers = colour => (colour.match(/[\\d.]+/g) ?? []).map(
        (number, at) => Number(number) * (colour.startsWith("color(") && at < 3 ? 255 : 1));
    const light = colour => {
        const [r, g, b] = numbers(colour).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one, other) => {
        const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
        return (bright + 0.05) / (dark + 0.05);
    };
    const solid = colour => { const [, , , alpha] = numbers(colour); return alpha === undefined || alpha === 1; };
    const behind = element => {
        if (element.ownerSVGElement) {
            for (let at = element.parentElement; at !== element.ownerSVGElement; at = at.parentElement) {
                const box = getComputedStyle(at.querySelector(":scope > rect") ?? at);
                if (at.querySelector(":scope > rect") && box.fillOpacity > 0.5 && solid(box.fill)) return box.fill;
            }
            const paper = element.ownerSVGElement.querySelector('.paper, :scope > rect[height="100%"]');
            if (paper) return getComputedStyle(paper).fill;
            element = element.ownerSVGElement;
        }
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (solid(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const found = [];
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        const words = walk.currentNode.nodeValue.trim();
        if (!words || ["style", "title", "option"].includes(element.nodeName.toLowerCase())) continue;
        if (!element.getClientRects().length) continue;
        const style = getComputedStyle(element);
        const ink = element.ownerSVGElement ? style.fill : style.color;
        const back = behind(element);
        if (contrast(ink, back) < enough) found.push(`${words.slice(0, 40)}: ${ink} on ${back}`);
    }
    return found;
}"""
NAMELESS = """root => [...root.querySelectorAll("button, [role=button], input, select, summary, [tabindex='0']")]
    .filter(element => !(element.getAttribute("aria-label") || element.title || element.labels?.length
        || element.getAttribute("aria-labelledby") || element.textContent.trim()))
    .map(element => element.outerHTML.slice(0, 200))"""
OVERFLOW = """root => [...root.querySelectorAll(".mq-viewer, .mq-viewer > [data-part]")]
    .filter(element => element.scrollWidth > element.clientWidth + 1)
    .map(element => `${element.dataset.part}: ${element.scrollWidth} > ${element.clientWidth}`)"""


@pytest.fixture(scope="module")
def notebook(loaded: NotebookPage) -> Iterator[Notebook]:
    """A stepper with a board of each kind."""
    opened = loaded.open("looks.ipynb", [STEADY, BOARDS, "Stepper(lab, boards)"])
    opened.run()
    yield opened
    opened.close()


BOARDS = """import inspect, pkgutil
from importlib import import_module
import mqlab_widgets.boards as package
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.stage import StageBoard
modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
kinds = {kind for module in modules for kind in vars(module).values() if inspect.isclass(kind)}
boards = sorted((kind for kind in kinds if issubclass(kind, Board) and kind.title), key=lambda kind: kind.title)
boards = [kind for kind in boards if not issubclass(kind, StageBoard)]"""


@pytest.fixture
def viewer(notebooks: NotebookPage, notebook: Notebook) -> ViewerPage:
    """The stepper, with a machine chosen."""
    shown = notebook.viewer(2)
    shown.choose("broker-a")
    expect(shown.machine("broker-a")).to_contain_class("chosen")
    shown.page.keyboard.press("Escape")
    return shown


@pytest.mark.parametrize(("theme", "light"), [("JupyterLab Dark", "false"), ("JupyterLab Light", "true")])
def test_in_each_theme_all_text_can_be_read(viewer: ViewerPage, theme: str, light: str) -> None:
    page = viewer.page
    page.evaluate(f"() => jupyterapp.commands.execute('apputils:change-theme', {{ theme: {json.dumps(theme)} }})")
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light)
    page.wait_for_function("""name => document.body.dataset.jpThemeName === name""", arg=theme)
    for tab in TABS.values():
        viewer.open(tab)
        viewer.root.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        assert viewer.root.evaluate(f"root => ({FAINT_TEXTS})([root, {ENOUGH}])") == [], tab


@pytest.mark.parametrize("width", [900, 2500])
def test_at_each_width_nothing_sticks_out(viewer: ViewerPage, width: int) -> None:
    page = viewer.page
    before = page.viewport_size
    assert before
    page.set_viewport_size({"width": width, "height": 1200})
    try:
        page.wait_for_function("width => innerWidth === width", arg=width)
        for tab in TABS.values():
            viewer.open(tab)
            assert viewer.cell.evaluate(OVERFLOW) == [], tab
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        output = viewer.cell.locator(".jp-OutputArea-output").first
        assert output.evaluate("output => output.scrollWidth <= output.clientWidth + 1")
        box, around = viewer.root.locator("svg.mq-stage").bounding_box(), viewer.root.bounding_box()
        assert box
        assert around
        assert around["x"] <= box["x"]
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1
    finally:
        page.set_viewport_size(before)


def test_all_that_can_be_used_has_a_name(viewer: ViewerPage) -> None:
    for tab in TABS.values():
        viewer.open(tab)
        assert viewer.cell.evaluate(f"cell => ({NAMELESS})(cell.querySelector('.jp-OutputArea'))") == [], tab


def test_the_parts_have_roles(viewer: ViewerPage) -> None:
    expect(viewer.root).to_have_attribute("role", "group")
    expect(viewer.root).to_have_attribute("aria-label", "mqlab viewer")
    expect(viewer.root.locator('[data-part="said"]')).to_have_attribute("role", "status")
    for name, label in (("broker-a", "broker"), ("namesrv-1", "namesrv"), ("consumer-1", "consumer")):
        machine = viewer.machine(name)
        expect(machine).to_have_attribute("role", "button")
        expect(machine).to_have_attribute("aria-label", f"{name}, {label}, running")
        machine.focus()
        expect(machine).to_be_focused()


def test_the_text_twin_says_what_the_boards_show(viewer: ViewerPage) -> None:
    titles = viewer.open("Boards").locator(".mq-board h4").all_inner_texts()
    assert titles
    text = viewer.twin()
    for line in ("The world:", "broker-a (broker) is running", "TopicTest"):
        assert line in text
    for title in titles:
        assert f"{title}:" in text
