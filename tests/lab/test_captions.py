"""Captions: what a scenario's story says, and at which place of a world's history."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab import Lab, scenarios
from mqlab.errors import LearnerError
from mqlab.scenarios import Caption, Storyboard
from mqlab.scenarios.registry import story
from mqlab.scenarios.storyboards import STORYBOARDS, story_of
from mqlab.trace.catalogue import CATALOGUE

TOLD = [name for name in scenarios.names() if scenarios.get(name).captions]


def told(board: Storyboard, lab: Lab) -> list[Caption]:
    """The captions in the order in which they are shown while the history is played."""
    shown: list[Caption] = []
    for place in range(len(lab.history) + 1):
        caption = board.at(place)
        if caption is not None and shown[-1:] != [caption]:
            shown.append(caption)
    return shown


def test_each_lab_of_the_course_and_the_cousins_has_a_storyboard_and_each_of_them_tells_a_story() -> None:
    labs = {path.name[:2] for path in (Path(__file__).parents[2] / "labs" / "sources").glob("[01]*.py")}
    assert set(STORYBOARDS) == {*labs, "31"}
    assert {name for names in STORYBOARDS.values() for name in names} <= set(TOLD)
    assert story_of("06").name == "demo-slow-consumer"
    assert story_of("busy-broker").name == "busy-broker"


def test_what_has_no_captions_is_no_storyboard() -> None:
    with pytest.raises(LearnerError, match="no captions"):
        story_of("steady-load")
    with pytest.raises(LearnerError, match="no scenario 'lab-6'"):
        story_of("lab-6")


@pytest.mark.parametrize("name", TOLD)
def test_a_story_is_told_whole_within_the_scenarios_own_time(name: str) -> None:
    scenario = scenarios.get(name)
    for seed in (7, 1, "42/a-student"):
        lab = scenario.play(seed)
        assert told(Storyboard(lab), lab) == list(scenario.captions)
        assert {caption.points_to for caption in scenario.captions} <= set(lab.world.nodes)


@pytest.mark.parametrize("name", TOLD)
def test_a_story_has_six_to_ten_plain_sentences(name: str) -> None:
    captions = scenarios.get(name).captions
    assert 6 <= len(captions) <= 10
    for caption in captions:
        assert caption.kind in CATALOGUE
        assert caption.words[-1] in ".?"
        assert len(caption.words) <= 110
        assert "  " not in caption.words


def test_a_sentence_of_two_lines_has_a_space_between_them() -> None:
    (caption,) = story("""
        NodeCrashed 2 broker-a: It dies, and
          the rest goes on.
    """)
    assert caption == Caption("NodeCrashed", 2, "It dies, and the rest goes on.", "broker-a")


def test_a_caption_begins_behind_its_event_and_lasts_until_the_next_one() -> None:
    lab = scenarios.get("demo").play(7)
    board = Storyboard(lab)
    (stored,) = [caption for caption in scenarios.get("demo").captions if caption.kind == "MessageStored"]
    second = [place for place, record in enumerate(lab.history) if record.kind == "MessageStored"][1]
    assert board.at(second) != stored
    assert board.at(second + 1) == stored == board.at(second + 2)
    assert board.at(0) is None, "and whoever goes back is told what he was told then"


def test_from_caption_to_caption_the_way_on_is_the_way_back() -> None:
    lab = scenarios.get("in-order").play(7)
    board = Storyboard(lab)
    places = [0]
    while (place := board.after(places[-1])) is not None:
        places.append(place)
    assert [board.at(place) for place in places[1:]] == list(scenarios.get("in-order").captions)
    assert board.told
    assert [board.before(place) for place in places[:1:-1]] == places[-2:0:-1]
    assert board.before(places[1]) is None


def test_a_caption_that_is_still_to_come_has_no_place() -> None:
    lab = scenarios.get("demo").build(7)
    board = Storyboard(lab)
    assert board.after(len(lab.history)) is None
    assert not board.told
    lab.run_for(seconds=30)
    assert board.after(0) is not None


# -- the scenarios that are there for their story ------------------------------------------------------------------


def test_what_three_ways_tells_is_so() -> None:
    lab = scenarios.get("three-ways").play(7)
    failed = [event.msg_id for event in lab.history.find("SendFailed")]
    tried = {event.msg_id: event.mode for event in lab.history.find("SendAttempted")}
    assert sorted(tried[message] for message in failed) == ["ASYNC", "SYNC"]
    thawed = lab.history.last("NodeThawed").ts_us
    assert sum(event.ts_us >= thawed for event in lab.history.find("MessageStored")) == 3


def test_what_in_order_tells_is_so() -> None:
    lab = scenarios.get("in-order").play(7)
    taken = [(event.attempt_id, event.offsets) for event in lab.history.find("OrderTaken")]
    assert taken == [("monday", "0,1,2"), ("monday", "1,2,3"), ("tuesday", "4")]
    assert [event.next_offset for event in lab.history.find("OrderAcked")] == [1, 1, 2, 3, 4]
    assert [event.attempt_id for event in lab.history.find("OrderBlocked")] == ["tuesday"]


def test_what_new_groups_tells_is_so() -> None:
    lab = scenarios.get("new-groups").play(7)
    started = [event.node for event in lab.history.find("ConsumeStarted")]
    assert {name: started.count(name) for name in ("first", "last", "last-again")} == {
        "first": 52,
        "last": 40,
        "last-again": 12,
    }


def test_what_orders_cut_off_tells_is_so() -> None:
    lab = scenarios.get("orders-cut-off").play(7)
    assert sum(1 for _ in lab.history.find("SendSucceeded")) == 10
    recovered = lab.history.last("StoreRecovered")
    assert not recovered.clean
    assert recovered.cut_bytes > 0


def test_events_that_come_later_are_read_when_they_are_there() -> None:
    lab = scenarios.get("demo").build(7)
    board = Storyboard(lab)
    before = board.at(len(lab.history))
    lab.run_for(seconds=5)
    after = board.at(len(lab.history))
    assert before is not None
    assert after is not None
    assert before != after
    assert board.at(len(lab.history)) == Storyboard(lab).at(len(lab.history))


def test_a_world_built_cell_by_cell_has_no_captions() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    assert Storyboard(lab).at(len(lab.history)) is None


def test_when_a_caption_comes_before_its_turn_those_in_front_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = story("""
        MessageStored 3 broker-a: The third.
        MessageStored 2 broker-a: The second.
        MessageStored 5 broker-a: The fifth,
            with a second line.
    """)
    changed = scenarios.get("demo")._replace(captions=captions)
    monkeypatch.setitem(scenarios.registry._SCENARIOS, "demo", changed)
    lab = changed.play(7)
    words = [caption.words for caption in told(Storyboard(lab), lab)]
    assert words == ["The second.", "The fifth, with a second line."]


def test_what_three_copies_tells_is_so() -> None:
    lab = scenarios.get("three-copies").play(7)
    stored = [event.unique_key for event in lab.history.find("MessageStored")]
    assert stored[1:] == [stored[1]] * 3
    assert len(list(lab.history.find("SendFailed"))) == 2
