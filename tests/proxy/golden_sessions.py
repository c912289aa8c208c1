"""Sessions of official 5.x clients with a real proxy, as they were recorded message by message."""

from __future__ import annotations

import base64
import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from mqlab.protocol.v2 import service
from mqlab.protocol.v2.protobuf import decode
from mqlab.rpc.status import StatusCode
from tests.repo.tree import ROOT

ARCHIVE = ROOT / "tests/golden/grpc/sessions.tar.xz"

UNTIL_MS = {"jv-broker": 22_000}
"""Sessions that are read to this moment (ms). Then the real proxy had asked for a route while the broker was away, and
knew for 20 s of no topic; when it asks was settled by sessions before this one.
"""

MOST_BYTES = 16 << 20
"""A request that is larger is refused by HTTP/2's server, before any proxy."""


Key = tuple[str, int]
"""Which call: the connection, and its number in the session."""


class Call:
    """One call, and what it was answered."""

    def __init__(
        self, path: str, step: str, began_ms: float, timeout_ms: int | None, metadata: Mapping[str, str]
    ) -> None:
        self.path = path
        self.step = step
        self.began_ms = began_ms
        self.timeout_ms = timeout_ms
        self.metadata = metadata
        self.answers: list[tuple[float, bytes]] = []
        """When (ms of the session), and the bytes of the message."""
        self.end: tuple[float, StatusCode, str] | None = None

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def rpc(self) -> service.Rpc | None:
        return service.RPCS.get(self.path)

    def messages(self) -> list[Any]:
        """The answers, decoded."""
        assert self.rpc is not None
        return [decode(self.rpc.response, data) for _, data in self.answers]


class Said(NamedTuple):
    """One thing that the client did: when, in which call, and what (call, message, half-close or cancel)."""

    ms: float
    step: str
    key: Key
    event: str
    data: bytes
    too_large: bool = False
    """Whether HTTP/2's server refuses it; then its bytes are not here."""


class Session(NamedTuple):
    """A recorded session."""

    name: str
    said: list[Said]
    calls: dict[Key, Call]
    epoch_ms: float
    """The wall clock at its ms 0."""


@cache
def _files() -> dict[str, str]:
    with tarfile.open(ARCHIVE) as archive:
        return {
            member.name.removesuffix(".jsonl"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive.getmembers()
        }


def names() -> list[str]:
    """The sessions that there are."""
    return sorted(_files())


def _whole(row: Mapping[str, Any]) -> bytes:
    """The bytes of a message; of a long one the middle, which is the letter x, was left out."""
    if "cut" not in row:
        return base64.b64decode(row["b64"])
    head, tail = base64.b64decode(row["head64"]), base64.b64decode(row["tail64"])
    data = head + b"x" * (row["len"] - len(head) - len(tail)) + tail
    assert hashlib.sha256(data).hexdigest() == row["sha256"]
    return data


def recorded(name: str) -> Session:
    """A session up to where calls were left out, or to its place in UNTIL_MS."""
    said: list[Said] = []
    calls: dict[Key, Call] = {}
    epochs: list[float] = []
    for row in map(json.loads, _files()[name].splitlines()):
        if row["event"] == "cut" or row["ms"] > UNTIL_MS.get(name, row["ms"]):
            break
        if "conn" not in row:
            continue
        ms, key = row["ms"], (row["conn"], row["call"])
        if row["event"] == "call":
            metadata = dict(row["metadata"])
            if "metadataElseOfCall" in row:
                metadata = {**calls[row["conn"], row["metadataElseOfCall"]].metadata, **metadata}
            epochs += _clock(metadata, ms)
            path = row.get("path") or f"/{service.SERVICE}/{row['method']}"
            calls[key] = Call(path, row["step"], ms, row.get("timeoutMs"), metadata)
        call = calls[key]
        if row["dir"] == "c>s" or row["event"] == "cancel":
            too_large = row.get("len", 0) > MOST_BYTES
            data = _whole(row) if row["event"] == "message" and not too_large else b""
            said.append(Said(ms, row["step"], key, row["event"], data, too_large))
        elif row["event"] == "message":
            call.answers.append((ms, _whole(row)))
            epochs += _times(call, ms)
        elif row["event"] == "end":
            call.end = (ms, StatusCode.of(row["statusCode"]), row.get("message", ""))
    return Session(name, said, calls, max(epochs, default=1_795_424_400_000))


def _clock(metadata: Mapping[str, str], ms: float) -> Iterator[float]:
    """The clock at ms 0 by what a client says of its own, which has seconds."""
    if "x-mq-date-time" in metadata:
        said = datetime.strptime(metadata["x-mq-date-time"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        yield said.timestamp() * 1_000 - ms


def _times(call: Call, ms: float) -> Iterator[float]:
    """The clock at ms 0 by an answer: it was written a moment before it came."""
    if call.rpc is service.RECEIVE_MESSAGE:
        at = call.messages()[-1].delivery_timestamp
        if at is not None:
            yield at - ms
