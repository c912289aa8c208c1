"""Heartbeats, farewells, and whether a subscription would be accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.client_channel_info import ClientChannelInfo
from mqlab.broker.errors import RequestError
from mqlab.broker.filter.filter_for import check_expression, check_expression_type
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.group_bodies import CheckClientRequestBody
from mqlab.protocol.headers import (
    IS_SUB_CHANGE,
    IS_SUPPORT_HEART_BEAT_V2,
    UnregisterClientRequestHeader,
    UnregisterClientResponseHeader,
)
from mqlab.protocol.heartbeat import ConsumerData, ConsumeType, HeartbeatData
from mqlab.protocol.sysflag import PermName, TopicSysFlag
from mqlab.protocol.topics import retry_topic
from mqlab.remoting import Channel, RequestProcessor
from mqlab.trace.events.broker import HeartbeatReceived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts


class ClientManageProcessor(RequestProcessor):
    """HEART_BEAT, UNREGISTER_CLIENT and CHECK_CLIENT_CONFIG.

    Java: org.apache.rocketmq.broker.processor.ClientManageProcessor. A heartbeat makes its groups known, creates the
    retry topic of each consumer group, and keeps the client from being dropped. With a fingerprint (heartbeat V2) a
    client may leave out subscriptions; the answer says whether the group had another fingerprint before. As in RocketMQ
    a group without any has none that differs, also when this broker has never been told its subscriptions.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node
        self._fingerprints: dict[str, int] = {}

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Answer one of the three."""
        if request.code == RequestCode.HEART_BEAT:
            return self._heart_beat(channel, request)
        if request.code == RequestCode.UNREGISTER_CLIENT:
            return self._unregister_client(channel, request)
        return self._check_client_config(request)

    # -- heartbeats -------------------------------------------------------------------------------------------------

    def _heart_beat(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        heartbeat = HeartbeatData.decode(request.body)
        node = self._node
        if node.hooks.on:
            node.hooks.emit(
                HeartbeatReceived(
                    heartbeat.client_id, len(heartbeat.producer_data_set), len(heartbeat.consumer_data_set)
                )
            )
        sub_change = not heartbeat.heartbeat_fingerprint
        for consumer in heartbeat.consumer_data_set:
            if self._is_rejected(consumer):
                continue
            known = self._fingerprints.get(consumer.group_name, heartbeat.heartbeat_fingerprint)
            if known != heartbeat.heartbeat_fingerprint:
                sub_change = True
            self._fingerprints[consumer.group_name] = heartbeat.heartbeat_fingerprint
            info = ClientChannelInfo(channel, heartbeat.client_id, request.language, request.version, node.now_us())
            self._register_consumer(info, consumer, heartbeat)
        for producer in heartbeat.producer_data_set:
            info = ClientChannelInfo(channel, heartbeat.client_id, request.language, request.version, node.now_us())
            self._broker.producer_manager.register_producer(producer.group_name, info)
        response = RemotingCommand.response(ResponseCode.SUCCESS)
        response.add_ext_field(IS_SUPPORT_HEART_BEAT_V2, "true")
        response.add_ext_field(IS_SUB_CHANGE, "true" if sub_change else "false")
        return response

    def _is_rejected(self, consumer: ConsumerData) -> bool:
        """Is this a consumer that pulls by itself, and the broker wants none?"""
        is_active = consumer.consume_type == ConsumeType.CONSUME_ACTIVELY
        return is_active and self._broker.broker_config.reject_pull_consumer_enable

    def _register_consumer(self, info: ClientChannelInfo, consumer: ConsumerData, heartbeat: HeartbeatData) -> None:
        broker = self._broker
        group = broker.subscription_group_manager.find_subscription_group_config(consumer.group_name)
        if group is None:
            return
        topics = broker.topic_config_manager
        topics.create_topic_in_send_message_back_method(
            retry_topic(consumer.group_name),
            group.retry_queue_nums,
            PermName.READ_WRITE,
            TopicSysFlag.build(False, True) if consumer.unit_mode else 0,
            order=any(topics.is_order_topic(subscribed.topic) for subscribed in consumer.subscription_data_set),
        )
        broker.consumer_manager.register_consumer(
            consumer.group_name,
            info,
            consumer.consume_type,
            consumer.message_model,
            consumer.consume_from_where,
            consumer.subscription_data_set,
            notify=group.notify_consumer_ids_changed_enable,
            update_subscription=not heartbeat.without_sub,
        )

    # -- farewells --------------------------------------------------------------------------------------------------

    def _unregister_client(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(UnregisterClientRequestHeader)
        broker = self._broker
        if header.producer_group is not None:
            broker.producer_manager.unregister_producer(header.producer_group, channel, header.client_id)
        if header.consumer_group is not None:
            group = broker.subscription_group_manager.find_subscription_group_config(header.consumer_group)
            notify = group is None or group.notify_consumer_ids_changed_enable
            broker.consumer_manager.unregister_consumer(header.consumer_group, channel, notify=notify)
        return RemotingCommand.response(ResponseCode.SUCCESS, None, UnregisterClientResponseHeader())

    # -- checks -----------------------------------------------------------------------------------------------------

    def _check_client_config(self, request: RemotingCommand) -> RemotingCommand:
        subscription = CheckClientRequestBody.decode(request.body).subscription_data
        try:
            check_expression_type(self._broker.broker_config, subscription.expression_type)
            check_expression(subscription)
        except RequestError as error:
            return RemotingCommand.response(error.code, error.remark)
        return RemotingCommand.response(ResponseCode.SUCCESS)
