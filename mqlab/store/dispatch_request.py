"""What consume queues and index must know of a stored message: handed over by `put`, or read back from its bytes.

Both ways give the same request, which is what makes recovery possible; a test holds them equal.
"""

from __future__ import annotations

from functools import lru_cache

from mqlab.errors import LearnerError
from mqlab.protocol.hashing import tags_code
from mqlab.protocol.message import MessageExt
from mqlab.protocol.record import decode_record
from mqlab.protocol.sysflag import MessageSysFlag

RMQ_SYS_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DispatchRequest:
    """One stored message on its way to the queues and the index (org.apache.rocketmq.store.DispatchRequest).

    `batch_size` is 0 except for an inner batch, whose messages share one record. Differs from RocketMQ: keys and tags
    are taken from `properties` by whoever needs them. `bit_map` is what a dispatcher has found out for the later ones:
    which filters the message has passed, None while nobody looked.
    """

    __slots__ = ("batch_size", "bit_map", "commit_log_offset", "consume_queue_offset", "msg_size", "properties",
                 "queue_id", "store_timestamp", "sys_flag", "tags_code", "topic")  # fmt: skip

    def __init__(
        self,
        topic: str,
        queue_id: int,
        commit_log_offset: int,
        msg_size: int,
        tags_code: int,
        store_timestamp: int,
        consume_queue_offset: int,
        sys_flag: int,
        batch_size: int,
        properties: dict[str, str],
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.commit_log_offset = commit_log_offset
        self.msg_size = msg_size
        self.tags_code = tags_code
        self.store_timestamp = store_timestamp
        self.consume_queue_offset = consume_queue_offset
        self.sys_flag = sys_flag
        self.batch_size = batch_size
        self.properties = properties
        self.bit_map: bytes | None = None

    def fields(self) -> tuple[object, ...]:
        """All that it says, in the order of the constructor."""
        return (
            self.topic, self.queue_id, self.commit_log_offset, self.msg_size, self.tags_code, self.store_timestamp,
            self.consume_queue_offset, self.sys_flag, self.batch_size, self.properties,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"DispatchRequest{self.fields()}"

    @property
    def has_queue_entry(self) -> bool:
        """False for a prepared or rolled-back transaction: nobody may pull those."""
        transaction = self.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK
        return not transaction or transaction == MessageSysFlag.TRANSACTION_COMMIT


@lru_cache(maxsize=16)
def delay_level_table(levels: str) -> tuple[int, ...]:
    """The delays in ms of the levels 1, 2, ... in a text such as "1s 5s 10s"; LearnerError when it is none."""
    delays = []
    for word in levels.split():
        number, unit = word[:-1], word[-1]
        if unit not in _UNIT_MS or not number.isdigit():
            raise LearnerError(f"{word!r} is not a delay", "write message_delay_level like '1s 5s 10m 2h'")
        delays.append(int(number) * _UNIT_MS[unit])
    return tuple(delays)


def stored_tags_code(topic: str, properties: dict[str, str], store_timestamp: int, delays_ms: tuple[int, ...]) -> int:
    """What the queue entry keeps for filtering: the hash of the tag, or in the schedule topic the time of delivery."""
    if topic == RMQ_SYS_SCHEDULE_TOPIC:
        level = _as_int(properties.get("DELAY"))
        if level > 0 and delays_ms:
            return store_timestamp + delays_ms[min(level, len(delays_ms)) - 1]
    return tags_code(properties.get("TAGS"))


def _as_int(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0


def inner_num(properties: dict[str, str]) -> int:
    """How many messages an inner batch holds; 0 for a message that is none.

    Java: org.apache.rocketmq.store.CommitLog.setBatchSizeIfNeeded.
    """
    return _as_int(properties["INNER_NUM"]) if "INNER_NUM" in properties and "INNER_BASE" in properties else 0


def request_of(message: MessageExt, delays_ms: tuple[int, ...]) -> DispatchRequest:
    """The request for a message that was read back from the commit log."""
    properties = message.properties
    return DispatchRequest(
        message.topic,
        message.queue_id,
        message.commit_log_offset,
        message.store_size,
        stored_tags_code(message.topic, properties, message.store_timestamp, delays_ms),
        message.store_timestamp,
        message.queue_offset,
        message.sys_flag,
        inner_num(properties),
        properties,
    )


def read_request(
    buffer: bytes, at: int, delays_ms: tuple[int, ...], *, check_crc: bool
) -> DispatchRequest:
    """The request for the record at `at` of a buffer; RecordError when there is none
    (CommitLog.checkMessageAndReturnSize).
    """
    message = decode_record(buffer, at, check_crc=check_crc, decompress=False, read_body=check_crc)
    return request_of(message, delays_ms)
