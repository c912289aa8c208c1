"""What the articles say of the pull loop and of calls, where no other test shows today's value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from mqlab import Lab, Message
from mqlab.protocol import RemotingCommand, RequestCode, ResponseCode
from mqlab.remoting import RequestProcessor
from tests.worlds import noting, send, shop, started_consumer, started_producer


def reading(tags: str = "*") -> tuple[Lab, Any, list[bytes]]:
    """A broker with a topic of one queue, and a consumer that has been pulling for 3 s."""
    lab = shop()
    bodies: list[bytes] = []
    consumer = started_consumer(lab, noting(bodies), tags=tags)
    lab.run_for(seconds=3)
    return lab, consumer, bodies


def put_off(lab: Lab) -> set[tuple[str, int]]:
    """Why pulls of T were put off, and for how many ms."""
    return {(record.reason, record.delay_ms) for record in lab.history.find("PullPutOff", topic="T")}


def test_a_suspended_consumer_looks_again_every_1000_ms() -> None:
    lab, consumer, bodies = reading()
    consumer.suspend()
    send(started_producer(lab), "answers the pull that waits")
    lab.run_for(seconds=3)
    assert put_off(lab) == {("the consumer is suspended", 1_000)}
    times = [record.ts_ms for record in lab.history.find("PullPutOff", topic="T")]
    assert len(times) >= 3
    assert {round(b - a) for a, b in pairwise(times)} == {1_000}
    assert len(bodies) == 1


def test_without_a_subscription_a_queue_is_looked_at_again_after_1000_ms() -> None:
    lab, consumer, _ = reading()
    consumer.unsubscribe("T")
    send(started_producer(lab), "answers the pull that waits")
    lab.run_for(seconds=3)
    assert put_off(lab) == {("there is no subscription of the topic", 1_000)}


class Refusing(RequestProcessor):
    """A broker that answers every pull with this code."""

    def __init__(self, code: int) -> None:
        self.code = code

    def process_request(self, channel: Any, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(self.code, "not now")


def refused_for_a_second(code: int) -> set[int]:
    """The delays in ms after which a consumer pulls again, when its pulls are answered with this code."""
    lab, _, _ = reading()
    server = lab.brokers[0].running().remoting_server
    server.register_processor(RequestCode.PULL_MESSAGE, Refusing(code))
    send(started_producer(lab), "answers the pull that waits")
    lab.run_for(seconds=1)
    return {delay_ms for _, delay_ms in put_off(lab)}


def test_after_an_error_the_next_pull_comes_after_1000_ms() -> None:
    assert refused_for_a_second(ResponseCode.SYSTEM_ERROR) == {1_000}


def test_when_the_broker_asks_for_less_haste_the_next_pull_comes_after_20_ms() -> None:
    assert refused_for_a_second(ResponseCode.FLOW_CONTROL) == {20}


def test_what_the_filter_passes_over_counts_as_consumed_when_nothing_is_cached() -> None:
    lab, _, bodies = reading("TagB")
    send(started_producer(lab), "m0", "m1", "m2", tags="TagA")
    lab.run_for(seconds=30)
    assert bodies == []
    assert lab.brokers[0].running().consumer_offset_manager.query_offset("readers", "T", 0) == 3


def test_a_synchronous_call_needs_a_permit_of_the_asynchronous_ones() -> None:
    lab, _, _ = reading()
    producer = started_producer(lab)
    send(producer, "m0")
    lab.run_for(seconds=1)
    client = producer.impl.instance.api.remoting_client
    free = client.semaphore_async.permits
    with lab.break_on("RequestSent", request_name="SEND_MESSAGE_V2"):
        call = producer.send(Message("T", "m1")).start()
        lab.run_for(seconds=1)
    assert client.semaphore_async.permits == free - 1
    lab.run(call)
    assert client.semaphore_async.permits == free


def test_a_first_offset_that_was_deleted_is_moved_to_the_oldest_message_by_a_repair() -> None:
    lab = shop(mapped_file_size_commit_log=65_536, file_reserved_time=0, delete_when="00")
    send(started_producer(lab, compress_msg_body_over_howmuch=10_000), *["x" * 4_000] * 40)
    store = lab.brokers[0].running().message_store
    lab.run_until(lambda: store.get_min_offset_in_queue("T", 0) > 0)
    lab.run_for(seconds=120)
    oldest = store.get_min_offset_in_queue("T", 0)
    seen: list[int] = []
    started_consumer(lab, noting(seen, "queue_offset"), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for(seconds=10)
    statuses = [record.pull_status for record in lab.history.find("PullFinished", topic="T")]
    assert statuses[:2] == ["OFFSET_ILLEGAL", "FOUND"]
    assert 0 < oldest < 40
    assert seen == list(range(oldest, 40))
