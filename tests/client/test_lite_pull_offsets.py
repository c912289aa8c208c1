"""The lite pull consumer: seeking, commits, where it begins, and what rebalance and faults leave of that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mqlab.client import ConsumeFromWhere, Message, MessageModel, MessageQueue, OffsetStore
from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
from mqlab.errors import MQClientException
from mqlab.rebalance import AllocateMessageQueueStrategy
from tests.client.lite_pull import Q, assigned, new_lite, numbered, poll, poll_all, send, spawn_polling, subscribed

# -- seek -----------------------------------------------------------------------------------------------------------


def test_seek_goes_back_throws_away_what_is_cached_and_ends_the_held_pull(cluster: Any) -> None:
    send(cluster, 25)
    consumer = subscribed(cluster, auto_commit=False)
    assert poll(consumer) == numbered(10)
    cluster.run_ms(500)
    assert consumer.process_queues[Q[0]].msg_count == 15
    consumer.seek(Q[0], 3).play()
    assert consumer.process_queues[Q[0]].msg_count == 0
    assert len(consumer.impl.consume_request_cache) == 0
    begin_ms = cluster.now_ms
    assert poll_all(consumer) == numbered(22, 3)
    assert cluster.times_ms("MessagesPolled", "lite")[1] - begin_ms < 20
    assert cluster.events("QueueSought", "lite") == [("G", *Q[0], 3)]


def test_seek_counts_as_consumed_up_to_there_once_the_next_pull_has_begun(cluster: Any) -> None:
    send(cluster, 20)
    consumer = subscribed(cluster, auto_commit=False)
    cluster.run_ms(500)
    consumer.seek(Q[0], 12).play()
    cluster.run_ms(100)
    consumer.commit().play()
    assert consumer.committed(Q[0]).play() == 12


def test_seek_to_begin_and_to_end(cluster: Any) -> None:
    send(cluster, 5)
    consumer = subscribed(cluster)
    assert poll_all(consumer) == numbered(5)
    consumer.seek_to_begin(Q[0]).play()
    assert poll_all(consumer) == numbered(5)
    consumer.seek_to_begin(Q[0]).play()
    consumer.seek_to_end(Q[0]).play()
    send(cluster, 1, first=5)
    assert poll_all(consumer) == ["m5"]


@pytest.mark.parametrize("offset", [-1, 6, None, 1.5])
def test_seek_outside_of_the_queue_is_refused(cluster: Any, offset: Any) -> None:
    send(cluster, 5)
    consumer = subscribed(cluster)
    with pytest.raises(
        MQClientException, match=r"Seek offset illegal, seek offset = .*, min offset = 0, max offset = 5"
    ):
        consumer.seek(Q[0], offset).play()


@pytest.mark.queues(2)
def test_seek_in_a_queue_of_somebody_else_is_refused(cluster: Any) -> None:
    with pytest.raises(MQClientException, match="is not in assigned list, may be rebalancing"):
        subscribed(cluster).seek(Q[5], 0).play()
    with pytest.raises(MQClientException, match="is not in assigned list, message queue"):
        assigned(cluster, [Q[0]], "lite-2", group="G2").seek(Q[1], 0).play()


def test_a_seek_from_another_task_waits_for_the_end_of_a_poll(cluster: Any) -> None:
    send(cluster, 1)
    consumer = subscribed(cluster)
    assert poll(consumer) == ["m0"]
    polling = consumer.poll(4_000).start()
    begin_ms = cluster.now_ms
    consumer.seek_to_begin(Q[0]).play()
    assert cluster.now_ms - begin_ms == pytest.approx(4_000, abs=20)
    assert polling.play() == []
    assert poll(consumer) == ["m0"]


def test_offset_for_timestamp_and_back_to_it(cluster: Any) -> None:
    send(cluster, 3)
    cluster.run_ms(1_000)
    when_ms = cluster.node("test-producer").now_ms()
    cluster.run_ms(1_000)
    send(cluster, 3, first=3)
    consumer = subscribed(cluster)
    assert poll_all(consumer) == numbered(6)
    offset = consumer.offset_for_timestamp(Q[0], when_ms).play()
    assert offset == 3
    consumer.seek(Q[0], offset).play()
    assert poll_all(consumer) == numbered(3, 3)


# -- commits --------------------------------------------------------------------------------------------------------


def test_poll_commits_every_five_seconds_what_the_polls_before_it_handed_out(cluster: Any) -> None:
    consumer = subscribed(cluster)
    assert consumer.is_auto_commit
    consumer.poll(0).play()
    deadline_ms = cluster.now_ms + 5_000
    send(cluster, 1)
    assert poll(consumer) == ["m0"]
    cluster.run_ms(deadline_ms - cluster.now_ms - 100)
    consumer.poll(0).play()
    assert cluster.events("OffsetUpdated", "lite") == []
    cluster.run_ms(100)
    consumer.poll(0).play()
    assert cluster.events("OffsetUpdated", "lite")[-1] == ("G", *Q[0], 1)
    cluster.run_ms(5_000)
    assert cluster.events("OffsetPersisted", "lite")[-1] == ("G", *Q[0], 1)


def test_without_auto_commit_nothing_is_committed_until_commit_is_called(cluster: Any) -> None:
    send(cluster, 3)
    consumer = subscribed(cluster, auto_commit=False)
    assert not consumer.is_auto_commit
    assert poll(consumer) == numbered(3)
    cluster.run_ms(30_000)
    assert poll(consumer, 0) == []
    assert consumer.committed(Q[0]).play() == 0
    consumer.commit().play()
    assert consumer.committed(Q[0]).play() == 3
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 0
    cluster.run_ms(5_000)
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 3


def test_what_is_cached_but_not_polled_is_never_committed(cluster: Any) -> None:
    send(cluster, 25)
    consumer = subscribed(cluster)
    cluster.run_ms(500)
    assert len(poll(consumer)) == 10
    consumer.commit().play()
    assert consumer.committed(Q[0]).play() == 10


@pytest.mark.queues(2)
def test_commit_of_queues_with_persist_reaches_the_broker_at_once(cluster: Any) -> None:
    send(cluster, 3, queue=Q[0])
    send(cluster, 3, queue=Q[1])
    consumer = subscribed(cluster, auto_commit=False)
    assert len(poll_all(consumer)) == 6
    consumer.commit([Q[0]], persist=True).play()
    cluster.run_ms(10)
    manager = cluster.brokers["broker-a"].consumer_offset_manager
    assert [manager.query_offset("G", "T", queue_id) for queue_id in (0, 1)] == [3, -1]
    consumer.commit({Q[1]: 2}, persist=True).play()
    cluster.run_ms(10)
    assert manager.query_offset("G", "T", 1) == 2
    # The trap of persist: memory forgets the queues that were not named.
    assert list(consumer.impl.offset_store.offset_table) == [Q[1]]


def test_a_consumer_without_queues_writes_nothing_and_forgets_nothing(cluster: Any) -> None:
    consumer = new_lite(cluster)
    consumer.start().play()
    consumer.impl.offset_store.update_offset(Q[0], 7, increase_only=False)
    cluster.run_ms(30_000)
    assert consumer.committed(Q[0]).play() == 7
    assert cluster.events("OffsetPersisted", "lite") == []


def test_commit_sync_is_the_older_name(cluster: Any) -> None:
    send(cluster, 3)
    consumer = subscribed(cluster, auto_commit=False)
    poll(consumer)
    consumer.commit_sync({Q[0]: 1}).play()
    assert consumer.committed(Q[0]).play() == 1
    consumer.commit_sync().play()
    assert consumer.committed(Q[0]).play() == 3


def test_commits_of_nothing_of_other_queues_and_of_minus_one_change_nothing(cluster: Any) -> None:
    send(cluster, 1)
    consumer = subscribed(cluster, auto_commit=False)
    cluster.run_ms(100)
    before = consumer.impl.offset_store.clone_offset_table()
    for queues in ([], {}, {Q[0]: -1}, [Q[0]], {Q[7]: 5}):
        consumer.commit(queues).play()
    assert consumer.impl.offset_store.clone_offset_table() == before


def test_committed_is_minus_one_without_a_record_and_an_error_when_the_broker_cannot_be_asked(cluster: Any) -> None:
    cluster.create_topic("U", 1)
    consumer = subscribed(cluster)
    assert consumer.committed(MessageQueue("U", "broker-a", 0)).play() == -1
    cluster.fault("crash", "broker-a")
    with pytest.raises(MQClientException, match="Fetch consume offset from broker exception"):
        consumer.committed(MessageQueue("U", "broker-a", 0)).play()


# -- where it begins, and offset stores -----------------------------------------------------------------------------


def test_a_new_group_on_a_young_topic_begins_at_the_beginning_whatever_it_asks_for(cluster: Any) -> None:
    send(cluster, 3)
    consumer = subscribed(cluster, consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    assert poll_all(consumer) == numbered(3)


def test_consume_from_where_counts_where_the_broker_has_no_record(cluster: Any) -> None:
    send(cluster, 3)
    cluster.run_ms(2_000)
    minute_ms = cluster.node("test-producer").now_ms()
    cluster.run_ms(2_000)
    send(cluster, 2, first=3)

    class NoRecord(OffsetStore):
        async def read_from_store(self, queue: MessageQueue) -> int:
            return -1

        def persist_all(self, queues: Any) -> None:
            """Keep nothing."""

        def persist(self, queue: MessageQueue) -> None:
            """Keep nothing."""

    def begin(group: str, **settings: Any) -> list[str]:
        consumer = new_lite(cluster, f"lite-{group}", group=group, **settings)
        consumer.offset_store = NoRecord
        consumer.subscribe("T")
        consumer.start().play()
        cluster.run_ms(2_000)
        send(cluster, 1, first=99)
        return poll_all(consumer)

    assert begin("first") == [*numbered(5), "m99"]
    assert begin("last", consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET) == ["m99"]
    text = datetime.fromtimestamp(minute_ms // 1_000, UTC).strftime("%Y%m%d%H%M%S")
    by_time = begin("time", consume_from_where="CONSUME_FROM_TIMESTAMP", consume_timestamp=text)
    assert by_time == ["m3", "m4", "m99", "m99", "m99"]


def test_an_offset_that_cannot_be_read_puts_the_pull_off_for_a_second(cluster: Any) -> None:
    consumer = new_lite(cluster)

    class Unreadable(OffsetStore):
        async def read_from_store(self, queue: MessageQueue) -> int:
            return -2

    consumer.offset_store = Unreadable
    consumer.assign([Q[0]])
    consumer.start().play()
    cluster.run_ms(3_500)
    assert {(row[-2], row[-1]) for row in cluster.rows if row[7] == "PullPutOff"} == {
        ("offset < 0: the stored offset could not be read", 1_000)
    }


def test_a_first_offset_that_cannot_be_asked_for_puts_the_pull_off_for_three_seconds(cluster: Any) -> None:
    consumer = new_lite(cluster, consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)

    class NoRecord(OffsetStore):
        async def read_from_store(self, queue: MessageQueue) -> int:
            return -1

        def persist_all(self, queues: Any) -> None:
            """Keep nothing."""

    consumer.offset_store = NoRecord
    consumer.assign([MessageQueue("T", "broker-x", 0)])
    consumer.start().play()
    cluster.run_ms(7_000)
    off = [(row[2] / 1_000, row[-1]) for row in cluster.rows if row[7] == "PullPutOff"]
    assert [delay for _, delay in off] == [3_000] * 3
    assert off[1][0] - off[0][0] == pytest.approx(3_000, abs=5)


def test_an_illegal_offset_is_only_corrected_for_the_next_pull(cluster: Any) -> None:
    send(cluster, 3)
    consumer = new_lite(cluster, auto_commit=False)
    consumer.assign([Q[0]])
    consumer.start().play()
    cluster.run_ms(100)
    consumer.commit({Q[0]: 50}, persist=True).play()
    consumer.shutdown().play()
    again = assigned(cluster, [Q[0]], "lite-2")
    cluster.run_ms(1_000)
    results = [(status, next_offset) for *_, status, _, next_offset in cluster.events("PullFinished", "lite-2")]
    assert results == [("OFFSET_ILLEGAL", 3)]
    assert again.committed(Q[0]).play() == 50


@pytest.mark.queues(2)
def test_broadcasting_members_get_everything_and_keep_their_offsets_in_a_file(cluster: Any) -> None:
    send(cluster, 6)
    settings = {"message_model": MessageModel.BROADCASTING}
    first = subscribed(cluster, **settings)
    second = subscribed(cluster, "lite-2", **settings)
    assert first.assignment() == second.assignment() == Q[:2]
    assert sorted(poll_all(first)) == sorted(poll_all(second)) == numbered(6)
    first.commit().play()
    path = first.impl.offset_store.path
    first.shutdown().play()
    assert b'"queueId":1' in cluster.node("lite").disk.read_bytes(path).replace(b" ", b"")
    send(cluster, 1, first=6)
    assert poll_all(subscribed(cluster, **settings)) == ["m6"]


# -- rebalance and faults -------------------------------------------------------------------------------------------


@pytest.mark.queues(4)
def test_two_members_share_the_queues_and_the_one_that_loses_some_drops_what_it_had_cached(cluster: Any) -> None:
    first = subscribed(cluster)
    send(cluster, 12)
    cluster.run_ms(1_000)
    lost = first.process_queues[Q[3]]
    assert lost.msg_count == 3
    second = subscribed(cluster, "lite-2")
    cluster.run_ms(3_000)
    assert (first.assignment(), second.assignment()) == (Q[:2], Q[2:4])
    assert lost.dropped
    assert set(first.impl.task_table) == set(Q[:2])
    polled = poll_all(first) + poll_all(second)
    assert sorted(polled) == sorted(numbered(12))


@pytest.mark.queues(2)
def test_what_was_polled_but_not_committed_comes_again_at_the_new_owner(cluster: Any) -> None:
    send(cluster, 4)
    first = subscribed(cluster, auto_commit=False)
    assert sorted(poll_all(first)) == numbered(4)
    second = subscribed(cluster, "lite-2", auto_commit=False)
    cluster.run_ms(3_000)
    assert len(poll_all(second)) == 2


@pytest.mark.queues(4)
def test_the_queues_of_a_killed_member_are_taken_within_two_seconds(cluster: Any) -> None:
    subscribed(cluster)
    second = subscribed(cluster, "lite-2")
    cluster.run_ms(5_000)
    begin_ms = cluster.now_ms
    cluster.fault("crash", "lite")
    cluster.world.run_until(lambda: second.assignment() == Q[:4])
    assert cluster.now_ms - begin_ms < 2_000


def test_a_pull_consumer_keeps_queues_that_it_does_not_pull_for_more_than_two_minutes(cluster: Any) -> None:
    consumer = subscribed(cluster)
    consumer.pause(Q[:1])
    cluster.run_ms(300_000)
    assert consumer.assignment() == Q[:1]
    assert not cluster.events("QueueDropped", "lite")


def test_a_strategy_that_fails_leaves_the_queues_alone(cluster: Any) -> None:
    class Broken(AllocateMessageQueueStrategy):
        name = "BROKEN"

        def allocate(self, *arguments: Any) -> list[MessageQueue]:
            raise RuntimeError("no")

    consumer = new_lite(cluster, allocate_message_queue_strategy=Broken())
    consumer.subscribe("T")
    consumer.start().play()
    cluster.run_ms(5_000)
    assert consumer.assignment() == []
    assert "allocate message queue exception" in cluster.events("RebalanceSkipped", "lite")[-1][-1]


def test_a_killed_broker_that_comes_back_is_pulled_again(cluster: Any) -> None:
    consumer = subscribed(cluster)
    cluster.run_ms(1_000)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(5_000)
    cluster.fault("restart", "broker-a")
    cluster.run_ms(2_000)
    send(cluster, 3)
    assert poll_all(consumer, 5_000) == numbered(3)
    assert {row[-1] for row in cluster.rows if row[7] == "PullPutOff"} <= {1_000}


@pytest.mark.parametrize("seed", range(5))
def test_no_message_is_lost_with_commits_by_hand_when_a_member_is_killed_between_work_and_commit(
    make_cluster: Any, seed: int
) -> None:
    cluster = make_cluster(seed=seed, queues=4)
    got: list[str] = []
    members = [subscribed(cluster, f"lite-{number}", auto_commit=False) for number in (1, 2)]
    for member in members:

        async def work(member: DefaultLitePullConsumer = member) -> None:
            await member.node.sleep(20)
            await member.commit()

        spawn_polling(cluster, member, got, work)
    producer = cluster.producer("load")

    async def load() -> None:
        for number in range(400):
            await producer.send(Message("T", f"m{number}"))
            await producer.node.sleep(25)

    producer.node.spawn(load(), "load")
    cluster.run_ms(3_000 + 437 * seed)
    cluster.fault("crash", "lite-1")
    cluster.run_ms(40_000)
    assert set(got) == set(numbered(400))
    assert len(got) >= 400
