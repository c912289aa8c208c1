"""The boards of ordered pops and of the key-value engine's records: what they say is what the broker holds."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from mqlab import Lab
from mqlab.scenarios.merge_buffer import GROUP, TOPIC
from mqlab.scenarios.ordered_kitchen import OrderedKitchen, open_ordered_kitchen
from mqlab_widgets.boards.ordered_pops import OrderedPopsBoard
from mqlab_widgets.boards.pop_records import CACHE, STORE, PopRecordsBoard
from mqlab_widgets.boards.pop_state import ACKED, DeliveryKey, PopBoard
from mqlab_widgets.boards.popped_messages import PoppedMessagesBoard
from tests.widgets.folds import expect_the_same_whichever_way, folded

QUEUE = ("broker-a", GROUP, TOPIC, 0)

def kitchen_of(lab: Lab, orders: int, **broker: bool) -> OrderedKitchen:
    """A kitchen with so many orders before it."""
    opened: list[OrderedKitchen] = []

    async def build() -> None:
        opened.append(await open_ordered_kitchen(lab, orders, **broker))

    lab.finish_building(build())
    return opened[0]


# -- ordered pops ---------------------------------------------------------------------------------------------------


def test_a_queue_is_blocked_for_all_but_one_attempt_until_all_is_done() -> None:
    lab = Lab(3)
    kitchen = kitchen_of(lab, 12)
    orders = lab.run(kitchen.take("monday", 4))
    lab.run(kitchen.ack(orders[0], orders[2]))
    assert lab.run(kitchen.take("tuesday", 4)) == []
    board = folded(OrderedPopsBoard, lab)
    batch = board.batches[QUEUE]
    info = lab.brokers[0].running().pop.consumer_order_info_manager.table[f"{TOPIC}@{GROUP}"][0]
    assert (batch.attempt, batch.pop_time) == (info.attempt_id, info.pop_time) == ("monday", info.pop_time)
    assert batch.acked == [0, 2]
    assert board.is_blocked(QUEUE)
    (line,) = board.text()
    assert "attempt monday has offsets 0 done, 1, 2 done, 3; blocked for every other attempt: 2 messages" in line
    assert "the group goes on at 1; turned away: tuesday" in line
    lab.run(kitchen.ack(orders[1], orders[3]))
    board = folded(OrderedPopsBoard, lab)
    assert not board.is_blocked(QUEUE)
    assert "free: all are done; the group goes on at 4" in board.text()[0]
    assert [order.queue_offset for order in lab.run(kitchen.take("tuesday", 4))] == [4, 5, 6, 7]
    assert folded(OrderedPopsBoard, lab).batches[QUEUE].attempt == "tuesday"


def test_time_frees_a_queue_and_a_change_gives_it_more() -> None:
    lab = Lab(4)
    kitchen = kitchen_of(lab, 6)
    (order,) = lab.run(kitchen.take("monday", 1, invisible_ms=5_000))
    assert folded(OrderedPopsBoard, lab).is_blocked(QUEUE)
    lab.run(kitchen.change(order, 20_000))
    lab.run_for(seconds=10)
    assert folded(OrderedPopsBoard, lab).is_blocked(QUEUE)
    assert lab.run(kitchen.take("tuesday", 1)) == []
    lab.run_for(seconds=15)
    board = folded(OrderedPopsBoard, lab)
    assert not board.is_blocked(QUEUE)
    assert "and can be seen again" in board.text()[0]
    assert len(lab.run(kitchen.take("tuesday", 1))) == 1


def test_after_a_crash_a_broker_knows_of_order_what_its_file_says() -> None:
    lab = Lab(5)
    kitchen = kitchen_of(lab, 12)
    lab.run(kitchen.ack(*lab.run(kitchen.take("monday", 3))))
    lab.run_for(seconds=25)
    lab.run(kitchen.take("tuesday", 3, invisible_ms=120_000))
    assert folded(OrderedPopsBoard, lab).batches[QUEUE].attempt == "tuesday"
    lab.crash("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=3)
    told = folded(OrderedPopsBoard, lab).batches[QUEUE]
    manager = lab.brokers[0].running().pop.consumer_order_info_manager
    known = manager.table[f"{TOPIC}@{GROUP}"][0]
    assert (told.attempt, told.pop_time) == (known.attempt_id, known.pop_time)
    assert told.attempt == "monday"


# -- records --------------------------------------------------------------------------------------------------------


def test_a_record_is_there_until_its_message_is_acknowledged() -> None:
    lab = Lab(6)
    kitchen = kitchen_of(lab, 8, pop_consumer_kv_service_enable=True)
    orders = lab.run(kitchen.pop(5, invisible_ms=10_000))
    lab.run(kitchen.ack(orders[1], orders[4]))
    board = folded(PopRecordsBoard, lab)
    store = lab.brokers[0].running().pop.pop_consumer_service.records.store
    assert len(board.records) == len(store) == 3
    assert {key.queue_offset for key in board.records} == {0, 2, 3}
    assert {one.held_in for one in board.records.values()} == {STORE}
    assert board.text()[0] == "5 written; 2 acknowledged"
    lab.run_for(seconds=15)
    board = folded(PopRecordsBoard, lab)
    assert board.records == {}
    assert board.deleted == {"acked": 2, "revived": 3}
    assert len(list(lab.history.find("MessageRevived"))) == 3
    popped = folded(PoppedMessagesBoard, lab)
    assert [one.state for one in popped.deliveries.values()].count(ACKED) == 2


def test_records_in_the_cache_are_lost_in_a_crash() -> None:
    lab = Lab(7)
    kitchen = kitchen_of(lab, 8, pop_consumer_kv_service_enable=True, enable_pop_buffer_merge=True)
    lab.run(kitchen.pop(4, invisible_ms=60_000))
    board = folded(PopRecordsBoard, lab)
    held = [one.held_in for one in board.records.values()]
    assert held == [CACHE] * 4
    assert "danger" in board.html()
    lab.crash("broker-a")
    after = folded(PopRecordsBoard, lab)
    assert after.records == {}
    assert after.deleted == {"crash": 4}


# -- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OrderedPopsBoard, PopRecordsBoard])
def test_each_picture_is_well_formed_and_a_fold_says_the_same_whichever_way_it_came(kind: type[PopBoard]) -> None:
    empty = Lab(1)
    empty.name_server()
    assert "<svg" not in folded(kind, empty).html()
    lab = Lab(8)
    kitchen = kitchen_of(lab, 30, pop_consumer_kv_service_enable=kind is PopRecordsBoard)
    for attempt in ("one", "two", "three"):
        taken = lab.run(kitchen.take(attempt, 18) if kind is OrderedPopsBoard else kitchen.pop(18, invisible_ms=9_000))
        lab.run(kitchen.ack(*taken[:5]))
        lab.run_for(seconds=4)
    board = folded(kind, lab)
    drawing = ET.fromstring(board.html())
    width, height = (float(drawing.get(side, "0")) for side in ("width", "height"))
    for element in drawing.iter():
        assert float(element.get("x", "0")) <= width
        assert float(element.get("y", "0")) <= height
    length = len(lab.history)
    expect_the_same_whichever_way(lab, [kind], (length, 1, length // 2, 0, length - 3))


def test_a_key_is_that_of_a_delivery() -> None:
    lab = Lab(9)
    kitchen = kitchen_of(lab, 3, pop_consumer_kv_service_enable=True)
    lab.run(kitchen.pop(2))
    board = folded(PopRecordsBoard, lab)
    assert {*board.records} == {*board.deliveries}
    assert all(isinstance(key, DeliveryKey) and board.deliveries[key].unique_key for key in board.records)
