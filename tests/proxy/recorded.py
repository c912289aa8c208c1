"""Calls to the proxy of a real RocketMQ, and the same calls to ours."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mqlab.client.v5.client_impl import ClientImpl
from mqlab.lab import Lab
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.protobuf import decode
from tests.repo.tree import ROOT

_RECORDED = json.loads((ROOT / "tests/golden/vectors/grpc-calls.json").read_text())


class Recorded(NamedTuple):
    """One call: in which session and step of it, what was asked, and what was answered."""

    session: str
    step: str
    rpc: service.Rpc
    request: Any
    answer: Any
    bytes_of_both: tuple[bytes, bytes]


def _recorded(row: dict[str, str]) -> Recorded:
    rpc = service.RPCS[f"/{service.SERVICE}/{row['method']}"]
    request, answer = bytes.fromhex(row["request"]), bytes.fromhex(row["answer"])
    return Recorded(
        row["session"], row["step"], rpc, decode(rpc.request, request), decode(rpc.response, answer), (request, answer)
    )


CALLS = [_recorded(row) for row in _RECORDED["rows"]]

QUESTION_BYTES = [bytes.fromhex(row["command"]) for row in _RECORDED["questions"]]
QUESTIONS = [
    command.recover_orphaned_transaction_command
    for command in (decode(service.TelemetryCommand, data) for data in QUESTION_BYTES)
    if command.recover_orphaned_transaction_command is not None
]
"""What the real proxy asked the Java client over its stream."""


def answer_to(step: str) -> Any:
    """What the real proxy answered in a step."""
    (found,) = (each.answer for each in CALLS if each.step == step)
    return found


def call(lab: Lab, client: ClientImpl, rpc: service.Rpc, request: Any) -> Any:
    """What our proxy answers to a call of this client."""
    answer = client.node.spawn(client.call(client.endpoints, rpc, request), "ask").join()
    return lab.world.wait_for(answer, 10_000)


def fields_set(message: Any) -> Any:
    """The names of the fields of a message that are set, and those of the messages in it."""
    if not hasattr(message, "_asdict"):
        return None
    defaults = type(message)._field_defaults
    return {name: fields_set(value) for name, value in message._asdict().items() if value != defaults[name]}
