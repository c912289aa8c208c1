"""The settings that producers and consumers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_settings
from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.auth.session_credentials import SessionCredentials
    from mqlab.sim import Node

DEFAULT_INSTANCE_NAME = "DEFAULT"


@dataclass(eq=False, repr=False)
class ClientConfig:
    """What every client may set; times in ms (org.apache.rocketmq.client.ClientConfig).

    `namesrv_addr` is one address "ip:port" or several separated by ";". Differs from RocketMQ: what is a
    system property there is a setting here, and nothing is read from the environment; namespaces, TLS and proxies are
    absent.
    """

    namesrv_addr: str | None = None
    namesrv_domain: str | None = None
    """The address server to ask, "ip:port", when no `namesrv_addr` is given (rocketmq.namesrv.domain)."""
    instance_name: str = DEFAULT_INSTANCE_NAME
    client_ip: str | None = None
    """The address in the client's id; None means that of its node."""
    client_callback_executor_threads: int = 0
    """Threads for callbacks; 0 means one for each core of the node."""
    client_async_semaphore_value: int = 65_535
    """Requests that may wait for an answer at once (com.rocketmq.remoting.clientAsyncSemaphoreValue)."""
    client_oneway_semaphore_value: int = 65_535
    """One-way requests that may be written at once (com.rocketmq.remoting.clientOnewaySemaphoreValue)."""
    connect_timeout_millis: int = 3_000
    """How long making a connection may take (com.rocketmq.remoting.client.connect.timeout)."""
    client_channel_max_idle_time_seconds: int = 120
    """A connection on which nothing moves for so long is closed (...client.channel.maxIdleTimeSeconds)."""
    client_close_socket_if_timeout: bool = True
    """Close the connection on which a synchronous call timed out (...client.closeSocketIfTimeout)."""
    poll_name_server_interval: int = 30_000
    heartbeat_broker_interval: int = 30_000
    persist_consumer_offset_interval: int = 5_000
    pull_time_delay_mills_when_exception: int = 1_000
    mq_client_api_timeout: int = 3_000
    use_heartbeat_v2: bool = False
    """Leave subscriptions that brokers know out of heartbeats (com.rocketmq.heartbeat.v2)."""
    unit_mode: bool = False
    unit_name: str | None = None
    vip_channel_enabled: bool = False
    enable_stream_request_type: bool = False
    enable_heartbeat_channel_event_listener: bool = True
    send_latency_enable: bool = False
    start_detector_enable: bool = False
    detect_timeout: int = 200
    detect_interval: int = 2_000
    enable_trace: bool = False
    """Note what is done with each message, and send that to a topic of its own."""
    trace_topic: str | None = None
    """That topic; None means RMQ_SYS_TRACE_TOPIC."""
    trace_msg_batch_num: int = 10
    """How many notes travel together; 20 at most."""
    credentials: SessionCredentials | None = None
    """What the client signs each request with, in the place of RocketMQ's `new AclClientRPCHook(credentials)`."""

    def __post_init__(self) -> None:
        self._name_of_process = ""
        if self.credentials is not None:
            from mqlab.auth.session_credentials import checked_credentials

            checked_credentials(self.credentials)

    def name_server_addresses(self) -> list[str]:
        """The configured name servers, one by one."""
        return [address.strip() for address in (self.namesrv_addr or "").split(";") if address.strip()]

    def build_mq_client_id(self, node: Node) -> str:
        """The id under which this client is known: `ip@instance`, and the unit and request type if they are set.

        Java: org.apache.rocketmq.client.ClientConfig.buildMQClientId.
        """
        parts = [self.client_ip or node.spec.ip, self.instance_name]
        if self.unit_name:
            parts.append(self.unit_name)
        if self.enable_stream_request_type:
            parts.append("STREAM")
        return "@".join(parts)

    def change_instance_name_to_pid(self, node: Node) -> None:
        """Make the default instance name one of its own: `pid#nanoseconds`, so that this client shares no instance.

        Java: org.apache.rocketmq.client.ClientConfig.changeInstanceNameToPID.
        """
        if self.instance_name == DEFAULT_INSTANCE_NAME:
            numbers: count[int] = node.life.singletons.setdefault("ClientConfig.nano_time", count())
            self._name_of_process = f"{node.spec.pid}#{node.now_us() * 1_000 + next(numbers)}"
            self.instance_name = self._name_of_process

    def forget_name_of_process(self) -> None:
        """Take an instance name that a start has made back: the next process makes its own."""
        if self.instance_name == self._name_of_process:
            self.instance_name = DEFAULT_INSTANCE_NAME

    def clone_client_config(self) -> ClientConfig:
        """A copy of the shared settings alone."""
        return ClientConfig(**self.shared_settings())

    def shared_settings(self) -> dict[str, Any]:
        """The settings that every client has, by name."""
        return {field.name: getattr(self, field.name) for field in fields(ClientConfig)}


def checked_settings(cls: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, if `cls` (a dataclass) knows them all and their types; else a LearnerError says what to write.

    A text that stands for a member of an enumeration becomes the member.
    """
    defaults = {field.name: field.default for field in fields(cls)}
    known = list(defaults)
    for name in settings:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            raise LearnerError(
                f"there is no setting {name!r}",
                f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(known)}",
            )
    check_settings(cls, settings)
    return {name: _member(name, value, defaults[name]) for name, value in settings.items()}


def checked_group(group: str) -> str:
    """The name of a group, if it is a text at all; what else may be wrong with it is found at the start."""
    if not isinstance(group, str):
        raise LearnerError(f"the name of a group is a text, not {type(group).__name__}", "choose one, such as 'orders'")
    return group


def _member(name: str, value: Any, default: Any) -> Any:
    kind = type(default)
    if not isinstance(default, Enum) or not isinstance(value, str) or isinstance(value, kind):
        return value
    if value not in kind.__members__:
        raise LearnerError(f"{name}={value!r} is not known", f"use one of {', '.join(kind.__members__)}")
    return kind[value]
