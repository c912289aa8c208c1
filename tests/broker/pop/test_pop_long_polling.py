"""Pops that wait: who is woken by what, and when time is up."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.topics import pop_retry_topic
from mqlab.store import MessageExtBrokerInner
from tests.broker.conftest import messages_of

POLL_MS = 15_000


def hold(popper: Any, poll_ms: int = POLL_MS, **more: Any) -> Any:
    """Let a pop wait; the future of its answer."""
    answer = popper.begin(poll_time=poll_ms, **more)
    popper.cluster.run(5)
    return answer


def store(popper: Any, topic: str, body: bytes = b"x") -> None:
    """Let the broker itself store a message, as the reviver does."""
    if topic not in popper.cluster.broker.topic_config_manager.topic_config_table:
        popper.cluster.topic(topic, 1)
    popper.cluster.broker.message_store.put_message(MessageExtBrokerInner(topic, body))
    popper.cluster.run(10)


def reasons(popper: Any) -> list[str]:
    return [event["reason"] for event in popper.seen("PopWoken")]


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_a_pop_that_finds_nothing_waits_and_nothing_is_written(cluster: Any, popper: Any) -> None:
    answer = hold(popper)
    cluster.run(10_000)
    assert not answer.done
    (held,) = popper.seen("PopHeld")
    assert (held["group"], held["topic"], held["queue_id"]) == ("G", "T", -1)
    assert held["hold_ms"] == pytest.approx(POLL_MS, abs=1)
    service = cluster.broker.pop.pop_message_processor.pop_long_polling_service
    assert (service.total_polling_num, len(service.held())) == (1, 1)
    assert str(service.held()[0]).startswith("<PopRequest G waits for T/-1, at most until 17672256")


def test_without_time_to_wait_it_is_answered_at_once(popper: Any) -> None:
    assert popper.pop(poll_time=0).code == ResponseCode.POLLING_TIMEOUT
    assert popper.seen("PopNotHeld")[0]["reason"] == "not polling"


@pytest.mark.parametrize("phase_ms", [0, 7, 13, 19])
def test_it_is_looked_at_for_the_last_time_50_ms_early_on_a_grid_of_20_ms(
    cluster: Any, popper: Any, phase_ms: int
) -> None:
    """A real broker answered 14,952 to 14,982 ms after the pop."""
    began_ms = cluster.seen("BrokerStarted")[0]["ts_ms"]
    cluster.run(began_ms + 1_000 + phase_ms - cluster.now_ms)
    asked_ms = cluster.now_ms
    response = cluster.world.wait_for(popper.begin(poll_time=POLL_MS))
    held_ms = cluster.now_ms - asked_ms
    assert (response.code, response.remark) == (ResponseCode.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE")
    assert POLL_MS - 50 < held_ms < POLL_MS - 50 + 21.5
    (woken,) = popper.seen("PopWoken")
    assert (woken["reason"], (woken["ts_ms"] - began_ms) % 20) == ("timed out", 0)
    assert [event["first_pass"] for event in popper.seen("PopReceived")] == [True, False]


def test_a_broker_in_which_pops_wait_has_hardly_anything_to_do(cluster: Any, popper: Any) -> None:
    hold(popper)
    cluster.run(2_000)
    before = cluster.world.slice_no
    cluster.run(10_000)
    assert cluster.world.slice_no - before < 30


def test_a_last_look_may_find_what_woke_nobody(popper: Any) -> None:
    """What comes into a retry topic of the first form: seen at a real broker, too."""
    answer = hold(popper, 2_000)
    store(popper, pop_retry_topic("T", "G"), b"again")
    popper.cluster.run(1_900)
    assert not answer.done
    popper.cluster.run(100)
    assert [message.body for message in messages_of(answer.result())] == [b"again"]
    assert reasons(popper) == ["timed out"]


def test_a_pop_that_is_woken_too_early_waits_again_with_the_time_that_it_has_left(cluster: Any, popper: Any) -> None:
    answer = hold(popper, 2_000)
    asked_ms = cluster.now_ms
    cluster.run(1_000)
    service = cluster.broker.pop.pop_message_processor.pop_long_polling_service
    assert service.notify_message_arriving("T", -1, "G")
    cluster.run(5)
    assert not answer.done
    held_ms = [event["hold_ms"] for event in popper.seen("PopHeld")]
    assert held_ms == [pytest.approx(2_000, abs=1), pytest.approx(995, abs=3)]
    cluster.world.wait_for(answer)
    assert cluster.now_ms - asked_ms == pytest.approx(1_960, abs=12)


# -- messages that arrive ---------------------------------------------------------------------------------------------


def test_a_message_wakes_it_within_milliseconds(cluster: Any, popper: Any) -> None:
    answer = hold(popper)
    cluster.run(5_000)
    sent_ms = cluster.now_ms
    popper.raw.send("T", b"wake")
    response = cluster.world.wait_for(answer)
    assert cluster.now_ms - sent_ms < 5
    assert [message.body for message in messages_of(response)] == [b"wake"]
    (woken,) = popper.seen("PopWoken")
    assert (woken["reason"], woken["held_us"] // 1_000_000) == ("arrived", 5)


def test_one_message_wakes_one_pop_of_each_group_the_one_whose_time_is_up_first(popper: Any) -> None:
    late, early = hold(popper, 15_000), hold(popper, 9_000)
    other = hold(popper, consumer_group="Other")
    popper.send(b"1")
    assert (late.done, early.done, other.done) == (False, True, True)


def test_a_message_wakes_one_that_waits_for_any_queue_and_one_that_waits_for_its_own(make_popper: Any) -> None:
    popper = make_popper(queues=2)
    of_queue_0, of_queue_1, of_any = hold(popper, queue_id=0), hold(popper, queue_id=1), hold(popper)
    popper.send(b"1", b"2", queue_id=1)
    assert (of_queue_0.done, of_queue_1.done, of_any.done) == (False, True, True)


def test_one_that_does_not_want_the_message_goes_on_waiting(popper: Any) -> None:
    answer = hold(popper, exp="TagB")
    popper.send(b"1", properties={"TAGS": "TagA"})
    assert not answer.done
    assert popper.seen("PopWoken") == []
    popper.send(b"2", properties={"TAGS": "TagB"})
    assert [message.body for message in messages_of(answer.result())] == [b"2"]


def test_every_800th_message_wakes_even_one_that_does_not_want_it(make_popper: Any) -> None:
    popper = make_popper(pop_long_polling_force_notify_interval=3)
    answer = hold(popper, exp="TagB")
    popper.send(b"1", b"2", b"3", b"4", properties={"TAGS": "TagA"})
    assert not answer.done
    assert reasons(popper) == ["forced"]
    popper.cluster.run(20)
    assert popper.offset() == 3
    assert popper.cluster.broker.broker_config.__class__().pop_long_polling_force_notify_interval == 800


def test_a_retry_message_of_the_first_form_wakes_nobody(popper: Any) -> None:
    answer = hold(popper)
    store(popper, pop_retry_topic("T", "G"))
    assert not answer.done


def test_a_retry_message_of_the_second_form_wakes_a_pop_of_its_topic(make_popper: Any) -> None:
    popper = make_popper(enable_retry_topic_v2=True)
    answer = hold(popper)
    popper.random_q(41)
    store(popper, pop_retry_topic("T", "G", version_2=True), b"again")
    assert [message.body for message in messages_of(answer.result())] == [b"again"]


def test_who_leaves_something_behind_wakes_the_next(make_popper: Any) -> None:
    popper = make_popper(long_polling_enable=False)
    waiting = [hold(popper, max_msg_nums=1) for _ in range(3)]
    popper.send(b"1", b"2", b"3")
    assert popper.seen("PopWoken") == []
    popper.cluster.broker.pop.pop_message_processor.pop_long_polling_service.notify_message_arriving("T", -1, "G")
    popper.cluster.run(5)
    assert [messages_of(answer.result())[0].body for answer in waiting] == [b"1", b"2", b"3"]
    assert reasons(popper) == ["arrived", "left over", "left over"]


def test_a_pop_that_waits_because_a_lock_is_taken_is_woken_at_once(cluster: Any, popper: Any) -> None:
    popper.send(b"1")
    assert cluster.broker.pop.locks.try_lock("T", "G", 0)
    answer = popper.begin(poll_time=POLL_MS)
    cluster.run(1)
    assert reasons(popper)[:2] == ["left over", "left over"]
    cluster.broker.pop.locks.unlock("T", "G", 0)
    cluster.run(2)
    assert answer.done


def test_with_long_polling_off_messages_wake_nobody(make_popper: Any) -> None:
    popper = make_popper(long_polling_enable=False)
    answer = hold(popper, 2_000)
    popper.send(b"1")
    assert not answer.done
    popper.cluster.run(2_000)
    assert answer.result().code == ResponseCode.SUCCESS


# -- limits -----------------------------------------------------------------------------------------------------------


def test_a_queue_keeps_one_pop_more_than_the_setting_says(make_popper: Any) -> None:
    popper = make_popper(pop_polling_size=2)
    waiting = [hold(popper) for _ in range(3)]
    response = popper.pop(poll_time=POLL_MS)
    assert (response.code, response.remark) == (ResponseCode.POLLING_FULL, "NO_MESSAGE_IN_QUEUE")
    assert [answer.done for answer in waiting] == [False] * 3
    assert popper.seen("PopNotHeld")[0]["reason"] == "polling full"
    other = hold(popper, consumer_group="Other")
    assert not other.done


def test_a_broker_keeps_so_many_pops_in_all(make_popper: Any) -> None:
    popper = make_popper(max_pop_polling_size=2)
    hold(popper), hold(popper, consumer_group="Other")
    assert popper.pop(poll_time=POLL_MS, consumer_group="Third").code == ResponseCode.POLLING_FULL
    popper.send(b"1")
    assert popper.pop(poll_time=100, consumer_group="Third").code == ResponseCode.SUCCESS


def test_a_queue_too_many_makes_the_broker_forget_the_oldest(make_popper: Any) -> None:
    popper = make_popper(pop_polling_map_size=2)
    lost, kept, newest = (hold(popper, consumer_group=group) for group in ("A", "B", "C"))
    popper.send(b"1")
    assert (lost.done, kept.done, newest.done) == (False, True, True)


def test_polling_info_says_how_many_wait(cluster: Any, popper: Any) -> None:
    def polling_num(queue_id: int = -1, topic: str = "T") -> Any:
        header = h.PollingInfoRequestHeader("G", topic, queue_id)
        return popper.raw.call(RequestCode.POLLING_INFO, header)

    hold(popper), hold(popper), hold(popper, queue_id=0)
    numbers = [polling_num(queue_id).header_as(h.PollingInfoResponseHeader).polling_num for queue_id in (-1, 0)]
    assert numbers == [2, 1]
    assert polling_num().remark == "not set any response code"
    refused = polling_num(topic="Nowhere")
    assert (refused.code, refused.header.polling_num) == (ResponseCode.TOPIC_NOT_EXIST, 0)


# -- unhappy ends -----------------------------------------------------------------------------------------------------


def test_a_client_that_is_gone_is_passed_over(cluster: Any, popper: Any) -> None:
    from tests.broker.pop.conftest import Popper

    gone = Popper(cluster, cluster.client())
    hold(gone, 9_000)
    answer = hold(popper)
    cluster.do("crash", node=gone.raw.node.name)
    cluster.run(100)
    popper.send(b"1")
    assert answer.done
    assert len(popper.seen("PopWoken")) == 1


def test_who_waits_for_a_topic_that_is_deleted_is_never_answered_once_that_is_noticed(
    cluster: Any, popper: Any
) -> None:
    """The service looks for what is gone at its first turn and then every five minutes."""
    hold(popper)
    cluster.run(300_020 - 5_000)
    answer = hold(popper)
    cluster.broker.topic_config_manager.delete_topic_config("T")
    cluster.run(20_000)
    assert not answer.done
    service = cluster.broker.pop.pop_message_processor.pop_long_polling_service
    assert (service.total_polling_num, service.polling_map, service.topic_cid_map) == (0, {}, {})


def test_who_waits_for_a_topic_that_is_deleted_is_told_so_when_the_time_is_up(cluster: Any, popper: Any) -> None:
    answer = hold(popper, 2_000)
    cluster.run(100)
    cluster.broker.topic_config_manager.delete_topic_config("T")
    cluster.run(2_000)
    assert answer.result().code == ResponseCode.TOPIC_NOT_EXIST


def test_the_end_of_the_service_wakes_all_and_nobody_waits_again(cluster: Any, popper: Any) -> None:
    waiting = [hold(popper), hold(popper, consumer_group="Other")]
    cluster.broker.pop.pop_message_processor.pop_long_polling_service.shutdown()
    cluster.run(5)
    assert [answer.result().code for answer in waiting] == [ResponseCode.POLLING_TIMEOUT] * 2
    assert reasons(popper) == ["shutdown", "shutdown"]
    assert popper.pop(poll_time=POLL_MS).code == ResponseCode.POLLING_TIMEOUT


def test_a_broker_that_comes_back_keeps_new_pops(cluster: Any, popper: Any) -> None:
    hold(popper)
    old = cluster.broker
    cluster.do("crash", node="broker-a")
    cluster.do("restart", node="broker-a")
    cluster.world.run_until(lambda: cluster.broker is not old)
    cluster.run(100)
    assert cluster.broker.made_pop is None
    answer = hold(popper)
    popper.send(b"1")
    assert answer.done


def test_a_clock_that_is_set_ahead_ends_the_waiting(cluster: Any, popper: Any) -> None:
    answer = hold(popper)
    cluster.broker_node.set_drift(0, jump_ms=14_970)
    cluster.run(25)
    assert answer.result().code == ResponseCode.POLLING_TIMEOUT


def test_a_full_pull_pool_loses_a_woken_pop(make_popper: Any) -> None:
    popper = make_popper(pull_message_thread_pool_nums=1, pull_thread_pool_queue_capacity=1)
    answer = hold(popper)
    pool = popper.cluster.broker.executors.pull
    for _ in range(2):
        assert pool.submit(lambda: None, service_us=50_000)
    popper.send(b"1")
    popper.cluster.run(200)
    assert not answer.done
    lost = popper.cluster.seen("RequestRejected")[-1]
    assert lost["remark"] == "no thread is free for a request that waited, which is lost"


# -- notification -----------------------------------------------------------------------------------------------------


def test_notification_says_whether_there_is_something_and_takes_nothing(popper: Any) -> None:
    assert popper.ask() == (False, False)
    popper.send(b"1")
    assert popper.ask() == (True, False)
    assert popper.bodies() == [b"1"]
    assert popper.ask() == (False, False)


@pytest.mark.parametrize("random_q", [40, 41])
def test_notification_looks_into_the_retry_topic_sooner_or_later(popper: Any, random_q: int) -> None:
    popper.pop()
    store(popper, pop_retry_topic("T", "G"))
    popper.random_q(random_q, point="notification-random-q")
    assert popper.ask() == (True, False)


def test_with_both_forms_of_retry_topics_notification_looks_into_both(make_popper: Any) -> None:
    popper = make_popper(enable_retry_topic_v2=True)
    popper.pop()
    store(popper, pop_retry_topic("T", "G"))
    assert popper.ask() == (True, False)


def test_a_question_waits_and_the_one_whose_time_is_up_last_is_woken(popper: Any) -> None:
    early, late = popper.begin_asking(poll_time=5_000), popper.begin_asking(poll_time=9_000)
    popper.cluster.run(100)
    popper.send(b"1")
    assert (early.done, late.done) == (False, True)
    assert late.result().header_as(h.NotificationResponseHeader).has_msg
    popper.pop()
    popper.cluster.run(5_000)
    assert not early.result().header_as(h.NotificationResponseHeader).has_msg


def test_a_blocked_queue_has_nothing_for_those_who_pop_in_order(popper: Any) -> None:
    popper.send(b"1", b"2")
    popper.pop(order=True, max_msg_nums=1, attempt_id="a")
    assert popper.ask(order=True, attempt_id="b") == (False, False)
    assert popper.ask(order=True, attempt_id="a") == (True, False)


def test_too_many_questions_are_told_so(make_popper: Any) -> None:
    popper = make_popper(pop_polling_size=0)
    popper.begin_asking(poll_time=5_000)
    popper.cluster.run(5)
    assert popper.ask(poll_time=5_000) == (False, True)


def test_notification_is_refused_as_a_pop_is(popper: Any) -> None:
    response = popper.raw.call(RequestCode.NOTIFICATION, popper.notification_header("Nowhere"))
    assert response.code == ResponseCode.TOPIC_NOT_EXIST
    assert response.header_as(h.NotificationResponseHeader) == (False, False)


# -- peek -------------------------------------------------------------------------------------------------------------


def peek(popper: Any, number: int = 32, topic: str = "T", queue_id: int = -1) -> Any:
    return popper.raw.call(RequestCode.PEEK_MESSAGE, h.PeekMessageRequestHeader("G", topic, queue_id, number))


def test_peek_shows_what_a_pop_would_get_as_often_as_it_is_asked(make_popper: Any) -> None:
    popper = make_popper(queues=2)
    popper.send(b"1", b"2", queue_id=1)
    store(popper, pop_retry_topic("T", "G"), b"again")
    popper.random_q(40, 41, point="peek-random-q")
    first, second = peek(popper), peek(popper, 2)
    assert [message.body for message in messages_of(first)] == [b"again", b"1", b"2"]
    assert messages_of(first)[0].topic == pop_retry_topic("T", "G")
    assert [message.body for message in messages_of(second)] == [b"1", b"2"]
    assert [answer.header_as(h.PopMessageResponseHeader).rest_num for answer in (first, second)] == [3, 2]
    assert popper.offset(1) == -1
    assert popper.bodies(queue_id=1, max_msg_nums=2) == [b"1", b"2"]


def test_peek_with_the_key_value_engine_shows_what_is_in_hand_too(make_popper: Any) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(b"1", b"2", b"3")
    assert popper.bodies(max_msg_nums=2) == [b"1", b"2"]
    assert [message.body for message in messages_of(peek(popper))] == [b"1", b"2", b"3"]
    assert popper.ask() == (True, False)
    assert popper.bodies() == [b"3"]
    assert popper.ask() == (False, False), "NOTIFICATION goes by what was handed out"


@pytest.mark.parametrize("records", [False, True])
def test_fewer_than_no_messages_are_an_error_of_the_broker_s_own(make_popper: Any, records: bool) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=records)
    popper.send(b"1")
    for answer in (popper.pop(max_msg_nums=-1), peek(popper, -1)):
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark == "java.lang.IllegalArgumentException: Illegal Capacity: -1"
    assert popper.pop("Nowhere", max_msg_nums=-1).code == ResponseCode.TOPIC_NOT_EXIST, "that is looked at before"
    assert popper.bodies() == [b"1"]


def test_a_group_without_a_name_is_made_as_any_other(make_popper: Any) -> None:
    popper = make_popper()
    popper.send(b"1")
    assert popper.bodies(consumer_group="") == [b"1"]
    assert "" in popper.cluster.broker.subscription_group_manager.subscription_group_table
    for refused in ("a b", "g" * 256):
        assert popper.pop(consumer_group=refused).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_peek_goes_on_behind_the_beginning_of_the_queue_and_finds_nothing_behind_the_end(
    popper: Any, cluster: Any
) -> None:
    popper.send(b"1", b"2")
    offsets = cluster.broker.consumer_offset_manager
    offsets.commit_offset("G", "T", 0, 1)
    assert [message.body for message in messages_of(peek(popper))] == [b"2"]
    offsets.commit_offset("G", "T", 0, 9)
    nothing = peek(popper)
    assert (nothing.code, nothing.remark) == (ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
    assert peek(popper, topic="Nowhere").code == ResponseCode.TOPIC_NOT_EXIST
    assert peek(popper, queue_id=0, number=0).code == ResponseCode.PULL_NOT_FOUND
