"""Pop on the stage: what is out with a consumer, who waits, what a consumer owes: as the parts themselves know it."""

from __future__ import annotations

import re

import pytest

from mqlab import ConsumeConcurrentlyStatus, DefaultMQPushConsumer, Lab
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.scene.scene import Look, scene_of
from mqlab_widgets.scene.signs import drawn_in
from tests.widgets.folds import folded
from tests.widgets.screen import Screen
from tests.worlds import played, send, shop, started_producer


def board_of(lab: Lab) -> StageBoard:
    return folded(StageBoard, lab)


def popping(seconds: float, every_ms: int = 500) -> Lab:
    return played("demo-pop", seconds, every_ms=every_ms)


def test_pops_that_are_held_are_rings_at_no_queue_of_their_own() -> None:
    lab = popping(6)
    board = StageBoard(lab)
    fold = Fold(lab.history, [board])
    pops = lab.processes["broker-a"].controller.pop  # type: ignore[attr-defined]
    waiting = pops.pop_message_processor.pop_long_polling_service.polling_map
    counts = set()
    for turn in range(10):
        if turn % 2:
            lab.run_until_event("PopAnswered")
        else:
            lab.run_for(ms=41)
        fold.go_to(len(lab.history))
        truth = sum(len(requests) for requests in waiting.values())
        held = [pull for pull in board.held["broker-a"].values() if pull.queue_id == -1]
        svg = scene_of(board, Look(now_us=lab.world.now_us)).svg()
        assert len(held) == truth
        assert (f"{truth} wait for any queue" if truth else "nobody waits") in svg
        counts.add(truth)
    assert len(counts) > 1


def test_a_popped_message_is_pale_with_a_clock_until_it_is_acknowledged() -> None:
    lab = popping(3)
    popped = lab.run_until_event("MessagePopped")
    assert popped is not None
    queue = ("broker-a", popped.topic, popped.queue_id)
    assert board_of(lab).strips[queue].popped[popped.queue_offset].state == "out"
    before = scene_of(board_of(lab), Look(now_us=lab.world.now_us)).svg()
    lab.run_for(ms=100)
    later = scene_of(board_of(lab), Look(now_us=lab.world.now_us + 5_000_000)).svg()
    clocks = [re.findall(r'class="clock"[^>]* width="([\d.]+)"', svg)[:-1] for svg in (before, later)]
    assert min(map(float, clocks[0])) > max(map(float, clocks[1])) > 0
    lab.run_until(lambda: any(r.kind == "AckStored" and r.pop_time == popped.pop_time for r in lab.history))
    assert board_of(lab).strips[queue].popped[popped.queue_offset].state == "acked"


def test_what_is_handed_out_waits_no_more_although_the_offset_is_committed_later() -> None:
    lab = shop(seed=1, topic="Orders", enable_pop_buffer_merge=True)
    lab.set_message_request_mode("Orders", "readers", "POP")
    producer = started_producer(lab, "orders")
    send(producer, *(f"order {number}".encode() for number in range(40)), topic="Orders")
    consumer = lab.consumer("readers", client_rebalance=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("Orders", "*")
    consumer.register_message_listener(lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    lab.run_for(ms=10)
    before = scene_of(board_of(lab), Look()).svg()
    assert "Orders: 40 messages, 40 not consumed" in before
    assert not {"out", "time"} & drawn_in([before])
    lab.run(consumer.start())
    lab.run_until_event("PopAnswered")
    parts = lab.brokers[0].running()
    handed = parts.pop.pop_buffer_merge_service.get_latest_offset("Orders@readers@0")
    assert parts.consumer_offset_manager.query_offset("readers", "Orders", 0) < handed < 40
    board = board_of(lab)
    strip = board.strips["broker-a", "Orders", 0]
    assert (strip.waiting(), strip.unnoted()) == (40 - handed, handed)
    drawn = scene_of(board, Look()).svg()
    assert f"Orders: 40 messages, {40 - handed} not popped, {handed} popped but not noted" in drawn
    assert f"40 messages in 1 queues, {40 - handed} not popped" in "".join(board.text())
    assert {out.state for out in strip.popped.values()} == {"out"}
    lab.run_until(lambda: parts.consumer_offset_manager.query_offset("readers", "Orders", 0) == 40)
    assert (strip := board_of(lab).strips["broker-a", "Orders", 0]).waiting() == strip.unnoted() == 0


def test_a_consumer_owes_the_acknowledgements_that_it_knows_of() -> None:
    lab = popping(5)
    owed = set()
    for _ in range(12):
        lab.run_for(ms=777)
        board = board_of(lab)
        for name in ("consumer-1", "consumer-2"):
            (client,) = [
                client for client, *_ in lab.processes[name].clients  # type: ignore[attr-defined]
                if isinstance(client, DefaultMQPushConsumer)
            ]  # fmt: skip
            waits = sum(queue.wait_ack_msg_count for queue in client.pop_process_queues.values())
            assert board.consumers[name].owed == waits
            owed.add(waits)
            assert f"{waits} not acked" in scene_of(board, Look(width=1200)).svg()
    assert len(owed) > 2


def test_a_revived_message_is_marked_where_it_was_and_what_is_put_aside_is_counted() -> None:
    lab = popping(10, every_ms=2_000)
    revived = lab.run_until_event("MessageRevived")
    assert revived is not None
    board = board_of(lab)
    queue = ("broker-a", revived.topic, revived.queue_id)
    assert board.strips[queue].popped[revived.queue_offset].state == "revived"
    svg = scene_of(board, Look()).svg()
    assert "revived" in drawn_in([svg])
    on_the_wheel = sum(1 for record in lab.history if record.kind == "TimerMessageAccepted")
    off_the_wheel = sum(1 for record in lab.history if record.kind == "TimerMessageDelivered")
    assert f"timer wheel: {on_the_wheel - off_the_wheel} messages wait for their time" in svg


@pytest.mark.parametrize("merge", [False, True])
def test_the_parts_of_all_beats_make_the_picture_of_the_end(merge: bool) -> None:
    screen = Screen(played("demo-pop", 12, merge=merge))
    shown = dict(screen.session.scene().parts)
    screen.played(10)
    for beat in screen.beats:
        shown.update(beat["parts"])
    assert {key: svg for key, svg in shown.items() if svg} == screen.session.scene().parts
    assert scene_of(screen.session.cursor.stage(), screen.session.look()).parts == screen.session.scene().parts
    assert any("pull" in str(beat["acts"]) or "ring" in str(beat["acts"]) for beat in screen.beats)


def test_a_proxy_stands_below_its_broker_and_messages_of_5_x_clients_have_their_numbers() -> None:
    lab = played("through-a-proxy", 5, seed=1)
    board = board_of(lab)
    assert "proxy-1 (proxy) is running" in board.text()
    sent = [record.msg_id for record in lab.history.find("SendAttempted")]
    assert [board.label(key) for key in dict.fromkeys(sent)] == [str(n) for n in range(len(set(sent)))]
    for width in (1100, 700):
        scene = scene_of(board, Look(width=width))
        proxy, broker = scene.cards["proxy-1"], scene.cards["broker-a"]
        assert proxy.y >= broker.y + broker.height
        assert proxy.x >= broker.x
        assert "wire:consumer-1>proxy-1" in scene.parts or "wire:proxy-1>consumer-1" in scene.parts
        assert ">q-1<" not in scene.svg()
