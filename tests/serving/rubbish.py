"""What no client should say: requests that mean nothing, frames that are none, and lengths that lie. The same seed, the
same bytes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import EnumMeta
from itertools import islice
from random import Random
from threading import Thread
from typing import Any, get_args, get_origin, get_type_hints

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.command_header import JSON, ROCKETMQ
from mqlab.protocol.header_codec import codec_of
from mqlab.protocol.headers.table import REQUEST_HEADERS
from mqlab.protocol.v2.protobuf import encode
from mqlab.protocol.v2.service import RPCS, Rpc

NAME_SERVER_CODES = (100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 318, 319, 322, 327, 901, 904)
BROKER_CODES = tuple(int(code) for code in RequestCode if code not in NAME_SERVER_CODES)
_HEADERS = tuple(REQUEST_HEADERS.values())
NUMBERS = (
    "0",
    "1",
    "-1",
    "3",
    "31",
    "4096",
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "1e3",
    "0x10",
)
NAMES = (
    "T",
    "C",
    "P",
    "broker-a",
    "DefaultCluster",
    "TBW102",
    "%RETRY%C",
    "%DLQ%C",
    "SCHEDULE_TOPIC_XXXX",
    "rmq_sys_wheel_timer",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "rmq_sys_REVIVE_LOG_DefaultCluster",
    "10.0.0.2:10911",
    "client-1",
    "nobody",
    "*",
    "A || B",
)
TEXTS = (
    "",
    " ",
    "null",
    "NaN",
    "true",
    "..",
    "../../store",
    "\0",
    "\1\2",
    "\ud7ff",
    "\N{PILE OF POO}",
    "x" * 300,
    "x" * 40_000,
    "a=b",
    "{}",
    "[]",
    "((((",
    "'",
    "%s%n",
    "-",
    "1 2 3 4 5 6 7",
    "1 2 3 4 5 6 7 8",
    "TAGS\1\2",
    "DELAY\1" + "9" * 30,
    "DELAY\1-3\2",
    "TIMER_DELIVER_MS\1-1\2",
    "TIMER_DELIVER_MS\1z\2",
    "TIMER_DELAY_SEC\0019999999999999\2",
    "TRAN_MSG\1true\2",
    "INNER_NUM\1x\2",
    "INNER_BASE\1-7\2",
    "INNER_MULTI_DISPATCH\1%LMQ%a,b\2INNER_MULTI_QUEUE_OFFSET\0011\2",
    "KEYS\1 \2",
    "UNIQ_KEY\1\2",
    "POP_CK\1a b c\2",
    "CORRELATION_ID\1q\2REPLY_TO_CLIENT\1w\2TTL\1t\2",
    "WAIT\1no\2",
    "__SHARDINGKEY\1\2",
    "a IS NULL AND (b > 'x' OR NOT c BETWEEN 1 AND 2)",
)
BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'"x"',
    b"7",
    b"1e999",
    b"[" * 30_000,
    b'{"a":' * 30_000,
    b"\xff\xfe\0",
    b"\0" * 5_000,
    b'{"topicConfigTable":{"a":{"topicName":"a","readQueueNums":-1}},"dataVersion":7}',
    b'{"clientID":7,"producerDataSet":{}}',
    b'{"clientID":"x","consumerDataSet":[{"groupName":null,"subscriptionDataSet":[{"topic":[]}]}]}',
    b'{"clientID":"x","consumerDataSet":[{"groupName":"C","consumeType":"CONSUME_ALOT","subscriptionDataSet":{}}]}',
    b'{"consumerGroup":"C","mqSet":[{"topic":"T","brokerName":"broker-a","queueId":-5},null]}',
    b'{"groupName":""}',
    b'{"groupName":"C","retryQueueNums":2147483647,"retryMaxTimes":-2147483648}',
    b'{"topic":"T","consumerGroup":"C","mode":"POP"}',
    b"flushDiskType=ASYNC\nmaxMessageSize=-1\nfileReservedTime",
    b"pullThreadPoolQueueCapacity=0",
    b"\xe4\xb8",
    b"a=b\n" * 2_000,
    b"\x00\x00\x00\x20" + b"\x7f" * 28,
    b"\x00\x00\x00\x5b\xda\xa3\x20\xa7" + b"\0" * 83,
)


PER_CONNECTION = 200


def throw(address: str, rubbish: Rubbish, connections: int) -> int:
    """Over each of so many connections, one after the other: good frames that ask for anything, then one that breaks.

    All answers are taken; how many bytes these were.
    """
    host, _, port = address.rpartition(":")
    frames, breaks = rubbish.frames(), rubbish.breaks()
    taken: list[int] = []
    for _ in range(connections):
        with socket.create_connection((host, int(port)), 60) as connection:
            reader = Thread(target=_take_all, args=(connection, taken))
            reader.start()
            with suppress(OSError):
                for frame in islice(frames, PER_CONNECTION):
                    connection.sendall(frame)
                connection.sendall(next(breaks))
                connection.shutdown(socket.SHUT_WR)
            reader.join()
    return sum(taken)


def _take_all(connection: socket.socket, taken: list[int]) -> None:
    with suppress(ConnectionResetError):
        while data := connection.recv(1 << 20):
            taken.append(len(data))


def say(channel: Any, rpc: Rpc, metadata: Mapping[str, str], message: bytes) -> Any:
    """A call with these bytes as its message; it is not waited for."""
    kind = ("stream" if rpc.client_streams else "unary") + ("_stream" if rpc.server_streams else "_unary")
    call, pairs = getattr(channel, kind)(rpc.path), list(metadata.items())
    if rpc.client_streams:
        return call(iter([message]), metadata=pairs, timeout=20)
    return (call if rpc.server_streams else call.future)(message, metadata=pairs, timeout=20)


class Rubbish:
    """Makes frames and things like frames, without end."""

    def __init__(self, seed: int, codes: Sequence[int]) -> None:
        self._random = Random(seed)
        self._codes = codes
        self._opaque = 0

    def frames(self) -> Iterator[bytes]:
        """Frames that can be read, one by one, whatever they ask for: each leaves its connection open."""
        while True:
            yield self._command().encode()

    def breaks(self) -> Iterator[bytes]:
        """What ends a connection, or leaves it waiting for the rest."""
        while True:
            yield self._random.choice((self._cut, self._flipped, self._lies, self._noise, self._header))()

    def calls(self) -> Iterator[tuple[Rpc, dict[str, str], bytes]]:
        """gRPC calls: which one, its metadata, and what is in its one message, which may be none."""
        while True:
            rpc, client = (
                self._random.choice(list(RPCS.values())),
                self._random.choice(("c-1", "c-2", "c-3", "", "x" * 300)),
            )
            metadata = {"x-mq-client-id": client, "x-mq-language": self._random.choice(("PYTHON", "JAVA", "KLINGON"))}
            if self._random.random() < 0.1:
                del metadata[self._random.choice(list(metadata))]
            message = bytearray(encode(self._message(rpc.request)))
            if message and self._random.random() < 0.3:
                message[self._random.randrange(len(message))] = self._random.randrange(256)
            elif self._random.random() < 0.1:
                message = bytearray(self._random.randbytes(self._random.randrange(300)))
            yield rpc, metadata, bytes(message)

    def _message(self, kind: type) -> Any:
        """A message of 5.x with something in each of its fields, more often right than not."""
        hints = get_type_hints(kind)
        return kind(**{name: self._part(name, hint) for name, hint in hints.items() if self._random.random() < 0.9})

    def _part(self, name: str, hint: Any) -> Any:
        choice = self._random.choice
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Mapping:
            return {choice(("a", "", "KEYS", "TAGS", "\1")): choice(TEXTS) for _ in range(choice((0, 1, 3)))}
        if origin is tuple:
            return tuple(self._part(name, inner[0]) for _ in range(choice((0, 1, 1, 1, 3))))
        if inner:
            return self._part(name, inner[0])
        if hint is str:
            return self._right(name, str) if self._random.random() < 0.9 else choice(TEXTS)
        if hint is bytes:
            return self._body()
        if isinstance(hint, EnumMeta):
            return choice(list(hint))
        if hint is bool:
            return choice((False, True))
        if hint is int or not isinstance(hint, type):
            return choice((0, 0, 1, 1, 2, 32, 1_000, 30_000, -1, 1 << 31, (1 << 53) - 1, -(1 << 53)))
        return self._message(hint)

    def _command(self) -> RemotingCommand:
        choice, code = self._random.choice, self._random.choice(self._codes)
        if self._random.random() < 0.02:
            code = self._random.randrange(-(1 << 31), 1 << 31)
        self._opaque += 1
        command = RemotingCommand(code, body=self._body(), opaque=self._opaque, flag=choice((0,) * 12 + (2, 1, 3, 255)))
        command.serialize_type = choice((JSON, JSON, ROCKETMQ))
        command.language, command.version = choice((0, 5, 12)), choice((0, 431, 479, 30_000))
        header = REQUEST_HEADERS.get(code) or choice(_HEADERS)
        wrong = choice((0.0, 0.1, 0.3))
        for name, kind in zip(codec_of(header).wire_names(), get_type_hints(header).values(), strict=True):
            if self._random.random() < wrong:
                if choice((True, True, False)):
                    command.add_ext_field(name, choice((*TEXTS, *NUMBERS)))
            else:
                command.add_ext_field(name, self._right(name, kind))
        return command

    def _right(self, name: str, kind: object) -> str:
        """A value of the right kind, as far as the type and the name say of which."""
        if str in (kind, *get_args(kind)):
            if name in ("properties", "i", "attributes", "extraInfo", "expression"):
                return self._random.choice(TEXTS)
            if name.lower().endswith("topic") or name in ("b", "originTopic"):
                return self._random.choice(("T", "T", *NAMES))
            return self._random.choice(("C", "C", *NAMES))
        if bool in (kind, *get_args(kind)):
            return self._random.choice(("true", "false"))
        return self._random.choice(("0", "0", "0", "1", "1", "2", "4", "32", *NUMBERS[:-2]))

    def _body(self) -> bytes:
        if self._random.random() < 0.5:
            return self._random.choice(BODIES)
        return self._random.randbytes(self._random.randrange(200))

    def _cut(self) -> bytes:
        frame = self._command().encode()
        return frame[: self._random.randrange(len(frame))]

    def _flipped(self) -> bytes:
        frame = bytearray(self._command().encode())
        for _ in range(self._random.randrange(1, 9)):
            frame[self._random.randrange(min(len(frame), 200))] = self._random.randrange(256)
        return bytes(frame)

    def _lies(self) -> bytes:
        frame = self._command().encode()
        length, word = self._random.randrange(-(1 << 31), 1 << 31), self._random.randrange(1 << 32)
        if self._random.random() < 0.5:
            return struct.pack(">i", length) + frame[4:]
        return frame[:4] + struct.pack(">I", word) + frame[8:]

    def _noise(self) -> bytes:
        text = self._random.choice(
            (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"")
        )
        return text + self._random.randbytes(self._random.randrange(2_000))

    def _header(self) -> bytes:
        """A frame whose header is JSON, but none of a command; or is no JSON."""
        whole = {"code": 10, "flag": 0, "language": "JAVA", "opaque": 1, "version": 479, "extFields": {"topic": "T"}}
        name = self._random.choice(list(whole))
        wrong = (None, "x", -1, 1 << 70, 1.5, [], {}, True, [[]], {"a": {"b": None}}, {"a": 1}, "JAVA")
        text = json.dumps({**whole, name: self._random.choice(wrong)}).encode()
        if self._random.random() < 0.4:
            text = self._random.choice(BODIES)
        return struct.pack(">iI", 4 + len(text), len(text)) + text
