"""Captions: what a scenario's story says, and at which place of a world's history."""

from __future__ import annotations

import pytest

from mqlab import Lab, scenarios
from mqlab.scenarios import Caption, Storyboard
from mqlab.scenarios.registry import story
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


def test_the_demo_worlds_and_the_labs_main_scenarios_tell_their_story() -> None:
    wanted = {
        "demo", "demo-two-brokers", "demo-slow-consumer", "demo-retry", "two-brokers", "broker-hangs", "rivals",
        "busy-broker", "member-killed", "poison", "demo-pop",
    }  # fmt: skip
    assert wanted <= set(TOLD)


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


def test_a_caption_begins_behind_its_event_and_lasts_until_the_next_one() -> None:
    lab = scenarios.get("demo").play(7)
    board = Storyboard(lab)
    (stored,) = [caption for caption in scenarios.get("demo").captions if caption.kind == "MessageStored"]
    second = [place for place, record in enumerate(lab.history) if record.kind == "MessageStored"][1]
    assert board.at(second) != stored
    assert board.at(second + 1) == stored == board.at(second + 2)
    assert board.at(0) is None, "and whoever goes back is told what he was told then"


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
