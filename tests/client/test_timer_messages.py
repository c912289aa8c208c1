"""A producer says when its messages shall be delivered, and takes them back."""

from __future__ import annotations

import pytest

from mqlab import Lab, Message
from mqlab.errors import MQBrokerException, MQClientException
from tests.worlds import shop, started_producer


@pytest.fixture
def lab() -> Lab:
    return shop(seed=5, recall_message_enable=True)


def delivered(lab: Lab) -> list[str]:
    return [record.unique_key for record in lab.history.find("TimerMessageDelivered")]


def test_a_message_waits_for_seconds_for_ms_or_for_a_moment(lab: Lab) -> None:
    producer = started_producer(lab)
    messages = [Message("T", "x") for _ in range(3)]
    messages[0].delay_time_sec = 3
    messages[1].delay_time_ms = 5_000
    messages[2].deliver_time_ms = lab.world.epoch_ms + 9_000
    assert [message.delay_time_sec for message in messages] == [3, 0, 0]
    assert [message.delay_time_ms for message in messages] == [0, 5_000, 0]
    assert [message.deliver_time_ms for message in messages] == [0, 0, lab.world.epoch_ms + 9_000]
    sent = [lab.run(producer.send(message)).msg_id for message in messages]
    for at_ms, arrived in ((2_900, 0), (4_200, 1), (6_200, 2), (8_900, 2), (10_000, 3)):
        lab.world.run_to(at_ms * 1_000)
        assert delivered(lab) == sent[:arrived], at_ms


@pytest.mark.parametrize("wire", ["objects", "bytes"])
def test_a_producer_takes_a_message_back_with_its_handle(wire: str) -> None:
    lab = shop(seed=5, wire=wire, recall_message_enable=True)
    producer = started_producer(lab)
    message = Message("T", "x")
    message.delay_time_sec = 6
    result = lab.run(producer.send(message))
    assert lab.run(producer.recall_message("T", result.recall_handle)) == result.msg_id
    lab.run_for(ms=9_000)
    assert delivered(lab) == []
    with pytest.raises(MQBrokerException, match="recall failed, timestamp invalid"):
        lab.run(producer.recall_message("T", result.recall_handle))


def test_what_a_producer_cannot_take_back_it_says_itself(lab: Lab) -> None:
    producer = started_producer(lab)
    assert lab.run(producer.send(Message("T", "x"))).recall_handle is None
    for topic, handle, text in (
        ("T", "no handle", "recall handle is invalid"),
        ("%RETRY%G", "djE=", "topic is not supported"),
        ("%DLQ%G", "djE=", "topic is not supported"),
        (" ", "djE=", "blank"),
    ):
        with pytest.raises(MQClientException, match=text):
            lab.run(producer.recall_message(topic, handle))
