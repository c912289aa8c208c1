"""The client instances of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.mq_client_instance import MQClientInstance
from mqlab.client.producer.produce_accumulator import ProduceAccumulator
from mqlab.protocol.topics import CLIENT_INNER_PRODUCER_GROUP

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.client.producer.default_mq_producer import DefaultMQProducer
    from mqlab.sim import Node


class MQClientManager:
    """Gives clients with the same id the same instance (org.apache.rocketmq.client.impl.MQClientManager).

    There is one for each process: `MQClientManager.of(node)`.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self.factory_table: dict[str, MQClientInstance] = {}
        self.accumulator_table: dict[str, ProduceAccumulator] = {}

    @classmethod
    def of(cls, node: Node) -> MQClientManager:
        """The manager of a node's process, in its present life."""
        manager = node.life.singletons.get("MQClientManager")
        if not isinstance(manager, cls):
            manager = node.life.singletons["MQClientManager"] = cls(node)
        return manager

    def get_or_create_mq_client_instance(self, config: ClientConfig) -> MQClientInstance:
        """The instance for a client's id: the one there is, or a new one with a copy of these settings."""
        client_id = config.build_mq_client_id(self._node)
        instance = self.factory_table.get(client_id)
        if instance is None:
            from mqlab.client.producer.default_mq_producer import DefaultMQProducer

            copy = config.clone_client_config()
            inner_producer = DefaultMQProducer(self._node, CLIENT_INNER_PRODUCER_GROUP, **copy.shared_settings())
            instance = MQClientInstance(self._node, copy, client_id, inner_producer, self.remove_client_factory)
            self.factory_table[client_id] = instance
        return instance

    def get_or_create_produce_accumulator(self, producer: DefaultMQProducer) -> ProduceAccumulator:
        """The accumulator for a producer's client id, running: the one there is, or a new one."""
        client_id = producer.build_mq_client_id(self._node)
        accumulator = self.accumulator_table.get(client_id)
        if accumulator is None:
            accumulator = self.accumulator_table[client_id] = ProduceAccumulator(producer)
            accumulator.start()
        return accumulator

    def remove_client_factory(self, client_id: str) -> None:
        """Forget an instance that was shut down."""
        self.factory_table.pop(client_id, None)
