"""From a message that can be read to the requests that wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING, Protocol

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.schedule_message_service import ScheduleMessageService


class ArrivalListener(Protocol):
    """Whoever holds requests back until a message comes, as PullRequestHoldService does."""

    waiting: Sized
    """What is held back; while it is empty nobody is told of a message."""

    def notify_message_arriving(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int | None = None,
        properties: Mapping[str, str] | None = None,
        msg_store_time: int = 0,
        filter_bit_map: bytes | None = None,
    ) -> None:
        """The queue now reaches up to `max_offset`; its last message has this tags code and these properties.

        `filter_bit_map` says which filters it has passed, None that nobody looked.
        """


class NotifyMessageArrivingListener:
    """Tells everybody in `listeners`, in their order, of each message that the store has dispatched.

    Java: org.apache.rocketmq.broker.longpolling.NotifyMessageArrivingListener. With long polling off held requests are
    not told, and wait for the next pass. Differs from RocketMQ: parked messages wake the delivery loops, which sleep
    here while their queues are empty.
    """

    def __init__(
        self,
        config: BrokerConfig,
        schedule_message_service: ScheduleMessageService,
        listeners: list[ArrivalListener],
    ) -> None:
        self._config = config
        self._schedule_message_service = schedule_message_service
        self.listeners = listeners

    def arriving(
        self,
        topic: str,
        queue_id: int,
        logic_offset: int,
        tags_code: int,
        msg_store_time: int,
        filter_bit_map: bytes | None,
        properties: Mapping[str, str],
    ) -> None:
        """The queue now reaches up to `logic_offset`."""
        if topic == RMQ_SYS_SCHEDULE_TOPIC:
            self._schedule_message_service.arrived(queue_id)
        if self._config.long_polling_enable:
            for listener in self.listeners:
                if listener.waiting:
                    listener.notify_message_arriving(
                        topic, queue_id, logic_offset, tags_code, properties, msg_store_time, filter_bit_map
                    )
