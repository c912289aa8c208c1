"""The boards of flow control, of ownership, and of space and time: the world's own tables say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab import DefaultMQPushConsumer, Lab
from mqlab.errors import LearnerError, ProtocolError
from mqlab.explore.ledger import Ledger
from mqlab.scenarios import get
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab.views.diagram import SpaceTimeDiagram
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.flow_control import FlowControlBoard
from mqlab_widgets.boards.lights import LightsBoard
from mqlab_widgets.boards.owners import OwnersBoard
from mqlab_widgets.boards.owners_picture import owners_svg
from mqlab_widgets.boards.space_time import SpaceTimeBoard
from mqlab_widgets.world_numbers import WorldNumbers
from tests.widgets.folds import expect_the_same_whichever_way, folded
from tests.worlds import played

BOARDS = (FlowControlBoard, OwnersBoard, SpaceTimeBoard, LightsBoard)

def push_consumers(lab: Lab) -> list[tuple[str, DefaultMQPushConsumer]]:
    return [
        (name, client)
        for name, process in lab.processes.items()
        for client, *_ in getattr(process, "clients", ())
        if isinstance(client, DefaultMQPushConsumer)
    ]


@pytest.mark.parametrize("scenario", ["push-orderly", "retry-and-dead-letters", "two-brokers"])
def test_a_fold_says_the_same_whichever_way_it_came(scenario: str) -> None:
    lab = played(scenario, 16)
    length = len(lab.history)
    expect_the_same_whichever_way(lab, BOARDS, (length, 1, 1_100, 0, 999, 1_000, 1_001, length, length - 7))


# -- flow control ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["held-back-by-count", "held-back-by-span", "push-orderly", "rebalance"])
def test_the_messages_in_hand_are_those_of_the_process_queues(scenario: str) -> None:
    lab = get(scenario).build(7)
    board = FlowControlBoard(lab)
    fold = Fold(lab.history, [board])
    seen = 0
    for _ in range(30):
        lab.run_for(ms=301)
        fold.go_to(len(lab.history))
        for name, consumer in push_consumers(lab):
            for queue, held in consumer.process_queues.items():
                key = (name, consumer.consumer_group, queue.topic, queue.broker_name, queue.queue_id)
                assert board.counts.get(key, 0) == held.msg_count
                seen += held.msg_count
    assert seen or scenario == "rebalance"


def test_the_limit_that_refuses_a_pull_is_named_until_one_goes_out() -> None:
    lab = played("held-back-by-count", 2)
    board = folded(FlowControlBoard, lab)
    (line,) = board.text()
    assert "messages in hand, threshold 20; the last pull was refused by the count: " in line
    assert "refused by the count" in board.html()
    lab.run_until_event("PullRequested")
    board = folded(FlowControlBoard, lab)
    assert board.limited == {}


def test_a_consumer_that_dies_holds_nothing() -> None:
    lab = played("held-back-by-count", 2)
    lab.crash("consumer-1")
    assert folded(FlowControlBoard, lab).text() == ["no consumer has a queue"]


# -- ownership ------------------------------------------------------------------------------------------------------


def test_owners_are_those_who_have_the_process_queue() -> None:
    lab = played("push-orderly", 1.5)
    board = OwnersBoard(lab)
    fold = Fold(lab.history, [board])
    members = set()
    for _ in range(40):
        lab.run_for(ms=400)
        fold.go_to(len(lab.history))
        owners = board.ownership()["readers", "Orders"]
        for name, consumer in push_consumers(lab):
            held = {(q.broker_name, q.queue_id) for q in consumer.process_queues if q.topic == "Orders"}
            assert held == {queue for queue, names in owners.items() if name in names}
            members.update([name] if held else [])
    assert members == {"consumer-1", "consumer-2"}


def test_the_locks_of_a_killed_owner_are_still_drawn() -> None:
    board = folded(OwnersBoard, played("owner-killed", 30))
    assert [line.partition(": ")[2] for line in board.text()] == [
        "A, locked for A", "A, locked for A", "nobody, locked for B", "nobody, locked for B",
    ]  # fmt: skip
    assert ">B</text>" in board.html()
    assert board.html().count('class="lock"') == 4


def test_the_lock_of_an_orderly_group_is_the_brokers() -> None:
    lab = played("push-orderly", 8)
    board = folded(OwnersBoard, lab)
    assert board.text() == [
        "readers, Orders queue 0 on broker-a: consumer-1, locked for consumer-1",
        "readers, Orders queue 1 on broker-a: consumer-2, locked for consumer-2",
    ]
    assert board.html().count('class="lock"') == 2
    lab.crash("broker-a")
    assert folded(OwnersBoard, lab).text()[0] == "readers, Orders queue 0 on broker-a: consumer-1"


def test_a_slave_is_not_mistaken_for_its_master() -> None:
    lab = get("push-orderly").build(7)
    lab.broker("slave", broker_name="broker-a", broker_id=1, broker_role="SLAVE")
    lab.run_for(seconds=8)
    locked = folded(OwnersBoard, lab).text()
    assert locked[0].endswith("locked for consumer-1")
    lab.crash("slave")
    assert folded(OwnersBoard, lab).text() == locked
    ledger = Ledger(lab)
    assert (ledger.names.broker_of("broker-a"), ledger.names.broker_of("broker-a", 1)) == ("broker-a", "broker-a")
    lab.restart("slave")
    lab.run_for(ms=10)
    names = Ledger(lab).names
    assert (names.broker_of("broker-a"), names.broker_of("broker-a", 1)) == ("broker-a", "slave")
    numbers = WorldNumbers(lab)
    numbers.follow()
    assert {queue[0] for group in numbers._groups.values() for queue in group.read} == {"broker-a"}


def test_a_queue_without_an_owner_is_seen() -> None:
    lab = played("push-orderly", 8)
    lab.crash("consumer-2")
    board = folded(OwnersBoard, lab)
    assert "nobody" in board.text()[1]
    assert 'class="none"' in board.html()


def test_of_many_queues_some_are_drawn() -> None:
    owners = {("broker-a", number): ["consumer-1"] for number in range(400)}
    picture = owners_svg(["consumer-1"], owners, {})
    assert "and 352 more queues" in picture
    assert len(picture) < 15_000


# -- space and time -------------------------------------------------------------------------------------------------


def test_the_board_shows_what_the_diagram_of_the_same_stretch_shows() -> None:
    lab = played("first-message", 2)
    board = folded(SpaceTimeBoard, lab)
    lines = board.text()
    assert len(lines) == SpaceTimeBoard.rows
    begin_ms = board.recent[0][0][2] / 1_000
    assert str(lab.space_time(begin_ms)).splitlines()[-len(lines) :] == lines


def test_an_answer_is_named_by_its_request_however_long_ago_that_was() -> None:
    lab = played("held-pulls", 30)
    lab.run_until_event("PullWoken", reason="timed out")
    lab.run_for(ms=2)
    assert any("PULL_MESSAGE: PULL_" in line for line in folded(SpaceTimeBoard, lab).text())


def test_requests_that_were_answered_are_forgotten() -> None:
    lab = played("two-brokers", 40)
    board = folded(SpaceTimeBoard, lab)
    assert len(board.asked) < 40


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_recorded_trace_is_drawn_as_the_world_was(tmp_path: Path, suffix: str) -> None:
    lab = played("first-message", 2)
    path = tmp_path / f"trace.{suffix}"
    with (JsonLinesRecorder if suffix == "jsonl" else ParquetRecorder)(path) as recorder:
        for row in lab.history.rows():
            recorder(row)
    begin = next(lab.history.find("MessageStored")).ts_ms - 1
    drawn = SpaceTimeDiagram.of_trace(path, begin, begin + 5)
    assert drawn.svg() == lab.space_time(begin, begin + 5).svg()
    assert any("MessageStored" in line for line in str(drawn).splitlines())


def test_a_trace_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there is no file"):
        SpaceTimeDiagram.of_trace(tmp_path / "missing.jsonl", 0, 1)
    (tmp_path / "other.jsonl").write_text("hello\n")
    with pytest.raises(ProtocolError, match="not a trace of mqlab"):
        SpaceTimeDiagram.of_trace(tmp_path / "other.jsonl", 0, 1)
    with pytest.raises(LearnerError, match="before it begins"):
        SpaceTimeDiagram.of_trace(tmp_path / "other.jsonl", 2, 1)


def test_very_many_queues_are_summed_up_by_their_owners() -> None:
    lab = Lab(seed=1)
    lab.name_server()
    lab.broker("broker-a")
    topics = [f"Wide{number}" for number in range(8)]
    for topic in topics:
        lab.create_topic(topic, 100)
    for _ in range(2):
        consumer = lab.consumer("readers")
        for topic in topics:
            consumer.subscribe(topic, "*")
        consumer.register_message_listener(lambda messages, context: None)
        lab.run(consumer.start())
    lab.run_for(seconds=25)
    board = folded(OwnersBoard, lab)
    assert board.text()[:2] == ["readers, Wide0: consumer-1 has 50 queues", "readers, Wide0: consumer-2 has 50 queues"]
    assert board.html().count("<svg") == 6
    assert "and 2 more groups and topics" in board.html()
