"""The numbers of a push consumer that RocketMQ publishes, each seen at work on the virtual clock."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqlab.client import (
    RECONSUME_LATER,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    Message,
    MessageListenerOrderly,
)
from mqlab.protocol.codes import RequestCode
from tests.worlds import slow

MEBIBYTE = 1024 * 1024


def send(cluster: Any, messages: int, size: int = 1) -> None:
    producer = cluster.producer(compress_msg_body_over_howmuch=2 * size + 4_096)
    for _ in range(messages):
        producer.send(Message("T", b"x" * size)).play()


forever = slow(10_000_000)
"""A listener that does not come back."""


@pytest.mark.parametrize(
    ("messages", "size", "settings", "first"),
    [
        (1_100, 1, {}, ("count", 1_024, 1_000)),
        (34, 3 * MEBIBYTE, {}, ("size", 102, 100)),
        (2_100, 1, {"pull_threshold_for_queue": 65_535}, ("span", 2_015, 2_000)),
    ],
)
def test_pulling_stops_above_1000_messages_100_mib_and_a_span_of_2000(
    cluster: Any, messages: int, size: int, settings: dict[str, int], first: tuple[str, int, int]
) -> None:
    """Above, not at: what a pull of 32 brings on top is taken in."""
    send(cluster, messages, size)
    cluster.consumer(listener=forever, **settings)
    cluster.run_ms(4_000)
    assert cluster.events("FlowControlled")[0][4:] == first


def test_a_pull_asks_for_32_messages_may_be_held_for_15_s_and_is_given_up_after_30_s(cluster: Any) -> None:
    send(cluster, 100)
    cluster.consumer(client_close_socket_if_timeout=False)
    cluster.run_ms(1_600)
    brought = [event[5] for event in cluster.events("PullFinished") if event[1] == "T"]
    assert brought[:4] == [32, 32, 32, 4]
    (held,) = [event for event in cluster.events("PullHeld") if event[1] == "T"]
    assert 15_000 in held
    asked_ms = max(row[2] / 1_000 for row in cluster.rows if row[7] == "PullRequested" and row[9] == "T")
    cluster.fault("freeze", "broker-a")
    cluster.run_ms(34_000)
    # An expired request is noticed by the scan of the response table, 1 to 2.1 s after its time.
    put_off_ms, *_ = [
        row[2] / 1_000 - asked_ms
        for row in cluster.rows
        if row[7] == "PullPutOff" and row[9] == "T" and row[2] / 1_000 > asked_ms
    ]
    assert 31_000 <= put_off_ms <= 32_100
    asked_again_ms, *_ = [
        row[2] / 1_000 - asked_ms
        for row in cluster.rows
        if row[7] == "PullRequested" and row[9] == "T" and row[2] / 1_000 > asked_ms
    ]
    assert asked_again_ms == pytest.approx(put_off_ms + 1_000, abs=1)


def test_giving_a_message_back_takes_5_s_of_a_broker_that_hangs(cluster: Any) -> None:
    send(cluster, 1)

    def listener(messages: Any, context: Any) -> Any:
        cluster.fault("freeze", "broker-a")
        return RECONSUME_LATER

    cluster.consumer(listener=listener)
    cluster.run_ms(9_000)
    (begun_ms,) = cluster.times_ms("ConsumeFinished", "consumer")
    code = int(RequestCode.CONSUMER_SEND_MSG_BACK)
    (given_up,) = [row for row in cluster.rows if row[7] == "RequestTimedOut" and code in row[8:]]
    assert given_up[2] / 1_000 - begun_ms == pytest.approx(5_000, abs=1)


def test_a_thread_gives_an_orderly_queue_up_for_10_ms_when_it_has_consumed_for_a_minute(cluster: Any) -> None:
    send(cluster, 70)
    begun_ms: list[float] = []

    class Slow(MessageListenerOrderly):
        async def consume_message(self, messages: Any, context: ConsumeOrderlyContext) -> Any:
            begun_ms.append(cluster.now_ms)
            await context.sleep(1_000)
            return ConsumeOrderlyStatus.SUCCESS

    consumer = cluster.new_consumer()
    consumer.register_message_listener(Slow())
    consumer.start().play()
    cluster.run_ms(75_000)
    pauses = [round(b - a) - 1_000 for a, b in pairwise(begun_ms)]
    assert pauses.count(0) == len(pauses) - 1
    assert pauses.index(10) in (59, 60), "more than a minute, looked at between two calls"
