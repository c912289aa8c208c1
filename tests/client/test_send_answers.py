"""What a producer makes of each answer that a broker can give: a status, another attempt, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.client import Message, MessageQueue, SendResult, SendStatus
from mqlab.errors import MQBrokerException, MQClientException, RemotingSendRequestException
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import SendMessageResponseHeader
from mqlab.remoting import Channel, RequestProcessor

pytestmark = pytest.mark.queues(2)

STORED = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
}
TRIED_AGAIN = {
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.NO_PERMISSION,
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.NO_BUYER_ID,
    ResponseCode.NOT_IN_CURRENT_UNIT,
}
REFUSED_FOR_GOOD = sorted(set(ResponseCode) - set(STORED) - TRIED_AGAIN - {ResponseCode.GO_AWAY})


class Answering(RequestProcessor):
    """A broker's place of sending that answers with the codes it is given, the last of them again and again."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.seen = 0

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        code = self.codes[min(self.seen, len(self.codes) - 1)]
        self.seen += 1
        header = SendMessageResponseHeader("0A00000200002A9F0000000000000000", 0, 7) if code in STORED else None
        return RemotingCommand.response(code, f"answer {int(code)}", header)


def answering(cluster: Any, broker_name: str, *codes: int) -> Answering:
    """Let a broker of the cluster answer sends so."""
    processor = Answering(*codes)
    cluster.brokers[broker_name].remoting_server.register_processor(RequestCode.SEND_MESSAGE_V2, processor)
    return processor


@pytest.fixture
def producer(producer: Any) -> Any:
    """A producer that has sent once, and so knows the topic."""
    producer.send(Message("T", "first")).play()
    return producer


def send_async(cluster: Any, producer: Any) -> tuple[SendResult | None, Exception | None]:
    outcomes: list[tuple[SendResult | None, Exception | None]] = []
    producer.send_async(Message("T", "x"), lambda result, error: outcomes.append((result, error))).play()
    cluster.run_ms(3_000)
    (outcome,) = outcomes
    return outcome


@pytest.mark.parametrize("code", STORED)
def test_four_answers_mean_stored_and_become_a_status(cluster: Any, producer: Any, code: ResponseCode) -> None:
    broker = answering(cluster, "broker-a", code)
    assert producer.send(Message("T", "x")).play().send_status is STORED[code]
    result, error = send_async(cluster, producer)
    assert error is None
    assert result is not None
    assert result.send_status is STORED[code]
    assert broker.seen == 2


@pytest.mark.parametrize("code", sorted(TRIED_AGAIN))
def test_seven_answers_make_a_synchronous_send_try_again_and_an_asynchronous_one_give_up(
    cluster: Any, producer: Any, code: ResponseCode
) -> None:
    broker = answering(cluster, "broker-a", code)
    with pytest.raises(MQClientException, match=r"Send \[3\] times, still failed") as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == code
    assert isinstance(caught.value.__cause__, MQBrokerException)
    assert broker.seen == 3
    _, error = send_async(cluster, producer)
    assert isinstance(error, MQBrokerException)
    assert error.response_code == code
    assert broker.seen == 4


@pytest.mark.parametrize("code", REFUSED_FOR_GOOD)
def test_every_other_answer_ends_the_send_at_once(cluster: Any, producer: Any, code: ResponseCode) -> None:
    broker = answering(cluster, "broker-a", code)
    with pytest.raises(MQBrokerException, match=f"CODE: {int(code)}  DESC: answer {int(code)} BROKER: ") as caught:
        producer.send(Message("T", "x")).play()
    assert caught.value.response_code == code
    _, error = send_async(cluster, producer)
    assert isinstance(error, MQBrokerException)
    assert broker.seen == 2


def test_go_away_is_a_matter_of_remoting_each_attempt_sends_twice(cluster: Any, producer: Any) -> None:
    broker = answering(cluster, "broker-a", ResponseCode.GO_AWAY)
    with pytest.raises(MQClientException) as caught:
        producer.send(Message("T", "x")).play()
    assert isinstance(caught.value.__cause__, RemotingSendRequestException)
    assert broker.seen == 6
    _, error = send_async(cluster, producer)
    assert isinstance(error, MQClientException)
    assert str(error) == "send request failed"
    assert broker.seen == 12


def test_a_broker_that_stops_gracefully_costs_its_producers_no_message(make_cluster: Any) -> None:
    cluster = make_cluster(brokers=2, enable_shutdown_gracefully=True, queues=2)
    producer = cluster.producer()
    for _ in range(4):
        producer.send(Message("T", "x")).play()
    cluster.brokers["broker-a"].shutdown().start()
    cluster.run_ms(100)
    for _ in range(20):
        assert producer.send(Message("T", "x")).play().message_queue.broker_name == "broker-b"
        cluster.run_ms(100)


def test_an_answer_that_is_not_tried_again_ends_the_send_for_the_listeners_too(cluster: Any, producer: Any) -> None:
    answering(cluster, "broker-a", ResponseCode.INVALID_PARAMETER)
    with pytest.raises(MQBrokerException):
        producer.send(Message("T", "x")).play()
    (attempt,), (given_up,) = cluster.events("SendAttemptFailed"), cluster.events("SendFailed")
    assert (attempt[4], attempt[6]) == (1, False)
    assert given_up[1:3] == (attempt[3], 1)
    assert given_up[4] == attempt[5]


@pytest.mark.parametrize("code", sorted(TRIED_AGAIN))
def test_which_answers_are_tried_again_can_be_changed(cluster: Any, producer: Any, code: ResponseCode) -> None:
    producer.retry_response_codes.discard(int(code))
    producer.retry_response_codes.add(int(ResponseCode.INVALID_PARAMETER))
    broker = answering(cluster, "broker-a", code)
    with pytest.raises(MQBrokerException):
        producer.send(Message("T", "x")).play()
    broker.codes = [ResponseCode.INVALID_PARAMETER]
    with pytest.raises(MQClientException, match=r"Send \[3\] times"):
        producer.send(Message("T", "x")).play()


def test_a_one_way_send_hears_of_no_answer(cluster: Any, producer: Any) -> None:
    broker = answering(cluster, "broker-a", ResponseCode.SYSTEM_ERROR)
    producer.send_oneway(Message("T", "x")).play()
    cluster.run_ms(100)
    assert broker.seen == 1
    assert not cluster.events("SendAttemptFailed")


@pytest.mark.parametrize("send_once", ["queue", "selector"])
def test_a_queue_of_ones_own_choice_is_tried_once(cluster: Any, producer: Any, send_once: str) -> None:
    broker = answering(cluster, "broker-a", ResponseCode.SYSTEM_BUSY)
    if send_once == "queue":
        call = producer.send(Message("T", "x"), queue=MessageQueue("T", "broker-a", 0))
    else:
        call = producer.send_by_selector(Message("T", "x"), lambda queues, message, argument: queues[0], None)
    with pytest.raises(MQBrokerException):
        call.play()
    assert broker.seen == 1


# -- not stored safely: another broker? -------------------------------------------------------------------------------


def two(make_cluster: Any, **settings: Any) -> tuple[Any, Any]:
    cluster = make_cluster(brokers=2, queues=1)
    producer = cluster.producer(**settings)
    while producer.send(Message("T", "x")).play().message_queue.broker_name == "broker-a":
        pass
    # The queues are taken in turn, so the next one is broker-a's.
    return cluster, producer


def test_a_message_that_is_not_stored_safely_goes_to_another_broker_only_if_told_so(make_cluster: Any) -> None:
    for told in (False, True):
        cluster, producer = two(make_cluster, retry_another_broker_when_not_store_ok=told)
        slow = answering(cluster, "broker-a", ResponseCode.FLUSH_DISK_TIMEOUT)
        result = producer.send(Message("T", "x")).play()
        if told:
            assert (result.send_status, result.message_queue.broker_name) == (SendStatus.SEND_OK, "broker-b")
        else:
            assert (result.send_status, result.message_queue.broker_name) == (
                SendStatus.FLUSH_DISK_TIMEOUT,
                "broker-a",
            )
        assert slow.seen == 1


def test_when_no_broker_stores_it_safely_the_last_result_counts(make_cluster: Any) -> None:
    cluster, producer = two(make_cluster, retry_another_broker_when_not_store_ok=True)
    first = answering(cluster, "broker-a", ResponseCode.FLUSH_DISK_TIMEOUT)
    second = answering(cluster, "broker-b", ResponseCode.FLUSH_SLAVE_TIMEOUT)
    result = producer.send(Message("T", "x")).play()
    assert (first.seen, second.seen) == (2, 1)
    assert result.send_status is SendStatus.FLUSH_DISK_TIMEOUT


def test_an_earlier_result_is_better_than_a_later_refusal(make_cluster: Any) -> None:
    cluster, producer = two(make_cluster, retry_another_broker_when_not_store_ok=True)
    answering(cluster, "broker-a", ResponseCode.FLUSH_DISK_TIMEOUT)
    answering(cluster, "broker-b", ResponseCode.MESSAGE_ILLEGAL)
    assert producer.send(Message("T", "x")).play().send_status is SendStatus.FLUSH_DISK_TIMEOUT


def test_a_timer_message_is_tried_three_times_and_the_error_says_that_there_is_no_wheel(
    cluster: Any, producer: Any
) -> None:
    cluster.brokers["broker-a"].message_store_config.timer_wheel_enable = False
    with pytest.raises(MQClientException, match=r"Send \[3\] times.*accurate timer message is not enabled") as failed:
        producer.send(Message("T", "later", properties={"TIMER_DELAY_SEC": "9"})).play()
    assert failed.value.response_code == ResponseCode.SYSTEM_ERROR
