"""The boards of Pop: what they say is what the broker has in its hands, and the crash that they foretell comes true."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.numbered import LATER, SUCCESS, numbered_message
from mqlab.scenarios.pop_check_points import open_counter
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.check_points import CheckPointsBoard
from mqlab_widgets.boards.merge_buffer import MergeBufferBoard
from mqlab_widgets.boards.pop_state import ACKED, CHANGED, HIDDEN, MEMORY, REVIVED, DeliveryKey, PopBoard
from mqlab_widgets.boards.popped_messages import PoppedMessagesBoard
from mqlab_widgets.boards.revive_queue import ReviveQueueBoard
from mqlab_widgets.boards.revive_ruler import ReviveRulerBoard
from tests.widgets.folds import expect_the_same_whichever_way, folded
from tests.worlds import shop, started_producer

BOARDS = (PoppedMessagesBoard, CheckPointsBoard, ReviveQueueBoard, ReviveRulerBoard, MergeBufferBoard)
TOPIC, GROUP = "Orders", "packers"
INVISIBLE_MS = 6_000

def popping(seconds: float, *, merges: bool = True) -> Lab:
    """Two consumers pop what one producer sends; of seven messages one is kept for too long, and another one fails."""
    lab = shop(topic=TOPIC, queues=2, enable_pop_buffer_merge=merges)
    lab.set_message_request_mode(TOPIC, GROUP, "POP")
    producer = started_producer(lab)
    for _ in range(2):
        consumer = lab.consumer(
            GROUP, client_rebalance=False, pop_invisible_time=INVISIBLE_MS, pop_batch_nums=2,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )  # fmt: skip
        consumer.subscribe(TOPIC, "*")

        async def listen(messages: Sequence[Any], context: Any) -> Any:
            number = int(messages[0].properties["UNIQ_KEY"][-4:], 16)
            first = messages[0].reconsume_times == 0
            await context.sleep(20_000 if first and number % 7 == 3 else 150)
            return LATER if first and number % 7 == 5 else SUCCESS

        consumer.register_message_listener(listen)
        lab.run(consumer.start())

    async def load() -> None:
        for number in range(10_000):
            await producer.send(numbered_message(TOPIC, number, 100))
            await producer.node.sleep(130)

    producer.node.spawn(load(), "load")
    return lab.run_for(seconds=seconds)


@cache
def played() -> Lab:
    """Without the merge buffer, as a broker is unless told otherwise."""
    return popping(12, merges=False)


def records(lab: Lab, kind: str, since: int = 0) -> list[Record]:
    return [record for record in lab.history.records(since, len(lab.history)) if record.kind == kind]


# -- the merge buffer -----------------------------------------------------------------------------------------------


def test_what_a_crash_is_said_to_lose_is_popped_again_and_no_more() -> None:
    lab = popping(11.7)
    before = folded(MergeBufferBoard, lab)
    foretold = {queue: before.loss_of(queue) for queue in before.committed}
    assert sum(loss.again for loss in foretold.values()) > sum(loss.acked for loss in foretold.values()) > 0
    assert all(0 < before.persisted[queue] < before.committed[queue] for queue in foretold if queue[2] == TOPIC)
    place = len(lab.history)
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=2)
    for queue, loss in foretold.items():
        known = {key.queue_offset for key in before.deliveries if key[:4] == queue}
        popped = {
            record.queue_offset
            for record in records(lab, "MessagePopped", place)
            if (record.node, record.group, record.topic, record.queue_id) == queue
        }
        assert len(known & popped) == loss.again
    after = folded(CheckPointsBoard, lab)
    assert any(point.done == "lost in the crash" for point in after.points.values())


def test_a_board_knows_the_time_though_nothing_has_happened_for_long() -> None:
    lab = popping(2)
    for node in list(lab.world.nodes):
        lab.crash(node)
    lab.run_for(seconds=30)
    assert lab.history.row(len(lab.history) - 1)[2] < 1_000 * (lab.now_ms - 29_000)
    assert folded(CheckPointsBoard, lab).now_us == pytest.approx(1_000 * lab.now_ms, abs=1)


def test_after_a_crash_no_batch_is_shown_that_was_in_memory_alone() -> None:
    lab = popping(11.7)
    before = folded(MergeBufferBoard, lab)
    assert any(not point.is_open for queue in before.committed for _, point in before._batches(queue))
    lab.crash("broker-a")
    after = folded(MergeBufferBoard, lab)
    assert [key for queue in after.committed for key, point in after._batches(queue) if not point.stored] == []


def test_what_is_in_memory_is_what_the_buffer_holds_bit_by_bit() -> None:
    lab = popping(2)
    board = MergeBufferBoard(lab)
    fold = Fold(lab.history, [board])
    seen = set()
    for _ in range(12):
        lab.run_for(ms=257)
        fold.go_to(len(lab.history))
        buffer = lab.processes["broker-a"].controller.pop.pop_buffer_merge_service.buffer
        truth = {
            (ck.topic, ck.queue_id, ck.start_offset, ck.pop_time): wrapper.bits
            for wrapper in buffer.values() if not wrapper.just_offset for ck in [wrapper.ck]
        }  # fmt: skip
        told = {
            (key.topic, key.queue_id, key.start_offset, key.pop_time): sum(
                1 << place for place, offset in enumerate(point.offsets) if point.acked.get(offset) == MEMORY
            )
            for key, point in board.points.items() if point.in_memory
        }  # fmt: skip
        assert told == truth
        seen |= set(truth.values())
    assert {0, 1} <= seen


# -- deliveries and check points ------------------------------------------------------------------------------------


def test_a_message_that_failed_is_hidden_anew_and_one_that_hangs_goes_to_the_retry_topic() -> None:
    board = folded(PoppedMessagesBoard, played())
    by_message: dict[str, list[str]] = {}
    for delivery in board.deliveries.values():
        by_message.setdefault(delivery.unique_key, []).append(delivery.state)
    ways = {tuple(states) for states in by_message.values()}
    assert (ACKED,) in ways
    assert {(REVIVED, ACKED), (REVIVED, HIDDEN)} & ways
    assert (CHANGED, HIDDEN) in ways
    assert "into the retry topic" in board.html()
    revived = records(played(), "MessageRevived")
    assert revived
    late = [delivery for delivery in board.deliveries.values() if delivery.state == REVIVED]
    assert {round((one.end_us - one.until_us) / 1_000) for one in late} <= {record.late_ms for record in revived}


def test_a_bit_is_set_where_the_broker_has_stored_an_acknowledgement() -> None:
    lab = played()
    board = folded(CheckPointsBoard, lab)
    told = {
        (key.topic, key.queue_id, offset, key.pop_time)
        for key, point in board.points.items() for offset in point.acked
    }  # fmt: skip
    stored = {
        (record.topic, record.queue_id, int(offset), record.pop_time)
        for record in records(lab, "AckStored") for offset in record.offsets.split(",")
    }  # fmt: skip
    assert told == stored
    assert len(board.text()) >= 6
    assert board.html().count("<svg") == 1


def test_a_reviver_stands_where_the_broker_says_and_decides_2_s_behind() -> None:
    lab = played()
    board = folded(ReviveQueueBoard, lab)
    services = lab.processes["broker-a"].controller.pop.ack_message_processor.revive_services
    for (_, revive_qid), reviver in board.revivers.items():
        assert reviver.committed == services[revive_qid].revive_offset
        decided = [entry for entry in reviver.entries.values() if entry.done]
        assert all(board.us_of(entry.point.pop_time) + 8_000_000 <= board.now_us for entry in decided)
    assert any(entry.done == "revived" for one in board.revivers.values() for entry in one.entries.values())
    words = " ".join(board.text())
    assert "waits for acks" in words
    assert "decided when the end time passes" in words


def test_a_ruler_is_passed_by_the_newest_due_time_before_its_check_point_is_decided() -> None:
    lab = played()
    board = ReviveRulerBoard(lab)
    fold = Fold(lab.history, [board])
    decided = 0
    for place, record in enumerate(lab.history.records(0, len(lab.history)), 1):
        if record.kind == "CheckPointSettled":
            fold.go_to(place, jump=False)
            ruler_us = board.us_of(record.pop_time) + 1_000 * (INVISIBLE_MS + 2_000)
            newest_us = board.us_of(board.revivers[record.node, record.revive_qid].end_time)
            assert newest_us > ruler_us
            decided += 1
        elif record.kind == "CheckPointWaits":
            fold.go_to(place, jump=False)
            newest_us = board.us_of(board.revivers[record.node, record.revive_qid].end_time)
            assert newest_us <= board.us_of(record.revive_time) + 2_000_000
    assert decided > 5


def test_the_newest_due_time_grows_with_each_note_that_is_read_and_begins_anew_with_each_round() -> None:
    lab = played()
    board = ReviveRulerBoard(lab)
    fold = Fold(lab.history, [board])
    told: set[str] = set()
    for place, record in enumerate(lab.history.records(0, len(lab.history)), 1):
        if record.kind in ("ReviveScanBegun", "ReviveCheckPointRead", "ReviveAckRead", "ReviveScanWaits"):
            fold.go_to(place, jump=False)
            end_time = board.revivers[record.node, record.revive_qid].end_time
            if record.kind == "ReviveScanBegun":
                assert end_time == 0
            elif record.kind == "ReviveCheckPointRead":
                assert end_time >= record.pop_time + record.invisible_ms - 1_000
            elif record.kind == "ReviveScanWaits":
                assert end_time == record.end_time
            told |= {line.rpartition("; ")[2].rstrip("0123456789. s") for line in board.text()}
    words = " | ".join(sorted(told))
    assert "to be read again" in words
    assert "short" in words
    assert "done)" in words
    assert "comes back" in " ".join(board.text()) or "all acknowledged" in " ".join(board.text())


def test_a_ruler_is_as_long_as_two_seconds_of_the_axis_and_filled_as_far_as_was_read() -> None:
    lab = Lab(seed=7)
    lab.finish_building(_six_orders(lab))
    board = ReviveRulerBoard(lab)
    fold = Fold(lab.history, [board])
    widths: set[float] = set()
    filled: list[list[float]] = []
    for place in range(1, len(lab.history) + 1):
        if lab.history.row(place - 1)[2] < 5_400_000:
            continue
        fold.go_to(place, jump=False)
        picture = ET.fromstring(board.html())
        rects = [shape for shape in picture.iter("rect") if shape.get("height") in ("22", "20")]
        widths |= {float(shape.get("width", 0)) for shape in rects if shape.get("class") == "ruler"}
        filled.append([float(shape.get("width", 0)) for shape in rects if shape.get("class") == "measured"])
        names = [shape.text for shape in picture.iter("text") if (shape.get("class") or "").startswith("at faint")]
        seconds = sorted(
            {
                float(line.get("x1", 0))
                for line in picture.iter("line")
                if line.get("y2") != line.get("y1") and line.get("class") == "tick"
            }
        )
        assert len(names) == len(seconds) > 8
        assert abs(max(widths) - 2 * (seconds[1] - seconds[0])) < 0.3
    assert max(widths) - min(widths) < 0.3
    assert max(len(lengths) for lengths in filled) == 6
    assert max(max(lengths, default=0) for lengths in filled) <= max(widths)
    assert any(0 < length < min(widths) for lengths in filled for length in lengths)


async def _six_orders(lab: Lab) -> None:
    """Six orders are popped, one after the other; of three nobody says anything."""
    worker = await open_counter(lab, orders=6, revive_queue_num=1)
    taken = []
    for _ in range(6):
        taken += await worker.pop(1, invisible_ms=8_000)
        lab.run_for(ms=900)
    await worker.ack(taken[1], taken[3], taken[4])
    lab.run_for(seconds=12)


# -- all of them ----------------------------------------------------------------------------------------------------


def test_a_fold_says_the_same_whichever_way_it_came() -> None:
    lab = played()
    length = len(lab.history)
    expect_the_same_whichever_way(lab, BOARDS, (length, 1, length // 2, 0, length // 2 + 1, length - 7))


@pytest.mark.parametrize("board", BOARDS)
def test_each_picture_is_well_formed_says_what_its_shapes_mean_and_has_a_twin(board: type[PopBoard]) -> None:
    lab = Lab(seed=1)
    lab.name_server()
    empty = folded(board, lab)
    assert "<svg" not in empty.html()
    assert len(empty.text()) == 1
    full = folded(board, popping(4) if board is MergeBufferBoard else played())
    picture = ET.fromstring(full.html())
    width, height = (float(picture.get(side, "0")) for side in ("width", "height"))
    for element in picture.iter():
        assert float(element.get("x", "0")) < width
        assert float(element.get("y", "0")) < height
    assert "acknowledged" in full.html()
    assert full.text() != empty.text()


def test_a_stored_check_point_outlives_a_crash_and_an_ack_in_memory_does_not() -> None:
    lab = popping(2)
    board = folded(CheckPointsBoard, lab)
    key, point = next((key, one) for key, one in board.points.items() if MEMORY in one.acked.values())
    point.stored = True
    place = DeliveryKey(*key[:4], next(iter(point.acked)), key.pop_time)
    assert board.deliveries[place].state == ACKED
    lab.crash("broker-a")
    board.on_process_ended(records(lab, "NodeCrashed")[-1])
    assert (point.done, point.acked) == ("", {})
    assert board.deliveries[place].state == HIDDEN
