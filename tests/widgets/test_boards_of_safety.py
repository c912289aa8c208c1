"""The boards of transactions and of replication: what they say of worlds in which something is lost."""

from __future__ import annotations

import pytest

from mqlab import Lab
from mqlab_widgets.boards.replication import ReplicationBoard
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.transactions import TransactionsBoard
from tests.widgets.folds import expect_the_same_whichever_way, folded
from tests.worlds import played, send, shop, started_producer


@pytest.fixture(scope="module")
def transfers() -> Lab:
    """Three transfers: one committed, one rolled back, one whose producer was killed."""
    return played("half-message", 40)


def test_each_half_message_has_its_end(transfers: Lab) -> None:
    rows = folded(TransactionsBoard, transfers).table().rows
    assert [(row[3], row[5]) for row in rows] == [("committed", 0), ("rolled back", 0), ("rolled back", 1)]
    assert [row[4] for row in rows] == ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "ROLLBACK_MESSAGE"]


def test_what_a_producer_says_through_a_proxy_is_seen_beside_its_half_message() -> None:
    rows = folded(TransactionsBoard, played("proxy-transactions", 3)).table().rows
    assert [(row[3], row[4]) for row in rows] == [
        ("committed", "COMMIT_MESSAGE"), ("rolled back", "ROLLBACK_MESSAGE")
    ]  # fmt: skip


def test_a_half_message_is_hidden_and_then_asked_about(transfers: Lab) -> None:
    kinds = [record.kind for record in transfers.history]
    hidden = folded(TransactionsBoard, transfers, kinds.index("LocalTransactionExecuted")).table().rows
    assert [row[3] for row in hidden] == ["hidden"]
    asked = folded(TransactionsBoard, transfers, kinds.index("TransactionChecked") + 1).table().rows
    assert list(asked[-1][3:6]) == ["asked about", "", 1]


def test_a_master_says_what_an_accident_would_lose() -> None:
    lab = shop()
    lab.broker(slave_of="broker-a")
    lab.run_for(seconds=25)
    send(started_producer(lab), *(f"order {n}" for n in range(20)))
    lab.run_for(seconds=2)
    master, slave = folded(ReplicationBoard, lab).table().rows
    end = master[1]
    assert (master[0], slave[0], master[3]) == ("broker-a", "slave-a", "slave-a")
    assert (master[4], master[5], master[8]) == (end, end, 0)
    assert slave[1] == end
    assert master[7] == end - master[2]
    lab.crash("slave-a")
    send(started_producer(lab, "late"), "more")
    lab.run_for(seconds=1)
    (master, *_) = folded(ReplicationBoard, lab).table().rows
    assert master[3] is None
    assert master[8] == master[1] > end


def test_a_master_without_slaves_loses_all_with_its_disk() -> None:
    lab = shop()
    send(started_producer(lab), "x")
    lab.run_for(seconds=12)
    ((broker, end, flushed, slave, *_, power, disk),) = folded(ReplicationBoard, lab).table().rows
    assert (broker, slave, power, disk) == ("broker-a", None, 0, end)
    assert flushed == end


def test_both_boards_say_the_same_whichever_way_they_came(transfers: Lab) -> None:
    length = len(transfers.history)
    places = (length, 1, length // 2, 0, length)
    expect_the_same_whichever_way(transfers, (TransactionsBoard, ReplicationBoard), places)
    pair = played("sync-replication", 20)
    expect_the_same_whichever_way(pair, (ReplicationBoard,), (len(pair.history), 0, len(pair.history) // 3))


def test_the_stage_shows_what_a_slave_has() -> None:
    pair = shop()
    pair.broker(slave_of="broker-a")
    pair.run_for(seconds=25)
    send(started_producer(pair), "one", "two", "three")
    pair.run_for(seconds=2)
    board = folded(StageBoard, pair)
    assert board.logs["slave-a"].end == board.logs["broker-a"].end > 0
    assert [block.key for block in board.logs["slave-a"].blocks] == [b.key for b in board.logs["broker-a"].blocks]
    strips = {queue: strip for queue, strip in board.strips.items() if queue[0] == "slave-a"}
    assert strips
    assert all(cell.key for strip in strips.values() for cell in strip.cells)
