"""Headers of the name server: routes, registration of brokers, and its table of keys and values.

Java: org.apache.rocketmq.remoting.protocol.header.namesrv.GetRouteInfoRequestHeader and its neighbours in that package.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, wire


class GetRouteInfoRequestHeader(NamedTuple):
    """Where are the queues of this topic? (GET_ROUTEINFO_BY_TOPIC)"""

    topic: str
    accept_standard_json_only: bool | None = None


@wire(body_crc32="bodyCrc32")
class RegisterBrokerRequestHeader(NamedTuple):
    """A broker reports itself (REGISTER_BROKER); its topics are in the body.

    `heartbeat_timeout_millis` is how long the name server may wait for the next report; `body_crc32` 0 is not checked.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: int = 0


class RegisterBrokerResponseHeader(NamedTuple):
    """For a slave: where its master is."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(NamedTuple):
    """A broker leaves (UNREGISTER_BROKER)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class BrokerHeartbeatRequestHeader(NamedTuple):
    """A short sign of life between registrations (BROKER_HEARTBEAT)."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: int | None = None


class QueryDataVersionRequestHeader(NamedTuple):
    """Does the name server have the newest settings of this broker? (QUERY_DATA_VERSION)"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class QueryDataVersionResponseHeader(NamedTuple):
    """Whether the broker's settings of topics have changed since its last report."""

    changed: bool


class PutKVConfigRequestHeader(NamedTuple):
    """Stores a value under a key of a namespace (PUT_KV_CONFIG)."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(NamedTuple):
    """Asks for the value of a key (GET_KV_CONFIG)."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(NamedTuple):
    """The value of the key; null if there is none."""

    value: str | None = None


class DeleteKVConfigRequestHeader(NamedTuple):
    """Removes a key (DELETE_KV_CONFIG)."""

    namespace: str
    key: str


class GetKVListByNamespaceRequestHeader(NamedTuple):
    """Asks for all keys and values of a namespace (GET_KVLIST_BY_NAMESPACE)."""

    namespace: str


class WipeWritePermOfBrokerRequestHeader(NamedTuple):
    """Takes the write permission from all routes of a broker (WIPE_WRITE_PERM_OF_BROKER)."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(NamedTuple):
    """How many topics changed."""

    wipe_topic_count: int


class AddWritePermOfBrokerRequestHeader(NamedTuple):
    """Gives it back (ADD_WRITE_PERM_OF_BROKER)."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(NamedTuple):
    """How many topics changed."""

    add_topic_count: int


class DeleteTopicFromNamesrvRequestHeader(NamedTuple):
    """Removes a topic from the routes (DELETE_TOPIC_IN_NAMESRV)."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicRequestHeader(NamedTuple):
    """Adds a topic to the routes (REGISTER_TOPIC_IN_NAMESRV)."""

    topic: str


class GetTopicsByClusterRequestHeader(NamedTuple):
    """Which topics have a route in this cluster? (GET_TOPICS_BY_CLUSTER)"""

    cluster: str


class GetBrokerMemberGroupRequestHeader(NamedTuple):
    """Which addresses share this broker name? (GET_BROKER_MEMBER_GROUP)"""

    cluster_name: str
    broker_name: str


class NotifyMinBrokerIdChangeRequestHeader(NamedTuple):
    """Tells brokers that another member of their group is now the lowest (NOTIFY_MIN_BROKER_ID_CHANGE, one-way)."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
