"""The recorded requests of a real client, asked again here: the answers have the real codes, texts and fields."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.record import scan_records

FRAMES = Path(__file__).parent.parent / "golden" / "frames"

# Line numbers of requests in client-json.jsonl, in the order in which they were sent. Left out are those that need
# delayed delivery, timers, SQL or transactions, and held pulls, which have tests of their own.
CONVERSATION = [
    *(5, 7, 9, 11, 13, 15),  # key-value configuration, cluster information
    *(17, 19, 21, 23, 31, 33),  # topics and a group are created
    *(35, 37),  # routes
    *(41, 42, 45, 47, 48, 50),  # sends
    45,  # in the place of a delayed message that was delivered meanwhile
    *(58, 60, 62, 64, 66, 68, 70, 72),  # sends, good and bad
    *(74, 76, 78, 80, 84, 86, 88, 90, 92, 94),  # pulls, good and bad
    *(103, 106, 110, 112, 114, 116, 118, 120, 122, 124, 126, 128, 130, 132, 134),  # offsets, views, queries
    *(136, 139),  # the producer leaves
    *(172, 175, 177, 193),  # a consumer comes and sends a message back
    *(156, 158, 160, 162, 164),  # administration
    *(619, 621, 623),
]

STABLE_FIELDS = {
    "queueId",
    "queueOffset",
    "TRACE_ON",
    "MSG_REGION",
    "nextBeginOffset",
    "minOffset",
    "maxOffset",
    "suggestWhichBrokerId",
    "topicSysFlag",
    "groupSysFlag",
    "forbiddenType",
    "offset",
    "value",
    "IS_SUPPORT_HEART_BEAT_V2",
    "IS_SUB_CHANGE",
}

SAME_RECORDS = {126, 130, 132}
"""The answers whose messages are compared, too."""

BEGIN_MS = 1795205186000
"""When the recording began, so that the times in its requests mean something here."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FRAMES / name).read_text().splitlines()]


def command(row: dict[str, Any]) -> RemotingCommand:
    return RemotingCommand.decode(base64.b64decode(row["frame"]))


def plain(text: str | None) -> str:
    """A text without the addresses, which are others here."""
    return re.sub(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?", "HOST", text or "")


def difference(line: int, asked: RemotingCommand, real: RemotingCommand, ours: RemotingCommand) -> str:
    if (real.code, plain(real.remark)) != (ours.code, plain(ours.remark)):
        return f"line {line} {asked!r}:\n  real {real.code} {real.remark!r}\n  ours {ours.code} {ours.remark!r}"
    real_fields, our_fields = real.ext_fields or {}, ours.ext_fields or {}
    if set(real_fields) != set(our_fields):
        return f"line {line} {asked!r}:\n  real {sorted(real_fields)}\n  ours {sorted(our_fields)}"
    for name in sorted(STABLE_FIELDS & set(real_fields)):
        if real_fields[name] != our_fields[name]:
            return f"line {line} {asked!r}: {name} is {real_fields[name]} there, {our_fields[name]} here"
    if line in SAME_RECORDS and records(real) != records(ours):
        return f"line {line} {asked!r}:\n  real {records(real)}\n  ours {records(ours)}"
    return ""


def records(response: RemotingCommand) -> list[Any]:
    """The stored messages in an answer; of their properties also the order in which they were written counts."""
    return [
        (m.topic, m.body, m.queue_id, m.queue_offset, m.flag, m.sys_flag, m.body_crc, list(m.properties.items()))
        for m in scan_records(response.body or b"", decompress=False)
    ]


@pytest.mark.parametrize("wire_bytes", [False, True])
def test_every_answer_of_the_recorded_conversation_is_the_real_one(
    make_cluster: Callable[..., Any], wire_bytes: bool
) -> None:
    cluster = make_cluster({"max_message_size": 32768}, wire_bytes=wire_bytes, epoch_ms=BEGIN_MS)
    cluster.topic("FrReadOnly", 1, perm=4)
    cluster.topic("FrWriteOnly", 1, perm=2)
    client = cluster.client()
    recorded = rows("client-json.jsonl")
    answers = {row["answers"]: row for row in recorded if row["kind"] == "response"}
    wrong = []
    for turn, line in enumerate(CONVERSATION):
        row = recorded[line - 1]
        asked = command(row)
        to = cluster.namesrv_address if row["dir"].endswith("namesrv") else cluster.broker_address
        if row["kind"] == "oneway":
            client.remoting.invoke_oneway(to, asked, 3_000)
            cluster.run(20)
            continue
        ours = cluster.world.wait_for(
            client.node.spawn(client.remoting.invoke_sync(to, asked, 3_000), f"line {line}").join()
        )
        cluster.run(20)
        problem = difference(line, asked, command(answers[row["seq"]]), ours)
        if problem and line not in CONVERSATION[:turn]:
            wrong.append(problem)
    assert not wrong, "\n".join(wrong)
