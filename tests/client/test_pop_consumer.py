"""A push consumer that pops, against a broker whose answers the test writes: every number of its side."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from mqlab.client import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    ConsumeFromWhere,
    DefaultMQPushConsumer,
    Message,
    MessageModel,
)
from mqlab.client.consumer.hooks import ConsumeMessageHook
from mqlab.client.consumer.listener import ListenerRaised, ListenerReturnedNone
from mqlab.client.consumer.pop.pop_request import PopProcessQueue
from mqlab.client.consumer.push.orderly_listener import ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.errors import MQClientException
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueConsistentHash
from tests.client.scripted_pop import Record, ScriptedPop
from tests.worlds import slow

pytestmark = pytest.mark.queues(2)

ANY = MessageQueue("T", "broker-a", -1)


@pytest.fixture
def pop(cluster: Any) -> ScriptedPop:
    """The broker, whose group G pops the topic T of two queues."""
    cluster.brokers["broker-a"].set_message_request_mode("T", "G", "POP")
    return ScriptedPop(cluster)


def popping(cluster: Any, **settings: Any) -> DefaultMQPushConsumer:
    """A started consumer that has sent its first pop."""
    consumer: DefaultMQPushConsumer = cluster.consumer(client_rebalance=False, **settings)
    cluster.run_ms(1_600)
    return consumer


def held(consumer: DefaultMQPushConsumer) -> dict[MessageQueue, PopProcessQueue]:
    return consumer.pop_process_queues


def unacked(consumer: DefaultMQPushConsumer) -> int:
    return held(consumer)[ANY].wait_ack_msg_count


# -- the beginning --------------------------------------------------------------------------------------------------


def test_the_requests_of_a_start_come_in_the_recorded_order(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster)
    sent = [name for name in cluster.requests("consumer") if name != "GET_ROUTEINFO_BY_TOPIC"]
    assert sent == [
        *("HEART_BEAT", "HEART_BEAT"),  # at the start, and after 1 s
        *("QUERY_ASSIGNMENT", "HEART_BEAT"),  # for T
        *("QUERY_ASSIGNMENT", "QUERY_CONSUMER_OFFSET", "HEART_BEAT"),  # for the retry topic of the group
        *("POP_MESSAGE", "PULL_MESSAGE"),  # each 500 ms behind its assignment
    ]
    assert list(held(consumer)) == [ANY]
    assert [queue.topic for queue in consumer.process_queues] == ["%RETRY%G"], "retry topics are pulled"


def test_the_first_pop_comes_500_ms_after_the_assignment_with_the_recorded_fields(
    cluster: Any, pop: ScriptedPop
) -> None:
    popping(cluster)
    (first,) = pop.pops
    assigned_ms = cluster.times_ms("PopAssigned", "consumer")[0]
    assert first.at_ms - assigned_ms == pytest.approx(500, abs=5)
    header = first.header
    assert (header.consumer_group, header.topic, header.queue_id, header.bname) == ("G", "T", -1, "broker-a")
    assert (header.max_msg_nums, header.invisible_time, header.poll_time) == (32, 60_000, 15_000)
    assert (header.exp_type, header.exp, header.order, header.init_mode) == ("TAG", "*", False, 0)
    assert header.attempt_id is None
    assert pop.now_ms - header.born_time < 200


def test_a_group_without_an_offset_begins_at_the_newest_unless_it_asks_for_the_first(
    cluster: Any, pop: ScriptedPop
) -> None:
    popping(cluster, consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)
    assert pop.pops[0].header.init_mode == 1


def test_nobody_pops_unless_both_the_client_and_the_broker_say_so(cluster: Any, pop: ScriptedPop) -> None:
    cluster.consumer("by-itself", group="G")
    cluster.create_topic("Pulled", 1)
    consumer = cluster.consumer("pulls", group="H", topic="Pulled", client_rebalance=False)
    cluster.run_ms(25_000)
    assert pop.pops == []
    assert MessageQueue("Pulled", "broker-a", 0) in consumer.process_queues
    assert cluster.events("AssignmentTaken", "by-itself") == []


@pytest.mark.parametrize("kind", ["orderly", "broadcasting"])
def test_orderly_listeners_and_broadcasting_groups_never_pop(cluster: Any, pop: ScriptedPop, kind: str) -> None:
    class InOrder(MessageListenerOrderly):
        def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
            return ConsumeOrderlyStatus.SUCCESS

    model = MessageModel.BROADCASTING if kind == "broadcasting" else MessageModel.CLUSTERING
    consumer = cluster.new_consumer(client_rebalance=False, message_model=model)
    if kind == "orderly":
        consumer.register_message_listener(InOrder())
    consumer.start().play()
    cluster.run_ms(3_000)
    assert pop.pops == []
    assert len([queue for queue in consumer.process_queues if queue.topic == "T"]) == 2


# -- messages come --------------------------------------------------------------------------------------------------


def test_each_message_is_acknowledged_by_itself_and_the_next_pop_goes_out_at_once(
    cluster: Any, pop: ScriptedPop
) -> None:
    consumer = popping(cluster)
    given_ms = cluster.now_ms
    pop.give(Record(0), Record(1), Record(4, queue_id=1))
    cluster.run_ms(50)
    assert sorted(cluster.bodies) == ["0/0", "0/1", "1/4"]
    assert sorted(pop.acked) == [(0, 0), (0, 1), (1, 4)]
    assert len(pop.pops) == 2
    assert pop.pops[1].at_ms - given_ms < 2
    assert unacked(consumer) == 0
    assert consumer.impl.statistics.by_topic["T"].consume_ok == 3


def test_the_listener_gets_batches_of_the_size_that_was_asked_for(cluster: Any, pop: ScriptedPop) -> None:
    sizes: list[int] = []

    def listen(messages: Any, context: Any) -> Any:
        sizes.append(len(messages))
        context.ack_index = 0
        return CONSUME_SUCCESS

    popping(cluster, listener=listen, consume_message_batch_max_size=2)
    pop.give(Record(0), Record(1), Record(2))
    cluster.run_ms(50)
    assert sizes == [2, 1]
    assert sorted(pop.acked) == [(0, 0), (0, 2)]
    assert pop.put_off == [(1, 10_000)], "what lies behind ackIndex has failed"


@pytest.mark.parametrize("answer", ["later", "none", "raises"])
def test_a_failed_message_is_put_off_by_the_number_of_its_tries(cluster: Any, pop: ScriptedPop, answer: str) -> None:
    def listen(messages: Any, context: Any) -> Any:
        if answer == "raises":
            raise ValueError("bad luck")
        return RECONSUME_LATER if answer == "later" else None

    popping(cluster, listener=listen)
    told = {"later": None, "none": ListenerReturnedNone, "raises": ListenerRaised}[answer]
    with pytest.warns(told, match="the listener of group 'G'") if told else nullcontext():
        pop.give(*(Record(offset, reconsume_times=offset) for offset in range(16)))
        cluster.run_ms(50)
    seconds = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
    assert sorted(pop.put_off) == [(offset, 1_000 * each) for offset, each in enumerate(seconds)]
    assert pop.acked == []


@pytest.mark.parametrize(("level", "seconds"), [(0, 120), (1, 30), (2, 60), (15, 7_200), (99, 7_200)])
def test_the_listener_may_choose_the_level(cluster: Any, pop: ScriptedPop, level: int, seconds: int) -> None:
    def listen(messages: Any, context: Any) -> Any:
        context.delay_level_when_next_consume = level
        return RECONSUME_LATER

    popping(cluster, listener=listen)
    pop.give(Record(0, reconsume_times=3))
    cluster.run_ms(50)
    assert pop.put_off == [(0, 1_000 * seconds)]


def test_level_minus_one_ends_the_job_and_nobody_is_told(cluster: Any, pop: ScriptedPop) -> None:
    def listen(messages: Any, context: Any) -> Any:
        context.delay_level_when_next_consume = -1
        return RECONSUME_LATER

    popping(cluster, listener=listen, consume_message_batch_max_size=2)
    pop.give(Record(0), Record(1))
    cluster.run_ms(50)
    assert (pop.put_off, pop.acked) == ([], [])
    ((*_, reason),) = cluster.events("PopThreadFailed")
    assert reason == "Index -1 out of bounds for length 16"


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [
        (4 * 3_600_000 + 1, "acked"),
        (4 * 3_600_000 - 1_000, 7_200_000),
        (59_000, 60_000),
        (61_000, 120_000),
        (9_000, "nothing"),
    ],
)
def test_a_message_that_was_tried_too_often_is_given_up_when_it_is_four_hours_old(
    cluster: Any, pop: ScriptedPop, age_ms: int, expected: int | str
) -> None:
    popping(cluster, listener=lambda messages, context: RECONSUME_LATER, max_reconsume_times=2)
    pop.give(Record(0, reconsume_times=2, born_ms_ago=age_ms))
    cluster.run_ms(50)
    assert pop.acked == ([(0, 0)] if expected == "acked" else [])
    assert pop.put_off == ([(0, expected)] if isinstance(expected, int) else [])
    assert len(cluster.events("PopThreadFailed")) == (expected == "nothing")


def test_messages_beyond_the_maximum_never_reach_the_listener(cluster: Any, pop: ScriptedPop) -> None:
    popping(cluster)
    pop.give(Record(0, reconsume_times=16), Record(1, reconsume_times=17))
    cluster.run_ms(50)
    assert cluster.bodies == ["0/0"]
    assert sorted(pop.acked) == [(0, 0), (0, 1)]
    assert [event[-1] for event in cluster.events("AckRequested")] == ["tried too often", "consumed"]


def test_what_the_filters_leave_out_is_acknowledged(cluster: Any, pop: ScriptedPop) -> None:
    consumer = cluster.new_consumer(tags="TagA", client_rebalance=False)
    consumer.register_filter_message_hook(lambda context: context.msg_list.pop(0))
    consumer.start().play()
    cluster.run_ms(1_600)
    pop.give(Record(0), Record(1, tags="TagB"), Record(2, tags=""), Record(3))
    cluster.run_ms(50)
    assert cluster.bodies == ["0/3"]
    assert sorted(pop.acked) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert pop.pops[0].header.exp == "TagA"
    assert unacked(consumer) == 0


def test_hooks_see_every_call_of_the_listener(cluster: Any, pop: ScriptedPop) -> None:
    seen: list[str] = []

    class Hook(ConsumeMessageHook):
        def consume_message_before(self, context: Any) -> None:
            seen.append(f"before {len(context.messages)}")

        def consume_message_after(self, context: Any) -> None:
            seen.append(f"after {context.status} {context.return_type.value}")

    consumer = cluster.new_consumer(client_rebalance=False)
    consumer.register_consume_message_hook(Hook())
    consumer.start().play()
    cluster.run_ms(1_600)
    pop.give(Record(0))
    cluster.run_ms(50)
    assert seen == ["before 1", "after CONSUME_SUCCESS SUCCESS"]


# -- the invisible time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "in_time"), [(4.8, True), (5.2, False)])
def test_a_listener_that_ends_behind_the_invisible_time_is_given_up_silently(
    cluster: Any, pop: ScriptedPop, seconds: float, in_time: bool
) -> None:
    consumer = popping(cluster, listener=slow(seconds * 1_000), pop_invisible_time=5_000)
    assert pop.pops[0].header.invisible_time == 5_000
    pop.give(Record(0))
    cluster.run_ms(6_000)
    assert pop.acked == ([(0, 0)] if in_time else [])
    assert pop.put_off == []
    assert unacked(consumer) == 0
    given_up = [event[-1] for event in cluster.events("PopGivenUp")]
    assert given_up == ([] if in_time else ["the invisible time was over when the listener ended"])


def test_what_waits_for_a_thread_until_its_time_is_over_is_not_consumed(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(
        cluster, listener=slow(3_000), pop_invisible_time=5_000, consume_thread_min=1, consume_thread_max=1
    )
    pop.give(Record(0), Record(1), Record(2))
    cluster.run_ms(10_000)
    assert cluster.bodies == ["0/0", "0/1"], "the second one begins at 3 s and ends too late"
    assert pop.acked == [(0, 0)]
    assert unacked(consumer) == 0
    assert [event[-1].split(" over ")[1] for event in cluster.events("PopGivenUp")] == [
        "when the listener ended",
        "before the listener was called",
    ]


@pytest.mark.parametrize("invisible_ms", [4_999, 300_001])
def test_an_invisible_time_that_is_set_out_of_range_later_becomes_a_minute(
    cluster: Any, pop: ScriptedPop, invisible_ms: int
) -> None:
    consumer = popping(cluster)
    consumer.pop_invisible_time = invisible_ms
    pop.give(Record(0))
    cluster.run_ms(50)
    assert pop.pops[1].header.invisible_time == 60_000


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pop_invisible_time": 4_999}, r"popInvisibleTime Out of range \[5000, 300000\]"),
        ({"pop_invisible_time": 300_001}, r"popInvisibleTime Out of range \[5000, 300000\]"),
        ({"pop_batch_nums": 0}, r"popBatchNums Out of range \[1, 32\]"),
        ({"pop_batch_nums": 33}, r"popBatchNums Out of range \[1, 32\]"),
    ],
)
def test_illegal_settings_are_refused_at_the_start(cluster: Any, settings: dict[str, int], words: str) -> None:
    with pytest.raises(MQClientException, match=words):
        cluster.new_consumer(**settings).start().play()


# -- when not to pop ------------------------------------------------------------------------------------------------


def test_more_than_96_messages_without_an_ack_hold_the_pops_back(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster, listener=slow(5_000), consume_thread_min=100, consume_thread_max=100)
    for batch in range(3):
        pop.give(*(Record(32 * batch + number) for number in range(32)))
        cluster.run_ms(50)
    assert (unacked(consumer), len(pop.pops)) == (96, 4), "96 are not too many"
    pop.give(Record(96))
    cluster.run_ms(1_000)
    assert (unacked(consumer), len(pop.pops)) == (97, 4)
    refused = cluster.events("FlowControlled")
    assert {event[4:] for event in refused} == {("unacked", 97, 96)}
    assert len(refused) == pytest.approx(20, abs=1), "each 50 ms"
    cluster.run_ms(5_000)
    assert len(pop.pops) == 5
    assert consumer.impl.flow_control_times["unacked"] == len(cluster.events("FlowControlled"))


@pytest.mark.parametrize(
    ("code", "delay_ms"),
    [
        (ResponseCode.POLLING_TIMEOUT, 0),
        (ResponseCode.PULL_NOT_FOUND, 0),
        (ResponseCode.POLLING_FULL, 1_000),
        (ResponseCode.SYSTEM_ERROR, 1_000),
        (ResponseCode.FLOW_CONTROL, 20),
    ],
)
def test_when_the_next_pop_comes_after_an_answer_without_messages(
    cluster: Any, pop: ScriptedPop, code: ResponseCode, delay_ms: int
) -> None:
    popping(cluster)
    said_ms = cluster.now_ms
    pop.say(code)
    cluster.run_ms(1_100)
    assert pop.pops[1].at_ms - said_ms == pytest.approx(delay_ms, abs=2)


def test_a_pop_without_an_answer_is_given_up_after_25_s(cluster: Any, pop: ScriptedPop) -> None:
    popping(cluster)
    cluster.run_ms(29_000)
    assert 27_000 <= pop.pops[1].at_ms - pop.pops[0].at_ms <= 28_100, "25 s, 1 s more, the scan each second, then 1 s"


def test_a_suspended_consumer_looks_again_every_1000_ms(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster)
    consumer.suspend()
    pop.give(Record(0))
    cluster.run_ms(5_050)
    assert cluster.bodies == ["0/0"], "what has come is consumed"
    assert len(pop.pops) == 1
    assert len(cluster.events("PullPutOff")) >= 5
    consumer.resume()
    cluster.run_ms(1_000)
    assert len(pop.pops) == 2


def test_pull_interval_puts_the_next_pop_off(cluster: Any, pop: ScriptedPop) -> None:
    popping(cluster, pull_interval=700)
    pop.give(Record(0))
    cluster.run_ms(1_000)
    assert pop.pops[1].at_ms - cluster.times_ms("MessagesTaken", "consumer")[0] == pytest.approx(700, abs=2)


# -- acknowledgements that fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [CONSUME_SUCCESS, RECONSUME_LATER])
def test_a_refused_word_to_the_broker_is_said_once_and_never_again(
    cluster: Any, pop: ScriptedPop, result: Any
) -> None:
    consumer = popping(cluster, listener=lambda messages, context: result)
    for code in (RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME):
        pop.refusals[code] = ResponseCode.NO_MESSAGE
    pop.give(Record(0))
    cluster.run_ms(5_000)
    assert len(pop.acked) + len(pop.put_off) == 1
    kind = "AckFailed" if result is CONSUME_SUCCESS else "InvisibleTimeNotChanged"
    ((*which, reason),) = cluster.events(kind)
    assert which[:5] == ["G", "T", "broker-a", 0, 0]
    assert reason == "CODE: 208  DESC: refused by the test"
    assert unacked(consumer) == 0


def test_a_broker_that_dies_before_the_ack_is_not_told(cluster: Any, pop: ScriptedPop) -> None:
    popping(cluster, listener=slow(2_000))
    pop.give(Record(0))
    cluster.run_ms(500)
    cluster.fault("crash", "broker-a")
    cluster.run_ms(8_000)
    assert [event[4] for event in cluster.events("AckFailed")] == [0]
    assert cluster.events("PullPutOff", "consumer"), "the loop goes on and finds no broker"


def test_a_listener_that_breaks_the_handle_cannot_be_acknowledged(cluster: Any, pop: ScriptedPop) -> None:
    def listen(messages: Any, context: Any) -> Any:
        messages[0].properties["POP_CK"] = "1 2"
        return CONSUME_SUCCESS

    popping(cluster, listener=listen)
    pop.give(Record(0))
    cluster.run_ms(50)
    assert pop.acked == []
    assert [event[-1] for event in cluster.events("AckFailed")] == ["getInvisibleTime fail, extraInfoStrs length 2"]


# -- assignments come and go ----------------------------------------------------------------------------------------


def test_from_pop_to_pull_and_back(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster)
    broker = cluster.brokers["broker-a"]
    broker.set_message_request_mode("T", "G", "PULL")
    cluster.run_ms(22_000)
    assert held(consumer) == {}
    assert {queue.queue_id for queue in consumer.process_queues if queue.topic == "T"} == {0, 1}
    assert "%RETRY%G_T" in consumer.impl.rebalance_impl.subscription_inner
    pops = len(pop.pops)
    pop.give(Record(0))
    cluster.run_ms(50)
    assert cluster.bodies == [], "an answer to an assignment that is gone"
    assert [event[-1] for event in cluster.events("PopGivenUp")] == [
        "the assignment was given up before the listener was called"
    ]
    broker.set_message_request_mode("T", "G", "POP")
    cluster.run_ms(22_000)
    assert list(held(consumer)) == [ANY]
    assert not [queue for queue in consumer.process_queues if queue.topic == "T"]
    assert "%RETRY%G_T" not in consumer.impl.rebalance_impl.subscription_inner
    assert len(pop.pops) == pops + 1


@pytest.mark.queues(1)
@pytest.mark.queues(1)
def test_whoever_pulls_also_gets_what_was_popped_before_under_its_own_topic(cluster: Any) -> None:
    """Each round makes the subscription anew, so the pulls are refused until the next heartbeat tells of it."""
    cluster.create_topic("%RETRY%G_T", 1)
    cluster.consumer(client_rebalance=False)
    cluster.run_ms(25_000)
    cluster.producer().send(Message("%RETRY%G_T", b"again")).play()
    cluster.run_ms(32_000)
    assert [(delivery.body, delivery.topic) for delivery in cluster.delivered] == [("again", "T")]
    assert any("subscription not latest" in event[4] for event in cluster.events("PullPutOff"))


@pytest.mark.queues(1)
@pytest.mark.queues(1)
def test_a_topic_that_is_pulled_is_rebalanced_each_second_while_nothing_was_ever_popped(cluster: Any) -> None:
    def rounds() -> int:
        return len([event for event in cluster.events("AssignmentTaken") if event[2] == "T"])

    cluster.consumer(client_rebalance=False)
    cluster.run_ms(20_000)
    at_first = rounds()
    assert 17 <= at_first <= 20
    cluster.create_topic("%RETRY%G_T", 1)
    cluster.run_ms(40_000)
    assert rounds() - at_first <= 4


def test_an_assignment_that_was_not_popped_for_120_s_is_taken_anew(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster)
    before = held(consumer)[ANY]
    before.last_pop_us -= 121_000_000
    cluster.run_ms(21_000)
    after = held(consumer)[ANY]
    assert before.dropped
    assert after is not before
    assert [event[-1] for event in cluster.events("PopUnassigned")] == ["it was not popped for 120 s: taken anew"]
    assert len(pop.pops) == 2


def test_a_topic_that_is_no_longer_subscribed_is_no_longer_popped(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster)
    consumer.unsubscribe("T")
    cluster.run_ms(21_000)
    assert held(consumer) == {}
    pop.give(Record(0))
    cluster.run_ms(1_000)
    assert (cluster.bodies, len(pop.pops)) == ([], 1)


def test_what_a_consumer_holds_at_its_shutdown_is_told_to_nobody(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster, listener=slow(1_000), consume_thread_min=1, consume_thread_max=1)
    pop.give(Record(0), Record(1))
    cluster.run_ms(200)
    consumer.shutdown().play()
    cluster.run_ms(5_000)
    assert cluster.bodies == ["0/0"]
    assert (pop.acked, pop.put_off, held(consumer)) == ([], [], {})
    assert len(cluster.events("PopGivenUp")) == 2


def test_a_broker_that_cannot_tell_the_queues_changes_nothing(cluster: Any, pop: ScriptedPop) -> None:
    consumer = popping(cluster, allocate_message_queue_strategy=AllocateMessageQueueConsistentHash())
    assert cluster.events("RebalanceSkipped")
    assert held(consumer) == {}
    assert len(cluster.events("AssignmentAnswered")) >= 2, "asked again after a second"
