"""Everything of Pop in one broker, and the order in which it begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_buffer_merge_service import PopBufferMergeService
from mqlab.broker.pop.pop_inflight_message_counter import PopInflightMessageCounter
from mqlab.broker.pop.queue_lock_manager import QueueLockManager
from mqlab.broker.pop_processors import register_pop_processors

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts


class PopServices:
    """The parts of Pop in a broker: what org.apache.rocketmq.broker.BrokerController holds of them.

    Made by `BrokerController.pop` when something first needs one of them.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self.broker = broker
        self.locks = QueueLockManager(broker.node, broker.start_us)
        self.pop_inflight_message_counter = PopInflightMessageCounter(broker)
        self.pop_buffer_merge_service = PopBufferMergeService(broker, self.locks)

    def start(self) -> None:
        """Begin the threads, and answer requests directly from now on."""
        if self.broker.broker_config.pop_consumer_fs_service_init:
            self.pop_buffer_merge_service.start()
        register_pop_processors(self.broker)

    async def shutdown(self) -> None:
        """End the threads, in RocketMQ's order."""
        await self.pop_buffer_merge_service.drain()
