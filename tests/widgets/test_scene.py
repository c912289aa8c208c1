"""The scene: what is drawn of a world, the same in parts and as a whole, and what moves between two pictures."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.scenarios import get
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.scene.acts import Moves, acts_of
from mqlab_widgets.scene.scene import Look, Scene, scene_of
from mqlab_widgets.session import Session
from mqlab_widgets.story_clock import FLIGHT_MS
from mqlab_widgets.verbs import condition_then
from tests.widgets.folds import folded
from tests.worlds import played

WORLDS = (
    ("steady-load", 6),
    ("two-brokers", 21),
    ("retry-and-dead-letters", 15),
    ("held-back-by-count", 5),
    ("rebalance", 12),
    ("lite-pull", 6),
    ("batches", 3),
    ("power-cut", 3),
)
WIDTHS = (480, 760, 800, 1000, 1280, 1920)


kept = cache(played)
"""A scenario's world after some seconds; no test changes it."""


def board_of(lab: Lab, place: int | None = None) -> StageBoard:
    """The stage of a world behind so many events."""
    return folded(StageBoard, lab, place)


def story(lab: Lab, most: int = 10_000) -> list[tuple[str, Moves]]:
    """Kind and moves of each of the first events of a world, drawn anew now and then as a viewer does."""
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    moves = []
    scene = scene_of(board, Look())
    for place in range(1, min(len(lab.history), most) + 1):
        if place % 5 == 0:
            scene = scene_of(board, Look())
        fold.go_to(place)
        record = lab.history.record(place - 1)
        moves.append((record.kind, acts_of(record, board, scene)))
    return moves


@pytest.mark.parametrize(("name", "seconds"), WORLDS)
@pytest.mark.parametrize("width", WIDTHS)
def test_each_picture_is_well_formed_and_its_cards_lie_apart_and_inside(
    name: str, seconds: float, width: float
) -> None:
    scene = scene_of(board_of(kept(name, seconds)), Look(width))
    ET.fromstring(scene.svg())
    cards = list({id(card): card for card in scene.cards.values()}.values())
    for card in cards:
        assert card.x >= 0
        assert card.x + card.width <= scene.width + 0.1
        assert card.y + card.height <= scene.height
    for left in cards:
        for right in cards:
            apart_x = left.x + left.width <= right.x or right.x + right.width <= left.x
            apart_y = left.y + left.height <= right.y or right.y + right.height <= left.y
            assert left is right or apart_x or apart_y, (left.name, right.name)


def test_the_height_is_the_same_whatever_happens() -> None:
    lab = get("two-brokers").build(7)
    heights = set()
    for _ in range(6):
        lab.run_for(seconds=4)
        heights.add(scene_of(board_of(lab), Look(1000)).height)
    assert len(heights) == 1


def test_every_part_is_one_element_with_its_name() -> None:
    scene = scene_of(board_of(kept("two-brokers", 21)), Look())
    for name, svg in scene.parts.items():
        element = ET.fromstring(svg)
        assert element.get("data-key") == name
    whole = ET.fromstring(scene.svg())
    names = [element.get("data-key") for element in whole.iter() if element.get("data-key") in scene.parts]
    assert sorted(names) == sorted(scene.parts)
    assert not whole.findall(".//*[@data-slot]")


def test_a_message_has_one_colour_and_one_number_wherever_it_is() -> None:
    lab = played("steady-load", 4)
    lab.run_until_event("MessageDispatched")
    board = board_of(lab)
    key = lab.history.records(0, len(lab.history))[-1]
    newest = next(
        record for record in reversed(lab.history.records(0, len(lab.history))) if record.kind == "MessageStored"
    )
    label = board.label(newest.unique_key)
    assert label == str(int(newest.unique_key[-4:], 16))
    svg = scene_of(board, Look()).svg()
    colours = re.findall(rf'class="mq-token (t\d)[^>]*data-message="{newest.unique_key}"', svg)
    assert len(colours) >= 2, "in the log and in its queue"
    assert len(set(colours)) == 1
    assert key.kind in ("MessageDispatched", "PullWoken")


def test_a_trail_lights_the_machines_and_wires_of_a_message_and_dims_the_rest() -> None:
    lab = kept("two-brokers", 21)
    stored = lab.history.last("MessageStored", node="broker-a")
    assert stored is not None
    board = board_of(lab)
    parts = scene_of(board, Look(followed=stored.unique_key)).parts
    assert "aside" not in parts["card:broker-a"].split(">")[0]
    assert "aside" not in parts["card:consumer-1"].split(">")[0]
    assert "aside" in parts["card:broker-b"].split(">")[0]
    lit = {name for name, svg in parts.items() if name.startswith("wire:") and "way" in svg}
    assert {frozenset(name[5:].split(">")) for name in lit} == {
        frozenset(("producer-1", "broker-a")),
        frozenset(("consumer-1", "broker-a")),
    }
    assert not any("aside" in svg.split(">")[0] for svg in scene_of(board, Look()).parts.values())


def test_a_message_moves_on_every_part_of_its_way_in_order() -> None:
    lab = kept("steady-load", 2)
    told = story(lab)
    stored = [record for record in lab.history.records(0, len(lab.history)) if record.kind == "MessageStored"]
    assert len(stored) > 10
    ways = [(kind, act.act) for kind, moves in told for act in moves.acts if act.act in ("move", "fly")]
    for step in (("RequestSent", "fly"), ("ResponseSent", "fly")):
        assert ways.count(step) >= 2 * len(stored) - 2
    for kind in ("MessageStored", "MessageDispatched", "ConsumeStarted"):
        assert abs(ways.count((kind, "move")) - len(stored)) <= 1


@pytest.mark.parametrize(("name", "seconds"), WORLDS)
def test_what_flies_lands_or_dies_once(name: str, seconds: float) -> None:
    flying: set[str] = set()
    for kind, moves in story(kept(name, seconds), most=1_200):
        for act in moves.acts:
            if act.act == "fly":
                assert act.id not in flying
                assert act.ms == FLIGHT_MS
                flying.add(act.id)
            elif act.act in ("land", "lost"):
                assert act.id in flying, (kind, act)
                flying.remove(act.id)
            assert len(act.path) % 2 == 0
            assert act.path or act.act == "lost"


def test_a_power_cut_takes_what_was_not_flushed_and_the_recovery_says_what_is_left() -> None:
    lab = played("steady-load", 4)
    before = board_of(lab).logs["broker-a"]
    assert before.end > before.flushed > 0
    lab.power_off("broker-a")
    board = board_of(lab)
    cut = board.logs["broker-a"]
    assert cut.dark is any(record.pages_lost for record in lab.history.find("PowerLost"))
    if cut.dark:
        assert all(block.offset + block.size <= cut.flushed for block in cut.shown())
    lab.restart("broker-a")
    lab.run_for(seconds=2)
    recovered = next(lab.history.find("StoreRecovered", node="broker-a", cut_bytes=lambda cut: True), None)
    log = board_of(lab).logs["broker-a"]
    assert recovered is None or log.dark is False


def test_done_but_not_noted_is_hatched() -> None:
    lab = played("held-back-by-count", 5)
    board = board_of(lab)
    strip = next(strip for strip in board.strips.values() if strip.unnoted())
    assert strip.waiting() + strip.unnoted() <= strip.end
    assert "not noted" in scene_of(board, Look(1280)).svg()


def test_narrow_pages_and_projectors_have_their_own_plan() -> None:
    board = board_of(played("steady-load", 4))
    wide, narrow, big = (scene_of(board, look) for look in (Look(1000), Look(600), Look(1280, big=True)))
    assert wide.cards["producer-1"].x + wide.cards["producer-1"].width < wide.cards["broker-a"].x
    assert narrow.cards["producer-1"].y + narrow.cards["producer-1"].height < narrow.cards["broker-a"].y
    assert big.cards["producer-1"].x + big.cards["producer-1"].width < big.cards["broker-a"].x
    assert 'width="1280"' in big.svg()
    assert isinstance(big, Scene)
    assert 13 * 1280 / big.width >= 24, "text of 24 px"


@pytest.mark.parametrize("look", [Look(400, big=True), Look(669, height=273, big=True), Look(320, height=200)])
def test_in_the_smallest_windows_too_no_side_is_negative(look: Look) -> None:
    svg = scene_of(board_of(kept("two-brokers", 21)), look).svg()
    assert not re.findall(r'(?:width|height|r)="-[^"]*"', svg)


def test_in_projector_mode_the_machine_is_lit_to_which_the_caption_points() -> None:
    session = Session(played("demo", 4), changed=lambda: None)
    assert "halo" not in session.scene().svg().split("</style>")[1]
    session.page.seen(big=True)
    pointed = []
    for _ in range(40):
        caption = session.caption()
        lit = [name for name, svg in session.scene().parts.items() if 'class="halo"' in svg]
        assert lit == ([f"card:{caption.points_to}"] if caption is not None else [])
        pointed += lit
        session.do({"do": "goto", "place": session.cursor.place() - 10})
    assert set(pointed) >= {"card:broker-a", "card:consumer-1"}


def test_a_delayed_message_leaves_its_level_when_it_is_delivered() -> None:
    board = board_of(kept("delayed-messages", 60))
    delayed = [strip for (_, topic, _), strip in board.strips.items() if topic == "SCHEDULE_TOPIC_XXXX"]
    assert sum(strip.end for strip in delayed) > 0
    parked = kept("delayed-messages", 60).history.find("ParkedMessageDelivered")
    assert sum(strip.end - strip.waiting() for strip in delayed) == sum(1 for _ in parked) > 0


def test_a_full_disk_is_said_until_there_is_room_again() -> None:
    lab = played("steady-load", 1)
    lab.act("fill_disk", node="broker-a")
    assert "its disk is full" in board_of(lab).text()[1]
    assert "its disk is full" in scene_of(board_of(lab), Look()).svg()
    lab.act("fill_disk", node="broker-a", free_bytes=10**9)
    assert "its disk is full" not in board_of(lab).text()[1]


def test_a_disk_that_is_slow_is_still_slow_when_it_hangs_no_more() -> None:
    lab = played("steady-load", 1)
    lab.act("slow_disk", node="broker-a", ms=1_200)
    lab.act("hang_disk", node="broker-a")
    both, as_both = board_of(lab), condition_then(board_of(lab), "broker-a")
    assert "its disk is slow and hangs" in both.text()[1]
    assert "its disk is slow and hangs" in scene_of(both, Look()).svg()
    assert (as_both.slow, as_both.hung, as_both.full) == (True, True, False)
    lab.act("unhang_disk", node="broker-a")
    assert board_of(lab).text()[1].endswith("its disk is slow")
    lab.act("slow_disk", node="broker-a", ms=0)
    assert "its disk" not in board_of(lab).text()[1]


def test_a_message_that_could_not_be_sent_stands_crossed_out_at_its_producer_until_another_is_sent() -> None:
    lab = played("demo", 5)
    lab.crash("broker-a")
    lab.run_for(seconds=1)
    failed = lab.history.last("SendFailed")
    assert failed is not None
    board = board_of(lab)
    assert board.producers["producer-1"].given_up == failed.msg_id
    assert "could not be sent" in scene_of(board, Look()).svg()
    lab.restart("broker-a")
    lab.run_for(seconds=40)
    assert board_of(lab).producers["producer-1"].given_up == ""


def test_the_frame_that_gives_a_message_back_has_the_number_of_that_message() -> None:
    lab = played("demo-retry", 5)
    for _ in range(2):
        assert lab.run_until_event("RequestSent", request_name="CONSUMER_SEND_MSG_BACK") is not None
        failed = lab.history.last("ConsumeFinished")
        assert failed is not None
        (back,) = [flight for flight in board_of(lab).flights.values() if flight.kind == "back"]
        assert back.keys == (failed.msg_id,)


def test_nothing_is_left_in_a_cache_that_is_empty_also_of_retried_messages() -> None:
    lab = kept("retry-and-dead-letters", 70)
    board = board_of(lab)
    for name, consumer in board.consumers.items():
        waiting = sum(high - low for ranges in consumer.ranges.values() for low, high in ranges)
        assert consumer.cached == waiting + sum(consumer.listening.values())
        if not consumer.cached:
            assert consumer.waiting(10) == [], name


def test_a_restarted_machine_is_up_before_its_first_slice() -> None:
    lab = played("steady-load", 2)
    lab.crash("broker-a")
    assert board_of(lab).states["broker-a"] == "down"
    lab.restart("broker-a")
    assert board_of(lab).states["broker-a"] == "running"
