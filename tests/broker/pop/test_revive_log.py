"""The messages that hold check points and acks, compared with those that a real broker stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker.pop import revive_log
from mqlab.protocol.pop_check_point import AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.sim import Future
from mqlab.store import FlushDiskType, MessageExtBrokerInner
from tests.golden.recorded import manifest, record_sha256

KINDS: dict[str, type[PopCheckPoint | AckMsg]] = {"ck": PopCheckPoint, "ack": AckMsg, "bAck": BatchAckMsg}
ADDED_BY_THE_TIMER = {"REAL_TOPIC", "REAL_QID", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"}


def rows(name: str) -> list[dict[str, Any]]:
    """The check points and acks that were stored, as the recording tells of them."""
    messages = manifest(name)["messages"]
    stored = [row for row in messages if row.get("tags") in KINDS and "REAL_TOPIC" in row["properties"]]
    # Of the longest bodies the recording has only a hash.
    return [row for row in stored if "bodyText" in row]


def body_of(row: dict[str, Any]) -> bytes:
    """The body of a recorded message."""
    text: str = row["bodyText"]
    return text.encode()


@pytest.fixture
def broker(make_cluster: Callable[..., Any]) -> Any:
    """A broker at the recorded one's address."""
    return make_cluster(broker_ip1="127.0.0.1", listen_port=22204).broker


def made(broker: Any, row: dict[str, Any], queue_id: int) -> MessageExtBrokerInner:
    """The message that we make of the same check point or ack."""
    content = KINDS[row["tags"]].decode(body_of(row))
    if isinstance(content, PopCheckPoint):
        return revive_log.ck_message(broker, content, queue_id)
    key = revive_log.ack_unique_key(content)
    deliver_ms = int(row["properties"]["TIMER_DELIVER_MS"])
    return revive_log.ack_message(broker, content, queue_id, deliver_ms, unique_key=key)


@pytest.mark.parametrize("name", ["pop-store", "pop-merge"])
def test_every_recorded_check_point_and_ack_is_made_with_the_same_body_and_properties(broker: Any, name: str) -> None:
    recorded = rows(name)
    assert {row["tags"] for row in recorded} == ({"ck", "ack", "bAck"} if name == "pop-store" else {"ck", "ack"})
    for row in recorded:
        message = made(broker, row, int(row["properties"]["REAL_QID"]))
        own = {name: value for name, value in row["properties"].items() if name not in ADDED_BY_THE_TIMER}
        assert message.body == body_of(row)
        assert message.properties == own
        assert message.topic == row["properties"]["REAL_TOPIC"]
        assert message.queue_id == int(row["properties"]["REAL_QID"])
        assert (message.flag, message.sys_flag, message.reconsume_times) == (0, 0, 0)
        assert message.born_host == message.store_host == broker.store_host


def test_a_check_point_is_due_one_second_before_its_messages_can_be_seen(broker: Any) -> None:
    for row in rows("pop-store"):
        if row["tags"] == "ck":
            point = PopCheckPoint.decode(body_of(row))
            assert int(row["properties"]["TIMER_DELIVER_MS"]) == point.revive_time - 1_000


def test_what_is_due_already_is_the_same_record_byte_for_byte(broker: Any) -> None:
    messages = manifest("pop-store")["messages"]
    (row,) = [row for row in messages if row.get("tags") in KINDS and "TIMER_OUT_MS" not in row["properties"]]
    message = made(broker, row, row["queueId"])
    message.born_timestamp = row["bornTimestamp"]
    assert record_sha256(message, message.stored_properties(), row) == row["recordSha256"]


def test_a_put_answers_at_once_unless_a_flush_has_to_be_waited_for(make_cluster: Callable[..., Any]) -> None:
    broker = make_cluster(store={"flush_disk_type": FlushDiskType.ASYNC_FLUSH}).broker
    with pytest.raises(StopIteration) as end:
        broker.message_store.put_and_wait(MessageExtBrokerInner("T", b"x")).send(None)
    assert end.value.value.is_ok

    broker = make_cluster(store={"flush_disk_type": FlushDiskType.SYNC_FLUSH}).broker
    putting = broker.message_store.put_and_wait(MessageExtBrokerInner("T", b"x"))
    waits_for = putting.send(None)
    assert isinstance(waits_for, Future)
    broker.message_store.services.answer_waiting()
    with pytest.raises(StopIteration) as end:
        putting.send(None)
    assert end.value.value is waits_for.result()
