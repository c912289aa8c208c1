"""What the broker knows of one consumer group: its members and what they subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.heartbeat import MessageModel
from mqlab.trace.events.broker import SubscriptionChanged

if TYPE_CHECKING:
    from mqlab.broker.client_channel_info import ClientChannelInfo
    from mqlab.protocol.heartbeat import ConsumeFromWhere, ConsumeType, SubscriptionData
    from mqlab.remoting import Channel
    from mqlab.sim import Node


class ConsumerGroupInfo:
    """The live members of a group and its subscriptions (org.apache.rocketmq.broker.client.ConsumerGroupInfo).

    All members of a group must subscribe to the same: the broker keeps one subscription per topic, that of the member
    which came last with the newest version. A group whose members differ loses messages, and this is why.
    """

    def __init__(
        self,
        node: Node,
        group: str,
        consume_type: ConsumeType,
        message_model: MessageModel,
        consume_from_where: ConsumeFromWhere,
    ) -> None:
        self._node = node
        self.group = group
        self.consume_type = consume_type
        self.message_model = message_model
        self.consume_from_where = consume_from_where
        self.channel_info_table: dict[Channel, ClientChannelInfo] = {}
        self.subscription_table: dict[str, SubscriptionData] = {}

    @property
    def is_broadcasting(self) -> bool:
        """Whether every member gets every message."""
        return self.message_model is MessageModel.BROADCASTING

    def find_channel(self, client_id: str) -> ClientChannelInfo | None:
        """The member with this client id, or None."""
        for info in self.channel_info_table.values():
            if info.client_id == client_id:
                return info
        return None

    def all_client_ids(self) -> list[str]:
        """The client ids of all members, in the order in which they came."""
        return [info.client_id for info in self.channel_info_table.values()]

    def update_channel(
        self,
        info: ClientChannelInfo,
        consume_type: ConsumeType,
        message_model: MessageModel,
        consume_from_where: ConsumeFromWhere,
    ) -> bool:
        """Note that a member is alive; True if it is new."""
        self.consume_type = consume_type
        self.message_model = message_model
        self.consume_from_where = consume_from_where
        known = self.channel_info_table.get(info.channel)
        if known is not None and known.client_id == info.client_id:
            known.last_update_us = self._node.now_us()
            return False
        self.channel_info_table[info.channel] = info
        return known is None

    def update_subscription(self, subscriptions: list[SubscriptionData]) -> bool:
        """Take over what a member subscribes to; True if a topic is new or no longer there.

        A newer version of a known topic replaces the older one in silence.
        """
        updated = False
        for subscription in subscriptions:
            known = self.subscription_table.get(subscription.topic)
            if known is None:
                updated = True
            elif subscription.sub_version <= known.sub_version:
                continue
            self.subscription_table[subscription.topic] = subscription
            self._changed(subscription.topic, subscription.sub_string, subscription.sub_version)
        wanted = {subscription.topic for subscription in subscriptions}
        for topic in [topic for topic in self.subscription_table if topic not in wanted]:
            del self.subscription_table[topic]
            self._changed(topic, "", 0)
            updated = True
        return updated

    def _changed(self, topic: str, expression: str, sub_version: int) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(SubscriptionChanged(self.group, topic, expression, sub_version))

    def __repr__(self) -> str:
        return (
            f"<ConsumerGroupInfo {self.group}: {self.message_model}, {len(self.channel_info_table)} members, "
            f"topics {list(self.subscription_table)}>"
        )
