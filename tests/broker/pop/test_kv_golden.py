"""The recorded conversation of a real broker with the key-value engine, held again with ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.extra_info import (
    ReceiptHandle,
    message_key,
    parse_handle,
    parse_msg_offset_info,
    parse_order_count_info,
    parse_start_offset_info,
    queue_key,
    retry_flag,
)
from mqlab.protocol.record import scan_records
from mqlab.sim import EPOCH_MS
from tests.broker.pop.conftest import batch_ack_of
from tests.golden.recorded import manifest, properties_text, record_sha256

STATUS = {
    ResponseCode.SUCCESS: ("FOUND", "OK"),
    ResponseCode.POLLING_TIMEOUT: ("POLLING_NOT_FOUND",),
    ResponseCode.NO_MESSAGE: ("NO_EXIST",),
    ResponseCode.TOPIC_NOT_EXIST: ("NO_EXIST",),
    ResponseCode.MESSAGE_ILLEGAL: ("NO_EXIST",),
}


class Replay:
    """A broker like the recorded one, asked the same at the same times after the first request."""

    def __init__(self, make_cluster: Callable[..., Any], recorded: dict[str, Any]) -> None:
        self.recorded = recorded
        self.cluster = make_cluster(pop_consumer_kv_service_enable=True)
        self.client = self.cluster.client()
        for name, queues in (("PopSrc", 1), ("PopT", 4), ("PopOrder", 2)):
            self.cluster.topic(name, queues)
        plain = [row for row in recorded["messages"] if row["topic"].startswith("Pop")]
        for name in sorted({row["topic"] for row in plain} - {"PopT", "PopOrder", "PopSrc"}):
            self.cluster.topic(name, 1)
        for row in sorted(plain, key=lambda row: row["commitLogOffset"]):
            # The order of names with the same hash: the broker adds this one to those of the producer.
            properties = dict(row["properties"])
            properties["CLUSTER"] = properties.pop("CLUSTER")
            sent = self.client.send(
                row["topic"], row["bodyText"].encode(), queue_id=row["queueId"], properties=properties
            )
            assert sent.code == ResponseCode.SUCCESS
        self.cluster.run(1_000)
        self.begin_us = self.cluster.world.now_us
        self.pop_times: dict[int, int] = {}
        """Of a pop or a change: the recorded time -> ours."""

    def at(self, recorded_ms: int) -> None:
        """Play up to that time."""
        until_us = self.begin_us + (recorded_ms - self.recorded["ops"][0]["at"]) * 1_000
        self.cluster.world.run_to(max(until_us, self.cluster.world.now_us))

    def handle(self, text: str) -> str:
        """The recorded handle, as our broker would have made it."""
        handle = parse_handle(text)
        return handle._replace(pop_time=self.pop_times.get(handle.pop_time, handle.pop_time)).encode()

    def pop(self, op: dict[str, Any]) -> None:
        header = h.PopMessageRequestHeader(
            consumer_group=op["group"],
            topic=op["topic"],
            queue_id=op["queueId"],
            max_msg_nums=op["maxMsgNums"],
            invisible_time=op["invisibleTime"],
            poll_time=op["pollTime"],
            born_time=self.cluster.broker_node.now_ms(),
            init_mode=op["initMode"],
            exp_type="TAG",
            exp=op["exp"],
            order=op["order"],
            attempt_id=op.get("attemptId"),
        )
        response = self.client.call(RequestCode.POP_MESSAGE, header)
        if "error" in op:
            assert op["error"].startswith(f"MQBrokerException code={int(response.code)} remark=")
            return
        assert op["status"] in STATUS[ResponseCode(response.code)], op
        if op["status"] != "FOUND":
            return
        answer = response.header_as(h.PopMessageResponseHeader)
        self.pop_times[op["popTime"]] = answer.pop_time
        assert answer.rest_num == op["restNum"], op["note"]
        found = [
            (message.queue_id, message.queue_offset, self.reconsume_times(message, answer), handle.encode())
            for message, handle in self.handles(response, answer)
        ]
        assert found == [
            (row["queueId"], row["queueOffset"], row["reconsumeTimes"], self.handle(row["POP_CK"]))
            for row in op["messages"]
        ], op["note"]

    @staticmethod
    def reconsume_times(message: Any, answer: h.PopMessageResponseHeader) -> int:
        """What a client says of it: in order the broker counts, else the message."""
        counts = parse_order_count_info(answer.order_count_info)
        of_queue = counts.get(queue_key(message.topic, message.queue_id), message.reconsume_times)
        return counts.get(message_key(message.topic, message.queue_id, message.queue_offset), of_queue)

    def handles(self, response: Any, answer: h.PopMessageResponseHeader) -> list[Any]:
        """The messages, each with the handle that a client makes for it."""
        starts = parse_start_offset_info(answer.start_offset_info)
        offsets = parse_msg_offset_info(answer.msg_offset_info)
        pairs = []
        for message in scan_records(response.body or b""):
            key = queue_key(message.topic, message.queue_id)
            assert message.queue_offset in offsets[key]
            handle = ReceiptHandle(
                starts[key],
                answer.pop_time,
                answer.invisible_time,
                answer.revive_qid,
                retry_flag(message.topic),
                "broker-a",
                message.queue_id,
                message.queue_offset,
            )
            pairs.append((message, handle))
        return pairs

    def ack(self, op: dict[str, Any]) -> None:
        header = h.AckMessageRequestHeader(
            op["group"], op["topic"], op["queueId"], self.handle(op["extraInfo"]), op["offset"]
        )
        response = self.client.call(RequestCode.ACK_MESSAGE, header)
        assert op["status"] in STATUS[ResponseCode(response.code)], op

    def batch_ack(self, op: dict[str, Any]) -> None:
        body = batch_ack_of(op, [parse_handle(self.handle(text)) for text in op["extraInfoList"]])
        response = self.client.call(RequestCode.BATCH_ACK_MESSAGE, None, body)
        assert response.code == ResponseCode.SUCCESS

    def change(self, op: dict[str, Any]) -> None:
        header = h.ChangeInvisibleTimeRequestHeader(
            op["group"],
            op["topic"],
            op["queueId"],
            self.handle(op["extraInfo"]),
            op["offset"],
            op["invisibleTime"],
        )
        response = self.client.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        assert op["status"] in STATUS[ResponseCode(response.code)], op
        answer = response.header_as(h.ChangeInvisibleTimeResponseHeader)
        new = parse_handle(op["newExtraInfo"])
        if not new.is_order:
            self.pop_times[op["popTime"]] = answer.pop_time
        # In order the answer counts from the pop on, so it holds what has passed since.
        assert abs(answer.invisible_time - new.invisible_time) <= (2 if new.is_order else 0)
        assert answer.revive_qid == new.revive_qid

    def play(self) -> None:
        """Everything that was asked."""
        ask = {"pop": self.pop, "ack": self.ack, "batchAck": self.batch_ack, "changeInvisibleTime": self.change}
        for op in self.recorded["ops"]:
            self.at(op["at"])
            ask[op["op"]](op)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """What was recorded."""
    return manifest("pop-kv")


def test_every_answer_is_that_of_a_real_broker(
    make_cluster: Callable[..., Any], recorded: dict[str, Any]
) -> None:
    replay = Replay(make_cluster, recorded)
    replay.play()
    replay.cluster.run(10_000 + 500)
    begin = recorded["ops"][0]["at"]
    for topic in sorted({row["topic"] for row in recorded["messages"] if row["topic"].startswith("%RETRY%")}):
        rows = [row for row in recorded["messages"] if row["topic"] == topic]
        result = replay.cluster.broker.message_store.get_message("tests", topic, 0, 0, 32)
        records = list(result.messages)
        ours = list(scan_records(b"".join(records)))
        assert [(m.body.decode(), m.reconsume_times) for m in ours] == [
            (row["bodyText"], row["reconsumeTimes"]) for row in rows
        ]
        for message, record, row in zip(ours, records, rows, strict=True):
            recorded_ms = row["storeTimestamp"] - begin
            ours_ms = message.store_timestamp - EPOCH_MS - replay.begin_us // 1_000
            assert abs(ours_ms - recorded_ms) <= 600, (topic, row["bodyText"])
            assert message.properties["1ST_POP_TIME"] == str(replay.pop_times[int(row["properties"]["1ST_POP_TIME"])])
            # The same record, but for the times and hosts.
            text = properties_text(record, message)
            text = text.replace(message.properties["1ST_POP_TIME"], row["properties"]["1ST_POP_TIME"])
            message.born_timestamp, message.born_host = row["bornTimestamp"], row["bornHost"]
            message.store_host = row["storeHost"]
            assert record_sha256(message, text, row) == row["recordSha256"]
    offsets = replay.cluster.broker.consumer_offset_manager
    for stats in recorded["consumeStats"]:
        for row in stats["queues"]:
            ours_offset = offsets.query_offset(stats["group"], row["topic"], row["queueId"])
            assert ours_offset == row["consumerOffset"], (stats["group"], row)
