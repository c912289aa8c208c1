"""Pop and its cousins on one stage: what lies in each queue and in each hand, as the parts themselves know it."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import pytest

from mqlab import Lab, scenarios
from mqlab.scenarios import pop_check_points
from mqlab.scenarios.cousins import open_counter
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import BACK, ENDED, RUNNING
from mqlab_widgets.scene.acts import acts_of
from mqlab_widgets.scene.scene import Look, Scene, scene_of
from tests.widgets.folds import expect_the_same_whichever_way, folded

TROUBLES = ("none", "killed", "hung", "late", "broker-killed", "poison")
QUEUES = {"kafka-1": ("kafka-1", "Orders", 0), "sqs": ("sqs", "orders", 0)}


def three(trouble: str = "killed", seconds: float | None = None, **parameters: Any) -> Lab:
    return scenarios.get("three-cousins").play(7, parameters={"trouble": trouble, **parameters}, seconds=seconds)


def behind(lab: Lab, kind: str, number: int = 1) -> tuple[StageBoard, Look]:
    """The stage behind an event, the n-th of its kind, at the event's own time."""
    event = list(lab.history.find(kind))[number - 1]
    board = folded(StageBoard, lab, lab.history.index_of(event.at) + 1)
    return board, Look(now_us=event.ts_us)


def program(lab: Lab, server: str) -> Any:
    return lab.world.nodes[server].life.program


def held_of_share_group(lab: Lab) -> set[int]:
    partition = program(lab, "kafka-1").partition
    return {offset for offset in range(3) if partition.state_of(offset).name == "ACQUIRED"}


def held_of_sqs(lab: Lab) -> set[int]:
    queue = program(lab, "sqs").queue
    now_ms = lab.world.nodes["sqs"].now_ms()
    return {int(message.message_id[2:]) - 1 for message in queue.messages.values() if message.visible_ms > now_ms}


def out(board: StageBoard, server: str, now_us: int) -> set[int]:
    strip = board.strips[QUEUES[server]]
    return {offset for offset in strip.popped if strip.is_out(offset, now_us)}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_is_hidden_in_each_queue_is_what_the_queue_itself_hides(trouble: str) -> None:
    lab = scenarios.get("three-cousins").build(7, parameters={"trouble": trouble})
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    seen = set()
    for _ in range(80):
        lab.run_for(ms=500)
        fold.go_to(len(lab.history))
        if board.states["kafka-1"] != RUNNING:
            continue
        share, sqs = held_of_share_group(lab), held_of_sqs(lab)
        assert out(board, "kafka-1", lab.world.now_us) == share
        assert out(board, "sqs", lab.world.now_us) == sqs
        partition = program(lab, "kafka-1").partition
        assert board.windows["kafka-1"] == (partition.start_offset, partition.end_offset)
        seen.add((len(share), len(sqs)))
    assert len(seen) > 1 or trouble == "none"


def test_a_worker_has_its_orders_in_hand_until_it_is_done_or_dead() -> None:
    lab = three()
    firsts = [f"{prefix}-worker-1" for prefix in ("pop", "share", "sqs")]
    taken, _ = behind(lab, "WorkTaken", 9)
    for worker in firsts:
        assert [taken.label(key) for key in taken.hands[worker].held] == ["0", "1", "2"]
    dead, _ = behind(lab, "NodeCrashed", 3)
    assert [dead.hands[worker].held for worker in firsts] == [{}, {}, {}]
    one, _ = behind(lab, "WorkAnswered", 1)
    share = one.hands["share-worker-2"]
    assert ([one.label(key) for key in share.held], share.done) == (["1", "2"], 1)
    assert set(share.held.values()) == {2}, "Kafka says that it is the second delivery"
    last = folded(StageBoard, three(seconds=60))
    assert {worker: hand.done for worker, hand in last.hands.items()} == {
        **dict.fromkeys(firsts, 0), "pop-worker-2": 3, "share-worker-2": 3, "sqs-worker-2": 3,
    }  # fmt: skip
    assert not any(hand.held for hand in last.hands.values())


def test_a_worker_that_hangs_keeps_its_orders_while_another_one_has_them() -> None:
    board = folded(StageBoard, three("hung", seconds=13))
    for prefix in ("pop", "share", "sqs"):
        assert len(board.hands[f"{prefix}-worker-1"].held) == 3
    assert any(hand.held for worker, hand in board.hands.items() if worker.endswith("2"))


def test_who_is_too_late_hears_it_from_kafka_alone() -> None:
    board = folded(StageBoard, three("late", seconds=1))
    drawn = scene_of(board, Look()).svg()
    assert board.hands["share-worker-1"].answer == "INVALID_RECORD_STATE"
    assert [board.hands[f"{one}-worker-1"].answer for one in ("pop", "sqs")] == ["", ""]
    assert "its last answer: INVALID_RECORD_STATE" in "\n".join(board.text())
    assert drawn.count('data-key="card:share-worker-1"') == 1


def test_what_is_let_go_is_marked_and_what_is_done_is_pale() -> None:
    lab = three()
    board, _ = behind(lab, "RecordLetGo", 3)
    assert {one.state for one in board.strips[QUEUES["kafka-1"]].popped.values()} == {BACK}
    board, _ = behind(lab, "StartOffsetMoved", 3)
    assert {one.state for one in board.strips[QUEUES["kafka-1"]].popped.values()} == {ENDED}
    assert "window (SPSO to SPEO): 3 to 3" in scene_of(board, Look()).svg()
    board = folded(StageBoard, three(seconds=60))
    assert "0 not deleted" in scene_of(board, Look()).svg()


def test_a_broker_that_comes_back_has_forgotten_who_holds_what() -> None:
    lab = three("broker-killed")
    board, _ = behind(lab, "ShareStateRead", 2)
    states = [one.state for one in board.strips[QUEUES["kafka-1"]].popped.values()]
    assert states == [ENDED, BACK, BACK]


def test_a_window_ends_behind_what_is_known_of_it_when_its_broker_comes_back() -> None:
    lab = Lab(7)
    counter = open_counter(lab, "share-group", orders=3)
    first = counter.worker("worker-1")
    held = lab.run(first.take(3, 20))
    lab.run(first.done(held[1]))
    lab.crash("kafka-1")
    lab.restart("kafka-1")
    lab.run_for(seconds=1)
    board = folded(StageBoard, lab)
    assert board.windows["kafka-1"] == (0, 2)
    assert [one.state for one in board.strips[QUEUES["kafka-1"]].popped.values()] == [BACK, ENDED, BACK]


def test_on_a_narrow_page_every_worker_has_a_card_with_its_orders_beside_its_name() -> None:
    board, look = behind(three(), "WorkTaken", 9)
    scene = scene_of(board, look._replace(width=360))
    cards = {id(card): card for card in scene.cards.values() if card.kind in ("broker", "server", "worker")}.values()
    assert [card.kind for card in cards] == ["broker", "server", "server", *["worker"] * 6]
    for card, other in itertools.combinations(cards, 2):
        beside = card.x + card.width <= other.x or other.x + other.width <= card.x
        assert beside or card.y + card.height <= other.y or other.y + other.height <= card.y
    svg = scene.svg()
    for name in ("pop-1", "share-1", "sqs-1", "pop-worker-2", "share-worker-2", "sqs-worker-2"):
        assert f">{name}</text>" in svg
    first = [card for card in cards if card.name.endswith("worker-1")]
    held = [[card.at(("held", key)) for key in board.hands[card.name].held] for card in first]
    assert [len(places) for places in held] == [3, 3, 3]
    for card, places in zip(first, held, strict=True):
        for x, y in filter(None, places):
            assert card.x < x < card.x + card.width
            assert card.y < y < card.y + card.height


def test_what_is_no_more_drawn_beside_a_name_is_counted_in_front_of_what_is() -> None:
    board, look = behind(three(orders=5, taken=5), "WorkTaken", 15)
    scene = scene_of(board, look._replace(width=360))
    (row,) = [svg for name, svg in scene.parts.items() if name.startswith("card:sqs-worker-1/") and "+2<" in svg]
    (end,) = re.findall(r'<text class="faint" x="([\d.]+)" y="[-\d.]+" text-anchor="end">', row)
    first, _ = scene.cards["sqs-worker-1"].spots["held", "sqs#0"]
    assert float(end) < first - 8
    assert ">sqs-1</text>" in scene.svg()


def test_a_worker_of_pop_has_what_it_popped_in_hand_until_it_has_acknowledged_it() -> None:
    lab = Lab(7)
    worker = asyncio.run(pop_check_points.open_counter(lab, 5))

    def in_hand() -> list[str]:
        board = folded(StageBoard, lab)
        assert board.kind_of("worker") == "worker"
        return [board.label(key) for key in board.hand_of("worker").held]

    assert in_hand() == []
    popped = lab.run(worker.pop(invisible_ms=20_000))
    assert in_hand() == ["0", "1", "2", "3", "4"]
    lab.run(worker.hide(popped[1], 30_000))
    assert in_hand() == ["0", "1", "2", "3", "4"], "the old check point is acknowledged, and not the order"
    lab.run(worker.ack(popped[0], popped[1]))
    assert in_hand() == ["2", "3", "4"]
    lab.run(worker.ack_together(popped[3:]))
    assert in_hand() == ["2"]
    board = folded(StageBoard, lab)
    (key,) = board.hands["worker"].held
    assert board.way_of(key) == ["counter", "broker-a", "worker"]
    lab.crash("worker")
    assert in_hand() == []


def scene_before(lab: Lab, kind: str, number: int = 1) -> tuple[StageBoard, Scene, Any]:
    event = list(lab.history.find(kind))[number - 1]
    place = lab.history.index_of(event.at)
    scene = scene_of(folded(StageBoard, lab, place), Look(now_us=event.ts_us))
    return folded(StageBoard, lab, place + 1), scene, event


@pytest.mark.parametrize(
    ("kind", "number", "ends"),
    [
        ("RecordProduced", 1, ("share-shop", "kafka-1")),
        ("SqsMessageSent", 3, ("sqs-shop", "sqs")),
        ("WorkTaken", 4, ("kafka-1", "share-worker-1")),
        ("WorkTaken", 7, ("sqs", "sqs-worker-1")),
        ("RecordAcknowledged", 1, ("share-worker-2", "kafka-1")),
        ("SqsMessageDeleted", 1, ("sqs-worker-2", "sqs")),
    ],
)
def test_orders_and_words_are_seen_on_their_way(kind: str, number: int, ends: tuple[str, str]) -> None:
    board, scene, event = scene_before(three(), kind, number)
    (act,) = acts_of(event, board, scene).acts
    assert act.id == f"{ends[0]}>{ends[1]}"
    cards = [scene.cards[end] for end in ends]
    for card, (x, y) in zip(cards, (act.path[:2], act.path[-2:]), strict=True):
        assert card.x <= x <= card.x + card.width
        assert card.y <= y <= card.y + card.height


def test_a_refused_word_is_a_cross() -> None:
    lab = three("late", seconds=1)
    board, scene, event = scene_before(lab, "AcknowledgementRefused")
    (act,) = acts_of(event, board, scene).acts
    assert 'data-sign="failed"' in act.svg


def test_the_stage_is_the_same_whichever_way_one_comes() -> None:
    lab = three("late")
    end = len(lab.history)
    expect_the_same_whichever_way(lab, [StageBoard], [end, 40, end // 2, 90, end])


def test_nothing_of_a_cousin_can_be_followed_as_a_message_of_rocketmq_can() -> None:
    board, look = behind(three(), "WorkTaken", 9)
    svg = scene_of(board, look).svg()
    followed = re.findall(r'data-do="follow" data-message="([^"]*)"', svg)
    assert followed
    assert not [key for key in followed if "#" in key]
