"""The clients against time lines recorded with a real RocketMQ 5.3.3 (tests/golden/timelines).

Order and counts must be the same; times may not be earlier than RocketMQ's constants, and a virtual clock has no load
that would make them late. What depends on the phase of a periodic pass is right anywhere in its period.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mqlab.client import CONSUME_SUCCESS, Message
from mqlab.sim import LinkSpec

GOLDEN = Path(__file__).parents[1] / "golden" / "timelines"


def recorded(name: str) -> dict[str, Any]:
    timeline: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return timeline


def summary(timeline: dict[str, Any], beginning: str) -> dict[str, Any]:
    """The first step of a summary that begins so."""
    step: dict[str, Any] = next(step for step in timeline["summary"] if step["step"].startswith(beginning))
    return step


def names(sequence: list[str]) -> list[str]:
    """The requests of a recorded sequence, without topics, answers and what an observer noted."""
    requests = [line for line in sequence if not line.startswith(("[", "  answer"))]
    return [line.removeprefix("(from broker) ").split(" ")[0] for line in requests]


def slow_links(cluster: Any, us: int = 5_000) -> None:
    """Let every frame take 5 ms: as on the recorded machine, the refresh after 10 ms then finds start() at work."""
    cluster.world.network.default = LinkSpec(us, us)


def traffic(cluster: Any, node: str, since_ms: float = 0) -> list[str]:
    """The requests that a node sent, and those that it got."""
    return [
        row[14]
        for row in cluster.rows
        if row[7] in ("RequestSent", "RequestReceived") and row[3] == node and row[2] / 1_000 >= since_ms
    ]


def test_start_three_sends_and_shutdown_of_a_producer(cluster: Any) -> None:
    timeline = recorded("startup.producer")
    cluster.create_topic("T", 2)
    producer = cluster.producer()
    assert traffic(cluster, "producer") == []
    cluster.run_ms(44)
    begin_ms = cluster.now_ms - 44
    for _ in range(3):
        producer.send(Message("T", "x")).play()
        cluster.run_ms(2_000)
    producer.shutdown().play()
    sequence = names(summary(timeline, "order")["sequence"])
    assert traffic(cluster, "producer") == sequence
    heartbeats = [t - begin_ms for t in cluster.times_ms("HeartbeatAnswered", "producer")]
    assert heartbeats[1] == pytest.approx(1_000, abs=5)


def test_a_topic_that_is_created_by_its_first_message(cluster: Any) -> None:
    timeline = recorded("startup.auto-create-topic")
    begin_ms = cluster.now_ms
    producer = cluster.producer()
    cluster.run_ms(1_100)
    used = set()
    for _ in range(16):
        used.add(producer.send(Message("NEW", "x")).play().message_queue.queue_id)
        cluster.run_ms(2_000)
    sequence = names(summary(timeline, "order")["sequence"])
    assert traffic(cluster, "producer")[: len(sequence)] == sequence
    assert sorted(used) == summary(timeline, "queue ids")["per_run"][0]
    template_ms, own_ms = (t - begin_ms for t in cluster.times_ms("RouteUpdated", "producer"))
    assert own_ms == pytest.approx(30_010, abs=2)
    assert own_ms - template_ms <= max(summary(timeline, "first send -> own")["per_run_ms"])


def test_start_life_and_shutdown_of_a_push_consumer(cluster: Any) -> None:
    timeline = recorded("startup.push-consumer")
    cluster.create_topic("T", 2)
    slow_links(cluster)
    begin_ms = cluster.now_ms
    consumer = cluster.consumer()
    returned_ms = cluster.now_ms
    cluster.run_ms(2_000)
    # The three runs differ in which of the two topics comes first: the order of a hash map. Here T comes first.
    sequence = names(summary(timeline, "the same, run 3")["sequence"])
    ours = traffic(cluster, "consumer")
    # The heartbeat that is due 1 s after the start comes just before the first rebalance here, and there just into it.
    for requests in (sequence, ours):
        del requests[requests.index("HEART_BEAT", requests.index("HEART_BEAT") + 1)]
    assert ours[: len(sequence)] == sequence

    allocated = cluster.times_ms("QueueAllocated", "consumer")
    pulls = cluster.times_ms("PullRequested", "consumer")
    assert allocated[0] - begin_ms >= 1_000
    assert pulls[0] - allocated[-1] == pytest.approx(500, abs=60)
    assert pulls[0] - returned_ms < 1_500 + 60

    producer = cluster.producer(compress_msg_body_over_howmuch=4_096)
    producer.send(Message("T", "a")).play()
    cluster.run_ms(begin_ms + 46_700 - cluster.now_ms)
    retry_pull_ms = next(
        row[2] / 1_000 for row in cluster.rows if row[7] == "PullRequested" and row[9].startswith("%RETRY%")
    )
    late = summary(timeline, "start returned -> first PULL_MESSAGE of")["per_run_ms"]
    first = summary(timeline, "start returned -> first PULL_MESSAGE")["per_run_ms"]
    assert retry_pull_ms - pulls[0] == pytest.approx(late[0] - first[0], abs=100)
    persisted = sorted({round(t - begin_ms) for t in cluster.times_ms("OffsetPersisted", "consumer")})
    assert persisted[0] == 10_000
    assert {b - a for a, b in pairwise(persisted)} == {summary(timeline, "period of UPDATE")["median_ms"]}

    shutdown_ms = cluster.now_ms
    consumer.shutdown().play()
    shutdown = names(summary(timeline, "shutdown: order")["sequence"])
    # On the recorded machine one-way requests of other threads overtake each other; what goes out is the same.
    assert Counter(traffic(cluster, "consumer", shutdown_ms)) == Counter(shutdown)
    assert traffic(cluster, "consumer", shutdown_ms)[-1] == shutdown[-1] == "UNREGISTER_CLIENT"


def test_a_pull_on_an_empty_queue_is_held_until_a_pass_finds_it_old_enough(cluster: Any) -> None:
    timeline = recorded("long-poll.empty-queue")
    cluster.create_topic("T", 1)
    cluster.consumer()
    producer = cluster.producer()
    cluster.run_ms(66_000)
    pulls = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T"]
    ends = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullFinished" and row[9] == "T"]
    holds = [end - begin for begin, end in zip(pulls, ends, strict=False)]
    step = summary(timeline, "pull held until answered 19")
    assert len(holds) >= 3
    for hold in holds:
        assert min(step["per_run_ms"]) - 300 <= hold <= 20_100
    assert holds[1] == pytest.approx(20_000, abs=10)
    for _ in range(4):
        begin_ms = cluster.now_ms
        producer.send(Message("T", "x")).play()
        cluster.run_ms(6_000)
        assert cluster.delivered[-1].at_ms - begin_ms < 5
    answers = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullFinished" and row[9] == "T"]
    again = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T"]
    assert {round(begin - end, 3) for end, begin in zip(answers, again[1:], strict=False)} == {0}


class Members:
    """The recorded rebalance: consumers that join, leave, are killed and stopped, under ten messages a second."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        cluster.create_topic("T", 8)
        self.producer = cluster.producer("p")
        self.consumers: dict[str, Any] = {}
        self.sent = 0

        async def load() -> None:
            queues = await self.producer.fetch_publish_message_queues.inside(self.producer, "T")
            while True:
                message = Message("T", f"p{self.sent}")
                await self.producer.send.inside(self.producer, message, queue=queues[self.sent % 8])
                self.sent += 1
                await self.producer.node.sleep(100)

        self.load = load

    def start(self, name: str) -> None:
        async def listener(messages: Any, context: Any) -> Any:
            await context.sleep(100)
            return CONSUME_SUCCESS

        settings = {"consume_thread_min": 4, "consume_thread_max": 4}
        self.consumers[name] = self.cluster.consumer(name, listener=listener, **settings)

    def owns(self, name: str) -> list[int]:
        return sorted(queue.queue_id for queue in self.consumers[name].process_queues if queue.topic == "T")

    def until(self, **expected: int) -> float:
        """Play until each consumer owns so many queues; how long it took, in ms."""
        begin_ms = self.cluster.now_ms
        self.cluster.world.run_until(
            lambda: all(len(self.owns(name)) == number for name, number in expected.items()), what="the new owners"
        )
        return float(self.cluster.now_ms - begin_ms)

    def duplicates(self, since_ms: float) -> int:
        """How many messages were delivered since then that had been delivered before."""
        seen: set[str] = set()
        again: set[str] = set()
        for delivery in self.cluster.delivered:
            if delivery.body in seen and delivery.at_ms >= since_ms:
                again.add(delivery.body)
            seen.add(delivery.body)
        return len(again)


def test_members_join_leave_are_killed_and_stopped(cluster: Any) -> None:
    timeline = recorded("rebalance.join-leave-kill-stop")
    members = Members(cluster)
    members.start("A")
    assert members.until(A=8) == pytest.approx(1_000, abs=60)
    members.producer.node.spawn(members.load(), "load")
    cluster.run_ms(30_000)

    members.start("B")
    assert members.until(A=4, B=4) <= max(summary(timeline, "B: start() returned -> owns")["per_run_ms"])
    assert sorted(members.owns("A") + members.owns("B")) == list(range(8))
    cluster.run_ms(15_000)
    members.start("C")
    members.until(A=3, B=3, C=2)
    cluster.run_ms(15_000)

    members.consumers["B"].shutdown().play()
    notices = len([row for row in cluster.rows if row[7] == "RequestReceived" and row[3] == "C"])
    assert notices
    assert members.until(A=4, C=4) <= max(summary(timeline, "B leaves cleanly -> A")["per_run_ms"])
    cluster.run_ms(15_000)
    moved = members.owns("C")
    cluster.fault("crash", "C")
    assert members.until(A=8) <= max(summary(timeline, "C killed -> A")["per_run_ms"])
    killed_ms = cluster.now_ms
    cluster.run_ms(1_000)
    first_pull_ms = next(
        row[2] / 1_000
        for row in cluster.rows
        if row[7] == "PullRequested" and row[3] == "A" and row[11] in moved and row[2] / 1_000 > killed_ms
    )
    assert first_pull_ms - killed_ms == pytest.approx(500, abs=60)
    cluster.run_ms(14_000)

    members.start("D")
    members.until(A=4, D=4)
    cluster.run_ms(15_000)
    last_heartbeat_ms = max(cluster.times_ms("HeartbeatAnswered", "D"))
    cluster.fault("freeze", "D")
    stopped_ms = cluster.now_ms
    before = len([row for row in cluster.rows if row[7] == "RequestReceived" and row[3] == "A"])
    manager = cluster.brokers["broker-a"].consumer_manager
    cluster.world.run_until(lambda: len(manager.get_consumer_group_info("G").channel_info_table) == 1)
    assert 120_000 <= cluster.now_ms - last_heartbeat_ms <= 130_000
    dropped_ms = cluster.now_ms
    members.until(A=8)
    assert cluster.now_ms - dropped_ms <= 20_100
    assert len([row for row in cluster.rows if row[7] == "RequestReceived" and row[3] == "A"]) == before
    cluster.run_ms(stopped_ms + 160_000 - cluster.now_ms)

    cluster.fault("thaw", "D")
    continued_ms = cluster.now_ms
    assert members.until(A=4) <= max(summary(timeline, "D continues -> A back")["per_run_ms"]) + 1_000
    cluster.run_ms(30_000)
    counts = summary(timeline, "number of messages delivered twice, phase: D continues")["per_run"]
    assert min(counts) - 100 <= members.duplicates(continued_ms) <= max(counts) + 150
    assert set(cluster.bodies) >= {f"p{k}" for k in range(members.sent - 40)}
