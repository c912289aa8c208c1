"""What all 5.x clients have: routes, sessions with proxies, heartbeats."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.client.service_state import ServiceState
from mqlab.client.v5.client_session import ClientSession
from mqlab.client.v5.errors import ClientException, check_status
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import (
    Address,
    AddressScheme,
    ClientType,
    Endpoints,
    MessageQueue,
    Permission,
    Resource,
    Settings,
)
from mqlab.rpc import RpcClient, RpcError
from mqlab.sim import Future, PeriodicTask, public_call
from mqlab.trace.events.client import ClientStarted, ClientStopped, RouteMissing, RouteUpdated

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.client.v5.client_configuration import ClientConfiguration
    from mqlab.sim import Node

MASTER_BROKER_ID = 0
HEART_BEAT_MS = (1_000, 10_000)
SYNC_SETTINGS_MS = (1_000, 300_000)
ROUTE_MS = (10_000, 30_000)
"""First time and pause between two, of what a client does again and again."""

START_AGAIN_MS = 1_000

CLIENT_VERSION = "5.1.1"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ClientImpl:
    """One 5.x client (org.apache.rocketmq.client.java.impl.ClientImpl and ClientManagerImpl).

    Its routes name brokers, but every address in them is a proxy's. Differs from RocketMQ: idle connections are not
    closed, and on their streams proxies ask only about transactions.
    """

    role = "client"
    client_type = ClientType.UNSPECIFIED

    def __init__(self, node: Node, config: ClientConfiguration, group: str) -> None:
        self.node = node
        self.config = config
        self.group = group
        self.service_state = ServiceState.CREATE_JUST
        self.client_id = _client_id(node)
        self.endpoints = parse_endpoints(config.endpoints)
        self.rpc = RpcClient(
            node,
            {
                "x-mq-client-id": self.client_id,
                "x-mq-language": "JAVA",
                "x-mq-protocol": "GRPC_V2",
                "x-mq-client-version": CLIENT_VERSION,
            },
        )
        if config.credentials is not None:
            from mqlab.auth.session_credentials import signed_metadata

            self.rpc.sign = lambda: signed_metadata(config.credentials, node.now_ms())
        self.topic_route_cache: dict[str, tuple[MessageQueue, ...]] = {}
        self.isolated: dict[Endpoints, None] = {}
        """Proxies by which a send has failed since their last heartbeat."""
        self._sessions: dict[Endpoints, ClientSession] = {}
        self._inflight_routes: dict[str, Future[tuple[MessageQueue, ...]]] = {}
        self._tasks: list[PeriodicTask] = []

    # -- what kinds of clients say of themselves --------------------------------------------------------------------

    def settings(self) -> Settings:
        """What the client tells proxies of itself."""
        raise NotImplementedError(f"{type(self).__name__} must define settings()")

    def take_settings(self, settings: Settings) -> None:
        """What a proxy has decided."""
        raise NotImplementedError(f"{type(self).__name__} must define take_settings()")

    def topics(self) -> list[str]:
        """The topics that are looked up at the start."""
        raise NotImplementedError(f"{type(self).__name__} must define topics()")

    def recover_orphaned_transaction(
        self, endpoints: Endpoints, command: service.RecoverOrphanedTransactionCommand
    ) -> None:
        """A proxy asks what became of a transaction; only producers are asked."""

    def on_topic_route_data_update(self, topic: str, queues: tuple[MessageQueue, ...]) -> None:
        """A route was taken over."""

    @property
    def group_resource(self) -> Resource | None:
        """The group as it travels; a producer has none."""
        return Resource(name=self.group) if self.group else None

    # -- start and end ----------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether the client has started and not ended."""
        return self.service_state is ServiceState.RUNNING

    def check_running(self) -> None:
        """ClientException unless the client runs."""
        if not self.is_running:
            hint = "start it first" if self.service_state is ServiceState.CREATE_JUST else "make a new one"
            raise ClientException(f"the {self.role} is not running now ({self.service_state}). What to do: {hint}.")

    async def start(self) -> None:
        """Look up the topics and agree on settings with the proxies; up to three times, then ClientException.

        Java: org.apache.rocketmq.client.java.impl.ClientImpl.startUp.
        """
        if self.service_state is not ServiceState.CREATE_JUST:
            raise ClientException(f"the {self.role} was started before ({self.service_state})")
        self.service_state = ServiceState.START_FAILED
        self.every(*HEART_BEAT_MS, self._do_heartbeat, "heartbeat")
        self.every(*SYNC_SETTINGS_MS, self._sync_settings, "sync settings")
        for attempt in range(1, self.config.max_startup_attempts + 1):
            try:
                for topic in self.topics():
                    await self._fetch_topic_route(topic)
                break
            except ClientException:
                if attempt == self.config.max_startup_attempts:
                    self._stop()
                    raise
        self.every(*ROUTE_MS, self._update_route_cache, "update routes")
        self.service_state = ServiceState.RUNNING
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStarted(self.client_id, self.group, self.role))

    async def shutdown(self) -> None:
        """Tell the proxies, and close all connections."""
        if self.service_state is not ServiceState.RUNNING:
            return
        self.service_state = ServiceState.SHUTDOWN_ALREADY
        request = service.NotifyClientTerminationRequest(self.group_resource)
        for endpoints in self.total_route_endpoints():
            # A proxy that does not hear it finds out by itself.
            with suppress(ClientException):
                await self.call(endpoints, service.NOTIFY_CLIENT_TERMINATION, request)
        self._stop()
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStopped(self.client_id, self.group, self.role))

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for session in self._sessions.values():
            session.release()
        self.rpc.shutdown()

    def every(self, first_ms: int, pause_ms: int, work: Callable[[], Any], name: str) -> None:
        """Do something again and again until the client ends (scheduleWithFixedDelay)."""
        self._tasks.append(self.node.schedule_with_fixed_delay(work, first_ms, pause_ms, name))

    # -- calls ------------------------------------------------------------------------------------------------------

    async def call(self, endpoints: Endpoints, rpc: service.Rpc, request: Any, timeout_ms: int | None = None) -> Any:
        """Ask a proxy once; ClientException when there is no answer. What the answer says is the caller's affair."""
        try:
            return await self.rpc.unary(str(endpoints), rpc, request, timeout_ms or self.config.request_timeout)
        except RpcError as error:
            raise ClientException(str(error)) from error

    # -- routes -----------------------------------------------------------------------------------------------------

    async def route(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic, looked up if they are not known; who asks meanwhile waits for the same answer."""
        known = self.topic_route_cache.get(topic)
        if known is not None:
            return known
        inflight = self._inflight_routes.get(topic)
        if inflight is None:
            inflight = self._inflight_routes[topic] = Future(f"the route of {topic}")
            self.node.spawn(self._fetch_for_all(topic, inflight), "fetch route")
        return await inflight

    async def _fetch_for_all(self, topic: str, waited_for: Future[tuple[MessageQueue, ...]]) -> None:
        try:
            queues = await self._fetch_topic_route(topic)
        except ClientException as error:
            del self._inflight_routes[topic]
            waited_for.set_exception(error)
            return
        del self._inflight_routes[topic]
        waited_for.set_result(queues)

    async def _fetch_topic_route(self, topic: str) -> tuple[MessageQueue, ...]:
        """Ask for a route, and agree on settings with proxies that are new in it before it is taken over."""
        request = service.QueryRouteRequest(Resource(name=topic), self.endpoints)
        try:
            response = await self.call(self.endpoints, service.QUERY_ROUTE, request)
            check_status(response.status)
        except ClientException as error:
            if self.node.hooks.on:
                self.node.hooks.emit(RouteMissing(self.client_id, topic, str(error)))
            raise
        queues: tuple[MessageQueue, ...] = response.message_queues
        known = self.total_route_endpoints()
        for endpoints in dict.fromkeys(queue.broker.endpoints for queue in queues):
            if endpoints not in known:
                await self._session(endpoints).sync_settings()
        if self.topic_route_cache.get(topic) != queues:
            self._tell_route(topic, queues)
        self.topic_route_cache[topic] = queues
        self.on_topic_route_data_update(topic, queues)
        return queues

    def _tell_route(self, topic: str, queues: tuple[MessageQueue, ...]) -> None:
        if self.node.hooks.on:
            brokers = ",".join(dict.fromkeys(queue.broker.name for queue in queues))
            writes = sum(1 for queue in queues if is_writable(queue))
            reads = sum(1 for queue in queues if is_readable(queue))
            self.node.hooks.emit(RouteUpdated(self.client_id, topic, brokers, writes, reads))

    async def _update_route_cache(self) -> None:
        for topic in list(self.topic_route_cache):
            # Without an answer the old route stays in use.
            with suppress(ClientException):
                await self._fetch_topic_route(topic)

    def total_route_endpoints(self) -> list[Endpoints]:
        """All proxies in all routes."""
        queues = (queue for route in self.topic_route_cache.values() for queue in route)
        return list(dict.fromkeys(queue.broker.endpoints for queue in queues))

    # -- sessions and heartbeats ------------------------------------------------------------------------------------

    def _session(self, endpoints: Endpoints) -> ClientSession:
        session = self._sessions.get(endpoints)
        if session is None:
            session = self._sessions[endpoints] = ClientSession(self, endpoints)
        return session

    def _sync_settings(self) -> None:
        for endpoints in self.total_route_endpoints():
            self._session(endpoints).write_settings()

    async def _do_heartbeat(self) -> None:
        request = service.HeartbeatRequest(self.group_resource, self.client_type)
        for endpoints in self.total_route_endpoints():
            try:
                response = await self.call(endpoints, service.HEARTBEAT, request)
                check_status(response.status)
            except ClientException:
                # The next one may get through.
                continue
            self.isolated.pop(endpoints, None)


class Startable:
    """How an application, or its process when it was started again, starts a client of 5.x."""

    node: Node
    impl: ClientImpl

    def begin_life(self) -> None:
        """Make what dies with the process from what this client was given: at first, and at each restart."""
        raise NotImplementedError

    @public_call
    async def start(self) -> None:
        """Start the client; ClientException when a topic is unknown or no proxy answers."""
        await self.impl.start()

    async def start_again(self) -> None:
        """Start anew in a process that was started again; as long as that fails, try anew every second."""
        while True:
            try:
                await self.impl.start()
                return
            except ClientException:
                await self.node.sleep(START_AGAIN_MS)
                self.begin_life()


def is_readable(queue: MessageQueue) -> bool:
    """Whether messages can be received from a queue."""
    return queue.permission in (Permission.READ, Permission.READ_WRITE)


def is_writable(queue: MessageQueue) -> bool:
    """Whether messages can be sent to a queue."""
    return queue.permission in (Permission.WRITE, Permission.READ_WRITE)


def parse_endpoints(text: str) -> Endpoints:
    """The addresses in "ip:port;ip:port"."""
    pairs = [part.strip().rpartition(":") for part in text.split(";") if part.strip()]
    return Endpoints(AddressScheme.IPV4, tuple(Address(host, int(port)) for host, _, port in pairs))


def _client_id(node: Node) -> str:
    """`host@pid@index@nanoseconds` (ClientId): the index counts a process's clients, the last part is in base 36."""
    singletons = node.life.singletons
    index = singletons["ClientId.index"] = singletons.get("ClientId.index", -1) + 1
    return f"{node.name}@{node.spec.pid}@{index}@{_base36(node.now_us() * 1_000 + index)}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits or "0"
