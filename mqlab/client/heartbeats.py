"""Heartbeats: how a client tells all brokers every 30 seconds which groups live in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, RemotingException
from mqlab.protocol.heartbeat import ConsumerData, HeartbeatData, ProducerData
from mqlab.protocol.route import MASTER_ID
from mqlab.sim import Lock
from mqlab.trace.events.client import BrokerForgotten, HeartbeatAnswered, HeartbeatFailed

if TYPE_CHECKING:
    from mqlab.client.heartbeats_v2 import HeartbeatsV2
    from mqlab.client.mq_client_instance import MQClientInstance


class Heartbeats:
    """Sends the heartbeats of one client instance; whoever finds it busy does without.

    Java: the heartbeat part of org.apache.rocketmq.client.impl.factory.MQClientInstance. With `use_heartbeat_v2` they
    are of the second form (mqlab.client.heartbeats_v2), else each says everything.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance
        self._lock = Lock("the heartbeat lock")
        self.broker_version_table: dict[str, dict[str, int]] = {}
        self._second_form: HeartbeatsV2 | None = None

    def prepare(self) -> HeartbeatData:
        """What a heartbeat of now would say.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.prepareHeartbeatData.
        """
        instance = self._instance
        consumers = [
            ConsumerData(
                group,
                consumer.consume_type,
                consumer.message_model,
                consumer.consume_from_where,
                list(consumer.subscriptions()),
                consumer.unit_mode,
            )
            for group, consumer in instance.consumer_table.items()
        ]
        producers = [ProducerData(group) for group in instance.producer_table]
        return HeartbeatData(instance.client_id, producers, consumers)

    async def send_to_all_brokers(self, *, rebalanced: bool = False) -> bool:
        """One heartbeat to each known address; False if another is under way, or nobody is here or known.

        Without consumers only masters are told. After a rebalance that has moved queues, nothing is left out.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.sendHeartbeatToAllBrokerWithLock.
        """
        if not self._lock.try_acquire():
            return False
        try:
            heartbeat = self.prepare()
            if not heartbeat.producer_data_set and not heartbeat.consumer_data_set:
                return False
            table = self._instance.routes.broker_addr_table
            if not table:
                return False
            if rebalanced and self._second_form is not None:
                self._second_form.rebalanced()
            for broker_name, addresses in sorted(table.items()):
                for broker_id, address in sorted(addresses.items()):
                    if broker_id == MASTER_ID or heartbeat.consumer_data_set:
                        await self._send(broker_name, address, heartbeat)
            return True
        finally:
            self._lock.release()

    async def send_to_broker(self, broker_id: int, broker_name: str, address: str) -> bool:
        """One heartbeat to one address; False if another is under way, or it failed or had nothing to say."""
        if not self._lock.try_acquire():
            return False
        try:
            heartbeat = self.prepare()
            if not heartbeat.consumer_data_set and (not heartbeat.producer_data_set or broker_id != MASTER_ID):
                return False
            return await self._send(broker_name, address, heartbeat)
        finally:
            self._lock.release()

    async def _send(self, broker_name: str, address: str, heartbeat: HeartbeatData) -> bool:
        instance = self._instance
        hooks = instance.node.hooks
        try:
            if instance.config.use_heartbeat_v2:
                version = await self._v2().send(broker_name, address, heartbeat)
            else:
                version = await instance.api.send_heartbeat(address, heartbeat, instance.config.mq_client_api_timeout)
        except (RemotingException, MQBrokerException) as error:
            if hooks.on:
                hooks.emit(HeartbeatFailed(instance.client_id, broker_name, address, str(error)))
            return False
        self.broker_version_table.setdefault(broker_name, {})[address] = version
        if hooks.on:
            hooks.emit(HeartbeatAnswered(instance.client_id, broker_name, address))
        return True

    def _v2(self) -> HeartbeatsV2:
        """The second form, imported when it is first used."""
        if self._second_form is None:
            from mqlab.client.heartbeats_v2 import HeartbeatsV2

            self._second_form = HeartbeatsV2(self._instance)
        return self._second_form

    def broker_version(self, broker_name: str, address: str) -> int:
        """The version that a broker answered with, 0 while it has not answered yet."""
        return self.broker_version_table.get(broker_name, {}).get(address, 0)

    def clean_offline_brokers(self) -> None:
        """Forget the brokers that no route names any more.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.cleanOfflineBroker.
        """
        instance = self._instance
        for broker_name, address in instance.routes.forget_offline_brokers():
            if instance.node.hooks.on:
                instance.node.hooks.emit(BrokerForgotten(instance.client_id, broker_name, address))
