"""Following: the story of a world that is served and passes by itself; how far it is behind, and what it leaves out."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise

import pytest

from mqlab.trace.events.broker import ConfigPersisted
from mqlab_widgets.controls import bar_html
from mqlab_widgets.telling import MOST_BEHIND_US
from tests.widgets.screen import Screen
from tests.worlds import played

STEP_MS = 100
BEHIND = re.compile(r'data-key="behind"[^>]*>(?P<words>[^<]*)<')


def behind(screen: Screen) -> str:
    """What the bar says of it."""
    found = BEHIND.search(bar_html(screen.session))
    assert found is not None
    return found["words"]


class Passing:
    """A world that passes as the screen's time does, as if it were served."""

    def __init__(self, scenario: str = "steady-load", **parameters: object) -> None:
        lab = played(scenario, 2, **parameters)
        lab.world.outside.served = True
        self.screen = Screen(lab)
        self.most_behind_us = 0
        self.words: list[str] = []
        self.left_out = 0

    async def passes(self, seconds: float, *, speed: float = 1) -> None:
        """So much time passes, for both; the world may have to hurry, as under a heavy load."""
        screen = self.screen
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            screen.lab.run_for(ms=STEP_MS * speed)
            now = screen.time.now
            if screen.session.playing:
                while screen.time.now == now:
                    await asyncio.sleep(0)
            else:
                screen.time.now += STEP_MS / 1_000
            self.most_behind_us = max(self.most_behind_us, screen.session.cursor.behind_us)
            self.words.append(behind(screen))
            self.left_out = max(self.left_out, screen.session.player.left_out)

    def followed(self, seconds: float, *, speed: float = 1) -> Screen:
        """Press play, and let so much time pass."""

        async def cell() -> None:
            self.screen.do("play")
            await self.passes(seconds, speed=speed)

        asyncio.run(cell())
        return self.screen


def test_nothing_is_played_and_what_happens_is_told_beat_by_beat() -> None:
    passing = Passing()
    before = passing.screen.lab.now_ms
    screen = passing.followed(6)
    assert screen.lab.now_ms == pytest.approx(before + 6_000)
    places = [beat["place"] for beat in screen.beats]
    assert len(places) > 15
    assert places == sorted(places)
    assert places[0] <= screen.cursor == places[-1]
    flights = [act for beat in screen.beats for act in beat["acts"] if act["act"] == "fly"]
    assert len(flights) >= 4
    assert {act["ms"] for act in flights} == {500}
    assert any(beat.get("say") for beat in screen.beats)


def test_a_quiet_world_is_told_at_once_and_the_bar_says_live() -> None:
    passing = Passing("served")
    screen = passing.screen
    before = screen.lab.now_ms

    async def cell() -> None:
        screen.do("play")
        await passing.passes(12)
        await screen.watch(5)
        assert screen.lab.now_ms == pytest.approx(before + 12_000)
        # Also that of which nothing is seen is told, and is not waited for.
        screen.lab.world.hooks.emit(ConfigPersisted("store/config/topics.json", 100))
        await screen.watch(1)
        assert screen.cursor == len(screen.lab.history)
        screen.do("play")
        await passing.passes(31)
        assert screen.session.cursor.past

    asyncio.run(cell())
    assert passing.left_out == 0
    assert passing.words[:120].count("live") > 100
    assert passing.words[-1].endswith("s behind")


def test_a_little_behind_only_what_is_routine_is_left_out() -> None:
    passing = Passing()
    screen = passing.followed(8)
    assert 0 < passing.left_out < 50
    assert screen.cursor < len(screen.lab.history) / 2


def test_what_is_more_than_can_be_told_is_left_out_and_the_story_is_never_far_behind() -> None:
    passing = Passing()
    screen = passing.followed(20, speed=4)
    assert passing.most_behind_us <= MOST_BEHIND_US + 4 * STEP_MS * 1_000
    assert passing.left_out > 100
    assert any(re.fullmatch(r"\d+\.\d s behind, [\d,]+ events left out", words) for words in passing.words)
    places = [beat["place"] for beat in screen.beats]
    assert all(earlier <= later for earlier, later in pairwise(places))


def test_a_pause_lets_the_picture_stand_still_and_now_is_one_click() -> None:
    passing = Passing()
    screen = passing.screen

    async def cell() -> None:
        screen.do("play")
        await passing.passes(3)
        screen.do("play")
        place = screen.cursor
        await passing.passes(3)
        assert screen.cursor == place
        assert screen.session.cursor.past
        assert float(behind(screen).split()[0]) >= 3
        screen.do("now")
        await passing.passes(1)
        # A view of a world that somebody plays without a pause may show a moment ago.
        screen.session.cursor.be_there()
        assert screen.session.cursor.at_end
        assert behind(screen) == "live"

    asyncio.run(cell())


def test_the_record_of_a_served_world_is_told_from_where_one_has_gone_back_to() -> None:
    passing = Passing()
    screen = passing.screen
    screen.do("goto", place=300)
    passing.followed(5)
    assert 300 < screen.beats[0]["place"] < 330
    assert passing.left_out == 0


def test_when_it_is_served_no_more_the_rest_is_told_and_that_it_has_ended() -> None:
    passing = Passing("served")
    screen = passing.screen

    async def cell() -> None:
        screen.do("play")
        await passing.passes(2)
        screen.lab.world.outside.served = False
        await screen.watch(30)

    asyncio.run(cell())
    assert not screen.session.playing
    assert "no longer served" in screen.session.said


@pytest.mark.parametrize("pace", [0.1, 0.5, 1, 10])
def test_at_a_pace_of_its_own_it_is_not_ahead_of_the_world(pace: float) -> None:
    passing = Passing()
    screen = passing.screen
    screen.do("pace", value=pace)
    passing.followed(6)
    assert screen.beats
    assert max(beat["us"] for beat in screen.beats) <= screen.lab.world.now_us


def test_a_paused_world_is_played_as_any_other() -> None:
    passing = Passing()
    screen = passing.screen
    screen.lab.world.outside.paused = True
    before = screen.lab.now_ms
    screen.played(3)
    assert screen.lab.now_ms > before
