"""What a real broker reported to a real name server, reported here: the answers are the real ones, byte for byte."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from mqlab.protocol.command import RemotingCommand

FRAMES = Path(__file__).parent.parent / "golden" / "frames" / "broker-namesrv.jsonl"

# Every request of the file but routes of topics whose registration was cut out of it.
LINES = [*range(1, 36, 2), 39, 43, 45]


def command(row: dict[str, Any]) -> RemotingCommand:
    return RemotingCommand.decode(base64.b64decode(row["frame"]))


def test_the_recorded_registrations_are_answered_as_recorded(server: Any, broker: Any) -> None:
    recorded = [json.loads(line) for line in FRAMES.read_text().splitlines()]
    answers = {row["answers"]: command(row) for row in recorded if row["kind"] == "response"}
    namespace_known = False
    for line in LINES:
        row = recorded[line - 1]
        real = answers[row["seq"]]
        if real.body == b'{"table":{}}' and not namespace_known:
            # Between two registrations a client had put a key into the namespace of ordered topics and removed it.
            server.controller.kv_config_manager.put_kv_config("ORDER_TOPIC_CONFIG", "FrOrder", "broker-a:2")
            server.controller.kv_config_manager.delete_kv_config("ORDER_TOPIC_CONFIG", "FrOrder")
            namespace_known = True
        call = broker.remoting.invoke_sync(server.address, command(row), 3_000)
        ours = server.world.wait_for(broker.node.spawn(call, f"line {line}").join())
        assert (ours.code, ours.remark, ours.ext_fields or {}, ours.body) == (
            real.code,
            real.remark,
            real.ext_fields or {},
            real.body,
        ), line
    server.run(1)
    assert server.controller.route_info_manager.topic_queue_table == {}
