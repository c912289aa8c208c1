"""The thread pools of a broker: which requests share threads, and how many may wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.sim import Pool
from mqlab.sim.pool import PoolJob

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.sim import Node


class WatchedPool(Pool):
    """A pool that says when a request has to wait, so that nobody needs to look while none does."""

    __slots__ = ("on_waiting",)

    def __init__(self, node: Node, name: str, threads: int, capacity: int) -> None:
        super().__init__(node, name, threads, capacity)
        self.on_waiting: Callable[[], None] = _nobody_watches

    def _let_wait(self, job: PoolJob) -> None:
        self.queue.append(job)
        self.on_waiting()


class BrokerExecutors:
    """The pools of one broker (the executors of org.apache.rocketmq.broker.BrokerController).

    With one send thread per core at most four messages are put at a time; pulls have many more threads. A slow kind
    of request cannot take the threads of another.
    """

    def __init__(self, node: Node, config: BrokerConfig) -> None:
        self._config = config
        cores = node.spec.cores
        send_threads = config.send_message_thread_pool_nums or min(cores, 4)

        def pool(name: str, threads: int, capacity: int) -> WatchedPool:
            return WatchedPool(node, name, threads, capacity)

        self.send = pool("SendMessageThread", send_threads, config.send_thread_pool_queue_capacity)
        self.reply = pool(
            "ProcessReplyMessageThread",
            config.process_reply_message_thread_pool_nums or 16 + 2 * cores,
            config.reply_thread_pool_queue_capacity,
        )
        self.pull = pool(
            "PullMessageThread",
            config.pull_message_thread_pool_nums or 16 + 2 * cores,
            config.pull_thread_pool_queue_capacity,
        )
        self.lite_pull = pool(
            "LitePullMessageThread",
            config.lite_pull_message_thread_pool_nums or 16 + 2 * cores,
            config.lite_pull_thread_pool_queue_capacity,
        )
        self.ack = pool("AckMessageThread", config.ack_message_thread_pool_nums, config.ack_thread_pool_queue_capacity)
        self.query = pool(
            "QueryMessageThread", config.query_message_thread_pool_nums or 8 + cores,
            config.query_thread_pool_queue_capacity
        )
        self.admin = pool(
            "AdminBrokerThread", config.admin_broker_thread_pool_nums, config.admin_broker_thread_pool_queue_capacity
        )
        self.client_manage = pool(
            "ClientManageThread",
            config.client_manage_thread_pool_nums,
            config.client_manager_thread_pool_queue_capacity,
        )
        self.heartbeat = pool(
            "HeartbeatThread",
            config.heartbeat_thread_pool_nums or min(32, cores),
            config.heartbeat_thread_pool_queue_capacity,
        )
        self.consumer_manage = pool(
            "ConsumerManageThread",
            config.consumer_manage_thread_pool_nums,
            config.consumer_manager_thread_pool_queue_capacity,
        )
        self.load_balance = pool(
            "LoadBalanceProcessorThread",
            config.load_balance_processor_thread_pool_nums,
            config.load_balance_thread_pool_queue_capacity,
        )
        self.end_transaction = pool(
            "EndTransactionThread",
            config.end_transaction_thread_pool_nums or max(8 + cores * 2, send_threads * 4),
            config.end_transaction_pool_queue_capacity,
        )

    def wait_limits_ms(self) -> dict[WatchedPool, int]:
        """How long a request may wait before each pool until it is answered "busy"; the send pool comes first."""
        config = self._config
        return {
            self.send: config.wait_time_mills_in_send_queue,
            self.pull: config.wait_time_mills_in_pull_queue,
            self.lite_pull: config.wait_time_mills_in_lite_pull_queue,
            self.heartbeat: config.wait_time_mills_in_heartbeat_queue,
            self.end_transaction: config.wait_time_mills_in_transaction_queue,
            self.ack: config.wait_time_mills_in_ack_queue,
            self.admin: config.wait_time_mills_in_admin_broker_queue,
        }

    def watch(self, on_waiting: Callable[[], None]) -> None:
        """Call back whenever a request has to wait before a pool that has a limit."""
        for pool in self.wait_limits_ms():
            pool.on_waiting = on_waiting

    def all(self) -> list[WatchedPool]:
        """Every pool of the broker, in the order in which they were made."""
        return [
            self.send, self.reply, self.pull, self.lite_pull, self.ack, self.query, self.admin, self.client_manage,
            self.heartbeat, self.consumer_manage, self.load_balance, self.end_transaction,
        ]  # fmt: skip

    def close(self) -> None:
        """Take no more requests and forget those that wait."""
        for pool in self.all():
            pool.close()


def _nobody_watches() -> None:
    """What happens in a pool whose waiting nobody limits: nothing."""
