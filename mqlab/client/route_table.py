"""What a client knows of topics and brokers, and how it keeps that knowledge fresh."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.client.topic_publish_info import TopicPublishInfo, queues_to_publish
from mqlab.errors import MQClientException, RemotingException
from mqlab.protocol.codes import ClientErrorCode, ResponseCode
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.route import MASTER_ID, TopicRouteData, queues_to_subscribe
from mqlab.sim import Lock
from mqlab.trace.events.client import RouteMissing, RouteUpdated

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.message import MessageQueue

LOCK_TIMEOUT_MS = 3_000
"""How long a route refresh waits for the one before it."""


class FindBrokerResult(NamedTuple):
    """The address to ask, and whether it is a slave's."""

    address: str
    slave: bool


class RouteTable:
    """Routes by topic and addresses by broker name, as one client instance knows them.

    One refresh at a time; others wait for it. Java: the route part of
    org.apache.rocketmq.client.impl.factory.MQClientInstance.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance
        self._node = instance.node
        self._lock = Lock("the lock of the name server")
        self.topic_route_table: dict[str, TopicRouteData] = {}
        self.broker_addr_table: dict[str, dict[int, str]] = {}

    # -- refreshing -------------------------------------------------------------------------------------------------

    async def refresh_all(self, topics: Iterable[str]) -> None:
        """Ask for the route of every topic, one after the other."""
        for topic in java_map_order(sorted(set(topics))):
            await self.refresh(topic)

    async def refresh(self, topic: str) -> bool:
        """Ask the name server for a topic's route; True if something new was taken over.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.updateTopicRouteInfoFromNameServer. Differs from
        RocketMQ: static topics, whose queues may move between brokers, are absent.
        """
        return await self._locked(topic, None)

    async def refresh_from_default_topic(self, topic: str, create_topic_key: str, default_queue_nums: int) -> bool:
        """Take the route of the template topic for a topic that does not exist yet.

        Each broker there shall make the topic with as many queues as its template has, at most `default_queue_nums`.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.updateTopicRouteInfoFromNameServer.
        """
        return await self._locked(topic, (create_topic_key, default_queue_nums))

    async def _locked(self, topic: str, template: tuple[str, int] | None) -> bool:
        if not await self._lock.acquire(LOCK_TIMEOUT_MS):
            return False
        try:
            return await self._refresh(topic, template)
        finally:
            self._lock.release()

    async def _refresh(self, topic: str, template: tuple[str, int] | None) -> bool:
        instance = self._instance
        timeout_ms = instance.config.mq_client_api_timeout
        try:
            if template is None:
                route = await instance.api.get_topic_route_info_from_name_server(topic, timeout_ms)
            else:
                route = await instance.api.get_topic_route_info_from_name_server(template[0], timeout_ms)
                for data in route.queue_datas:
                    queues = min(template[1], data.read_queue_nums)
                    data.read_queue_nums = data.write_queue_nums = queues
            publish = queues_to_publish(topic, route)
        except (MQClientException, RemotingException) as error:
            if self._node.hooks.on:
                self._node.hooks.emit(RouteMissing(instance.client_id, topic, str(error)))
            return False
        old = self.topic_route_table.get(topic)
        if not (old is None or _differs(old, route) or self._somebody_needs(topic)):
            return False
        self._take_over(topic, route, *publish)
        return True

    def _somebody_needs(self, topic: str) -> bool:
        instance = self._instance
        return any(
            producer.is_publish_topic_need_update(topic) for producer in instance.producer_table.values()
        ) or any(consumer.is_subscribe_topic_need_update(topic) for consumer in instance.consumer_table.values())

    def _take_over(self, topic: str, route: TopicRouteData, queues: list[MessageQueue], order_topic: bool) -> None:
        instance = self._instance
        for broker in route.broker_datas:
            self.broker_addr_table[broker.broker_name] = dict(broker.broker_addrs)
        for producer in instance.producer_table.values():
            info = TopicPublishInfo(self._node, topic, queues, order_topic=order_topic, route=route)
            info.have_topic_router_info = True
            producer.update_topic_publish_info(topic, info)
        subscribed = queues_to_subscribe(topic, route)
        for consumer in instance.consumer_table.values():
            consumer.update_topic_subscribe_info(topic, subscribed)
        self.topic_route_table[topic] = route
        if self._node.hooks.on:
            names = ",".join(sorted(broker.broker_name for broker in route.broker_datas))
            self._node.hooks.emit(RouteUpdated(instance.client_id, topic, names, len(queues), len(subscribed)))

    # -- brokers ----------------------------------------------------------------------------------------------------

    def forget_offline_brokers(self) -> list[tuple[str, str]]:
        """Drop the addresses that no route names any more; returns them as (broker name, address)."""
        known = {
            address
            for route in self.topic_route_table.values()
            for broker in route.broker_datas
            for address in broker.broker_addrs.values()
        }
        gone: list[tuple[str, str]] = []
        for name, addresses in list(self.broker_addr_table.items()):
            for broker_id, address in list(addresses.items()):
                if address not in known:
                    del addresses[broker_id]
                    gone.append((name, address))
            if not addresses:
                del self.broker_addr_table[name]
        return gone

    def is_broker_in_name_server(self, address: str) -> bool:
        """Whether a route names this address."""
        return any(
            address in broker.broker_addrs.values()
            for route in self.topic_route_table.values()
            for broker in route.broker_datas
        )

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        addresses = self.broker_addr_table.get(broker_name)
        return addresses.get(MASTER_ID) if addresses else None

    def find_broker_address_in_subscribe(
        self, broker_name: str, broker_id: int, only_this_broker: bool
    ) -> FindBrokerResult | None:
        """The address of that id; if it is missing that of the next slave, then (unless `only_this_broker`) any."""
        addresses = self.broker_addr_table.get(broker_name)
        if not addresses:
            return None
        slave = broker_id != MASTER_ID
        address = addresses.get(broker_id)
        if address is None and slave:
            address = addresses.get(broker_id + 1)
        if address is None and not only_this_broker:
            broker_id, address = next(iter(addresses.items()))
            slave = broker_id != MASTER_ID
        return FindBrokerResult(address, slave) if address is not None else None

    def find_broker_addr_by_topic(self, topic: str) -> str | None:
        """The address of a broker that holds the topic, drawn at random: its master, else one of its slaves.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.findBrokerAddrByTopic.
        """
        route = self.topic_route_table.get(topic)
        if route is None or not route.broker_datas:
            return None
        choose = self._node.choose
        broker = route.broker_datas[choose(f"broker-of/{topic}", len(route.broker_datas))]
        if broker.master_addr is not None:
            return broker.master_addr
        addresses = list(broker.broker_addrs.values())
        return addresses[choose(f"slave-of/{broker.broker_name}", len(addresses))] if addresses else None

    def no_route(self, topic: str) -> MQClientException:
        """The error for a topic whose queues nobody knows."""
        return MQClientException(
            f"Can not find Message Queue for topic, {topic}. "
            "What to do: create the topic, or see why no broker has registered it.",
            int(ResponseCode.TOPIC_NOT_EXIST),
        )


def no_name_server() -> MQClientException:
    """The error for a client that was given no name server."""
    return MQClientException(
        "No name server address, please set it. What to do: give namesrv_addr, for example '10.0.0.1:9876'.",
        int(ClientErrorCode.NO_NAME_SERVER_EXCEPTION),
    )


def _differs(old: TopicRouteData, new: TopicRouteData) -> bool:
    """Whether two routes say different things, whatever the order they say them in."""
    return (
        sorted(old.queue_datas, key=lambda data: data.broker_name)
        != sorted(new.queue_datas, key=lambda data: data.broker_name)
        or sorted(old.broker_datas, key=lambda data: data.broker_name)
        != sorted(new.broker_datas, key=lambda data: data.broker_name)
        or old.order_topic_conf != new.order_topic_conf
    )
