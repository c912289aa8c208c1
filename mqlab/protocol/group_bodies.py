"""The JSON bodies of a consumer group's members, asking their broker: who is in the group, and locks of queues.

Java: the classes of the same names in org.apache.rocketmq.remoting.protocol.body.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.protocol.heartbeat import SubscriptionData
from mqlab.protocol.json_body import JsonBody, json_names
from mqlab.protocol.message import MessageQueue


@dataclass(slots=True)
class GetConsumerListByGroupResponseBody(JsonBody):
    """The client ids in a consumer group."""

    consumer_id_list: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LockBatchRequestBody(JsonBody):
    """A consumer wants queues for itself, because it consumes in order."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = field(default_factory=list)
    only_this_broker: bool = False


@json_names(lock_ok_mq_set="lockOKMQSet")
@dataclass(slots=True)
class LockBatchResponseBody(JsonBody):
    """The queues it got."""

    lock_ok_mq_set: list[MessageQueue] = field(default_factory=list)


@dataclass(slots=True)
class UnlockBatchRequestBody(JsonBody):
    """The queues it gives back."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = field(default_factory=list)
    only_this_broker: bool = False


@dataclass(slots=True)
class CheckClientRequestBody(JsonBody):
    """Would the broker accept this subscription?"""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None
