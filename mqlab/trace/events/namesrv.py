"""Events of the name server: who registered and left, and what the routes say to whoever asks."""

from __future__ import annotations

from typing import NamedTuple


class BrokerRegistered(NamedTuple):
    """A broker reported itself; `first` is True when its address was unknown before, `topics` counts what it sent."""

    cluster_name: str
    broker_name: str
    broker_id: int
    broker_addr: str
    topics: int
    first: bool


class BrokerRegistrationRefused(NamedTuple):
    """A broker's report was not taken over; `reason` says why."""

    cluster_name: str
    broker_name: str
    broker_id: int
    broker_addr: str
    reason: str


class BrokerUnregistered(NamedTuple):
    """A broker's address left the routes; `reason` is "asked", "channel closed" or "expired"."""

    cluster_name: str
    broker_name: str
    broker_id: int
    broker_addr: str
    reason: str


class TopicRouteChanged(NamedTuple):
    """The route of a topic has new queues on one broker; `perm` is the permission bits."""

    topic: str
    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int


class TopicRouteRemoved(NamedTuple):
    """A broker no longer holds queues of a topic, as far as the routes know."""

    topic: str
    broker_name: str


class RouteQueried(NamedTuple):
    """Somebody asked for the route of a topic; `brokers` counts the broker names in the answer, `code` is its code."""

    topic: str
    code: int
    brokers: int
    remote: str


class KVConfigChanged(NamedTuple):
    """A key of the name server's key-value table was set or removed; a removed one has an empty value."""

    namespace: str
    key: str
    value: str
    removed: bool


class WritePermChanged(NamedTuple):
    """An administrator wiped (or gave back) a broker's write permission in the routes of `topics` topics."""

    broker_name: str
    writeable: bool
    topics: int
