"""Everything of Pop in one broker, and the order in which it begins and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.ack_message_processor import AckMessageProcessor
from mqlab.broker.pop.change_invisible_time_processor import ChangeInvisibleTimeProcessor
from mqlab.broker.pop.consumer_order_info_manager import ConsumerOrderInfoManager
from mqlab.broker.pop.notification_processor import NotificationProcessor
from mqlab.broker.pop.peek_message_processor import PeekMessageProcessor
from mqlab.broker.pop.polling_info_processor import PollingInfoProcessor
from mqlab.broker.pop.pop_buffer_merge_service import PopBufferMergeService
from mqlab.broker.pop.pop_inflight_message_counter import PopInflightMessageCounter
from mqlab.broker.pop.pop_message_processor import PopMessageProcessor
from mqlab.broker.pop.pop_offsets import PopOffsets
from mqlab.broker.pop.pop_parts import PopParts
from mqlab.broker.pop.pop_rollback_processor import PopRollbackProcessor
from mqlab.broker.pop.queue_lock_manager import QueueLockManager
from mqlab.broker.pop_start import has_records

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker


class PopServices(PopParts):
    """The parts of Pop in a broker: what org.apache.rocketmq.broker.BrokerController holds of them.

    Made by `BrokerController.pop` when something first needs one of them.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self.broker = broker
        self.locks = QueueLockManager(broker.node, broker.start_us)
        self.pop_inflight_message_counter = PopInflightMessageCounter(broker)
        self.pop_buffer_merge_service = PopBufferMergeService(broker, self.locks)
        self.pop_offsets = PopOffsets(self)
        self.pop_message_processor = PopMessageProcessor(self)
        self.consumer_order_info_manager = ConsumerOrderInfoManager(
            broker, self.pop_message_processor.notify_long_polling_request_if_need
        )
        self.notification_processor = NotificationProcessor(self)
        self.peek_message_processor = PeekMessageProcessor(self)
        self.polling_info_processor = PollingInfoProcessor(broker, self.pop_message_processor.pop_long_polling_service)
        self.ack_message_processor = AckMessageProcessor(broker, self.pop_message_processor.notify_queue_is_free)
        self.change_invisible_time_processor = ChangeInvisibleTimeProcessor(broker)
        self.pop_rollback_processor = PopRollbackProcessor(self)
        self.pop_consumer_service = None
        if has_records(broker.broker_config):
            from mqlab.broker.pop.kv.pop_consumer_service import PopConsumerService

            self.pop_consumer_service = PopConsumerService(self)

    def start(self) -> None:
        """Read what is on the disk, and begin the threads in RocketMQ's order."""
        self.consumer_order_info_manager.load_or_fail()
        if self.pop_consumer_service is not None:
            self.pop_consumer_service.start()
        self.pop_message_processor.pop_long_polling_service.start()
        if self.broker.broker_config.pop_consumer_fs_service_init:
            self.pop_buffer_merge_service.start()
            self.ack_message_processor.start_pop_revive_service()
        self.notification_processor.pop_long_polling_service.start()
        arrivals = self.broker.notify_message_arriving_listener.listeners
        arrivals += [self.pop_message_processor, self.notification_processor]

    async def shutdown(self) -> None:
        """End the threads, in RocketMQ's order; requests that wait are woken."""
        self.pop_message_processor.pop_long_polling_service.shutdown()
        if self.pop_consumer_service is not None:
            self.pop_consumer_service.shutdown()
        await self.pop_buffer_merge_service.drain()
        self.ack_message_processor.shutdown_pop_revive_service()
        self.notification_processor.pop_long_polling_service.shutdown()
        self.consumer_order_info_manager.shutdown()
