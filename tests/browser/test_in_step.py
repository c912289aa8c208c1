"""How the page stays in step with its kernel: what it asks for and does not believe, and what it says when alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from .bare_page import BarePage, card, flights, stage

BAR = (
    '<div class="mq-bar"><button data-do="play" data-key="play" class="mq-play" aria-label="Pause">x</button></div>'
)
FRAME = {
    "stage": stage(card("p", "idle", 10), card("b", "empty", 460), flights()),
    "_place": "5", "_us": "1000", "_world": "0", "_taken": "0", "_playing": "true", "_tab": "step",
    "bar": BAR, "said": "", "caption": "a caption",
}  # fmt: skip
FAR = stage(card("p", "busy", 10), card("b", "three", 460), flights())
LOST = {"at": 0, "us": 2000, "place": 6, "after": 0, "acts": [], "parts": {"card:p": card("p", "busy", 10)}}
NEXT = {"at": 0, "us": 3000, "place": 7, "after": 0, "acts": [], "parts": {"card:b": card("b", "two", 460)}}
# A message with a number of its own, as if others had been lost or come later.
NUMBERED = "([message, n]) => { window.number = n - 1; tell(message); }"


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., BarePage]]:
    """Opens a view that shows `FRAME`, of a world that passes."""
    opened: list[BarePage] = []

    def open_page(**context: Any) -> BarePage:
        opened.append(BarePage(browser, FRAME, **context))
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


@pytest.fixture
def view(show: Callable[..., BarePage]) -> BarePage:
    return show()


def words(view: BarePage) -> list[str]:
    """What the two machines on the stage say."""
    return view.root.locator(".mq-card text").all_text_contents()


def asked(view: BarePage) -> int:
    """How often the page has asked for all of it."""
    return [command["do"] for command in view.said()].count("shown")


def told(view: BarePage, n: int, **message: Any) -> None:
    view.page.evaluate(NUMBERED, [message, n])


def test_a_page_that_has_missed_something_shows_nothing_until_it_has_all(view: BarePage) -> None:
    view.page.evaluate("() => { window.answers = false; }")
    before = asked(view)
    told(view, 3, story=[NEXT], began=1)
    assert asked(view) == before + 1
    told(view, 4, story=[NEXT], began=1)
    assert asked(view) == before + 1
    assert words(view) == ["idle", "empty"]
    expect(view.root).to_have_attribute("data-place", "5")
    told(view, 5, whole=True, frame={**FRAME, "stage": FAR, "_place": "8"})
    assert words(view) == ["busy", "three"]
    expect(view.root).to_have_attribute("data-place", "8")
    told(view, 6, story=[NEXT | {"place": 9}], began=1)
    view.until("() => view.dataset.painted.startsWith('9 ')")
    assert words(view) == ["busy", "two"]


def test_what_comes_too_late_changes_nothing(view: BarePage) -> None:
    told(view, 5, whole=True, frame={**FRAME, "stage": FAR, "_place": "8"})
    view.until("() => view.dataset.drawn === '5'")
    before = asked(view)
    told(view, 2, story=[LOST], began=1)
    told(view, 3, frame={"stage": FRAME["stage"], "_place": "5"})
    told(view, 4, whole=True, frame=FRAME)
    told(view, 5, whole=True, frame=FRAME)
    assert words(view) == ["busy", "three"]
    expect(view.root).to_have_attribute("data-place", "8")
    assert asked(view) == before


def test_a_whole_picture_that_was_asked_for_in_the_middle_of_a_story_is_shown_at_once(
    show: Callable[..., BarePage],
) -> None:
    view = show()
    view.page.evaluate("() => { window.answers = false; }")
    view.tell(story=[LOST, NEXT | {"at": 60_000}], began=1)
    view.until("() => view.dataset.painted === '6 2000'")
    told(view, 9, frame={"bar": BAR})
    told(view, 10, whole=True, frame={**FRAME, "stage": FAR, "_place": "8"})
    assert words(view) == ["busy", "three"]
    expect(view.root).to_have_attribute("data-story", "still")


def test_a_picture_that_was_kept_is_seen_only_where_no_other_comes(show: Callable[..., BarePage]) -> None:
    view = show(answers=False)
    # What the page was like when it was made: 400 ms later the picture is seen, on a busy machine before anybody looks.
    assert view.page.evaluate("() => window.first") == "hidden"
    assert view.page.evaluate("() => document.querySelector('.mq-stage').getBoundingClientRect().height") > 100
    expect(view.root.locator(".mq-stage")).to_be_visible()
    assert words(view) == ["idle", "empty"]
    expect(view.root.locator('[data-part="said"]')).to_contain_text("This is the last picture")
    expect(view.root.locator('[data-part="said"]')).to_contain_text("Run the notebook from the top")
    assert view.root.locator('[data-part="bar"]').evaluate("bar => bar.inert")
    view.page.evaluate("() => { window.answers = true; whole(); }")
    expect(view.root).to_have_attribute("data-kernel", "answers")
    assert not view.root.locator('[data-part="bar"]').evaluate("bar => bar.inert")


@pytest.mark.parametrize(
    "shown", [
        "() => document.dispatchEvent(new Event('visibilitychange'))",
        "() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))",
    ]
)  # fmt: skip
def test_a_page_that_comes_back_asks_anew(view: BarePage, shown: str) -> None:
    before = asked(view)
    view.page.evaluate(shown)
    assert asked(view) == before + 1


def test_a_notebook_that_comes_to_the_front_again_asks_anew(view: BarePage) -> None:
    before = asked(view)
    view.page.evaluate("""async () => {
        view.style.display = "none";
        await new Promise((done) => new ResizeObserver(([one]) => one.contentRect.width || done()).observe(view));
        await new Promise(requestAnimationFrame);
    }""")
    view.until("() => { view.style.display = ''; return said.filter((one) => one.do === 'shown').length > 1; }")
    assert asked(view) > before


def test_a_page_that_goes_says_so(view: BarePage) -> None:
    view.page.evaluate("() => dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert view.said()[-1] == {"do": "hidden"}


def test_while_a_world_passes_silence_is_not_believed(view: BarePage) -> None:
    view.page.evaluate("() => { window.answers = false; }")
    before = asked(view)
    view.tell(story=[NEXT], began=1)
    view.until("before => said.filter((one) => one.do === 'shown').length > before", before)
    expect(view.root.locator('[data-part="said"]')).to_contain_text("The kernel does not answer")
    expect(view.root.locator('[data-part="said"]')).to_contain_text("run the notebook from the top")
    view.page.evaluate("() => { window.answers = true; whole(); }")
    expect(view.root.locator('[data-part="said"]')).not_to_contain_text("does not answer")


@pytest.mark.parametrize(
    "ends", [
        "() => { window.answers = false; view.classList.add('jupyter-widgets-disconnected'); }",
        "() => { window.answer = () => { throw new Error('Canceled'); }; view.focus(); }",
    ]
)  # fmt: skip
@pytest.mark.parametrize("projected", [False, True])
def test_a_kernel_that_was_restarted_leaves_no_live_control(
    show: Callable[..., BarePage], ends: str, *, projected: bool
) -> None:
    view = show()
    view.root.focus()
    if projected:
        view.page.keyboard.press("f")
    view.page.evaluate(ends)
    if "throw" in ends:
        view.page.keyboard.press("n")
    said = view.root.locator('[data-part="said"]')
    expect(said).to_contain_text("run the notebook from the top")
    expect(said).to_be_visible()
    expect(view.root).to_have_attribute("data-playing", "false")
    expect(view.root).to_have_attribute("data-kernel", "gone")
    pause = view.root.locator('[data-key="play"]')
    assert pause.evaluate("one => Boolean(one.closest('[inert]'))")
    assert "rgb(0, 114, 178)" not in pause.evaluate("one => getComputedStyle(one).backgroundColor")
    view.page.keyboard.press("n")
    view.page.keyboard.press("Escape")
    expect(view.root).not_to_contain_class("mq-projector")
    expect(said).to_contain_text("run the notebook from the top")
