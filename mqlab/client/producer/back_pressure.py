"""Back-pressure: an asynchronous sender that is too fast has to wait."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mqlab.sim import Future, WaitTimeout

if TYPE_CHECKING:
    from mqlab.sim import Node


class Permits:
    """A number of permits of which each caller takes several at once, first come first served.

    A producer has two of these; one counts messages, the other bytes.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.executeAsyncMessageSend.
    """

    __slots__ = ("_node", "_waiting", "free", "name", "total")

    def __init__(self, node: Node, permits: int, name: str) -> None:
        self._node = node
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self.free = permits
        self.total = permits
        self.name = name

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return len(self._waiting)

    async def acquire(self, permits: int, timeout_ms: int) -> bool:
        """Take permits, waiting for them; False if they did not come in time."""
        if not self._waiting and self.free >= permits:
            self.free -= permits
            return True
        entry: tuple[Future[None], int] = (Future(f"permits for {self.name}"), permits)
        self._waiting.append(entry)
        try:
            await self._node.wait(entry[0], timeout_ms)
        except WaitTimeout:
            self._waiting.remove(entry)
            self._serve()
            return False
        return True

    def release(self, permits: int) -> None:
        """Give permits back."""
        self.free += permits
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._waiting[0][1] <= self.free:
            future, permits = self._waiting.popleft()
            self.free -= permits
            future.set_result(None)
