"""Answering requests that have waited too long for a thread, instead of serving them too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import waiting_request
from mqlab.sim import ServiceThread
from mqlab.trace.events.broker import RequestTimedOutInQueue

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.broker_executors import BrokerExecutors
    from mqlab.sim import Node, Pool

CLEAN_FIRST_MS = 1_000
CLEAN_PERIOD_MS = 10


class BrokerFastFailure(ServiceThread):
    """Looks every 10 ms at the heads of the queues before the pools and answers SYSTEM_BUSY to what waited too long.

    Java: org.apache.rocketmq.broker.latency.BrokerFastFailure. The first pass comes a second after the start. While the
    page cache is busy the whole send queue is answered. One-way requests get an answer, too, that nobody waits for.
    Differs from RocketMQ: the pass is skipped while no request waits, which nobody can tell apart from one
    that finds nothing.
    """

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        executors: BrokerExecutors,
        is_os_page_cache_busy: Callable[[], bool],
    ) -> None:
        super().__init__(node, "BrokerFastFailureScheduledThread", CLEAN_PERIOD_MS)
        self._config = config
        self._executors = executors
        self._is_os_page_cache_busy = is_os_page_cache_busy

    def has_work(self) -> bool:
        """Does any request wait for a thread?"""
        return any(pool.queue for pool in self._executors.wait_limits_ms())

    def tick(self) -> None:
        """One pass over all queues."""
        is_early = self.node.world.now_us - self._origin_us < CLEAN_FIRST_MS * 1_000
        if not is_early and self._config.broker_fast_failure_enable:
            self.clean_expired_request()

    def clean_expired_request(self) -> None:
        """Answer what waited too long; it must not reach its processor any more."""
        send_pool = next(iter(self._executors.wait_limits_ms()))
        if self._is_os_page_cache_busy():
            self._answer_old(send_pool, 0, "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while")
        for pool, limit_ms in self._executors.wait_limits_ms().items():
            self._answer_old(pool, limit_ms, "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while")

    def _answer_old(self, pool: Pool, limit_ms: int, remark: str) -> None:
        jobs = pool.take_older_than(limit_ms * 1_000)
        waiting = len(pool.queue) + len(jobs)
        for job in jobs:
            waiting -= 1
            waited_us = self.node.now_us() - job.created_us
            found = waiting_request(job)
            if found is None:
                continue
            channel, request = found
            text = f"{remark}, period in queue: {waited_us // 1_000}ms, size of queue: {waiting}"
            if self.node.hooks.on:
                self.node.hooks.emit(
                    RequestTimedOutInQueue(
                        pool.name, waited_us // 1_000, request.code, request.opaque, channel.remote_address
                    )
                )
            if not channel.is_active:
                continue
            response = RemotingCommand.response(ResponseCode.SYSTEM_BUSY, text)
            response.opaque = request.opaque
            channel.write(response)
