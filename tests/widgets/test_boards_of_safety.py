"""The boards of transactions and of replication: what they say of worlds in which something is lost."""

from __future__ import annotations

import re

import pytest

from mqlab import Lab, Message
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.replication import ReplicationBoard
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.boards.stage_state import MOST_BLOCKS
from mqlab_widgets.boards.transactions import TransactionsBoard
from mqlab_widgets.scene.acts import acts_of
from mqlab_widgets.scene.scene import Look, scene_of
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


def test_the_log_flows_to_a_slave_and_what_is_copied_is_underlined() -> None:
    lab = played("accident", 10)
    kinds = [record.kind for record in lab.history]
    *_, sent, _ = [place for place, kind in enumerate(kinds[: kinds.index("PowerLost")]) if kind == "ReplicaDataSent"]
    piece = lab.history.record(sent)
    before, under_way = (folded(StageBoard, lab, place) for place in (sent, sent + 1))
    assert not any(flight.kind == "copy" for flight in before.flights.values())
    (flight,) = [flight for flight in under_way.flights.values() if flight.kind == "copy"]
    log = under_way.logs["broker-a"]
    lacking = [block for block in log.blocks if block.offset >= piece.commit_log_offset]
    assert len(lacking) > 1
    assert (flight.source, flight.target, flight.messages) == ("broker-a", "slave-a", len(lacking))
    assert flight.keys == tuple(block.key for block in lacking)[:4]
    assert under_way.copied_of("broker-a") == piece.commit_log_offset == under_way.logs["slave-a"].end
    words = f"not copied: {len(lacking)} records, {log.end - piece.commit_log_offset:,} bytes"
    assert under_way.pair_words("broker-a") == (words,)
    assert under_way.pair_words("slave-a") == ("follows broker-a",)
    master = scene_of(under_way, Look()).cards["broker-a"].pieces
    tips = [tip for _, shapes in master.values() for tip in re.findall("<title>(byte [^<]*)", shapes)]
    marked = [tip.endswith(", a slave has it") for tip in tips]
    assert marked == [True] * (len(tips) - len(lacking)) + [False] * len(lacking)
    assert "".join(shapes for _, shapes in master.values()).count('class="below"') == len(tips) - len(lacking)

    told = next(place for place in range(sent, len(kinds)) if kinds[place] == "ReplicaAcked")
    reporting, heard = folded(StageBoard, lab, told), folded(StageBoard, lab, told + 1)
    assert {flight.kind for flight in reporting.flights.values() if flight.source == "slave-a"} == {"report"}
    assert not any(flight.source == "slave-a" for flight in heard.flights.values())
    assert heard.copied_of("broker-a") == piece.commit_log_offset + piece.body_bytes


def test_a_piece_of_the_log_and_a_report_leave_and_arrive_where_the_logs_are() -> None:
    lab = played("accident", 10)
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    scene = scene_of(board, Look())
    seen: dict[str, str] = {}
    for place in range(len(lab.history)):
        record = lab.history.record(place)
        fold.go_to(place + 1)
        if record.kind in ("ReplicaDataSent", "ReplicaDataAppended", "ReplicaAcked"):
            scene = scene_of(board, Look(), scene)
            for act in acts_of(record, board, scene).acts:
                home = "slave-a" if (act.act == "land") == act.id.startswith("copy") else "broker-a"
                assert scene.spot(home, "log") == (act.path[-2:] if act.act == "land" else act.path[:2])
                assert seen.get(act.id) != act.act
                seen[act.id] = act.act
    assert {name.partition(":")[0] for name in seen} == {"copy", "report"}
    flying = {name for name, act in seen.items() if act == "fly"}
    assert flying == {name for name, flight in board.flights.items() if flight.kind in ("copy", "report")}


def test_what_is_on_its_way_to_a_slave_dies_with_the_connection() -> None:
    pair = shop()
    pair.broker(slave_of="broker-a")
    pair.run_for(seconds=25)
    pair.act("delay", source="broker-a", target="slave-a", ms=500)
    send(started_producer(pair), "one")
    pair.run_for(ms=200)
    assert any(flight.kind == "copy" for flight in folded(StageBoard, pair).flights.values())
    pair.disconnect("broker-a", "slave-a")
    pair.run_for(ms=50)
    board = folded(StageBoard, pair)
    assert not any(flight.kind == "copy" for flight in board.flights.values())
    assert board.pair_words("slave-a") == ("follows nobody",)


def test_a_slave_that_is_far_behind_is_told_in_bytes_alone() -> None:
    pair = shop()
    pair.broker(slave_of="broker-a")
    pair.run_for(seconds=25)
    pair.freeze("slave-a")
    send(started_producer(pair), *(f"order {n}" for n in range(MOST_BLOCKS + 1)))
    board = folded(StageBoard, pair)
    assert board.pair_words("broker-a") == (f"not copied: {board.logs['broker-a'].end:,} bytes",)


def test_answers_that_wait_for_a_copy_are_counted_on_the_stage() -> None:
    lab = shop(broker_role="SYNC_MASTER", in_sync_replicas=2)
    producer = started_producer(lab)
    producer.send(Message("Orders", b"x")).start()
    lab.run_for(ms=100)
    assert folded(StageBoard, lab).pair_words("broker-a") == (
        "not copied: 1 record, 212 bytes; 1 answer waits for a copy", "1 answer waits for a copy",
    )  # fmt: skip
    lab.run_for(seconds=4)
    assert folded(StageBoard, lab).pair_words("broker-a") == ()


EASY_TO_READ = 18
"""The height of an entry in the smallest size with numbers that are easy to read."""


class SaysNothingOfCopies(StageBoard):
    """The stage without the line about master and slave, to compare with."""

    def pair_words(self, broker: str) -> tuple[str, ...]:
        return ()


def test_what_is_said_of_copies_makes_queues_smaller_only_where_they_are_easy_to_read() -> None:
    pair = shop(queues=4)
    pair.broker(slave_of="broker-a")
    pair.run_for(seconds=25)
    send(started_producer(pair), *(f"order {n}" for n in range(4)))
    pair.run_for(seconds=2)
    boards = folded(StageBoard, pair), folded(SaysNothingOfCopies, pair)
    seen = set()
    for height in range(600, 1_500, 20):
        with_words, without = (_card(board, height) for board in boards)
        says, size = "all is copied" in with_words, _heights(with_words)
        seen.add((says, size == _heights(without)))
        assert says or size == _heights(without)
        assert size == _heights(without) or min(size) >= EASY_TO_READ
    assert seen == {(True, True), (True, False), (False, True)}


def _card(board: StageBoard, height: float) -> str:
    """What is drawn on the master's card."""
    pieces = scene_of(board, Look(width=1_200, height=height, big=True)).cards["broker-a"].pieces
    return "".join(shapes for _, shapes in pieces.values())


def _heights(card: str) -> set[float]:
    """The heights of the entries of queues; those of the log are always 16."""
    found = re.findall(r'<g class="mq-token[^>]*>(?:<title>[^<]*</title>)?<rect [^>]*height="([\d.]+)"', card)
    return set(map(float, found)) - {16}
