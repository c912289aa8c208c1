"""What a page has painted of a world, compared with a stage drawn anew in its kernel."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page

from .notebook_page import Notebook, NotebookPage

# Notes each picture that becomes visible: what a page keeps, and each whole picture that comes from the kernel.
WATCH = """(() => {
    window.shots = [];
    const shoot = (root, why) => {
        const svg = root.querySelector("svg.mq-stage");
        if (!svg) return;
        const { painted, past, clock, drawn } = root.dataset;
        const [place, us] = painted.split(" ");
        window.shots.push({
            why, place: Number(place), us: Number(us), past: past === "true", drawn: drawn ?? "",
            clock: root.querySelector('[data-part="bar"] [data-key="clock"]')?.textContent ?? "", said: clock,
            width: Number(svg.getAttribute("width")), height: root.querySelector('[data-part="stage"]').clientHeight,
            big: svg.classList.contains("big"), html: svg.outerHTML, view: root.id,
            room: root.querySelector('[data-part="stage"]').clientWidth,
            projected: root.classList.contains("mq-projector"),
        });
    };
    window.shoot = shoot;
    new MutationObserver((changes) => {
        for (const { target, attributeName, oldValue } of changes) {
            if (!target.matches?.(".mq-viewer")) continue;
            if (attributeName === "data-drawn") shoot(target, "whole");
            else if (oldValue?.includes("mq-waiting") && !target.matches(".mq-waiting, [data-drawn]")) {
                shoot(target, "kept");
            }
        }
    }).observe(document, {
        subtree: true, attributeFilter: ["data-drawn", "class"], attributeOldValue: true,
    });
})()"""
# Two pictures in the same form: without what only the page knows of (focus, what hides behind something that moves),
# and in one order.
SAME = """([painted, view, anew]) => {
    const form = (html, view) => {
        const holder = document.createElement("template");
        holder.innerHTML = html.replaceAll(`#${view} `, "").replaceAll(`${view}-`, "");
        const svg = holder.content.firstElementChild;
        svg.querySelector('[data-key="page:air"]')?.remove();
        for (const one of svg.querySelectorAll("[tabindex]")) one.removeAttribute("tabindex");
        for (const one of svg.querySelectorAll(".mq-flight")) one.removeAttribute("style");
        const text = (one) => one.nodeType !== 1 ? one.nodeValue : `<${one.nodeName}${
            [...one.attributes].map(({ name, value }) => ` ${name}="${value}"`).sort().join("")
        }>${[...one.childNodes].map(text).join("")}</>`;
        return [text(svg.cloneNode(false)), ...[...svg.children].map(text).sort()];
    };
    const [left, right] = [form(painted, view), form(anew, "none")];
    const only = (mine, other) => mine.filter((part) => !other.includes(part)).map((part) => part.slice(0, 1500));
    return { painted: only(left, right), anew: only(right, left), parts: left.length };
}"""
# Draws the stage of `stepper` anew, from its history alone, for each picture that was painted.
ANEW = """import json
from pathlib import Path
from mqlab.scenarios.captions import Storyboard
from mqlab_widgets.boards.board import Fold
session, pictures = {stepper}.session, []
for shot in json.loads(Path("shots.json").read_text()):
    board = session.picture.board(session.lab)
    Fold(session.lab.history, [board]).go_to(shot["place"])
    caption = Storyboard(session.lab).at(shot["place"]) if shot["big"] else None
    look = session.look()._replace(
        width=shot["width"], big=shot["big"], height=shot["height"] if shot["big"] else 0,
        now_us=shot["us"], past=shot["past"], pointed=caption.points_to if caption else "",
    )
    pictures.append(session.picture.scene_of(board, look).svg())
Path("anew.json").write_text(json.dumps(pictures))"""


def watched(page: Page) -> None:
    """Note what this page paints from its next load on."""
    page.add_init_script(WATCH)


def shots(page: Page) -> list[dict[str, Any]]:
    """The pictures that have become visible since it was loaded."""
    found: list[dict[str, Any]] = page.evaluate("() => window.shots")
    return found


def shot_now(page: Page, view: str) -> dict[str, Any]:
    """The picture that a viewer shows at this moment."""
    found: dict[str, Any] = page.evaluate(
        "view => { shoot(document.getElementById(view), 'now'); return shots.pop(); }", view
    )
    return found


def differences(
    notebooks: NotebookPage, notebook: Notebook, painted: list[dict[str, Any]], stepper: str = "stepper"
) -> list[dict[str, Any]]:
    """What is in a painted picture and not in the one drawn anew, and the other way round; of those that differ."""
    files = notebooks.lab.files
    asked = [{name: value for name, value in shot.items() if name != "html"} for shot in painted]
    (files / "shots.json").write_text(json.dumps(asked), encoding="utf-8")
    notebook.execute(ANEW.format(stepper=stepper))
    wrong = []
    for shot, anew in zip(painted, json.loads((files / "anew.json").read_text(encoding="utf-8")), strict=True):
        found = notebook.page.evaluate(SAME, [shot["html"], shot["view"], anew])
        assert found["parts"] > 4
        if found["painted"] or found["anew"] or shot["clock"] != shot["said"]:
            wrong.append({"why": shot["why"], "place": shot["place"], **found})
    return wrong
