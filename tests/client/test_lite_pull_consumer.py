"""The lite pull consumer: its life, its queues by subscription or by hand, polling, pausing, flow control."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import ConsumeFromWhere, ConsumeMessageHook, Message, MessageModel, MessageQueue
from mqlab.client.consumer.listener import ListenerRaised
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.errors import LearnerError, MQBrokerException, MQClientException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ConsumeType
from tests.client.lite_pull import NAMESRV, Q, assigned, new_lite, numbered, poll, poll_all, send, subscribed
from tests.worlds import shop, started_producer

# -- start and shutdown ---------------------------------------------------------------------------------------------


@pytest.mark.queues(2)
def test_a_start_asks_for_the_route_and_the_first_pulls_come_with_the_rebalance_a_second_later(cluster: Any) -> None:
    consumer = new_lite(cluster)
    consumer.subscribe("T")
    begin_ms = cluster.now_ms
    consumer.start().play()
    assert "PULL" not in " ".join(cluster.requests("lite"))
    cluster.run_ms(1_500)
    requests = cluster.requests("lite")
    assert requests[0] == "GET_ROUTEINFO_BY_TOPIC"
    # The rebalance asks where to begin, and so does each pull task, because "no record" is not remembered.
    wanted = ["GET_CONSUMER_LIST_BY_GROUP"] + ["QUERY_CONSUMER_OFFSET"] * 4 + ["LITE_PULL_MESSAGE"] * 2
    assert requests[-7:] == wanted
    assert 1_000 <= cluster.times_ms("PullRequested", "lite")[0] - begin_ms < 1_010
    assert consumer.is_running()


def test_the_client_id_ends_with_stream_and_the_heartbeat_says_that_it_pulls_actively(cluster: Any) -> None:
    consumer = subscribed(cluster, unit_mode=True)
    instance = consumer.impl.instance
    assert instance.client_id.endswith("@STREAM")
    (data,) = instance.heartbeats.prepare().consumer_data_set
    assert (data.group_name, data.consume_type, data.message_model) == (
        "G",
        ConsumeType.CONSUME_ACTIVELY,
        MessageModel.CLUSTERING,
    )
    assert data.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert [(sub.topic, sub.sub_string) for sub in data.subscription_data_set] == [("T", "*")]
    assert data.unit_mode


def test_no_retry_topic_is_subscribed(cluster: Any) -> None:
    consumer = subscribed(cluster)
    assert [sub.topic for sub in consumer.impl.subscriptions()] == ["T"]


def test_a_second_start_is_refused(cluster: Any) -> None:
    consumer = subscribed(cluster)
    text = "The PullConsumer service state not OK, maybe started once, RUNNING"
    with pytest.raises(MQClientException, match=text):
        consumer.start().play()
    consumer.shutdown().play()
    with pytest.raises(MQClientException, match="maybe started once, SHUTDOWN_ALREADY"):
        consumer.start().play()
    assert not consumer.is_running()


def test_two_consumers_of_one_group_in_one_instance_are_refused(cluster: Any) -> None:
    first = new_lite(cluster, instance_name="one")
    first.start().play()
    second = new_lite(cluster, instance_name="one")
    with pytest.raises(MQClientException, match=r"The consumer group\[G\] has been created before"):
        second.start().play()
    assert str(second.impl.service_state) == "CREATE_JUST"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"message_model": None}, "messageModel is null"),
        ({"allocate_message_queue_strategy": None}, "allocateMessageQueueStrategy is null"),
        ({"consumer_timeout_millis_when_suspend": 19_999}, "must greater than brokerSuspendMaxTimeMillis"),
        ({"consume_from_where": "CONSUME_FROM_MIN_OFFSET"}, "Invalid ConsumeFromWhere Value"),
        ({"consume_from_where": "CONSUME_FROM_TIMESTAMP", "consume_timestamp": "now"}, "consumeTimestamp is invalid"),
        ({"namesrv_addr": ""}, "No name server address"),
        ({"pull_batch_size": 0}, "pull_batch_size=0 is not possible"),
        ({"consume_max_span": -1}, "consume_max_span=-1 is not possible"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_the_start(cluster: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(MQClientException, match=text):
        new_lite(cluster, **settings).start().play()


@pytest.mark.parametrize("group", ["DEFAULT_CONSUMER", "a b", ""])
def test_groups_that_cannot_be_are_refused_at_the_start(cluster: Any, group: str) -> None:
    with pytest.raises(MQClientException):
        new_lite(cluster, group=group).start().play()


def test_an_unknown_setting_names_the_nearest_one(cluster: Any) -> None:
    with pytest.raises(LearnerError, match="did you mean 'pull_batch_size'"):
        new_lite(cluster, pull_batch_sice=3)


def test_shutdown_writes_the_committed_offsets_and_leaves(cluster: Any) -> None:
    send(cluster, 3)
    consumer = subscribed(cluster)
    assert poll(consumer) == numbered(3)
    consumer.commit().play()
    cluster.run_ms(10)
    before = len(cluster.requests("lite"))
    consumer.shutdown().play()
    assert cluster.requests("lite")[before:] == ["UPDATE_CONSUMER_OFFSET"] + ["UNREGISTER_CLIENT"] * 2
    assert cluster.brokers["broker-a"].consumer_offset_manager.query_offset("G", "T", 0) == 3
    cluster.run_ms(60_000)
    assert cluster.requests("lite")[before + 3 :] == []
    consumer.shutdown().play()


def test_what_was_polled_since_the_last_commit_comes_again_after_a_clean_shutdown(cluster: Any) -> None:
    send(cluster, 3)
    first = subscribed(cluster)
    assert poll(first) == numbered(3)
    first.shutdown().play()
    assert poll(subscribed(cluster, "lite-2")) == numbered(3)


@pytest.mark.parametrize(
    "use",
    [
        lambda consumer: consumer.poll(),
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.commit_sync(),
        lambda consumer: consumer.committed(Q[0]),
        lambda consumer: consumer.fetch_message_queues("T"),
        lambda consumer: consumer.offset_for_timestamp(Q[0], 0),
        lambda consumer: consumer.seek_to_begin(Q[0]),
        lambda consumer: consumer.seek_to_end(Q[0]),
    ],
)
def test_before_the_start_and_after_the_end_nothing_works_and_the_error_says_so(cluster: Any, use: Any) -> None:
    consumer = new_lite(cluster)
    text = "The consumer not running, please start it first"
    with pytest.raises(MQClientException, match=text):
        use(consumer).play()
    consumer.start().play()
    consumer.shutdown().play()
    with pytest.raises(MQClientException, match=r"SHUTDOWN_ALREADY\. What to do: make a new one"):
        use(consumer).play()


# -- subscribe or assign --------------------------------------------------------------------------------------------


def test_subscribe_and_assign_exclude_each_other(cluster: Any) -> None:
    text = "Subscribe and assign are mutually exclusive"
    one = new_lite(cluster)
    one.subscribe("T")
    with pytest.raises(LearnerError, match=text):
        one.assign([Q[0]])
    with pytest.raises(LearnerError, match=text):
        one.set_sub_expression_for_assign("T", "A")
    other = new_lite(cluster)
    other.assign([Q[0]])
    with pytest.raises(MQClientException, match=f"subscribe exception: {text}"):
        other.subscribe("T")


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda c: c.subscribe(""), "Topic can not be null or empty"),
        (lambda c: c.subscribe(None), "Topic can not be null or empty"),
        (lambda c: c.subscribe("T", "||"), "subString split error"),
        (lambda c: c.subscribe("T", 5), "a consumer subscribes to a text"),
        (lambda c: c.assign([]), "Message queues can not be null or empty"),
        (lambda c: c.assign(Q[0]), "is no list of queues"),
        (lambda c: c.assign(None), "is no list of queues"),
        (lambda c: c.assign(["T"]), "'T' is no queue"),
        (lambda c: c.pause(Q[0]), "is no list of queues"),
        (lambda c: c.resume(["T"]), "'T' is no queue"),
        (lambda c: c.seek("T", 0).play(), "'T' is no queue"),
        (lambda c: c.committed("T").play(), "'T' is no queue"),
        (lambda c: c.commit(Q[0]).play(), "is no list of queues"),
        (lambda c: c.set_sub_expression_for_assign("T", " "), "subExpression can not be null or empty"),
        (lambda c: c.set_sub_expression_for_assign("T", "||"), "subString split error"),
        (lambda c: setattr(c, "auto_commit_interval_millis", 999), "give 1000 or more"),
        (lambda c: c.register_topic_message_queue_change_listener("T", None).play(), "Topic or listener is null"),
    ],
)
def test_bad_input_is_told_with_what_to_do(cluster: Any, use: Any, text: str) -> None:
    with pytest.raises((LearnerError, MQClientException), match=text):
        use(new_lite(cluster))


@pytest.mark.queues(4)
def test_assigned_queues_are_pulled_at_once_without_a_rebalance(cluster: Any) -> None:
    send(cluster, 8)
    consumer = assigned(cluster, [Q[1], Q[3]])
    begin_ms = cluster.now_ms
    assert consumer.assignment() == [Q[1], Q[3]]
    assert len(poll_all(consumer)) == 4
    assert cluster.times_ms("MessagesPolled", "lite")[0] - begin_ms < 50
    assert not cluster.events("RebalanceDone", "lite")
    assert consumer.impl.subscriptions() == []


@pytest.mark.queues(2)
def test_assigning_anew_drops_the_old_queues_and_what_is_cached_of_them(cluster: Any) -> None:
    send(cluster, 3, queue=Q[0])
    send(cluster, 3, first=3, queue=Q[1])
    consumer = assigned(cluster, [Q[0]])
    cluster.run_ms(500)
    old = consumer.process_queues[Q[0]]
    assert old.msg_count == 3
    consumer.assign([Q[1]])
    assert old.dropped
    assert consumer.assignment() == [Q[1]]
    assert poll_all(consumer) == numbered(3, 3)
    send(cluster, 1, first=9, queue=Q[0])
    assert poll(consumer, 2_000) == []


def test_an_assigned_topic_can_be_filtered_by_tags_but_only_before_the_start(cluster: Any) -> None:
    send(cluster, 2, tags="A")
    send(cluster, 2, first=2, tags="B")
    consumer = new_lite(cluster)
    consumer.set_sub_expression_for_assign("T", "B || C")
    consumer.assign([Q[0]])
    consumer.start().play()
    assert poll_all(consumer) == numbered(2, 2)
    with pytest.raises(LearnerError, match="setAssignTag only can be called before start"):
        consumer.set_sub_expression_for_assign("T", "A")


def test_two_members_that_assign_the_same_queue_both_get_everything(cluster: Any) -> None:
    send(cluster, 5)
    first, second = assigned(cluster, [Q[0]]), assigned(cluster, [Q[0]], "lite-2")
    assert poll_all(first) == poll_all(second) == numbered(5)


def test_a_subscription_with_tags_gets_those_and_commits_only_what_it_polled(cluster: Any) -> None:
    send(cluster, 2, tags="A")
    send(cluster, 5, first=2, tags="B")
    consumer = subscribed(cluster, tags="A")
    assert poll_all(consumer) == numbered(2)
    consumer.commit().play()
    # Pulls have passed over the other five, but nothing that was polled says so: the group seems to lag behind.
    assert consumer.impl.assigned_message_queue.state(Q[0]).pull_offset == 7
    assert consumer.committed(Q[0]).play() == 2


def test_a_tag_that_only_has_the_hash_of_a_wanted_one_is_filtered_by_the_consumer(cluster: Any) -> None:
    send(cluster, 1, tags="Aa")
    send(cluster, 1, first=1, tags="BB")
    consumer = subscribed(cluster, tags="Aa")
    assert poll_all(consumer) == ["m0"]
    assert cluster.events("MessagesFiltered", "lite") == [("G", *Q[0], 1)]


def test_a_selector_by_tag_is_a_tag_expression_and_one_by_sql_is_refused_by_a_broker_without_filters(
    cluster: Any,
) -> None:
    send(cluster, 1, tags="A")
    send(cluster, 1, first=1, tags="B")
    consumer = new_lite(cluster)
    consumer.subscribe("T", MessageSelector.by_tag("B"))
    consumer.start().play()
    assert poll(consumer) == ["m1"]
    other = new_lite(cluster, "lite-2", group="G2")
    other.subscribe("T", MessageSelector.by_sql("a > 1"))
    with pytest.raises(MQClientException):
        other.start().play()
    assert not other.is_running()


def test_a_running_consumer_can_subscribe_to_one_more_topic_and_give_one_up(cluster: Any) -> None:
    cluster.create_topic("U", 1)
    consumer = subscribed(cluster)
    consumer.subscribe("U")
    cluster.run_ms(3_000)
    assert [queue.topic for queue in consumer.assignment()] == ["T", "U"]
    consumer.unsubscribe("T")
    assert [queue.topic for queue in consumer.assignment()] == ["U"]
    send(cluster, 1)
    send(cluster, 1, first=1, topic="U")
    assert poll_all(consumer, 2_000) == ["m1"]


@pytest.mark.queues(4)
def test_the_listener_of_the_last_subscribe_hears_of_every_change_after_the_queues_are_taken_over(cluster: Any) -> None:
    heard: list[tuple[str, int, int, int]] = []
    consumer = new_lite(cluster)

    def listener(topic: str, mq_all: list[MessageQueue], mq_divided: list[MessageQueue]) -> None:
        heard.append((topic, len(mq_all), len(mq_divided), len(consumer.assignment())))

    consumer.subscribe("T", "*", listener)
    consumer.start().play()
    cluster.run_ms(5_000)
    subscribed(cluster, "lite-2")
    cluster.run_ms(5_000)
    assert heard == [("T", 4, 4, 4), ("T", 4, 2, 2)]


def test_what_a_queue_listener_raises_is_told_and_the_consumer_goes_on(cluster: Any) -> None:
    send(cluster, 1)
    consumer = new_lite(cluster)

    async def listener(topic: str, mq_all: list[MessageQueue], mq_divided: list[MessageQueue]) -> None:
        raise ValueError("no")

    consumer.subscribe("T", "*", listener)
    consumer.start().play()
    with pytest.warns(ListenerRaised, match="the queue listener of group 'G' raised ValueError: no"):
        assert poll(consumer) == ["m0"]
    assert cluster.events("QueueListenerFailed", "lite") == [("G", "T", "ValueError: no")]


# -- polling --------------------------------------------------------------------------------------------------------


@pytest.mark.queues(2)
def test_poll_hands_out_one_pull_of_at_most_ten_messages_of_one_queue(cluster: Any) -> None:
    send(cluster, 25, queue=Q[0])
    send(cluster, 3, first=25, queue=Q[1])
    consumer = subscribed(cluster)
    cluster.run_ms(500)
    batches = [consumer.poll(0).play() for _ in range(5)]
    assert sorted(len(batch) for batch in batches) == [0, 3, 5, 10, 10]
    assert all(len({message.queue_id for message in batch}) == 1 for batch in batches[:4])
    offsets = [message.queue_offset for batch in batches for message in batch if message.queue_id == 0]
    assert offsets == list(range(25))


def test_poll_without_a_timeout_waits_five_seconds_for_a_message(cluster: Any) -> None:
    consumer = subscribed(cluster)
    begin_ms = cluster.now_ms
    assert consumer.poll().play() == []
    assert cluster.now_ms - begin_ms == pytest.approx(5_000, abs=0.01)
    assert consumer.poll(0).play() == []
    assert cluster.now_ms - begin_ms == pytest.approx(5_000, abs=0.01)


def test_a_message_ends_a_poll_that_waits_and_a_pull_that_the_broker_holds(cluster: Any) -> None:
    consumer = subscribed(cluster)
    cluster.run_ms(2_000)
    call = consumer.poll(60_000).start()
    cluster.run_ms(10_000)
    assert not call.done
    begin_ms = cluster.now_ms
    send(cluster, 1)
    assert [message.body for message in call.play()] == [b"m0"]
    assert cluster.now_ms - begin_ms < 50


@pytest.mark.parametrize("timeout", [-1, 1.5, "5"])
def test_a_timeout_that_cannot_be_is_refused(cluster: Any, timeout: Any) -> None:
    consumer = new_lite(cluster)
    consumer.start().play()
    with pytest.raises(LearnerError, match="Timeout must not be negative"):
        consumer.poll(timeout).play()


def test_the_broker_holds_a_pull_on_an_empty_queue_for_twenty_seconds_or_up_to_five_more(cluster: Any) -> None:
    subscribed(cluster)
    cluster.run_ms(120_000)
    asked = cluster.times_ms("PullRequested", "lite")
    assert all(20_000 <= later - earlier <= 25_010 for earlier, later in pairwise(asked))
    assert len(asked) >= 5
    assert all(flag == 0b10110 for *_, flag in cluster.events("PullRequested", "lite"))
    assert {status for *_, status, _, _ in cluster.events("PullFinished", "lite")} == {"NO_NEW_MSG"}


def test_a_pull_that_nobody_answers_ends_after_thirty_seconds_and_comes_again_after_one(cluster: Any) -> None:
    # Heartbeats that time out would close the connection, and end the pull before its time.
    assigned(cluster, [Q[0]], heartbeat_broker_interval=300_000)
    cluster.run_ms(2_000)
    asked_ms = cluster.times_ms("PullRequested", "lite")[-1]
    cluster.fault("freeze", "broker-a")
    cluster.run_ms(31_000)
    (off,) = [row for row in cluster.rows if row[7] == "PullPutOff" and row[3] == "lite"]
    assert off[2] / 1_000 - asked_ms == pytest.approx(30_000, abs=1)
    assert off[-1] == 1_000


@pytest.mark.queues(4)
def test_each_held_pull_keeps_a_thread_so_more_queues_than_threads_take_turns(cluster: Any) -> None:
    consumer = subscribed(cluster, pull_thread_nums=2)
    cluster.run_ms(10_000)
    assert {queue for _, _, _, queue, *_ in cluster.events("PullRequested", "lite")} == {0, 1}
    pool = consumer.impl.pull_pool.pool
    assert (pool.busy, len(pool.queue)) == (2, 2)
    send(cluster, 1, queue=Q[3])
    begin_ms = cluster.now_ms
    assert poll(consumer, 60_000) == ["m0"]
    assert cluster.now_ms - begin_ms > 5_000


def test_hooks_see_each_batch_and_may_take_messages_out_of_a_pull(cluster: Any) -> None:
    send(cluster, 4)
    consumer = new_lite(cluster)
    seen: list[tuple[str, int, bool, str]] = []

    class Noting(ConsumeMessageHook):
        def consume_message_before(self, context: Any) -> None:
            seen.append(("before", len(context.messages), context.success, context.status))

        def consume_message_after(self, context: Any) -> None:
            seen.append(("after", len(context.messages), context.success, context.status))

    def without_m1(context: Any) -> None:
        context.msg_list = [message for message in context.msg_list if message.body != b"m1"]

    consumer.register_consume_message_hook(Noting())
    consumer.register_filter_message_hook(without_m1)
    consumer.subscribe("T")
    consumer.start().play()
    assert poll(consumer) == ["m0", "m2", "m3"]
    assert seen == [("before", 3, False, ""), ("after", 3, True, "CONSUME_SUCCESS")]


# -- flow control ---------------------------------------------------------------------------------------------------


def flow_control(cluster: Any) -> set[tuple[str, int]]:
    return {(reason, limit) for *_, reason, _, limit in cluster.events("FlowControlled", "lite")}


def test_the_published_thresholds(cluster: Any) -> None:
    consumer = new_lite(cluster)
    assert (consumer.pull_threshold_for_all, consumer.pull_threshold_for_queue) == (10_000, 1_000)
    assert (consumer.pull_threshold_size_for_queue, consumer.consume_max_span) == (100, 2_000)
    assert (consumer.pull_batch_size, consumer.pull_thread_nums, consumer.poll_timeout_millis) == (10, 20, 5_000)
    assert (consumer.broker_suspend_max_time_millis, consumer.consumer_timeout_millis_when_suspend) == (20_000, 30_000)
    assert (consumer.auto_commit_interval_millis, consumer.topic_metadata_check_interval_millis) == (5_000, 30_000)


def test_more_than_a_thousand_cached_messages_of_a_queue_stop_its_pulls_for_50_ms_each_time(cluster: Any) -> None:
    send(cluster, 1_100)
    consumer = subscribed(cluster)
    cluster.run_ms(2_000)
    assert flow_control(cluster) == {("count", 1_000)}
    assert consumer.process_queues[Q[0]].msg_count == 1_010
    refused = cluster.times_ms("FlowControlled", "lite")
    assert all(later - earlier == pytest.approx(50, abs=0.01) for earlier, later in pairwise(refused))
    assert consumer.impl.flow_control_times["count"] == len(refused)
    assert len(poll(consumer)) == 10
    cluster.run_ms(60)
    assert consumer.process_queues[Q[0]].msg_count == 1_010


def test_more_than_the_limit_in_mebibytes_stops_the_pulls_of_a_queue(cluster: Any) -> None:
    send(cluster, 40, size=100_000)
    consumer = subscribed(cluster, pull_threshold_size_for_queue=1)
    cluster.run_ms(1_000)
    assert flow_control(cluster) == {("size", 1)}
    assert 2 << 20 <= consumer.process_queues[Q[0]].msg_size < 3 << 20
    assert poll_all(consumer) == numbered(40)


def test_a_span_of_more_than_the_limit_stops_the_pulls_of_a_queue(cluster: Any) -> None:
    for number in range(0, 60, 2):
        send(cluster, 1, first=number, tags="A")
        send(cluster, 1, first=number + 1, tags="B")
    consumer = subscribed(cluster, tags="A", consume_max_span=30)
    cluster.run_ms(1_000)
    assert flow_control(cluster) == {("span", 30)}
    assert poll_all(consumer) == [f"m{number}" for number in range(0, 60, 2)]


@pytest.mark.queues(2)
def test_the_limit_for_all_queues_counts_ten_messages_for_each_batch_however_small_it_is(cluster: Any) -> None:
    consumer = subscribed(cluster, pull_threshold_for_all=50)
    cluster.run_ms(1_000)
    for number in range(12):
        send(cluster, 1, first=number, queue=Q[number % 2])
        cluster.run_ms(100)
    assert flow_control(cluster) == {("all", 50)}
    # The sixth batch is over the limit; the seventh comes from the pull of the other queue, which was held by then.
    assert len(consumer.impl.consume_request_cache) == 7
    assert sum(queue.msg_count for queue in consumer.process_queues.values()) == 7
    assert sorted(poll_all(consumer)) == sorted(numbered(12))


def test_a_broker_that_asks_for_less_haste_is_asked_again_after_20_ms(make_cluster: Any) -> None:
    cluster = make_cluster(queues=1)
    consumer = subscribed(cluster)
    task = consumer.impl.task_table[Q[0]]
    assert task._delay_after(MQBrokerException(int(ResponseCode.FLOW_CONTROL), "slow down")) == 20
    assert task._delay_after(MQBrokerException(1, "no")) == 1_000


# -- pause and resume -----------------------------------------------------------------------------------------------


def test_a_paused_queue_is_not_pulled_what_is_cached_is_handed_out_and_resuming_works_within_a_second(
    cluster: Any,
) -> None:
    send(cluster, 2)
    consumer = subscribed(cluster)
    cluster.run_ms(1_000)
    consumer.pause([Q[0], MessageQueue("T", "nobody", 9)])
    assert poll(consumer) == numbered(2)
    # The pull that the broker holds is answered still; the one after it is put off.
    send(cluster, 1, first=2)
    assert poll(consumer) == ["m2"]
    send(cluster, 1, first=3)
    assert poll(consumer, 10_000) == []
    off = [row[2] / 1_000 for row in cluster.rows if row[7] == "PullPutOff" and row[3] == "lite"]
    assert all(later - earlier == pytest.approx(1_000, abs=0.01) for earlier, later in pairwise(off))
    consumer.resume([Q[0]])
    begin_ms = cluster.now_ms
    assert poll(consumer) == ["m3"]
    assert cluster.now_ms - begin_ms < 1_010


# -- queues of a topic ----------------------------------------------------------------------------------------------


@pytest.mark.queues(3)
def test_fetch_message_queues_asks_the_name_server(cluster: Any) -> None:
    consumer = new_lite(cluster)
    consumer.start().play()
    assert consumer.fetch_message_queues("T").play() == Q[:3]
    with pytest.raises(MQClientException, match="Can not find Message Queue for this topic, nope"):
        consumer.fetch_message_queues("nope").play()


@pytest.mark.queues(2)
def test_a_topic_listener_hears_of_new_queues_after_ten_and_then_every_thirty_seconds(cluster: Any) -> None:
    heard: list[tuple[float, int]] = []
    consumer = new_lite(cluster)
    consumer.register_topic_message_queue_change_listener("T", lambda topic, qs: heard.append((0, -1))).play()
    consumer.start().play()
    begin_ms = cluster.now_ms
    consumer.register_topic_message_queue_change_listener(
        "T", lambda topic, queues: heard.append((cluster.now_ms - begin_ms, len(queues)))
    ).play()
    cluster.create_topic("T", 3)
    cluster.run_ms(20_000)
    cluster.create_topic("T", 4)
    cluster.run_ms(60_000)
    assert [queues for _, queues in heard] == [3, 4]
    assert [at for at, _ in heard] == [pytest.approx(10_000, abs=20), pytest.approx(40_000, abs=20)]
    assert cluster.events("TopicQueuesChanged", "lite") == [("G", "T", 3), ("G", "T", 4)]
    consumer.shutdown().play()
    cluster.create_topic("T", 5)
    cluster.run_ms(60_000)
    assert len(heard) == 2


@pytest.mark.queues(2)
def test_a_watched_topic_without_a_route_is_told_and_looked_at_again(cluster: Any) -> None:
    consumer = new_lite(cluster)
    consumer.register_topic_message_queue_change_listener("nope", print).play()
    with pytest.raises(MQClientException, match="Can not find Message Queue for this topic, nope"):
        consumer.start().play()
    assert not consumer.is_running()
    other = new_lite(cluster, "lite-2")
    other.start().play()
    other.register_topic_message_queue_change_listener("T", print).play()
    cluster.fault("freeze", "namesrv")
    cluster.run_ms(50_000)
    assert any(event[1] == "T" for event in cluster.events("RouteMissing", "lite-2"))


# -- in a lab -------------------------------------------------------------------------------------------------------


def test_a_restarted_machine_goes_on_with_what_was_subscribed_or_assigned() -> None:
    lab = shop(seed=3, queues=2)
    by_subscription = lab.lite_pull_consumer("subscribers", node="one", auto_commit=False)
    by_subscription.subscribe("T", "A")
    by_hand = lab.lite_pull_consumer("assigners", node="two", auto_commit=False)
    by_hand.set_sub_expression_for_assign("T", "A")
    by_hand.assign([Q[1]])
    for consumer in (by_subscription, by_hand):
        lab.run(consumer.start())
    lab.run_for(seconds=3)
    for node in ("one", "two"):
        lab.crash(node)
        lab.restart(node)
    lab.run_for(seconds=5)
    producer = started_producer(lab, "orders")
    for tag in "AB":
        lab.run(producer.send(Message("T", tag, tags=tag), queue=Q[1]))
    for consumer in (by_subscription, by_hand):
        assert consumer.is_running()
        assert [message.body for message in lab.run(consumer.poll())] == [b"A"]
    assert by_hand.assignment() == [Q[1]]


def test_a_consumer_whose_process_was_killed_says_so(cluster: Any) -> None:
    consumer = subscribed(cluster)
    cluster.node("lite").boot = lambda node: None
    cluster.fault("crash", "lite")
    cluster.fault("restart", "lite")
    with pytest.raises(MQClientException, match="this consumer died with its process"):
        consumer.poll().play()


def test_its_name_servers_can_be_changed_while_it_runs(cluster: Any) -> None:
    consumer = new_lite(cluster)
    with pytest.raises(MQClientException, match="please start it first"):
        consumer.update_name_server_address(NAMESRV)
    consumer.start().play()
    consumer.update_name_server_address(f"{NAMESRV};10.0.0.9:9876")
    assert consumer.impl.instance.api.remoting_client.name_server_addresses == [NAMESRV, "10.0.0.9:9876"]


def test_what_it_says_of_itself(cluster: Any) -> None:
    consumer = subscribed(cluster)
    assert repr(consumer) == "<DefaultLitePullConsumer G on lite: RUNNING, 1 queues, 0 batches cached>"
    call = consumer.poll(0)
    assert repr(call).startswith("not awaited: consumer.poll(...)")
    assert call.play() == []
