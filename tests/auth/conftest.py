"""A world that asks for signatures, and programs in it that send single requests or make single calls."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from mqlab.auth import SessionCredentials
from mqlab.auth.session_credentials import AclClientRPCHook
from mqlab.lab import Lab
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RemotingClient
from mqlab.sim import Node, NodeSpec

VECTORS = Path(__file__).parents[1] / "golden" / "vectors"
SUPER = SessionCredentials("rocketmq", "12345678")
ALICE = SessionCredentials("alice", "secret")
AUTH = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": '{"username":"rocketmq","password":"12345678"}',
    "inner_client_authentication_credentials": '{"accessKey":"inner","secretKey":"xyz"}',
}
"""The settings of a broker, and of a proxy, that asks for signatures."""


def vectors(name: str) -> list[dict[str, Any]]:
    """What RocketMQ 5.3.3 said."""
    rows: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return rows


def guarded(*, seed: int = 7, wire: str = "objects", rights: tuple[str, ...] = ("Pub", "Sub", "Get")) -> Lab:
    """A name server and a broker that asks for signatures, with the topics T and U; alice may do with T and with groups
    that begin with g what `rights` say.
    """
    lab = Lab(seed, wire=wire)
    lab.name_server()
    lab.broker(**AUTH)
    for topic in ("T", "U"):
        lab.create_topic(topic, 1)
    lab.create_user("alice", "secret")
    lab.create_acl("User:alice", ["Topic:T", "Group:g*"], list(rights))
    return lab


def played(lab: Lab, node: Node, call: Coroutine[Any, Any, Any]) -> Any:
    """Play until a call that this node makes has its answer."""
    return lab.world.wait_for(node.spawn(call, "call").join())


class Program:
    """A program at 127.0.0.1, as far as the broker sees."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.node = lab.node("program", NodeSpec("127.0.0.1"))
        self._remoting = RemotingClient(self.node)

    def ask(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes | None = None,
        credentials: SessionCredentials | None = None,
        change: Mapping[str, str] | None = None,
        *,
        broker: int = 0,
    ) -> RemotingCommand:
        """The answer of a broker to a request that is signed, and then changed."""
        request = RemotingCommand.request(code, None, body)
        request.add_ext_fields(dict(fields or {}))
        if credentials is not None:
            AclClientRPCHook(credentials).do_before_request("", request)
        request.add_ext_fields(dict(change or {}))
        call = self._remoting.invoke_sync(self._lab.brokers[broker].address, request, 10_000)
        answer: RemotingCommand = played(self._lab, self.node, call)
        return answer
