"""Lab: builds a world of RocketMQ processes, plays it, steps it, breaks it; the one object that a notebook needs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from mqlab.arguments import check_seed
from mqlab.client import DefaultMQProducer
from mqlab.errors import LearnerError, MqlabError
from mqlab.lab.acting import Acting, Action
from mqlab.lab.looking import Looking
from mqlab.lab.playing import Watcher
from mqlab.lab.processes import BrokerProcess, ClientProcess, NameServerProcess, Process, ProxyProcess
from mqlab.sim import Node, NodeSpec, World
from mqlab.sim.faults import start as start_process
from mqlab.sim.world import Halted
from mqlab.trace.breakpoints import Breakpoint
from mqlab.trace.digest import TraceDigest
from mqlab.trace.history import History

if TYPE_CHECKING:
    from pathlib import PurePath

    from mqlab.client import DefaultMQPushConsumer
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer
    from mqlab.client.consumer.pull.mq_pull_consumer_schedule_service import MQPullConsumerScheduleService
    from mqlab.client.producer.transaction_listener import TransactionListener
    from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer
    from mqlab.client.v5 import Producer, PushConsumer, SimpleConsumer
    from mqlab.replay import Origin
    from mqlab.serving import Serving
    from mqlab.sim.choices import Policy

P = TypeVar("P", bound=Process)
ClientT = TypeVar("ClientT")

START_LIMIT_MS = 60_000
FIRST_CONNECT_US = 20_000
"""What a Java process was seen to need for its first connection, at least: 20 to 500 ms."""


def _named(wanted: list[str] | None, known: list[str]) -> str:
    missing = [repr(name) for name in wanted or [] if name not in known]
    return " " + " and ".join(missing) if missing else ""


class _Noted(list["Lab"]):
    """The labs that were made since somebody wanted to know."""

    keep_history = False


_noting: list[_Noted] = []


class Failed(Protocol):
    """A check that has failed, as far as its world can be played again by it (mqlab.check.failure)."""

    seed: int
    actions: int
    """How often something had been done to the world when it was opened."""

    @property
    def name(self) -> str:
        """Of the check, such as "06/limits"."""

    def answers(self) -> list[list[Any]]:
        """What the functions that it judged have answered, a list for each; LearnerError where that is no data."""


@contextmanager
def noting_labs(*, keep_history: bool = False) -> Iterator[list[Lab]]:
    """The labs that are made meanwhile, in order; with `keep_history` each keeps it, whatever its maker says."""
    made = _Noted()
    made.keep_history = keep_history
    _noting.append(made)
    try:
        yield made
    finally:
        _noting.pop()


class Lab(Looking, Acting):
    """A laboratory: one world with its name servers, brokers and clients, made here.

    The same seed and the same code give the same events, byte for byte. `history` keeps every event unless it is
    switched off; `wire="bytes"` encodes and decodes each command on its way, which changes nothing that can be seen.
    With `tie_is_choice` the seed also decides what goes first of all that is due at one instant, and where a thread
    loses the processor for a while. `overrides` sets single choices, by (point, k); a `policy` decides all others.
    """

    def __init__(
        self,
        seed: int | str = 0,
        *,
        wire: str = "objects",
        history: bool = True,
        overrides: Mapping[tuple[str, int], int] | None = None,
        policy: Policy | None = None,
        tie_is_choice: bool = False,
    ) -> None:
        if wire not in ("objects", "bytes"):
            raise LearnerError(f"wire={wire!r} is unknown", "use wire='objects' or wire='bytes'")
        check_seed(seed)
        self.seed = seed
        self.wire = wire
        self.world = World(
            seed, overrides=overrides, policy=policy, wire_bytes=wire == "bytes", tie_is_choice=tie_is_choice
        )
        self.processes: dict[str, Process] = {}
        self.actions: list[Action] = []
        self.origin: Origin | None = None
        """The scenario that made this world, or None for a world built cell by cell."""
        self.failure: Failed | None = None
        """The check that has failed in this world, where the world was opened from its verdict."""
        self._history = History(follow=True) if history or any(made.keep_history for made in _noting) else None
        if self._history is not None:
            self.world.hooks.attach(self._history)
        self._breakpoints: list[Breakpoint] = []
        self._sources: dict[tuple[int, int], tuple[str, int]] = {}
        self.watchers: WeakSet[Watcher] = WeakSet()
        self.worked_out: dict[type[Any], Any] = {}
        """What views have worked out of this world and share, by its type: it knows the world, and goes with it."""
        self._building = True
        self._changed_from_outside: list[str] = []
        self.first_overrides = dict(overrides or {})
        for made in _noting:
            made.append(self)

    def __reduce_ex__(self, protocol: object) -> Any:
        """Neither pickled nor copied: LearnerError says how to have it again."""
        raise LearnerError(
            "a lab can be neither pickled nor copied: its processes stand in the middle of what they do",
            "build it again with the same seed; lab.report('world.mqlab') writes what that takes, and "
            "mqlab.replay.replay(mqlab.replay.read_report('world.mqlab')).lab plays it to the same event",
        )

    # -- where it comes from ----------------------------------------------------------------------------------------

    def finish_building(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Run a scenario's function to its end (or to the slice at which a replay stops)."""
        try:
            scenario.send(None)
        except StopIteration:
            pass
        except Halted:
            pass
        else:
            scenario.close()
            raise LearnerError(
                "the scenario's function waits for something outside of the world (asyncio, for example)",
                "await calls of mqlab only",
            )
        self._building = False
        self.world.outside_calls.clear()

    def replayable_origin(self) -> Origin:
        """The scenario that this world can be played from again; LearnerError if there is none, saying why and what to
        do.
        """
        if self.origin is None:
            raise LearnerError(
                "this world was built cell by cell, so it cannot be played again from a file",
                "build it in a %%scenario cell, or with a scenario of the registry",
            )
        outside = self.world.outside_calls + self._changed_from_outside
        if outside:
            raise LearnerError(
                f"this world was changed from outside by {outside[0]}, which no replay can repeat",
                "move it into the scenario, or use lab.act(...)",
            )
        return self.origin

    def _done_again_by_itself(self) -> bool:
        return self.world.door.inside or (self._building and self.origin is not None)

    def _note_change(self, what: str) -> None:
        if self.origin is not None and not self._done_again_by_itself():
            self._changed_from_outside.append(what)

    # -- building ---------------------------------------------------------------------------------------------------

    def node(self, name: str, spec: NodeSpec | None = None) -> Node:
        """A machine with no process yet; `spec` says what RocketMQ finds on its host."""
        return self.world.node(name, spec)

    def name_server(self, name: str = "", *, start: bool = True, **settings: Any) -> NameServerProcess:
        """Add a name server (port 9876) and start it. `settings` are RocketMQ's NamesrvConfig in Python's case."""
        with self._new_node(name, "namesrv") as node:
            process = NameServerProcess(self, node, settings)
        return self._add(process, start)

    def broker(
        self,
        name: str = "",
        *,
        start: bool = True,
        slave_of: str = "",
        prepare: Callable[[Any], None] | None = None,
        directory: str | PathLike[str] = "",
        **settings: Any,
    ) -> BrokerProcess:
        """Add a broker (port 10911) and start it: the call returns when its first registration is through.

        `settings` are RocketMQ's BrokerConfig and MessageStoreConfig in Python's case, in one list. With `start=False`
        the process waits for `lab.start(name)`, so that its start can be stepped. With `slave_of="broker-a"` it is a
        slave of that broker: it has its settings (but for those that are given), and the next broker id. `prepare` is
        called with the BrokerController before that starts, for one that shall have other parts. With `directory` its
        disk is that directory of this machine, which one program at a time works on: it recovers what is there, and
        such a world cannot be replayed.
        """
        if slave_of:
            settings = {**self._settings_of_slave(slave_of), **settings}
        with self._new_node(name, "slave" if slave_of else "broker", letters=True) as node:
            process = BrokerProcess(self, node, settings)
            process.prepare = prepare
            if directory:
                from mqlab.sim.real_disk import RealDisk

                node.disk = disk = RealDisk(directory)
                disk.lock(f"{settings.get('store_path_root_dir', 'store')}/lock")
                self._note_change("a directory of this machine")
        return self._add(process, start)

    def _settings_of_slave(self, master: str) -> dict[str, Any]:
        masters = [broker.name for broker in self.masters]
        if master not in masters:
            hint = f"choose among {', '.join(masters)}" if masters else "start one first: lab.broker('broker-a')"
            raise LearnerError(f"there is no master {master!r}", hint)
        (process,) = (broker for broker in self.masters if broker.name == master)
        group = process.settings["broker_name"]
        number = sum(broker.settings["broker_name"] == group for broker in self.brokers)
        return {**process.settings, "broker_role": "SLAVE", "broker_id": number}

    def proxy(self, name: str = "", *, start: bool = True, **settings: Any) -> ProxyProcess:
        """Add a proxy (port 8081) and start it: what 5.x clients speak to. `settings` are RocketMQ's ProxyConfig in
        Python's case.
        """
        if not self.name_servers:
            raise LearnerError("a proxy needs a name server", "start one first: lab.name_server()")
        with self._new_node(name, "proxy") as node:
            process = ProxyProcess(self, node, settings)
            if any(broker.asks_for_signatures for broker in self.brokers) and not process.signs:
                raise LearnerError(
                    f"the brokers ask for signatures, and {node.name} has nothing to sign with",
                    "give it inner_client_authentication_credentials, and the other settings of the brokers' access "
                    "control if its clients shall sign, too",
                )
        return self._add(process, start)

    def producer(self, group: str, *, node: str = "", **settings: Any) -> DefaultMQProducer:
        """A producer on a machine of its own (or on `node`, shared with other clients); `await producer.start()` starts
        it.
        """
        return self._client(node, "producer", DefaultMQProducer, group, settings)

    def transaction_producer(
        self, group: str, listener: TransactionListener | None = None, *, node: str = "", **settings: Any
    ) -> TransactionMQProducer:
        """A producer of messages within transactions, on a machine of its own (or on `node`): `await producer.start()`,
        then `await producer.send_message_in_transaction(message)`. `listener` does and remembers the local part.
        """
        from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer

        producer = self._client(node, "producer", TransactionMQProducer, group, settings)
        producer.transaction_listener = listener
        return producer

    def consumer(self, group: str, *, node: str = "", **settings: Any) -> DefaultMQPushConsumer:
        """A push consumer on a machine of its own (or on `node`); subscribe, register a listener, then `await
        consumer.start()`.
        """
        from mqlab.client import DefaultMQPushConsumer

        return self._client(node, "consumer", DefaultMQPushConsumer, group, settings)

    def pull_consumer(self, group: str, *, node: str = "", **settings: Any) -> DefaultMQPullConsumer:
        """A consumer that asks for messages itself, on a machine of its own (or on `node`); `await consumer.start()`,
        then `await consumer.pull(queue, "*", offset, 32)`.
        """
        from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer

        return self._client(node, "consumer", DefaultMQPullConsumer, group, settings)

    def lite_pull_consumer(self, group: str, *, node: str = "", **settings: Any) -> DefaultLitePullConsumer:
        """A consumer that pulls ahead and hands out when asked, on a machine of its own (or on `node`): subscribe or
        assign, `await consumer.start()`, then `await consumer.poll()`.
        """
        from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer

        return self._client(node, "consumer", DefaultLitePullConsumer, group, settings)

    def pull_schedule_service(self, group: str, *, node: str = "", **settings: Any) -> MQPullConsumerScheduleService:
        """A service that runs your pull task for each queue again and again; `register_pull_task_callback(topic, task)`
        says what to do, `await service.start()` begins.
        """
        from mqlab.client.consumer.pull.mq_pull_consumer_schedule_service import MQPullConsumerScheduleService

        return self._client(node, "consumer", MQPullConsumerScheduleService, group, settings)

    def producer_v5(self, *, node: str = "", **settings: Any) -> Producer:
        """A 5.x producer on a machine of its own (or on `node`), which sends through the proxies: `await
        producer.start()`, then `await producer.send(Message(...))` with the Message of `mqlab.client.v5`.
        """
        from mqlab.client.v5 import Producer

        return self._client(node, "producer", Producer, "", settings)

    def push_consumer_v5(self, group: str, *, node: str = "", **settings: Any) -> PushConsumer:
        """A 5.x push consumer on a machine of its own (or on `node`): subscribe, register a listener of one message,
        `await consumer.start()`.
        """
        from mqlab.client.v5 import PushConsumer

        return self._client(node, "consumer", PushConsumer, group, settings)

    def simple_consumer(self, group: str, *, node: str = "", **settings: Any) -> SimpleConsumer:
        """A 5.x consumer that receives and acknowledges by itself, on a machine of its own (or on `node`): subscribe,
        `await consumer.start()`, then `await consumer.receive(...)`.
        """
        from mqlab.client.v5 import SimpleConsumer

        return self._client(node, "consumer", SimpleConsumer, group, settings)

    def create_group(self, group: str, **settings: Any) -> None:
        """Create a consumer group on all masters, as an administrator does: `consume_message_orderly=True` for 5.x
        consumers that want order, `retry_max_times=3` for fewer deliveries.
        """
        for broker in self.masters:
            broker.create_group(group, **settings)

    def create_user(self, username: str, password: str, user_type: str = "Normal") -> None:
        """Create a user on all brokers (each has its own), or change one, as an administrator does; to a "Super" user
        everything is allowed. It counts for brokers with `authentication_enabled`.
        """
        for broker in self.brokers:
            broker.create_user(username, password, user_type)

    def create_acl(
        self,
        subject: str,
        resources: list[str],
        actions: list[str],
        *,
        decision: str = "Allow",
        source_ips: list[str] | None = None,
    ) -> None:
        """Add rules on all brokers, as an administrator does: what a user ("User:alice") may do ("Pub", "Sub",
        "Create", "Update", "Delete", "Get", "List", "All") with resources ("Topic:Orders", "Topic:Or*", "Group:*",
        "Cluster:...", "*"), from everywhere or these addresses. They count for brokers with `authorization_enabled`.
        """
        for broker in self.brokers:
            broker.create_acl(subject, resources, actions, decision, source_ips)

    def create_topic(
        self, topic: str, queues: int = 4, *, brokers: str | list[str] | None = None, **settings: Any
    ) -> None:
        """Create a topic on the brokers (all masters unless told), as an administrator does, and wait until it is
        registered.
        """
        known = [broker.name for broker in self.brokers]
        wanted = [brokers] if isinstance(brokers, str) else brokers
        chosen = self.masters if wanted is None else [broker for broker in self.brokers if broker.name in wanted]
        if not chosen or (wanted is not None and set(wanted) - set(known)):
            hint = f"choose among {', '.join(known)}" if known else "start one first: lab.broker('broker-a')"
            raise LearnerError(f"there is no broker{_named(wanted, known)} to create topic {topic!r} on", hint)
        for broker in chosen:
            broker.create_topic(topic, queues, **settings)

    def set_message_request_mode(self, topic: str, group: str, mode: str, *, pop_share_queue_num: int = 0) -> None:
        """Let a group "PULL" or "POP" a topic on all masters, as an administrator does; it counts for consumers with
        `client_rebalance=False`, from their next rebalance on.
        """
        for broker in self.masters:
            broker.set_message_request_mode(topic, group, mode, pop_share_queue_num=pop_share_queue_num)

    @contextmanager
    def _new_node(self, name: str, kind: str, *, letters: bool = False) -> Iterator[Node]:
        """A machine for a process that is made meanwhile; without the process there will be no machine either."""
        with self.world.door:
            if not name:
                number = sum(1 for node in self.world.nodes if node.startswith(f"{kind}-"))
                name = f"{kind}-{chr(ord('a') + number) if letters else number + 1}"
            node = self.world.node(name, self.world.next_spec()._replace(first_connect_us=FIRST_CONNECT_US))
            try:
                yield node
            except MqlabError:
                # So that the cell can be corrected and run again.
                self.world.take_away(node)
                raise
            self._note_change(f"a new {kind}")

    def _add(self, process: P, start: bool) -> P:
        with self.world.door:
            self.processes[process.name] = process
            if start:
                start_process(self.world, process.name)
                try:
                    self.world.run_until(process.is_up, START_LIMIT_MS, what=f"the start of {process.name}")
                except MqlabError:
                    if process.node.life.over:
                        self._take_away(process)
                    raise
        return process

    def _take_away(self, process: Process) -> None:
        """Forget a process that has refused its first start, so that the cell can be corrected and run again."""
        from mqlab.sim.real_disk import RealDisk

        del self.processes[process.name]
        self.world.take_away(process.node)
        if isinstance(process.node.disk, RealDisk):
            process.node.disk.unlock()

    def _client(
        self, node: str, kind: str, client_class: type[ClientT], group: str, settings: dict[str, Any]
    ) -> ClientT:
        known = self.processes.get(node)
        if isinstance(known, ClientProcess):
            return known.add(client_class, group, settings)
        if getattr(client_class, "speaks_to_proxies", False) and not self.proxies:
            raise LearnerError("a 5.x client needs a proxy", "start one first: lab.proxy()")
        if not self.name_servers:
            raise LearnerError("a client needs a name server", "start one first: lab.name_server()")
        with self._new_node(node, kind) as made:
            process = ClientProcess(self, made)
            client = process.add(client_class, group, settings)
        self.processes[process.name] = process
        return client

    # -- opening it ------------------------------------------------------------------------------------------------

    def serve(
        self,
        *,
        host: str = "127.0.0.1",
        ports: Mapping[str, int] | None = None,
        advertise: str | Mapping[str, str] = "auto",
        reach: Sequence[str] = (),
        most_connections: int = 2_000,
        tls: str = "permissive",
        tls_certificate: str | PurePath | None = None,
        tls_key: str | PurePath | None = None,
    ) -> Serving:
        """Open this world to programs outside, at ports of this machine, and play it in real time until that is closed
        (see mqlab.serving.Serving, docs/serving.md).
        """
        from mqlab.serving import Serving

        return Serving(
            self,
            host=host,
            ports=ports,
            advertise=advertise,
            reach=reach,
            most_connections=most_connections,
            tls=tls,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
        )

    # -- telling of it ----------------------------------------------------------------------------------------------

    def trace_hash(self) -> str:
        """The hash of everything that has happened: equal hashes mean equal worlds."""
        digest = TraceDigest()
        for row in self.history.rows():
            digest(row)
        return digest.hexdigest()

    def report(self, path: str | PurePath) -> None:
        """Write what is needed to play this world again: scenario, parameters, seed, actions, overrides, trace hash."""
        from mqlab.replay import write_report

        if not isinstance(path, str | PathLike):
            raise LearnerError(f"{path!r} is not the name of a file", "write lab.report('bug.mqlab')")
        write_report(self, path)

    def __repr__(self) -> str:
        names = ", ".join(self.world.nodes) or "no nodes yet"
        return f"<Lab seed={self.seed!r}: {names}; {self.now_ms:g} ms, slice {self.world.slice_no}>"
