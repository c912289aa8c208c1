"""The tabs: the last step in words and with its causes, what may come next, and the tree of worlds."""

from __future__ import annotations

import re
from html import unescape

import pytest

from mqlab import Lab
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.sim import Node
from mqlab_widgets.controls import more_html
from mqlab_widgets.next_up import pending_of
from mqlab_widgets.panels import MOST_PENDING, next_html, said, step_html, worlds_html
from mqlab_widgets.session import Session
from tests.worlds import played


@pytest.fixture
def session() -> Session:
    """Two brokers after four seconds, in the present."""
    session = Session(played("two-brokers", 4), changed=lambda: None)
    session.do({"do": "now"})
    return session


@pytest.fixture
def handmade() -> Session:
    """A world that was built cell by cell."""
    lab = Lab(seed=1)
    lab.name_server()
    lab.broker("broker-a")
    lab.run_for(ms=20)
    session = Session(lab, changed=lambda: None)
    session.do({"do": "now"})
    return session


def buttons(html: str) -> list[tuple[str, str]]:
    """(command, the name that a screen reader says) of each button."""
    found = re.findall(r'<button[^>]*data-do="([a-z_]+)"([^>]*)>([^<]*)</button>', html)
    names = [(do, re.search(r'aria-label="([^"]*)"', rest), words) for do, rest, words in found]
    return [(do, unescape(label[1] if label else words)) for do, label, words in names]


def rows(html: str) -> list[str]:
    """The keys of the rows, in their order."""
    return [unescape(key) for key in re.findall(r'<div class="mq-row" data-key="([^"]*)"', html)]


# -- the last step --------------------------------------------------------------------------------------------------


def test_the_last_step_is_said_in_words_and_in_full(session: Session) -> None:
    session.do({"do": "start"})
    assert "Nothing has happened yet." in step_html(session)
    session.lab.history.forward("ConsumeStarted")
    html = step_html(session)
    assert '<p class="mq-told">consumer-1: the listener got message 4</p>' in html
    assert "<b>ConsumeStarted</b>" in html
    assert "it changed:" in html


def test_its_causes_are_told_and_lead_there(session: Session) -> None:
    session.lab.history.move_to(0)
    session.lab.history.forward("MessageDispatched")
    html = step_html(session)
    assert "broker-a stored message 0 at the end of its commit log" in html
    causes = [(do, name) for do, name in buttons(html) if do == "goto"]
    assert causes[0] == ("goto", "MessageStored: broker-a, 0.096 s")
    assert len({name for _, name in causes}) == len(causes)
    place = int(re.search(r'data-do="goto" data-place="(\d+)"', html)[1])  # type: ignore[index]
    session.do({"do": "goto", "place": place})
    event = session.cursor.event()
    assert event is not None
    assert event.kind == "MessageStored"


def test_the_live_line_says_what_happened_unless_a_command_has_something_to_say(session: Session) -> None:
    session.do({"do": "start"})
    assert said(session) == ""
    session.lab.history.forward("ConsumeStarted")
    assert said(session) == "consumer-1: the listener got message 4"
    session.lab.history.forward("RequestSent")
    assert said(session) == "consumer-1 asks broker-b for messages of queue 0, from offset 1 on"
    session.lab.history.forward("PullReceived")
    assert said(session) == "consumer-1&#x27;s question for messages of queue 0 has reached broker-b"
    session.lab.history.forward("CheckpointWritten")
    assert said(session) == "broker-a notes that readers goes on at offset 2 of queue 1"
    session.do({"do": "thaw", "node": "broker-a"})
    assert said(session).startswith("what is shown is past, and nothing was done")
    session.do({"do": "thaw", "node": "broker-a", "where": "now"})
    assert said(session).startswith("broker-a is not frozen")


def test_the_line_to_share_stands_in_a_field_with_a_button_that_copies_it(session: Session) -> None:
    assert "data-copy" not in more_html(session)
    session.do({"do": "share"})
    assert session.shared is not None
    more = more_html(session)
    assert f">{session.shared.text}</textarea>" in more
    assert "data-copy" in more
    assert f"behind event {session.shared.place:,}" in more


def test_of_a_popped_message_the_step_names_the_eight_fields_of_its_handle() -> None:
    lab = played("demo-pop", 2)
    session = Session(lab, changed=lambda: None)
    popped = lab.run_until_event("MessagePopped")
    assert popped is not None
    session.do({"do": "goto", "place": lab.history.index_of(popped.at) + 1})
    shown = unescape(step_html(session))
    told = re.search(r"<code>(.*?)</code>", shown)
    assert told is not None
    fields = parse_handle(told[1])
    assert (fields.start_offset, fields.pop_time, fields.queue_offset) == (
        popped.start_offset, popped.pop_time, popped.queue_offset,
    )  # fmt: skip
    assert all(name in shown for name in ReceiptHandle._fields[:8])
    again = lab.run_until_event("InvisibleTimeChanged")
    assert again is not None
    assert (again.pop_time, again.revive_qid) == (fields.pop_time, fields.revive_qid)


# -- what may happen next -------------------------------------------------------------------------------------------


def test_deliveries_come_first_and_housekeeping_is_folded_away(session: Session) -> None:
    session.lab.run_until_event("SendAttempted")
    session.do({"do": "now"})
    html = next_html(session)
    frames, housekeeping = html.split("<details")
    assert "message 20, from producer-1 to broker-b" in frames
    assert "<b>next</b>, in 0." in frames
    assert "threads and timers of the machines</summary>" in housekeeping
    assert "FlushRealTimeService" in housekeeping
    assert "FlushRealTimeService" not in frames


def test_each_button_says_what_it_is_about_to_those_who_do_not_see_its_row(session: Session) -> None:
    session.lab.run_until_event("SendAttempted")
    session.do({"do": "now"})
    found = buttons(next_html(session))
    assert ("pick", "let it arrive: message 20, from producer-1 to broker-b") in found
    assert ("hold", "hold it: message 20, from producer-1 to broker-b") in found
    assert ("disconnect", "break: message 20, from producer-1 to broker-b") in found
    assert ("pick", "let it run: broker-a: FlushRealTimeService") in found
    assert len(set(found)) == len(found)


def test_a_row_stays_where_it_is_when_it_is_held_back(session: Session) -> None:
    session.lab.run_until_event("SendAttempted")
    session.do({"do": "now"})
    before = rows(next_html(session))
    for place in range(len(pending_of(session.lab))):
        entry = list(pending_of(session.lab))[place]
        can_wait = pending_of(session.lab)[entry].holdable
        session.do({"do": "hold", "entry": entry, "ms": 100})
        assert (session.said == "") == can_wait
        assert rows(next_html(session)) == before


def test_the_list_has_an_end(session: Session) -> None:
    async def sleep(node: Node) -> None:
        await node.sleep(1_000)

    for number in range(MOST_PENDING + 5):
        node = session.lab.node(f"extra-{number}")
        node.spawn(sleep(node), "sleeper")
    session.lab.run_for(ms=1)
    session.do({"do": "now"})
    html = next_html(session)
    assert len(rows(html)) <= 2 * MOST_PENDING
    assert re.search(r"and \d+ more</div>", html)


def test_in_the_past_nothing_is_left_to_choose(session: Session, handmade: Session) -> None:
    session.do({"do": "goto", "place": 300})
    assert buttons(next_html(session)) == [("now", "go to the present"), ("take_back", "play a new world up to here")]
    handmade.do({"do": "goto", "place": 3})
    assert buttons(next_html(handmade)) == [("now", "go to the present")]


# -- worlds ---------------------------------------------------------------------------------------------------------


def test_a_world_built_cell_by_cell_is_offered_no_other(handmade: Session) -> None:
    html = worlds_html(handmade)
    assert buttons(html) == []
    assert "built cell by cell" in html


def test_the_worlds_are_listed_and_compared(session: Session) -> None:
    session.do({"do": "goto", "place": 300})
    session.do({"do": "take_back"})
    session.do({"do": "crash", "node": "broker-a"})
    html = worlds_html(session)
    assert rows(html) == ["world 0", "world 1"]
    assert ("branch", "show: world 0") in buttons(html)
    assert "events in common; then here" in html
    assert "from outside: crash broker-a; there" in html


def test_what_chance_drew_last_is_offered_in_other_ways(session: Session) -> None:
    session.lab.run_for(seconds=1)
    session.do({"do": "now"})
    newest = session.lab.world.choices.log[-1]
    html = worlds_html(session)
    assert f"{newest.point} #{newest.k}: {newest.value} of 0 to {newest.n - 1}" in unescape(html)
    assert "us more than the fastest way" in html
    drawn = [name for do, name in buttons(html) if do == "override"]
    assert len(set(drawn)) == len(drawn) > 3
    other = 0 if newest.value else newest.n - 1
    assert f"{other}: instead of {newest.value} for {newest.point} #{newest.k}" in drawn
