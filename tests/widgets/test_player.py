"""The player: playing the record and the world, pausing, paces, what stops it, and several views of one world."""

from __future__ import annotations

import asyncio
import gc
import weakref
from itertools import pairwise
from typing import Any

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab_widgets.player import AHEAD_MS, player_of
from mqlab_widgets.session import Session
from tests.widgets.screen import Screen, Time
from tests.worlds import played


def world(name: str = "steady-load", seconds: float = 2) -> Lab:
    return played(name, seconds)


@pytest.fixture
def screen() -> Screen:
    """A viewer of two seconds of steady load."""
    return Screen(world())


# -- the record and the world -----------------------------------------------------------------------------------------


def test_playing_goes_on_in_the_world_and_a_pause_leaves_the_cursor_at_its_present(screen: Screen) -> None:
    before = len(screen.lab.history)
    screen.played(10)
    assert len(screen.lab.history) > before + 30
    assert screen.session.cursor.at_end
    assert screen.beats[-1]["place"] == screen.cursor
    assert screen.session.said == ""


def test_what_is_played_for_the_eye_is_what_would_have_happened() -> None:
    screen, plain = Screen(world()), world()
    screen.played(10)
    plain.run_for(ms=screen.lab.now_ms - plain.now_ms)
    assert plain.trace_hash() == screen.lab.trace_hash()


def test_play_in_the_past_shows_the_record_and_plays_no_world(screen: Screen) -> None:
    slices = screen.lab.world.slice_no
    screen.do("goto", place=300)
    screen.played(5)
    assert 310 < screen.cursor < len(screen.lab.history)
    assert screen.lab.world.slice_no == slices
    assert screen.session.cursor.past
    assert screen.beats[0]["place"] > 300


def test_the_record_goes_over_into_the_world(screen: Screen) -> None:
    length = len(screen.lab.history)
    screen.do("goto", place=length - 20)
    screen.played(12)
    places = [beat["place"] for beat in screen.beats]
    assert places == sorted(places)
    assert places[0] < length < places[-1]
    assert screen.session.cursor.at_end


def test_the_kernel_is_hardly_ahead_of_the_screen(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        while screen.time.now < 10:
            await asyncio.sleep(0)
            if screen.beats:
                assert screen.beats[-1]["at"] <= screen.time.now * 1_000 + AHEAD_MS
        screen.do("play")

    asyncio.run(cell())
    assert screen.beats[-1]["at"] > 9_000


def test_beats_come_in_order_and_say_which_play_they_belong_to() -> None:
    screen = Screen(world()).played(5).played(5)
    assert {began for began, _ in screen.batches} == {1, 2}
    for play in (1, 2):
        beats = [beat for began, beats in screen.batches if began == play for beat in beats]
        for earlier, later in pairwise(beats):
            assert earlier["at"] <= later["at"]
            assert earlier["at"] + earlier["after"] <= later["at"] + later["after"]
            assert earlier["place"] <= later["place"]
            assert earlier["us"] <= later["us"]


def test_a_world_with_housekeeping_only_passes_tick_by_tick() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    screen = Screen(lab)
    began_ms = lab.now_ms
    screen.played(5)
    ticks = [beat for beat in screen.beats if "gap" in beat]
    assert len(ticks) > 5
    assert {beat["gap"] for beat in ticks} == {"+ 60.0 s"}
    assert lab.now_ms - began_ms <= (len(ticks) + 1) * 60_000


def test_where_nothing_is_left_to_happen_playing_says_so_and_stops() -> None:
    lab = Lab(seed=1)
    screen = Screen(lab).played(5)
    assert "Nothing is left to happen" in screen.session.said
    assert screen.time.now < 1
    assert not screen.session.playing


# -- stopping ---------------------------------------------------------------------------------------------------------


def test_a_breakpoint_stops_the_world_and_says_so() -> None:
    screen = Screen(world("two-brokers", 19.7))
    screen.lab.add_breakpoint("NodeCrashed")
    screen.played(120)
    assert "Stopped at a breakpoint" in screen.session.said
    assert screen.session.cursor.event().kind == "NodeCrashed"
    assert screen.time.now < 119


def test_a_breakpoint_stops_the_record_right_there(screen: Screen) -> None:
    stored = screen.lab.history.find("MessageStored", start=300)
    screen.lab.add_breakpoint("MessageStored")
    screen.do("goto", place=300)
    for _ in range(2):
        screen.played(60)
        assert "Stopped at a breakpoint" in screen.session.said
        assert screen.session.cursor.event() == next(stored)


def test_a_dead_task_stops_it_with_a_sentence_and_play_goes_on_without_it() -> None:
    lab = world()

    async def failing() -> None:
        await lab.world.nodes["producer-1"].sleep(50)
        raise ValueError("no more orders")

    lab.world.nodes["producer-1"].spawn(failing(), "orders")
    screen = Screen(lab).played(20)
    assert screen.session.said == (
        "Task 'orders' on producer-1 has ended with an error: ValueError: no more orders. Play goes on without it."
    )
    assert screen.session.cursor.at_end
    length = len(lab.history)
    screen.played(5)
    assert len(lab.history) > length


def test_a_broken_world_is_told(screen: Screen) -> None:
    screen.lab.world.broken = "somebody broke it"
    screen.played(5)
    assert "this world is broken: somebody broke it" in screen.session.said


def test_a_command_that_says_where_to_go_ends_playing(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        await screen.watch(1)
        screen.do("goto", place=30)

    asyncio.run(cell())
    assert not screen.session.playing
    assert screen.cursor == 30


def test_without_a_loop_there_is_a_sentence(screen: Screen) -> None:
    assert "no loop" in screen.do("play")
    assert not screen.session.playing


# -- what others do meanwhile -----------------------------------------------------------------------------------------


def test_a_fault_while_playing_is_part_of_the_story(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        await screen.watch(2)
        assert screen.do("crash", node="broker-a") == ""
        assert screen.session.playing
        await screen.watch(3)
        screen.do("play")

    asyncio.run(cell())
    assert any("broker-a was killed" in beat.get("say", "") for beat in screen.beats)
    places = [beat["place"] for beat in screen.beats]
    assert places == sorted(places)


def test_when_a_cell_has_played_on_the_story_goes_on_from_there(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        await screen.watch(2)
        screen.lab.run_for(seconds=10)
        length = len(screen.lab.history)
        told = len(screen.beats)
        await screen.watch(3)
        assert all(beat["place"] >= length for beat in screen.beats[told:])
        assert len(screen.beats) > told
        screen.do("play")

    asyncio.run(cell())
    assert screen.session.cursor.at_end


def test_after_the_kernel_was_busy_the_story_goes_on_at_its_pace(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        await screen.watch(2)
        before = screen.beats[-1]["at"]
        screen.time.now += 7
        await screen.watch(3)
        later = [beat["at"] for beat in screen.beats if beat["at"] > before]
        assert later[0] >= 9_000
        assert len(later) < 20
        screen.do("play")

    asyncio.run(cell())


# -- paces ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [0.01, 0.1, 1, 10])
def test_at_a_pace_the_world_passes_so_fast(screen: Screen, pace: float) -> None:
    began_ms = screen.lab.now_ms
    assert screen.do("pace", value=str(pace)) == ""
    screen.played(10)
    passed_s = (screen.lab.now_ms - began_ms) / 1_000
    assert pace * 10 <= passed_s <= pace * (10 + 2 * AHEAD_MS / 1_000)
    assert screen.beats[-1]["us"] / 1_000 == pytest.approx(screen.lab.now_ms, abs=1)


def test_slow_motion_has_flights_and_speed_has_streams() -> None:
    slow, fast = Screen(world(seconds=2.0294)), Screen(world())
    slow.do("pace", value=0.001)
    slow.played(3)
    flights = [act for beat in slow.beats for act in beat["acts"] if act["act"] == "fly"]
    assert {act["ms"] for act in flights} == {200}
    fast.do("pace", value=10)
    fast.played(1.2)
    acts = [act for beat in fast.beats for act in beat["acts"]]
    assert {act["act"] for act in acts} == {"flow"}
    assert {act["n"] for act in acts if act["id"] == "producer-1>10.0.0.2:10911"} == {10}
    ats = [beat["at"] for beat in fast.beats]
    assert ats == list(range(100, ats[-1] + 1, 100))


def test_the_pace_can_be_changed_while_it_plays(screen: Screen) -> None:
    async def cell() -> None:
        screen.do("play")
        await screen.watch(2)
        screen.do("pace", value=10)
        await screen.watch(2)
        screen.do("pace", value="story")
        await screen.watch(2)
        screen.do("play")

    asyncio.run(cell())
    acts = {act["act"] for beat in screen.beats for act in beat["acts"]}
    assert {"fly", "land", "flow"} <= acts
    ats = [beat["at"] for beat in screen.beats]
    assert ats == sorted(ats)


@pytest.mark.parametrize("pace", ["0", "-1", "inf", "nan", "quick", None])
def test_what_is_no_pace_is_refused(screen: Screen, pace: Any) -> None:
    assert screen.do("pace", value=pace) != ""
    assert screen.session.player.pace == "story"


# -- several views ----------------------------------------------------------------------------------------------------


def test_two_views_of_one_world_play_together() -> None:
    lab, time = world(), Time()
    one, two = Screen(lab, time), Screen(lab, time)

    async def cell() -> None:
        one.do("play")
        assert two.session.playing
        await one.watch(5)
        two.do("play")

    asyncio.run(cell())
    assert not one.session.playing
    assert one.beats
    assert [beat["at"] for beat in one.beats] == [beat["at"] for beat in two.beats]
    alone = Screen(world()).played(5)
    assert alone.lab.now_ms == lab.now_ms
    two.do("pace", value=0.5)
    assert one.session.player.pace == 0.5


def test_a_view_that_no_page_shows_is_drawn_nothing_and_told_all_when_it_is_shown(screen: Screen) -> None:
    screen.session.watched = False
    screen.played(5)
    assert screen.beats == []

    async def cell() -> None:
        screen.do("play")
        await screen.watch(2)
        screen.session.watched = True
        scene = screen.session.scene()
        screen.session.story.shown(scene)
        shown = dict(scene.parts)
        await screen.watch(3)
        screen.do("play")
        for beat in screen.beats:
            shown.update(beat["parts"])
        assert {key: svg for key, svg in shown.items() if svg} == screen.session.scene().parts

    asyncio.run(cell())


def test_closed_views_are_freed_and_when_all_are_gone_the_world_stands_still() -> None:
    lab, time = world(), Time()
    one, two = Screen(lab, time), Screen(lab, time)
    seen = [weakref.ref(one.session), weakref.ref(two.session), weakref.ref(one.session.story)]

    async def cell() -> None:
        nonlocal one, two
        one.do("play")
        await one.watch(1)
        one.session.close()
        assert two.session.playing
        await two.watch(1)
        two.session.close()
        assert not player_of(lab).playing
        del one, two
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        assert [view() for view in seen] == [None] * 3

    asyncio.run(cell())
    length = len(lab.history)
    lab.run_for(seconds=1)
    assert len(lab.history) > length


def test_a_forgotten_view_ends_with_the_next_look_and_a_lab_with_its_player_is_freed() -> None:
    async def cell() -> weakref.ref[Any]:
        screen = Screen(world())
        screen.do("play")
        await screen.watch(1)
        time, player = screen.time, screen.session.player
        del screen
        gc.collect()
        while player.playing:
            await time.sleep(0.1)
            assert time.now < 10
        return weakref.ref(player)

    gone = asyncio.run(cell())
    gc.collect()
    assert gone() is None


def test_a_player_needs_a_view_to_begin() -> None:
    player = player_of(world())
    player.play()
    assert not player.playing
    with pytest.raises(LearnerError, match="is no pace"):
        player.pace = 0


def test_showing_another_world_leaves_the_first_one_standing() -> None:
    lab = world("two-brokers", 4)
    screen = Screen(lab)

    async def cell() -> None:
        screen.do("play")
        await screen.watch(1)
        screen.do("take_back")
        assert not player_of(lab).playing
        assert screen.session.player is player_of(screen.session.lab) is not player_of(lab)

    asyncio.run(cell())
    assert isinstance(screen.session, Session)
