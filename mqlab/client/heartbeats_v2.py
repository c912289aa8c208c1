"""Heartbeats of the second form: who has told a broker what it subscribes to leaves that out while nothing changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mqlab.trace.events.client import SubscriptionsLeftOut

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.heartbeat import HeartbeatData


class HeartbeatsV2:
    """Sends the heartbeats of a client instance with `use_heartbeat_v2`.

    Each carries a fingerprint of all subscriptions of the instance. A broker keeps, for each group, the one that came
    last, and answers whether it was another one before; then, and after each rebalance that has moved queues, the next
    heartbeat is a whole one again. To a broker that does not know this form all are. As in RocketMQ a broker that was
    started again cannot say that it knows no subscriptions, and refuses the pulls of the group until queues move: in a
    group of one for good. Java: sendHeartbeatToBrokerV2 of
    org.apache.rocketmq.client.impl.factory.MQClientInstance.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance
        self._support: dict[str, None] = {}
        """Addresses of the brokers that know this form."""
        self._fingerprints: dict[str, int] = {}
        """Address -> the fingerprint of what that broker was told."""

    def rebalanced(self) -> None:
        """Queues have moved: every broker is told all anew (resetBrokerAddrHeartbeatFingerprintMap)."""
        self._fingerprints.clear()

    async def send(self, broker_name: str, address: str, heartbeat: HeartbeatData) -> int:
        """Send a heartbeat, whole or without its subscriptions; the version of the broker."""
        instance = self._instance
        api, timeout_ms = instance.api, instance.config.mq_client_api_timeout
        heartbeat.heartbeat_fingerprint = fingerprint = heartbeat.compute_heartbeat_fingerprint()
        if address in self._support and self._fingerprints.get(address) == fingerprint:
            consumers = [replace(consumer, subscription_data_set=[]) for consumer in heartbeat.consumer_data_set]
            result = await api.send_heartbeat_v2(
                address, replace(heartbeat, consumer_data_set=consumers, without_sub=True), timeout_ms
            )
            if instance.node.hooks.on:
                instance.node.hooks.emit(
                    SubscriptionsLeftOut(instance.client_id, broker_name, address, result.is_sub_change)
                )
            if result.is_sub_change:
                self._fingerprints.pop(address, None)
            return result.version
        result = await api.send_heartbeat_v2(address, heartbeat, timeout_ms)
        if result.is_support_v2:
            self._support[address] = None
            if result.is_sub_change:
                self._fingerprints.pop(address, None)
            else:
                self._fingerprints[address] = fingerprint
        return result.version
