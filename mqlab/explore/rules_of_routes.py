"""Rules of routes: name servers know what brokers have, and clients know what name servers say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.service_state import ServiceState
from mqlab.client.topic_publish_info import queues_to_publish
from mqlab.explore.rule import Case, Rule, SettledRule
from mqlab.lab.processes import ClientProcess, NameServerProcess
from mqlab.protocol.route import QueueData, TopicRouteData, queues_to_subscribe
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.client.consumer.rebalance.rebalance_impl import RebalanceImpl
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.lab.processes import BrokerProcess

REPORT_US = 65_000_000
"""A broker reports itself every 60 s at the most (registerNameServerPeriod), and its changes at once."""
TAKES_US = 15_000_000
"""A round of route queries may take so long: one query for each topic, each with its own time-out."""


class _RouteRule(SettledRule):
    """A rule that asks the name servers that are up, once routes have not changed for a while."""

    def name_servers(self) -> list[NameServerProcess]:
        """The name servers of the lab that run."""
        processes = self.case.lab.processes.values()
        servers = [each for each in processes if isinstance(each, NameServerProcess)]
        return [each for each in servers if each.state == "running" and each.controller is not None]


class RoutesAreTrue(_RouteRule):
    """In the end a name server knows each broker that runs, where it is, and what queues each of its topics has."""

    kinds = ("BrokerStarted", "TopicCreated", "TopicUpdated", "TopicDeleted", "WritePermChanged")

    def at_end(self) -> None:
        """Compare the tables of each name server with the brokers."""
        if self.same_us < REPORT_US:
            return
        for server in self.name_servers():
            for broker in self.case.lab.brokers:
                if broker.is_up():
                    self.judged += 1
                    for text in self._differences(server, broker):
                        self.found(None, f"{server.name} {text}")

    def _differences(self, server: NameServerProcess, process: BrokerProcess) -> Iterator[str]:
        routes, broker = server.running().route_info_manager, process.running()
        config = broker.broker_config
        known = routes.broker_addr_table.get(config.broker_name)
        if known is None or known.broker_addrs.get(config.broker_id) != broker.broker_addr:
            yield f"does not know {process.name} at {broker.broker_addr}"
        elif not process.is_slave:
            for topic, made in broker.topic_config_manager.topic_config_table.items():
                self.judged += 1
                queues = routes.topic_queue_table.get(topic, {}).get(config.broker_name)
                if queues is None or _numbers(queues) != (made.read_queue_nums, made.write_queue_nums):
                    yield f"has {queues} for {topic} at {process.name}, which has {made}"


def _numbers(queues: QueueData) -> tuple[int, int]:
    return queues.read_queue_nums, queues.write_queue_nums


class RoutesAreFollowed(_RouteRule):
    """In the end a client knows what name servers say of its topics: where brokers are, and which queues there are.

    It asks them every 30 s, unless it is told to ask more often (pollNameServerInterval).
    """

    kinds = (
        "BrokerRegistered", "BrokerUnregistered", "TopicRouteChanged", "TopicRouteRemoved", "WritePermChanged",
        "NodeStarted", "ClientStarted",
    )  # fmt: skip

    def is_change(self, record: Record) -> bool:
        """Is a route another one now? It is not by what a broker reports again."""
        return record.kind != "BrokerRegistered" or bool(record.first)

    def at_end(self) -> None:
        """Compare what each client knows of each of its topics with what all name servers say."""
        servers = self.name_servers()
        for process in self.case.lab.processes.values():
            if not isinstance(process, ClientProcess) or process.state != "running" or not servers:
                continue
            for instance in MQClientManager.of(process.node).factory_table.values():
                asks_us = instance.config.poll_name_server_interval * 1_000
                if instance.service_state is ServiceState.RUNNING and self.same_us > asks_us + TAKES_US:
                    self._look(process.name, instance, servers)

    def _look(self, name: str, instance: MQClientInstance, servers: list[NameServerProcess]) -> None:
        topics = {
            *(topic for producer in instance.producer_table.values() for topic in producer.publish_topic_list()),
            *(each.topic for consumer in instance.consumer_table.values() for each in consumer.subscriptions()),
        }
        for topic in sorted(topics):
            said = [server.running().route_info_manager.pick_up_topic_route_data(topic) for server in servers]
            route = said[0]
            if route is None or any(other is None or _told(other) != _told(route) for other in said):
                continue
            self.judged += 1
            for text in _differences(instance, topic, route):
                self.found(None, f"{name} {text}")


class RoutesAreKept(Rule):
    """A client forgets where a broker is only when the routes that it was told name it no more.

    While no name server answers it goes on with what it knows. Of a broker with slaves the events do not tell which
    addresses a route has, so that is not judged.
    """

    kinds = ("RouteUpdated", "BrokerForgotten", "NodeStarted")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._routes: dict[tuple[str, str], dict[str, list[str]]] = {}
        """(process, client) -> topic -> the names of the brokers in the route that it took over last."""

    def on_event(self, record: Record) -> None:
        """Note the routes, and compare what is forgotten with them."""
        if record.kind == "NodeStarted":
            self._routes = {client: routes for client, routes in self._routes.items() if client[0] != record.target}
            return
        routes = self._routes.setdefault((record.node, record.client_id), {})
        if record.kind == "RouteUpdated":
            routes[record.topic] = record.broker_names.split(",")
            return
        called_so = [each for each in self.case.lab.brokers if each.settings["broker_name"] == record.broker_name]
        if len(called_so) > 1:
            return
        self.judged += 1
        named = sorted(topic for topic, names in routes.items() if record.broker_name in names)
        if named:
            self.found(record.row, f"{record.node} forgets {record.broker_name}, which is in the route of {named[0]}")


def _told(route: TopicRouteData) -> tuple[list[tuple[str, int, int]], dict[str, dict[int, str]]]:
    """What a route says, in an order that does not matter: the queues of each broker, and its addresses."""
    queues = sorted((data.broker_name, *_numbers(data)) for data in route.queue_datas)
    return queues, {data.broker_name: dict(data.broker_addrs) for data in route.broker_datas}


def _differences(instance: MQClientInstance, topic: str, route: TopicRouteData) -> Iterator[str]:
    """In what a client differs from the route of a topic."""
    known = instance.routes.topic_route_table.get(topic)
    if known is None or _told(known) != _told(route):
        yield f"takes the route of {topic} for {known and _told(known)}, and it is {_told(route)}"
    for data in route.broker_datas:
        addresses = instance.routes.broker_addr_table.get(data.broker_name, {})
        for broker_id, address in data.broker_addrs.items():
            if addresses.get(broker_id) != address:
                yield f"takes {data.broker_name} to be at {addresses}, and it is at {data.broker_addrs}"
    to_publish = sorted(queues_to_publish(topic, route)[0])
    for producer in instance.producer_table.values():
        info = getattr(producer, "topic_publish_info_table", {}).get(topic)
        if info is not None and sorted(info.message_queue_list) != to_publish:
            yield f"sends to {len(info.message_queue_list)} queues of {topic}, and there are {len(to_publish)}"
    to_read = sorted(queues_to_subscribe(topic, route))
    for consumer in instance.consumer_table.values():
        rebalance: RebalanceImpl | None = getattr(consumer, "rebalance_impl", None)
        if rebalance is None or topic not in rebalance.subscription_inner:
            continue
        queues = rebalance.topic_subscribe_info_table.get(topic)
        if queues is not None and sorted(queues) != to_read:
            yield f"reads {len(queues)} queues of {topic}, and there are {len(to_read)}"
