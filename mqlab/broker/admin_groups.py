"""What administrators ask about groups: settings, members, progress."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.protocol import headers as h
from mqlab.protocol.bodies import Connection, ConsumerConnection, ConsumeStats, OffsetWrapper, ProducerConnection
from mqlab.protocol.codes import LanguageCode, RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topic_config import SubscriptionGroupConfig

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
                    queue = MessageQueue(topic, self._broker.broker_config.broker_name, queue_id)
                    stats.offset_table[queue] = self._progress(header.consumer_group, topic, queue_id)
        return RemotingCommand.response(ResponseCode.SUCCESS, body=stats.encode())

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
