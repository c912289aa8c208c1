"""A producer asks, and waits for the reply of whoever consumes its message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mqlab import ConsumeConcurrentlyStatus, DefaultMQProducer, Lab, Message
from mqlab.client import MessageExt, MessageQueue, RequestCallback, create_reply_message, get_reply_to_client
from mqlab.client.producer.request_future_holder import RequestFutureHolder
from mqlab.errors import LearnerError, MQBrokerException, MQClientException, RequestTimeoutException
from tests.worlds import send, shop, started_consumer, started_producer

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def answering(lab: Lab, *, after_ms: float = 0, size: int = 0, queues: int = 1) -> list[Any]:
    """A consumer that answers each message, and what became of its replies."""
    replier, outcomes = started_producer(lab, "repliers"), []

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        for message in messages:
            await context.sleep(after_ms)
            reply = create_reply_message(message, (b"re: " + message.body).ljust(size, b"."))
            try:
                outcomes.append(await replier.send(reply))
            except MQClientException as error:
                outcomes.append(error)
        return SUCCESS

    started_consumer(lab, listener, group="answering", node=replier.node.name)
    lab.run_for(seconds=2)
    return outcomes


def signs_of_life(lab: Lab) -> int:
    """How many heartbeats the brokers have got."""
    return sum(1 for _ in lab.history.find("HeartbeatReceived"))


def waiting(asker: DefaultMQProducer) -> dict[str, Any]:
    """The requests of a producer's process that wait for their replies."""
    return RequestFutureHolder.of(asker.node).request_future_table


def asked(asker: DefaultMQProducer, body: str = "tea", *, timeout: int = 3_000, **more: Any) -> MessageExt:
    return asker.request(Message("T", body), timeout=timeout, **more).play()


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_request_gets_its_reply(wire: str) -> None:
    lab = shop(wire=wire)
    asker = started_producer(lab)
    outcomes = answering(lab)
    reply = asked(asker)
    assert reply.body == b"re: tea"
    assert reply.topic == "DefaultCluster_REPLY_TOPIC"
    assert get_reply_to_client(reply) == asker.impl.instance.client_id
    assert (reply.properties["MSG_TYPE"], reply.properties["TTL"]) == ("reply", "3000")
    assert int(reply.properties["ARRIVE_TIME"]) >= int(reply.properties["PUSH_REPLY_TIME"])
    lab.run_for(seconds=1)
    assert [outcome.queue_offset for outcome in outcomes] == [0]


def test_each_reply_finds_its_own_request() -> None:
    lab = shop(queues=4)
    asker = started_producer(lab)
    answering(lab, queues=4)
    calls = [asker.node.spawn(_ask(asker, f"{number}"), "asks").join() for number in range(20)]
    replies = [lab.world.wait_for(call) for call in calls]
    assert [reply.body for reply in replies] == [f"re: {number}".encode() for number in range(20)]
    ids = {reply.properties["CORRELATION_ID"] for reply in replies}
    assert len(ids) == 20
    assert all(re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id_) for id_ in ids)


async def _ask(asker: DefaultMQProducer, body: str) -> MessageExt:
    return await asker.request(Message("T", body), timeout=3_000)


def test_a_request_goes_to_the_queue_that_is_given_or_selected() -> None:
    lab = shop(queues=3)
    asker = started_producer(lab)
    answering(lab, queues=3)
    queue = MessageQueue("T", "broker-a", 1)
    asked(asker, queue=queue)
    asked(asker, selector=lambda queues, message, argument: queues[argument], argument=2)
    replies: list[Any] = []
    for more in ({"queue": queue}, {"selector": lambda queues, message, argument: queues[argument], "argument": 2}):
        message = Message("T", "x")
        asker.request_async(message, lambda reply, error: replies.append(reply.body), timeout=3_000, **more).play()
    lab.run_for(seconds=1)
    assert replies == [b"re: x"] * 2
    assert [record.queue_id for record in lab.history.find("SendSucceeded") if record.topic == "T"] == [1, 2, 1, 2]


def test_without_a_reply_a_request_ends_with_its_time_out() -> None:
    lab = shop()
    asker = started_producer(lab)
    send(asker, "the route is known")
    begin_us = lab.world.now_us
    with pytest.raises(RequestTimeoutException) as caught:
        asked(asker, timeout=1_500)
    assert lab.world.now_us - begin_us == 1_500_000
    assert caught.value.response_code == 10006
    text = "send request message to <T> OK, but wait reply message timeout, 1500 ms."
    assert caught.value.error_message == text


def test_a_request_that_cannot_be_sent_fails_at_once_and_says_why() -> None:
    lab = shop()
    asker = started_producer(lab)
    send(asker, "warm")
    lab.crash("broker-a")
    begin_us = lab.world.now_us
    with pytest.raises(MQClientException) as caught:
        asked(asker)
    assert caught.value.error_message == "send request message to <T> fail"
    assert caught.value.__cause__ is not None
    assert lab.world.now_us - begin_us < 3_000_000


def test_a_request_that_is_refused_before_it_is_sent_waits_for_nothing() -> None:
    lab = shop()
    asker = started_producer(lab)
    with pytest.raises(MQClientException, match="broker-x"):
        asked(asker, queue=MessageQueue("T", "broker-x", 0))
    assert not waiting(asker)
    [given_up] = lab.history.find("ReplyGivenUp")
    assert "broker-x" in given_up.reason


def test_a_late_reply_finds_nobody_and_its_sender_does_not_learn_it() -> None:
    lab = shop()
    asker = started_producer(lab)
    outcomes = answering(lab, after_ms=2_000)
    with pytest.raises(RequestTimeoutException):
        asked(asker, timeout=1_000)
    lab.run_for(seconds=3)
    [arrived] = lab.history.find("ReplyArrived")
    assert (arrived.matched, arrived.waited_ms) == (False, -1)
    assert [outcome.send_status.value for outcome in outcomes] == ["SEND_OK"]


def test_a_reply_to_an_asker_who_has_gone_is_tried_until_its_sender_gives_up() -> None:
    lab = shop()
    asker = started_producer(lab)
    outcomes = answering(lab, after_ms=2_000)
    asker.request_async(Message("T", "tea"), lambda reply, error: None, timeout=1_000).play()
    client_id = asker.impl.instance.client_id
    asker.shutdown().play()
    lab.run_for(seconds=3)
    [error] = outcomes
    assert f"push reply message fail, channel of <{client_id}> not found." in str(error)
    assert "Send [3] times" in str(error)
    assert [record.client_id for record in lab.history.find("ReplyNotPushed")] == [client_id] * 3


def test_a_callback_hears_of_a_time_out_at_the_next_second_of_the_scan() -> None:
    lab = shop()
    asker = started_producer(lab)
    begin_us = lab.world.now_us
    heard: list[tuple[int, str]] = []

    def callback(reply: Any, error: Any) -> None:
        heard.append((lab.world.now_us - begin_us, str(error)))

    for timeout in (100, 3_000, 3_200):
        asker.request_async(Message("T", "x"), callback, timeout=timeout).play()
    lab.run_for(seconds=8)
    text = "CODE: 10006  DESC: request timeout, no reply message."
    assert [error for _, error in heard] == [text] * 3
    # The scan looks first three seconds after the first producer's start, and each second from then on.
    assert [us // 1_000 for us, _ in heard] == pytest.approx([3_000, 4_000, 4_000], abs=30)
    assert not waiting(asker)


def test_a_callback_may_be_a_class_or_wait() -> None:
    lab = shop()
    asker = started_producer(lab)
    answering(lab)
    heard: list[Any] = []

    class Noting(RequestCallback):
        def on_success(self, message: MessageExt | None) -> None:
            assert message is not None
            heard.append(message.body)

        def on_exception(self, error: Exception) -> None:
            heard.append(type(error))

    async def slow(reply: Any, error: Any) -> None:
        await asker.node.sleep(300)
        heard.append(lab.world.now_us)

    asker.request_async(Message("T", "tea"), Noting(), timeout=3_000).play()
    lab.run_for(seconds=1)
    begin_us = lab.world.now_us
    asker.request_async(Message("T", "tea"), slow, timeout=3_000).play()
    lab.run_for(seconds=1)
    assert heard[0] == b"re: tea"
    assert 300_000 < heard[1] - begin_us < 400_000
    lab.crash("broker-a")
    asker.request_async(Message("T", "tea"), Noting(), timeout=500).play()
    lab.run_for(seconds=3)
    assert heard[2:] == [MQClientException]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_callback_that_raises_makes_the_push_fail_and_is_told(is_async: bool) -> None:
    lab = shop()
    asker = started_producer(lab)
    outcomes = answering(lab)

    def raising(reply: Any, error: Any) -> None:
        raise ValueError("no")

    async def raising_later(reply: Any, error: Any) -> None:
        raise ValueError("no")

    asker.request_async(Message("T", "tea"), raising_later if is_async else raising, timeout=3_000).play()
    lab.run_for(seconds=1)
    [failed] = lab.history.find("RequestCallbackFailed")
    assert failed.reason == "ValueError: no"
    # The sender tries again: now nobody waits any more, and the push goes well.
    assert [outcome.send_status.value for outcome in outcomes] == ["SEND_OK"]
    assert [record.matched for record in lab.history.find("ReplyArrived")] == [True, False]


def test_a_callback_that_raises_at_its_time_out_is_told_too() -> None:
    lab = shop()
    asker = started_producer(lab)

    def raising(reply: Any, error: Any) -> None:
        raise ValueError("no")

    for _ in range(2):
        asker.request_async(Message("T", "x"), raising, timeout=100).play()
    lab.run_for(seconds=4)
    assert [record.reason for record in lab.history.find("RequestCallbackFailed")] == ["ValueError: no"] * 2


def test_a_packed_reply_arrives_unpacked() -> None:
    lab = shop()
    asker = started_producer(lab)
    answering(lab, size=5_000)
    assert asked(asker).body == b"re: tea".ljust(5_000, b".")


def test_a_request_to_a_new_topic_is_preceded_by_a_sign_of_life() -> None:
    lab = shop()
    asker = started_producer(lab)
    signs = [signs_of_life(lab)]
    for _ in range(2):
        with pytest.raises(RequestTimeoutException):
            asked(asker, timeout=100)
        signs.append(signs_of_life(lab))
    assert signs[0] < signs[1] == signs[2]


def test_releases_5_3_1_to_5_3_3_let_a_request_end_when_it_was_sent() -> None:
    lab = shop()
    asker = started_producer(lab, request_ends_when_sent=True)
    answering(lab, after_ms=50)
    begin_us = lab.world.now_us
    with pytest.raises(RequestTimeoutException, match="OK, but wait reply message timeout, 3000 ms"):
        asked(asker)
    assert lab.world.now_us - begin_us < 50_000
    lab.run_for(seconds=1)
    assert [record.matched for record in lab.history.find("ReplyArrived")] == [False]
    heard: list[Any] = []

    def callback(reply: Any, error: Any) -> None:
        heard.append(reply and reply.body)

    asker.request_async(Message("T", "x"), callback, timeout=3_000).play()
    asker.request_async(Message("T", "y"), callback, timeout=3_000, queue=MessageQueue("T", "broker-a", 0)).play()
    lab.run_for(seconds=1)
    assert heard == [None, b"re: x", b"re: y"]


def test_the_scan_ends_with_the_last_producer_and_begins_anew_with_the_next() -> None:
    lab = shop()
    asker = started_producer(lab)
    heard: list[int] = []

    def callback(reply: Any, error: Any) -> None:
        heard.append(lab.world.now_us)

    asker.request_async(Message("T", "x"), callback, timeout=100).play()
    asker.shutdown().play()
    lab.run_for(seconds=5)
    assert not heard
    begin_us = lab.world.now_us
    again = started_producer(lab, "again", node=asker.node.name)
    again.request_async(Message("T", "x"), callback, timeout=100).play()
    lab.run_for(seconds=5)
    assert [(us - begin_us) // 1_000 for us in heard] == pytest.approx([3_000] * 2, abs=60)


@pytest.mark.parametrize(
    ("request_message", "text"),
    [
        (None, "create reply message fail, requestMessage cannot be null."),
        (Message("T", "x"), "create reply message fail, requestMessage error, property[CLUSTER] is null."),
    ],
)
def test_what_is_no_request_gets_no_reply(request_message: Message | None, text: str) -> None:
    with pytest.raises(MQClientException) as caught:
        create_reply_message(request_message, "re")
    assert (caught.value.response_code, caught.value.error_message) == (10007, text)


def test_the_reply_to_a_message_that_asked_for_none_is_refused() -> None:
    lab = shop()
    asker = started_producer(lab)
    outcomes = answering(lab)
    send(asker, "no question")
    lab.run_for(seconds=1)
    [error] = outcomes
    assert isinstance(error.__cause__, MQBrokerException)
    assert "reply message properties[REPLY_TO_CLIENT] is null" in str(error)


def test_bad_input_is_told() -> None:
    lab = shop()
    asker = started_producer(lab)
    calls: list[Callable[[], Any]] = [
        lambda: asker.request_async(Message("T", "x"), "callback", timeout=1_000).play(),  # type: ignore[arg-type]
        lambda: asked(asker, timeout="1 s"),  # type: ignore[arg-type]
        lambda: asked(asker, queue="T-0"),
        lambda: asked(asker, selector="first"),
    ]
    for call in calls:
        with pytest.raises(LearnerError):
            call()
    with pytest.raises(MQClientException, match="CODE: 13"):
        asker.request(Message("T", None), timeout=1_000).play()
    assert not waiting(asker)
