"""Telling the members of a consumer group that the group has changed, and the broker's filters what it wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import RemotingException
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import NotifyConsumerIdsChangedRequestHeader
from mqlab.trace.events.broker import ConsumerGroupChanged

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.consumer_group_info import ConsumerGroupInfo
    from mqlab.broker.filter.consumer_filters import ConsumerFilters
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.remoting import RemotingServer
    from mqlab.sim import Node, PeriodicTask

NOTIFY_TIMEOUT_MS = 10
BATCH_FIRST_MS = 30_000
BATCH_PERIOD_MS = 15_000


class DefaultConsumerIdsChangeListener:
    """Sends NOTIFY_CONSUMER_IDS_CHANGED, one-way, to every member of a group that changed.

    Java: org.apache.rocketmq.broker.client.DefaultConsumerIdsChangeListener, with Broker2Client. In real-time mode at
    once; otherwise every 15 s, once for each group that changed since.
    """

    def __init__(self, node: Node, config: BrokerConfig, server: RemotingServer, filters: ConsumerFilters) -> None:
        self._node = node
        self._config = config
        self._server = server
        self._filters = filters
        self._waiting: dict[str, ConsumerGroupInfo] = {}
        self._rhythm: PeriodicTask | None = None

    def start(self) -> None:
        """Begin the batched mode's rhythm; in real-time mode there is nothing to start."""
        if not self._config.real_time_notify_consumer_change:
            self._rhythm = self._node.schedule_at_fixed_rate(
                self._notify_waiting, BATCH_FIRST_MS, BATCH_PERIOD_MS, "NotifyConsumerChange"
            )

    def shutdown(self) -> None:
        """Stop telling groups in a rhythm that their members have changed."""
        if self._rhythm is not None:
            self._rhythm.cancel()

    def group_changed(self, group: ConsumerGroupInfo) -> None:
        """Members or topics of the group changed."""
        if not self._config.notify_consumer_ids_changed_enable:
            return
        if self._config.real_time_notify_consumer_change:
            self._notify(group)
        else:
            self._waiting[group.group] = group

    def group_registered(self, group: str, subscriptions: list[SubscriptionData]) -> None:
        """A heartbeat says what a group subscribes to."""
        self._filters.group_registered(group, subscriptions)

    def group_unregistered(self, group: str) -> None:
        """The last member of a group has gone."""
        self._filters.group_unregistered(group)

    def _notify_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for group in waiting.values():
            self._notify(group)

    def _notify(self, group: ConsumerGroupInfo) -> None:
        channels = list(group.channel_info_table)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(ConsumerGroupChanged(group.group, len(channels), len(channels)))
        for channel in channels:
            request = RemotingCommand.request(
                RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, NotifyConsumerIdsChangedRequestHeader(group.group)
            )
            try:
                self._server.invoke_oneway(channel, request, NOTIFY_TIMEOUT_MS)
            except RemotingException:
                continue
