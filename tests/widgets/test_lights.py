"""Invariant lights: what breaks a rule, what RocketMQ does not promise, and from which event on a lamp says so."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab
from mqlab.explore import RULES
from mqlab.explore.rule import Rule
from mqlab.scenarios import get
from mqlab.trace.events.broker import BrokerStarted, MessageParked, OffsetCommitted, ParkedMessageDelivered
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Fold
from mqlab_widgets.boards.lights import LEFT_OUT, LightsBoard
from mqlab_widgets.boards.lights_judges import WhilePlaying
from tests.worlds import played, send, started_consumer, started_producer


def shown(lab: Lab, kind: type[LightsBoard] = LightsBoard) -> tuple[LightsBoard, Fold]:
    board = kind(lab)
    fold = Fold(lab.history, [board])
    fold.go_to(len(lab.history))
    return board, fold


def states(board: LightsBoard) -> dict[str, str]:
    return {type(lamp.rule).__name__: lamp.state for lamp in board.lamps()}


def test_every_rule_of_exploring_has_a_lamp_or_a_reason_why_not() -> None:
    shown_rules = {rule.__name__ for rule in (*LightsBoard.rules, *LightsBoard.live_rules)}
    left_out = [name for names in LEFT_OUT.values() for name in names]
    assert sorted([*shown_rules, *left_out]) == sorted(rule.__name__ for rule in RULES)


@pytest.mark.parametrize(("is_foul", "state"), [(False, "broken"), (True, "excused")])
def test_an_offset_that_goes_back_is_red_without_faults_and_excused_with_them(is_foul: bool, state: str) -> None:
    lab = Lab(seed=3)
    node = lab.node("broker-a")
    for offset in (7, 3):
        node.call_later(1, lab.world.hooks.emit, OffsetCommitted("readers", "Orders", 0, offset, "asked"))
        lab.run_for(seconds=60)
        if is_foul:
            lab.freeze("broker-a")
            lab.thaw("broker-a")
    board, _ = shown(lab)
    assert states(board)["OffsetsOnlyGrow"] == state


def test_what_rocketmq_does_not_promise_is_named() -> None:
    lab = played("power-cut", 3)
    board, _ = shown(lab)
    assert states(board)["AcknowledgedSurvives"] == "excused"
    assert "as RocketMQ may (acknowledged before the flush)" in board.text()[0]
    assert "With ASYNC_FLUSH a broker answers SEND_OK" in board.html()


def test_rules_of_order_have_nothing_to_judge_where_nobody_consumes_in_order() -> None:
    board, _ = shown(get("power-cut").build(7))
    assert states(board)["InOrder"] == "idle"
    assert "no group consumes in order" in board.html()


def test_orderly_consumption_keeps_its_order_while_a_broker_dies() -> None:
    lab = get("push-orderly").build(7)
    lab.run_for(seconds=5).crash("broker-a")
    lab.run_for(seconds=3).restart("broker-a")
    lab.run_for(seconds=10)
    board, _ = shown(lab)
    assert states(board)["InOrder"] == states(board)["OneOwner"] == "holds"
    assert sum(1 for _ in lab.history.find("ConsumeStarted", reconsume_times=0)) > 10


class NothingIsStored(Rule):
    """Nothing is ever stored."""

    kinds = ("MessageStored",)

    def on_event(self, record: Record) -> None:
        self.found(record.row, f"a message at offset {record.queue_offset}")


class Strict(LightsBoard):
    """Lamps that go red at the first message, by the events and by the world."""

    rules = (NothingIsStored,)
    live_rules = (NothingIsStored,)


def test_a_lamp_is_red_from_the_event_that_broke_its_rule() -> None:
    lab = get("first-message").build(7)
    board, fold = shown(lab, Strict)
    lab.run_for(seconds=2)
    fold.go_to(len(lab.history))
    stored = lab.history.last("MessageStored")
    assert stored is not None
    place = lab.history.index_of(next(lab.history.find("MessageStored")).at)
    assert board.text()[0].startswith("broken ")
    assert f'data-place="{place + 1}"' in board.html()
    fold.go_to(place)
    assert states(board) == {"NothingIsStored": "holds"}
    fold.go_to(place + 1)
    assert board.text()[0] == "broken 1 times: Nothing is ever stored. First: a message at offset 0"


def test_rules_that_look_at_the_world_say_from_when_on_they_judge() -> None:
    lab = played("held-back-by-count", 3)
    passed = len(lab.history)
    late, _ = shown(lab)
    assert f"(judged from event {passed:,} on, when this view was opened)" in late.text()[-1]
    fresh = get("held-back-by-count").build(7)
    before = WhilePlaying.of(fresh, LightsBoard.live_rules)
    fresh.run_for(seconds=3)
    again, _ = shown(fresh)
    assert WhilePlaying.of(fresh, LightsBoard.live_rules) is before
    assert again.text()[-1].startswith("holds: A consumer that holds more of a queue than a threshold does not pull")


def test_a_delayed_message_that_comes_early_is_seen_while_the_world_plays() -> None:
    lab = Lab(seed=3)
    board, fold = shown(lab)
    lab.name_server()
    node = lab.broker("broker-a").node
    for event in (
        MessageParked("Orders", 0, "id-1", 3, 10_000),
        ParkedMessageDelivered("Orders", 0, 0, "id-1", 3, 0, 0),
    ):
        node.call_later(1, lab.world.hooks.emit, event)
    lab.run_for(seconds=1)
    fold.go_to(len(lab.history))
    assert states(board)["RetriesComeInTime"] == "broken"


def test_a_view_that_was_there_first_judges_every_start_of_a_broker() -> None:
    lab = Lab(seed=3)
    board, fold = shown(lab)
    lab.name_server()
    lab.broker("broker-a", flush_disk_type="ASYNC_FLUSH")
    lab.create_topic("Orders", 1)
    send(started_producer(lab), *(b"%d" % number for number in range(20)), topic="Orders")
    lab.power_off("broker-a")
    lab.restart("broker-a")
    lab.run_for(seconds=2)
    fold.go_to(len(lab.history))
    assert states(board)["RecoveredIsWhole"] == "holds"


def test_machines_that_are_no_process_of_the_lab_are_not_judged_live() -> None:
    lab = Lab(seed=3)
    board, _ = shown(lab)
    lab.node("stranger").call_later(1, lab.world.hooks.emit, BrokerStarted("b", 0, "10.0.0.1:10911"))
    lab.run_for(seconds=1)
    assert states(board)["RecoveredIsWhole"] == "holds"


def test_thresholds_are_kept_up_to_one_answer_while_pulls_are_refused() -> None:
    lab = Lab(seed=3)
    board = LightsBoard(lab)
    fold = Fold(lab.history, [board])
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("Orders", 1)
    send(started_producer(lab), *(b"%d" % number for number in range(80)), topic="Orders")

    async def slowly(messages: object, context: Any) -> None:
        await context.sleep(100_000)

    one_by_one = {"pull_threshold_for_queue": 10, "consume_thread_min": 1, "consume_thread_max": 1}
    started_consumer(lab, slowly, topic="Orders", **one_by_one)
    lab.run_for(seconds=5)
    fold.go_to(len(lab.history))
    assert lab.history.last("FlowControlled") is not None
    assert states(board)["ThresholdsHold"] == "holds"
    assert "judged from" not in board.text()[-1]
