"""What a producer gets back for a message."""

from __future__ import annotations

from enum import Enum

from mqlab.protocol.message import MessageQueue


class SendStatus(Enum):
    """What the broker could promise (org.apache.rocketmq.client.producer.SendStatus): all four mean "stored"."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"

    def __str__(self) -> str:
        return self.value


SEND_OK = SendStatus.SEND_OK


class SendResult:
    """Where a message went (org.apache.rocketmq.client.producer.SendResult).

    `msg_id` is the unique key that the client gave (several with commas for a batch), `offset_msg_id` the id that the
    broker made of its address and the place in its commit log.
    """

    __slots__ = (
        "message_queue",
        "msg_id",
        "offset_msg_id",
        "queue_offset",
        "recall_handle",
        "region_id",
        "send_status",
        "trace_on",
        "transaction_id",
    )

    def __init__(
        self,
        send_status: SendStatus,
        msg_id: str,
        offset_msg_id: str,
        message_queue: MessageQueue,
        queue_offset: int,
        transaction_id: str | None = None,
        region_id: str = "DefaultRegion",
        trace_on: bool = True,
        recall_handle: str | None = None,
    ) -> None:
        self.send_status = send_status
        self.msg_id = msg_id
        self.offset_msg_id = offset_msg_id
        self.message_queue = message_queue
        self.queue_offset = queue_offset
        self.transaction_id = transaction_id
        self.region_id = region_id
        self.trace_on = trace_on
        self.recall_handle = recall_handle

    def __repr__(self) -> str:
        return (
            f"SendResult [sendStatus={self.send_status}, msgId={self.msg_id}, offsetMsgId={self.offset_msg_id}, "
            f"messageQueue={self.message_queue}, queueOffset={self.queue_offset}]"
        )
