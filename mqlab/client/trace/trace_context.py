"""One thing that a client did, and the messages that it did it with."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from mqlab.client.producer.send_kernel import unique_key_generator

if TYPE_CHECKING:
    from mqlab.sim import Node


class TraceType(Enum):
    """What was done (org.apache.rocketmq.client.trace.TraceType)."""

    PUB = "Pub"
    """A message was sent."""
    RECALL = "Recall"
    """A timer message was taken back."""
    SUB_BEFORE = "SubBefore"
    """A listener is about to be called."""
    SUB_AFTER = "SubAfter"
    """A listener has come back."""
    END_TRANSACTION = "EndTransaction"
    """A half message was committed, rolled back, or left in doubt."""


MESSAGE_TYPES = ("NORMAL_MSG", "TRANS_MSG_HALF", "TRANS_MSG_COMMIT", "DELAY_MSG", "ORDER_MSG")
"""The kinds of messages by their number in a record (org.apache.rocketmq.common.message.MessageType)."""


@dataclass(slots=True)
class TraceBean:
    """What a record says of one message; sizes in bytes (org.apache.rocketmq.client.trace.TraceBean).

    Differs from RocketMQ: a host that no record has set is "" and not the address of the reader's own machine.
    """

    topic: str = ""
    msg_id: str = ""
    offset_msg_id: str = ""
    tags: str | None = ""
    keys: str | None = ""
    store_host: str = ""
    client_host: str = ""
    store_time: int = 0
    retry_times: int = 0
    body_length: int = 0
    msg_type: str = "NORMAL_MSG"
    transaction_state: str = ""
    """COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW."""
    transaction_id: str | None = None
    from_transaction_check: bool = False


@dataclass(slots=True)
class TraceContext:
    """One thing that a client did; times in ms, since 1970 where they are moments.

    Java: org.apache.rocketmq.client.trace.TraceContext.
    """

    trace_type: TraceType
    time_stamp: int = 0
    region_id: str | None = ""
    group_name: str = ""
    cost_time: int = 0
    is_success: bool = True
    request_id: str = ""
    """Joins the two records of one call of a listener."""
    context_code: int = 0
    """How the listener came back: the place of its ConsumeReturnType."""
    trace_beans: list[TraceBean] = field(default_factory=list)


def begin_context(node: Node, trace_type: TraceType) -> TraceContext:
    """A record of something that happens now; as in RocketMQ each takes a unique key of its process for its id."""
    now_ms = node.now_ms()
    return TraceContext(trace_type, now_ms, request_id=unique_key_generator(node).next(now_ms))
