"""All requests of one process that wait for their replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.producer.request_scan import HOLDER, SCAN
from mqlab.errors import RequestTimeoutException
from mqlab.protocol.codes import ClientErrorCode
from mqlab.sim import ServiceThread

if TYPE_CHECKING:
    from mqlab.client.producer.request_response_future import RequestResponseFuture
    from mqlab.sim import Node

SCAN_FIRST_MS = 3_000
SCAN_PERIOD_MS = 1_000


class RequestFutureHolder(ServiceThread):
    """The table of requests by correlation id, and the scan for those whose time is over.

    There is one for each process, made with the first request. The scan looks every second, first three seconds after
    the first producer of the process was started; it tells callbacks, since a caller that waits knows by itself that
    its time is over. It arms no timer while no callback waits.

    Java: org.apache.rocketmq.client.producer.RequestFutureHolder.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node, SCAN, SCAN_PERIOD_MS)
        self.request_future_table: dict[str, RequestResponseFuture] = {}
        self.stopped = True

    @classmethod
    def of(cls, node: Node) -> RequestFutureHolder:
        """The holder of a node's process, in its present life."""
        holder = node.life.singletons.get(HOLDER)
        if not isinstance(holder, cls):
            holder = node.life.singletons[HOLDER] = cls(node)
        return holder

    def put(self, future: RequestResponseFuture) -> None:
        """Note a request, and see that the scan comes for it."""
        self.request_future_table[future.correlation_id] = future
        if future.callback is None:
            return
        if self.stopped:
            self.start()
            begun = self.node.life.singletons.get(SCAN)
            if isinstance(begun, int):
                self.set_origin(begun)
        else:
            self.rearm()

    def remove(self, correlation_id: str) -> RequestResponseFuture | None:
        """Take a request out of the table; None when it is not there any more."""
        return self.request_future_table.pop(correlation_id, None)

    def has_work(self) -> bool:
        """Does any callback wait?"""
        return any(future.callback is not None for future in self.request_future_table.values())

    def next_tick_us(self) -> int:
        """The time of the first scan that will find a callback to tell."""
        waiting = [future.expires_us for future in self.request_future_table.values() if future.callback is not None]
        first_us = self._origin_us + SCAN_FIRST_MS * 1_000
        return self.tick_at(max(first_us, min(waiting, default=0), self.node.now_us() + 1))

    async def run(self) -> None:
        """The loop of the thread."""
        while not self.stopped:
            await self.wait_for_running()
            await self._scan_expired_request()

    async def _scan_expired_request(self) -> None:
        """Tell the callbacks of requests whose time is over, one after the other.

        Java: org.apache.rocketmq.client.producer.RequestFutureHolder.scanExpiredRequest.
        """
        now_us = self.node.now_us()
        expired = [future for future in self.request_future_table.values() if future.expires_us <= now_us]
        for future in expired:
            del self.request_future_table[future.correlation_id]
        for future in expired:
            code = int(ClientErrorCode.REQUEST_TIMEOUT_EXCEPTION)
            error = RequestTimeoutException("request timeout, no reply message.", code)
            future.cause = error
            if future.callback is not None:
                future.tell_given_up(error)
                told = future.execute_request_callback()
                if told is not None:
                    await told
