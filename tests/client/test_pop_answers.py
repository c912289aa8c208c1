"""What a client makes of the answer to a pop, compared with what a real RocketMQ client sent for the same answer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.client.consumer.pop.pop_result import PopStatus, process_pop_response
from mqlab.client.pop_client_api import AckStatus, PopClientAPI, batch_ack_body
from mqlab.errors import MQBrokerException, RemotingCommandException
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.pop_check_point import BatchAckMessageRequestBody
from mqlab.protocol.record import encode_record

FRAMES = Path(__file__).parents[1] / "golden" / "frames" / "client-json.jsonl"
A_POP_AND_ITS_ANSWER = (848, 850)
ITS_ACKS = (852, 854, 855, 856)
A_CHANGE_AND_ITS_ANSWER = (853, 867)


@pytest.fixture(scope="module")
def recorded() -> dict[int, RemotingCommand]:
    """The commands of the recording, by number."""
    rows = (json.loads(line) for line in FRAMES.read_text(encoding="utf-8").splitlines())
    return {row["seq"]: RemotingCommand.decode(base64.b64decode(row["frame"])) for row in rows}


def answer(**header: Any) -> RemotingCommand:
    """An answer with two messages of queue 1, at offsets 5 and 7."""
    values = {
        "pop_time": 1_000,
        "invisible_time": 60_000,
        "revive_qid": 2,
        "rest_num": 4,
        "start_offset_info": "0 1 5",
        "msg_offset_info": "0 1 5,7",
        **header,
    }
    body = b"".join(
        encode_record("T", b"x", "UNIQ_KEY\x01k\x02", 1, offset, 0, 1, 1, "10.0.0.9:1", "10.0.0.2:10911")
        for offset in (5, 7)
    )
    return RemotingCommand.response(ResponseCode.SUCCESS, None, h.PopMessageResponseHeader(**values), body)


def handles(command: RemotingCommand, **more: Any) -> list[str]:
    result = process_pop_response(command, "broker-a", "10.0.0.2:10911", "T", **more)
    return [message.properties["POP_CK"] for message in result.msg_found_list]


# -- as the real client ---------------------------------------------------------------------------------------------


def test_the_handles_are_those_that_the_real_client_acknowledged_with(recorded: dict[int, RemotingCommand]) -> None:
    result = process_pop_response(recorded[850], "broker-a", "127.0.0.1:10911", "FrPop")
    assert result.pop_status is PopStatus.FOUND
    by_place = {(message.queue_id, message.queue_offset): message for message in result.msg_found_list}
    assert len(by_place) == 14
    sent = [recorded[seq].header_as(h.AckMessageRequestHeader) for seq in ITS_ACKS]
    sent.append(recorded[853].header_as(h.ChangeInvisibleTimeRequestHeader))
    for header in sent:
        message = by_place[header.queue_id, header.offset]
        assert message.properties["POP_CK"] == header.extra_info
        handle = parse_handle(header.extra_info)
        assert (handle.real_topic(message.topic, "CG_POPPUSH"), handle.queue_offset) == (header.topic, header.offset)
    assert {message.properties["1ST_POP_TIME"] for message in by_place.values()} == {str(result.pop_time)}
    assert {(message.topic, message.broker_name) for message in by_place.values()} == {("FrPop", "broker-a")}


def test_the_new_handle_after_a_change_is_made_of_the_answer(recorded: dict[int, RemotingCommand]) -> None:
    header = recorded[853].header_as(h.ChangeInvisibleTimeRequestHeader)
    api = PopClientAPI(None)  # type: ignore[arg-type]  # reading an answer needs no network
    result = api.process_change_invisible_time_response(recorded[867], header, "broker-a", "127.0.0.1:10911")
    assert result.status is AckStatus.OK
    said = recorded[867].header_as(h.ChangeInvisibleTimeResponseHeader)
    assert parse_handle(result.extra_info) == ReceiptHandle(1, said.pop_time, 10_000, 7, "0", "broker-a", 0, 1)


def test_several_acks_in_one_are_encoded_as_the_real_client_did(recorded: dict[int, RemotingCommand]) -> None:
    (request,) = [c for c in recorded.values() if c.code == RequestCode.BATCH_ACK_MESSAGE and not c.is_response]
    body = BatchAckMessageRequestBody.decode(request.body)
    made = [
        ReceiptHandle(
            ack.start_offset,
            ack.pop_time,
            ack.invisible_time,
            ack.revive_queue_id,
            str(ack.retry),
            str(body.broker_name),
            ack.queue_id,
            offset,
        ).encode()
        for ack in body.acks
        for offset in ack.offsets()
    ]
    assert len(made) > 1
    again = batch_ack_body(str(body.acks[0].topic), str(body.acks[0].group), made)
    assert sorted(ack.encode() for ack in again.acks) == sorted(ack.encode() for ack in body.acks)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.POLLING_FULL, PopStatus.POLLING_FULL),
        (ResponseCode.POLLING_TIMEOUT, PopStatus.POLLING_NOT_FOUND),
        (ResponseCode.PULL_NOT_FOUND, PopStatus.POLLING_NOT_FOUND),
    ],
)
def test_the_codes_of_an_answer_without_messages(code: ResponseCode, status: PopStatus) -> None:
    command = RemotingCommand.response(code, "", h.PopMessageResponseHeader(1, 2, 3, 4, "", ""))
    result = process_pop_response(command, "broker-a", "10.0.0.2:10911", "T")
    assert (result.pop_status, result.msg_found_list, result.rest_num) == (status, [], 4)


# -- in other cases -------------------------------------------------------------------------------------------------


def test_the_nth_message_of_a_queue_has_the_nth_offset_of_the_answer() -> None:
    assert handles(answer(msg_offset_info="0 1 105,107")) == [
        "5 1000 60000 2 0 broker-a 1 105",
        "5 1000 60000 2 0 broker-a 1 107",
    ]


def test_without_start_offsets_the_first_message_of_a_queue_begins_the_batch() -> None:
    assert handles(answer(start_offset_info=None, msg_offset_info=None)) == [
        "5 1000 60000 2 0 broker-a 1 5",
        "5 1000 60000 2 0 broker-a 1 7",
    ]


def test_a_handle_that_the_broker_gave_stays_and_takes_no_offset_of_the_normal_queue() -> None:
    given = "9 900 60000 2 1 broker-a 1 9"
    command = answer(msg_offset_info="0 1 5")
    command.body = encode_record(
        "T", b"x", f"POP_CK\x01{given}\x021ST_POP_TIME\x01800\x02", 1, 9, 0, 1, 1, "10.0.0.9:1", "10.0.0.2:10911"
    ) + (command.body or b"")[: len(command.body or b"") // 2]
    result = process_pop_response(command, "broker-a", "10.0.0.2:10911", "T")
    found = [(m.properties["POP_CK"], m.properties["1ST_POP_TIME"]) for m in result.msg_found_list]
    assert found == [(given, "800"), ("5 1000 60000 2 0 broker-a 1 5", "1000")]


def test_in_order_the_broker_says_how_often_a_message_was_consumed() -> None:
    info = "0 1 2;0 qo1%7 4"
    counts = [
        [m.reconsume_times for m in process_pop_response(command, "broker-a", "a:1", "T", order=order).msg_found_list]
        for command, order in ((answer(order_count_info=info), True), (answer(order_count_info=info), False))
    ]
    assert counts == [[2, 4], [0, 0]]


@pytest.mark.parametrize(
    "header",
    [
        {"start_offset_info": "0 2 5"},
        {"msg_offset_info": "0 1 5"},
        {"msg_offset_info": "0 1"},
        {"start_offset_info": "0 1 x"},
    ],
)
def test_an_answer_that_does_not_fit_its_messages_is_no_answer(header: dict[str, str]) -> None:
    with pytest.raises(RemotingCommandException):
        handles(answer(**header))


def test_any_other_code_is_the_brokers_error() -> None:
    with pytest.raises(MQBrokerException) as caught:
        handles(RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "why"))
    assert caught.value.response_code == ResponseCode.SYSTEM_ERROR


def test_an_answer_without_its_fields_cannot_be_read() -> None:
    with pytest.raises(RemotingCommandException):
        handles(RemotingCommand.response(ResponseCode.POLLING_TIMEOUT, "nothing"))
