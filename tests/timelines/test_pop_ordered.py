"""Pops in order: when a queue is blocked, when it is free again and what comes then, compared with a real RocketMQ."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.timelines import pop_cases
from tests.timelines.pop_player import Event, PopPlayer, found, keys

MERGE = pytest.mark.parametrize("merge", ["off", "on"])
TICK_MS = 100


def play(case: pop_cases.Case, merge: str, phase_ms: int = 0) -> list[Event]:
    """What came of a case."""
    return PopPlayer(phase_ms=phase_ms, enable_pop_buffer_merge=merge == "on").play(case)


def waits(events: list[Event]) -> list[float]:
    """How long behind the end of the invisible time of each pop the messages came again."""
    return [later["popTime"] - before["popTime"] - 10_000 for before, later in pairwise(found(events))]


@MERGE
def test_who_waits_is_woken_at_the_end_of_the_block(recorded: Any, merge: str, phase_ms: int) -> None:
    real = recorded(f"pop.ordered-no-ack-long-poll.buffer-merge-{merge}")
    ours = play(pop_cases.ordered_no_ack_long_poll, merge, phase_ms)
    assert keys(ours) == keys(real["runs"][0])[:5]
    assert all(0 <= wait <= TICK_MS + 5 for wait in waits(ours)), "the wheel rings at the next tick"
    least = min(wait for run in real["runs"] for wait in waits(run))
    assert 0 <= least <= TICK_MS


@MERGE
def test_without_waiting_the_next_pop_finds_them(recorded: Any, merge: str) -> None:
    real = recorded(f"pop.ordered-no-ack-short-poll.buffer-merge-{merge}")
    ours = play(pop_cases.ordered_no_ack_short_poll, merge)
    for run in real["runs"]:
        assert keys(ours) == keys(run)
    assert all(0 <= wait <= 65 for wait in waits(ours))


@MERGE
def test_acks_free_the_queue_in_order_only(recorded: Any, merge: str) -> None:
    real = recorded(f"pop.ordered-ack.buffer-merge-{merge}")
    ours = play(pop_cases.ordered_ack, merge)
    for run in real["runs"]:
        assert keys(ours) == keys(run)
        assert _answers(ours) == _answers(run)
    first, second, third, _ = found(ours)
    assert second["popTime"] - first["popTime"] == pytest.approx(1_000, abs=50), "the acks free the queue at once"
    assert third["popTime"] - second["popTime"] == pytest.approx(10_000, abs=TICK_MS + 50)


def _answers(events: list[Event]) -> list[tuple[str, int]]:
    """The answers to the acks and to the first four pops."""
    asked = [(event["event"], event["status"]) for event in events if event["event"].endswith("_response")]
    return asked[:7]


@MERGE
def test_the_same_attempt_gets_the_same_messages_again(recorded: Any, merge: str) -> None:
    real = recorded(f"pop.ordered-same-attempt.buffer-merge-{merge}")
    ours = play(pop_cases.ordered_same_attempt, merge)
    for run in real["runs"]:
        assert keys(ours) == keys(run)
        assert [event["status"] for event in ours if event["event"] == "pop_response"] == [
            event["status"] for event in run if event["event"] == "pop_response"
        ]


@pytest.mark.parametrize(("killed_ms", "again_ms", "times"), [(12_000, (30_000, 30_150), 1), (200, (200, 2_500), 0)])
def test_a_killed_broker_keeps_a_block_that_was_in_its_file(
    killed_ms: float, again_ms: tuple[float, float], times: int
) -> None:
    """The file is written every 10 s; who asks with waiting is woken at the end of a block that was read from it."""

    async def pop_for_30_s(player: PopPlayer) -> None:
        await player.send("m0", "m1")
        await player.pop(most=2, order=True, invisible_ms=30_000)
        await player.until(killed_ms)

    async def pop_again(player: PopPlayer) -> None:
        while len(player.pops()) < 2:
            await player.pop(most=2, order=True, poll_ms=15_000, quiet=True)
            await player.node.sleep(100)

    player = PopPlayer()
    player.play(pop_for_30_s)
    player.lab.crash("broker-a")
    player.lab.restart("broker-a")
    first, second = found(player.play(pop_again))
    assert again_ms[0] <= second["popTime"] - first["popTime"] <= again_ms[1]
    assert [message["reconsumeTimes"] for message in second["messages"]] == [times, times]
