"""The time line: an axis of round times, what it counts, the flags of faults, forks of worlds, and the cursor."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.scenarios import get
from mqlab_widgets.next_up import pending_of
from mqlab_widgets.session import Session
from mqlab_widgets.timeline import TimelineNumbers, axis_end, timeline_html
from tests.worlds import played


def session_of(lab: Lab) -> Session:
    """A viewer's session."""
    return Session(lab, changed=lambda: None)


@pytest.fixture
def broken() -> Session:
    """Two brokers, of which one was killed after 20 s and started again after 40 s."""
    return session_of(played("two-brokers", 50))


def text_of(session: Session) -> str:
    """The time line of a session."""
    return timeline_html(session.cursor, session.worlds, session.page.width)


def drawn(session: Session) -> ET.Element:
    """The time line as a tree, which it must be."""
    return ET.fromstring(text_of(session))


def flags_of(session: Session) -> dict[str, int]:
    """What the flags say -> the place in the history to which they lead."""
    found = [part for part in drawn(session).iter("svg") if part.get("class") == "flag"]
    return {part.findtext("title", ""): int(part.get("data-place", "")) for part in found}


def share(text: str | None) -> float:
    """A place in per cent as a share of the axis."""
    return float((text or "").rstrip("%")) / 100


def test_the_axis_ends_at_a_round_time_and_stands_still_for_a_while() -> None:
    times = (0, 100_000, 100_001, 3_100_000, 4_999_999, 61_000_000, 3_601_000_000, 25 * 3_600_000_000)
    ends = [axis_end(us) for us in times]
    assert ends == [100_000, 100_000, 200_000, 5_000_000, 5_000_000, 120_000_000, 7_200_000_000, 172_800_000_000]


def test_the_ticks_are_round_times_with_their_unit(broken: Session) -> None:
    words = [text.text for text in drawn(broken).iter("text") if text.get("class") == "axis"]
    assert words == ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]
    early = session_of(played("first-message", 1))
    words = [text.text for text in drawn(early).iter("text") if text.get("class") == "axis"]
    assert words[:3] == ["0", "0.5 s", "1 s"]


def test_the_cursor_and_now_stand_where_their_times_are(broken: Session) -> None:
    history = broken.lab.history
    history.move_to(len(history) // 2)
    picture = drawn(broken)
    (cursor,) = [part for part in picture.iter("svg") if part.get("data-key") == "cursor"]
    slider = picture.find("div")
    assert slider is not None
    end_us = int(picture.get("data-axis-us", ""))
    assert share(cursor.get("x")) == pytest.approx(broken.cursor.now_us / end_us, abs=1e-4)
    assert slider.get("style") == f"width:{100 * broken.lab.world.now_us / end_us:.2f}%"
    assert slider.get("data-to-us") == str(broken.lab.world.now_us)
    told = f"{broken.cursor.now_us / 1e6:,.3f} s of 50.075 s, event {history.cursor:,} of {len(history):,}"
    assert slider.get("aria-valuetext") == told


def test_what_lies_behind_the_cursor_is_tinted_in_the_past_only(broken: Session) -> None:
    broken.do({"do": "now"})
    assert 'class="past"' not in text_of(broken)
    broken.do({"do": "goto", "place": 500})
    assert 'class="past"' in text_of(broken)
    broken.do({"do": "start"})
    assert 'aria-valuetext="0.000 s of' in text_of(broken)


def test_each_fault_has_a_flag_that_leads_to_it(broken: Session) -> None:
    flags = flags_of(broken)
    assert list(flags) == ["crash broker-b", "restart broker-b"]
    broken.do({"do": "goto", "place": flags["crash broker-b"]})
    event = broken.cursor.event()
    assert event is not None
    assert (event.kind, event.verb) == ("ActionTaken", "crash")


def test_a_flag_for_what_a_lab_does_and_none_for_choosing_what_comes_next() -> None:
    lab = played("steady-load", 1)
    session = session_of(lab)
    session.do({"do": "now"})
    session.do({"do": "pick", "entry": next(iter(pending_of(session.lab)))})
    lab.partition("producer-1", "broker-a")
    lab.run_for(seconds=1)
    lab.crash("broker-a")
    lab.run_for(seconds=1)
    lab.start("broker-a")
    lab.run_for(seconds=1)
    assert list(flags_of(session)) == ["cut producer-1 and broker-a", "crash broker-a", "restart broker-a"]


def test_flags_that_stand_close_together_are_one() -> None:
    lab = played("steady-load", 1)
    for _ in range(50):
        lab.freeze("consumer-1")
        lab.run_for(ms=50)
        lab.thaw("consumer-1")
        lab.run_for(ms=50)
    found = [part for part in drawn(session_of(lab)).iter("svg") if part.get("class") == "flag"]
    assert len(found) <= 100
    assert sum(len(part.findtext("title", "").split("; ")) for part in found) == 100
    assert len(text_of(session_of(lab))) < 40_000


def test_a_flag_says_as_much_as_it_has_room_for() -> None:
    lab = played("steady-load", 1)
    for name, ms in (("producer-1", 100), ("broker-a", 500), ("consumer-1", 2_000)):
        lab.freeze(name)
        lab.run_for(ms=ms)
    session = session_of(lab)

    def shown() -> list[str]:
        flags = [part for part in drawn(session).iter("svg") if part.get("class") == "flag"]
        return [part.findtext("text", "") for part in flags]

    session.page.seen(600)
    assert shown() == ["", "freeze", "freeze consumer-1"]
    session.page.seen(3_000)
    assert shown() == ["freeze", "freeze broker-a", "freeze consumer-1"]


def test_stored_consumed_and_waiting_are_those_of_the_worlds_numbers() -> None:
    lab = played("held-back-by-count", 10)
    numbers = TimelineNumbers(lab)
    numbers.follow(lab)
    stored, consumed = (
        re.search(f'class="{name}" d="([^"]*)"', numbers.shapes())[1].count("M")  # type: ignore[index]
        for name in ("stored", "consumed")
    )
    assert stored == sum(1 for at in numbers.world.intervals if at.stored)
    assert consumed == sum(1 for at in numbers.world.intervals if at.consumed)
    assert consumed > 20


def test_a_branch_is_a_fork_in_both_worlds(broken: Session) -> None:
    broken.do({"do": "goto", "place": 1_500})
    slice_no = broken.lab.history.row(1_499)[0]
    broken.do({"do": "take_back"})
    assert broken.said == ""
    there = [part for part in drawn(broken).iter("svg") if part.get("class") == "fork"]
    assert [(part.get("data-number"), part.findtext("title")) for part in there] == [("0", "from world 0")]
    broken.do({"do": "branch", "number": 0})
    here = [part for part in drawn(broken).iter("svg") if part.get("class") == "fork"]
    assert [part.get("data-number") for part in here] == ["1"]
    at_us = max(row[2] for row in broken.lab.history.rows() if row[0] <= slice_no)
    assert share(here[0].get("x")) == pytest.approx(at_us / 60_000_000, abs=1e-4)


def test_following_in_steps_and_reading_at_once_give_the_same_small_picture() -> None:
    lab = get("rebalance").build(7)
    session = session_of(lab)
    for _ in range(30):
        lab.run_for(ms=500)
        text_of(session)
    lab.crash("consumer-1")
    followed, at_once = text_of(session), TimelineNumbers(lab)
    at_once.follow(lab)
    assert at_once.shapes() in followed
    assert [flag.words for flag in at_once.flags] == list(flags_of(session))
    assert len(followed) < 20_000


def test_an_empty_world_has_a_time_line_too() -> None:
    picture = drawn(session_of(Lab()))
    assert [text.text for text in picture.iter("text")][:2] == ["0", "10 ms"]
