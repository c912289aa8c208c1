"""What a lab shows of its world: its processes by kind, and what each of them holds at present."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mqlab.arguments import check_keywords, check_number
from mqlab.client import DefaultMQProducer
from mqlab.errors import LearnerError
from mqlab.lab.playing import Playing
from mqlab.lab.processes import BrokerProcess, ClientProcess, NameServerProcess, Process, ProxyProcess
from mqlab.sim import Node

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.lab.inspectors import QueueView
    from mqlab.views import Table, Wire
    from mqlab.views.diagram import SpaceTimeDiagram

P = TypeVar("P", bound=Process)


class Looking(Playing):
    """The part of a Lab that shows what its processes hold; it changes nothing."""

    processes: dict[str, Process]

    @property
    def brokers(self) -> list[BrokerProcess]:
        """The brokers, in the order in which they were added."""
        return [p for p in self.processes.values() if isinstance(p, BrokerProcess)]

    @property
    def masters(self) -> list[BrokerProcess]:
        """The brokers that are no slaves, in the order in which they were added."""
        return [broker for broker in self.brokers if not broker.is_slave]

    @property
    def name_servers(self) -> list[NameServerProcess]:
        """The name servers, in the order in which they were added."""
        return [p for p in self.processes.values() if isinstance(p, NameServerProcess)]

    @property
    def proxies(self) -> list[ProxyProcess]:
        """The proxies, in the order in which they were added."""
        return [p for p in self.processes.values() if isinstance(p, ProxyProcess)]

    @property
    def proxy_endpoints(self) -> str:
        """What 5.x clients are given as endpoints: "ip:port;ip:port"."""
        return ";".join(p.address for p in self.proxies)

    @property
    def name_server_address(self) -> str:
        """What clients and brokers are given as name server address: "ip:port;ip:port"."""
        return ";".join(p.address for p in self.name_servers)

    def topics(self, *, system: bool = False) -> Table:
        """The topics of the running brokers; with `system` also those that RocketMQ keeps for itself."""
        from mqlab.lab.inspectors import topics_table

        return topics_table(self._up(self.brokers), system=system)

    def queue(self, topic: str, queue_id: int = 0, *, broker: str = "") -> QueueView:
        """One queue, with its entries and messages: on `broker`, or on the first broker that has it."""
        from mqlab.lab.inspectors import QueueView

        chosen = [b for b in self._up(self.brokers) if not broker or b.name == broker]
        if not chosen:
            which = f"running broker {broker!r}" if broker else "broker running now"
            raise LearnerError(f"there is no {which}", "see lab.brokers")
        having = [b for b in chosen if b.store.find_consume_queue(topic, queue_id) is not None]
        return QueueView((having or chosen)[0], topic, queue_id)

    def routes(self, topic: str) -> Table:
        """What each running name server answers to "where is this topic?"."""
        from mqlab.lab.inspectors import routes_table

        return routes_table(self._up(self.name_servers), topic)

    def under_way(self) -> Wire:
        """The frames that travel between machines right now; `lab.under_way().frame(0)` labels the bytes of one."""
        from mqlab.lab.inspectors import frames_under_way

        return frames_under_way(self.world)

    def held_pulls(self) -> Table:
        """The pulls that the running brokers hold at present."""
        from mqlab.lab.inspectors import held_pulls_table

        return held_pulls_table(self._up(self.brokers))

    def held_pops(self) -> Table:
        """The pops, and questions whether there is something to pop, that the running brokers hold at present."""
        from mqlab.lab.pop_inspectors import held_pops_table

        return held_pops_table(self._up(self.brokers))

    def pop_check_points(self) -> Table:
        """The check points of popped messages that the running brokers have in memory."""
        from mqlab.lab.pop_inspectors import pop_check_points_table

        return pop_check_points_table(self._up(self.brokers))

    def revive_queues(self) -> Table:
        """How far the running brokers have come in their revive topics."""
        from mqlab.lab.pop_inspectors import revive_queues_table

        return revive_queues_table(self._up(self.brokers))

    def process_queues(self, consumer: DefaultMQPushConsumer) -> Table:
        """The queues that a consumer owns, and what it holds of each."""
        from mqlab.client import DefaultMQPushConsumer
        from mqlab.lab.inspectors import process_queues_table

        if not isinstance(consumer, DefaultMQPushConsumer):
            raise LearnerError(f"{consumer!r} is not a push consumer", "give the one that lab.consumer(...) returned")
        self._check_up(consumer.node)
        return process_queues_table(consumer)

    def response_table(self, client: DefaultMQProducer | DefaultMQPushConsumer) -> Table:
        """The requests of a client's process that wait for their answers: number, kind, age, and what is left."""
        from mqlab.lab.inspectors import response_table_of

        return response_table_of(self._node_of(client, "lab.response_table(producer)"))

    def permits(self, client: DefaultMQProducer | DefaultMQPushConsumer) -> Table:
        """What limits the calls of a client's process: the semaphores and the sender's queue."""
        from mqlab.lab.inspectors import permits_of

        node = self._node_of(client, "lab.permits(producer)")
        return permits_of(node, [client] if isinstance(client, DefaultMQProducer) else [])

    def _node_of(self, client: DefaultMQProducer | DefaultMQPushConsumer, example: str) -> Node:
        node = getattr(client, "node", None)
        if not isinstance(node, Node):
            raise LearnerError(f"{client!r} is not a client", f"give what lab.producer(...) returned: {example}")
        self._check_up(node)
        return node

    def _check_up(self, node: Node) -> None:
        """LearnerError if the process there has ended, or has not begun again: it holds nothing that could be shown."""
        process = self.processes.get(node.name)
        if process is not None and node.life.program is None:
            raise process.refused()

    def fault_table(self, producer: DefaultMQProducer | str) -> Table:
        """What a producer (or the one on the machine of that name) knows of its brokers: who was slow or failed, and
        rests; empty unless it has `send_latency_enable`.
        """
        from mqlab.lab.inspectors import fault_table

        if isinstance(producer, str):
            process = self.processes.get(producer)
            clients = [client for client, *_ in process.clients] if isinstance(process, ClientProcess) else []
            producer = next((client for client in clients if isinstance(client, DefaultMQProducer)), producer)
        if not isinstance(producer, DefaultMQProducer):
            hint = "give the one that lab.producer(...) returned, or the name of its machine"
            raise LearnerError(f"{producer!r} is not a producer", hint)
        self._check_up(producer.node)
        return fault_table(producer)

    @staticmethod
    def _up(processes: list[P]) -> list[P]:
        return [process for process in processes if process.is_up()]

    def space_time(self, start_ms: float = 0, end_ms: float | None = None, **options: Any) -> SpaceTimeDiagram:
        """A space-time diagram of a stretch of history: nodes as lanes, messages as arrows, as static SVG."""
        from mqlab.views.diagram import SpaceTimeDiagram

        until_ms = self.now_ms if end_ms is None else end_ms
        for name, value in (("start_ms", start_ms), ("end_ms", until_ms)):
            check_number(name, value, "times are ms of the world: lab.space_time(3070, 3075)", least=None)
        check_keywords("lab.space_time", SpaceTimeDiagram.of, options, first=3)
        return SpaceTimeDiagram.of(self.history, start_ms, until_ms, **options)
