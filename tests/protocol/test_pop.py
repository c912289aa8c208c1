"""Handles, check points and acknowledgements of Pop, against what RocketMQ's own classes said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.protocol import extra_info, fastjson
from mqlab.protocol.errors import BodyError, ExtraInfoError
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.pop_check_point import (
    AckMsg,
    BatchAck,
    BatchAckMessageRequestBody,
    BatchAckMsg,
    PopCheckPoint,
    bits_of,
    is_revive_topic,
    offsets_of,
    revive_topic,
)

VECTORS = Path(__file__).parents[1] / "golden" / "vectors"
POP = json.loads((VECTORS / "pop-json.json").read_text("utf-8"))["rows"]
EXTRA = json.loads((VECTORS / "extra-info.json").read_text("utf-8"))["rows"]


def rows(kind: str) -> list[dict[str, Any]]:
    return [row for row in POP if row["kind"] == kind]


def value(kind: str) -> str:
    return str(rows(kind)[0]["value"])


# -- check points and acks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("PopCheckPoint"), ids=lambda row: row["case"])
def test_a_check_point_is_what_java_writes_and_reads(row: dict[str, Any]) -> None:
    point = PopCheckPoint.decode(row["json"].encode())
    assert point.encode().decode() == row["json"]
    assert point.revive_time == row["reviveTime"]
    for name, expected in row.items():
        what, _, number = name.partition("_")
        if what == "indexOfAck":
            assert point.index_of_ack(int(number)) == expected
        elif what == "ackOffsetByIndex":
            assert point.ack_offset_by_index(int(number)) == expected


def test_unique_keys() -> None:
    common = {"start_offset": 100, "group": "g1", "topic": "T", "queue_id": 2, "pop_time": 1_700_000_000_000}
    point = PopCheckPoint(**common, broker_name="broker-a")
    ack = AckMsg(104, **common, broker_name="broker-a")
    batch = BatchAckMsg(-1, **common, broker_name="broker-a", ack_offset_list=[100, 104])
    assert point.unique_key == value("genCkUniqueId")
    assert ack.unique_key == value("genAckUniqueId")
    assert batch.unique_key == value("genBatchAckUniqueId")
    assert ack.encode().decode() == rows("AckMsg")[0]["json"]
    assert batch.encode().decode() == rows("BatchAckMsg")[0]["json"]
    assert point.merge_key == ack.merge_key == batch.merge_key == "Tg121001700000000000broker-a"


def test_a_full_bitmap_is_a_negative_number_in_java() -> None:
    point = PopCheckPoint(num=32, bit_map=(1 << 32) - 1)
    assert fastjson.loads_object("PopCheckPoint", point.encode())["bm"] == -1
    assert PopCheckPoint.decode(point.encode()).bit_map == (1 << 32) - 1


def test_a_check_point_of_another_origin_lacks_names() -> None:
    point = PopCheckPoint.decode(b"{}")
    assert (point.topic, point.group, point.num) == (None, None, 0)
    with pytest.raises(BodyError, match="so: 'x'"):
        PopCheckPoint.decode(b'{"so":"x"}')


def test_a_batch_of_acks_is_a_set_of_bits() -> None:
    row = rows("BatchAckMessageRequestBody")[0]
    body = BatchAckMessageRequestBody.decode(row["json"].encode())
    assert body.encode().decode() == row["json"]
    assert offsets_of(body.acks[0].bit_set) == row["bitsSet"]
    assert body.acks[0].offsets() == [100, 104, 170]
    assert bits_of(row["bitsSet"]) == body.acks[0].bit_set
    assert offsets_of(bits_of([])) == []
    with pytest.raises(BodyError, match="no base64"):
        BatchAck(bit_set="?").offsets()


def test_times_of_putting_again() -> None:
    assert PopCheckPoint().parse_re_put_times() == 0
    assert PopCheckPoint(re_put_times="3").parse_re_put_times() == 3
    assert PopCheckPoint(re_put_times="x").parse_re_put_times() == 2**31 - 1


def test_the_revive_topic_has_the_name_of_the_cluster() -> None:
    assert revive_topic("DefaultCluster") == "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert is_revive_topic("rmq_sys_REVIVE_LOG_x")
    assert not is_revive_topic("T")


# -- handles ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [row for row in EXTRA if "msgQueueOffset" in row], ids=lambda row: row["extraInfo"])
def test_a_handle_is_what_java_makes(row: dict[str, Any]) -> None:
    handle = ReceiptHandle(
        row["ckQueueOffset"], row["popTime"], row["invisibleTime"], row["reviveQid"],
        extra_info.retry_flag(row["topic"]), row["brokerName"], row["queueId"], row["msgQueueOffset"],
    )  # fmt: skip
    assert handle.encode() == row["extraInfo"]
    assert parse_handle(row["extraInfo"]) == handle
    assert handle.real_topic("T", "G") == row["realTopic_T_G"]
    assert handle.is_order is row["isOrder"]
    assert handle.retry == row["retry"]


@pytest.mark.parametrize("row", [row for row in EXTRA if "isOrderError" in row], ids=lambda row: repr(row["extraInfo"]))
def test_a_text_that_is_no_handle_is_refused_in_java_s_words(row: dict[str, Any]) -> None:
    said = [text.partition(": ")[2] for name, text in row.items() if name.endswith("Error")]
    with pytest.raises(ExtraInfoError) as caught:
        parse_handle(row["extraInfo"])
    assert str(caught.value) in said


def test_a_proxy_adds_a_ninth_field() -> None:
    handle = parse_handle("1 2 3 999 0 b 0 5 4711")
    assert handle.is_order
    assert handle.commit_log_offset == 4711
    assert handle.encode() == "1 2 3 999 0 b 0 5 4711"
    assert handle.expires_ms == 5


# -- the texts of an answer -------------------------------------------------------------------------------------------


def test_the_three_texts() -> None:
    start, offsets, counts = (
        next(row for row in EXTRA if name in row) for name in ("startOffsetInfo", "msgOffsetInfo", "orderCountInfo")
    )
    topics = ("T", "%RETRY%G_T", "%RETRY%G+T")
    queues = ((0, 100, (100, 103, 109)), (1, 101, (101, 104, 109)))
    made = [(topic, queue) for topic in topics for queue in queues]
    assert ";".join(extra_info.start_offset_info(t, q[0], q[1]) for t, q in made) == start["startOffsetInfo"]
    assert ";".join(extra_info.msg_offset_info(t, q[0], q[2]) for t, q in made) == offsets["msgOffsetInfo"]
    texts = [
        text
        for t, q in made
        for text in (
            extra_info.queue_id_order_count_info(t, q[0], q[0] + 1),
            extra_info.queue_offset_order_count_info(t, q[0], q[1], q[0] + 2),
        )
    ]
    assert ";".join(texts) == counts["orderCountInfo"]
    assert extra_info.parse_start_offset_info(start["startOffsetInfo"]) == start["parsed"]
    assert extra_info.parse_msg_offset_info(offsets["msgOffsetInfo"]) == offsets["parsed"]
    assert extra_info.parse_order_count_info(counts["orderCountInfo"]) == counts["parsed"]


@pytest.mark.parametrize("row", [row for row in EXTRA if "startOffsetError" in row], ids=lambda row: row["parseInput"])
def test_a_text_that_is_none_of_them_is_refused(row: dict[str, Any]) -> None:
    for parse in (
        extra_info.parse_start_offset_info, extra_info.parse_msg_offset_info, extra_info.parse_order_count_info,
    ):  # fmt: skip
        with pytest.raises(ExtraInfoError):
            parse(row["parseInput"])


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_says_nothing(text: str | None) -> None:
    assert extra_info.parse_start_offset_info(text) == {}
    assert extra_info.parse_msg_offset_info(text) == {}
    assert extra_info.parse_order_count_info(text) == {}


def test_keys_of_queues_and_messages() -> None:
    for row in EXTRA:
        if "startOffsetInfoMapKey_q5" in row:
            assert extra_info.queue_key(row["topic"], 5) == row["startOffsetInfoMapKey_q5"]
            assert extra_info.message_key(row["topic"], 5, 77) == row["queueOffsetMapKey_5_77"]
            assert extra_info.queue_offset_key(5, 77) == row["queueOffsetKeyValueKey_5_77"]


def test_the_handle_after_a_change_of_the_invisible_time_is_of_its_message_alone() -> None:
    popped = parse_handle("3 1700000000000 60000 2 0 broker-a 1 7 4096")
    changed = popped.changed("%RETRY%g_T", 1700000009000, 30_000, 5)
    assert changed.encode() == "7 1700000009000 30000 5 1 broker-a 1 7 4096"
