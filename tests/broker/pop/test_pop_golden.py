"""The pops that a real broker answered, asked again here: same messages, handles, rest numbers and errors."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.broker.pop.retry_message import under_plain_topic
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import RecordError
from mqlab.protocol.extra_info import ReceiptHandle, parse_msg_offset_info, parse_start_offset_info, queue_key
from mqlab.protocol.properties import encode_properties
from mqlab.protocol.record import decode_record
from mqlab.protocol.topic_config import SubscriptionGroupConfig
from tests.broker.conftest import messages_of
from tests.golden.recorded import manifest

GOLDEN = Path(__file__).parents[2] / "golden"
STATUS = {"FOUND": 0, "POLLING_NOT_FOUND": 210, "POLLING_FULL": 209}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """What was done to the broker whose store is `pop-store`, and what it answered."""
    return manifest("pop-store")


class Replay:
    """The same broker here, asked the same; times are its own."""

    def __init__(self, recorded: dict[str, Any], make_cluster: Callable[..., Any], **settings: Any) -> None:
        from tests.broker.pop.conftest import Popper

        self.recorded = recorded
        self.cluster = make_cluster(wire_bytes=True, **settings)
        for topic, config in recorded["topicConfigs"].items():
            if topic.startswith("Pop"):
                self.cluster.topic(topic, config["readQueueNums"])
        self.popper = Popper(self.cluster, self.cluster.client())
        self._send_all()

    def _send_all(self) -> None:
        stored = {(m["topic"], m["queueId"], m["queueOffset"]): m for m in self.recorded["messages"]}
        for send in self.recorded["sends"]:
            message = stored[send["topic"], send["queueId"], send["queueOffset"]]
            self.popper.raw.send(
                send["topic"],
                message["bodyText"].encode(),
                queue_id=send["queueId"],
                properties={"UNIQ_KEY": message["msgId"], **({"TAGS": tags} if (tags := message.get("tags")) else {})},
            )
        self.cluster.run(10)

    def told(self, response: RemotingCommand, popped: list[Any]) -> Iterator[tuple[Any, ...]]:
        """Each message as the client sees it: its place, and the handle that the client makes for it."""
        header = response.header_as(h.PopMessageResponseHeader)
        starts = parse_start_offset_info(header.start_offset_info)
        offsets = parse_msg_offset_info(header.msg_offset_info)
        for message in popped:
            handle = message.properties.get("POP_CK")
            if handle is None:
                key = queue_key(message.topic, message.queue_id)
                assert message.queue_offset in offsets[key]
                handle = ReceiptHandle(
                    starts[key], header.pop_time, header.invisible_time, header.revive_qid, "0", "broker-a",
                    message.queue_id, message.queue_offset,
                ).encode()  # fmt: skip
            yield (
                message.topic,
                message.queue_id,
                message.queue_offset,
                message.properties["UNIQ_KEY"],
                message.properties.get("TAGS"),
                message.reconsume_times,
                without_pop_time(handle),
                message.body.decode(),
            )


def without_pop_time(handle: str) -> list[str]:
    fields = handle.split(" ")
    return [fields[0], *fields[2:]]


def real(op: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            m["topic"],
            m["queueId"],
            m["queueOffset"],
            m["msgId"],
            m.get("tags"),
            m["reconsumeTimes"],
            without_pop_time(m["POP_CK"]),
            m["body"],
        )
        for m in op["messages"]
    ]


def test_every_pop_before_the_revival_is_answered_as_a_real_broker_answered_it(
    recorded: dict[str, Any], make_cluster: Callable[..., Any]
) -> None:
    replay = Replay(recorded, make_cluster)
    begin = recorded["ops"][0]["at"]
    compared = 0
    for op in recorded["ops"]:
        if op["op"] != "pop" or op["note"].startswith("R") or op["order"]:
            continue
        replay.cluster.run(max(0, op["at"] - begin - replay.cluster.now_ms))
        response = replay.popper.pop_again(op)
        if "error" in op:
            code, remark = re.fullmatch(r"MQBrokerException code=(\d+) remark=(.*)", op["error"], re.DOTALL).groups()
            told = re.sub(r"\[/?\d+\.\d+\.\d+\.\d+(:\d+)?\]", "[HOST]", f"{response.code} {response.remark}")
            assert told.startswith(re.sub(r"\[/?\d+\.\d+\.\d+\.\d+(:\d+)?\]", "[HOST]", f"{code} {remark.strip()}"))
        else:
            assert response.code == STATUS[op["status"]], op["note"]
            assert list(replay.told(response, messages_of(response))) == real(op), op["note"]
            if op["messages"]:
                assert response.header_as(h.PopMessageResponseHeader).rest_num == op["restNum"], op["note"]
        compared += 1
    assert compared == 12


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / "frames" / name).read_text().splitlines()]


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (RequestCode.POP_MESSAGE, h.PopMessageResponseHeader),
        (RequestCode.NOTIFICATION, h.NotificationResponseHeader),
        (RequestCode.POLLING_INFO, h.PollingInfoResponseHeader),
    ],
)
def test_an_answer_has_the_fields_and_the_remark_of_a_recorded_one(
    make_cluster: Callable[..., Any], code: int, cls: type
) -> None:
    """Every recorded request, to a broker with the same topic: found, nothing found, refused."""
    recorded = [row for name in ("client-json.jsonl", "client-json-extra.jsonl") for row in [rows(name)]]
    compared = 0
    for conversation in recorded:
        for row in conversation:
            if row["kind"] != "request" or row["header"]["code"] != code:
                continue
            answers = [other for other in conversation if other.get("answers") == row["seq"]]
            if not answers:
                continue
            ours = _ask(make_cluster, row, answers[0])
            theirs = RemotingCommand.decode(base64.b64decode(answers[0]["frame"]))
            assert (ours.code, without_hosts(ours.remark)) == (theirs.code, without_hosts(theirs.remark))
            assert set(ours.ext_fields or {}) == set(theirs.ext_fields or {}), row
            compared += 1
    assert compared >= {RequestCode.POP_MESSAGE: 7, RequestCode.NOTIFICATION: 2, RequestCode.POLLING_INFO: 1}[code]


def without_hosts(remark: str | None) -> str:
    return re.sub(r"\d+\.\d+\.\d+\.\d+(:\d+)?", "HOST", remark or "")


def _ask(make_cluster: Callable[..., Any], row: dict[str, Any], answer: dict[str, Any]) -> RemotingCommand:
    """Ask a broker here what a real one was asked, in the state that its answer shows."""
    fields = row["header"]["extFields"]
    cluster = make_cluster(wire_bytes=True, epoch_ms=int(fields.get("bornTime", 1_795_205_316_347)))
    cluster.topic(fields["topic"], 2)
    client = cluster.client()
    found = answer["header"]["code"] == 0 and answer["header"]["extFields"].get("hasMsg", "true") == "true"
    if found and row["name"] != "POLLING_INFO":
        for queue_id in range(2):
            client.send(fields["topic"], b"found", queue_id=queue_id, properties={"TAGS": fields.get("exp", "T")})
    if answer["header"]["code"] == 16:
        cluster.broker.subscription_group_manager.update_subscription_group_config(
            SubscriptionGroupConfig(fields["consumerGroup"], consume_enable=False)
        )
    cluster.run(2)
    request = RemotingCommand.decode(base64.b64decode(row["frame"]))
    call = client.node.spawn(client.remoting.invoke_sync(cluster.broker_address, request, 30_000), "recorded").join()
    response: RemotingCommand = cluster.world.wait_for(call)
    return response


def test_a_retry_message_is_written_anew_byte_by_byte_as_java_does() -> None:
    """MessageDecoder.encode of what MessageDecoder.decode gave, for every vector whose bytes Java could read again."""
    compared = 0
    vectors = json.loads((GOLDEN / "vectors" / "message-encode.json").read_text(encoding="utf-8"))["rows"]
    for row in vectors:
        encoded = bytes.fromhex(row.get("encodedHex", ""))
        if not encoded or row["needCompress"]:
            continue
        try:
            message = decode_record(encoded, decompress=False)
        except RecordError:
            continue
        handle = ReceiptHandle(0, 1, 2, 3, "1", "b", 0, 0)
        anew = under_plain_topic(encoded, message.topic, handle)
        properties = {**message.properties, "POP_CK": handle.encode()}
        assert encode_properties(properties, 128).encode() in anew
        assert decode_record(anew, decompress=False).properties == properties
        assert anew[4:84] == encoded[4:84] or row["topic"] != message.topic
        compared += 1
    assert compared > 3
