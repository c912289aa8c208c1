"""The processes of a lab: handles that stay while the process behind them is started, killed and started again.

The servers are imported with the first process that needs them, which keeps the import of a lab light.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from mqlab.arguments import check_settings
from mqlab.client.client_config import checked_group
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError, MQClientException, RemotingException
from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicConfig
from mqlab.protocol.topics import check_system_topic, check_topic
from mqlab.sim.life import STATE_NAMES

if TYPE_CHECKING:
    from mqlab.auth.auth_config import AuthConfig
    from mqlab.broker import BrokerConfig, BrokerController
    from mqlab.namesrv import NamesrvController
    from mqlab.proxy import ProxyController
    from mqlab.sim import Node
    from mqlab.store import DefaultMessageStore, MessageStoreConfig

ClientT = TypeVar("ClientT")

AUTH_SETTINGS = ("auth", "init_auth", "inner_client_auth")
"""How the names of the settings of access control begin, and those of no other."""

START_AGAIN_MS = 1_000
"""How long a supervisor waits before it starts a client anew."""


class Owner(Protocol):
    """The lab of a process, as far as a process needs it."""

    @property
    def name_server_address(self) -> str:
        """What clients and brokers are given as name server address."""
        ...

    @property
    def proxy_endpoints(self) -> str:
        """What 5.x clients are given as endpoints."""
        ...

    def crash(self, name: str) -> None:
        """Kill a process (kill -9): its memory is gone, its files stay."""
        ...

    def power_off(self, name: str) -> None:
        """Pull the plug of a machine."""
        ...

    def restart(self, name: str) -> None:
        """Start a process (again)."""
        ...

    def freeze(self, name: str) -> None:
        """Let a process hang."""
        ...

    def thaw(self, name: str) -> None:
        """Let it go on."""
        ...

    def run_for(self, ms: float) -> Self:
        """Let the world play for so long."""
        ...


class Process:
    """A node's process, by name: what a cell holds on to, whatever happens to the process."""

    def __init__(self, lab: Owner, node: Node) -> None:
        self.lab = lab
        self.node = node
        node.boot = self._boot

    @property
    def name(self) -> str:
        """The name of the machine that the process runs on."""
        return self.node.name

    @property
    def state(self) -> str:
        """ "running", "frozen" or "down"."""
        return STATE_NAMES[self.node.life.state]

    def _boot(self, node: Node) -> None:
        """The process's main function: what it makes is its life's `program`, from the moment it is there."""
        raise NotImplementedError

    def is_up(self) -> bool:
        """Has the process finished its start?"""
        return self.node.life.program is not None and self.state == "running"

    def refused(self) -> LearnerError:
        """Why nothing can be asked of the process now: it is down, or has not begun yet."""
        if self.node.life.over:
            return LearnerError(f"{self.name} is down", f"start it: lab.restart({self.name!r})")
        return LearnerError(f"{self.name} has not begun to run yet", "let it: lab.run_for(ms=1)")

    def crash(self) -> None:
        """Kill the process (kill -9): its memory is gone, its files stay."""
        self.lab.crash(self.name)

    def power_off(self) -> None:
        """Pull the plug of its machine."""
        self.lab.power_off(self.name)

    def restart(self) -> None:
        """Start it (again) on its disk."""
        self.lab.restart(self.name)

    def freeze(self) -> None:
        """Let the process hang (kill -STOP): its connections stay open, and nothing is answered."""
        self.lab.freeze(self.name)

    def thaw(self) -> None:
        """Let it go on."""
        self.lab.thaw(self.name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.state}>"


class NameServerProcess(Process):
    """A name server of the lab."""

    def __init__(self, lab: Owner, node: Node, settings: dict[str, Any]) -> None:
        from mqlab.namesrv import NamesrvConfig

        super().__init__(lab, node)
        (self._config,) = split_settings("a name server", settings, NamesrvConfig)

    @property
    def controller(self) -> NamesrvController | None:
        """The NamesrvController of its present process; None while there is none."""
        program: NamesrvController | None = self.node.life.program
        return program

    def running(self) -> NamesrvController:
        """The controller of the running process; LearnerError if there is none."""
        if self.controller is None:
            raise self.refused()
        return self.controller

    @property
    def address(self) -> str:
        """Where the process listens, as "ip:port"."""
        return f"{self.node.spec.ip}:{self._config.listen_port}"

    def _boot(self, node: Node) -> None:
        from mqlab.namesrv import NamesrvController

        node.life.program = controller = NamesrvController(node, dataclasses.replace(self._config))
        controller.start()


class BrokerProcess(Process):
    """A broker of the lab."""

    def __init__(self, lab: Owner, node: Node, settings: dict[str, Any]) -> None:
        from mqlab.store import BrokerRole

        super().__init__(lab, node)
        settings = {"broker_name": node.name, "namesrv_addr": lab.name_server_address, **settings}
        self.settings = settings
        """What it was made with, beside the defaults; a slave is made with the same."""
        self._config, self._store_config, self._auth_config = self._configs()
        self._is_slave = self._store_config.broker_role is BrokerRole.SLAVE
        if self._is_slave and self._config.broker_id <= 0:
            raise LearnerError("a slave's broker id must be above 0", "write lab.broker(slave_of='broker-a')")
        self.prepare: Callable[[BrokerController], None] | None = None
        """Called with the controller of each of its lives before that starts."""

    def change_settings(self, **settings: Any) -> None:
        """Let the next process of the broker begin with other settings; the one that runs keeps what it has."""
        self.settings = {**self.settings, **settings}
        self._config, self._store_config, self._auth_config = self._configs()

    def _configs(self) -> tuple[BrokerConfig, MessageStoreConfig, AuthConfig | None]:
        from mqlab.broker import BrokerConfig
        from mqlab.store import BrokerRole, MessageStoreConfig

        classes = (BrokerConfig, MessageStoreConfig, *_auth_class(self.settings))
        broker_config, store_config, *rest = split_settings("a broker", self.settings, *classes)
        auth_config: AuthConfig | None = rest[0] if rest else None
        if auth_config is not None and store_config.broker_role is BrokerRole.SLAVE:
            auth_config.check_inner_client(f"the slave {self.name}")
        return broker_config, store_config, auth_config

    @property
    def asks_for_signatures(self) -> bool:
        """Whether clients have to sign their requests."""
        return self._auth_config is not None and self._auth_config.authentication_enabled

    @property
    def controller(self) -> BrokerController | None:
        """The BrokerController of its present process; None while there is none."""
        program: BrokerController | None = self.node.life.program
        return program

    @property
    def address(self) -> str:
        """Where the process listens, as "ip:port"; routes name the host `broker_ip1` where that is set."""
        return f"{self.node.spec.ip}:{self._config.listen_port}"

    @property
    def ha_address(self) -> str:
        """Where slaves copy its log from, as "ip:port"."""
        return f"{self.node.spec.ip}:{self._config.ha_listen_port}"

    @property
    def is_slave(self) -> bool:
        """Is it made to follow a master?"""
        return self._is_slave

    @property
    def store(self) -> DefaultMessageStore:
        """The message store of the running process."""
        return self.running().message_store

    def running(self) -> BrokerController:
        """The controller of the running process; LearnerError if there is none."""
        if self.controller is None:
            raise self.refused()
        return self.controller

    def is_up(self) -> bool:
        """Has the process started, and told every name server that it could reach?"""
        controller = self.controller
        return controller is not None and self.state == "running" and controller.registered_once

    def _boot(self, node: Node) -> None:
        from mqlab.broker import BrokerController

        node.life.program = controller = BrokerController(
            node, dataclasses.replace(self._config), dataclasses.replace(self._store_config), self._auth_config
        )
        if self.prepare is not None:
            self.prepare(controller)
        controller.start()

    def create_topic(self, topic: str, queues: int = 4, **settings: Any) -> None:
        """Create a topic here, as an administrator does; the name servers learn of it within the next milliseconds.

        Raises MQClientException for a name that RocketMQ refuses.
        """
        check_topic(topic)
        check_system_topic(topic)
        if type(queues) is not int or queues < 1:
            raise LearnerError(f"a topic cannot have {queues!r} queues", "give a number from 1 on")
        split_settings("a topic", {"topic_name": topic, **settings}, TopicConfig)
        self.running().create_topic(topic, queues, **settings)
        self.lab.run_for(ms=5)

    def create_group(self, group: str, **settings: Any) -> None:
        """Create a consumer group here, or change its settings, as an administrator does.

        `consume_message_orderly=True` lets 5.x consumers have its messages in order, `retry_max_times` says how often a
        message is delivered again.
        """
        split_settings("a group", {"group_name": checked_group(group), **settings}, SubscriptionGroupConfig)
        self.running().subscription_group_manager.update_subscription_group_config(
            SubscriptionGroupConfig(group, **settings)
        )

    def create_user(self, username: str, password: str, user_type: str = "Normal") -> None:
        """Create a user of this broker, or change one, as an administrator does: "Normal", or "Super", to whom
        everything is allowed.
        """
        from mqlab.auth.user import NORMAL, SUPER, User, check_texts, named

        check_texts(username, password)
        if not isinstance(user_type, str) or named(user_type, (NORMAL, SUPER)) is None:
            raise LearnerError(f"{user_type!r} is no type of users", "write 'Normal' or 'Super'")
        with _learner("create_user('alice', 'a password')"):
            self.running().auth.put_user(User(username, password, user_type))

    def create_acl(
        self, subject: str, resources: list[str], actions: list[str], decision: str, source_ips: list[str] | None
    ) -> None:
        """Add rules for a user of this broker, as an administrator does; see `Lab.create_acl`."""
        from mqlab.auth.acl import ACTIONS, Acl, Policy, PolicyEntry
        from mqlab.auth.user import named

        for action in actions:
            if named(action, ACTIONS) is None:
                raise LearnerError(f"{action!r} is no action", f"use some of {', '.join(ACTIONS[3:])}, or All")
        entries = [PolicyEntry(resource, list(actions), source_ips, decision) for resource in resources]
        with _learner("create_acl('User:alice', ['Topic:Orders', 'Group:g*'], ['Pub', 'Sub'])"):
            self.running().auth.update_acl(Acl(subject, [Policy(entries=entries)]))

    def set_message_request_mode(self, topic: str, group: str, mode: str, *, pop_share_queue_num: int = 0) -> None:
        """Let a group "PULL" or "POP" a topic here, as an administrator does; its consumers hear of it when they
        rebalance next, if they leave that to the broker (`client_rebalance=False`).

        `pop_share_queue_num`: how many members' queues each member pops beside its own; 0 means all queues. Raises
        MQBrokerException for a topic or a group that the broker refuses.
        """
        from mqlab.protocol.assignment import check_message_request_mode

        check_message_request_mode(mode)
        if type(pop_share_queue_num) is not int:
            raise LearnerError(f"{pop_share_queue_num!r} is no number of members", "give a whole number; 0 means all")
        self.running().set_message_request_mode(topic, checked_group(group), mode, pop_share_queue_num)


class ProxyProcess(Process):
    """A proxy of the lab."""

    def __init__(self, lab: Owner, node: Node, settings: dict[str, Any]) -> None:
        from mqlab.proxy import ProxyConfig

        super().__init__(lab, node)
        settings = {"namesrv_addr": lab.name_server_address, **settings}
        self._config, *rest = split_settings("a proxy", settings, ProxyConfig, *_auth_class(settings))
        self._auth_config: AuthConfig | None = rest[0] if rest else None
        if self._auth_config is not None:
            self._auth_config.check_inner_client(f"the proxy {node.name}")

    @property
    def signs(self) -> bool:
        """Whether it signs what it asks of brokers."""
        return self._auth_config is not None and self._auth_config.inner_credentials is not None

    @property
    def controller(self) -> ProxyController | None:
        """The ProxyController of its present process; None while there is none."""
        program: ProxyController | None = self.node.life.program
        return program

    def running(self) -> ProxyController:
        """The controller of the running process; LearnerError if there is none."""
        if self.controller is None:
            raise self.refused()
        return self.controller

    @property
    def address(self) -> str:
        """Where the process listens, as "ip:port"."""
        return f"{self.node.spec.ip}:{self._config.grpc_server_port}"

    def _boot(self, node: Node) -> None:
        from mqlab.proxy import ProxyController

        node.life.program = controller = ProxyController(
            node, dataclasses.replace(self._config), self._auth_config
        )
        controller.start()


class ClientProcess(Process):
    """A machine with producers and consumers on it.

    Killed and started again, it makes them anew with the settings that they have now, and starts those that were
    running.
    """

    def __init__(self, lab: Owner, node: Node) -> None:
        super().__init__(lab, node)
        self.clients: list[tuple[Any, str, dict[str, Any]]] = []
        self._threads: list[tuple[str, Callable[[], Awaitable[Any]]]] = []
        self._being_started: list[Any] = []
        """The clients of which a start in a process that was started again has not succeeded yet."""

    def add(self, client_class: type[ClientT], group: str, settings: dict[str, Any]) -> ClientT:
        """Make a client of this class in the process: one that speaks to name servers and brokers, or to proxies."""
        if getattr(client_class, "speaks_to_proxies", False):
            settings = {"endpoints": self.lab.proxy_endpoints, **settings}
        else:
            settings = {"namesrv_addr": self.lab.name_server_address, **settings}
        client = client_class(self.node, group, **settings)  # type: ignore[call-arg]  # both clients are made so
        self.clients.append((client, group, settings))
        if not self.node.life.over:
            self.node.life.program = self.clients
        return client

    def run_in_each_life(self, name: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Give the program on this machine a thread: `work()` begins now, and anew whenever the process is started."""
        self._threads.append((name, work))
        self.node.spawn(work(), name)

    def _boot(self, node: Node) -> None:
        for client, *_ in self.clients:
            ran = client.impl.service_state is ServiceState.RUNNING or client in self._being_started
            client.begin_life()
            if ran:
                node.spawn(self._start_again(client), f"start {client.call_name}")
        node.life.program = self.clients
        for name, work in self._threads:
            node.spawn(work(), name)

    async def _start_again(self, client: Any) -> None:
        """Start a client that was running, however often that takes: so does whoever supervises a program."""
        if client not in self._being_started:
            self._being_started.append(client)
        again = getattr(client, "start_again", None) or partial(_start_until_a_broker_can_be_asked, client)
        await again()
        self._being_started.remove(client)


async def _start_until_a_broker_can_be_asked(client: Any) -> None:
    """Start a client; when a broker that it has to ask cannot be reached, do so anew after a second.

    Only a consumer with a subscription by SQL92 has to ask one. What a broker refuses stays an error.
    """
    while True:
        try:
            await client.start()
            return
        except MQClientException as error:
            if not isinstance(error.__cause__, RemotingException):
                raise
        await client.node.sleep(START_AGAIN_MS)
        client.begin_life()


def _auth_class(settings: dict[str, Any]) -> tuple[type, ...]:
    """The class of the settings of access control, where there are any: a world without them does not import it."""
    if not any(name.startswith(AUTH_SETTINGS) for name in settings):
        return ()
    from mqlab.auth.auth_config import AuthConfig

    return (AuthConfig,)


@contextmanager
def _learner(example: str) -> Iterator[None]:
    """What a broker refuses of users and rules is here the fault of who has written them."""
    from mqlab.auth.errors import AuthenticationException, AuthorizationException

    try:
        yield
    except (AuthenticationException, AuthorizationException) as error:
        raise LearnerError(str(error), f"write lab.{example}") from None


def split_settings(what: str, settings: dict[str, Any], *config_classes: type) -> list[Any]:
    """One configuration object per class, each taking the settings it knows.

    LearnerError for a name that none knows, and for a value of another type.
    """
    left = dict(settings)
    configs = []
    for config_class in config_classes:
        own = {f.name for f in dataclasses.fields(config_class)}
        check_settings(config_class, left)
        configs.append(config_class(**{name: left.pop(name) for name in list(left) if name in own}))
    if left:
        name = next(iter(left))
        known = [f.name for config_class in config_classes for f in dataclasses.fields(config_class)]
        from difflib import get_close_matches

        close = get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"one of: {', '.join(known)}"
        raise LearnerError(f"{what} has no setting {name!r}", hint)
    return configs
