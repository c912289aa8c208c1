"""Push and Pop beside each other: what the picture says is what happened, in each act, at each width."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.scenarios.take_or_own import OWNERS, TAKERS, Act, three_acts
from mqlab.views import Delays
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.own_and_take import OwnAndTakeBoard
from mqlab_widgets.scene.scene import Look, Scene
from mqlab_widgets.scene.side_by_side import scene_of
from mqlab_widgets.side_by_side import SideBySide
from tests.widgets.folds import folded

HANGS, NINE, JOINS = range(3)


@cache
def acts() -> list[Act]:
    """The three worlds, which no test plays on."""
    return three_acts(7)


def board_of(lab: Lab, place: int | None = None) -> OwnAndTakeBoard:
    return folded(OwnAndTakeBoard, lab, place)


def picture(lab: Lab, **look: Any) -> Scene:
    return scene_of(board_of(lab), Look(now_us=lab.world.now_us, **look))


# -- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [HANGS, NINE, JOINS])
def test_the_orders_that_wait_are_those_that_no_listener_got(number: int) -> None:
    lab = acts()[number].lab
    board, delays = board_of(lab), Delays.of(lab.history, "Orders", OWNERS, TAKERS)
    for group, side in board.sides.items():
        assert len(side.waiting) == delays.still_waiting(group)
        begun = {name: member.packed + len(member.packs) for name, member in side.members.items()}
        assert {name: count for name, count in begun.items() if count} == delays.by_member(group)
        assert sum(side.bars.values()) == side.packed


def test_who_hangs_keeps_its_queues_and_a_taker_keeps_only_what_it_has() -> None:
    board = board_of(acts()[HANGS].lab)
    owners, takers = board.sides[OWNERS], board.sides[TAKERS]
    kept = board.owned_by("push-1")
    assert {order.queue_id for order in owners.waiting.values()} == set(kept)
    assert len(owners.waiting) > 10 * len(takers.waiting)
    assert "push-1 hangs and keeps " + ", ".join(f"q{queue}" for queue in kept) in board.why(OWNERS)
    member = takers.members["pop-1"]
    assert set(member.given) == set(takers.waiting)
    for order in (*member.packs.values(), *(takers.waiting[key] for key in member.given)):
        since_us, until_us = board.hidden(order)
        assert until_us - since_us == 10_000_000
        assert since_us < 31_000_000


def test_what_the_hanging_taker_had_goes_back_and_to_somebody_else() -> None:
    lab = three_acts(3)[HANGS].lab
    had = board_of(lab).sides[TAKERS].members["pop-1"]
    keys = {*had.packs, *had.given}
    assert keys
    lab.run_for(seconds=20)
    board = board_of(lab)
    assert {event.unique_key for event in lab.history.find("MessageRevived")} == keys
    assert board.sides[TAKERS].members["pop-1"].given == {}
    assert not keys & {*board.sides[TAKERS].waiting}
    assert len(board.sides[OWNERS].waiting) > 60


def test_one_of_nine_owners_is_idle_and_no_taker_is() -> None:
    board = board_of(acts()[NINE].lab)
    idle = [name for name in board.sides[OWNERS].members if not board.owned_by(name)]
    assert len(idle) == 1
    assert board.sides[OWNERS].members[idle[0]].packed == 0
    assert board.why(OWNERS) == f"{idle[0]} owns no queue and has nothing to do."
    assert all(member.packed > 5 for member in board.sides[TAKERS].members.values())


def test_queues_that_move_belong_to_nobody_for_a_while() -> None:
    lab = acts()[JOINS].lab
    board = board_of(lab)
    free = [queue for queue in board.queue_ids if not board.owner_of(queue)]
    assert free
    late = [order for order in board.sides[OWNERS].waiting.values() if order.queue_id in free]
    assert len(late) >= 5
    assert "belong to nobody now" in board.why(OWNERS)
    assert board.longest_us(OWNERS, lab.world.now_us) > 500_000 > board.longest_us(TAKERS, lab.world.now_us)
    assert {mark.words for side in board.sides.values() for mark in side.marks} == {"push-3 joins", "pop-3 joins"}


def test_orders_in_the_hands_of_a_member_that_is_killed_wait_again() -> None:
    lab = three_acts(1)[NINE].lab
    board = board_of(lab)
    name, packs = next((name, one.packs) for name, one in board.sides[OWNERS].members.items() if one.packs)
    lab.crash(name)
    after = board_of(lab)
    assert after.sides[OWNERS].members[name].packs == {}
    assert all(after.sides[OWNERS].waiting[key].again for key in packs)


def test_a_fold_says_the_same_whichever_way_it_came() -> None:
    lab = acts()[JOINS].lab
    there, length = Fold(lab.history, [OwnAndTakeBoard(lab)]), len(lab.history)
    for place in (length, 1, length // 2, 0, length - 7):
        there.go_to(place)
        (mine,) = there.boards
        assert isinstance(mine, OwnAndTakeBoard)
        assert mine.text() == board_of(lab, place).text()
        assert scene_of(mine, Look()).parts == scene_of(board_of(lab, place), Look()).parts


# -- the picture ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [HANGS, NINE, JOINS])
@pytest.mark.parametrize("look", [{"width": 800}, {"width": 1200}, {"width": 500},
                                  {"width": 1248, "height": 560, "big": True}])  # fmt: skip
def test_each_half_stays_in_its_place_and_shows_its_orders(number: int, look: dict[str, Any]) -> None:
    lab = acts()[number].lab
    scene, board = picture(lab, **look), board_of(lab)
    ET.fromstring(scene.svg())
    beside = look["width"] > 620
    across = scene.width / 2 if beside else scene.width
    for place, (group, side) in enumerate(board.sides.items()):
        part = ET.fromstring(scene.parts[f"{group}:orders"])
        x, y = map(float, re.findall(r"-?[\d.]+", part.get("transform", "")))
        assert (x > across, y > 100) == ((place == 1, False) if beside else (False, place == 1))
        for token in part:
            if "transform" not in token.attrib:
                continue
            left, top = map(float, re.findall(r"-?[\d.]+", token.get("transform", "")))
            assert 0 <= left <= across
            assert 0 <= top <= scene.height / (1 if beside else 2)
        shown = {token.get("data-key", "").partition(":")[2] for token in part}
        assert shown - {""} <= {*side.waiting, *(key for member in side.members.values() for key in member.packs)}
        if beside and look["width"] >= 1200 and "big" not in look:
            assert len(shown - {""}) >= len(side.waiting) - 5


def test_both_halves_have_one_measure_for_what_was_packed() -> None:
    scene = picture(acts()[HANGS].lab)
    most = {re.search(r"at the most (\d+)", scene.parts[f"{group}:packed"]) for group in (OWNERS, TAKERS)}
    assert len({found[1] for found in most if found}) == 1
    assert "push-1 hangs" in scene.parts["owners:packed"]
    assert "pop-1 hangs" in scene.parts["takers:packed"]


# -- the widget -----------------------------------------------------------------------------------------------------


def test_a_press_on_an_act_shows_its_world_from_the_beginning_and_plays_it() -> None:
    mine = three_acts(5)
    view = SideBySide(mine)
    assert view.session.lab is mine[HANGS].lab
    assert "A member hangs" in view.frame["acts"]

    async def page() -> None:
        view._handle_custom_msg({"do": "shown", "width": 800}, [])
        view._handle_custom_msg({"do": "act", "number": "2"}, [])
        assert view.session.playing
        view.session.player.pause()

    asyncio.run(page())
    act, session = mine[JOINS], view.session
    assert session.lab is act.lab
    assert session.player.pace == act.pace
    assert abs(session.cursor.now_us - 1_000 * act.begins_ms) < 400_000
    assert act.lab.history.cursor < len(act.lab.history)
    assert 'data-number="2" aria-pressed="true"' in view.frame["acts"]
    assert "push-3 and pop-3 join" in view.frame["acts"]
    view.close()


def test_a_page_without_a_kernel_keeps_all_three_pictures_and_their_text() -> None:
    data, _ = SideBySide(acts())._repr_mimebundle_()
    assert data["text/html"].count("<svg") == 3
    for act in acts():
        assert act.look_at in data["text/html"]
        assert act.title in data["text/plain"]
    assert "owns no queue and has nothing to do" in data["text/plain"]


def test_what_is_no_list_of_acts_is_told() -> None:
    with pytest.raises(LearnerError, match="write SideBySide"):
        SideBySide([acts()[0].lab])  # type: ignore[list-item]
