"""What a lite pull consumer has pulled and `poll` has not handed out yet."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim import Semaphore

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.protocol.message import MessageExt, MessageQueue
    from mqlab.sim import Node


class LiteConsumeRequest(NamedTuple):
    """The messages of one pull.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.ConsumeRequest.
    """

    messages: list[MessageExt]
    message_queue: MessageQueue
    process_queue: ProcessQueue


class ConsumeRequestCache:
    """The batches of all queues, in the order in which they came."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._requests: deque[LiteConsumeRequest] = deque()
        self._arrived = Semaphore(0, "the cached batches")

    def put(self, request: LiteConsumeRequest) -> None:
        """Add a batch; whoever waits for one goes on."""
        self._requests.append(request)
        self._arrived.release()

    async def poll(self, timeout_ms: int) -> LiteConsumeRequest | None:
        """Take the oldest batch, waiting for one up to `timeout_ms`; None if there is none."""
        end_us = self._node.now_us() + timeout_ms * 1_000
        while await self._arrived.acquire(1, (end_us - self._node.now_us()) / 1_000):
            if self._requests:
                return self._requests.popleft()
        return None

    def remove_queue(self, queue: MessageQueue) -> None:
        """Throw away the batches of one queue; one that a `poll` was just woken for may be among them."""
        kept = [request for request in self._requests if request.message_queue != queue]
        for _ in range(len(self._requests) - len(kept)):
            self._arrived.try_acquire()
        self._requests = deque(kept)

    def __len__(self) -> int:
        return len(self._requests)
