"""What is handed to the store to be kept, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from mqlab.protocol.message import MessageExt
from mqlab.protocol.message_id import create_message_id
from mqlab.protocol.properties import encode_properties
from mqlab.sim.future import Future


class PutMessageStatus(Enum):
    """What became of a message (org.apache.rocketmq.store.PutMessageStatus)."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"
    PUT_TO_REMOTE_BROKER_FAIL = "PUT_TO_REMOTE_BROKER_FAIL"
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"
    WHEEL_TIMER_FLOW_CONTROL = "WHEEL_TIMER_FLOW_CONTROL"
    WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"
    WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"


PUT_OK = PutMessageStatus.PUT_OK
"""A constant, since asking an enumeration for its member costs as much as a call."""


class MessageExtBrokerInner(MessageExt):
    """A message as the broker hands it to its store (org.apache.rocketmq.common.message.MessageExtBrokerInner).

    `properties_string` is what gets written; made from `properties` when None. Where both are given they may differ, as
    in RocketMQ: the text goes to the disk, the mapping decides what happens now.
    """

    __slots__ = ("properties_string",)

    def __init__(
        self,
        topic: str,
        body: bytes,
        queue_id: int = 0,
        flag: int = 0,
        sys_flag: int = 0,
        properties: dict[str, str] | None = None,
        properties_string: str | None = None,
        born_timestamp: int = 0,
        born_host: str = "127.0.0.1:0",
        store_host: str = "127.0.0.1:10911",
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> None:
        # Written out, not super().__init__(...): this is made for every message that is sent.
        self.topic = topic
        self.body = body
        self.flag = flag
        self.properties = {} if properties is None else properties
        self.properties_string = properties_string
        self.transaction_id = None
        self.queue_id = queue_id
        self.queue_offset = 0
        self.commit_log_offset = 0
        self.store_size = 0
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host = born_host
        self.store_timestamp = 0
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.body_crc = 0
        self.broker_name = None
        self.magic = 0
        self.stored_body_length = 0

    def stored_properties(self) -> str:
        """The text of the properties that is written."""
        text = self.properties_string
        return encode_properties(self.properties) if text is None else text


class PutMessageResult:
    """What the store answers to a put (org.apache.rocketmq.store.PutMessageResult with its AppendMessageResult).

    `wrote_offset` and `wrote_bytes` say where the record lies in the commit log, `logics_offset` is the (first) queue
    offset, `msg_num` the number of messages of a batch, `store_timestamp` ms. All are 0 when nothing was stored;
    `remark` then says why.
    """

    __slots__ = ("logics_offset", "msg_num", "msg_offsets", "remark", "status", "store_host", "store_timestamp",
                 "wrote_bytes", "wrote_offset")  # fmt: skip

    def __init__(
        self,
        status: PutMessageStatus,
        wrote_offset: int = 0,
        wrote_bytes: int = 0,
        logics_offset: int = 0,
        store_timestamp: int = 0,
        store_host: str = "",
        msg_offsets: tuple[int, ...] = (),
        remark: str = "",
    ) -> None:
        self.status = status
        self.wrote_offset = wrote_offset
        self.wrote_bytes = wrote_bytes
        self.logics_offset = logics_offset
        self.store_timestamp = store_timestamp
        self.store_host = store_host
        self.msg_offsets = msg_offsets
        self.msg_num = len(msg_offsets) if msg_offsets else 1
        self.remark = remark

    @property
    def is_ok(self) -> bool:
        """Was it stored, and flushed in time if that was asked for?"""
        return self.status is PUT_OK

    @property
    def is_stored(self) -> bool:
        """Is the message in the commit log, even if the status complains?"""
        return self.wrote_bytes > 0

    @property
    def msg_id(self) -> str:
        """The offset message id; for a batch one for each message, joined by commas; empty when nothing was stored."""
        if not self.wrote_bytes:
            return ""
        if not self.msg_offsets:
            return create_message_id(self.store_host, self.wrote_offset)
        return ",".join(create_message_id(self.store_host, offset) for offset in self.msg_offsets)

    def __repr__(self) -> str:
        where = f" at {self.wrote_offset}, queue offset {self.logics_offset}" if self.wrote_bytes else ""
        return f"<PutMessageResult {self.status.value}{where}{': ' + self.remark if self.remark else ''}>"


Append = Callable[[MessageExtBrokerInner, int], PutMessageResult | Future[PutMessageResult]]
"""Appends a message, or a batch, with this store time (ms since the epoch)."""


class PendingPut(Future[PutMessageResult]):
    """The result of a put that waits for the lock of the commit log, as on a slow disk. Its thread waits with it until
    `appended`, but not for a flush.
    """

    __slots__ = ("appended",)

    def __init__(self) -> None:
        super().__init__("the result of a put that waits for the lock")
        self.appended: Future[None] = Future("the lock of the commit log")
