"""When a consumer that holds too much pulls again, compared with a real RocketMQ 5.3.3.

All steps of `summary` are compared. "answer -> next attempt" has no constant, so it must be 0 here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from mqlab import ConsumeConcurrentlyStatus, Message, MessageQueue

from .recordings import recorded_events, step_of

MESSAGES = 150
ONE_CALL_MS = 60
"""What a real process was late by inside one process, at most, unless a pool or a new connection was involved."""


class Attempt(NamedTuple):
    """One turn of a pull request and what the process queue held at that moment."""

    t_ms: float
    let_through: bool
    count: int
    size: int
    span: int


class Played(NamedTuple):
    """What came out of a scenario."""

    attempts: list[Attempt]
    delivered: list[str]
    scene: Any
    end_ms: float

    def events(self, kind: str) -> list[Any]:
        """The events of a kind on topic T, up to the end of the scenario."""
        return [event for event in self.scene.events(kind, topic="T") if event["t_ms"] <= self.end_ms]


def play(stage: Any, phase_ms: int, end_ms: int, listen_ms: Any, **settings: Any) -> Played:
    """150 messages of 10 bytes wait in one queue, a consumer starts; `listen_ms(key)` is what a listener takes."""
    scene = stage(queues=1, phase_ms=phase_ms)
    producer = scene.producer()
    for number in range(MESSAGES):
        message = Message("T", b"0123456789", keys=f"m{number}")
        scene.lab.run(producer.send(message, queue=MessageQueue("T", "broker-a", 0)))
    scene.start_us = scene.lab.world.now_us
    delivered: list[str] = []

    async def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        delivered.append(message.keys)
        await context.sleep(listen_ms(message.keys))
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = scene.consumer(**settings)
    consumer.register_message_listener(listener)
    scene.lab.run(consumer.start())
    attempts = []
    while True:
        turn = scene.lab.run_until_event(("PullRequested", "FlowControlled", "ConsumeFinished"), topic="T")
        if scene.now_ms > end_ms:
            return Played(attempts, delivered, scene, end_ms)
        if turn.kind != "ConsumeFinished":
            (held,) = [queue for name, queue in consumer.process_queues.items() if name.topic == "T"]
            through = turn.kind == "PullRequested"
            attempts.append(Attempt(scene.now_ms, through, held.msg_count, held.msg_size, held.max_span()))


def play_count(stage: Any, phase_ms: int) -> Played:
    """The slow listener: one thread, 100 ms a message, a threshold of 20 messages."""
    return play(
        stage, phase_ms, 6_990, lambda _: 100,
        pull_threshold_for_queue=20, consume_thread_min=1, consume_thread_max=1,
    )  # fmt: skip


def play_span(stage: Any, phase_ms: int) -> Played:
    """The first message blocks one of two threads for 5 s, the others take 20 ms; a limit of 10 for the span."""
    return play(
        stage, phase_ms, 6_700, lambda key: 5_000 if key == "m0" else 20,
        consume_concurrently_max_span=10, consume_thread_min=2, consume_thread_max=2,
    )  # fmt: skip


def pulls(played: Played) -> list[tuple[int, int, int]]:
    asked = played.events("PullRequested")
    return [(e["queue_offset"], e["sys_flag"], e["commit_offset"]) for e in asked]


def recorded_pulls(run: list[Any]) -> list[tuple[int, int, int]]:
    return [(e["queueOffset"], e["sysFlag"], e["commitOffset"]) for e in recorded_events(run, "request")]


SCENARIOS = [("flow-control.count", play_count), ("flow-control.span", play_span)]


@pytest.mark.parametrize(("name", "play_it"), SCENARIOS)
def test_the_requests_and_deliveries_are_those_of_the_recording(
    stage: Any, recorded: Any, name: str, play_it: Any, phase_ms: int
) -> None:
    """Which offsets are pulled, what is committed on the way, and which messages come in which order."""
    played = play_it(stage, phase_ms)
    for run in recorded(name)["runs"]:
        assert pulls(played) == recorded_pulls(run)
        real = [e["key"] for e in recorded_events(run, "deliver")]
        # A listener of exactly 100 ms is a few messages ahead of one that overslept each time.
        assert played.delivered[: len(real)] == real
        assert len(played.delivered) - len(real) <= 4
        answered = [e["nextBeginOffset"] for e in recorded_events(run, "response")]
        ours = [e["next_offset"] for e in played.events("PullFinished")]
        assert ours == answered


@pytest.mark.parametrize(("name", "play_it"), SCENARIOS)
def test_a_new_queue_is_first_pulled_half_a_second_after_it_was_taken(
    stage: Any, recorded: Any, smallest: Any, name: str, play_it: Any, phase_ms: int
) -> None:
    timeline = recorded(name)
    step = "process queue created (rebalance) -> first pull"
    assert step_of(timeline, step)["constant"] == "dispatch delay 500"
    played = play_it(stage, phase_ms)
    (taken,) = played.events("QueueAllocated")
    ours = played.attempts[0].t_ms - taken["t_ms"]
    assert 500 <= ours <= 500 + ONE_CALL_MS
    assert abs(ours - smallest(timeline, step)) <= ONE_CALL_MS


@pytest.mark.parametrize(("name", "play_it"), SCENARIOS)
def test_a_refused_pull_tries_again_every_50_ms(
    stage: Any, recorded: Any, smallest: Any, name: str, play_it: Any, phase_ms: int
) -> None:
    timeline = recorded(name)
    step = "distance of pull attempts while flow control refuses (median)"
    assert step_of(timeline, step)["constant"].endswith(" 50")
    played = play_it(stage, phase_ms)
    distances = {
        round(later.t_ms - earlier.t_ms, 3) for earlier, later in pairwise(played.attempts) if not earlier.let_through
    }
    assert distances == {50}
    assert abs(smallest(timeline, step) - 50) <= 3 + 0.05 * 50


@pytest.mark.parametrize(("name", "play_it"), SCENARIOS)
def test_after_an_answer_the_next_attempt_comes_at_once(
    stage: Any, recorded: Any, smallest: Any, name: str, play_it: Any, phase_ms: int
) -> None:
    timeline = recorded(name)
    step = "answer -> next attempt"
    assert step_of(timeline, step)["constant"].startswith("none")
    played = play_it(stage, phase_ms)
    for answered in played.events("PullFinished"):
        (after, *_) = [attempt.t_ms for attempt in played.attempts if attempt.t_ms >= answered["t_ms"]]
        assert after - answered["t_ms"] <= 1
    assert smallest(timeline, step) <= ONE_CALL_MS


@pytest.mark.parametrize(("name", "play_it"), SCENARIOS)
def test_the_most_that_is_ever_held_is_that_of_the_recording(
    stage: Any, recorded: Any, name: str, play_it: Any, phase_ms: int
) -> None:
    """Count: 20 are let through and 32 more come: 52. Span: all but the blocked message goes, so 1 + 32 = 33.

    The largest is that of the largest count; the last 22 messages make the count smaller and the span wider, up to 149.
    """
    timeline = recorded(name)
    step = step_of(timeline, "largest (cachedCount, bytes, span) seen")
    attempts = play_it(stage, phase_ms).attempts
    most = max([a.count, a.size, a.span] for a in attempts)
    assert step["per_run"] == [most] * len(step["per_run"])
    for run in timeline["runs"]:
        assert max(a.span for a in attempts) == max(e["span"] for e in recorded_events(run, "pull_attempt"))


def test_a_pull_is_let_through_as_soon_as_no_more_than_20_messages_are_held(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    """20 itself pulls; the recorded samples were taken up to 4 ms after the attempt, the smallest is the right one."""
    timeline = recorded("flow-control.count")
    attempts = play_count(stage, phase_ms).attempts
    through = [[a.count, a.size, a.span] for a in attempts[1:] if a.let_through]
    sampled = step_of(timeline, "(cachedCount, cachedBytes, span) sampled at the attempts")["per_run"]
    assert through == min(sampled)
    assert all(a.count > 20 for a in attempts if not a.let_through)
    assert step_of(timeline, "rule")["note"].startswith("refused while count > 20 (20 itself pulls)")


def test_a_slow_listener_is_pulled_for_after_12_and_after_32_of_its_calls(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    """32 held, 12 consumed: 20. Then 52, 32 consumed: 20 again. Each 100 ms; the next turn of 50 ms notices."""
    asked = [a.t_ms for a in play_count(stage, phase_ms).attempts if a.let_through]
    for calls, ours, number in zip((12, 32), (b - a for a, b in pairwise(asked)), (0, 1), strict=True):
        real = []
        for run in recorded("flow-control.count")["runs"]:
            sent = [e["t_ms"] for e in recorded_events(run, "request")]
            real.append(sent[number + 1] - sent[number])
        assert calls * 100 <= ours <= calls * 100 + 50 + 5
        # Of a real listener's calls the shortest took 100 ms, but each may be late by some milliseconds.
        assert ours - 55 <= min(real) <= calls * 105 + 50 + ONE_CALL_MS


def test_the_span_limit_bounds_what_is_held_not_the_distance_to_the_blocked_message(
    stage: Any, recorded: Any, phase_ms: int
) -> None:
    """While m0 blocks, the rest leaves the tree: then the span is 0 and the next 32 come, all through the queue."""
    timeline = recorded("flow-control.span")
    played = play_span(stage, phase_ms)
    through = [[a.count, a.size, a.span] for a in played.attempts[1:] if a.let_through]
    possible = [
        sample for run in step_of(timeline, "(cachedCount, cachedBytes, span) sampled")["per_run"] for sample in run
    ]
    assert through == [[1, 10, 0]] * 5
    assert possible.count([1, 10, 0]) >= len(possible) - 2
    assert all(a.span > 10 for a in played.attempts if not a.let_through)
    assert "it reached 149 here" in step_of(timeline, "rule")["note"]
    (blocked,) = [e for e in played.events("ConsumeFinished") if e["queue_offset"] == 0]
    meanwhile = [e["queue_offset"] for e in played.events("ConsumeStarted") if e["t_ms"] < blocked["t_ms"]]
    assert max(meanwhile) == 149


def test_nothing_is_committed_while_the_first_message_is_blocked(stage: Any, recorded: Any, phase_ms: int) -> None:
    played = play_span(stage, phase_ms)
    assert {commit for _, _, commit in pulls(played)} == {0}
    for run in recorded("flow-control.span")["runs"]:
        assert {commit for _, _, commit in recorded_pulls(run)} == {0}
