"""A message as a producer makes it, as a consumer gets it, and the queue it lies in.

Java: org.apache.rocketmq.common.message.Message, MessageExt, MessageQueue, MessageConst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.protocol.message_id import create_message_id

MEBIBYTE = 1024 * 1024
"""The unit in which RocketMQ limits what is held of messages."""


class MessageConst:
    """The names of the properties that RocketMQ itself uses."""

    KEYS = "KEYS"
    TAGS = "TAGS"
    WAIT_STORE_MSG_OK = "WAIT"
    DELAY_TIME_LEVEL = "DELAY"
    RETRY_TOPIC = "RETRY_TOPIC"
    REAL_TOPIC = "REAL_TOPIC"
    REAL_QUEUE_ID = "REAL_QID"
    TRANSACTION_PREPARED = "TRAN_MSG"
    PRODUCER_GROUP = "PGROUP"
    MIN_OFFSET = "MIN_OFFSET"
    MAX_OFFSET = "MAX_OFFSET"
    BUYER_ID = "BUYER_ID"
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
    TRANSFER_FLAG = "TRANSFER_FLAG"
    CORRECTION_FLAG = "CORRECTION_FLAG"
    MQ2_FLAG = "MQ2_FLAG"
    RECONSUME_TIME = "RECONSUME_TIME"
    MSG_REGION = "MSG_REGION"
    TRACE_SWITCH = "TRACE_ON"
    TRACE_CONTEXT = "TRACE_CONTEXT"
    UNIQ_CLIENT_MESSAGE_ID_KEYIDX = "UNIQ_KEY"
    EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO"
    MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
    CONSUME_START_TIMESTAMP = "CONSUME_START_TIME"
    INNER_NUM = "INNER_NUM"
    INNER_BASE = "INNER_BASE"
    DUP_INFO = "DUP_INFO"
    CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
    TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
    TRANSACTION_ID = "__transactionId__"
    TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
    INSTANCE_ID = "INSTANCE_ID"
    CORRELATION_ID = "CORRELATION_ID"
    MESSAGE_REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
    MESSAGE_TTL = "TTL"
    REPLY_MESSAGE_ARRIVE_TIME = "ARRIVE_TIME"
    PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
    CLUSTER = "CLUSTER"
    MESSAGE_TYPE = "MSG_TYPE"
    POP_CK = "POP_CK"
    POP_CK_OFFSET = "POP_CK_OFFSET"
    FIRST_POP_TIME = "1ST_POP_TIME"
    SHARDING_KEY = "__SHARDINGKEY"
    FORWARD_QUEUE_ID = "PROPERTY_FORWARD_QUEUE_ID"
    REDIRECT = "REDIRECT"
    INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
    INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
    BORN_HOST = "__BORNHOST"
    BORN_TIMESTAMP = "BORN_TIMESTAMP"
    DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
    DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
    CRC32 = "__CRC32#"
    TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
    TIMER_DELAY_MS = "TIMER_DELAY_MS"
    TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
    TIMER_OUT_MS = "TIMER_OUT_MS"
    TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
    TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
    TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
    TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
    TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL"
    TRANSIENT_PREFIX = "__RMQ.TRANSIENT."
    KEY_SEPARATOR = " "


_NOT_RESERVED = {
    "CHECK_IMMUNITY_TIME_IN_SECONDS", "FORWARD_QUEUE_ID", "INNER_BASE", "INNER_MULTI_DISPATCH", "INNER_NUM",
    "KEY_SEPARATOR", "REDIRECT", "SHARDING_KEY", "TRACE_CONTEXT", "TRANSACTION_CHECK_TIMES", "TRANSACTION_ID",
    "TRANSIENT_PREFIX",
}  # fmt: skip

RESERVED_PROPERTIES = frozenset(
    value
    for name, value in vars(MessageConst).items()
    if not name.startswith("_") and isinstance(value, str) and name not in _NOT_RESERVED
)
"""The names of properties that an application may not use for its own.

Java: org.apache.rocketmq.common.message.MessageConst.STRING_HASH_SET. As there some of RocketMQ's own names are left
out: an application may set them, and a 5.x client is shown them among the application's own.
"""


class MessageQueue(NamedTuple):
    """One queue of a topic on one broker; queues sort by topic, broker name, queue id.

    Java: org.apache.rocketmq.common.message.MessageQueue.
    """

    topic: str
    broker_name: str
    queue_id: int

    def __repr__(self) -> str:
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"

    def __str__(self) -> str:
        return self.__repr__()


class Message:
    """A message as its producer makes it: a topic, a body of bytes, and named properties that are texts.

    `tags` is one tag, which consumers can subscribe to; `keys` are words to find the message by, one text with spaces
    or a list. `delay_level` 1 to 18 delivers it later. A text given as body is turned into UTF-8. As in RocketMQ, tag,
    keys and the rest are kept in `properties` (org.apache.rocketmq.common.message.Message).
    """

    __slots__ = ("body", "flag", "properties", "topic", "transaction_id")

    def __init__(
        self,
        topic: str,
        body: bytes | str | None,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        flag: int = 0,
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        wait_store_msg_ok: bool = True,
    ) -> None:
        self.topic = topic if type(topic) is str else _topic_text(topic)
        self.body: bytes = body if type(body) is bytes else _body_bytes(body)
        self.flag = _checked_flag(flag) if flag else 0
        self.transaction_id: str | None = None
        own: dict[str, str] = {}
        if tags:
            own["TAGS"] = tags if type(tags) is str else _tag_text(tags)
        if keys:
            own["KEYS"] = keys if type(keys) is str else _keys_text(keys)
        own["WAIT"] = "true" if wait_store_msg_ok else "false"
        if delay_level:
            own["DELAY"] = str(delay_level)
        if properties:
            for name, value in properties.items():
                _check_property(name, value)
            own.update(properties)
        self.properties = own

    @property
    def tags(self) -> str | None:
        """The tag by which subscriptions choose messages; null without one."""
        return self.properties.get("TAGS")

    @tags.setter
    def tags(self, tags: str) -> None:
        self.properties["TAGS"] = _tag_text(tags)

    @property
    def keys(self) -> str | None:
        """The keys, separated by spaces."""
        return self.properties.get("KEYS")

    @keys.setter
    def keys(self, keys: str | Iterable[str]) -> None:
        self.properties["KEYS"] = _keys_text(keys)

    @property
    def wait_store_msg_ok(self) -> bool:
        """Whether the producer waits until the message is safe on disk and slave; true unless said otherwise."""
        return self.properties.get("WAIT", "true").lower() == "true"

    @wait_store_msg_ok.setter
    def wait_store_msg_ok(self, wait: bool) -> None:
        self.properties["WAIT"] = "true" if wait else "false"

    @property
    def delay_time_level(self) -> int:
        """The delay level 1 to 18, 0 for at once."""
        return int(self.properties.get("DELAY", "0"))

    @delay_time_level.setter
    def delay_time_level(self, level: int) -> None:
        self.properties["DELAY"] = str(level)

    @property
    def delay_time_sec(self) -> int:
        """How many seconds the broker shall hold the message back, 0 for none; the timer is exact to a second."""
        return int(self.properties.get("TIMER_DELAY_SEC", "0"))

    @delay_time_sec.setter
    def delay_time_sec(self, seconds: int) -> None:
        self.properties["TIMER_DELAY_SEC"] = str(seconds)

    @property
    def delay_time_ms(self) -> int:
        """How many ms the broker shall hold the message back, 0 for none."""
        return int(self.properties.get("TIMER_DELAY_MS", "0"))

    @delay_time_ms.setter
    def delay_time_ms(self, ms: int) -> None:
        self.properties["TIMER_DELAY_MS"] = str(ms)

    @property
    def deliver_time_ms(self) -> int:
        """The moment, in ms since 1970, at which the broker shall deliver the message, 0 for at once."""
        return int(self.properties.get("TIMER_DELIVER_MS", "0"))

    @deliver_time_ms.setter
    def deliver_time_ms(self, ms: int) -> None:
        self.properties["TIMER_DELIVER_MS"] = str(ms)

    def put_property(self, name: str, value: str) -> None:
        """Set any property, also those that RocketMQ uses itself."""
        _check_property(name, value)
        self.properties[name] = value

    def get_property(self, name: str) -> str | None:
        """A property, or None."""
        return self.properties.get(name)

    def clear_property(self, name: str) -> None:
        """Remove a property if it is there."""
        self.properties.pop(name, None)

    def put_user_property(self, name: str, value: str) -> None:
        """Set a property of your own; a LearnerError when the name belongs to RocketMQ or name or value is blank."""
        if name in RESERVED_PROPERTIES:
            raise LearnerError(f"The Property<{name}> is used by system, input another please", "choose another name")
        if not name.strip() or not value.strip():
            raise LearnerError(
                "The name or value of property can not be null or blank string!", "give both name and value"
            )
        self.properties[name] = value

    def get_user_property(self, name: str) -> str | None:
        """A property, or None; the same as get_property, as in RocketMQ."""
        return self.properties.get(name)

    def __repr__(self) -> str:
        return f"Message(topic={self.topic!r}, body={_shortened(self.body)}, properties={self.properties})"


class MessageExt(Message):
    """A message as a consumer gets it: with where and when it was stored.

    `queue_offset` counts messages in the queue, `commit_log_offset` bytes in the commit log; the time stamps are ms
    since 1970; hosts are texts `ip:port`; `store_size` is the size of the record in bytes. `broker_name` is filled in
    by the client that pulled it (org.apache.rocketmq.common.message.MessageExt, MessageClientExt).
    """

    __slots__ = (
        "body_crc",
        "born_host",
        "born_timestamp",
        "broker_name",
        "commit_log_offset",
        "magic",
        "prepared_transaction_offset",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_host",
        "store_size",
        "store_timestamp",
        "stored_body_length",
        "sys_flag",
    )  # fmt: skip

    def __init__(
        self,
        topic: str = "",
        body: bytes = b"",
        flag: int = 0,
        properties: dict[str, str] | None = None,
        queue_id: int = 0,
        queue_offset: int = 0,
        commit_log_offset: int = 0,
        store_size: int = 0,
        sys_flag: int = 0,
        born_timestamp: int = 0,
        born_host: str = "0.0.0.0:0",
        store_timestamp: int = 0,
        store_host: str = "0.0.0.0:0",
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        body_crc: int = 0,
        magic: int = 0,
        stored_body_length: int = 0,
        broker_name: str | None = None,
    ) -> None:
        self.topic = topic
        self.body = body
        self.flag = flag
        self.transaction_id = None
        self.properties = {} if properties is None else properties
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.commit_log_offset = commit_log_offset
        self.store_size = store_size
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.store_timestamp = store_timestamp
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.body_crc = body_crc
        self.broker_name = broker_name
        self.magic = magic
        self.stored_body_length = stored_body_length

    @property
    def offset_msg_id(self) -> str:
        """The id that the broker gave: store host and commit log offset in hexadecimal."""
        return create_message_id(self.store_host, self.commit_log_offset)

    @property
    def msg_id(self) -> str:
        """The unique key that the producer gave, or the offset message id of a message without one."""
        return self.properties.get("UNIQ_KEY") or self.offset_msg_id

    @property
    def message_queue(self) -> MessageQueue:
        """The queue that the message was pulled from."""
        return MessageQueue(self.topic, self.broker_name or "", self.queue_id)

    def __repr__(self) -> str:
        return (
            f"MessageExt(topic={self.topic!r}, queue_id={self.queue_id}, queue_offset={self.queue_offset}, "
            f"msg_id={self.msg_id!r}, body={_shortened(self.body)}, reconsume_times={self.reconsume_times}, "
            f"properties={self.properties})"
        )


def _checked_flag(flag: int) -> int:
    if type(flag) is not int or not -0x8000_0000 <= flag <= 0x7FFF_FFFF:
        raise LearnerError(f"a message's flag is {flag!r}", "give a number of 32 bits; the record has no more room")
    return flag


def _check_property(name: object, value: object) -> None:
    if type(name) is not str or type(value) is not str:
        raise LearnerError(f"the property {name!r} has the value {value!r}", "names and values of properties are str")


def _body_bytes(body: object) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    if body is None:
        # Sending it is what fails, with RocketMQ's own text.
        return None  # type: ignore[return-value]
    raise LearnerError(f"the body of a message is bytes, not {type(body).__name__}", "encode it, for example as UTF-8")


def _topic_text(topic: object) -> str:
    if isinstance(topic, str):
        return topic
    if topic is None:
        # Sending it is what fails, with RocketMQ's own text.
        return None  # type: ignore[return-value]
    raise LearnerError(
        f"the topic of a message is a text, not {type(topic).__name__}", 'write Message("TopicTest", "hello")'
    )


def _tag_text(tags: object) -> str:
    if isinstance(tags, str):
        return tags
    raise LearnerError(f"the tag of a message is one text, not {tags!r}", 'write Message("TopicTest", "hello", "TagA")')


def _keys_text(keys: object) -> str:
    if isinstance(keys, str):
        return keys
    words: list[str] = list(keys) if isinstance(keys, Iterable) else [keys]  # type: ignore[list-item]  # told below
    for word in words:
        if not isinstance(word, str):
            raise LearnerError(f"the keys of a message are texts, not {word!r}", "write keys=str(order_id)")
    return " ".join(words)


def _shortened(body: bytes) -> str:
    return repr(body) if body is None or len(body) <= 40 else f"{body[:37]!r}... {len(body)} bytes"
