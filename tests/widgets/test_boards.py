"""Boards: what they fold from events, forwards and backwards, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from mqlab import Lab
from mqlab.errors import LearnerError
from mqlab.scenarios import get
from mqlab.trace.catalogue import CATALOGUE
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board, Fold
from mqlab_widgets.boards.held_pulls import HeldPullsBoard
from mqlab_widgets.boards.lights import LightsBoard
from mqlab_widgets.boards.offsets import OffsetsBoard
from mqlab_widgets.boards.responses import ResponsesBoard
from mqlab_widgets.boards.routes import RoutesBoard
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.scene.scene import Look, scene_of
from tests.widgets.folds import expect_the_same_whichever_way, folded
from tests.worlds import played, send, shop, started_consumer, started_producer

BOARDS = (StageBoard, HeldPullsBoard, OffsetsBoard, ResponsesBoard, RoutesBoard, LightsBoard)


@pytest.fixture(scope="module")
def crashed() -> Lab:
    """Two brokers, one of them killed after 20 s."""
    return played("two-brokers", 24)


class Counting(Board):
    """Counts the messages of each machine."""

    title = "counting"

    def begin(self) -> None:
        self.counts: dict[str, int] = {}

    def on_message_stored(self, record: Record) -> None:
        self.counts[record.node] = self.counts.get(record.node, 0) + 1


# -- the fold -------------------------------------------------------------------------------------------------------


def test_a_fold_says_the_same_whichever_way_it_came(crashed: Lab) -> None:
    length = len(crashed.history)
    assert length > 3_000
    expect_the_same_whichever_way(crashed, BOARDS, (length, 1, 2_500, 0, 1_999, 2_000, 2_001, length, 3_000))


def test_the_copies_of_a_long_history_stay_few(crashed: Lab) -> None:
    class Few(Fold):
        EVERY = 500
        MOST_BYTES = 100

    fold = Few(crashed.history, [Counting(crashed)])
    fold.go_to(len(crashed.history))
    assert len(fold._copies) <= 2
    counts = dict(fold.boards[0].counts)
    fold.go_to(10)
    fold.go_to(len(crashed.history))
    assert fold.boards[0].counts == counts
    assert sum(counts.values()) == sum(1 for _ in crashed.history.find("MessageStored"))


def test_going_back_takes_at_most_two_thousand_events_again(crashed: Lab) -> None:
    class Every(Board):
        taken: ClassVar[list[tuple[int, int]]] = []

        def handlers(self) -> dict[str, Callable[[Record], None]]:
            return dict.fromkeys(CATALOGUE, lambda record: self.taken.append(record.at))

    fold = Fold(crashed.history, [Every(crashed)])
    fold.go_to(len(crashed.history))
    assert len(Every.taken) == len(crashed.history)
    for place in (3_000, 2_999, 17, 2_000):
        Every.taken.clear()
        fold.go_to(place)
        assert len(Every.taken) <= Fold.EVERY == 2_000


def test_a_fold_follows_a_history_that_grows() -> None:
    lab = get("two-brokers").build(7)
    fold = Fold(lab.history, [Counting(lab)])
    fold.go_to(len(lab.history))
    lab.run_for(seconds=4)
    fold.go_to(len(lab.history))
    assert sum(fold.boards[0].counts.values()) == sum(1 for _ in lab.history.find("MessageStored")) > 0


def test_a_place_beyond_the_ends_is_the_end(crashed: Lab) -> None:
    fold = Fold(crashed.history, [Counting(crashed)])
    fold.go_to(10**9)
    assert fold.place == len(crashed.history)
    fold.go_to(-5)
    assert fold.boards[0].counts == {}


def test_a_board_that_listens_to_no_event_kind_is_told_the_nearest(crashed: Lab) -> None:
    class Misspelt(Board):
        def on_mesage_stored(self, record: Record) -> None: ...

    with pytest.raises(LearnerError, match="did you mean on_message_stored"):
        Fold(crashed.history, [Misspelt(crashed)])


# -- the stage ------------------------------------------------------------------------------------------------------


def test_the_stage_of_an_empty_world_says_how_to_begin() -> None:
    lab = Lab()
    stage = StageBoard(lab)
    assert stage.text() == ["no machine has started yet"]
    assert "lab.name_server()" in stage.html()


def test_the_stage_says_who_is_there_and_what_each_holds(crashed: Lab) -> None:
    stage = StageBoard(crashed)
    fold = Fold(crashed.history, [stage])
    fold.go_to(len(crashed.history))
    lines = stage.text()
    assert "namesrv-1 (namesrv) is running" in lines
    assert any(line.startswith("broker-a (broker) is running; TopicTest: ") for line in lines)
    assert any(line.startswith("broker-b (broker) is down") for line in lines)
    assert any(line.startswith("consumer-1 (consumer) is running; 0 messages cached") for line in lines)
    held = sum(len(of_broker) for of_broker in stage.held.values())
    assert held == len(crashed.held_pulls())


def test_what_is_on_its_way_is_what_the_network_has(crashed: Lab) -> None:
    lab = played("first-message", 0)
    stage = StageBoard(lab)
    fold = Fold(lab.history, [stage])
    seen = 0
    for _ in range(400):
        lab.world.step()
        fold.go_to(len(lab.history))
        under_way = len(lab.world.network.under_way())
        assert len(stage.flights) == under_way
        seen += under_way
    assert seen > 20


def test_a_cut_link_is_drawn_and_told() -> None:
    lab = played("first-message", 1)
    lab.partition("producer-1", "broker-a")
    stage = folded(StageBoard, lab)
    assert "the link from producer-1 to broker-a is cut" in stage.text()
    assert "wire cut" in stage.html()


def test_many_machines_and_queues_are_summed_up() -> None:
    lab = shop(seed=1, topic="Wide", queues=400)
    send(started_producer(lab, "orders"), *[b"x"] * 200, topic="Wide")
    for number in range(30):
        lab.node(f"consumer-x{number}")
    for _ in range(30):
        started_consumer(lab, lambda messages, context: None, topic="Wide")
    stage = folded(StageBoard, lab)
    drawn = stage.html()
    assert "25 more consumers" in drawn
    assert "Wide: 200 messages, 200 not consumed, 200 queues" in drawn
    assert len(drawn) < 40_000
    assert 'data-do="open_kind" data-kind="consumer"' in drawn
    opened = scene_of(stage, Look(opened=frozenset({"consumer"}))).svg()
    assert opened.count('class="mq-card consumer running') == 12, "eleven machines, and the card that sums up the rest"
    assert "show fewer" in opened


# -- the boards -----------------------------------------------------------------------------------------------------


def test_held_pulls_are_those_of_the_broker(crashed: Lab) -> None:
    board = folded(HeldPullsBoard, crashed)
    assert len(board.held) == len(crashed.held_pulls())
    assert any("broker-a" in line and "readers" in line for line in board.text())


def test_the_open_requests_are_those_of_the_response_tables(crashed: Lab) -> None:
    board = folded(ResponsesBoard, crashed)
    opaques = {opaque for node, _, opaque in board.open if node == "consumer-1"}
    assert opaques == {row[0] for row in crashed.response_table(crashed.processes["consumer-1"].clients[0][0]).rows}


def test_offsets_are_those_of_the_broker(crashed: Lab) -> None:
    board = folded(OffsetsBoard, crashed)
    manager = crashed.processes["broker-a"].running().consumer_offset_manager
    for queue in range(4):
        committed = board.committed["broker-a", "TopicTest", queue, "readers"]
        assert committed == manager.query_offset("readers", "TopicTest", queue)


def test_what_is_consumed_and_not_committed_is_a_figure_of_its_own() -> None:
    lab = played("held-back-by-count", 17)
    board = OffsetsBoard(lab)
    fold = Fold(lab.history, [board])
    fold.go_to(len(lab.history))
    row = next(row for row in board.table().rows if row[0] == "Orders")
    assert row == ["Orders", "broker-a", 0, "readers", 150, 150, 134, 0, 16, "consumer-1"]
    lab.crash("consumer-1")
    lab.run_for(seconds=1)
    fold.go_to(len(lab.history))
    row = next(row for row in board.table().rows if row[0] == "Orders")
    assert row == ["Orders", "broker-a", 0, "readers", 150, None, 134, 16, 0, ""]


def test_a_route_that_nobody_asked_for_again_is_still_believed(crashed: Lab) -> None:
    board = folded(RoutesBoard, crashed)
    assert board.truth["namesrv-1", "TopicTest"] == {"broker-a": None}
    assert board.beliefs["producer-1", "TopicTest"][0] == "broker-a,broker-b"


def test_what_a_process_knew_is_gone_when_its_power_is_lost() -> None:
    lab = played("two-brokers", 4)
    board = RoutesBoard(lab)
    fold = Fold(lab.history, [board])
    fold.go_to(len(lab.history))
    assert ("producer-1", "TopicTest") in board.beliefs
    lab.power_off("producer-1")
    fold.go_to(len(lab.history))
    assert ("producer-1", "TopicTest") not in board.beliefs
