"""A half message on the stage: hidden, asked about, let go or forgotten, and the frames that say so."""

from __future__ import annotations

import re

import pytest

from mqlab import Lab
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import ASKED, COMMIT, HIDDEN, MOVED, ROLLBACK, Flight
from mqlab_widgets.scene.acts import acts_of
from mqlab_widgets.scene.scene import Look, scene_of
from tests.widgets.folds import folded
from tests.worlds import played


@pytest.fixture(scope="module")
def transfers() -> Lab:
    return played("half-message", 40)


def behind(lab: Lab, kind: str, number: int = 1) -> StageBoard:
    """The stage behind an event: the n-th of its kind."""
    events = list(lab.history.find(kind))
    return folded(StageBoard, lab, lab.history.index_of(events[number - 1].at) + 1)


def halves(board: StageBoard) -> dict[int, str]:
    """Half offset -> what has become of it."""
    return board.strips["broker-a", RMQ_SYS_TRANS_HALF_TOPIC, 0].halves


def words(board: StageBoard) -> str:
    """What the card of the broker says."""
    return " ".join(re.findall(r">([^<>]+)</text>", scene_of(board, Look()).svg()))


def test_what_is_hidden_let_go_and_forgotten_is_told_apart(transfers: Lab) -> None:
    assert halves(behind(transfers, "HalfMessageHidden")) == {0: HIDDEN}
    assert halves(behind(transfers, "TransactionEnded", 1)) == {0: COMMIT}
    board = behind(transfers, "TransactionEnded", 2)
    assert halves(board) == {0: COMMIT, 1: ROLLBACK}
    assert "half messages: none is hidden any more" in words(board)
    board = behind(transfers, "NodeCrashed")
    assert halves(board) == {0: COMMIT, 1: ROLLBACK, 2: HIDDEN}
    assert "half messages: 1 hidden" in words(board)
    assert "1 half messages hidden" in " ".join(board.text())


def test_a_copy_counts_once_and_stands_for_the_one_before_when_it_has_an_entry(transfers: Lab) -> None:
    asked = behind(transfers, "TransactionChecked")
    assert halves(asked) == {0: COMMIT, 1: ROLLBACK, 2: ASKED, 3: ASKED}
    assert "half messages: 1 hidden" in words(asked)
    after = folded(StageBoard, transfers, None)
    assert halves(after) == {0: COMMIT, 1: ROLLBACK, 2: MOVED, 3: ROLLBACK}
    assert "half messages: none is hidden any more" in words(after)


def test_the_frames_of_a_transaction_carry_what_they_say(transfers: Lab) -> None:
    board = StageBoard(transfers)
    fold = Fold(transfers.history, [board])
    seen: list[tuple[str, str, str]] = []
    for place, record in enumerate(transfers.history, 1):
        if record.kind == "RequestSent" and record.request_name in ("END_TRANSACTION", "CHECK_TRANSACTION_STATE"):
            fold.go_to(place)
            flight: Flight = list(board.flights.values())[-1]
            assert len(flight.keys) == 1
            seen.append((flight.source, flight.target, flight.kind))
            assert acts_of(record, board, scene_of(board, Look())).acts
    assert seen == [
        ("producer-1", "broker-a", "commit"),
        ("producer-1", "broker-a", "rollback"),
        ("broker-a", "producer-2", "question"),
        ("producer-2", "broker-a", "rollback"),
    ]


def test_a_question_and_an_end_are_seen_to_arrive(transfers: Lab) -> None:
    board = StageBoard(transfers)
    fold = Fold(transfers.history, [board])
    rests = []
    for place, record in enumerate(transfers.history, 1):
        if record.kind == "RequestReceived":
            fold.go_to(place)
            if board.landed[record.node].kind in (COMMIT, ROLLBACK, "question"):
                moves = acts_of(record, board, scene_of(board, Look()))
                rests.append((board.landed[record.node].kind, moves.rest_ms > 0))
    assert rests == [("commit", True), ("rollback", True), ("question", True), ("rollback", True)]


def test_a_producer_shows_whose_local_part_it_does_until_that_ends(transfers: Lab) -> None:
    assert len(behind(transfers, "SendSucceeded").producers["producer-1"].local) == 1
    assert not behind(transfers, "LocalTransactionExecuted").producers["producer-1"].local
    assert not behind(transfers, "NodeCrashed").producers["producer-1"].local
    assert re.search(r">local</text>", scene_of(behind(transfers, "SendSucceeded"), Look()).svg())
