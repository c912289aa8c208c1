"""What this broker reports to a name server has the shape of what a real one reports."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RPCHook

FRAMES = Path(__file__).parent.parent / "golden" / "frames" / "broker-namesrv.jsonl"


class Reports(RPCHook):
    """Keeps the registrations that a name server gets."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, str], dict[str, Any]]] = []

    def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
        if request.code == RequestCode.REGISTER_BROKER:
            self.seen.append((request.ext_fields or {}, json.loads(request.body or b"")))


def recorded(line: int) -> tuple[dict[str, str], dict[str, Any]]:
    frame = json.loads(FRAMES.read_text().splitlines()[line - 1])["frame"]
    command = RemotingCommand.decode(base64.b64decode(frame))
    return command.ext_fields or {}, json.loads(command.body or b"")


def shape(value: Any) -> Any:
    """The names in an object, level by level; of a table of topics only one."""
    if isinstance(value, dict):
        if "topicConfigTable" in value:
            return {key: shape(next(iter(v.values())) if key == "topicConfigTable" else v) for key, v in value.items()}
        return {key: shape(member) for key, member in value.items()}
    return type(value).__name__


def test_full_and_single_reports_have_the_real_ones_fields(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(wire_bytes=True)
    reports = Reports()
    cluster.namesrv.remoting_server.rpc_hooks.append(reports)
    cluster.run(10_100)
    cluster.topic("FrA", 2)
    full, single = reports.seen
    for ours, real in ((full, recorded(1)), (single, recorded(27))):
        assert set(ours[0]) == set(real[0])
        assert shape(ours[1]) == shape(real[1])
    real_topics = recorded(1)[1]["topicConfigSerializeWrapper"]["topicConfigTable"]
    our_topics = full[1]["topicConfigSerializeWrapper"]["topicConfigTable"]
    assert our_topics == real_topics
    assert single[1]["topicConfigSerializeWrapper"]["topicConfigTable"] == (
        recorded(27)[1]["topicConfigSerializeWrapper"]["topicConfigTable"]
    )
