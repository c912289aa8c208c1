"""The wire: frames in flight, and every byte of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab, Message
from mqlab.errors import LearnerError
from mqlab.namesrv import AddressServer
from mqlab.views import label_frame
from mqlab.views.json_header import json_header_members
from tests.worlds import shop, started_producer

FRAMES = Path(__file__).parents[1] / "golden" / "frames"


def lab_with_a_message_under_way(**options: Any) -> Lab:
    lab = shop(topic="TopicTest", **options)
    producer = started_producer(lab, "orders")
    lab.run_for(seconds=1)
    producer.send(Message("TopicTest", b"hello", tags="TagA")).start()
    lab.run_until_event("RequestSent", request_name="SEND_MESSAGE_V2")
    return lab


def test_a_frame_in_flight_is_shown_until_it_arrives() -> None:
    lab = lab_with_a_message_under_way()
    send = lab.under_way().frames[0]
    assert (send.source, send.target, send.says) == ("producer-1", "broker-a", "request SEND_MESSAGE_V2")
    assert "request SEND_MESSAGE_V2" in str(lab.under_way())
    assert "request SEND_MESSAGE_V2" in lab.under_way()._repr_html_()
    lab.run_for(ms=send.arrives_us / 1_000)
    assert not [frame for frame in lab.under_way().frames if frame.says == send.says]


def test_the_bytes_are_the_same_whether_commands_travel_as_bytes_or_as_objects() -> None:
    shown = [str(lab_with_a_message_under_way(wire=wire).under_way().frame(0)) for wire in ("objects", "bytes")]
    assert shown[0] == shown[1]


def test_the_members_of_a_sends_header_are_named_by_what_their_letters_mean() -> None:
    frame = lab_with_a_message_under_way().under_way().frame(0)
    assert frame["code"].value == "310  SEND_MESSAGE_V2"
    assert frame["b = topic"].value == "TopicTest"
    assert frame["e = queueId"].value == "0"
    assert frame["body"].value == "hello"


def test_a_frame_held_back_by_a_cut_says_so() -> None:
    lab = lab_with_a_message_under_way()
    lab.partition("producer-1", "broker-a")
    assert "link is cut" in str(lab.under_way())


def test_where_nothing_is_under_way_a_frame_is_a_clear_error() -> None:
    lab = lab_with_a_message_under_way().run_for(ms=100)
    assert len(lab.under_way()) == 0
    with pytest.raises(LearnerError, match=r"there is no frame 0: 0 frames are under way"):
        lab.under_way().frame(0)


@pytest.mark.parametrize("name", ["client-json", "client-json-extra", "client-rocketmq-serialize", "broker-namesrv"])
def test_each_byte_of_each_recorded_frame_belongs_to_one_field(name: str) -> None:
    rows = [json.loads(line) for line in (FRAMES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    frames = [base64.b64decode(row["frame"]) for row in rows if "frame" in row]
    assert frames
    for data in frames:
        at = 0
        for field in label_frame(data).fields:
            assert field.start == at
            at += field.length
        assert at == len(data)


@pytest.mark.parametrize("header", [b"", b"{}", b"[1]", b"no json", b"\xff\xfe"])
def test_a_header_without_members_has_none(header: bytes) -> None:
    assert json_header_members(header) == []


def test_letters_that_are_more_than_one_byte_long_are_counted_in_bytes() -> None:
    header = '{"code":11,"remark":"größer","flag":0}'.encode()
    members = json_header_members(header)
    stretches = {member.name: header[member.start : member.start + member.length] for member in members}
    assert stretches == {"code": b'{"code":11', "remark": ',"remark":"größer"'.encode(), "flag": b',"flag":0}'}


def test_what_is_no_remoting_command_is_shown_as_it_is() -> None:
    lab = lab_with_a_message_under_way().run_for(ms=100)
    server = AddressServer(lab.node("addresses"), "10.0.0.1:9876")
    server.start()

    async def asked() -> None:
        endpoint = await lab.world.nodes["producer-1"].connect(server.address, 3_000)
        endpoint.send(b"GET /rocketmq/nsaddr HTTP/1.1\r\n\r\n")

    lab.world.wait_for(lab.world.nodes["producer-1"].spawn(asked(), "asked").join())
    (frame,) = lab.under_way().frames
    assert (frame.command, frame.says) == (None, "GET /rocketmq/nsaddr HTTP/1.1")
    assert "GET /rocketmq/nsaddr HTTP/1.1" in str(lab.under_way())
    assert lab.under_way().frame(0)["bytes"].length == 33
    next_steps = [entry.frame for entry in lab.world.pending() if entry.source]
    assert next_steps == [frame.data]
