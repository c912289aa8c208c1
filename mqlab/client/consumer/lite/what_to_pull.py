"""What a lite pull consumer was told to pull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import MessageQueueListener
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.protocol.message import MessageQueue

TopicMessageQueueChangeListener = Callable[[str, "list[MessageQueue]"], object]
"""(topic, its queues): called when a topic got other queues than before."""


class SubscriptionType(Enum):
    """How a lite pull consumer gets its queues: not decided yet, by rebalance, or by hand."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


@dataclass
class WhatToPull:
    """Subscriptions or assigned queues, and who wants to hear of changes; it outlives the process."""

    subscription_type: SubscriptionType = SubscriptionType.NONE
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    message_queue_listener: MessageQueueListener | None = None
    assigned: list[MessageQueue] = field(default_factory=list)
    sub_expression_for_assign: dict[str, SubscriptionData] = field(default_factory=dict)
    topic_listeners: dict[str, TopicMessageQueueChangeListener] = field(default_factory=dict)
