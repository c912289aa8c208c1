"""What administrators ask about groups: settings, members, progress."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.broker.broker_stats import GROUP_GET_NUMS
from mqlab.broker.errors import RequestError
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import (
    Connection,
    ConsumerConnection,
    ConsumeStats,
    ConsumeStatsList,
    GroupList,
    OffsetWrapper,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
    QuerySubscriptionResponseBody,
)
from mqlab.protocol.codes import LanguageCode, RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicList

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import Handler
    from mqlab.broker.client_channel_info import ClientChannelInfo
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.remoting import Channel


@dataclass(slots=True)
class SubscriptionGroupList(JsonBody):
    """Several groups to create."""

    group_config_list: list[SubscriptionGroupConfig] = field(default_factory=list)


class AdminGroups:
    """The group requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor.

    Differs from RocketMQ: a group with more than 10,000 retry queues is refused.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._groups = broker.subscription_group_manager

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._update_and_create_group,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self._update_and_create_group_list,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self._delete_group,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._get_group_config,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._get_all_group_config,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._get_consumer_connection_list,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self._get_producer_connection_list,
            RequestCode.GET_CONSUME_STATS: self._get_consume_stats,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self._get_all_message_request_mode,
            RequestCode.GET_ALL_PRODUCER_INFO: self._get_all_producer_info,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self._query_topic_consume_by_who,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self._query_topics_by_consumer,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self._query_subscription_by_consumer,
            RequestCode.GET_BROKER_CONSUME_STATS: self._fetch_all_consume_stats,
        }

    # -- settings ---------------------------------------------------------------------------------------------------

    def _update_and_create_group(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        self._groups.update_subscription_group_config(SubscriptionGroupConfig.decode(request.body))
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _update_and_create_group_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        for config in SubscriptionGroupList.decode(request.body).group_config_list:
            self._groups.update_subscription_group_config(config)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _delete_group(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.DeleteSubscriptionGroupRequestHeader)
        self._groups.delete_subscription_group_config(header.group_name)
        self._broker.stats.group_deleted(header.group_name)
        if header.clean_offset:
            self._broker.consumer_offset_manager.remove_offset(header.group_name)
            if self._broker.made_pop is not None:
                self._broker.made_pop.pop_inflight_message_counter.clear_group(header.group_name)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _get_group_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        group = request.header_as(h.GetSubscriptionGroupConfigRequestHeader).group
        config = self._groups.find_subscription_group_config(group)
        if config is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
        return RemotingCommand.response(ResponseCode.SUCCESS, body=config.encode())

    def _get_all_group_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(ResponseCode.SUCCESS, body=self._groups.wrapper().encode())

    def _get_all_message_request_mode(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        manager = self._broker.query_assignment_processor().message_request_mode_manager
        return RemotingCommand.response(ResponseCode.SUCCESS, body=manager.wrapper().encode())

    # -- members ----------------------------------------------------------------------------------------------------

    def _get_consumer_connection_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        group = request.header_as(h.GetConsumerConnectionListRequestHeader).consumer_group
        members = self._broker.consumer_manager.get_consumer_group_info(group)
        if members is None:
            raise RequestError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        body = ConsumerConnection(
            _connections(members.channel_info_table.values()),
            members.subscription_table,
            members.consume_type,
            members.message_model,
            members.consume_from_where,
        )
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _get_producer_connection_list(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        group = request.header_as(h.GetProducerConnectionListRequestHeader).producer_group
        members = self._broker.producer_manager.group_channel_table.get(group)
        if members is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        body = ProducerConnection(_connections(members.values()))
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _get_all_producer_info(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        node = self._broker.node
        groups = self._broker.producer_manager.group_channel_table
        table = {
            group: [
                ProducerInfo(
                    info.client_id,
                    f"/{info.channel.remote_address}",
                    LanguageCode(info.language).name,
                    info.version,
                    node.now_ms() - (node.now_us() - info.last_update_us) // 1_000,
                )
                for info in members.values()
            ]
            for group, members in groups.items()
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=ProducerTableInfo(table).encode())

    def _query_topic_consume_by_who(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """The groups that have progress in a topic.

        As in RocketMQ a topic to which anybody subscribes is told as a group of its own, and a group without progress
        is not told: its table of the groups of a topic is filled with topics.
        """
        topic = request.header_as(h.QueryTopicConsumeByWhoRequestHeader).topic
        groups = self._broker.consumer_offset_manager.which_group_by_topic(topic)
        if self._broker.consumer_manager.query_topic_consume_by_who(topic) and topic not in groups:
            groups = [topic, *groups]
        return RemotingCommand.response(ResponseCode.SUCCESS, body=GroupList(groups).encode())

    def _query_topics_by_consumer(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        group = request.header_as(h.QueryTopicsByConsumerRequestHeader).group
        topics = self._broker.consumer_offset_manager.which_topic_by_consumer(group)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=TopicList(topics, self._broker.store_host).encode())

    def _query_subscription_by_consumer(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.QuerySubscriptionByConsumerRequestHeader)
        wanted = self._broker.consumer_manager.find_subscription_data(header.group, header.topic)
        body = QuerySubscriptionResponseBody(wanted, header.group, header.topic)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    # -- progress ---------------------------------------------------------------------------------------------------

    def _get_consume_stats(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(h.GetConsumeStatsRequestHeader)
        offsets = self._broker.consumer_offset_manager
        topics = [header.topic] if header.topic else offsets.which_topic_by_consumer(header.consumer_group)
        stats = ConsumeStats()
        for topic in topics:
            config = self._broker.topic_config_manager.select_topic_config(topic)
            if config is not None:
                for queue_id in range(config.read_queue_nums):
                    queue = self._queue(topic, queue_id)
                    stats.offset_table[queue] = self._progress(header.consumer_group, topic, queue_id)
                stats.consume_tps += self._consume_tps(header.consumer_group, topic)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=stats.encode())

    def _fetch_all_consume_stats(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """All groups; as in RocketMQ without how far their pulls are, so that all that is not consumed is under way.

        A topic is left out to which a group that is there does not subscribe.
        """
        is_order = request.header_as(h.GetConsumeStatsInBrokerHeader).is_order
        broker = self._broker
        body = ConsumeStatsList(broker_addr=broker.store_host)
        for group in self._groups.subscription_group_table:
            told = []
            members = broker.consumer_manager.get_consumer_group_info(group)
            for topic in broker.consumer_offset_manager.which_topic_by_consumer(group):
                config = broker.topic_config_manager.select_topic_config(topic)
                if config is None or (is_order and not config.order):
                    continue
                if members is not None and members.subscription_table and topic not in members.subscription_table:
                    continue
                queues = range(config.write_queue_nums)
                table = {self._queue(topic, i): self._progress(group, topic, i) for i in queues}
                for progress in table.values():
                    body.total_diff += progress.broker_offset - progress.consumer_offset
                    body.total_inflight_diff -= progress.consumer_offset
                    progress.pull_offset = 0
                told.append(ConsumeStats(table, self._consume_tps(group, topic)))
            body.consume_stats_list.append({group: told})
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _consume_tps(self, group: str, topic: str) -> float:
        """How many messages the group was given a second over the last minute."""
        return self._broker.stats.tps(GROUP_GET_NUMS, f"{topic}@{group}")

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(topic, self._broker.broker_config.broker_name, queue_id)

    def _progress(self, group: str, topic: str, queue_id: int) -> OffsetWrapper:
        store, offsets = self._broker.message_store, self._broker.consumer_offset_manager
        consumed = max(0, offsets.query_offset(group, topic, queue_id))
        last_timestamp = store.get_message_store_timestamp(topic, queue_id, consumed - 1) if consumed else 0
        return OffsetWrapper(
            max(0, store.get_max_offset_in_queue(topic, queue_id)),
            consumed,
            max(0, offsets.query_pull_offset(group, topic, queue_id)),
            max(0, last_timestamp),
        )


def _connections(members: Iterable[ClientChannelInfo]) -> list[Connection]:
    return [
        Connection(info.client_id, info.channel.remote_address, LanguageCode(info.language).name, info.version)
        for info in members
    ]
