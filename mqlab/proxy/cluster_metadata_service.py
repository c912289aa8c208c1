"""What a proxy knows of the settings of topics and groups, asked of any broker and kept for 20 seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mqlab.errors import MQBrokerException, MqlabError
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers.admin import GetSubscriptionGroupConfigRequestHeader, GetTopicConfigRequestHeader
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.topic_config import SubscriptionGroupConfig, TopicConfig
from mqlab.protocol.v2.definition import Code
from mqlab.proxy.errors import ProxyException
from mqlab.proxy.loading_cache import LoadingCache
from mqlab.proxy.response_builder import is_topic_not_exist

if TYPE_CHECKING:
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.topic_route_service import TopicRouteService
    from mqlab.remoting import RemotingClient
    from mqlab.sim import Node

DEFAULT_TIMEOUT_MS = 3_000

UNSPECIFIED, NORMAL, FIFO, DELAY, TRANSACTION, MIXED = "UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"
"""The types that a topic can have (org.apache.rocketmq.common.attribute.TopicMessageType)."""

BodyT = TypeVar("BodyT", bound=JsonBody)


def validate_topic_message_type(expected: str, actual: str) -> None:
    """Refuse a message of a type that its topic was not made for.

    Java: org.apache.rocketmq.proxy.processor.validator.DefaultTopicMessageTypeValidator.
    """
    if actual == UNSPECIFIED or expected not in (actual, MIXED):
        raise ProxyException(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {actual}",
        )


class ClusterMetadataService:
    """Settings of topics and groups (org.apache.rocketmq.proxy.service.metadata.ClusterMetadataService)."""

    def __init__(
        self, node: Node, config: ProxyConfig, routes: TopicRouteService, remoting_client: RemotingClient
    ) -> None:
        self._node = node
        self._cluster = config.rocket_mq_cluster_name
        self._routes = routes
        self._remoting_client = remoting_client
        self._topics: LoadingCache[TopicConfig | None] = LoadingCache(
            node,
            "topic settings",
            self._load_topic,
            config.topic_config_cache_refresh_seconds,
            config.topic_config_cache_expired_seconds,
        )
        self._groups: LoadingCache[SubscriptionGroupConfig | None] = LoadingCache(
            node,
            "group settings",
            self._load_group,
            config.subscription_group_config_cache_refresh_seconds,
            config.subscription_group_config_cache_expired_seconds,
        )

    async def topic_message_type(self, topic: str) -> str:
        """Which messages a topic was made for: NORMAL unless said otherwise, UNSPECIFIED when nobody knows it."""
        try:
            config = await self._topics.get(topic)
        except MqlabError:
            return UNSPECIFIED
        return config.attributes.get("message.type", NORMAL) if config is not None else UNSPECIFIED

    async def subscription_group_config(self, group: str) -> SubscriptionGroupConfig | None:
        """The settings of a group; None when no broker has it yet, or none answers."""
        try:
            return await self._groups.get(group)
        except MqlabError:
            return None

    async def _load_topic(self, topic: str) -> TopicConfig | None:
        header = GetTopicConfigRequestHeader(topic)
        request = RemotingCommand.request(RequestCode.GET_TOPIC_CONFIG, header)
        return await self._ask_one_broker(topic, request, TopicConfig)

    async def _load_group(self, group: str) -> SubscriptionGroupConfig | None:
        header = GetSubscriptionGroupConfigRequestHeader(group)
        request = RemotingCommand.request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header)
        return await self.ask_one_broker_of_cluster(request, SubscriptionGroupConfig)

    async def ask_one_broker_of_cluster(self, request: RemotingCommand, body: type[BodyT]) -> BodyT | None:
        """Ask any broker of the cluster, which has a topic of that name; None when it answers with nothing."""
        return await self._ask_one_broker(self._cluster, request, body)

    async def _ask_one_broker(self, topic: str, request: RemotingCommand, body: type[BodyT]) -> BodyT | None:
        """Ask any broker that has this topic; each has one under its cluster's name."""
        try:
            brokers = (await self._routes.view(topic)).route.broker_datas
        except MqlabError as error:
            if is_topic_not_exist(error):
                return None
            raise
        broker = brokers[self._node.choose("metadata-broker", len(brokers))]
        address = broker.master_addr or broker.broker_addrs[min(broker.broker_addrs)]
        response = await self._remoting_client.invoke_sync(address, request, DEFAULT_TIMEOUT_MS)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", address)
        return body.decode(response.body) if response.body else None
