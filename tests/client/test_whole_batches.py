"""Batches that a topic keeps whole (queue.type=BatchCQ), from a producer to a consumer."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import Lab, Message
from tests.worlds import noting, send, shop, started_consumer, started_producer


@pytest.fixture(params=["objects", "bytes"])
def lab(request: pytest.FixtureRequest) -> Lab:
    """A shop whose topic T keeps batches whole."""
    lab = shop(queues=0, wire=request.param)
    lab.brokers[0].running().create_topic("T", 1, attributes={"+queue.type": "BatchCQ"})
    lab.run_for(seconds=1)
    return lab


def test_a_consumer_gets_single_messages_with_offsets_of_their_own(lab: Lab) -> None:
    producer = started_producer(lab)
    sent = [
        producer.send([Message("T", f"{number}-{one}") for one in range(size)]).play()
        for number, size in enumerate((3, 1, 4))
    ]
    assert [result.queue_offset for result in sent] == [0, 3, 4]
    assert all("," not in result.msg_id for result in sent), "one id for the whole batch"
    seen: list[Any] = []
    consumer = started_consumer(lab, noting(seen, ""), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for(seconds=10)
    bodies = sorted((message.queue_offset, message.body.decode()) for message in seen)
    assert bodies == list(enumerate(["0-0", "0-1", "0-2", "1-0", "2-0", "2-1", "2-2", "2-3"]))
    broker = lab.brokers[0].running()
    assert broker.consumer_offset_manager.query_offset("readers", "T", 0) == 8
    consumer.shutdown().play()
    seen.clear()
    started_consumer(lab, noting(seen), node="second")
    producer.send([Message("T", "3-0"), Message("T", "3-1")]).play()
    lab.run_for(seconds=10)
    assert seen == [b"3-0", b"3-1"]


def test_a_message_that_is_sent_alone_is_acknowledged_and_nobody_gets_it(lab: Lab) -> None:
    producer = started_producer(lab)
    (alone,) = send(producer, "alone")
    assert (alone.send_status.value, alone.queue_offset) == ("SEND_OK", 0)
    producer.send([Message("T", "a"), Message("T", "b")]).play()
    seen: list[Any] = []
    started_consumer(lab, noting(seen), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for(seconds=30)
    assert seen == [b"a", b"b"]
