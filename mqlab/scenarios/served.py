"""The world of `mqlab serve`: a cluster in which nothing happens until somebody from outside sends something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mqlab.arguments import named_values
from mqlab.broker import BrokerConfig
from mqlab.errors import LearnerError
from mqlab.lab.processes import AUTH_SETTINGS
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.java_properties import property_names, update_settings
from mqlab.scenarios.registry import scenario
from mqlab.scenarios.words import Flush
from mqlab.store import MessageStoreConfig

if TYPE_CHECKING:
    from mqlab.lab import Lab


MESSAGE_TYPES = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED")
"""org.apache.rocketmq.common.attribute.TopicMessageType, as far as mqlab has them."""

ROLE = "brokerRole"
"""The setting that is no text, number or yes-or-no: a lab reads the name of a role."""


@scenario("served", seconds=120)
async def served(
    lab: Lab,
    *,
    brokers: int = 1,
    slaves: int = 0,
    proxies: int = 0,
    topics: str = "",
    flush: Flush = "ASYNC_FLUSH",
    settings: str = "",
    acl: str = "",
) -> None:
    """A name server, brokers (each with `slaves`) and proxies, for clients over real sockets (mqlab serve)."""
    lab.name_server()
    given = broker_settings(settings, acl)
    for _ in range(brokers):
        master = lab.broker(flush_disk_type=flush, **given)
        for _ in range(slaves):
            lab.broker(slave_of=master.name)
    add_proxies(lab, proxies, given)
    add_topics(lab, topics)
    add_acl(lab, acl)


def add_proxies(lab: Lab, count: int, settings: Mapping[str, Any]) -> None:
    """Proxies for clients of 5.x, with what the settings of brokers say of access control."""
    auth = {name: value for name, value in settings.items() if name.startswith(AUTH_SETTINGS)}
    for _ in range(count):
        lab.proxy(**auth)


def add_acl(lab: Lab, text: str) -> None:
    """Users and rules, as JSON says them; see `mqlab.scenarios.access_control`."""
    if text:
        from mqlab.scenarios.access_control import AccessControl

        AccessControl(text).give(lab)


def add_topics(lab: Lab, text: str) -> None:
    """Topics, with ";" between them and the type of their messages behind "=": "Orders;Steps=FIFO"."""
    for part in filter(None, (part.strip() for part in text.split(";"))):
        topic, _, kind = part.partition("=")
        if kind and kind not in MESSAGE_TYPES:
            raise LearnerError(f"{kind!r} is no type of messages", f"use one of {', '.join(MESSAGE_TYPES)}")
        lab.create_topic(topic, attributes={"+message.type": kind} if kind else {})


def broker_settings(text: str, acl: str = "") -> dict[str, Any]:
    """Settings of a broker as they stand in RocketMQ's broker.conf, with ";" between them, as `lab.broker` takes them:
    "enablePropertyFilter=true;defaultTopicQueueNums=4". LearnerError for what no broker has, or another type of value.

    Users and rules (`acl`) bring the settings of access control that they need, where nothing else is said.
    """
    given = named_values([part.strip() for part in text.split(";") if part.strip()])
    found: dict[str, Any] = {"broker_role": given.pop(ROLE)} if ROLE in given else {}
    kinds: list[Any] = [BrokerConfig(), MessageStoreConfig()]
    if any(name.startswith(tuple(map(camel_case, AUTH_SETTINGS))) for name in given):
        from mqlab.auth import AuthConfig

        kinds.append(AuthConfig())
    for settings in kinds:
        fields = {name: field for field, name in property_names(type(settings)).items() if name in given}
        update_settings({name: given[name] for name in fields}, settings)
        found |= {field: getattr(settings, field) for field in fields.values()}
        for name in fields:
            del given[name]
    if given:
        raise LearnerError(f"a broker has no setting {next(iter(given))!r}", "write it as in RocketMQ's broker.conf")
    if acl:
        from mqlab.scenarios.access_control import AccessControl

        found = AccessControl(acl).settings() | found
    return found
