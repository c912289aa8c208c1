"""The stations of messages: what the lives fold from events, and the line that shows them."""

from __future__ import annotations

import re

import pytest

from mqlab import Lab
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.lives import MOST_LIVES, Lives
from mqlab_widgets.labels import label_of
from mqlab_widgets.stations import TIPS, Station, stations_html, stations_of, stations_text
from tests.widgets.folds import folded
from tests.worlds import played


def lives_of(lab: Lab, place: int | None = None) -> Lives:
    """The lives at a place of the history."""
    return folded(Lives, lab, place)


def way(lives: Lives, label: str, group: str = "") -> list[Station]:
    """The stations of the message with a label."""
    (key,) = [key for key in lives.lives if label_of(key, lives.lab) == label]
    return stations_of(lives.lives[key], group)


def told(stations: list[Station]) -> str:
    """The stations in short: passed, HERE, (ahead), [skipped]."""
    forms = {"passed": "{}", "here": "<{}>", "ahead": "({})", "skipped": "[{}]"}
    return " ".join(forms[station.state].format(station.name) for station in stations)


@pytest.fixture(scope="module")
def steady() -> Lab:
    """One producer, one broker, one consumer, after four seconds."""
    return played("steady-load", 4)


# -- the way of a message -------------------------------------------------------------------------------------------


def test_a_message_passes_its_stations_when_the_events_say_so(steady: Lab) -> None:
    stations = {station.name: station.at_us for station in way(lives_of(steady), "20")}
    sent = next(record for record in steady.history.find("SendAttempted") if record.msg_id.endswith("0014"))
    assert list(stations) == [
        *("sent", "stored", "answered", "dispatched", "woken", "pulled", "listener", "done", "committed")
    ]  # fmt: skip
    at = {"queue_id": sent.queue_id, "topic": "TopicTest"}
    stored = next(steady.history.find("MessageStored", unique_key=sent.msg_id))
    offset = stored.queue_offset
    assert stations["stored"] == stored.ts_us
    assert stations["dispatched"] == next(steady.history.find("MessageDispatched", queue_offset=offset, **at)).ts_us
    assert stations["woken"] == next(steady.history.find("PullWoken", queue_offset=offset, **at)).ts_us
    assert stations["pulled"] == next(steady.history.find("PullFinished", next_offset=offset + 1, **at)).ts_us
    assert stations["listener"] == next(steady.history.find("ConsumeStarted", msg_id=sent.msg_id)).ts_us
    committed = next(record for record in steady.history.find("OffsetCommitted", **at) if record.queue_offset > offset)
    assert stations["committed"] == committed.ts_us


def test_at_each_event_of_its_way_the_message_is_one_station_further(steady: Lab) -> None:
    ways: list[str] = []
    first = next(steady.history.find("SendAttempted", queue_id=3, topic="TopicTest"))
    begin = steady.history.index_of(next(r for r in steady.history.find("SendAttempted") if r.ts_us > 2_000_000).at)
    assert first.ts_us < 2_000_000
    lives = Lives(steady)
    fold = Fold(steady.history, [lives])
    for place in range(begin + 1, begin + 45):
        fold.go_to(place)
        shown = told(way(lives, label_of(steady.history.record(begin).msg_id, steady)))
        if shown not in ways:
            ways.append(shown)
    here = [re.search("<(.*)>", shown)[1] for shown in ways]  # type: ignore[index]
    assert here == [
        *("sent", "stored", "answered", "dispatched", "woken", "pulled", "listener", "done", "committed")
    ]  # fmt: skip
    assert ways[0] == "<sent> (stored) (answered) (dispatched) (woken) (pulled) (listener) (done) (committed)"


def test_a_message_that_was_found_by_a_pull_was_not_woken_for() -> None:
    assert told(way(lives_of(played("steady-load", 4)), "0")) == (
        "sent stored answered dispatched [woken] pulled listener done <committed>"
    )


def test_a_message_that_fails_is_given_back_and_comes_again_until_it_is_dead() -> None:
    lab = played("retry-and-dead-letters", 60)
    assert told(way(lives_of(lab), "0")) == "sent stored failed given back <dead>"
    assert {station.name: station.times for station in way(lives_of(lab), "0")}["failed"] == 3
    retried = next(lab.history.find("ConsumeStarted", reconsume_times=1))
    label = label_of(retried.msg_id, lab)
    there = lab.history.index_of(retried.at)
    assert told(way(lives_of(lab, there), label)) == (
        "sent stored failed given back parked retried <pulled> (listener) (done) (committed)"
    )
    again = way(lives_of(lab, there + 1), label)[7]
    assert (again.name, again.state, again.times) == ("listener", "here", 2)


def test_an_orderly_listener_that_fails_gets_the_message_again_at_once() -> None:
    lab = played("orderly-rebalance", 12)
    failed = next(lab.history.find("ConsumeFinished", status="SUSPEND_CURRENT_QUEUE_A_MOMENT"))
    label = label_of(failed.msg_id, lab)
    there = lab.history.index_of(failed.at) + 1
    assert told(way(lives_of(lab, there), label)).endswith("pulled <failed> (listener) (done) (committed)")
    assert told(way(lives_of(lab), label)).endswith("pulled failed listener done <committed>")


def test_a_delayed_message_is_parked_before_it_is_stored_in_its_queue() -> None:
    parked = [told(stations_of(life)) for life in lives_of(played("delayed-messages", 15)).lives.values()]
    assert any(way.startswith("sent parked answered stored dispatched") for way in parked)
    assert "sent parked <answered> (stored) (dispatched) (woken) (pulled) (listener) (done) (committed)" in parked


def test_what_a_power_cut_takes_is_lost_and_what_no_broker_took_is_given_up() -> None:
    assert told(way(lives_of(played("orders-cut-off", 30)), "0")) == "sent stored answered <lost>"
    assert told(way(lives_of(played("broker-hangs", 20)), "27a")) == "sent <given up>"


def test_a_consumer_that_takes_a_queue_over_gets_again_what_was_not_committed() -> None:
    lab = played("held-back-by-count", 4)
    lives = lives_of(lab)
    waiting = [label_of(key, lab) for key, life in lives.lives.items() if "pulled" in life.lap("readers").at]
    busy = next(label for label in waiting if told(way(lives, label)).endswith("<listener> (done) (committed)"))
    lab.crash("consumer-1")
    lab.restart("consumer-1")
    lab.run_until_event("QueueAllocated", limit_ms=60_000)
    assert told(way(lives_of(lab), busy)).endswith("<dispatched> (woken) (pulled) (listener) (done) (committed)")
    lab.run_for(seconds=6)
    assert {station.name: station.times for station in way(lives_of(lab), busy)}["listener"] == 2


def test_each_group_has_its_own_way_of_a_message() -> None:
    lab = played("every-delivery", 12)
    lives = lives_of(lab)
    two = next(life for life in lives.lives.values() if len(life.laps) > 1)
    readers, others = two.laps
    assert stations_of(two) == stations_of(two, readers)
    assert stations_of(two, others)[-1].at_us != stations_of(two, readers)[-1].at_us
    assert "and 1 more group" in stations_html(lives, two.key)


# -- how many are kept ----------------------------------------------------------------------------------------------


def test_only_the_newest_lives_are_kept_and_an_older_one_is_read_from_the_history() -> None:
    lab = played("steady-load", 40, messages=400)
    lives = lives_of(lab)
    assert len(lives.lives) == MOST_LIVES
    assert sum(map(len, lives.keys.values())) == MOST_LIVES
    old = next(lab.history.find("SendAttempted")).msg_id
    assert old not in lives.lives
    assert "committed" in stations_text(lives, old)
    assert stations_text(lives, old) == stations_text(lives_of(lab, 2_000), old)
    newest = lives.newest
    there = lab.history.index_of(next(lab.history.find("MessageStored", unique_key=old)).at)
    assert stations_text(lives_of(lab, there), newest) == "no message has been sent yet"


@pytest.mark.parametrize("scenario", ["retry-and-dead-letters", "orderly-rebalance", "lite-pull", "orders-cut-off"])
def test_a_fold_says_the_same_whichever_way_it_came(scenario: str) -> None:
    lab = played(scenario, 20)
    lives = Lives(lab)
    there = Fold(lab.history, [lives])
    length = len(lab.history)
    for place in (length, 1, 900, 0, 255, length - 7, length):
        there.go_to(place)
        assert lives.text() == lives_of(lab, place).text()
        assert lives.html() == lives_of(lab, place).html()


# -- the line -------------------------------------------------------------------------------------------------------


def test_the_line_shows_the_newest_message_or_the_one_that_is_followed(steady: Lab) -> None:
    lives = lives_of(steady)
    newest = stations_html(lives)
    assert f'data-message="{lives.newest}" aria-pressed="false"' in newest
    first = next(iter(lives.lives))
    followed = stations_html(lives, first)
    assert 'data-message="" aria-pressed="true"' in followed
    assert 'data-do="to_time" data-ms="' in followed
    assert followed.count("<li ") == 9


def test_the_line_as_text(steady: Lab) -> None:
    lives = lives_of(steady)
    assert stations_text(lives, next(key for key in lives.lives if key.endswith("0014"))) == (
        "message 20: sent at 2.078 s, stored after 0.233 ms, answered after 0.233 ms, dispatched after 0.947 ms, "
        "woken after 0.947 ms, pulled after 1.18 ms, listener after 1.18 ms, done after 1.18 ms, "
        "committed after 1.44 ms"
    )


def test_a_world_without_a_message_has_a_line_too() -> None:
    lab = Lab()
    assert "No message has been sent yet." in stations_html(Lives(lab))
    assert stations_text(Lives(lab)) == "no message has been sent yet"
    assert stations_text(Lives(lab), "0A00000403EC14AE5A5A0000081E0014") == "no message has been sent yet"


@pytest.mark.parametrize(
    ("scenario", "bad"),
    [("retry-and-dead-letters", "dead"), ("orders-cut-off", "lost"), ("broker-hangs", "given up")],
)
def test_what_went_wrong_is_marked_by_more_than_a_word(scenario: str, bad: str) -> None:
    lives = lives_of(played(scenario, 60))
    lines = [stations_html(lives, key) for key in lives.lives]
    assert any(f'class="here bad" title="{TIPS[bad]}"' in line for line in lines)


# -- others that fail or wait --------------------------------------------------------------------------------------


def others(lab: Lab, place: int | None = None) -> list[tuple[str, str]]:
    """Number and words of the messages that are named beside the newest one."""
    lives = lives_of(lab, place)
    now_us = lab.world.now_us if place is None else lab.history.record(place - 1).ts_us
    line = stations_html(lives, "", now_us).partition("mq-others-line")[2]
    return re.findall(r">(\w+)</button><span>(.*?) <small>since ", line)


def test_a_message_that_failed_stays_in_sight_until_it_is_done_though_newer_ones_pass() -> None:
    lab = played("demo-retry", 3)
    failed = lab.run_until_event("MessageGivenBack")
    assert failed is not None
    label = label_of(failed.msg_id, lab)
    seen = []
    while (label, "") not in seen:
        lab.run_for(ms=500)
        words = dict(others(lab)).get(label, "")
        if (label, words) not in seen:
            seen.append((label, words))
    assert label_of(lives_of(lab).newest, lab) != label
    assert [words for _, words in seen] == ["failed, kept back for a retry", "failed, waits for its retry", ""]


def test_what_was_refused_or_lost_stays_in_sight_and_at_most_three_are_named() -> None:
    refused = played("broker-hangs", 20)
    named = others(refused)
    assert len(named) == 3
    assert [words for _, words in named].count("refused, and given up") >= 2
    assert "more</span>" in stations_html(lives_of(refused), "", refused.world.now_us)
    assert {words for _, words in others(played("orders-cut-off", 12))} == {"lost with the power"}
    assert ("4", "a dead letter") in others(played("poison", 40))


def test_the_one_that_waits_longest_is_named_after_a_second() -> None:
    lab = played("delayed-messages", 10)
    assert others(lab) == [("3", "kept back until its time")]
    parked = next(record for record in lab.history.find("MessageParked") if label_of(record.unique_key, lab) == "3")
    place = lab.history.index_of(parked.at) + 1
    assert "3" not in dict(others(lab, place))


def test_where_all_goes_well_nobody_is_named_but_the_line_has_its_room() -> None:
    assert others(played("steady-load", 4)) == []
    assert "mq-others-line" in stations_html(lives_of(played("steady-load", 4)))


# -- a group that pops ----------------------------------------------------------------------------------------------


def test_a_popped_message_passes_the_stations_of_pop_and_one_that_is_revived_begins_a_new_lap() -> None:
    lab = played("demo-pop", 24)
    lives = lives_of(lab)
    ways: dict[str, str] = {}
    for key, life in lives.lives.items():
        shown = [station.name for station in stations_of(life) if station.at_us is not None]
        ways.setdefault(" ".join(shown), key)
    assert "sent stored answered dispatched popped listener done acked" in ways
    assert "sent stored answered dispatched popped failed put off" in ways
    again = ways["sent stored revived popped listener done acked"]
    times = [station.at_us for station in stations_of(lives.lives[again]) if station.at_us is not None]
    assert times == sorted(times)
    revived = next(r for r in lab.history if r.kind == "MessageRevived" and r.unique_key == again)
    assert revived.ts_us in times
    assert "acked after" in stations_text(lives, again)


def test_an_acknowledgement_of_an_old_check_point_is_none_of_the_message() -> None:
    lab = played("demo-pop", 2)
    changed = lab.run_until_event("InvisibleTimeChanged")
    assert changed is not None
    lab.run_for(ms=50)
    lives = lives_of(lab)
    key = lives.keys["broker-a", changed.topic, changed.queue_id][changed.queue_offset]
    at = lives.lives[key].laps["packers"].at
    assert "put off" in at
    assert "acked" not in at
