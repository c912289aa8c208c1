"""Rebalance by the broker: the JSON bodies in which consumers ask for their queues, and administrators say who pops.

Java: the classes of the same names in org.apache.rocketmq.remoting.protocol.body and
org.apache.rocketmq.common.message.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.errors import LearnerError
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue

PULL, POP = "PULL", "POP"
"""The two message request modes (org.apache.rocketmq.common.message.MessageRequestMode)."""

ANY_QUEUE = -1
"""The queue id that means, where one pops: whichever queue of this broker has something."""


def check_message_request_mode(mode: object) -> None:
    """LearnerError unless it is a way in which a consumer can ask for messages."""
    if mode not in (PULL, POP):
        raise LearnerError(f"{mode!r} is no message request mode", "write 'PULL' or 'POP'")


@dataclass(slots=True)
class QueryAssignmentRequestBody(JsonBody):
    """A consumer asks the broker which queues it shall consume."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str
    message_model: MessageModel


@dataclass(slots=True)
class MessageQueueAssignment(JsonBody):
    """One of those queues; `mode` is PULL or POP, and queue id -1 with POP means all queues of the broker."""

    message_queue: MessageQueue
    mode: str = "PULL"
    attachments: dict[str, str] | None = None


@dataclass(slots=True)
class QueryAssignmentResponseBody(JsonBody):
    """The queues; None means: keep what you have."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None


@dataclass(slots=True)
class SetMessageRequestModeRequestBody(JsonBody):
    """Whether a group shall pull or pop a topic, and how many clients share a queue."""

    topic: str
    consumer_group: str
    mode: str = "PULL"
    pop_share_queue_num: int = 0


@dataclass(slots=True)
class MessageRequestModeSerializeWrapper(JsonBody):
    """The same for all topics and groups: the content of messageRequestMode.json."""

    message_request_mode_map: dict[str, dict[str, SetMessageRequestModeRequestBody]] = field(default_factory=dict)
