"""All that was done to the broker whose store is `pop-store`, done again here at the recorded times.

Check points and acks must be the same messages with the same bodies, and the same messages must come back, as the same
records byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.pop_check_point import revive_topic
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.record import decode_record
from mqlab.store import MessageExtBrokerInner
from tests.broker.conftest import Cluster
from tests.broker.pop.conftest import Popper, batch_ack_of
from tests.golden.recorded import manifest, properties_text, record_sha256

REVIVE_TOPIC = revive_topic("DefaultCluster")
STORE_HOST = "127.0.0.1:22204"
ACK_CODES = {"OK": {0}, "NO_EXIST": {208, 13, 17}}


class Again:
    """A broker with the recorded messages, whose clock shows the recorded time."""

    def __init__(self, make_cluster: Callable[..., Any]) -> None:
        self.recorded = manifest("pop-store")
        self.cluster = make_cluster(epoch_ms=self.recorded["ops"][0]["at"] - 10_000)
        self.cluster.world.outside.located = {self.cluster.broker_address: STORE_HOST}
        for topic, config in self.recorded["topicConfigs"].items():
            if topic.startswith("Pop"):
                self.cluster.topic(topic, config["readQueueNums"])
        self.popper = Popper(self.cluster, self.cluster.client())
        self.store = self.cluster.broker.message_store
        for row in sorted(self.rows(lambda topic: topic.startswith("Pop")), key=lambda row: row["commitLogOffset"]):
            # The order of names with the same hash: the broker adds this one to those of the producer.
            properties = dict(row["properties"])
            properties["CLUSTER"] = properties.pop("CLUSTER")
            self.store.put_message(
                MessageExtBrokerInner(
                    row["topic"],
                    row["bodyText"].encode(),
                    queue_id=row["queueId"],
                    flag=row["flag"],
                    sys_flag=row["sysFlag"],
                    properties=properties,
                    properties_string=encode_properties(properties, DECODED_MAP_CAPACITY),
                    born_timestamp=row["bornTimestamp"],
                    born_host=row["bornHost"],
                    store_host=STORE_HOST,
                )
            )
        self.until(self.recorded["ops"][0]["at"] - 100)
        self.noted: list[dict[int, int]] = []
        """How many messages the revive queues had when the recording looked: before the revival, and after it."""

    def rows(self, wanted: Callable[[str], bool]) -> list[dict[str, Any]]:
        """The recorded messages of some topics."""
        return [row for row in self.recorded["messages"] if wanted(row["topic"])]

    def until(self, wall_ms: int) -> None:
        """Play until the broker's clock says so."""
        self.cluster.world.run_for(self.cluster.broker_node.us_until(wall_ms))

    def play(self, op: dict[str, Any]) -> None:
        """Do again what was done, when it was done; of a pop the broker noted when that was."""
        self.until(max(op["at"], op.get("popTime") or 0) if op["op"] != "ack" else op["at"])
        if op["op"] == "pop":
            self._pop(op)
        elif op["op"] == "ack":
            header = h.AckMessageRequestHeader(op["group"], op["topic"], op["queueId"], op["extraInfo"], op["offset"])
            answer = self.popper.raw.call(RequestCode.ACK_MESSAGE, header)
            assert answer.code in ACK_CODES[op["status"]], op
        elif op["op"] == "batchAck":
            self._batch_ack(op)
        else:
            self._change(op)

    def _pop(self, op: dict[str, Any]) -> None:
        answer = self.popper.pop_again(op)
        if op.get("messages"):
            header = answer.header_as(h.PopMessageResponseHeader)
            assert header.pop_time == op["popTime"], op["note"]

    def _batch_ack(self, op: dict[str, Any]) -> None:
        body = batch_ack_of(op, [parse_handle(text) for text in op["extraInfoList"]])
        assert self.popper.raw.call(RequestCode.BATCH_ACK_MESSAGE, None, body).code == 0

    def _change(self, op: dict[str, Any]) -> None:
        header = h.ChangeInvisibleTimeRequestHeader(
            op["group"], op["topic"], op["queueId"], op["extraInfo"], op["offset"], op["invisibleTime"]
        )
        answer = self.popper.raw.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        changed = answer.header_as(h.ChangeInvisibleTimeResponseHeader)
        given = parse_handle(op["newExtraInfo"])
        assert answer.code == 0
        assert (changed.pop_time, changed.revive_qid) == (op["popTime"], given.revive_qid)
        if not given.is_order:
            assert changed.invisible_time == given.invisible_time

    def stored(self, topic: str, queues: int = 1) -> list[Any]:
        """The messages of a topic here."""
        found = []
        for queue_id in range(queues):
            end = self.store.get_max_offset_in_queue(topic, queue_id)
            for offset in range(end):
                result = self.store.get_message("X", topic, queue_id, offset, 1)
                found.append(decode_record(result.messages[0]))
        return found

    def ends(self) -> dict[int, int]:
        """How many messages each revive queue has; those without any are left out."""
        ends = {queue_id: self.store.get_max_offset_in_queue(REVIVE_TOPIC, queue_id) for queue_id in range(8)}
        return {queue_id: end for queue_id, end in ends.items() if end}


def recorded_ends(queue_offsets: dict[str, Any]) -> dict[int, int]:
    """The same of the real broker."""
    return {int(queue_id): place["max"] for queue_id, place in queue_offsets[REVIVE_TOPIC].items()}


@pytest.fixture(scope="module")
def again() -> Again:
    """Everything played to the end of the recording; what was there before and after the revival is noted."""
    again = Again(Cluster)
    moments = [again.recorded["queueOffsetsBeforeReviveAt"], again.recorded["queueOffsetsAfterReviveAt"]]
    for op in again.recorded["ops"]:
        while moments and op["at"] >= moments[0]:
            again.until(moments.pop(0))
            again.noted.append(again.ends())
        again.play(op)
    again.until(max(row["storeTimestamp"] for row in again.recorded["messages"]) + 1_000)
    return again


def test_check_points_and_acks_are_the_same_messages(again: Again) -> None:
    def of_row(row: dict[str, Any]) -> tuple[Any, ...]:
        properties = row["properties"]
        return (row["queueId"], row["tags"], row.get("bodyText"), properties["TIMER_DELIVER_MS"], row["msgId"])

    ours = Counter(
        (m.queue_id, m.tags, m.body.decode(), m.properties["TIMER_DELIVER_MS"], m.properties["UNIQ_KEY"])
        for m in again.stored(REVIVE_TOPIC, 8)
    )
    real = Counter(of_row(row) for row in again.rows(lambda topic: topic == REVIVE_TOPIC))
    assert real == ours
    assert real.total() > 50


def test_as_many_of_them_can_be_read_when_the_recording_looked(again: Again) -> None:
    before, after = again.noted
    assert before == recorded_ends(again.recorded["queueOffsetsBeforeRevive"])
    assert after == recorded_ends(again.recorded["queueOffsetsAfterRevive"])


def test_the_same_messages_come_back_as_the_same_records(again: Again) -> None:
    recorded = again.rows(lambda topic: topic.startswith("%RETRY%"))
    ours = {}
    for topic in {row["topic"] for row in recorded}:
        for message in again.stored(topic):
            ours[topic, message.properties["UNIQ_KEY"], message.reconsume_times] = message
    assert len(ours) == len(recorded) == 32
    for row in recorded:
        message = ours[row["topic"], row["msgId"], row["reconsumeTimes"]]
        result = again.store.get_message("X", row["topic"], 0, message.queue_offset, 1)
        text = properties_text(result.messages[0], message)
        assert record_sha256(message, text, row) == row["recordSha256"], row


def test_the_revive_group_has_come_as_far(again: Again) -> None:
    (stats,) = [s["queues"] for s in again.recorded["consumeStats"] if s["group"] == "CID_RMQ_SYS_REVIVE_GROUP"]
    offsets = again.cluster.broker.consumer_offset_manager
    for queue in stats:
        ours = offsets.query_offset("CID_RMQ_SYS_REVIVE_GROUP", REVIVE_TOPIC, queue["queueId"])
        # A group without an offset is said to be at 0.
        assert max(ours, 0) == queue["consumerOffset"], queue
