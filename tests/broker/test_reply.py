"""Replies: a broker pushes each to the client that asked, and stores it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.properties import decode_properties
from mqlab.protocol.record import scan_records
from mqlab.remoting import Channel, RequestProcessor

FRAMES = Path(__file__).parent.parent / "golden" / "frames"
HEARTBEAT, SEND_REPLY, PUSH, ANSWER = 29, 37, 43, 46
"""Line numbers in client-json-extra.jsonl: the asker's sign of life, a reply, its push, and the answer to the reply."""

TOPIC = "DefaultCluster_REPLY_TOPIC"


class Asker(RequestProcessor):
    """Takes replies, and answers as it is told; None is no answer."""

    def __init__(self, code: int | None = 0) -> None:
        self.code = code
        self.pushed: list[RemotingCommand] = []

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand | None:
        self.pushed.append(request)
        return None if self.code is None else RemotingCommand.response(self.code, "as told")


def recorded(line: int) -> RemotingCommand:
    rows = (FRAMES / "client-json-extra.jsonl").read_text().splitlines()
    return RemotingCommand.decode(base64.b64decode(json.loads(rows[line - 1])["frame"]))


def asking(cluster: Any, client_id: str = "asker", code: int | None = 0) -> tuple[Any, Asker]:
    """A client of the broker that has shown itself as a producer, and what it was pushed."""
    client, asker = cluster.client(), Asker(code)
    client.remoting.register_processor(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, asker)
    body = {"clientID": client_id, "producerDataSet": [{"groupName": "askers"}], "consumerDataSet": []}
    client.call(RequestCode.HEART_BEAT, None, json.dumps(body).encode())
    return client, asker


def properties_of(command: RemotingCommand) -> list[str]:
    """The names of the properties in a push, in their order."""
    return list(decode_properties((command.ext_fields or {})["properties"]))


def reply(client: Any, *, to: str | None = "asker", code: int = RequestCode.SEND_REPLY_MESSAGE_V2) -> RemotingCommand:
    """Send a reply, and play until it is answered."""
    properties = {"MSG_TYPE": "reply", "CORRELATION_ID": "c", "TTL": "3000", "UNIQ_KEY": "U"}
    if to is not None:
        properties["REPLY_TO_CLIENT"] = to
    header = client.send_header(TOPIC, properties=properties)
    answer: RemotingCommand = client.call(
        code, header.to_v1() if code == RequestCode.SEND_REPLY_MESSAGE else header, b"re"
    )
    return answer


def stored(client: Any) -> list[Any]:
    """The replies in the log, as somebody would pull them."""
    client.cluster.run(20)
    return list(scan_records(client.pull(TOPIC).body or b"", decompress=False))


def test_the_recorded_reply_is_pushed_and_answered_as_by_a_real_broker(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(wire_bytes=True)
    client, asker = cluster.client(), Asker()
    client.remoting.register_processor(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, asker)
    answers = [
        cluster.world.wait_for(
            client.node.spawn(
                client.remoting.invoke_sync(cluster.broker_address, recorded(line), 3_000), f"line {line}"
            ).join()
        )
        for line in (HEARTBEAT, SEND_REPLY)
    ]
    [ours], real = asker.pushed, recorded(PUSH)
    assert (ours.code, ours.body) == (real.code, real.body)
    our_fields, real_fields = ours.ext_fields or {}, real.ext_fields or {}
    assert set(our_fields) == set(real_fields)
    differs = {name for name in real_fields if our_fields[name] != real_fields[name]}
    assert differs == {"storeTimestamp", "bornHost", "storeHost", "properties"}, "times and addresses"
    assert properties_of(ours) == properties_of(real)
    our_answer, real_answer = answers[1], recorded(ANSWER)
    assert (our_answer.code, our_answer.remark) == (real_answer.code, real_answer.remark)
    assert set(our_answer.ext_fields or {}) == set(real_answer.ext_fields or {})


@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
def test_a_reply_is_stored_as_well_and_its_answer_says_where(make_cluster: Callable[..., Any], code: int) -> None:
    cluster = make_cluster()
    client, asker = asking(cluster)
    answer = reply(client, code=code)
    header = answer.header_as(h.SendMessageResponseHeader)
    [record] = stored(client)
    assert (answer.code, header.queue_offset, header.msg_id) == (0, 0, record.offset_msg_id)
    assert record.body == asker.pushed[0].body == b"re"
    assert "PUSH_REPLY_TIME" not in record.properties
    assert {"MSG_REGION", "TRACE_ON"} <= set(record.properties)


def test_a_broker_may_be_told_to_store_no_replies(make_cluster: Callable[..., Any]) -> None:
    client, asker = asking(make_cluster(store_reply_message_enable=False))
    answer = reply(client)
    header = answer.header_as(h.SendMessageResponseHeader)
    assert (answer.code, header.msg_id, header.queue_id, header.queue_offset) == (0, "0", 0, 0)
    assert len(asker.pushed) == 1
    assert stored(client) == []


@pytest.mark.parametrize(
    ("to", "remark"),
    [
        ("nobody", "push reply message fail, channel of <nobody> not found."),
        (None, "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
def test_a_reply_to_nobody_is_refused_and_stored_all_the_same(
    make_cluster: Callable[..., Any], to: str | None, remark: str
) -> None:
    client, asker = asking(make_cluster())
    answer = reply(client, to=to)
    assert (answer.code, answer.remark) == (1, remark)
    assert not asker.pushed
    assert len(stored(client)) == 1


def test_a_client_that_refuses_a_reply_or_is_silent_makes_the_push_fail(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    for client_id, code, waited_ms in (("grumpy", 1, 0), ("silent", None, 10_000)):
        client, _ = asking(cluster, client_id, code)
        begin_us = cluster.world.now_us
        answer = reply(client, to=client_id)
        assert (answer.code, answer.remark) == (1, f"push reply message to {client_id}fail.")
        assert waited_ms <= (cluster.world.now_us - begin_us) // 1_000 < waited_ms + 100


def test_a_client_that_leaves_one_of_its_groups_gets_no_replies_any_more(make_cluster: Callable[..., Any]) -> None:
    client, asker = asking(make_cluster())
    body = {"clientID": "asker", "producerDataSet": [{"groupName": "others"}], "consumerDataSet": []}
    client.call(RequestCode.HEART_BEAT, None, json.dumps(body).encode())
    client.call(RequestCode.UNREGISTER_CLIENT, h.UnregisterClientRequestHeader("asker", "others"))
    client.call(RequestCode.HEART_BEAT, None, json.dumps(body).encode())
    answer = reply(client)
    assert answer.code == 0, "the heartbeat has brought it back, since it has put the group there anew"
    client.call(RequestCode.UNREGISTER_CLIENT, h.UnregisterClientRequestHeader("asker", "others"))
    assert reply(client).code == 1, "it is still there with the group of askers, but cannot be found"
    assert len(asker.pushed) == 1


def test_a_client_whose_connection_has_ended_is_not_found(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    gone, _ = asking(cluster, "gone")
    client, _ = asking(cluster)
    gone.remoting.shutdown()
    cluster.run(50)
    answer = reply(client, to="gone")
    assert (answer.code, answer.remark) == (1, "push reply message fail, channel of <gone> not found.")
    assert reply(client).code == 0


def test_a_reply_is_checked_as_every_message_is(make_cluster: Callable[..., Any]) -> None:
    client, _ = asking(make_cluster())
    code = RequestCode.SEND_REPLY_MESSAGE_V2
    empty = client.call(code, client.send_header(TOPIC), None)
    assert empty.code == 1
    assert empty.remark.startswith("java.lang.NullPointerException")
    beyond = client.call(code, client.send_header(TOPIC, queue_id=7), b"x")
    assert beyond.code == 29
    assert beyond.remark.startswith("request queueId[7] is illegal")
    assert (beyond.ext_fields or {})["MSG_REGION"] == "DefaultRegion"
