"""The story: what a page is told, so that it can show each step of a message without asking."""

from __future__ import annotations

import re
from html import unescape

import pytest

from mqlab_widgets import panels
from mqlab_widgets.scene.scene import scene_of
from mqlab_widgets.story import gap_text
from mqlab_widgets.story_clock import LONGEST_FLIGHT_MS, SHORT_FLIGHT_MS
from tests.widgets.screen import Screen
from tests.worlds import played


def test_the_parts_of_all_beats_make_the_picture_of_the_end() -> None:
    screen = Screen(played("steady-load", 2))
    shown = dict(screen.session.scene().parts)
    screen.played(20)
    for beat in screen.beats:
        shown.update(beat["parts"])
    assert {key: svg for key, svg in shown.items() if svg} == screen.session.scene().parts
    fresh = scene_of(screen.session.cursor.stage(), screen.session.look())
    assert fresh.parts == screen.session.scene().parts
    assert {name: card.spots for name, card in fresh.cards.items()} == {
        name: card.spots for name, card in screen.session.scene().cards.items()
    }


def test_only_what_has_changed_is_sent() -> None:
    screen = Screen(played("steady-load", 2)).played(10)
    shown: dict[str, str] = {}
    for beat in screen.beats:
        assert all(shown.get(key) != svg for key, svg in beat["parts"].items())
        shown.update(beat["parts"])
    assert "paper" not in shown


@pytest.mark.parametrize(("name", "seconds"), [("steady-load", 2), ("lite-pull", 3), ("demo-two-brokers", 20)])
def test_every_message_is_seen_on_each_wire_that_it_takes(name: str, seconds: float) -> None:
    screen = Screen(played(name, seconds))
    first = len(screen.lab.history)
    screen.played(20)
    frames = [
        f"{record.connection}:{record.local}:{record.frame}"
        for record in screen.lab.history.records(first, screen.cursor)
        if record.kind in ("RequestSent", "ResponseSent")
    ]
    acts = [(act["act"], act["id"], beat["at"]) for beat in screen.beats for act in beat["acts"]]
    left = {name: at for act, name, at in acts if act == "fly"}
    landed = {name: at for act, name, at in acts if act == "land" and name in left}
    assert list(left) == frames
    assert len(landed) > 12
    assert all(SHORT_FLIGHT_MS <= landed[name] - left[name] <= LONGEST_FLIGHT_MS for name in landed)


def test_a_message_is_told_station_by_station() -> None:
    screen = Screen(played("steady-load", 2)).played(6)
    said = [beat["say"] for beat in screen.beats if "say" in beat]
    stations = ("sends message", "has reached", "stored", "is in queue", "got 1 message", "listener got", "is done")
    found = [next(n for n, words in enumerate(said) if station in words) for station in stations]
    assert found == sorted(found)
    gaps = [beat["gap"] for beat in screen.beats if "gap" in beat]
    assert gaps == ["+ 30 ms", "+ 99 ms"]


@pytest.mark.parametrize("scenario", ["demo", "demo-retry", "demo-pop", "two-brokers", "three-ways", "broker-hangs"])
def test_the_line_at_a_place_is_the_same_when_it_is_played_and_when_it_is_gone_back_to(scenario: str) -> None:
    screen = Screen(played(scenario, 2)).played(25)
    line, lines = "", {}
    for beat in screen.beats:
        line = beat.get("say", line)
        lines[beat["place"]] = line
    assert len(set(lines.values())) > 9
    before = screen.beats[0]["place"]
    for place in reversed(lines):
        screen.do("goto", place=place)
        assert unescape(panels.said(screen.session)) == lines[place], place
    for place in range(before, min(before + 200, len(screen.lab.history)) + 1):
        screen.do("goto", place=place)
        words = unescape(panels.said(screen.session))
        assert words
        kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", screen.lab.history.record(place - 1).kind).lower()
        assert kind not in words
        assert not re.search(r"[a-z]_[a-z]|[A-Z]{3}_", words), words


def test_times_are_told_in_few_letters() -> None:
    assert [gap_text(us) for us in (1_500, 98_400, 15_020_000)] == ["+ 1.5 ms", "+ 98 ms", "+ 15.0 s"]
