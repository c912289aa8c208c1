"""What moves on the site without Jupyter: recorded stages, and worlds that a link opens in the page's own Python."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from mqlab import Lab, scenarios
from mqlab.check import find_check
from mqlab_widgets.links import fragment_of

from .conftest import SITE

PIECES = """keys => Object.fromEntries(keys.map((key) =>
    [key, document.querySelector(`.recorded [data-key="${key}"]`)?.textContent ?? "is not there"]))"""
LOOK_FOR_EMPTY_PLACES = """() => {
    window.empty = [];
    const look = () => {
        const found = document.querySelectorAll(".recorded.ready [data-slot]:empty");
        window.empty.push(...[...found].map((slot) => slot.dataset.key));
        requestAnimationFrame(look);
    };
    look();
}"""
TELEPHONE = {"width": 390, "height": 844}
PYTHON_MS = 60_000


@contextmanager
def opened(browser: Browser, place: str, **options: Any) -> Iterator[Page]:
    """A page of the site in a browser that has never seen it; nothing goes wrong in it."""
    wrong: list[str] = []
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(place)
        yield page
        assert wrong == []
    finally:
        context.close()


def moved(page: Page) -> None:
    page.wait_for_function("Number(document.querySelector('.recorded').dataset.flown) > 0")


def paused(page: Page, beat: int) -> Locator:
    """The recording of a page, as soon as it has moved: paused, and put to that beat."""
    figure = page.locator(".recorded")
    moved(page)
    figure.get_by_role("button", name="Pause").click()
    figure.get_by_label("Where in the recording").fill(str(beat))
    return figure


def test_on_a_telephone_the_front_page_moves_at_once(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html", viewport=TELEPHONE) as page:
        moved(page)
        # The aim is 1 s. No test fails by it: the machine may be busy with other things.
        print(f"\nfrom the first request to the first motion: {page.evaluate('performance.now()'):.0f} ms")
        sizes = page.evaluate("performance.getEntriesByType('resource').map((one) => one.transferSize)")
        assert sum(sizes) < 300_000
        stage = page.locator('.recorded [data-part="stage"] svg')
        box = stage.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= TELEPHONE["width"]
        expect(page.locator('.recorded [data-part="caption"]')).to_contain_text("The producer sends a message")


def test_who_wants_less_motion_sees_none_and_can_still_go_through_it(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html", reduced_motion="reduce") as page:
        figure = page.locator(".recorded")
        expect(figure).to_have_class("recorded mq-viewer ready")
        expect(figure).to_have_attribute("data-playing", "false")
        place = figure.get_attribute("data-place")
        page.wait_for_function("performance.now() > 2500")
        assert figure.get_attribute("data-place") == place
        figure.get_by_role("button", name="Play").click()
        page.wait_for_function(f"document.querySelector('.recorded').dataset.place !== '{place}'")
        assert figure.get_attribute("data-flown") is None


def test_it_is_paused_scrubbed_and_a_message_shows_its_way(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html") as page:
        figure = page.locator(".recorded")
        moved(page)
        figure.get_by_role("button", name="Pause").click()
        place = figure.get_attribute("data-place")
        page.wait_for_function("performance.now() > 2000")
        assert figure.get_attribute("data-place") == place
        figure.get_by_label("Where in the recording").fill("100")
        later = int(figure.get_attribute("data-place") or 0)
        assert later > int(place or 0)
        cells = figure.locator('[data-part="stage"] [data-message]')
        key = cells.first.get_attribute("data-message")
        cells.first.click()
        stations = figure.locator('[data-part="stations"]')
        number = (cells.first.get_attribute("aria-label") or "").removeprefix("message ")
        expect(stations.locator('.mq-number[aria-pressed="true"]')).to_have_text(number)
        assert figure.locator(f'.lit[data-message="{key}"]').count() > 0
        stations.locator("li.passed").first.click()
        assert int(figure.get_attribute("data-place") or 0) < later
        figure.get_by_label("Where in the recording").fill("0")
        assert "0 sent" in figure.locator('[data-part="stage"]').inner_text()


def test_played_to_its_end_it_shows_what_the_world_came_to(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/labs/17_copies.html") as page:
        figure = page.locator('.recorded[data-recording$="/accident"]')
        figure.scroll_into_view_if_needed()
        expect(figure).to_have_class("recorded mq-viewer ready")
        page.evaluate(LOOK_FOR_EMPTY_PLACES)
        figure.get_by_label("How fast").select_option("4")
        figure.get_by_role("button", name="Play").click()
        expect(figure).to_have_attribute("data-playing", "false", timeout=PYTHON_MS)
        first, *beats = gzip.decompress((SITE / "stages" / "accident-wide.gz").read_bytes()).decode().splitlines()
        parts = {key: html for beat in beats for key, html in json.loads(beat)["parts"].items()}
        wanted = {key: words(html) for key, html in parts.items() if html and "/" in key}
        shown = page.evaluate(PIECES, list(wanted))
        assert {key: " ".join(text.split()) for key, text in shown.items()} == wanted
        assert len(wanted) > 5
        bare = {key for beat in beats for key, html in json.loads(beat)["parts"].items() if html.count("<") < 3}
        bare |= set(re.findall('<g data-key="([^"]*)" [^>]*></g>', json.loads(first)["stage"]))
        empty = {key for key in page.evaluate("window.empty") if key.startswith("card:broker-a/")}
        assert empty <= bare
        assert json.loads(first)["place"] < int(figure.get_attribute("data-place") or 0)


def words(svg: str) -> str:
    """The text of a piece of a picture."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", svg)).split())


def test_take_over_goes_on_with_the_same_world_at_the_same_event(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html") as page:
        figure = paused(page, 60)
        place, said = figure.get_attribute("data-place"), figure.locator('[data-part="said"]').inner_text()
        figure.get_by_role("link", name="Take over").click()
        viewer = view(page)
        assert viewer.get_attribute("data-place") == place
        expect(viewer.locator('[data-part="said"]')).to_have_text(said)
        viewer.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_function(f"Number(document.querySelector('.play-view .mq-viewer').dataset.place) > {place}")


# -- links ----------------------------------------------------------------------------------------------------------


def view(page: Page) -> Locator:
    """The live view of a page that plays a world, as soon as it is there."""
    page.wait_for_selector("#play[data-state=open], #play[data-state=stopped]", timeout=PYTHON_MS)
    expect(page.locator("#play")).to_have_attribute("data-state", "open")
    viewer = page.locator(".play-view .mq-viewer")
    page.wait_for_function("document.querySelector('.play-view .mq-viewer').dataset.taken !== undefined")
    return viewer


def broken() -> Lab:
    lab = scenarios.get("demo").play(2, seconds=3)
    lab.act("crash", node="broker-a")
    return lab.run_for(seconds=2)


def branched() -> Lab:
    lab = scenarios.get("demo").build(1, overrides={("network/producer-1>broker-a", 0): 7})
    return lab.run_for(seconds=4)


def failed() -> Lab:
    return find_check("06/limits").play(lambda case: {"pull_threshold_for_queue": 1000}, seeds=[1]).open()


def played(name: str, seed: int | str, **options: Any) -> Lab:
    return scenarios.get(name).play(seed, seconds=5, **options)


LINKS = {
    "a scenario": lambda: played("demo", 1),
    "another seed": lambda: played("demo", 99),
    "a seed in words": lambda: played("demo", "a rainy day"),
    "parameters": lambda: played("accident", 1, parameters={"what": "disk lost"}),
    "bytes on the wires": lambda: played("first-message", 1, wire="bytes"),
    "ties": lambda: played("shop-day", 2, tie_is_choice=True),
    "a branch": branched,
    "a broken world": broken,
    "a drawn world": lambda: played("drawn", 12),
    "proxies": lambda: played("through-a-proxy", 1),
    "a student's failed check": failed,
}


@pytest.fixture(scope="module")
def reader(browser: Browser, address: str) -> Iterator[Page]:
    """A page that is given one link after the other."""
    with opened(browser, f"{address}/play/index.html#scenario=demo") as page:
        view(page)
        yield page


def follow(page: Page, link: str) -> None:
    """Change the link of a page, and wait until it has noticed."""
    page.evaluate("link => { document.querySelector('#play').dataset.state = ''; location.hash = link; }", link)
    page.wait_for_selector("#play:not([data-state=''])")


@pytest.mark.parametrize("name", LINKS)
def test_a_link_opens_its_world_at_its_event_in_a_browser_alone(reader: Page, name: str) -> None:
    lab = LINKS[name]()
    at = len(lab.history) - 2
    follow(reader, fragment_of(lab, at))
    viewer = view(reader)
    assert viewer.get_attribute("data-place") == str(at)
    assert reader.locator(".play-notes").inner_text() == ""


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("scenario=nothing", "there is no scenario 'nothing'"),
        ("hello", "this is no link to a moment"),
        ('scenario=demo&actions=[[1,2,"eval",{"code":"1"}]]', "a verb of mqlab"),
        ("scenario=<img src=x onerror=alert(1)>", "there is no scenario '<img"),
        ("answer=__proto__", 'there is no answer named "__proto__"'),
        ("answer=../../x", 'there is no answer named "../../x"'),
    ],
)
def test_a_hostile_link_says_what_is_wrong_and_runs_nothing(reader: Page, link: str, words: str) -> None:
    follow(reader, link)
    reader.wait_for_selector("#play[data-state=stopped]", timeout=PYTHON_MS)
    expect(reader.locator(".play-words")).to_contain_text(words)
    assert reader.locator("#play img").count() == 0


def test_another_link_takes_the_place_of_one_that_still_comes(reader: Page) -> None:
    follow(reader, "scenario=demo&seed=1&at=90000")
    follow(reader, "scenario=demo&seed=1&at=20")
    assert view(reader).get_attribute("data-place") == "20"
    assert reader.locator(".play-view .mq-viewer").count() == 1


def test_what_takes_long_can_be_stopped(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/play/index.html") as page:
        page.clock.install()
        follow(page, "scenario=demo&seed=1&at=100000")
        page.wait_for_selector("#play[data-state=opens]", timeout=PYTHON_MS)
        page.clock.run_for(20_000)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".play-words")).to_have_text("Stopped. Reload the page to begin again.")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        assert page.locator(".play-view .mq-viewer").count() == 0


def test_keys_reach_what_does_something_in_a_recording_and_nothing_else(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html") as page:
        figure = paused(page, 100)
        assert figure.locator('[data-part="stage"] [data-do="choose"][tabindex]').count() == 0
        figure.locator('[data-part="stage"] [data-message]').first.focus()
        page.keyboard.press("Enter")
        expect(figure.locator('.mq-number[aria-pressed="true"]')).to_be_visible()


def test_a_server_that_has_unpacked_a_recording_is_no_trouble(browser: Browser, address: str) -> None:
    def plain(route: Route) -> None:
        route.fulfill(body=gzip.decompress(route.fetch().body()))

    with opened(browser, "about:blank") as page:
        page.route("**/stages/*.gz", plain)
        page.goto(f"{address}/index.html")
        moved(page)


def test_a_recording_that_breaks_off_says_so_and_plays_what_has_come(browser: Browser, address: str) -> None:
    def cut(route: Route) -> None:
        whole = route.fetch().body()
        route.fulfill(body=whole[: len(whole) * 2 // 3])

    with opened(browser, "about:blank") as page:
        page.route("**/stages/*.gz", cut)
        page.goto(f"{address}/index.html")
        figure = page.locator(".recorded")
        expect(figure.locator("figcaption")).to_contain_text("The rest of it could not be loaded")
        scrub = figure.get_by_label("Where in the recording")
        assert 10 < int(scrub.get_attribute("max") or 0) < 200
        scrub.fill(scrub.get_attribute("max") or "")
        expect(figure).to_have_attribute("data-playing", "false")
        figure.get_by_role("button", name="Play").click()
        expect(figure).to_have_attribute("data-playing", "true")


def test_at_its_end_it_plays_again_from_the_beginning(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/index.html") as page:
        figure = page.locator(".recorded")
        moved(page)
        scrub = figure.get_by_label("Where in the recording")
        page.wait_for_function("document.querySelector('[data-control=scrub]').max > 150")
        scrub.fill(scrub.get_attribute("max") or "")
        expect(figure).to_have_attribute("data-playing", "false")
        figure.get_by_role("button", name="Play").click()
        page.wait_for_function("Number(document.querySelector('[data-control=scrub]').value) < 20")
        expect(figure).to_have_attribute("data-playing", "true")


def test_a_link_that_asks_too_much_opens_what_it_can(reader: Page) -> None:
    follow(reader, "scenario=demo&seed=1&at=5000000&v=0.0.1")
    viewer = view(reader)
    assert viewer.get_attribute("data-place") == "100000"
    expect(reader.locator(".play-notes")).to_contain_text("The link asks for event 5,000,000")
    expect(reader.locator(".play-notes")).to_contain_text("The link was made by mqlab '0.0.1'")


def test_an_answer_runs_its_world_and_shows_what_it_prints(reader: Page) -> None:
    follow(reader, "answer=auto-created-topic-one-broker")
    viewer = view(reader)
    expect(reader.locator(".play-notes")).to_contain_text("first: {'broker-b': 1}   after 30 s: {'broker-b': 60}")
    expect(viewer.locator('[data-part="stage"]')).to_contain_text("broker-c")


def test_the_page_shares_links_to_itself(reader: Page, address: str) -> None:
    follow(reader, "scenario=demo&seed=5&at=30")
    viewer = view(reader)
    viewer.get_by_role("button", name="Share").click()
    link = viewer.get_by_role("dialog", name="Share").get_by_role("textbox").last.input_value()
    assert link.startswith(f"{address}/play/#scenario=demo&seed=5&at=30&v=")


def test_in_a_frame_without_controls_only_the_stage_and_its_words_are_seen(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}/play/index.html#scenario=demo&seed=1&at=300&controls=none") as page:
        viewer = view(page)
        expect(viewer.locator('[data-part="stage"] svg')).to_be_visible()
        expect(viewer.locator('[data-part="bar"]')).to_be_hidden()
        expect(page.locator("header")).to_be_hidden()
