"""A broker that goes down between a pop and the end of the invisible time, compared with a real RocketMQ 5.3.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.timelines.pop_player import Event, PopPlayer, found, keys

INVISIBLE_MS = 40_000
EVERY = [f"m{number}" for number in range(10)]
NOT_ACKED = EVERY[3:]


async def pop_10_ack_3(player: PopPlayer) -> None:
    """Send and pop ten messages, and acknowledge the first three."""
    await player.send(*EVERY)
    batch = await player.pop(invisible_ms=INVISIBLE_MS)
    for message in batch[:3]:
        await player.ack(message)


def pop_until(until_ms: float) -> Callable[[PopPlayer], Any]:
    """Pop every 100 ms."""
    return lambda player: player.pop_every(100, until_ms, invisible_ms=INVISIBLE_MS)


def play(
    merge: str, how: str, down_ms: float, *, until_ms: float = 112_000, phase_ms: int = 0, away_ms: float = 0
) -> list[Event]:
    """Pop, let the broker go down so long behind the pop and come back, and pop on."""
    player = PopPlayer(phase_ms=phase_ms, enable_pop_buffer_merge=merge == "on")
    player.play(pop_10_ack_3)
    popped_ms = found(player.events)[0]["popTime"]
    player.play(lambda player: player.until(popped_ms + down_ms))
    if how == "clean-stop":
        player.broker.running().shutdown().play()
    player.lab.crash("broker-a")
    player.lab.run_for(ms=away_ms)
    player.lab.restart("broker-a")
    return player.play(pop_until(until_ms))


def came_again(events: list[Event], up_to: int = len(NOT_ACKED)) -> tuple[list[str], set[tuple[int, str]]]:
    """The first messages that came again, and how often and from what kind of topic."""
    again = [message for pop in keys(events)[1:] for message in pop][:up_to]
    return [key for key, _, _ in again], {(times, flag) for _, times, flag in again}


def recorded_first(real: Event) -> list[list[str]]:
    """What came again first in each run."""
    (step,) = (s for s in real["summary"] if s["step"].startswith("which messages came again first"))
    return [sorted(run) for run in step["per_run"]]


@pytest.mark.parametrize("merge", ["off", "on"])
@pytest.mark.parametrize(
    ("how", "name", "down_ms"),
    [
        ("clean-stop", "clean-stop-18s-after-pop", 18_000),
        ("clean-stop", "clean-stop-2s-after-pop", 1_600),
        ("kill", "kill-18s-after-pop", 18_000),
    ],
)
def test_only_what_is_not_acknowledged_comes_again_when_the_check_point_was_stored(
    recorded: Any, merge: str, how: str, name: str, down_ms: float
) -> None:
    real = recorded(f"pop.restart.{name}.buffer-merge-{merge}")
    ours = play(merge, how, down_ms)
    again, where = came_again(ours)
    assert all(sorted(again) == run for run in recorded_first(real))
    assert where == {(1, "1")}, "from the retry topic"
    first = found(ours)[1]
    late_ms = first["popTime"] - found(ours)[0]["popTime"] - INVISIBLE_MS
    assert 2_000 <= late_ms <= 8_000


def test_killed_soon_without_the_buffer_the_offset_counts_as_far_as_it_was_flushed(recorded: Any) -> None:
    """The pop's offset is in the file 5 s later at most: 4.8 s before a flush it is not, right before one it is."""
    real = recorded("pop.restart.kill-2s-after-pop.buffer-merge-off")
    outcomes = set()
    for phase_ms in (10_000, 11_000, 12_000, 13_000, 14_000):
        ours = play("off", "kill", 1_600, phase_ms=phase_ms)
        again, where = came_again(ours)
        outcomes.add(tuple(again))
        if where == {(1, "1")}:
            assert all(sorted(again) == run for run in recorded_first(real))
        else:
            assert again == EVERY[:7]
            assert where == {(0, "0")}
    assert len(outcomes) == 2


def test_killed_before_the_flush_all_come_at_once_and_the_unacknowledged_ones_once_more(recorded: Any) -> None:
    real = recorded("pop.restart.kill-at-once-after-pop.buffer-merge-off")
    ours = play("off", "kill", 200, until_ms=82_000, away_ms=8_000)
    (step,) = (s for s in real["summary"] if s["step"].startswith("the pops after the restart"))
    for run in step["per_run"]:
        assert [(pop[1], pop[2], pop[3]) for pop in run][:2] == [
            (EVERY, 0, "normal topic"),
            (NOT_ACKED, 1, "retry topic"),
        ]
    _, again, revived, *_ = keys(ours)
    assert again == [(key, 0, "0") for key in EVERY]
    assert revived == [(key, 1, "1") for key in NOT_ACKED]


@pytest.mark.parametrize("down_ms", [200, 1_600, 9_900])
def test_killed_with_the_buffer_on_all_ten_come_again_at_once_acknowledged_ones_too(down_ms: float) -> None:
    """There is no recording of it as a time-line, but the same was seen on a real broker: nothing had been written."""
    ours = play("on", "kill", down_ms)
    first, again, *_ = found(ours)
    assert [(m["key"], m["reconsumeTimes"], m["retryFlag"]) for m in again["messages"]] == [
        (key, 0, "0") for key in EVERY
    ]
    assert again["popTime"] - first["popTime"] < down_ms + 2_000
