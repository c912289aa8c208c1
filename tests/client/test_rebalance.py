"""Who owns which queue, and when: members that join, leave, and die."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import CONSUME_SUCCESS, RECONSUME_LATER, ConsumeConcurrentlyStatus, Message, MessageQueue
from mqlab.client.consumer.listener import ListenerRaised
from mqlab.rebalance import AllocateMessageQueueStrategy
from tests.worlds import slow


def owned(consumer: Any) -> list[int]:
    return sorted(queue.queue_id for queue in consumer.process_queues if queue.topic == "T")


@pytest.mark.queues(4)
def test_two_members_share_the_queues_in_blocks(cluster: Any) -> None:
    first = cluster.consumer("c1")
    second = cluster.consumer("c2")
    cluster.run_ms(3_000)
    assert (owned(first), owned(second)) == ([0, 1], [2, 3])


@pytest.mark.queues(4)
def test_a_newcomer_gets_its_share_within_two_seconds_because_the_others_are_told(cluster: Any) -> None:
    first = cluster.consumer("c1")
    cluster.run_ms(5_000)
    assert owned(first) == [0, 1, 2, 3]
    second = cluster.consumer("c2")
    begin_ms = cluster.now_ms
    cluster.world.run_until(lambda: owned(first) == [0, 1] and owned(second) == [2, 3])
    assert cluster.now_ms - begin_ms < 2_000
    assert [name for name in cluster.requests("broker-a") if name == "NOTIFY_CONSUMER_IDS_CHANGED"]


@pytest.mark.queues(4)
def test_queues_of_a_member_that_leaves_are_taken_at_once(cluster: Any) -> None:
    first = cluster.consumer("c1")
    second = cluster.consumer("c2")
    cluster.run_ms(5_000)
    begin_ms = cluster.now_ms
    first.shutdown().play()
    cluster.world.run_until(lambda: owned(second) == [0, 1, 2, 3])
    assert cluster.now_ms - begin_ms < 1_100


@pytest.mark.queues(4)
def test_queues_of_a_killed_member_are_taken_when_its_connection_breaks(cluster: Any) -> None:
    cluster.consumer("c1")
    second = cluster.consumer("c2")
    cluster.run_ms(5_000)
    begin_ms = cluster.now_ms
    cluster.fault("crash", "c1")
    cluster.world.run_until(lambda: owned(second) == [0, 1, 2, 3])
    assert cluster.now_ms - begin_ms < 1_100


@pytest.mark.queues(4)
def test_a_hung_member_keeps_its_queues_for_two_minutes(cluster: Any) -> None:
    cluster.consumer("c1")
    second = cluster.consumer("c2")
    cluster.run_ms(5_000)
    begin_ms = cluster.now_ms
    cluster.fault("freeze", "c1")
    cluster.world.run_until(lambda: owned(second) == [0, 1, 2, 3])
    assert 90_000 < cluster.now_ms - begin_ms < 160_000


@pytest.mark.queues(8)
def test_no_message_is_lost_when_members_come_and_go(cluster: Any) -> None:
    cluster.consumer("c1")
    producer = cluster.producer()
    sent = []
    for k in range(200):
        sent.append(f"m{k}")
        producer.send(Message("T", sent[-1])).play()
        cluster.run_ms(50)
        if k == 40:
            cluster.consumer("c2")
        if k == 80:
            cluster.fault("crash", "c1")
        if k == 120:
            cluster.consumer("c3")
    cluster.run_ms(5_000)
    assert set(cluster.bodies) == set(sent)


@pytest.mark.queues(2)
def test_more_members_than_queues_leave_some_without(cluster: Any) -> None:
    members = [cluster.consumer(f"c{k}") for k in range(3)]
    cluster.run_ms(5_000)
    assert [owned(member) for member in members] == [[0], [1], []]


@pytest.mark.queues(4)
def test_a_strategy_of_ones_own(cluster: Any) -> None:
    class FirstTakesAll(AllocateMessageQueueStrategy):
        name = "FIRST"

        def divide(self, current_cid: Any, mq_all: Any, cid_all: Any) -> Any:
            return list(mq_all) if cid_all.index(current_cid) == 0 else []

    members = [cluster.consumer(f"c{k}", allocate_message_queue_strategy=FirstTakesAll()) for k in range(2)]
    cluster.run_ms(5_000)
    assert [owned(member) for member in members] == [[0, 1, 2, 3], []]


@pytest.mark.queues(2)
def test_a_strategy_that_raises_leaves_the_queues_and_is_tried_again_every_second(cluster: Any) -> None:
    class Broken(AllocateMessageQueueStrategy):
        name = "BROKEN"

        def divide(self, current_cid: Any, mq_all: Any, cid_all: Any) -> Any:
            raise ValueError("no idea")

    cluster.consumer(allocate_message_queue_strategy=Broken())
    cluster.run_ms(10_000)
    reasons = [event[3] for event in cluster.events("RebalanceSkipped") if event[2] == "T"]
    assert reasons[0] == "allocate message queue exception: ValueError: no idea"
    times = [row[2] for row in cluster.rows if row[7] == "RebalanceSkipped" and row[10] == "T"]
    assert [round((b - a) / 1_000_000, 1) for a, b in pairwise(times)] == [1.0] * (len(times) - 1)


@pytest.mark.queues(2)
def test_a_topic_unsubscribed_is_given_up_at_the_next_rebalance(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    consumer.unsubscribe("T")
    cluster.run_ms(21_000)
    assert owned(consumer) == []


@pytest.mark.queues(2)
def test_the_application_hears_of_changes(cluster: Any) -> None:
    heard: list[tuple[str, int, int]] = []
    consumer = cluster.new_consumer()
    consumer.message_queue_listener = lambda topic, mq_all, mine: heard.append((topic, len(mq_all), len(mine)))
    consumer.start().play()
    cluster.run_ms(5_000)
    assert ("T", 2, 2) in heard


@pytest.mark.queues(2)
def test_a_queue_listener_that_raises_is_told_of_and_the_consumer_goes_on(cluster: Any) -> None:
    heard: list[str] = []

    async def listener(topic: str, mq_all: list[MessageQueue], mine: list[MessageQueue]) -> None:
        heard.append(topic)
        raise ValueError("no")

    consumer = cluster.new_consumer()
    consumer.message_queue_listener = listener
    consumer.start().play()
    with pytest.warns(ListenerRaised, match="the queue listener of group 'G' raised ValueError: no"):
        cluster.run_ms(30_000)
    assert heard.count("T") == 1
    assert ("G", "T", "ValueError: no") in cluster.events("QueueListenerFailed")
    assert owned(consumer) == [0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_frames_as_objects_and_as_bytes_give_the_same_trace(make_cluster: Any, seed: int) -> None:
    traces = []
    for wire_bytes in (False, True):
        cluster = make_cluster(seed=seed, wire_bytes=wire_bytes, queues=4)
        cluster.consumer("c1")
        cluster.consumer("c2", tags="TagA || TagB")
        producer = cluster.producer()
        for k in range(20):
            producer.send(Message("T", f"m{k}", tags="TagA", keys=f"k{k}")).play()
        producer.send([Message("T", f"b{k}") for k in range(3)]).play()
        cluster.run_ms(5_000)
        cluster.fault("crash", "c1")
        cluster.run_ms(25_000)
        traces.append(cluster.rows)
    assert traces[0] == traces[1]


@pytest.mark.queues(2)
def test_the_offset_of_a_queue_is_written_when_the_queue_is_given_up(cluster: Any, producer: Any) -> None:
    cluster.consumer("c1", listener=slow(5), persist_consumer_offset_interval=3_600_000)
    cluster.run_ms(3_000)
    for k in range(10):
        producer.send(Message("T", f"m{k}")).play()
    cluster.run_ms(100)
    second = cluster.consumer("c2")
    cluster.run_ms(3_000)
    assert owned(second) == [1]
    assert sorted(cluster.bodies) == [f"m{k}" for k in range(10)], (
        "the new owner begins behind all that was consumed, also behind the last one, which no pull has told yet"
    )


@pytest.mark.parametrize("answer", [CONSUME_SUCCESS, RECONSUME_LATER])
@pytest.mark.queues(2)
def test_the_result_of_a_listener_whose_queue_was_given_up_meanwhile_counts_for_nothing(
    cluster: Any, answer: ConsumeConcurrentlyStatus
) -> None:
    calls: list[str] = []

    async def slowly_at_first(messages: Any, context: Any) -> Any:
        calls.append(messages[0].body.decode())
        if len(calls) > 2:
            return CONSUME_SUCCESS
        await context.sleep(5_000)
        return answer

    first = cluster.consumer("c1", listener=slowly_at_first)
    cluster.run_ms(3_000)
    producer = cluster.producer()
    for body in ("a", "b"):
        producer.send(Message("T", body)).play()
    second = cluster.consumer("c2", listener=slowly_at_first)
    cluster.run_ms(3_000)
    assert (owned(first), owned(second)) == ([0], [1])
    moved = MessageQueue("T", "broker-a", 1)
    offsets = cluster.brokers["broker-a"].consumer_offset_manager
    cluster.run_ms(20_000)
    again = 0 if answer is CONSUME_SUCCESS else 1
    assert len(cluster.events("MessageGivenBack")) == again, "only that of the queue which stayed"
    assert cluster.events("ConsumeResultIgnored", "c1") == [("G", *moved, 0)]
    assert offsets.query_offset("G", "T", 1) == 1, "the new owner's"
    assert len(calls) == 3 + again, "the moved message came once more, the failed one from the retry topic"
