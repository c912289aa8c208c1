"""Push consumption, check by check: what stands between a consumer and its next pull, and what an answer does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    ConsumeConcurrentlyContext,
    ConsumeFromWhere,
    ConsumeMessageHook,
    ConsumeOrderlyStatus,
    Message,
    MessageListenerOrderly,
    MessageModel,
    MessageQueue,
    OffsetStore,
)
from mqlab.client.consumer.push.pull_request import PullRequest
from mqlab.client.service_state import ServiceState
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.sysflag import PullSysFlag
from tests.worlds import slow

QUEUE = MessageQueue("T", "broker-a", 0)


def send(cluster: Any, bodies: list[Any], **properties: Any) -> None:
    producer = cluster.producer(f"producer-{len(cluster.world.nodes)}", compress_msg_body_over_howmuch=10_000_000)
    for body in bodies:
        producer.send(Message("T", body, **properties)).play()


forever = slow(10_000_000)
"""A listener that does not come back."""


# -- before a pull --------------------------------------------------------------------------------------------------


def test_the_checks_before_a_pull_come_in_rocketmqs_order_each_with_its_delay(cluster: Any) -> None:
    """All of them fail at first; what is mended makes the next one show."""
    send(cluster, [b"x" * 500_000] * 6)
    consumer = cluster.consumer(
        listener=forever,
        pull_batch_size=3,
        pull_threshold_for_queue=4,
        consume_concurrently_max_span=3,
    )
    cluster.run_ms(2_500)
    impl = consumer.impl
    held = consumer.process_queues[QUEUE]
    assert (held.msg_count, held.msg_size // 1_048_576) == (5, 2)
    consumer.pull_threshold_size_for_queue = 1
    subscription = impl.rebalance_impl.subscription_inner.pop("T")
    impl.pause = True
    impl.service_state = ServiceState.SHUTDOWN_ALREADY
    request = PullRequest("G", QUEUE, held, 5)

    def next_check() -> tuple[str, Any]:
        """What one turn of the pull loop says."""
        before = len(cluster.rows)
        task = cluster.node("consumer").spawn(impl.pull_loop.pull_message(request), "one turn")
        cluster.world.wait_for(task.join())
        kinds = ("PullPutOff", "FlowControlled", "PullRequested")
        row = next(row for row in cluster.rows[before:] if row[7] in kinds)
        return (row[7], row[12:])

    assert next_check() == ("PullPutOff", ("the consumer is not running: SHUTDOWN_ALREADY", 1_000))
    impl.service_state = ServiceState.RUNNING
    assert next_check() == ("PullPutOff", ("the consumer is suspended", 1_000))
    impl.pause = False
    assert next_check() == ("FlowControlled", ("count", 5, 4))
    consumer.pull_threshold_for_queue = 1_000
    assert next_check() == ("FlowControlled", ("size", 2, 1))
    consumer.pull_threshold_size_for_queue = 100
    assert next_check() == ("FlowControlled", ("span", 4, 3))
    consumer.consume_concurrently_max_span = 2_000
    assert next_check() == ("PullPutOff", ("there is no subscription of the topic", 1_000))
    impl.rebalance_impl.subscription_inner["T"] = subscription
    assert next_check()[0] == "PullRequested"
    held.dropped = True
    with pytest.raises(StopIteration):
        next_check()


def test_the_orderly_lock_is_asked_for_in_place_of_the_span(cluster: Any) -> None:
    send(cluster, ["a", "b", "c"])

    class Stuck(MessageListenerOrderly):
        async def consume_message(self, messages: Any, context: Any) -> Any:
            await context.sleep(10_000_000)
            return ConsumeOrderlyStatus.SUCCESS

    consumer = cluster.new_consumer(consume_concurrently_max_span=1)
    consumer.register_message_listener(Stuck())
    consumer.start().play()
    cluster.run_ms(4_000)
    held = consumer.process_queues[QUEUE]
    assert held.msg_count == 3
    assert cluster.events("FlowControlled") == []
    held.locked = False
    send(cluster, ["d"])
    cluster.run_ms(100)
    put_off = [event[4:] for event in cluster.events("PullPutOff") if event[1] == "T"]
    assert put_off[-1] == ("the queue is not locked at its broker", 1_000)


def test_a_pull_carries_the_progress_and_its_flags(cluster: Any) -> None:
    """Bit 1: commit the offset that comes along; bit 2: hold me; bit 4: the subscription comes along."""
    send(cluster, ["a", "b"])
    cluster.consumer("plain", group="G1")
    cluster.consumer("posting", group="G2", post_subscription_when_pull=True)
    cluster.consumer("alone", group="G3", message_model=MessageModel.BROADCASTING)
    cluster.run_ms(5_000)
    send(cluster, ["c"])
    cluster.run_ms(100)

    def pulls(node: str) -> list[tuple[int, int, int]]:
        return [event[4:] for event in cluster.events("PullRequested", node) if event[1] == "T"]

    suspend, commit, subscription = 2, 1, 4
    assert pulls("plain") == [(0, 0, suspend), (2, 2, suspend | commit), (3, 3, suspend | commit)]
    assert pulls("posting") == [
        (0, 0, suspend | subscription),
        (2, 2, suspend | commit | subscription),
        (3, 3, suspend | commit | subscription),
    ]
    assert [pull[2] for pull in pulls("alone")] == [suspend] * 3
    assert PullSysFlag.build(True, True, True, False) == suspend | commit | subscription
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G1", "T", 0) == 3


# -- the answer -----------------------------------------------------------------------------------------------------


def test_messages_that_no_tag_wants_are_passed_and_count_as_consumed(cluster: Any) -> None:
    send(cluster, [f"m{k}" for k in range(40)], tags="Other")
    consumer = cluster.consumer(tags="Wanted")
    cluster.run_ms(4_000)
    finished = [event[4:] for event in cluster.events("PullFinished") if event[1] == "T"]
    assert finished[0] == ("NO_MATCHED_MSG", 0, 40)
    assert cluster.bodies == []
    assert consumer.impl.offset_store.read_from_memory(QUEUE) == 40
    cluster.run_ms(10_000)
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 40


def test_passed_offsets_wait_while_something_is_cached(cluster: Any) -> None:
    send(cluster, ["wanted"], tags="Wanted")
    send(cluster, ["other"] * 3, tags="Other")
    consumer = cluster.consumer(tags="Wanted", listener=forever)
    cluster.run_ms(30_000)
    assert [event[4] for event in cluster.events("PullFinished") if event[1] == "T"][:2] == ["FOUND", "NO_NEW_MSG"]
    assert consumer.impl.offset_store.read_from_memory(QUEUE) == 0


def answer_pulls_with(cluster: Any, code: ResponseCode) -> Callable[[], None]:
    """Let the broker answer every pull with a code; the function that is returned ends it."""
    processor = cluster.brokers["broker-a"].pull_message_processor
    real = processor.process_request
    processor.process_request = lambda channel, request, *more: request.response(code, "not now")

    def end() -> None:
        processor.process_request = real

    return end


@pytest.mark.parametrize(
    ("code", "delay_ms"),
    [(ResponseCode.FLOW_CONTROL, 20), (ResponseCode.SYSTEM_ERROR, 1_000), (ResponseCode.NO_PERMISSION, 1_000)],
)
def test_after_an_error_the_queue_is_pulled_again_after_a_second_or_20_ms_if_the_broker_is_hurried(
    cluster: Any, code: ResponseCode, delay_ms: int
) -> None:
    cluster.consumer()
    cluster.run_ms(1_000)
    end = answer_pulls_with(cluster, code)
    cluster.run_ms(4_000)
    end()
    put_off = [event[5] for event in cluster.events("PullPutOff") if event[1] == "T"]
    assert set(put_off) == {delay_ms}
    assert all(event[4].startswith(f"CODE: {int(code)}  DESC: not now") for event in cluster.events("PullPutOff"))
    times = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T"]
    gaps = [b - a for a, b in pairwise(times[: len(put_off)])]
    assert all(delay_ms <= gap <= delay_ms + 3 for gap in gaps)


def test_a_queue_that_was_not_pulled_for_two_minutes_is_given_up_and_taken_anew(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    stuck = consumer.process_queues[QUEUE]
    consumer.impl.instance.pull_message_service.execute_pull_request_immediately = lambda request: None
    send(cluster, ["the answer to this pull is the last that is heard of it"])
    begin_ms = cluster.now_ms
    cluster.world.run_until(lambda: bool(cluster.events("QueueDropped")), 300_000)
    assert 120_000 < cluster.now_ms - begin_ms <= 140_000
    assert cluster.events("QueueDropped")[0][5] == "it was not pulled for 120 s: taken anew"
    assert stuck.dropped
    cluster.run_ms(100)
    assert consumer.process_queues[QUEUE] is not stuck


# -- consuming ------------------------------------------------------------------------------------------------------


def test_the_listener_chooses_the_level_of_the_next_delivery_or_the_dead_letters(cluster: Any) -> None:
    def listener(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        if messages[0].reconsume_times:
            return CONSUME_SUCCESS
        context.delay_level_when_next_consume = 5 if messages[0].body == b"in a minute" else -1
        return RECONSUME_LATER

    cluster.consumer(listener=listener)
    cluster.run_ms(22_000)
    send(cluster, ["in a minute", "never"])
    cluster.run_ms(70_000)
    again = [delivery for delivery in cluster.delivered if delivery.reconsume_times]
    assert [delivery.body for delivery in again] == ["in a minute"]
    first = next(delivery for delivery in cluster.delivered if delivery.body == "in a minute")
    assert 60_000 <= again[0].at_ms - first.at_ms <= 60_200
    store = cluster.brokers["broker-a"].message_store
    assert store.get_max_offset_in_queue("%DLQ%G", 0) == 1


def test_messages_that_a_listener_holds_for_15_minutes_are_given_back_for_it(cluster: Any) -> None:
    def listener(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        return CONSUME_SUCCESS if messages[0].reconsume_times else forever(messages, context)

    cluster.consumer(listener=listener)
    send(cluster, ["a"])
    cluster.run_ms(20 * 60_000)
    assert [row[2] // 1_000 for row in cluster.rows if row[7] == "MessageGivenBack"] == []
    cluster.run_ms(12 * 60_000)
    (given_back,) = [row[2] / 60_000_000 for row in cluster.rows if row[7] == "MessageGivenBack"]
    assert 30 <= given_back < 30.1, "the first look, 15 minutes after the start, finds it a little younger than that"
    again = cluster.delivered[-1]
    assert (again.body, again.reconsume_times) == ("a", 1)
    assert again.at_ms / 60_000 == pytest.approx(given_back + 10 / 60, abs=0.01), "level 3"


def test_a_message_held_too_long_that_nobody_takes_back_stays_with_its_listener(cluster: Any) -> None:
    async def slowly(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        if messages[0].reconsume_times == 0:
            await context.sleep(200_000)
            return RECONSUME_LATER
        return CONSUME_SUCCESS

    send(cluster, ["a"])
    consumer = cluster.consumer(listener=slowly, consume_timeout=1)
    cluster.run_ms(100_000)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(60_000)
    assert cluster.events("SendBackFailed"), "given back for its listener, in vain"
    cluster.fault("restart", "broker-a")
    cluster.run_ms(240_000)
    assert [(delivery.body, delivery.reconsume_times) for delivery in cluster.delivered] == [("a", 0), ("a", 1)]
    assert consumer.process_queues


def test_hooks_see_orderly_consumption_too(cluster: Any) -> None:
    seen: list[str] = []

    class Noting(ConsumeMessageHook):
        def consume_message_before(self, context: Any) -> None:
            seen.append("before")

        def consume_message_after(self, context: Any) -> None:
            seen.append(f"{context.return_type.value} {context.status} {context.success}")

    class Failing(MessageListenerOrderly):
        calls = 0

        def consume_message(self, messages: Any, context: Any) -> Any:
            self.calls += 1
            if self.calls == 1:
                return None
            if self.calls == 2:
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return ConsumeOrderlyStatus.SUCCESS

    consumer = cluster.new_consumer()
    consumer.register_consume_message_hook(Noting())
    consumer.register_message_listener(Failing())
    consumer.start().play()
    send(cluster, ["a"])
    cluster.run_ms(6_000)
    suspended = "SUSPEND_CURRENT_QUEUE_A_MOMENT False"
    assert seen[::2] == ["before"] * 3
    assert seen[1::2] == [f"RETURNNULL {suspended}", f"FAILED {suspended}", "SUCCESS SUCCESS True"]
    sums = consumer.impl.statistics.by_topic["T"]
    assert (sums.calls, sums.consume_ok, sums.consume_failed) == (3, 1, 2)


def test_a_consumer_counts_what_it_pulls_and_consumes(cluster: Any) -> None:
    async def listener(messages: Any, context: ConsumeConcurrentlyContext) -> Any:
        await context.sleep(10)
        context.ack_index = 1
        return CONSUME_SUCCESS

    send(cluster, ["a", "b", "c"])
    consumer = cluster.consumer(listener=listener, consume_message_batch_max_size=3)
    cluster.run_ms(3_000)
    sums = consumer.impl.statistics.by_topic["T"]
    assert (sums.pulls, sums.pulled, sums.calls, sums.consume_ok, sums.consume_failed) == (1, 3, 1, 2, 1)
    assert sums.consume_us == 10_000
    assert 0 < sums.pull_us < 2_000


def test_what_a_full_pool_refuses_is_given_to_it_again_after_5_seconds(cluster: Any, consumer: Any) -> None:
    cluster.run_ms(3_000)
    service = consumer.impl.consume_message_service
    pool = service.pool
    service.pool = cluster.node("consumer").pool("without room", 1, capacity=0)
    service.pool.submit(forever, [], ConsumeConcurrentlyContext(cluster.node("consumer"), QUEUE))
    send(cluster, ["a"])
    cluster.run_ms(100)
    service.pool = pool
    begin_ms = cluster.now_ms
    cluster.run_ms(6_000)
    (delivery,) = cluster.delivered
    assert 4_900 <= delivery.at_ms - begin_ms <= 5_000


# -- offsets --------------------------------------------------------------------------------------------------------


class Shelf(OffsetStore):
    """Keeps offsets in a dict of the application's own."""

    kept: dict[MessageQueue, int]

    async def read_from_store(self, queue: MessageQueue) -> int:
        offset = self.kept.get(queue, -1)
        if offset >= 0:
            self.update_offset(queue, offset, increase_only=False)
        return offset

    def persist_all(self, queues: Any) -> None:
        for queue in queues:
            self.persist(queue)

    def persist(self, queue: MessageQueue) -> None:
        if queue in self.offset_table:
            self.kept[queue] = self.offset_table[queue].value


def test_an_offset_store_of_ones_own(cluster: Any) -> None:
    kept = {QUEUE: 1}
    store = type("Shelf", (Shelf,), {"kept": kept})
    send(cluster, ["a", "b", "c"])
    consumer = cluster.new_consumer()
    consumer.offset_store = store
    consumer.start().play()
    cluster.run_ms(3_000)
    assert cluster.bodies == ["b", "c"]
    consumer.shutdown().play()
    assert kept[QUEUE] == 3
    assert "UPDATE_CONSUMER_OFFSET" not in cluster.requests("consumer")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, ["old", "half an hour old", "new"]),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, ["half an hour old", "new"]),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ["new"]),
    ],
)
def test_where_a_new_group_begins(make_cluster: Any, where: ConsumeFromWhere, expected: list[str]) -> None:
    """With the first message gone from memory, so that the promise for young topics does not hold."""
    cluster = make_cluster(queues=1)
    send(cluster, ["old"])
    cluster.run_ms(50 * 60_000)
    send(cluster, ["half an hour old"])
    cluster.run_ms(20 * 60_000)
    cluster.brokers["broker-a"].message_store.check_in_mem_by_consume_offset = lambda *arguments: False
    cluster.consumer(consume_from_where=where)
    cluster.run_ms(3_000)
    send(cluster, ["new"])
    cluster.run_ms(1_000)
    assert cluster.bodies == expected
