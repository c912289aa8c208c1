"""The board of the timer wheel says what the broker's own wheel holds, at any event of the history."""

from __future__ import annotations

import pytest

from mqlab import Lab
from mqlab_widgets.boards.timer_wheel import TimerWheelBoard
from tests.widgets.folds import expect_the_same_whichever_way, folded
from tests.worlds import played


def board_of(lab: Lab, place: int | None = None) -> TimerWheelBoard:
    return folded(TimerWheelBoard, lab, place)


def counts(board: TimerWheelBoard, broker: str = "broker-a") -> dict[int, int]:
    return {slot: len(held) for slot, held in board.slots.get(broker, {}).items()}


@pytest.mark.parametrize("seconds", [3, 9, 21])
def test_the_board_has_the_slots_of_the_brokers_wheel(seconds: int) -> None:
    lab = played("timer-messages", seconds)
    timer = lab.brokers[0].running().timer
    assert timer is not None
    waiting = {slot.time_ms: slot.num for slot in timer.timer_wheel.waiting_slots(timer.curr_read_time_ms)}
    board = board_of(lab)
    assert counts(board) == waiting
    assert sum(waiting.values()) > 2
    assert min(waiting) >= board._read_ms("broker-a")
    for of_slot in waiting.values():
        assert f">{of_slot}</text>" in board.html()


def test_a_crash_leaves_the_board_with_what_the_next_broker_reads_from_its_files() -> None:
    lab = played("timer-messages", 9)
    lab.act("crash", node="broker-a")
    lab.run_for(seconds=2)
    lab.act("restart", node="broker-a")
    lab.run_for(seconds=1)
    timer = lab.brokers[0].running().timer
    assert timer is not None
    assert {*counts(board_of(lab))} == {s.time_ms for s in timer.timer_wheel.waiting_slots(timer.curr_read_time_ms)}


def test_the_board_can_be_scrubbed_and_says_in_words_what_it_draws() -> None:
    lab = played("timer-messages", 9)
    length = len(lab.history)
    expect_the_same_whichever_way(lab, [TimerWheelBoard], (length, 1, length // 2, 0, length - 7))
    text = "\n".join(board_of(lab).text())
    assert "broker-a: read up to 9 s, written up to 9 s" in text
    assert "not on the wheel yet" in "\n".join(
        line for place in range(0, length, 3) for line in board_of(lab, place).text()
    )
