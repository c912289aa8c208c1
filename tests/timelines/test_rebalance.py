"""Who owns which queue when consumers join, leave, are killed and hang, compared with a real RocketMQ 5.3.3."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mqlab import Message, MessageQueue

STEPS_MS = {"B joins": 30_000, "C joins": 45_000, "B leaves": 60_000, "C killed": 75_000, "D joins": 90_000}
D_STOPS_MS, D_CONTINUES_MS, END_MS = 105_000, 265_000, 285_000


def play(stage: Any) -> Any:
    scene = stage(queues=8)
    consumers = {}

    def join(name: str) -> None:
        consumers[name] = scene.consumer(name, listen_ms=100, consume_thread_min=4, consume_thread_max=4)
        scene.lab.run(consumers[name].start())
        scene.started[name] = scene.now_ms

    scene.started = {}
    join("A")
    scene.at(9_800)
    producer = scene.producer()

    async def load() -> None:
        for number in range(2_700):
            queue = MessageQueue("T", "broker-a", number % 8)
            await producer.send(Message("T", b"x", keys=f"p{number}"), queue=queue)
            await producer.node.sleep(100)

    producer.node.spawn(load(), "load")
    scene.at(STEPS_MS["B joins"])
    join("B")
    scene.at(STEPS_MS["C joins"])
    join("C")
    scene.at(STEPS_MS["B leaves"])
    scene.lab.run(consumers["B"].shutdown())
    scene.at(STEPS_MS["C killed"])
    scene.lab.crash("C")
    scene.at(STEPS_MS["D joins"])
    join("D")
    scene.at(D_STOPS_MS)
    scene.lab.freeze("D")
    scene.at(D_CONTINUES_MS)
    scene.lab.thaw("D")
    scene.at(END_MS)
    return scene


@pytest.fixture
def scene(stage: Any, once: Any) -> Any:
    return once(play, stage)


@pytest.fixture
def timeline(recorded: Any) -> Any:
    return recorded("rebalance.join-leave-kill-stop")


def changes(scene: Any, who: str) -> list[tuple[float, frozenset[int]]]:
    """When the set of T's queues that a consumer owns changed, and to what."""
    owned: set[int] = set()
    found = []
    for record in scene.lab.history.find(("QueueAllocated", "QueueDropped"), node=who, topic="T"):
        owned = owned | {record.queue_id} if record.kind == "QueueAllocated" else owned - {record.queue_id}
        found.append(((record.ts_us - scene.start_us) / 1_000, frozenset(owned)))
    return found


def owns_since(scene: Any, who: str, count: int, after_ms: float) -> float:
    """When, after a time, a consumer came to own so many queues."""
    return next(t for t, owned in changes(scene, who) if t >= after_ms and len(owned) == count)


def first_pull(scene: Any, who: str, queues: Any, after_ms: float) -> float:
    """When a consumer first pulled one of these queues after a time."""
    return next(
        e["t_ms"]
        for e in scene.events("PullRequested", node=who, topic="T")
        if e["t_ms"] >= after_ms and e["queue_id"] in queues
    )


def notices(scene: Any, who: str, after_ms: float, before_ms: float) -> list[float]:
    """When the broker told a client that the members of its group changed."""
    received = scene.events("RequestReceived", node=who, request_name="NOTIFY_CONSUMER_IDS_CHANGED")
    return [e["t_ms"] for e in received if after_ms <= e["t_ms"] < before_ms]


def test_a_consumer_alone_owns_all_queues_after_a_second(scene: Any) -> None:
    at = owns_since(scene, "A", 8, 0)
    assert 1_000 <= at <= 1_060
    assert first_pull(scene, "A", range(8), 0) == pytest.approx(at + 500, abs=15)


def test_one_that_joins_makes_the_other_give_up_half_at_once(scene: Any, timeline: Any, smallest: Any) -> None:
    (notice, *_) = notices(scene, "A", STEPS_MS["B joins"], STEPS_MS["C joins"])
    gave_up = owns_since(scene, "A", 4, STEPS_MS["B joins"])
    assert 0 <= gave_up - notice <= max(60, smallest(timeline, "A: notice -> owns only 4"))
    took = owns_since(scene, "B", 4, STEPS_MS["B joins"])
    assert took - STEPS_MS["B joins"] >= 1_000 - 5
    pulled = first_pull(scene, "B", range(8), took)
    assert pulled - took == pytest.approx(500, abs=15)
    assert smallest(timeline, "B: owns 4 -> first pull request") >= 390


def test_the_averaging_strategy_deals_out_blocks_as_the_real_one_did(scene: Any, timeline: Any) -> None:
    """Which client gets which block follows the order of their client ids, so compare the blocks, not the names."""
    blocks = set()
    for run in timeline["runs"]:
        for event in run:
            if event["event"] == "owns" and len(event["queues"]) in (2, 3, 4):
                blocks.add(tuple(sorted(int(q) for q in event["queues"])))
    settled = {who: [owned for t, owned in changes(scene, who) if t < 45_000][-1] for who in "AB"}
    assert {tuple(sorted(q)) for q in settled.values()} == {(0, 1, 2, 3), (4, 5, 6, 7)}
    assert {(0, 1, 2, 3), (4, 5, 6, 7)} <= blocks
    three = {who: [owned for t, owned in changes(scene, who) if t < 60_000][-1] for who in "ABC"}
    assert sorted(len(owned) for owned in three.values()) == [2, 3, 3]
    assert {tuple(sorted(q)) for q in three.values()} <= blocks


def test_one_that_leaves_in_good_order_is_replaced_within_milliseconds(
    scene: Any, timeline: Any, smallest: Any
) -> None:
    limit = smallest(timeline, "B leaves cleanly -> C owns 4") + 60
    for who in "AC":
        assert owns_since(scene, who, 4, STEPS_MS["B leaves"]) - STEPS_MS["B leaves"] <= limit


def test_a_killed_one_is_replaced_at_once_because_its_connection_closes(
    scene: Any, timeline: Any, smallest: Any
) -> None:
    at = owns_since(scene, "A", 8, STEPS_MS["C killed"])
    assert at - STEPS_MS["C killed"] <= smallest(timeline, "C killed -> A owns all 8") + 60
    moved = [q for q in range(8) if q not in [o for t, o in changes(scene, "A") if t < STEPS_MS["C killed"]][-1]]
    pulled = first_pull(scene, "A", moved, STEPS_MS["C killed"])
    assert pulled - STEPS_MS["C killed"] == pytest.approx(smallest(timeline, "C killed -> first pull by A"), abs=60)


def test_one_that_hangs_is_dropped_120_to_130_seconds_after_its_last_heartbeat(scene: Any, timeline: Any) -> None:
    beats = scene.events("HeartbeatAnswered", node="D")
    last = max(e["t_ms"] for e in beats if e["t_ms"] <= D_STOPS_MS)
    (dropped, *_) = [e["t_ms"] for e in scene.events("ClientExpired", group="G")]
    assert 120_000 <= dropped - last <= 130_050
    (step,) = [s for s in timeline["summary"] if s["step"].startswith("last heartb")]
    assert all(120_000 <= value <= 130_000 for value in step["per_run_ms"])


def test_nobody_is_told_of_it_so_the_other_finds_out_at_its_own_rebalance(scene: Any) -> None:
    (dropped, *_) = [e["t_ms"] for e in scene.events("ClientExpired", group="G")]
    at = owns_since(scene, "A", 8, D_STOPS_MS)
    assert 0 <= at - dropped <= 20_050
    assert notices(scene, "A", dropped, at) == []


def test_when_it_goes_on_it_gets_its_half_back_and_many_messages_come_twice(
    scene: Any, timeline: Any, smallest: Any
) -> None:
    """It pulls on from its old offsets, and delivers again what the other consumed meanwhile."""
    back = owns_since(scene, "A", 4, D_CONTINUES_MS)
    assert back - D_CONTINUES_MS <= 1_100
    assert smallest(timeline, "D continues (SIGCONT) -> broker list") <= 500
    times = Counter(key for t, _, key, _ in scene.delivered if t < D_CONTINUES_MS)
    twice = sum(1 for t, who, key, _ in scene.delivered if t >= D_CONTINUES_MS and who == "D" and times[key])
    (step,) = [s for s in timeline["summary"] if s["step"].endswith("D continues (SIGCONT)")]
    assert twice == pytest.approx(max(step["per_run"]), rel=0.15)


@pytest.mark.parametrize(
    ("phase", "begin", "end"),
    [
        ("B joins", 30_000, 45_000),
        ("C joins", 45_000, 60_000),
        ("B leaves", 60_000, 75_000),
        ("D joins", 90_000, 105_000),
    ],
)
def test_few_messages_come_twice_when_members_come_and_go(
    scene: Any, timeline: Any, phase: str, begin: int, end: int
) -> None:
    seen = Counter(key for t, _, key, _ in scene.delivered if begin <= t < end)
    summary = timeline["summary"]
    steps = [s for s in summary if phase in s["step"] and "twice" in s["step"]]
    assert sum(n - 1 for n in seen.values()) <= max(steps[0]["per_run"])
