"""What a client says of itself every 30 seconds: its producer groups, its consumer groups, and what they subscribe to.

Java: org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData, ProducerData, ConsumerData, SubscriptionData,
ConsumeType, MessageModel, org.apache.rocketmq.common.consumer.ConsumeFromWhere and
org.apache.rocketmq.remoting.protocol.filter.FilterAPI.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from mqlab.errors import LearnerError
from mqlab.protocol.hashing import java_string_hash
from mqlab.protocol.json_body import JsonBody, json_names


class ConsumeType(StrEnum):
    """How a consumer gets its messages: it pulls by hand, is pushed to, or pops."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Whether the consumers of a group share the messages or each get all of them."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(StrEnum):
    """Where a group begins that has never consumed; the last three are old names that still exist."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"


class ExpressionType:
    """The two languages of subscriptions."""

    TAG = "TAG"
    SQL92 = "SQL92"

    @staticmethod
    def is_tag_type(expression_type: str | None) -> bool:
        """Whether the type is TAG; no type means TAG."""
        return not expression_type or expression_type == ExpressionType.TAG


SUB_ALL = "*"


@dataclass(slots=True)
class SubscriptionData(JsonBody):
    """What one group wants of one topic: the expression, and for tags the set of them with their hash codes.

    `sub_version` is a time stamp in ms; a broker that has seen a newer one answers "not the latest".
    """

    topic: str = ""
    sub_string: str = ""
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str | None = ExpressionType.TAG
    class_filter_mode: bool = False


def build_subscription_data(
    topic: str, expression: str | None, expression_type: str | None = ExpressionType.TAG, sub_version: int = 0
) -> SubscriptionData:
    """The subscription that an expression describes.

    A tag expression is tags joined by `||`; `*`, an empty text or None is everything. SQL92 keeps the text as it is.
    Raises LearnerError, with RocketMQ's text, for an expression that holds no tag and for an empty SQL one.
    """
    if not ExpressionType.is_tag_type(expression_type):
        if not expression:
            raise LearnerError(
                f"Expression can't be null! {expression_type}", "give a condition, for example: a > 5 AND b = 'x'"
            )
        return SubscriptionData(topic, expression, sub_version=sub_version, expression_type=expression_type)
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic, SUB_ALL, sub_version=sub_version)
    parts = expression.split("||")
    if not any(parts):
        raise LearnerError("subString split error", "write tags with || between them, for example: TagA || TagB")
    tags = frozenset(tag for part in parts if (tag := part.strip()))
    codes = frozenset(java_string_hash(tag) for tag in tags)
    return SubscriptionData(topic, expression, tags, codes, sub_version)


@dataclass(slots=True)
class ProducerData(JsonBody):
    """A producer group that lives in the client."""

    group_name: str


@dataclass(slots=True)
class ConsumerData(JsonBody):
    """A consumer group that lives in the client, with its subscriptions."""

    group_name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscription_data_set: list[SubscriptionData] = field(default_factory=list)
    unit_mode: bool = False


@json_names(client_id="clientID")
@dataclass(slots=True)
class HeartbeatData(JsonBody):
    """The body of a heartbeat.

    A fingerprint other than 0 lets the client leave out the subscriptions (`without_sub`) while they do not change.
    Java keeps the groups in sets without an order; here they stay as given.
    """

    client_id: str
    producer_data_set: list[ProducerData] = field(default_factory=list)
    consumer_data_set: list[ConsumerData] = field(default_factory=list)
    heartbeat_fingerprint: int = 0
    without_sub: bool = False

    def compute_heartbeat_fingerprint(self) -> int:
        """The hash of what is subscribed: the same for every client id and every subscription version."""
        consumers = [
            replace(
                consumer,
                subscription_data_set=[replace(sub, sub_version=0) for sub in consumer.subscription_data_set],
            )
            for consumer in self.consumer_data_set
        ]
        plain = HeartbeatData("", self.producer_data_set, consumers)
        return java_string_hash(plain.encode().decode())
