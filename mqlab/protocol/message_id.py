"""The two ids of a message: the one its producer gives, and the one that says where it lies.

Unique key (org.apache.rocketmq.common.message.MessageClientIDSetter), upper-case hexadecimal:

    4 or 16 bytes   IP address of the client
    2 bytes         low 16 bits of the process id
    4 bytes         hash code of the class loader, a salt per process
    4 bytes         milliseconds since the start of the month
    2 bytes         counter

Offset message id (org.apache.rocketmq.common.message.MessageDecoder.createMessageId): store host with port, 8 or 20
bytes, and the byte offset in the commit log, 8 bytes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mqlab.protocol.errors import MessageIdError
from mqlab.protocol.hosts import decode_host, encode_host, ip_bytes, ip_text

_HEX = re.compile("[0-9A-Fa-f]+")
_CLOCK_DRIFT_MS = 1_000_000


class MessageId(NamedTuple):
    """What an offset message id says (org.apache.rocketmq.common.message.MessageId)."""

    address: str
    offset: int


def create_message_id(store_host: str, commit_log_offset: int) -> str:
    """The offset message id of the record at this byte offset on this broker: 32 characters, 56 with IPv6."""
    return _host_digits(store_host) + (commit_log_offset & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big").hex().upper()


@lru_cache(maxsize=16384)
def _host_digits(host: str) -> str:
    return encode_host(host).hex().upper()


def decode_message_id(message_id: str) -> MessageId:
    """The address and the offset in an offset message id; MessageIdError when it is none."""
    if len(message_id) not in (32, 56):
        raise MessageIdError(message_id, f"it has {len(message_id)} characters, not 32 (IPv4) or 56 (IPv6)")
    stored = _unhex(message_id)
    return MessageId(decode_host(stored[:-8]), int.from_bytes(stored[-8:], "big", signed=True))


class UniqueKeyGenerator:
    """Gives every message of one process its unique key.

    All facts of the machine are given: `ip`, `pid`, and a 32-bit `class_loader_hash`, which tells apart processes with
    the same pid. The month is that of UTC. Java: org.apache.rocketmq.common.message.MessageClientIDSetter. Differs from
    RocketMQ: the counter starts where `counter` says, and the ip is never made up.
    """

    __slots__ = ("_counter", "_month_ms", "_next_month_ms", "_prefix")

    def __init__(self, ip: str, pid: int, class_loader_hash: int, counter: int = 0) -> None:
        salt = (pid & 0xFFFF) << 32 | class_loader_hash & 0xFFFFFFFF
        self._prefix = f"{ip_bytes(ip).hex().upper()}{salt:012X}"
        self._counter = counter & 0xFFFF
        self._month_ms = 0
        self._next_month_ms = 0

    def next(self, now_ms: int) -> str:
        """The next key at this time, in ms since 1970: 32 characters, 56 with IPv6."""
        if now_ms >= self._next_month_ms:
            self._month_ms, self._next_month_ms = month_bounds_ms(now_ms)
        passed_ms = now_ms - self._month_ms
        # A clock set back across the start of the month: up to 1000 s count as none, more stays negative.
        if passed_ms < 0 and passed_ms > -_CLOCK_DRIFT_MS:
            passed_ms = 0
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        return self._prefix + format((passed_ms & 0xFFFFFFFF) << 16 | counter, "012X")


def month_bounds_ms(now_ms: int) -> tuple[int, int]:
    """The first ms of the month (UTC) and of the next one."""
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(now_ms // 1000, UTC)
    start = datetime(moment.year, moment.month, 1, tzinfo=UTC)
    after = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)
    return int(start.timestamp()) * 1000, int(after.timestamp()) * 1000


class UniqueKey(NamedTuple):
    """What a unique key says; `time_ms` since 1970, as near as the month that was assumed."""

    ip: str
    pid: int
    class_loader_hash: int
    time_ms: int
    counter: int


def decode_unique_key(key: str, now_ms: int) -> UniqueKey:
    """The parts of a unique key; its time is put into the month of `now_ms`, or the month before if that were later."""
    if len(key) not in (32, 56):
        raise MessageIdError(key, f"it has {len(key)} characters, not 32 (IPv4) or 56 (IPv6)")
    stored = _unhex(key)
    ip, rest = stored[:-12], stored[-12:]
    month_ms = month_bounds_ms(now_ms)[0]
    since_month_ms = int.from_bytes(rest[6:10], "big")
    if month_ms + since_month_ms >= now_ms:
        month_ms = month_bounds_ms(month_ms - 1)[0]
    return UniqueKey(
        ip_text(ip),
        int.from_bytes(rest[0:2], "big"),
        int.from_bytes(rest[2:6], "big"),
        month_ms + since_month_ms,
        int.from_bytes(rest[10:12], "big"),
    )


def _unhex(text: str) -> bytes:
    if not _HEX.fullmatch(text):
        raise MessageIdError(text, "it is not hexadecimal")
    return bytes.fromhex(text)
