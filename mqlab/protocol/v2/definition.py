"""What the messages of apache.rocketmq.v2 are made of (definition.proto), under its names; the number of a field on the
wire stands beside its type. Times are in ms.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, NamedTuple

from mqlab.protocol.v2.protobuf import NO_PROPERTIES, Duration, Timestamp


class AddressScheme(IntEnum):
    """How the addresses of endpoints are to be read."""

    UNSPECIFIED = 0
    IPV4 = 1
    IPV6 = 2
    DOMAIN_NAME = 3


class Permission(IntEnum):
    """What may be done with a queue."""

    UNSPECIFIED = 0
    NONE = 1
    READ = 2
    WRITE = 3
    READ_WRITE = 4


class MessageType(IntEnum):
    """The kinds of messages; a topic takes those that it was made for."""

    UNSPECIFIED = 0
    NORMAL = 1
    FIFO = 2
    DELAY = 3
    TRANSACTION = 4
    LITE = 5
    PRIORITY = 6


class ClientType(IntEnum):
    """The kinds of clients."""

    UNSPECIFIED = 0
    PRODUCER = 1
    PUSH_CONSUMER = 2
    SIMPLE_CONSUMER = 3
    PULL_CONSUMER = 4
    LITE_PUSH_CONSUMER = 5
    LITE_SIMPLE_CONSUMER = 6


class Encoding(IntEnum):
    """How a body is packed."""

    UNSPECIFIED = 0
    IDENTITY = 1
    GZIP = 2


class DigestType(IntEnum):
    """How the checksum of a body was made."""

    UNSPECIFIED = 0
    CRC32 = 1
    MD5 = 2
    SHA1 = 3


class FilterType(IntEnum):
    """How a subscription chooses messages."""

    UNSPECIFIED = 0
    TAG = 1
    SQL = 2


class Language(IntEnum):
    """What a client is written in."""

    UNSPECIFIED = 0
    JAVA = 1
    CPP = 2
    DOT_NET = 3
    GOLANG = 4
    RUST = 5
    PYTHON = 6
    PHP = 7
    NODE_JS = 8
    RUBY = 9
    OBJECTIVE_C = 10
    DART = 11
    KOTLIN = 12


class TransactionResolution(IntEnum):
    """How a transaction ended."""

    UNSPECIFIED = 0
    COMMIT = 1
    ROLLBACK = 2


class TransactionSource(IntEnum):
    """Who says how a transaction ended: its producer by itself, or a producer that was asked."""

    SOURCE_UNSPECIFIED = 0
    SOURCE_CLIENT = 1
    SOURCE_SERVER_CHECK = 2


class Code(IntEnum):
    """What became of a call (apache.rocketmq.v2.Code); 200xx is good, 400xx the caller's fault, 500xx the server's."""

    UNSPECIFIED = 0
    OK = 20000
    MULTIPLE_RESULTS = 30000
    BAD_REQUEST = 40000
    ILLEGAL_ACCESS_POINT = 40001
    ILLEGAL_TOPIC = 40002
    ILLEGAL_CONSUMER_GROUP = 40003
    ILLEGAL_MESSAGE_TAG = 40004
    ILLEGAL_MESSAGE_KEY = 40005
    ILLEGAL_MESSAGE_GROUP = 40006
    ILLEGAL_MESSAGE_PROPERTY_KEY = 40007
    INVALID_TRANSACTION_ID = 40008
    ILLEGAL_MESSAGE_ID = 40009
    ILLEGAL_FILTER_EXPRESSION = 40010
    ILLEGAL_INVISIBLE_TIME = 40011
    ILLEGAL_DELIVERY_TIME = 40012
    INVALID_RECEIPT_HANDLE = 40013
    MESSAGE_PROPERTY_CONFLICT_WITH_TYPE = 40014
    UNRECOGNIZED_CLIENT_TYPE = 40015
    MESSAGE_CORRUPTED = 40016
    CLIENT_ID_REQUIRED = 40017
    ILLEGAL_POLLING_TIME = 40018
    UNAUTHORIZED = 40100
    FORBIDDEN = 40300
    NOT_FOUND = 40400
    MESSAGE_NOT_FOUND = 40401
    TOPIC_NOT_FOUND = 40402
    CONSUMER_GROUP_NOT_FOUND = 40403
    PAYLOAD_TOO_LARGE = 41300
    MESSAGE_BODY_TOO_LARGE = 41301
    MESSAGE_BODY_EMPTY = 41302
    TOO_MANY_REQUESTS = 42900
    MESSAGE_PROPERTIES_TOO_LARGE = 43101
    INTERNAL_ERROR = 50000
    INTERNAL_SERVER_ERROR = 50001
    HA_NOT_AVAILABLE = 50002
    NOT_IMPLEMENTED = 50100
    PROXY_TIMEOUT = 50400
    MASTER_PERSISTENCE_TIMEOUT = 50401
    SLAVE_PERSISTENCE_TIMEOUT = 50402
    UNSUPPORTED = 50500
    FAILED_TO_CONSUME_MESSAGE = 60000


class Status(NamedTuple):
    """What became of a call, with words for a person."""

    code: Annotated[Code, 1] = Code.UNSPECIFIED
    message: Annotated[str, 2] = ""


class Resource(NamedTuple):
    """A topic or a group."""

    resource_namespace: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""


class Address(NamedTuple):
    """A host and a port."""

    host: Annotated[str, 1] = ""
    port: Annotated[int, 2] = 0


class Endpoints(NamedTuple):
    """Where a server can be reached: any of these addresses."""

    scheme: Annotated[AddressScheme, 1] = AddressScheme.UNSPECIFIED
    addresses: Annotated[tuple[Address, ...], 2] = ()

    def __str__(self) -> str:
        return ";".join(f"{address.host}:{address.port}" for address in self.addresses)


class Broker(NamedTuple):
    """A broker by its name; `endpoints` is what speaks for it, in a cluster the proxies."""

    name: Annotated[str, 1] = ""
    id: Annotated[int, 2] = 0
    endpoints: Annotated[Endpoints, 3] = Endpoints()


class MessageQueue(NamedTuple):
    """A queue; -1 as id means: whatever queue of that broker."""

    topic: Annotated[Resource, 1] = Resource()
    id: Annotated[int, 2] = 0
    permission: Annotated[Permission, 3] = Permission.UNSPECIFIED
    broker: Annotated[Broker, 4] = Broker()
    accept_message_types: Annotated[tuple[MessageType, ...], 5] = ()


class Assignment(NamedTuple):
    """A queue that a consumer shall receive from."""

    message_queue: Annotated[MessageQueue, 1] = MessageQueue()


class Digest(NamedTuple):
    """A checksum in hexadecimal, upper case."""

    type: Annotated[DigestType, 1] = DigestType.UNSPECIFIED
    checksum: Annotated[str, 2] = ""


class DeadLetterQueue(NamedTuple):
    """Where a dead letter came from."""

    topic: Annotated[str, 1] = ""
    message_id: Annotated[str, 2] = ""


class SystemProperties(NamedTuple):
    """What the system knows of a message."""

    tag: Annotated[str | None, 1] = None
    keys: Annotated[tuple[str, ...], 2] = ()
    message_id: Annotated[str, 3] = ""
    body_digest: Annotated[Digest | None, 4] = None
    body_encoding: Annotated[Encoding, 5] = Encoding.UNSPECIFIED
    message_type: Annotated[MessageType, 6] = MessageType.UNSPECIFIED
    born_timestamp: Annotated[Timestamp | None, 7] = None
    born_host: Annotated[str, 8] = ""
    store_timestamp: Annotated[Timestamp | None, 9] = None
    store_host: Annotated[str, 10] = ""
    delivery_timestamp: Annotated[Timestamp | None, 11] = None
    receipt_handle: Annotated[str | None, 12] = None
    queue_id: Annotated[int, 13] = 0
    queue_offset: Annotated[int | None, 14] = None
    invisible_duration: Annotated[Duration | None, 15] = None
    delivery_attempt: Annotated[int | None, 16] = None
    message_group: Annotated[str | None, 17] = None
    trace_context: Annotated[str | None, 18] = None
    orphaned_transaction_recovery_duration: Annotated[Duration | None, 19] = None
    dead_letter_queue: Annotated[DeadLetterQueue | None, 20] = None
    lite_topic: Annotated[str | None, 21] = None
    priority: Annotated[int | None, 22] = None


class Message(NamedTuple):
    """A message on its way."""

    topic: Annotated[Resource, 1] = Resource()
    user_properties: Annotated[Mapping[str, str], 2] = NO_PROPERTIES
    system_properties: Annotated[SystemProperties, 3] = SystemProperties()
    body: Annotated[bytes, 4] = b""


class FilterExpression(NamedTuple):
    """Which messages a subscription wants."""

    type: Annotated[FilterType, 1] = FilterType.UNSPECIFIED
    expression: Annotated[str, 2] = ""


class SubscriptionEntry(NamedTuple):
    """A topic and which of its messages."""

    topic: Annotated[Resource, 1] = Resource()
    expression: Annotated[FilterExpression, 2] = FilterExpression()


class ExponentialBackoff(NamedTuple):
    """Waits that grow by a factor, up to the longest."""

    initial: Annotated[Duration, 1] = Duration(0)
    max: Annotated[Duration, 2] = Duration(0)
    multiplier: Annotated[float, 3] = 0.0


class CustomizedBackoff(NamedTuple):
    """The wait after each attempt; the last one again and again."""

    next: Annotated[tuple[Duration, ...], 1] = ()


class RetryPolicy(NamedTuple):
    """How often something is tried, and how long after each attempt."""

    max_attempts: Annotated[int, 1] = 0
    exponential_backoff: Annotated[ExponentialBackoff | None, 2] = None
    customized_backoff: Annotated[CustomizedBackoff | None, 3] = None


class Publishing(NamedTuple):
    """The settings of a producer."""

    topics: Annotated[tuple[Resource, ...], 1] = ()
    max_body_size: Annotated[int, 2] = 0
    validate_message_type: Annotated[bool, 3] = False


class Subscription(NamedTuple):
    """The settings of a consumer."""

    group: Annotated[Resource | None, 1] = None
    subscriptions: Annotated[tuple[SubscriptionEntry, ...], 2] = ()
    fifo: Annotated[bool | None, 3] = None
    receive_batch_size: Annotated[int | None, 4] = None
    long_polling_timeout: Annotated[Duration | None, 5] = None


class UA(NamedTuple):
    """Which program a client is, and where it runs."""

    language: Annotated[Language, 1] = Language.UNSPECIFIED
    version: Annotated[str, 2] = ""
    platform: Annotated[str, 3] = ""
    hostname: Annotated[str, 4] = ""


class Metric(NamedTuple):
    """Whether and where a client shall report measurements."""

    on: Annotated[bool, 1] = False
    endpoints: Annotated[Endpoints | None, 2] = None


class Settings(NamedTuple):
    """What a client says of itself, and gets back with what the server decides."""

    client_type: Annotated[ClientType | None, 1] = None
    access_point: Annotated[Endpoints | None, 2] = None
    backoff_policy: Annotated[RetryPolicy | None, 3] = None
    request_timeout: Annotated[Duration | None, 4] = None
    publishing: Annotated[Publishing | None, 5] = None
    subscription: Annotated[Subscription | None, 6] = None
    user_agent: Annotated[UA | None, 7] = None
    metric: Annotated[Metric | None, 8] = None
