"""What travels on a connection: parts of streams, as objects and as bytes.

     0  length     3 bytes  of the payload      (RFC 9113, section 4.1)
     3  type       1 byte   0 DATA, 1 HEADERS, 3 RST_STREAM
     4  flags      1 byte   1 END_STREAM, 4 END_HEADERS
     5  stream     4 bytes

The payload of HEADERS are lines `name: value`, that of DATA one message as gRPC frames it: 0 (not compressed), its
length in 4 bytes, its protobuf bytes. An `RpcFrame` is what is written at once: headers, a message, trailers, or all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from mqlab.errors import ProtocolError
from mqlab.protocol.v2.protobuf import ProtobufError, decode, encode
from mqlab.protocol.v2.service import RPCS, Rpc
from mqlab.rpc.status import StatusCode

DATA, HEADERS, RST_STREAM = 0, 1, 3
END_STREAM, END_HEADERS = 0x1, 0x4

_PLAIN = " ,;:./()[]<>='"
"""What a status message may hold unescaped, beside letters and digits."""


class RpcFrame(NamedTuple):
    """A part of a stream.

    `path` names the call in each frame, as the receiver of bytes knows it from the stream's first one. `metadata`
    opens the stream; `status` closes the server's side, `reset` the whole stream. `is_answer` says who sends.
    `malformed` says what is wrong with a request that cannot be read.
    """

    stream_id: int
    path: str
    is_answer: bool
    metadata: Mapping[str, str] | None = None
    message: tuple[Any, ...] | None = None
    ends: bool = False
    status: StatusCode | None = None
    description: str = ""
    reset: bool = False
    malformed: str = ""

    @property
    def method(self) -> str:
        """The call's name without its service."""
        return self.path.rpartition("/")[2]

    def encode(self) -> bytes:
        """The bytes on the wire."""
        if self.reset:
            return _frame(RST_STREAM, 0, self.stream_id, (8).to_bytes(4, "big"))
        parts = []
        if self.metadata is not None:
            lines = [(":path", self.path), *self.metadata.items()]
            parts.append(_headers(self.stream_id, lines, ends=self.ends and self.message is None))
        if self.message is not None:
            data = encode(self.message)
            flags = END_STREAM if self.ends and self.status is None else 0
            parts.append(_frame(DATA, flags, self.stream_id, b"\0" + len(data).to_bytes(4, "big") + data))
        elif self.ends and self.metadata is None and self.status is None:
            parts.append(_frame(DATA, END_STREAM, self.stream_id, b""))
        if self.status is not None:
            lines = [("grpc-status", str(int(self.status))), ("grpc-message", quote(self.description, safe=_PLAIN))]
            parts.append(_headers(self.stream_id, lines, ends=True))
        return b"".join(parts)


def decode_frame(data: bytes, paths: Mapping[int, str], *, is_answer: bool) -> RpcFrame:
    """The frame in bytes that were written at once; `paths` says the calls of the streams that are open.

    Raises ProtocolError for what no peer would write.
    """
    frame = RpcFrame(0, "", is_answer)
    at = 0
    while at < len(data):
        if len(data) - at < 9:
            raise ProtocolError(f"{len(data) - at} bytes are left, too few for a frame")
        length, kind, flags, stream_id = _read_head(data, at)
        payload = data[at + 9 : at + 9 + length]
        if len(payload) < length:
            raise ProtocolError(f"a frame of {length} bytes has only {len(payload)}")
        at += 9 + length
        frame = frame._replace(stream_id=stream_id, path=frame.path or paths.get(stream_id, ""))
        if kind == HEADERS:
            frame = _with_headers(frame, payload)
        elif kind == RST_STREAM:
            frame = frame._replace(reset=True)
        elif payload:
            rpc = RPCS.get(frame.path)
            if rpc is None:
                raise ProtocolError(f"a message of the unknown call {frame.path!r}")
            if is_answer:
                frame = frame._replace(message=decode(rpc.response, payload[5:]))
            else:
                frame = _with_request(frame, rpc, payload[5:])
        frame = frame._replace(ends=frame.ends or bool(flags & END_STREAM))
    return frame


def request_bytes(
    stream_id: int, path: str, metadata: Mapping[str, str] | None, message: bytes | None, *, ends: bool
) -> bytes:
    """What a client writes at once: the opening of a call (with `metadata`), a message in protobuf's bytes, the end."""
    parts = []
    if metadata is not None:
        parts.append(_headers(stream_id, [(":path", path), *metadata.items()], ends=ends and message is None))
    if message is not None:
        data = b"\0" + len(message).to_bytes(4, "big") + message
        parts.append(_frame(DATA, END_STREAM if ends else 0, stream_id, data))
    elif ends and metadata is None:
        parts.append(_frame(DATA, END_STREAM, stream_id, b""))
    return b"".join(parts)


def reset_bytes(stream_id: int) -> bytes:
    """What a client writes that does not want the answer any more."""
    return RpcFrame(stream_id, "", False, reset=True).encode()


def answer_parts(data: bytes) -> list[tuple[int, bytes | tuple[StatusCode, str]]]:
    """What a server has written at once, as (stream, a message in protobuf's bytes or a status with its text)."""
    parts: list[tuple[int, bytes | tuple[StatusCode, str]]] = []
    at = 0
    while at < len(data):
        length, kind, _, stream_id = _read_head(data, at)
        payload = data[at + 9 : at + 9 + length]
        at += 9 + length
        if kind == DATA:
            parts.append((stream_id, payload[5:]))
        elif kind == HEADERS:
            frame = _with_headers(RpcFrame(stream_id, "", True), payload)
            if frame.status is not None:
                parts.append((stream_id, (frame.status, frame.description)))
    return parts


def _with_request(frame: RpcFrame, rpc: Rpc, message: bytes) -> RpcFrame:
    try:
        return frame._replace(message=decode(rpc.request, message))
    except ProtobufError as error:
        return frame._replace(malformed=str(error))


def _with_headers(frame: RpcFrame, payload: bytes) -> RpcFrame:
    lines = dict(line.split(": ", 1) for line in payload.decode().splitlines())
    if "grpc-status" in lines:
        status = StatusCode.of(int(lines["grpc-status"]))
        return frame._replace(status=status, description=unquote(lines["grpc-message"]))
    return frame._replace(path=lines.pop(":path"), metadata=lines)


def _headers(stream_id: int, lines: list[tuple[str, str]], *, ends: bool) -> bytes:
    text = "".join(f"{name}: {value}\n" for name, value in lines)
    return _frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream_id, text.encode())


def _frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream_id.to_bytes(4, "big") + payload


def _read_head(data: bytes, at: int) -> tuple[int, int, int, int]:
    number = int.from_bytes
    return number(data[at : at + 3], "big"), data[at + 3], data[at + 4], number(data[at + 5 : at + 9], "big")
