"""Answers with something wrong in them, drawn from a seed: for the tests that clients survive them."""

from __future__ import annotations

import random
import re
from collections.abc import Collection
from typing import Any

from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RPCHook

NONSENSE = ("", " ", "x", "-1", "-9223372036854775808", "9223372036854775807", "4294967296", "1" * 30, "1.5", "true",
            "null", "\ud800", "é" * 40, "10.0.0.9:1", "a:b:c", "0")  # fmt: skip
BODIES = (None, b"", b"null", b"{}", b"[]", b"[{}]", b'"x"', b"7", b"{", b"\x00" * 40, b"\xff\xfe\xfd")
JSON_VALUES = (b"null", b"-1", b"1e400", b'""', b'"x"', b"[]", b"{}", b"[null]", b"true", b"99999999999999999999")


class MutatingHook(RPCHook):
    """Breaks a share of the answers of the server that it is registered with, while it is on."""

    def __init__(self, seed: int, share: float, codes: Collection[int] | None = None) -> None:
        self._random = random.Random(seed)
        self._share = share
        self._codes = codes
        self.on = True
        self.mutated = 0

    def do_after_response(
        self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
    ) -> None:
        """Break this answer, perhaps."""
        if not self.on or response is None or request.is_oneway:
            return
        if self._codes is not None and request.code not in self._codes:
            return
        if self._random.random() < self._share:
            self.mutated += 1
            self._mutate(response)

    def _mutate(self, response: RemotingCommand) -> None:
        for _ in range(self._random.choice((1, 1, 2))):
            kinds = (self._field, self._field, self._body, self._body, self._bytes, self._json, self._code)
            self._random.choice(kinds)(response)

    def _field(self, response: RemotingCommand) -> None:
        fields = dict(response.ext_fields or {})
        if not fields:
            return
        name = self._random.choice(sorted(fields))
        if self._random.random() < 0.3:
            del fields[name]
        else:
            fields[name] = self._random.choice(NONSENSE)
        response.header = None
        for wire_name, value in fields.items():
            response.add_ext_field(wire_name, value)

    def _code(self, response: RemotingCommand) -> None:
        response.code = self._random.choice((0, 1, 2, 10, 14, 17, 19, 20, 21, 22, 206, 215, -1, 77_777))
        response.remark = self._random.choice((None, "", "x" * 300, "\ud800"))

    def _body(self, response: RemotingCommand) -> None:
        response.body = self._random.choice(BODIES)

    def _bytes(self, response: RemotingCommand) -> None:
        body = bytearray(response.body or b"")
        if not body:
            return
        for _ in range(self._random.choice((1, 1, 3, 10))):
            body[self._random.randrange(len(body))] = self._random.randrange(256)
        length = self._random.choice((len(body), len(body), self._random.randrange(len(body) + 1)))
        response.body = bytes(body[:length])

    def _json(self, response: RemotingCommand) -> None:
        body = response.body or b""
        values = list(re.finditer(rb'(?<=:)("[^"]*"|-?\d+|true|false|null|\[\])', body))
        if body[:1] == b"{" and values:
            value = self._random.choice(values)
            response.body = body[: value.start()] + self._random.choice(JSON_VALUES) + body[value.end() :]


def hooks_of(cluster: Any, seed: int, share: float, codes: Collection[int] | None = None) -> list[MutatingHook]:
    """A hook at every server of a cluster."""
    servers = [cluster.namesrv.remoting_server, *(broker.remoting_server for broker in cluster.brokers.values())]
    hooks = [MutatingHook(seed * 100 + k, share, codes) for k in range(len(servers))]
    for server, hook in zip(servers, hooks, strict=True):
        server.rpc_hooks.append(hook)
    return hooks
