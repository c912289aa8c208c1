"""Long polling: pulls that found nothing wait in the broker until a message arrives or their time is up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING

from mqlab.sim import ServiceThread
from mqlab.trace.events.broker import HeldPullsChecked, PullWoken

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.pull_request import PullRequest
    from mqlab.sim import Node

CHECK_PERIOD_MS = 5_000

ARRIVED = "arrived"
TIMED_OUT = "timed out"


class PullRequestHoldService(ServiceThread):
    """Holds pulls by queue, and goes through them every 5 s, or every second when long polling is off.

    Java: org.apache.rocketmq.broker.longpolling.PullRequestHoldService. A woken request is processed from the start,
    but can not be held a second time. Differs from RocketMQ: the age of a request is compared in microseconds,
    because here a client pulls again within the millisecond in which a pass ended, which takes a real one some
    milliseconds.
    """

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        max_offset_in_queue: Callable[[str, int], int],
        execute_request_when_wakeup: Callable[[PullRequest], None],
    ) -> None:
        super().__init__(node, "PullRequestHoldService")
        self._config = config
        self._max_offset_in_queue = max_offset_in_queue
        self._execute_request_when_wakeup = execute_request_when_wakeup
        self.pull_request_table: dict[tuple[str, int], list[PullRequest]] = {}
        self.waiting: Sized = self.pull_request_table
        self.set_period()

    def set_period(self) -> None:
        """Take the rhythm of the passes from the settings."""
        long_polling = self._config.long_polling_enable
        self.period_ms = CHECK_PERIOD_MS if long_polling else self._config.short_polling_time_mills

    def has_work(self) -> bool:
        """Without a held request the thread sleeps."""
        return bool(self.pull_request_table)

    def held(self) -> list[PullRequest]:
        """All requests held at present, queue by queue."""
        return [request for requests in self.pull_request_table.values() for request in requests]

    def suspend_pull_request(self, topic: str, queue_id: int, request: PullRequest) -> None:
        """Put a request aside."""
        self.pull_request_table.setdefault((topic, queue_id), []).append(request)
        self.set_period()
        self.wakeup_for_work()

    def tick(self) -> None:
        """One pass: wake what is due, and what a message has come for without anybody noticing."""
        self.set_period()
        if self.node.hooks.on:
            self.node.hooks.emit(HeldPullsChecked(sum(map(len, self.pull_request_table.values()))))
        for topic, queue_id in list(self.pull_request_table):
            self.notify_message_arriving(topic, queue_id, self._max_offset_in_queue(topic, queue_id))

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
        """The queue now reaches up to `max_offset`: wake the requests that get something out of it, or are due.

        Without a `tags_code` (a pass, which does not look into the queue) every request behind `max_offset` is woken.
        """
        requests = self.pull_request_table.pop((topic, queue_id), None)
        if requests is None:
            return
        now_us = self.node.now_us()
        kept = []
        for request in requests:
            reason = self._reason_to_wake(
                request, topic, queue_id, max_offset, tags_code, properties, now_us, msg_store_time, filter_bit_map
            )
            if reason:
                self._wake(request, reason, now_us)
            else:
                kept.append(request)
        if kept:
            self.pull_request_table[topic, queue_id] = kept

    def _reason_to_wake(
        self,
        request: PullRequest,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int | None,
        properties: Mapping[str, str] | None,
        now_us: int,
        msg_store_time: int,
        filter_bit_map: bytes | None,
    ) -> str:
        newest = max_offset if max_offset > request.offset else self._max_offset_in_queue(topic, queue_id)
        if newest > request.offset:
            message_filter = request.message_filter
            if message_filter.is_matched_by_consume_queue(tags_code, msg_store_time, filter_bit_map) and (
                properties is None or message_filter.is_matched_by_properties(properties)
            ):
                return ARRIVED
        return TIMED_OUT if now_us >= request.suspended_us + request.timeout_ms * 1_000 else ""

    def _wake(self, request: PullRequest, reason: str, now_us: int) -> None:
        hooks = self.node.hooks
        if hooks.on:
            header = request.header
            hooks.emit(
                PullWoken(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    request.offset,
                    reason,
                    now_us - request.suspended_us,
                    request.request.opaque,
                    request.channel.remote_address,
                )
            )
        self._execute_request_when_wakeup(request)
