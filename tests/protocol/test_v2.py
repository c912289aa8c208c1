"""Messages of apache.rocketmq.v2: the bytes that Google's protobuf makes of them, and its numbers of fields."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pytest

from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.protobuf import Duration, ProtobufError, Timestamp, decode, encode, fields_of
from tests.repo.tree import ROOT

VECTORS = json.loads((ROOT / "tests/golden/vectors/grpc-messages.json").read_text())

HERE = v2.Endpoints(v2.AddressScheme.IPV4, (v2.Address("10.0.0.3", 8081),))
MESSAGES: dict[str, Any] = {
    "send": service.SendMessageRequest((
        v2.Message(
            v2.Resource(name="T"),
            {"a": "b"},
            v2.SystemProperties(
                tag="x", keys=("k", "l"), message_id="01", born_timestamp=Timestamp(1700000000123), queue_id=3,
                delivery_attempt=0,
            ),
            b"hey",
        ),
    )),
    "settings from server": service.TelemetryCommand(
        v2.Status(v2.Code.OK, "OK"),
        v2.Settings(
            v2.ClientType.PUSH_CONSUMER,
            backoff_policy=v2.RetryPolicy(17, None, v2.CustomizedBackoff((Duration(1000), Duration(5000)))),
            subscription=v2.Subscription(v2.Resource(name="g"), (), True, 32, Duration(20000)),
        ),
    ),
    "settings of a producer": service.TelemetryCommand(
        settings=v2.Settings(
            v2.ClientType.PRODUCER,
            access_point=HERE,
            request_timeout=Duration(3000),
            backoff_policy=v2.RetryPolicy(3, v2.ExponentialBackoff(Duration(10), Duration(1000), 2.0)),
            publishing=v2.Publishing((v2.Resource(name="T"),), 4194304, True),
            metric=v2.Metric(),
        )
    ),
    "delivery timestamp": service.ReceiveMessageResponse(delivery_timestamp=Timestamp(1700000000123)),
    "status": service.ReceiveMessageResponse(v2.Status(v2.Code.MESSAGE_NOT_FOUND, "no new message")),
    "receive": service.ReceiveMessageRequest(
        v2.Resource(name="g"),
        v2.MessageQueue(
            v2.Resource(name="T"), -1, v2.Permission.READ_WRITE, v2.Broker("broker-a"),
            (v2.MessageType.NORMAL, v2.MessageType.FIFO),
        ),
        v2.FilterExpression(v2.FilterType.TAG, "*"),
        32,
        auto_renew=True,
        long_polling_timeout=Duration(20000),
        attempt_id="x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", VECTORS["rows"], ids=lambda row: row["name"])
def test_messages_are_the_bytes_of_googles_protobuf(row: dict[str, str]) -> None:
    message = MESSAGES[row["name"]]
    assert encode(message).hex() == row["hex"]
    assert decode(type(message), bytes.fromhex(row["hex"])) == message


@pytest.mark.parametrize("name", VECTORS["numbers"])
def test_fields_have_the_names_and_numbers_of_the_proto_files(name: str) -> None:
    cls: Any = getattr(v2, name, None) or getattr(service, name)
    theirs = VECTORS["numbers"][name]
    if issubclass(cls, IntEnum):
        numbers = set(theirs.values())
        assert all(member.value in numbers for member in cls)
    else:
        ours = {field.name: field.number for field in fields_of(cls)}
        assert ours.items() <= theirs.items()


def test_what_one_does_not_know_is_passed_over() -> None:
    known = encode(v2.Resource(name="T"))
    unknown = b"\x98\x06\x01" + b"\xa2\x06\x02ab" + b"\xad\x06\0\0\0\0"
    assert decode(v2.Resource, known + unknown) == v2.Resource(name="T")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x12\x05T", "longer than its message"),
        (b"\xff", "does not end"),
        (b"\x10\x01", "wire type 0"),
        (b"\x12\x01\xff", "not UTF-8"),
        (b"\x13", "wire type 3"),
    ],
)
def test_nonsense_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode(v2.Resource, data)


def test_an_unknown_code_stays_a_number() -> None:
    status = decode(v2.Status, encode(v2.Status(77777, "new")))  # type: ignore[arg-type]
    assert status.code == 77777
    assert not isinstance(status.code, v2.Code)
