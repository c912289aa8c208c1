"""While a cell plays: what its views are drawn, what it costs the cell, and that they have all of it in the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlab import Lab
from mqlab.scenarios import get
from mqlab_widgets import watching
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.session import Session


@pytest.fixture
def lab() -> Lab:
    return get("steady-load").build(7, parameters={"messages": 20_000, "every_ms": 5})


class Drawn:
    """A view that notes behind how many events it was drawn, and how many there were."""

    def __init__(self, lab: Lab, *, watched: bool = True) -> None:
        self.places: list[tuple[int, int]] = []
        self.lab = lab
        self.session = Session(lab, changed=self._changed, on_story=lambda beats, began: None)
        self.session.watched = watched

    def _changed(self) -> None:
        assert len(self.session.cursor.stage().text()) > 1
        self.places.append((self.session.cursor.place(), len(self.lab.history)))

    async def until_all_is_drawn(self) -> None:
        while not self.places or self.places[-1][0] < len(self.lab.history):
            await asyncio.sleep(0)


def test_while_a_cell_plays_its_view_is_drawn_and_in_the_end_it_shows_the_present(lab: Lab) -> None:
    async def cell() -> Drawn:
        drawn = Drawn(lab)
        lab.run_for(seconds=40)
        during = len(drawn.places)
        assert during > 1
        await drawn.until_all_is_drawn()
        assert len(drawn.places) == during + 1
        return drawn

    drawn = asyncio.run(cell())
    places = [place for place, _ in drawn.places]
    assert places == sorted(places)
    assert drawn.session.cursor.at_end
    assert drawn.session.cursor.now_us == lab.world.now_us


def test_what_cannot_follow_shows_a_moment_ago_whole(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "FOLD_SECONDS", 0)
    monkeypatch.setattr(watching, "FRAME_SECONDS", 0)

    class Behind(Drawn):
        def _changed(self) -> None:
            super()._changed()
            cursor = self.session.cursor
            event = cursor.event()
            assert cursor.now_us == (event.ts_us if event is not None and not cursor.at_end else lab.world.now_us)
            assert not cursor.past
            straight = Fold(lab.history, [type(cursor.stage())(lab)])
            straight.go_to(cursor.place())
            assert straight.boards[0].text() == cursor.stage().text()

    async def cell() -> None:
        drawn = Behind(lab)
        lab.run_for(seconds=3)
        assert any(place < length - 300 for place, length in drawn.places)
        drawn.session.do({"do": "choose", "node": "broker-a"})
        assert drawn.places[-1] == (len(lab.history), len(lab.history))

    asyncio.run(cell())


def test_an_open_view_costs_a_cell_no_alarm_and_no_more_than_a_look_per_event(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, alarms = [], []
    monkeypatch.setattr(watching.Watch, "_look", lambda self: looks.append(1))
    monkeypatch.setattr(watching, "_call_later", lambda *_: alarms.append(1))
    Drawn(lab)
    before = len(lab.history)
    lab.run_for(seconds=10)
    assert len(looks) <= (len(lab.history) - before) / watching.EVENTS_PER_LOOK + 1
    assert alarms == []
    assert lab.world.hooks.sources is None


def test_for_a_view_that_no_page_shows_nothing_is_folded_or_drawn(lab: Lab) -> None:
    async def cell() -> None:
        drawn = Drawn(lab, watched=False)
        lab.run_for(seconds=5)
        assert drawn.places == []
        assert drawn.session.cursor.place() == len(lab.history)

    asyncio.run(cell())


def test_what_a_view_itself_does_is_drawn_once(lab: Lab) -> None:
    async def cell() -> None:
        drawn = Drawn(lab)
        for _ in range(5):
            drawn.session.do({"do": "step_slice"})
        await asyncio.sleep(2 * watching.FRAME_SECONDS)
        assert len(drawn.places) == 5

    asyncio.run(cell())


def test_in_a_very_large_world_a_click_copies_and_compares_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fold, "LARGE_BYTES", 0)
    beats: list[Any] = []
    session = Session(lab, changed=lambda: None, on_story=lambda told, began: beats.append(told))
    length = len(lab.history)
    session.do({"do": "step_event"})
    assert len(lab.history) > length
    assert session.cursor.changes() == []
    assert beats == []
    monkeypatch.setattr(Fold, "LARGE_BYTES", 500_000)
    session.do({"do": "step_event"})
    assert len(beats) == 1


def test_catching_up_is_done_in_pieces(lab: Lab) -> None:
    drawn = Drawn(lab)
    lab.run_for(seconds=20)
    session = drawn.session
    session.cursor.catch_up(0)
    lagging: list[Any] = [session.cursor.place()]
    while not session.cursor.catch_up(0):
        lagging.append(session.cursor.place())
    assert len(lagging) > 3
    assert lagging == sorted(set(lagging))
    session.cursor.catch_up(0)
    session.cursor.be_there()
    assert session.cursor.at_end
