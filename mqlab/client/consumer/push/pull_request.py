"""The token of one queue's pull loop, and what it asks of its consumer."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from mqlab.client.inner import MQConsumerInner

if TYPE_CHECKING:
    from mqlab.client.consumer.pop.pop_request import PopRequest
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.protocol.message import MessageQueue


class Popping(Protocol):
    """The part of a push consumer that pops."""

    def pop_message(self, pop_request: PopRequest) -> Coroutine[Any, Any, None]:
        """Take one turn of a pop loop."""
        ...


class MQPushConsumerInner(MQConsumerInner, Protocol):
    """A push consumer, seen from the pull thread of its instance."""

    def pull_message(self, pull_request: PullRequest) -> Coroutine[Any, Any, None]:
        """Take one turn of the pull loop of one queue."""
        ...

    def popping(self) -> Popping:
        """The part of the consumer that pops."""
        ...


class PullRequest:
    """Goes round and round for one queue, until the queue is dropped.

    Java: org.apache.rocketmq.client.impl.consumer.PullRequest. `next_offset` is where the next pull begins;
    `previously_locked` is used in orderly consumption alone.
    """

    __slots__ = ("consumer_group", "message_queue", "next_offset", "previously_locked", "process_queue")

    def __init__(
        self, consumer_group: str, message_queue: MessageQueue, process_queue: ProcessQueue, next_offset: int
    ) -> None:
        self.consumer_group = consumer_group
        self.message_queue = message_queue
        self.process_queue = process_queue
        self.next_offset = next_offset
        self.previously_locked = False

    def take_turn(self, consumer: MQPushConsumerInner) -> Coroutine[Any, Any, None]:
        """Pull the queue once, if it may be pulled now."""
        return consumer.pull_message(self)

    def __repr__(self) -> str:
        return f"<PullRequest {self.consumer_group} {self.message_queue} from {self.next_offset}>"
