"""Our proxy beside that of a real RocketMQ: the same calls have the same answers."""

from __future__ import annotations

import pytest

from mqlab.protocol.v2 import service
from mqlab.protocol.v2.protobuf import decode, encode
from mqlab.rpc import RpcError, StatusCode

from .conftest import Shop
from .recorded import CALLS, QUESTION_BYTES, Recorded, call

OF_NO_HALF_MESSAGE = [
    each
    for each in CALLS
    if each.session == "st-others" and not each.step.endswith(("for a real half", "answer of recovery"))
]
REFUSED = [
    each
    for each in CALLS
    if each.session == "st-sends"
    and each.answer.entries == ()
    and not any(message.system_properties.delivery_timestamp for message in each.request.messages)
]
"""Without those that name a day on which the recording was made."""


@pytest.mark.parametrize("recorded", CALLS, ids=lambda each: f"{each.session} {each.step}")
def test_calls_are_the_bytes_of_the_real_ones(recorded: Recorded) -> None:
    assert (encode(recorded.request), encode(recorded.answer)) == recorded.bytes_of_both


@pytest.mark.parametrize("data", QUESTION_BYTES, ids=["commit", "rollback"])
def test_questions_are_the_bytes_of_the_real_ones(data: bytes) -> None:
    assert encode(decode(service.TelemetryCommand, data)) == data


def recorded_shop() -> Shop:
    shop = Shop()
    for kind in ("NORMAL", "FIFO", "DELAY", "TRANSACTION"):
        shop.lab.create_topic(f"st_{kind}", 4, attributes={"+message.type": kind})
    return shop


@pytest.mark.parametrize("recorded", [*OF_NO_HALF_MESSAGE, *REFUSED], ids=lambda each: each.step)
def test_what_is_refused_is_refused_in_the_same_words(recorded: Recorded) -> None:
    shop = recorded_shop()
    answer = call(shop.lab, shop.producer().impl, recorded.rpc, recorded.request)
    assert answer == recorded.answer


def test_several_messages_in_one_request_have_one_result() -> None:
    """Two messages in order: their ids stand in one entry, and the transaction id is the first one's.

    As in RocketMQ the broker puts the properties of the first one behind those of each, so both are stored with its id.
    """
    shop = recorded_shop()
    (recorded,) = (each for each in CALLS if each.step == "send two fifo")
    assert len(recorded.request.messages) == 2
    answer = call(shop.lab, shop.producer().impl, recorded.rpc, recorded.request)
    assert answer == recorded.answer
    stored = shop.events("MessageStored", topic="st_FIFO")
    first = recorded.request.messages[0].system_properties.message_id
    assert [(e.queue_offset, e.unique_key) for e in stored] == [(0, first), (1, first)]
    assert len({e.queue_id for e in stored}) == 1


@pytest.mark.parametrize("name", ["PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription"])
def test_calls_that_the_real_proxy_does_not_serve(name: str) -> None:
    shop = recorded_shop()
    rpc = service.Rpc(name, service.HeartbeatRequest, service.HeartbeatResponse)
    impl = shop.producer().impl
    asked = impl.node.spawn(impl.rpc.unary(str(impl.endpoints), rpc, service.HeartbeatRequest(), 3_000), "ask").join()
    with pytest.raises(RpcError) as refused:
        shop.lab.world.wait_for(asked, 10_000)
    said = "Method not found: {}" if name == "SyncLiteSubscription" else "Method {} is unimplemented"
    path = f"apache.rocketmq.v2.MessagingService/{name}"
    assert (refused.value.code, refused.value.description) == (StatusCode.UNIMPLEMENTED, said.format(path))
