"""Keys and menus: what they do, and that none of them reaches the notebook."""

from __future__ import annotations

import string
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from mqlab.scenarios import get
from mqlab_widgets import controls
from mqlab_widgets.session import Session

from .bare_page import BarePage, card, flights, stage

LINE = '<div role="slider" tabindex="0" data-from-us="0" data-to-us="4000000" style="height:40px"></div>'


def frame(session: Session, tab: str = "step") -> dict[str, str]:
    """What a kernel shows of a session, with a small picture of two of its machines."""
    return {
        "_place": "5", "_world": "0", "_taken": str(session.taken), "_tab": tab,
        "stage": stage(card("producer-1", "idle", 10), card("broker-a", "empty", 460), flights()),
        "bar": controls.bar_html(session),
        "more": controls.more_html(session),
        "menu": controls.menu_html(session, link=False),
        "tabs": controls.tabs_html(controls.TABS, tab),
        "timeline": LINE,
        tab: f"<p>{tab}</p>",
    }  # fmt: skip


@pytest.fixture
def session() -> Session:
    """A world after a second."""
    return Session(get("steady-load").build(7).run_for(seconds=1), changed=lambda: None)


@pytest.fixture
def view(browser: Browser, session: Session) -> Iterator[BarePage]:
    """A view of it, with the focus on it."""
    page = BarePage(browser, frame(session))
    page.root.focus()
    yield page
    page.close()


def does(view: BarePage) -> list[str]:
    """The commands that the page has given, in their order."""
    return [command["do"] for command in view.said() if command["do"] not in ("shown", "here")]


def press(view: BarePage, *keys: str) -> None:
    for key in keys:
        view.page.keyboard.press(key)


def test_no_key_reaches_the_notebook_but_with_a_modifier(view: BarePage) -> None:
    press(view, *string.ascii_lowercase, *string.ascii_uppercase, *string.digits, "/", "-")
    press(view, "Enter", "Delete", "Backspace", "ArrowDown", "Escape", "F1", "PageDown")
    assert view.page.evaluate("() => escaped") == []
    press(view, "Control+s")
    assert view.page.evaluate("() => escaped") == ["Control", "s"]


def test_keys_are_commands(view: BarePage) -> None:
    press(view, "n", "p", "ArrowRight", "ArrowLeft", "s", "Home", "End", "[", "]", "Space")
    stepped = ["step_event", "back", "step_event", "back", "step_slice", "start", "now"]
    assert does(view) == [*stepped, "previous_kind", "next_kind", "play"]


def test_after_a_click_on_a_control_the_keys_still_work(view: BarePage) -> None:
    view.page.get_by_role("button", name="One event on").click()
    press(view, "n", "p")
    assert does(view) == ["step_event", "step_event", "back"]


def test_escape_closes_what_is_open_then_leaves_the_view(view: BarePage) -> None:
    press(view, "?")
    expect(view.page.get_by_role("dialog", name="Keys")).to_be_visible()
    press(view, "Escape")
    expect(view.page.get_by_role("dialog", name="Keys")).to_be_hidden()
    expect(view.page.get_by_role("button", name="List of keys")).to_be_focused()
    press(view, "Escape")
    expect(view.root).to_be_focused()
    assert view.page.evaluate("() => escaped") == []
    press(view, "Escape")
    assert view.page.evaluate("() => escaped") == ["Escape"]


def test_a_page_that_tells_late_of_its_scrolling_closes_nothing_that_was_opened_since(view: BarePage) -> None:
    press(view, "?")
    view.page.evaluate("() => document.dispatchEvent(new Event('scroll'))")
    expect(view.page.get_by_role("dialog", name="Keys")).to_be_visible()
    view.page.evaluate("() => { document.body.style.paddingTop = '40px'; }")
    view.page.evaluate("() => document.dispatchEvent(new Event('scroll'))")
    expect(view.page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_bar_is_one_tab_stop_with_arrow_keys_inside(view: BarePage) -> None:
    press(view, "Tab")
    expect(view.page.get_by_role("button", name="idle")).to_be_focused()
    press(view, "Tab")
    expect(view.page.get_by_role("button", name="Play")).to_be_focused()
    press(view, "ArrowRight")
    expect(view.page.get_by_role("button", name="One event on")).to_be_focused()
    press(view, "End")
    expect(view.page.get_by_role("button", name="List of keys")).to_be_focused()
    press(view, "Tab")
    expect(view.page.get_by_role("slider")).to_be_focused()
    press(view, "Tab")
    expect(view.page.get_by_role("tab", name="Step")).to_be_focused()
    press(view, "Shift+Tab", "Shift+Tab")
    expect(view.page.get_by_role("button", name="List of keys")).to_be_focused()
    assert does(view) == []


def test_arrow_keys_go_from_machine_to_machine(view: BarePage) -> None:
    press(view, "Tab", "ArrowRight")
    expect(view.page.locator('g[data-node="broker-a"]')).to_be_focused()
    press(view, "ArrowLeft")
    expect(view.page.locator('g[data-node="producer-1"]')).to_be_focused()
    assert does(view) == []


def test_a_machine_opens_its_faults_and_escape_goes_back_to_it(view: BarePage, session: Session) -> None:
    press(view, "Tab", "ArrowRight", "Enter")
    assert does(view) == ["choose"]
    session.do({"do": "choose", "node": "broker-a"})
    view.tell(frame=frame(session))
    crash = view.page.get_by_role("menuitem", name="Crash broker-a")
    expect(crash).to_be_focused()
    press(view, "ArrowDown")
    expect(view.page.get_by_role("menuitem", name="Pull the plug of broker-a")).to_be_focused()
    press(view, "Escape")
    expect(view.page.locator('g[data-node="broker-a"]')).to_be_focused()
    press(view, "Enter")
    view.tell(frame={"_taken": "2"})
    press(view, "Enter")
    assert view.said()[-1] == {"do": "crash", "node": "broker-a"}
    expect(crash).to_be_hidden()
    expect(view.page.locator('g[data-node="broker-a"]')).to_be_focused()


def test_what_cannot_be_done_now_is_not_done(view: BarePage, session: Session) -> None:
    session.do({"do": "start"})
    view.tell(frame=frame(session))
    back = view.page.get_by_role("button", name="One event back")
    expect(back).to_have_attribute("aria-disabled", "true")
    back.click(force=True)
    assert does(view) == []


def test_a_field_takes_letters_and_sends_its_form(view: BarePage) -> None:
    press(view, "m")
    field = view.page.get_by_role("spinbutton")
    field.fill("12")
    press(view, "5", "Enter")
    assert view.said()[-1] == {"do": "to_time", "ms": "125"}


def test_the_pace_is_chosen_from_a_list(view: BarePage) -> None:
    view.page.get_by_role("combobox", name="Pace").select_option("0.1 x")
    assert view.said()[-1] == {"do": "pace", "value": "0.1"}


def test_the_time_line_is_clicked_and_dragged(view: BarePage) -> None:
    box = view.page.get_by_role("slider").bounding_box()
    assert box is not None
    mouse, y = view.page.mouse, box["y"] + 10
    mouse.move(box["x"] + box["width"] / 2, y)
    mouse.down()
    assert view.said()[-1] == {"do": "to_time", "ms": 2000}
    # What comes before the answer is not asked for, but its newest is.
    mouse.move(box["x"] + box["width"] * 0.6, y)
    mouse.move(box["x"] + box["width"] + 50, y)
    assert does(view) == ["to_time"]
    view.tell(frame={"_taken": "1"})
    assert view.said()[-1] == {"do": "to_time", "ms": 4000}
    mouse.up()


def test_a_tab_is_opened_with_its_arrow_key(view: BarePage, session: Session) -> None:
    view.page.get_by_role("tab", name="Step").focus()
    press(view, "ArrowRight")
    assert view.said()[-1] == {"do": "tab", "name": "next"}
    view.tell(frame=frame(session, "next"))
    expect(view.page.get_by_role("tabpanel")).to_have_text("next")
    expect(view.page.get_by_role("tab", name="Next")).to_be_focused()


def size(view: BarePage) -> tuple[float, float, int]:
    """How the page said last that it is seen."""
    said = next(command for command in reversed(view.said()) if command["do"] == "shown")
    return said["width"], said["height"], said["big"]


def test_the_projector_mode_fills_the_window_and_escape_leaves_it(view: BarePage) -> None:
    before = size(view)
    press(view, "f")
    box = view.root.bounding_box()
    assert box == {"x": 0, "y": 0, "width": 800, "height": 700}
    expect(view.page.get_by_role("toolbar")).to_be_visible()
    wide, high, big = size(view)
    assert big == 1
    assert 700 < wide <= 800
    assert 500 < high <= 700
    press(view, "n", "Escape")
    assert does(view) == ["step_event"]
    expect(view.page.get_by_role("toolbar")).to_be_visible()
    assert size(view) == before


@pytest.mark.parametrize("opened", ["b", "m", "?", "Tab", "Shift+Tab"])
@pytest.mark.parametrize("leaves", ["Escape", "f"])
def test_from_the_projector_mode_there_is_always_a_way_out(view: BarePage, opened: str, leaves: str) -> None:
    press(view, "f", opened)
    if opened in ("b", "m", "?"):
        opened_ones = view.page.locator(":popover-open")
        expect(opened_ones).to_have_count(2)
        assert opened_ones.evaluate_all("all => all.every(one => one.checkVisibility())")
        press(view, "Escape")
        expect(opened_ones).to_have_count(1)
    assert view.root.evaluate("root => root.contains(document.activeElement)")
    press(view, leaves)
    expect(view.root).not_to_contain_class("mq-projector")
    expect(view.root).to_be_focused()


@pytest.mark.parametrize("leaves", ["Escape", "f"])
def test_what_fills_the_window_hears_keys_although_the_focus_has_gone(view: BarePage, leaves: str) -> None:
    press(view, "f")
    view.page.evaluate("() => document.activeElement.blur()")
    press(view, "n")
    expect(view.root).to_be_focused()
    assert does(view) == ["step_event"]
    view.page.evaluate("() => document.activeElement.blur()")
    press(view, leaves)
    expect(view.root).not_to_contain_class("mq-projector")
    assert view.page.evaluate("() => escaped") == []


def test_tab_goes_round_in_a_dialog_and_reaches_every_field(view: BarePage) -> None:
    press(view, "m")
    dialog = view.page.get_by_role("dialog", name="More")
    fields = dialog.locator("button, input, select")
    seen = set()
    for _ in range(fields.count()):
        assert dialog.evaluate("dialog => dialog.contains(document.activeElement)")
        seen.add(view.page.evaluate("() => document.activeElement.outerHTML"))
        press(view, "Tab")
    assert len(seen) == fields.count() > 4
    expect(fields.first).to_be_focused()
    press(view, "Shift+Tab")
    expect(fields.last).to_be_focused()
    press(view, "Escape")
    expect(view.page.get_by_role("button", name="More")).to_be_focused()
    expect(dialog).to_be_hidden()


def test_the_first_and_the_last_tab_are_one_key_away(view: BarePage) -> None:
    view.page.get_by_role("tab", name="Step").focus()
    press(view, "End")
    assert view.said()[-1] == {"do": "tab", "name": "text"}
    press(view, "Home")
    assert view.said()[-1] == {"do": "tab", "name": "boards"}
