"""How the page plays a story: what is seen to move, when the picture changes, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from .bare_page import BarePage, card, flights, stage

BEFORE = stage(card("p", "idle", 10), card("b", "empty", 460), flights())
FLY = {"act": "fly", "id": "1:p:1", "path": [130, 90, 380, 90], "ms": 300, "svg": '<circle r="8"/>'}
LAND = {"act": "land", "id": "1:p:1", "path": [380, 90, 460, 90, 500, 110], "ms": 150, "svg": ""}
SENT = {"at": 0, "us": 10, "place": 1, "after": 0, "parts": {"flights": flights("1:p:1")},
        "acts": [FLY], "say": "sent"}  # fmt: skip
STORED = {"at": 500, "us": 20, "place": 2, "after": 150, "acts": [LAND], "say": "stored",
          "parts": {"flights": flights(), "card:b": card("b", "one", 460)}}  # fmt: skip

# What is seen at once when a message has come, before anything else can happen.
STEP = """message => {
    tell(message);
    return {
        place: view.dataset.place,
        taken: view.dataset.taken,
        clock: view.querySelector('[data-key="clock"]').textContent,
        moving: view.querySelectorAll(".mq-air > *").length,
        resting: view.querySelectorAll(".mq-flight").length,
    };
}"""
CLOCK = '<output data-key="clock"></output>'

# In each painted frame: where what moves is, and what the card and the flights at rest show.
WATCH = """() => {
    window.seen = [];
    const look = () => {
        const air = document.querySelector('[data-key="page:air"]');
        const rest = document.querySelector('.mq-flight');
        window.seen.push({
            moving: [...air?.children ?? []].map(
                one => [one.dataset.key, one.dataset.act, one.getAttribute("transform")]),
            rest: rest ? getComputedStyle(rest).visibility === "visible" : false,
            card: document.querySelector('[data-key="card:b"] text').textContent,
        });
        window.watching = requestAnimationFrame(look);
    };
    look();
}"""


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., BarePage]]:
    """Opens a view that shows `BEFORE`."""
    opened: list[BarePage] = []

    def open_page(**context: Any) -> BarePage:
        opened.append(BarePage(browser, {"stage": BEFORE, "_place": "0", "_world": "0", "_taken": "0"}, **context))
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


@pytest.fixture
def view(show: Callable[..., BarePage]) -> BarePage:
    return show()


def seen_in(view: BarePage) -> list[dict[str, Any]]:
    """All painted frames up to now."""
    found: list[dict[str, Any]] = view.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(seen))))"
    )
    return found


def places(seen: list[dict[str, Any]], act: str) -> list[float]:
    """The places, from left to right, in which what moves so was painted."""
    found = [place for frame in seen for _, kind, place in frame["moving"] if kind == act]
    return [float(place.removeprefix("translate(").split()[0]) for place in found]


def test_a_frame_is_seen_to_fly_and_goes_on_from_where_it_rests(view: BarePage) -> None:
    view.page.evaluate(WATCH)
    view.tell(story=[SENT, STORED], began=1)
    view.until("() => view.dataset.beats === '2' && view.dataset.story === 'still'")
    seen = seen_in(view)
    flying, landing = places(seen, "fly"), places(seen, "land")
    assert len(set(flying)) >= 3
    assert flying == sorted(flying)
    assert flying[0] == pytest.approx(130, abs=30)
    assert 370 < landing[0] < max(landing)
    assert max(landing) > 450
    assert any(frame["rest"] and not frame["moving"] for frame in seen)
    assert not any(frame["rest"] and frame["moving"] for frame in seen)
    assert not any(frame["card"] == "one" and x < 380 for frame in seen for x in places([frame], "fly"))
    expect(view.root).to_have_attribute("data-flown", "2")
    expect(view.root).to_have_attribute("data-place", "2")
    expect(view.root.locator('[data-part="said"]')).to_have_text("stored")
    assert view.root.locator(".mq-flight, .mq-air > *").count() == 0


def test_the_picture_of_an_earlier_beat_does_not_come_back(view: BarePage) -> None:
    slow = STORED | {"at": 0, "after": 200, "parts": {"card:b": card("b", "one", 460)}}
    quick = STORED | {"at": 20, "after": 0, "acts": [], "place": 3, "parts": {"card:b": card("b", "two", 460)}}
    view.page.evaluate(WATCH)
    view.tell(story=[slow, quick], began=1)
    view.until("() => view.dataset.beats === '2' && view.dataset.story === 'still'")
    cards = [frame["card"] for frame in seen_in(view)]
    assert cards == sorted(cards, key=["empty", "two"].index)


def test_a_frame_of_the_last_place_waits_until_the_story_is_told(view: BarePage) -> None:
    view.page.evaluate(WATCH)
    # Long enough to be painted on a machine that is busy.
    stored = STORED | {"after": 600, "acts": [LAND | {"ms": 600}]}
    view.tell(story=[SENT, stored], began=1)
    view.tell(frame={"stage": stage(card("b", "whole", 460), flights()), "_place": "2", "bar": "<i>paused</i>"})
    expect(view.root.locator('[data-part="bar"]')).to_have_text("paused")
    expect(view.root.locator('[data-key="card:b"] text')).to_have_text("whole")
    seen = seen_in(view)
    before = [frame for frame in seen if frame["card"] != "whole"]
    assert places(before, "fly")
    assert places(before, "land")


def test_a_step_is_seen_at_once_and_goes_on_moving(view: BarePage) -> None:
    step = {"story": [SENT | {"clock": "10 us"}], "began": 1, "frame": {"_place": "1", "_taken": "1", "bar": CLOCK}}
    seen = view.page.evaluate(STEP, step)
    assert seen == {"place": "1", "taken": "1", "clock": "10 us", "moving": 1, "resting": 1}
    # The next step does not wait for the end of this one.
    step = {"story": [STORED | {"at": 0, "clock": "20 us"}], "began": 2, "frame": {"_place": "2", "_taken": "2"}}
    seen = view.page.evaluate(STEP, step)
    assert seen == {"place": "2", "taken": "2", "clock": "20 us", "moving": 1, "resting": 1}
    view.until("() => view.dataset.story === 'still'")
    assert view.root.locator('[data-key="card:b"] text').text_content() == "one"
    expect(view.root).to_have_attribute("data-place", "2")


def test_what_fills_the_slots_of_a_card_stays_when_the_card_changes(view: BarePage) -> None:
    row = '<g data-key="card:b/0"><text x="8" y="40">q0</text></g>'
    slot = '<g data-slot="" data-key="card:b/0"></g>'
    first, second = (card("b", words, 460).replace("</text></g>", f"</text>{slot}</g>") for words in ("one", "two"))
    beat = {"us": 20, "after": 0, "acts": []}
    view.tell(story=[beat | {"at": 0, "place": 1, "parts": {"card:b": first, "card:b/0": row}}], began=1)
    view.tell(story=[beat | {"at": 20, "place": 2, "parts": {"card:b": second}}], began=1)
    view.until("() => view.dataset.beats === '2' && view.dataset.story === 'still'")
    assert view.root.locator('[data-key="card:b"] text').all_text_contents() == ["two", "q0"]
    view.tell(story=[beat | {"at": 40, "place": 3, "parts": {"card:b/0": row.replace("q0", "q1")}}], began=1)
    view.until("() => view.dataset.beats === '3' && view.dataset.story === 'still'")
    assert view.root.locator('[data-key="card:b"] text').all_text_contents() == ["two", "q1"]


def test_a_frame_of_another_place_ends_the_story_at_once(view: BarePage) -> None:
    view.tell(story=[SENT, STORED | {"at": 60_000}], began=1)
    view.until("() => view.querySelector('.mq-air > *')")
    view.tell(frame={"stage": stage(card("b", "elsewhere", 460), flights()), "_place": "77"})
    assert view.root.locator('[data-key="card:b"] text').text_content() == "elsewhere"
    assert view.root.locator(".mq-air > *").count() == 0
    expect(view.root).to_have_attribute("data-story", "still")
    expect(view.root).to_have_attribute("data-beats", "1")


def test_with_reduced_motion_nothing_flies_and_beat_follows_beat(show: Callable[..., BarePage]) -> None:
    view = show(reduced_motion="reduce")
    view.page.evaluate(WATCH)
    view.tell(story=[SENT, STORED], began=1)
    view.until("() => view.dataset.beats === '2' && view.dataset.story === 'still'")
    seen = seen_in(view)
    assert not any(frame["moving"] for frame in seen)
    assert any(frame["rest"] for frame in seen)
    assert seen[-1]["card"] == "one"


def test_a_page_that_nobody_sees_shows_what_came_without_moving(view: BarePage) -> None:
    view.page.evaluate("() => Object.defineProperty(document, 'hidden', { get: () => true })")
    view.tell(story=[SENT, STORED], began=1)
    assert view.root.locator('[data-key="card:b"] text').text_content() == "one"
    expect(view.root).to_have_attribute("data-beats", "2")
    assert view.root.get_attribute("data-flown") is None


def test_what_a_story_has_shown_is_what_a_saved_page_keeps(view: BarePage) -> None:
    view.tell(story=[SENT, STORED], began=1)
    view.until("() => view.dataset.beats === '2' && view.dataset.story === 'still'")
    view.until("() => kept().stage.includes('>one</text>')")
    kept = view.page.evaluate("() => kept().stage")
    assert "page:air" not in kept


def test_a_silence_is_shown_as_a_tick(view: BarePage) -> None:
    view.tell(story=[SENT, STORED | {"at": 900, "gap": "+ 98 ms"}], began=1)
    view.until("() => view.querySelector('.mq-gap').textContent === '+ 98 ms'")
    view.until("() => view.dataset.story === 'still'")
    expect(view.root.locator(".mq-gap")).to_have_text("")


def test_a_late_story_is_told_in_its_own_time(view: BarePage) -> None:
    view.page.clock.install()
    view.tell(story=[SENT], began=1)
    view.until("() => view.dataset.beats === '1' && view.dataset.story === 'still'")
    view.page.clock.fast_forward(700)
    view.page.evaluate(WATCH)
    view.tell(story=[STORED, STORED | {"at": 800, "place": 3, "acts": [FLY], "parts": {}}], began=1)
    view.until("() => view.dataset.place === '3' && view.dataset.story === 'still'")
    seen = seen_in(view)
    assert len(set(places(seen, "land"))) >= 3
    assert len(set(places(seen, "fly"))) >= 3
