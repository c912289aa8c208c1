"""The token of one pop loop, and what it knows of the messages that are under way to their acknowledgement."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.process_queue import PULL_MAX_IDLE_MS

if TYPE_CHECKING:
    from mqlab.client.consumer.push.pull_request import MQPushConsumerInner
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import Node

INIT_MODE_MIN, INIT_MODE_MAX = 0, 1
"""Where a group without an offset begins: at the oldest message, or at the newest (ConsumeInitMode)."""


class PopProcessQueue:
    """How many messages of one assignment were popped and are not settled yet; the messages themselves are not kept.

    Java: org.apache.rocketmq.client.impl.consumer.PopProcessQueue.
    """

    __slots__ = ("_node", "dropped", "last_pop_us", "wait_ack_msg_count")

    def __init__(self, node: Node) -> None:
        self._node = node
        self.last_pop_us = node.now_us()
        self.wait_ack_msg_count = 0
        self.dropped = False

    @property
    def is_pull_expired(self) -> bool:
        """Whether no pop was tried for 120 s."""
        return self._node.now_us() - self.last_pop_us > PULL_MAX_IDLE_MS * 1_000

    def __repr__(self) -> str:
        state = ", dropped" if self.dropped else ""
        return f"<PopProcessQueue: {self.wait_ack_msg_count} messages to be acknowledged{state}>"


class PopRequest:
    """Goes round and round for one assignment, until that is dropped.

    `message_queue` has the id -1 when any queue of the broker will do.

    Java: org.apache.rocketmq.client.impl.consumer.PopRequest.
    """

    __slots__ = ("consumer_group", "init_mode", "message_queue", "process_queue")

    def __init__(
        self, consumer_group: str, message_queue: MessageQueue, process_queue: PopProcessQueue, init_mode: int
    ) -> None:
        self.consumer_group = consumer_group
        self.message_queue = message_queue
        self.process_queue = process_queue
        self.init_mode = init_mode

    def take_turn(self, consumer: MQPushConsumerInner) -> Coroutine[Any, Any, None]:
        """Pop once, if it may be popped now."""
        return consumer.popping().pop_message(self)

    def __repr__(self) -> str:
        return f"<PopRequest {self.consumer_group} {self.message_queue}>"
