"""How long a pull is held, and how fast a message reaches a held one, compared with a real RocketMQ 5.3.3."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from mqlab.protocol import RequestCode

SENDS_MS = (66_000, 72_000, 88_000, 99_900)


def play_empty_queue(stage: Any, phase_ms: int, **broker: Any) -> Any:
    scene = stage(queues=1, phase_ms=phase_ms, **broker)
    consumer = scene.consumer()
    scene.lab.run(consumer.start())
    producer = None
    for number, at_ms in enumerate(SENDS_MS):
        scene.at(at_ms)
        producer = producer or scene.producer()
        scene.send(producer, f"m{number}")
    scene.at(100_500)
    return scene


def held_ms(scene: Any) -> list[float]:
    """How long each pull that came back empty was held."""
    return [e["held_us"] / 1_000 for e in scene.events("PullWoken", topic="T", reason="timed out")]


def test_an_empty_pull_is_held_for_15_to_20_seconds(stage: Any, recorded: Any, phase_ms: int) -> None:
    timeline = recorded("long-poll.empty-queue")
    real = [int(ms) for ms in re.findall(r"\d{5}", timeline["summary"][1]["step"])]
    assert len(real) == 10
    assert all(15_000 <= hold <= 20_100 for hold in real)
    holds = held_ms(play_empty_queue(stage, phase_ms))
    assert len(holds) >= 3
    assert all(15_000 <= hold <= 20_100 for hold in holds)


def test_a_pull_that_begins_right_after_a_pass_is_held_for_20_seconds(stage: Any, phase_ms: int) -> None:
    """Each re-pull after a time-out begins right after a pass, so it is a little too young at the third pass."""
    first, *later = held_ms(play_empty_queue(stage, phase_ms))
    assert first < 20_000
    assert later[0] >= 19_990


def test_the_first_pull_comes_a_second_and_a_half_after_the_start(
    stage: Any, recorded: Any, smallest: Any, phase_ms: int
) -> None:
    """1 s minimum gap of rebalances since the service was made, and 500 ms before the new queue is pulled."""
    scene = play_empty_queue(stage, phase_ms)
    (first, *_) = scene.events("PullRequested", topic="T")
    assert 1_495 <= first["t_ms"] <= 1_560
    real = [e["t_ms"] for run in recorded("long-poll.empty-queue")["runs"] for e in run if e.get("code") == 11]
    assert min(real) >= 1_495


def test_the_pulls_carry_the_offsets_and_flags_of_the_real_ones(stage: Any, recorded: Any, phase_ms: int) -> None:
    """The first pull commits nothing; the commit bit is set once something is consumed."""

    def distinct(requests: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        return requests[:1] + [b for a, b in pairwise(requests) if a != b]

    ours = distinct(
        [
            (e["queue_offset"], e["sys_flag"], e["commit_offset"])
            for e in play_empty_queue(stage, phase_ms).events("PullRequested", topic="T")
        ]
    )
    possible = set()
    for run in recorded("long-poll.empty-queue")["runs"]:
        sent = [e for e in run if e["event"] == "request" and e["code"] == RequestCode.PULL_MESSAGE]
        possible.update((e["queueOffset"], e["sysFlag"], e["commitOffset"]) for e in sent)
        assert {e["suspendTimeoutMillis"] for e in sent} == {15_000}
        assert {e["maxMsgNums"] for e in sent} == {32}
    assert ours[:2] == [(0, 2, -1), (0, 2, 0)]
    assert set(ours) <= possible
    assert [offset for offset, _, _ in ours if offset] == sorted(offset for offset, _, _ in ours if offset)


def test_a_message_reaches_a_held_pull_within_milliseconds(stage: Any, recorded: Any, phase_ms: int) -> None:
    """Nothing but the 1 ms loop of the dispatch thread and the network lies between; the real median was 40 ms of load.
    """
    assert recorded("long-poll.empty-queue")["summary"][2]["constant"].startswith("none")
    scene = play_empty_queue(stage, phase_ms)
    stored = [e["t_ms"] for e in scene.events("MessageStored", topic="T")]
    delivered = [t for t, _, _, _ in scene.delivered]
    assert len(delivered) == len(SENDS_MS)
    assert all(0 < d - s <= 3 for s, d in zip(stored, delivered, strict=True))


def test_after_an_answer_the_next_pull_goes_out_at_once(stage: Any, phase_ms: int) -> None:
    scene = play_empty_queue(stage, phase_ms)
    asked = [e["t_ms"] for e in scene.events("PullRequested", topic="T")]
    finished = [e["t_ms"] for e in scene.events("PullFinished", topic="T")]
    assert all(abs(again - answered) <= 1 for answered, again in zip(finished, asked[1:], strict=True))


def play_without_long_polling(stage: Any, phase_ms: int) -> Any:
    scene = stage(queues=1, phase_ms=phase_ms, long_polling_enable=False)
    scene.lab.run(scene.consumer().start())
    scene.at(11_000)
    producer = scene.producer()
    for number, at_ms in enumerate((12_300, 17_050, 23_700)):
        scene.at(at_ms)
        scene.send(producer, f"m{number}")
    scene.at(26_000)
    return scene


def test_without_long_polling_a_pull_is_held_for_1_to_2_seconds(stage: Any, recorded: Any, phase_ms: int) -> None:
    timeline = recorded("long-poll.long-polling-disabled")
    assert timeline["summary"][1]["median_ms"] == 1998
    holds = held_ms(play_without_long_polling(stage, phase_ms))
    assert all(1_000 <= hold <= 2_100 for hold in holds)
    assert all(hold >= 1_990 for hold in holds[1:6])


def test_without_long_polling_a_message_waits_for_the_next_pass(stage: Any, phase_ms: int) -> None:
    """Arrival wakes nobody in this mode: it takes 0 to 1000 ms until the pass of the hold service looks."""
    scene = play_without_long_polling(stage, phase_ms)
    stored = [e["t_ms"] for e in scene.events("MessageStored", topic="T")]
    delivered = [t for t, _, _, _ in scene.delivered]
    assert len(delivered) == 3
    assert all(0 < d - s <= 1_010 for s, d in zip(stored, delivered, strict=True))
    assert any(d - s > 50 for s, d in zip(stored, delivered, strict=True))


def test_without_long_polling_the_client_still_asks_for_15_seconds(stage: Any) -> None:
    scene = play_without_long_polling(stage, 0)
    assert {e["hold_ms"] for e in scene.events("PullHeld", topic="T")} == {1_000}
