"""POP_MESSAGE: what is checked, from where messages are taken, and what the answer says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from mqlab.protocol.topics import pop_retry_topic
from mqlab.store import MessageExtBrokerInner
from tests.broker.conftest import messages_of

RETRY_V1 = pop_retry_topic("T", "G")
RETRY_V2 = pop_retry_topic("T", "G", version_2=True)
NO_RETRY_FIRST = 40
"""A random number with which the normal queues come first, and of them queue 0 if there are 1, 2, 4, 5 or 8."""


def info(response: Any) -> h.PopMessageResponseHeader:
    header: h.PopMessageResponseHeader = response.header_as(h.PopMessageResponseHeader)
    return header


def offsets_of(response: Any) -> tuple[str | None, str | None]:
    return info(response).start_offset_info, info(response).msg_offset_info


# -- nothing of it before it is needed --------------------------------------------------------------------------------


def test_a_broker_from_which_nobody_pops_has_no_part_of_pop(cluster: Any, popper: Any) -> None:
    assert cluster.broker.made_pop is None
    popper.pop()
    assert cluster.broker.made_pop is cluster.broker.pop
    assert len(cluster.broker.notify_message_arriving_listener.listeners) == 3


# -- refusals ---------------------------------------------------------------------------------------------------------


def forbid_topic(cluster: Any) -> None:
    cluster.broker.topic_config_manager.topic_config_table["T"].perm = PermName.WRITE


def forbid_group(cluster: Any) -> None:
    cluster.broker.subscription_group_manager.update_subscription_group_config(
        SubscriptionGroupConfig("G", consume_enable=False)
    )


def forbid_broker(cluster: Any) -> None:
    cluster.broker.broker_config.broker_permission = PermName.WRITE


def forbid_new_groups(cluster: Any) -> None:
    cluster.broker.broker_config.auto_create_subscription_group = False


def no_timer_wheel(cluster: Any) -> None:
    cluster.broker.message_store_config.timer_wheel_enable = False


def nothing(cluster: Any) -> None:
    """The broker is as it is."""


@pytest.mark.parametrize(
    ("break_it", "asked", "code", "remark"),
    [
        (nothing, {"max_msg_nums": 33}, 29, "the broker[10.0.0.2] pop message's num is greater than 32"),
        (nothing, {"topic": "Nowhere"}, 17, "topic[Nowhere] not exist, apply first please! \nSee"),
        (nothing, {"queue_id": 1}, 29, "queueId[1] is illegal, topic:[T] topicConfig.readQueueNums:[1] consumer:[/10"),
        (nothing, {"exp": "||"}, 23, "parse the consumer's subscription failed"),
        (nothing, {"exp": "a >", "exp_type": "SQL92"}, 23, "parse the consumer's subscription failed"),
        (no_timer_wheel, {}, 1, "the broker[10.0.0.2] pop message is forbidden because timerWheelEnable is false"),
        (forbid_topic, {}, 16, "the topic[T] peeking message is forbidden"),
        (forbid_broker, {}, 16, "the broker[10.0.0.2] pop message is forbidden"),
        (forbid_group, {}, 16, "subscription group no permission, G"),
        (forbid_new_groups, {"consumer_group": "New"}, 26, "subscription group [New] does not exist, \nSee"),
    ],
)
def test_a_pop_is_refused_as_a_real_broker_refuses_it(
    cluster: Any, popper: Any, break_it: Callable[[Any], None], asked: dict[str, Any], code: int, remark: str
) -> None:
    popper.send(b"1")
    break_it(cluster)
    response = popper.pop(**asked)
    assert response.code == code
    assert response.remark.startswith(remark)
    assert info(response) == h.PopMessageResponseHeader(0, 0, 0, 0)
    assert popper.seen("MessagePopped") == []


@pytest.mark.parametrize(("late_ms", "code"), [(500, ResponseCode.SUCCESS), (501, ResponseCode.POLLING_TIMEOUT)])
def test_a_request_more_than_half_a_second_too_late_is_too_old(
    cluster: Any, popper: Any, late_ms: int, code: int
) -> None:
    popper.send(b"1")
    # The frame arrives in the same millisecond.
    cluster.run(1 - cluster.now_ms % 1 + 0.1)
    response = popper.pop(born_time=cluster.broker_node.now_ms() - 2_000 - late_ms, poll_time=2_000)
    assert response.code == code
    if code:
        assert response.remark == "the broker[10.0.0.2] pop message is timeout too much"


def test_a_request_that_does_not_say_when_it_was_made_is_new(cluster: Any, popper: Any) -> None:
    answer = popper.begin(born_time=0, poll_time=1_000)
    cluster.run(900)
    assert not answer.done
    assert cluster.world.wait_for(answer).code == ResponseCode.POLLING_TIMEOUT


def test_an_unknown_group_is_made_and_counts_as_one_that_pops(cluster: Any, popper: Any) -> None:
    popper.pop(exp="TagA || TagB")
    assert cluster.broker.subscription_group_manager.contains_subscription_group("G")
    consumers = cluster.broker.consumer_manager
    assert consumers.get_consumer_group_info("G") is None
    assert consumers.find_subscription_data("G", "T").sub_string == "TagA || TagB"
    assert consumers.find_subscription_data("G", RETRY_V1).sub_string == "*"
    assert consumers.consumer_compensation_table["G"].consume_type == "CONSUME_POP"


# -- which queues -----------------------------------------------------------------------------------------------------


def test_all_queues_are_popped_from_a_random_one_on(make_popper: Any) -> None:
    popper = make_popper(queues=4)
    for queue_id in range(4):
        popper.send(b"%d" % queue_id, queue_id=queue_id)
    popper.random_q(42)
    response = popper.pop()
    assert info(response).start_offset_info == "0 2 0;0 3 0;0 0 0;0 1 0"
    assert info(response).msg_offset_info == "0 2 0;0 3 0;0 0 0;0 1 0"
    assert len({event["pop_time"] for event in popper.seen("MessagePopped")}) == 1


def test_what_does_not_fit_into_the_batch_is_counted_as_rest(make_popper: Any) -> None:
    popper = make_popper(queues=4)
    for queue_id in range(4):
        popper.send(b"1", b"2", b"3", queue_id=queue_id)
    popper.random_q(NO_RETRY_FIRST)
    response = popper.pop(max_msg_nums=5)
    assert offsets_of(response) == ("0 0 0;0 1 0", "0 0 0,1,2;0 1 0,1")
    assert info(response).rest_num == 7


def test_one_queue_alone_can_be_popped(make_popper: Any) -> None:
    popper = make_popper(queues=4)
    popper.send(b"other", queue_id=0)
    popper.send(b"1", queue_id=3)
    assert popper.bodies(queue_id=3) == [b"1"]
    assert popper.pop(queue_id=3).code == ResponseCode.POLLING_TIMEOUT


def test_each_message_is_handed_out_once_until_its_time_is_up(popper: Any) -> None:
    popper.send(b"1", b"2", b"3")
    assert popper.bodies(max_msg_nums=2) == [b"1", b"2"]
    assert popper.bodies(max_msg_nums=2) == [b"3"]
    assert popper.bodies() == []
    assert popper.bodies(consumer_group="Other") == [b"1", b"2", b"3"]


def test_each_pop_takes_the_next_revive_queue(popper: Any) -> None:
    popper.send(b"1")
    assert [info(popper.pop()).revive_qid for _ in range(10)] == [number % 8 for number in range(10)]


# -- retry topics -----------------------------------------------------------------------------------------------------


def revived(cluster: Any, *bodies: bytes, topic: str = RETRY_V1) -> None:
    """Put messages into a retry topic, as the reviver does."""
    if topic not in cluster.broker.topic_config_manager.topic_config_table:
        cluster.topic(topic, 1)
    for body in bodies:
        cluster.broker.message_store.put_message(
            MessageExtBrokerInner(topic, body, properties={"TAGS": "TagA"}, reconsume_times=1)
        )
    cluster.run(2)


@pytest.mark.parametrize(("random_q", "first"), [(0, b"again"), (19, b"again"), (20, b"new"), (99, b"new")])
def test_one_pop_of_five_looks_at_the_retry_topic_first(cluster: Any, popper: Any, random_q: int, first: bytes) -> None:
    popper.send(b"new")
    revived(cluster, b"again")
    popper.random_q(random_q)
    assert popper.bodies(max_msg_nums=1) == [first]


def test_the_retry_topic_comes_last_if_there_is_room(cluster: Any, popper: Any) -> None:
    popper.send(b"new")
    revived(cluster, b"again")
    popper.random_q(NO_RETRY_FIRST)
    response = popper.pop()
    assert offsets_of(response) == ("0 0 0;1 0 0", "0 0 0;1 0 0")
    assert info(response).rest_num == 0


def test_a_full_batch_does_not_even_count_the_retry_topic(cluster: Any, popper: Any) -> None:
    popper.send(b"new")
    revived(cluster, b"again")
    popper.random_q(NO_RETRY_FIRST)
    assert info(popper.pop(max_msg_nums=1)).rest_num == 0


def test_a_retry_message_comes_under_the_plain_topic_with_its_handle(cluster: Any, popper: Any) -> None:
    revived(cluster, b"again")
    response = popper.pop(invisible_time=7_000)
    (message,) = messages_of(response)
    handle = parse_handle(message.properties["POP_CK"])
    assert (message.topic, message.body, message.reconsume_times) == ("T", b"again", 1)
    assert handle == (0, info(response).pop_time, 7_000, info(response).revive_qid, "1", "broker-a", 0, 0, None)
    assert popper.seen("MessagePopped")[0]["topic"] == RETRY_V1
    stored = cluster.broker.message_store.get_message("G", RETRY_V1, 0, 0, 1).messages[0]
    assert b"POP_CK" not in stored


def test_a_retry_message_can_be_answered_under_its_own_topic(make_popper: Any) -> None:
    popper = make_popper(pop_response_return_actual_retry_topic=True)
    revived(popper.cluster, b"again")
    (message,) = messages_of(popper.pop())
    assert message.topic == RETRY_V1
    assert "POP_CK" not in message.properties


def test_of_both_forms_of_retry_topics_an_even_number_takes_the_first(make_popper: Any) -> None:
    popper = make_popper(enable_retry_topic_v2=True)
    revived(popper.cluster, b"v1")
    revived(popper.cluster, b"v2", topic=RETRY_V2)
    popper.random_q(41, 42)
    (second, first) = (messages_of(popper.pop())[0], messages_of(popper.pop())[0])
    flags = [(m.body, parse_handle(m.properties["POP_CK"]).retry) for m in (first, second)]
    assert flags == [(b"v1", "1"), (b"v2", "2")]


def test_the_first_form_can_be_left_alone(make_popper: Any) -> None:
    popper = make_popper(enable_retry_topic_v2=True, retrieve_message_from_pop_retry_topic_v1=False)
    revived(popper.cluster, b"v1")
    popper.random_q(42)
    assert popper.bodies() == []


@pytest.mark.parametrize("topic", ["T", RETRY_V1])
def test_an_entry_of_zeros_as_a_loss_of_power_leaves_it_is_passed_over(
    cluster: Any, popper: Any, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    revived(cluster, b"1", b"2", topic=topic)
    popper.pop(max_msg_nums=0)
    log = cluster.broker.message_store.commit_log
    read = log.get_message
    first = cluster.broker.message_store.find_consume_queue(topic, 0).get(0).pos
    monkeypatch.setattr(log, "get_message", lambda pos, size: b"" if pos == first else read(pos, size))
    assert popper.bodies() == [b"2"]
    assert [event["unique_key"] for event in popper.seen("MessagePopped")] == ["", ""]


# -- filters ----------------------------------------------------------------------------------------------------------


def test_a_filtered_batch_has_gaps_and_its_check_point_knows_them(popper: Any) -> None:
    for place in range(5):
        popper.send(b"%d" % place, properties={"TAGS": "TagA" if place % 2 else "TagB"})
    response = popper.pop(exp="TagA")
    assert offsets_of(response) == ("0 0 0", "0 0 1,3")
    (made,) = popper.seen("CheckPointMade")
    assert (made["start_offset"], made["messages"], made["offsets"]) == (0, 2, "1,3")


def test_the_offset_moves_on_behind_messages_that_nobody_wants(cluster: Any, popper: Any) -> None:
    popper.send(b"1", b"2", properties={"TAGS": "TagB"})
    assert popper.pop(exp="TagA").code == ResponseCode.POLLING_TIMEOUT
    (made,) = popper.seen("CheckPointMade")
    assert (made["held_in"], made["messages"]) == ("offset only", 0)
    cluster.run(20)
    assert popper.offset() == 2


# -- progress ---------------------------------------------------------------------------------------------------------


def test_the_offset_is_that_of_the_last_check_point_before_it_is_committed(cluster: Any, popper: Any) -> None:
    popper.send(b"1", b"2")
    began_ms = cluster.seen("BrokerStarted")[0]["ts_ms"]
    cluster.run(began_ms + 501 - cluster.now_ms)
    popper.pop(max_msg_nums=1)
    assert popper.offset() == 0
    assert cluster.broker.pop.pop_buffer_merge_service.get_latest_offset("T@G@0") == 1
    cluster.run(20)
    assert popper.offset() == 1


@pytest.mark.parametrize(
    ("init_mode", "settings", "bodies", "committed"),
    [
        (0, {}, [b"1", b"2", b"3"], 0),
        (1, {}, [b"1", b"2", b"3"], 0),
        (1, {"init_pop_offset_by_check_msg_in_mem": False}, [b"3"], 2),
    ],
)
def test_a_new_group_begins_where_its_mode_says_and_that_is_committed(
    make_popper: Any, init_mode: int, settings: dict[str, Any], bodies: list[bytes], committed: int
) -> None:
    popper = make_popper(**settings)
    popper.send(b"1", b"2", b"3")
    assert popper.bodies(init_mode=init_mode) == bodies
    first = next(row for row in popper.cluster.events if row[7] == "OffsetCommitted" and row[8] == "G")
    assert first[9:] == ("T", 0, committed, "pop init")


def test_an_old_queue_is_begun_at_its_last_message_by_the_mode_max(cluster: Any, popper: Any) -> None:
    popper.send(*(b"%d" % place for place in range(5)))
    queue = cluster.broker.message_store.find_consume_queue("T", 0)
    queue.min_logic_offset = 2 * 20
    assert popper.bodies(init_mode=1) == [b"4"]


def test_a_retry_topic_begins_at_its_oldest_message_in_any_mode(make_popper: Any) -> None:
    popper = make_popper(init_pop_offset_by_check_msg_in_mem=False)
    revived(popper.cluster, b"1", b"2", b"3")
    assert popper.bodies(init_mode=1) == [b"1", b"2", b"3"]


def test_an_empty_queue_begins_at_0(cluster: Any, popper: Any) -> None:
    assert popper.pop().code == ResponseCode.POLLING_TIMEOUT
    assert popper.offset() == 0
    assert popper.seen("CheckPointMade") == []


def test_a_reset_is_picked_up_once_and_forgets_what_waits_in_memory(cluster: Any, popper: Any) -> None:
    popper.send(b"1", b"2", b"3")
    popper.pop()
    cluster.run(20)
    cluster.broker.consumer_offset_manager.assign_reset_offset("G", "T", 0, 1)
    assert popper.bodies() == [b"2", b"3"]
    assert popper.bodies() == []


@pytest.mark.parametrize("wrong", [99, 1_000_000])
def test_an_offset_behind_the_end_is_corrected_and_tried_again(cluster: Any, popper: Any, wrong: int) -> None:
    popper.send(b"1")
    cluster.broker.consumer_offset_manager.commit_offset("G", "T", 0, wrong)
    assert popper.pop().code == ResponseCode.POLLING_TIMEOUT
    assert popper.offset() == 1
    popper.send(b"2")
    assert popper.bodies() == [b"2"]


def test_a_topic_that_was_deleted_and_made_anew_begins_anew(cluster: Any, popper: Any) -> None:
    popper.send(b"old", b"old")
    popper.pop()
    cluster.run(20)
    popper.raw.call(RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("T"))
    assert popper.pop().code == ResponseCode.TOPIC_NOT_EXIST
    cluster.topic("T")
    assert popper.pop().code == ResponseCode.POLLING_TIMEOUT
    popper.send(b"new")
    assert popper.bodies() == [b"new"]


# -- locks ------------------------------------------------------------------------------------------------------------


def test_a_queue_whose_lock_is_taken_is_left_out_and_counted(cluster: Any, make_popper: Any) -> None:
    popper = make_popper(queues=2)
    popper.send(b"1", b"2", queue_id=0)
    popper.send(b"3", queue_id=1)
    locks = popper.cluster.broker.pop.locks
    assert locks.try_lock("T", "G", 0)
    response = popper.pop()
    assert info(response).msg_offset_info == "0 1 0"
    assert info(response).rest_num == 2
    assert popper.seen("PopQueueBusy")[0]["queue_id"] == 0
    locks.unlock("T", "G", 0)
    assert popper.bodies() == [b"1", b"2"]


def test_a_lock_that_is_never_given_back_heals_with_the_first_minute_s_turn_after_a_minute(
    cluster: Any, popper: Any
) -> None:
    popper.send(b"1")
    began_ms = cluster.seen("BrokerStarted")[0]["ts_ms"]
    locks = cluster.broker.pop.locks
    cluster.run(began_ms + 5_000 - cluster.now_ms)
    assert locks.try_lock("T", "G", 0)
    cluster.run(began_ms + 119_990 - cluster.now_ms)
    assert popper.bodies() == []
    cluster.run(20)
    assert popper.bodies() == [b"1"]


# -- limits -----------------------------------------------------------------------------------------------------------


def test_a_group_with_too_many_messages_under_way_gets_no_more(make_popper: Any) -> None:
    popper = make_popper(enable_pop_message_threshold=True, pop_inflight_message_threshold=2)
    popper.send(*(b"%d" % place for place in range(5)))
    assert popper.bodies(max_msg_nums=2) == [b"0", b"1"]
    assert popper.bodies(max_msg_nums=1) == [b"2"]
    response = popper.pop()
    assert (response.code, info(response).rest_num) == (ResponseCode.POLLING_TIMEOUT, 2)


@pytest.mark.parametrize(
    ("code", "header"),
    [
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, h.ResetOffsetRequestHeader("G", "T", 0, True, queue_id=0)),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, h.DeleteSubscriptionGroupRequestHeader("G", True)),
        (RequestCode.DELETE_TOPIC_IN_BROKER, h.DeleteTopicRequestHeader("T")),
    ],
)
def test_a_reset_and_the_end_of_a_group_or_topic_begin_to_count_anew(make_popper: Any, code: int, header: Any) -> None:
    popper = make_popper(enable_pop_message_threshold=True, pop_inflight_message_threshold=1)
    popper.send(b"1", b"2", b"3")
    popper.pop(max_msg_nums=2)
    counter = popper.cluster.broker.pop.pop_inflight_message_counter
    assert (counter.number("T", "G", 0), popper.bodies()) == (2, [])
    assert popper.raw.call(code, header).code == ResponseCode.SUCCESS
    assert counter.number("T", "G", 0) == 0


def test_a_pop_waits_for_the_flush_of_its_check_point_and_keeps_its_lock(make_cluster: Any) -> None:
    from tests.broker.pop.conftest import Popper

    cluster = make_cluster({"flush_disk_type": "SYNC_FLUSH"})
    cluster.topic("T")
    popper = Popper(cluster, cluster.client())
    popper.send(b"1", b"2")
    cluster.do("hang_disk", node="broker-a")
    first = popper.begin(max_msg_nums=1)
    cluster.run(50)
    assert not first.done
    assert popper.bodies() == []
    assert popper.seen("PopQueueBusy")
    cluster.do("unhang_disk", node="broker-a")
    assert cluster.world.wait_for(first).code == ResponseCode.SUCCESS
    assert cluster.broker.pop.locks.held == {}


def test_what_gets_no_check_point_is_not_handed_out(cluster: Any, popper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    popper.send(b"1", b"2")
    buffer = cluster.broker.pop.pop_buffer_merge_service
    monkeypatch.setattr(buffer, "add_ck_just_offset", lambda *ck: False)
    response = popper.pop()
    assert (response.code, info(response).rest_num) == (ResponseCode.POLLING_TIMEOUT, 2)
    monkeypatch.undo()
    assert popper.bodies() == [b"1", b"2"]


# -- in order ---------------------------------------------------------------------------------------------------------


def test_a_pop_in_order_blocks_its_queue_and_makes_no_check_point(cluster: Any, popper: Any) -> None:
    popper.send(b"1", b"2", b"3")
    response = popper.pop(order=True, max_msg_nums=2, attempt_id="a")
    assert info(response).revive_qid == 999
    assert info(response).order_count_info == "0 0 0"
    assert popper.offset() == 0
    assert popper.seen("CheckPointMade") == []
    assert popper.bodies(order=True, attempt_id="b") == []
    assert popper.bodies(order=True, attempt_id="a", max_msg_nums=2) == [b"1", b"2"]
    cluster.run(10_000)
    assert popper.bodies(order=True, attempt_id="b", max_msg_nums=2) == [b"1", b"2"]


def test_a_pop_in_order_never_reads_the_retry_topic(cluster: Any, popper: Any) -> None:
    revived(cluster, b"again")
    popper.random_q(0, 40)
    assert popper.bodies(order=True) == []
    assert popper.bodies(order=True) == []


# -- over a restart ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dead_ms", [100, 30_000])
def test_what_is_out_when_the_broker_is_killed_comes_back_though_nobody_pops_again(
    cluster: Any, popper: Any, dead_ms: int
) -> None:
    """The check point waits in the timer; when it comes due, there has to be somebody who reads it."""
    popper.send(b"1")
    popper.pop(invisible_time=10_000)
    cluster.run(2_000)
    old = cluster.broker
    cluster.do("crash", node="broker-a")
    cluster.run(dead_ms)
    cluster.do("restart", node="broker-a")
    cluster.world.run_until(lambda: cluster.broker is not old)
    cluster.run(10)
    assert cluster.broker.made_pop is None
    cluster.run(30_000)
    assert cluster.broker.message_store.get_max_offset_in_queue(RETRY_V1, 0) == 1
