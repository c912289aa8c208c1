"""Which consumers are online, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.consumer_group_info import ConsumerGroupInfo
from mqlab.protocol.heartbeat import ConsumeFromWhere
from mqlab.trace.events.broker import ClientExpired, ClientRegistered, ClientUnregistered

if TYPE_CHECKING:
    from mqlab.broker.client_channel_info import ClientChannelInfo
    from mqlab.broker.default_consumer_ids_change_listener import DefaultConsumerIdsChangeListener
    from mqlab.protocol.heartbeat import ConsumeType, MessageModel, SubscriptionData
    from mqlab.remoting import Channel
    from mqlab.sim import Node

ROLE = "consumer"


class ConsumerManager:
    """The groups that have members online, and who they are (org.apache.rocketmq.broker.client.ConsumerManager).

    The members of a group are told when one joins, leaves in good order, or its connection closes. They are not told
    when the scan drops a silent one: they find out at their own next rebalance, as the real broker's do nearly
    always.
    """

    def __init__(self, node: Node, listener: DefaultConsumerIdsChangeListener, channel_expired_timeout_ms: int) -> None:
        self._node = node
        self._listener = listener
        self._expired_us = channel_expired_timeout_ms * 1_000
        self.consumer_table: dict[str, ConsumerGroupInfo] = {}
        self.consumer_compensation_table: dict[str, ConsumerGroupInfo] = {}
        """What requests themselves said of their groups; a consumer that pops need not send heartbeats here. Unlike in
        RocketMQ, where it is forgotten ten minutes later, it stays for as long as the broker runs."""

    def get_consumer_group_info(self, group: str) -> ConsumerGroupInfo | None:
        """The group, or None while nobody of it is online."""
        return self.consumer_table.get(group)

    def find_channel(self, group: str, client_id: str) -> ClientChannelInfo | None:
        """A member of a group by its client id, or None."""
        info = self.consumer_table.get(group)
        return info.find_channel(client_id) if info is not None else None

    def find_subscription_data(self, group: str, topic: str) -> SubscriptionData | None:
        """What the group wants of a topic, or None; what its requests said counts where heartbeats say nothing."""
        for table in (self.consumer_table, self.consumer_compensation_table):
            info = table.get(group)
            if info is not None and topic in info.subscription_table:
                return info.subscription_table[topic]
        return None

    def compensate_basic_consumer_info(self, group: str, consume_type: ConsumeType, model: MessageModel) -> None:
        """A request shows how its group consumes."""
        info = self.consumer_compensation_table.get(group)
        if info is None:
            where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
            info = ConsumerGroupInfo(self._node, group, consume_type, model, where)
            self.consumer_compensation_table[group] = info
        info.consume_type = consume_type
        info.message_model = model

    def compensate_subscribe_data(self, group: str, topic: str, subscription: SubscriptionData) -> None:
        """A request of a group that is known here says what it wants of a topic."""
        self.consumer_compensation_table[group].subscription_table[topic] = subscription

    def query_topic_consume_by_who(self, topic: str) -> list[str]:
        """The online groups that subscribe to a topic."""
        return [group for group, info in self.consumer_table.items() if topic in info.subscription_table]

    def register_consumer(
        self,
        group: str,
        info: ClientChannelInfo,
        consume_type: ConsumeType,
        message_model: MessageModel,
        consume_from_where: ConsumeFromWhere,
        subscriptions: list[SubscriptionData],
        *,
        notify: bool = True,
        update_subscription: bool = True,
    ) -> bool:
        """Note a heartbeat's consumer; True (and its group is told) if it is new or the group's topics changed."""
        members = self.consumer_table.get(group)
        if members is None:
            members = ConsumerGroupInfo(self._node, group, consume_type, message_model, consume_from_where)
            self.consumer_table[group] = members
        is_new = members.update_channel(info, consume_type, message_model, consume_from_where)
        if is_new and self._node.hooks.on:
            self._node.hooks.emit(ClientRegistered(info.client_id, group, ROLE, info.channel.remote_address))
        changed = members.update_subscription(subscriptions) if update_subscription else False
        if (is_new or changed) and notify and not members.is_broadcasting:
            self._listener.group_changed(members)
        if update_subscription:
            self._listener.group_registered(group, subscriptions)
        return is_new or changed

    def unregister_consumer(self, group: str, channel: Channel, *, notify: bool = True) -> None:
        """A consumer leaves in good order."""
        self._leave(group, channel, "asked", notify=notify)

    def do_channel_close_event(self, channel: Channel) -> None:
        """A connection has ended: its clients leave all their groups."""
        for group in [group for group, info in self.consumer_table.items() if channel in info.channel_info_table]:
            self._leave(group, channel, "channel closed", notify=True)

    def _leave(self, group: str, channel: Channel, reason: str, *, notify: bool) -> None:
        members = self.consumer_table.get(group)
        if members is None:
            return
        gone = members.channel_info_table.pop(channel, None)
        if gone is not None and self._node.hooks.on:
            self._node.hooks.emit(ClientUnregistered(gone.client_id, group, ROLE, reason))
        if not members.channel_info_table:
            del self.consumer_table[group]
            self._listener.group_unregistered(group)
        if notify and not members.is_broadcasting:
            self._listener.group_changed(members)

    def scan_not_active_channel(self) -> list[Channel]:
        """Drop every member that was silent for too long; returns the channels that are to be closed."""
        now_us = self._node.now_us()
        silent: list[Channel] = []
        for group, members in list(self.consumer_table.items()):
            for channel, info in list(members.channel_info_table.items()):
                silent_us = now_us - info.last_update_us
                if silent_us > self._expired_us:
                    del members.channel_info_table[channel]
                    silent.append(channel)
                    if self._node.hooks.on:
                        self._node.hooks.emit(ClientExpired(info.client_id, group, ROLE, silent_us // 1_000))
            if not members.channel_info_table:
                del self.consumer_table[group]
        return silent
