"""Slides in a browser: every slide of every lab without Spark lies within its frame, whole, at 1280 x 720."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from mqlab.labs.slides_page import reveal_files, slides_page
from tests.labs.test_slides import LABS, slides_of

WIDTH, HEIGHT = 1280, 720
LEAVE_THE_FRAME = """() => {
    const found = [];
    for (let at = 0; at < Reveal.getTotalSlides(); at += 1) {
        Reveal.slide(at, 0);
        const slide = Reveal.getCurrentSlide();
        for (const one of slide.querySelectorAll("*")) {
            if (one.closest("aside")) continue;
            const { right, bottom, height } = one.getBoundingClientRect();
            if (height > 0 && (right > innerWidth + 1 || bottom > innerHeight + 1)) {
                found.push(`slide ${at + 1}: ${one.tagName} ends at ${Math.round(right)} x ${Math.round(bottom)}`);
                break;
            }
        }
        const outputs = [...slide.querySelectorAll(".jp-OutputArea-output")];
        if (outputs.some((one) => one.scrollHeight > one.clientHeight + 2))
            found.push(`slide ${at + 1}: its output is cut off`);
        for (const line of slide.querySelectorAll(".left-out")) found.push(`slide ${at + 1}: ${line.textContent}`);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    return browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})


def show(page: Page, name: str, directory: Path) -> list[str]:
    """Open the slides of a lab; what they have asked for beside themselves, and errors."""
    lab, slides = slides_of(name)
    path = directory / f"{name}.html"
    path.write_text(slides_page(lab.head.title, slides, reveal_files()), encoding="utf-8")
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("request", lambda request: seen.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_function("() => window.Reveal?.isReady()")
    assert page.evaluate("Reveal.getTotalSlides()") == len(slides)
    return seen


@pytest.mark.parametrize("name", LABS)
def test_nothing_leaves_its_slide_and_nothing_is_asked_for(page: Page, name: str, tmp_path: Path) -> None:
    seen = show(page, name, tmp_path)
    assert page.evaluate(LEAVE_THE_FRAME) == []
    assert [url for url in seen if not url.startswith(("file:", "data:"))] == []


def test_the_speaker_has_a_window_with_notes(page: Page, tmp_path: Path) -> None:
    show(page, "06_flow_control", tmp_path)
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes .value")
    expect(notes).to_contain_text("Often predicted wrongly")
    opened.value.close()
