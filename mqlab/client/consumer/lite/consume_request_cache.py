"""What a lite pull consumer has pulled and `poll` has not handed out yet."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim import Future, WaitTimeout

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt, MessageQueue
    from mqlab.sim import Node

    from ..process_queue import ProcessQueue


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
        self._arrival: Future[None] | None = None

    def put(self, request: LiteConsumeRequest) -> None:
        """Add a batch; whoever waits for one goes on."""
        self._requests.append(request)
        if self._arrival is not None:
            self._arrival.try_set_result(None)

    async def poll(self, timeout_ms: int) -> LiteConsumeRequest | None:
        """Take the oldest batch, waiting for one up to `timeout_ms`; None if there is none. One task at a time."""
        end_us = self._node.now_us() + timeout_ms * 1_000
        while not self._requests and self._node.now_us() < end_us:
            self._arrival = Future("a batch of messages")
            try:
                await self._node.wait(self._arrival, (end_us - self._node.now_us()) / 1_000)
            except WaitTimeout:
                return None
            finally:
                self._arrival = None
        return self._requests.popleft() if self._requests else None

    def remove_queue(self, queue: MessageQueue) -> None:
        """Throw away the batches of one queue."""
        self._requests = deque(request for request in self._requests if request.message_queue != queue)

    def __len__(self) -> int:
        return len(self._requests)
