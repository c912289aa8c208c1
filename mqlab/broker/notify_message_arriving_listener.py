"""From a message that can be read to the requests that wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..protocol.topics import RMQ_SYS_SCHEDULE_TOPIC

if TYPE_CHECKING:
    from .broker_config import BrokerConfig
    from .pull_request_hold_service import PullRequestHoldService
    from .schedule_message_service import ScheduleMessageService


class NotifyMessageArrivingListener:
    """Tells the hold service of each message that the store has dispatched.

    Java: org.apache.rocketmq.broker.longpolling.NotifyMessageArrivingListener. With long polling off held requests are
    not told, and wait for the next pass. Differs from RocketMQ: parked messages wake the delivery loops, which sleep
    here while their queues are empty.
    """

    def __init__(
        self,
        config: BrokerConfig,
        hold_service: PullRequestHoldService,
        schedule_message_service: ScheduleMessageService,
    ) -> None:
        self._config = config
        self._hold_service = hold_service
        self._schedule_message_service = schedule_message_service
        self._table = hold_service.pull_request_table

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
        if self._table and self._config.long_polling_enable:
            self._hold_service.notify_message_arriving(topic, queue_id, logic_offset, tags_code, properties)
