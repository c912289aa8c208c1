"""The state of Pop in a broker, which its processors share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.errors import RequestError, rejected
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mqlab.broker.pop.consumer_order_info_manager import ConsumerOrderInfoManager
    from mqlab.broker.pop.kv.pop_consumer_service import PopConsumerService
    from mqlab.broker.pop.notification_processor import NotificationProcessor
    from mqlab.broker.pop.pop_buffer_merge_service import PopBufferMergeService
    from mqlab.broker.pop.pop_inflight_message_counter import PopInflightMessageCounter
    from mqlab.broker.pop.pop_offsets import PopOffsets
    from mqlab.broker.pop.pop_request import PopRequest
    from mqlab.broker.pop.queue_lock_manager import QueueLockManager
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting.processor import Processed
    from mqlab.sim import Future


class PopParts:
    """The state of Pop in a broker, which its processors share; `PopServices` makes, starts and ends it."""

    broker: WholeBroker
    locks: QueueLockManager
    pop_inflight_message_counter: PopInflightMessageCounter
    pop_buffer_merge_service: PopBufferMergeService
    pop_offsets: PopOffsets
    consumer_order_info_manager: ConsumerOrderInfoManager
    notification_processor: NotificationProcessor
    pop_consumer_service: PopConsumerService | None
    """The key-value engine, where the settings ask for it."""

    # -- requests that waited -----------------------------------------------------------------------------------------

    def execute_when_wakeup(
        self, process_again: Callable[[PopRequest], Coroutine[object, object, None] | None], waiting: PopRequest
    ) -> None:
        """Process a request that waited on a thread of the pull pool; a full pool loses it, as in RocketMQ."""
        broker = self.broker
        service_us = broker.broker_config.service_us.pop
        if not broker.executors.pull.submit(process_again, waiting, service_us=service_us):
            lost = RequestError(ResponseCode.SYSTEM_BUSY, "no thread is free for a request that waited, which is lost")
            rejected(broker.node.hooks, waiting.channel, waiting.request, lost)

    def respond(self, waiting: PopRequest, processed: Processed) -> Coroutine[object, object, None] | None:
        """Answer a request that waited, when its answer is there; nothing if it waits again."""
        if isinstance(processed, RemotingCommand):
            self.broker.remoting_server.respond(waiting.channel, waiting.request, processed)
        elif processed is not None:
            return self._respond_later(waiting, processed)
        return None

    async def _respond_later(
        self, waiting: PopRequest, processed: Future[RemotingCommand | None] | Coroutine[object, object, Any]
    ) -> None:
        response = await processed
        if response is not None:
            self.broker.remoting_server.respond(waiting.channel, waiting.request, response)
