"""Orderly consumption: one at a time, locks at the broker, suspending a queue, dead letters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import ConsumeOrderlyContext, ConsumeOrderlyStatus, Message, MessageListenerOrderly, MessageQueue
from mqlab.client.consumer.listener import ListenerReturnedNone
from mqlab.sim.timer import Timer
from tests.worlds import slow

SUCCESS = ConsumeOrderlyStatus.SUCCESS
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


class Ordered(MessageListenerOrderly):
    """Notes what it gets, and answers as it is told."""

    def __init__(self, cluster: Any, answer: Callable[[Any, ConsumeOrderlyContext], Any] | None = None) -> None:
        self.cluster = cluster
        self.answer = answer
        self.calls: list[tuple[float, str, int]] = []

    def consume_message(self, messages: Any, context: ConsumeOrderlyContext) -> Any:
        for message in messages:
            self.calls.append((self.cluster.now_ms, message.body.decode(), message.reconsume_times))
        return SUCCESS if self.answer is None else self.answer(messages, context)

    @property
    def bodies(self) -> list[str]:
        return [body for _, body, _ in self.calls]


def start(cluster: Any, listener: Ordered, name: str = "consumer", **settings: Any) -> Any:
    consumer = cluster.new_consumer(name, **settings)
    consumer.register_message_listener(listener)
    consumer.start().play()
    return consumer


def send(cluster: Any, bodies: list[str]) -> None:
    producer = cluster.producer(f"producer-{len(cluster.world.nodes)}")
    for body in bodies:
        producer.send(Message("T", body)).play()


def test_a_queue_is_consumed_in_order_by_one_thread_at_a_time(cluster: Any) -> None:
    listener = Ordered(cluster, slow(100, SUCCESS))
    bodies = [f"m{k}" for k in range(10)]
    send(cluster, bodies)
    start(cluster, listener)
    cluster.run_ms(14_000)
    assert listener.bodies == bodies
    assert {round(b - a) for (a, _, _), (b, _, _) in pairwise(listener.calls)} == {100}
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 10


@pytest.mark.parametrize("how", ["suspend", "none", "raises"])
def test_a_message_that_fails_holds_its_queue_and_comes_again_every_second(cluster: Any, how: str) -> None:
    def answer(messages: Any, context: ConsumeOrderlyContext) -> Any:
        if messages[0].body == b"bad" and messages[0].reconsume_times < 3:
            if how == "raises":
                raise ValueError("no")
            return SUSPEND if how == "suspend" else None
        return SUCCESS

    listener = Ordered(cluster, answer)
    send(cluster, ["good", "bad", "after"])
    start(cluster, listener)
    cluster.run_ms(10_000)
    assert listener.bodies == ["good", "bad", "bad", "bad", "bad", "after"]
    assert [times for _, body, times in listener.calls if body == "bad"] == [0, 1, 2, 3]
    tries = [at for at, body, _ in listener.calls if body == "bad"]
    assert [round(b - a) for a, b in pairwise(tries)] == [1_000] * 3


def test_the_context_can_choose_the_pause_within_10_ms_and_30_s(cluster: Any) -> None:
    pauses = iter([1, 500, 60_000])

    def answer(messages: Any, context: ConsumeOrderlyContext) -> Any:
        if messages[0].reconsume_times < 3:
            context.suspend_current_queue_time_millis = next(pauses)
            return SUSPEND
        return SUCCESS

    listener = Ordered(cluster, answer)
    send(cluster, ["a"])
    start(cluster, listener)
    cluster.run_ms(40_000)
    assert [round(b[0] - a[0]) for a, b in pairwise(listener.calls)] == [10, 500, 30_000]


def test_without_auto_commit_success_waits_for_commit_and_rollback_takes_it_back(cluster: Any) -> None:
    answers = iter([SUCCESS, ConsumeOrderlyStatus.ROLLBACK, SUCCESS, ConsumeOrderlyStatus.COMMIT])

    def answer(messages: Any, context: ConsumeOrderlyContext) -> Any:
        context.auto_commit = False
        return next(answers)

    listener = Ordered(cluster, answer)
    send(cluster, ["a", "b"])
    start(cluster, listener)
    cluster.run_ms(14_000)
    assert listener.bodies == ["a", "b", "a", "b"]
    assert round(listener.calls[2][0] - listener.calls[1][0]) == 1_000, "the pause behind a rollback"
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 2


def test_after_the_last_try_the_message_goes_to_the_dead_letters_and_the_queue_goes_on(cluster: Any) -> None:
    listener = Ordered(cluster, lambda messages, context: SUSPEND if messages[0].body == b"bad" else SUCCESS)
    send(cluster, ["bad", "after"])
    start(cluster, listener, max_reconsume_times=2)
    cluster.run_ms(10_000)
    assert listener.bodies == ["bad", "bad", "bad", "after"]
    store = cluster.brokers["broker-a"].message_store
    assert store.get_max_offset_in_queue("%DLQ%G", 0) == 1


@pytest.mark.queues(2)
def test_locks_are_renewed_every_20_seconds_twice(cluster: Any) -> None:
    begin_ms = cluster.now_ms
    start(cluster, Ordered(cluster))
    cluster.run_ms(65_000)
    requests = [row for row in cluster.rows if row[7] == "RequestSent" and row[14] == "LOCK_BATCH_MQ"]
    seconds = [round((row[2] / 1_000 - begin_ms) / 1_000) for row in requests]
    assert [second for second in seconds if second > 5] == [21, 21, 41, 41, 61, 61]


@pytest.mark.queues(2)
def test_a_queue_goes_over_only_when_its_owner_has_let_go(cluster: Any) -> None:
    first = start(cluster, Ordered(cluster, slow(5_000, SUCCESS)), "c1")
    cluster.run_ms(3_000)
    send(cluster, ["a", "b", "c", "d"])
    cluster.run_ms(100)
    second = start(cluster, Ordered(cluster), "c2")
    moved = MessageQueue("T", "broker-a", 1)
    cluster.run_ms(2_000)
    assert moved not in second.process_queues
    cluster.world.run_until(lambda: moved in second.process_queues)
    assert moved not in first.process_queues
    assert cluster.events("QueueAllocated", "c2")


@pytest.mark.queues(2)
def test_a_killed_owner_keeps_its_locks_for_a_minute(cluster: Any) -> None:
    start(cluster, Ordered(cluster), "c1")
    second = start(cluster, Ordered(cluster), "c2")
    cluster.run_ms(25_000)
    queues = [MessageQueue("T", "broker-a", k) for k in range(2)]
    (lost,) = [queue for queue in queues if queue not in second.process_queues]
    begin_ms = cluster.now_ms
    cluster.fault("crash", "c1")
    cluster.world.run_until(lambda: lost in second.process_queues)
    assert 40_000 <= cluster.now_ms - begin_ms <= 62_000


@pytest.mark.queues(2)
def test_a_clean_end_gives_the_locks_back_at_once(cluster: Any) -> None:
    first = start(cluster, Ordered(cluster), "c1")
    second = start(cluster, Ordered(cluster), "c2")
    cluster.run_ms(5_000)
    first.shutdown().play()
    begin_ms = cluster.now_ms
    cluster.world.run_until(lambda: len([queue for queue in second.process_queues if queue.topic == "T"]) == 2)
    assert cluster.now_ms - begin_ms < 1_100
    assert "UNLOCK_BATCH_MQ" in cluster.requests("c1")


@pytest.mark.queues(2)
def test_a_queue_that_is_given_up_while_its_listener_runs_has_its_offset_written_at_once(cluster: Any) -> None:
    async def slowly(messages: Any, context: ConsumeOrderlyContext) -> Any:
        if messages[0].body == b"slow":
            await context.sleep(15_000)
        return SUCCESS

    send(cluster, ["a", "b", "slow", "slow"])
    first = start(cluster, Ordered(cluster, slowly), "c1", persist_consumer_offset_interval=3_600_000)
    cluster.run_ms(3_000)
    offsets = cluster.brokers["broker-a"].consumer_offset_manager
    assert offsets.query_offset("G", "T", 1) == -1, "c1 would tell in an hour"
    start(cluster, Ordered(cluster), "c2")
    cluster.run_ms(2_000)
    moved = MessageQueue("T", "broker-a", 1)
    assert first.process_queues[moved].try_unlock_times > 0, "the listener still runs"
    assert offsets.query_offset("G", "T", 1) == 1
    cluster.world.run_until(lambda: moved not in first.process_queues)
    assert cluster.now_ms > 17_000, "the listener has ended"
    cluster.run_ms(100)
    assert offsets.query_offset("G", "T", 1) == 1, "what it did when the queue was given up is not noted"


def test_messages_of_a_queue_that_is_given_up_while_their_thread_waits_for_it_are_not_consumed(cluster: Any) -> None:
    listener = Ordered(cluster)
    consumer = start(cluster, listener)
    cluster.run_ms(21_000)
    held = consumer.process_queues[MessageQueue("T", "broker-a", 0)]

    async def hold() -> None:
        async with held.consume_lock:
            await consumer.node.sleep(25_000)

    consumer.node.spawn(hold(), "who holds the consume lock")
    send(cluster, ["a"])
    cluster.run_ms(500)
    assert list(held.consuming_msg_orderly_tree_map) == [0], "a thread has taken the message, and waits"
    consumer.unsubscribe("T")
    cluster.run_ms(30_000)
    assert held.dropped
    assert not listener.bodies


def test_a_lock_that_runs_out_between_two_messages_holds_the_queue(cluster: Any) -> None:
    listener = Ordered(cluster, slow(35_000, SUCCESS))
    send(cluster, ["a", "b"])
    start(cluster, listener)
    cluster.run_ms(2_000)
    assert listener.bodies == ["a"]
    cluster.fault("cut", "consumer", "broker-a")
    cluster.run_ms(60_000)
    assert listener.bodies == ["a"], "no renewal came for more than 30 s: another member may have the queue now"
    cluster.fault("heal", "consumer", "broker-a")
    cluster.run_ms(30_000)
    assert listener.bodies == ["a", "b"]


@pytest.mark.parametrize("status", [ConsumeOrderlyStatus.COMMIT, ConsumeOrderlyStatus.ROLLBACK])
def test_with_auto_commit_commit_and_rollback_count_as_consumed(cluster: Any, status: ConsumeOrderlyStatus) -> None:
    listener = Ordered(cluster, lambda messages, context: status)
    send(cluster, ["a", "b"])
    consumer = start(cluster, listener)
    cluster.run_ms(5_000)
    assert listener.bodies == ["a", "b"]
    sums = consumer.impl.statistics.by_topic["T"]
    assert (sums.consume_ok, sums.consume_failed) == (2, 0)
    consumer.shutdown().play()
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 2


@pytest.mark.queues(4)
def test_all_queues_that_are_given_up_are_dropped_at_once_though_they_are_let_go_one_after_the_other(
    cluster: Any,
) -> None:
    first = start(cluster, Ordered(cluster, slow(15_000, SUCCESS)), "c1")
    cluster.run_ms(3_000)
    send(cluster, list("abcd"))
    start(cluster, Ordered(cluster), "c2")
    cluster.world.run_until(lambda: any(held.dropped for held in first.process_queues.values()))
    assert [queue.queue_id for queue, held in sorted(first.process_queues.items()) if held.dropped] == [2, 3]


def test_an_illegal_offset_lets_an_orderly_queue_go_at_its_broker_before_it_is_taken_anew(cluster: Any) -> None:
    send(cluster, ["a", "b"])
    cluster.brokers["broker-a"].consumer_offset_manager.commit_offset("G", "T", 0, 50)
    listener = Ordered(cluster)
    start(cluster, listener)
    cluster.run_ms(6_000)
    assert cluster.requests("consumer").count("UNLOCK_BATCH_MQ") == 1
    send(cluster, ["c"])
    cluster.run_ms(3_000)
    assert listener.bodies == ["c"]


def test_a_listener_that_returns_none_stops_its_queue_for_a_moment_and_is_told_once(cluster: Any) -> None:
    listener = Ordered(cluster, lambda messages, context: None)
    send(cluster, ["a", "b"])
    start(cluster, listener)
    words = f"as {SUSPEND.value}, .* return ConsumeOrderlyStatus.SUCCESS"
    with pytest.warns(ListenerReturnedNone, match=words) as told:
        cluster.run_ms(10_000)
    assert len(told) == 1
    assert len(listener.bodies) > 2
    assert set(listener.bodies) == {"a"}


@pytest.mark.queues(2)
def test_one_queue_does_not_keep_a_thread_longer_than_a_minute(cluster: Any) -> None:
    listener = Ordered(cluster, slow(1_000, SUCCESS))
    send(cluster, [f"{'even' if k % 2 == 0 else 'odd'}{k // 2}" for k in range(200)])
    start(cluster, listener, consume_thread_min=1, consume_thread_max=1)
    cluster.run_ms(150_000)
    turns = [body.rstrip("0123456789") for body in listener.bodies]
    changes = [n for n in range(1, len(turns)) if turns[n] != turns[n - 1]]
    assert len(changes) >= 2, "the other queue has its turn, and then this one again"
    assert all(60 <= b - a <= 62 for a, b in pairwise([0, *changes]))


def test_a_consumer_that_ended_renews_no_locks(cluster: Any) -> None:
    consumer = start(cluster, Ordered(cluster))
    cluster.run_ms(25_000)
    consumer.shutdown().play()
    asked = cluster.requests("consumer").count("LOCK_BATCH_MQ")
    assert asked
    cluster.run_ms(60_000)
    assert cluster.requests("consumer").count("LOCK_BATCH_MQ") == asked
    timers = [(entry[2], entry[3]) for entry in cluster.world.heap if isinstance(entry[2], Timer)]
    armed = [timer.name for timer, token in timers if timer.token == token]
    assert not [name for name in armed if name.startswith("lock renewal")], "a consumer that has ended has no timer"
