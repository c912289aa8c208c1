"""The routes that a proxy knows, each kept for 20 seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQClientException
from mqlab.protocol.codes import ResponseCode
from mqlab.proxy.loading_cache import LoadingCache
from mqlab.proxy.message_queue_selector import MessageQueueView
from mqlab.proxy.response_builder import is_topic_not_exist
from mqlab.trace.events.proxy import ProxyRouteLoaded

if TYPE_CHECKING:
    from mqlab.client.mq_client_api import MQClientAPIImpl
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.sim import Node

ROUTE_TIMEOUT_MS = 3_000

FAQ = "\nFor more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
"""What Java's clients put behind an error (org.apache.rocketmq.common.help.FAQUrl.attachDefaultURL)."""


class TopicRouteService:
    """Views of topics by name, asked of the name server.

    Java: org.apache.rocketmq.proxy.service.route.ClusterTopicRouteService.

    That there is no such topic is remembered, too: a topic made later is seen by the second call after 20 s. While no
    name server answers, old routes stay in use.
    """

    def __init__(self, node: Node, config: ProxyConfig, api: MQClientAPIImpl) -> None:
        self._node = node
        self._api = api
        self._cache: LoadingCache[MessageQueueView | None] = LoadingCache(
            node,
            "routes",
            self._load,
            config.topic_route_service_cache_refresh_seconds,
            config.topic_route_service_cache_expired_seconds,
        )

    async def _load(self, topic: str) -> MessageQueueView | None:
        view = None
        try:
            route = await self._api.get_topic_route_info_from_name_server(topic, ROUTE_TIMEOUT_MS)
            if route.queue_datas and route.broker_datas:
                view = MessageQueueView(self._node, topic, route)
        except MQClientException as error:
            if not is_topic_not_exist(error):
                raise
        if self._node.hooks.on:
            queues = len(view.read_selector.queues) if view is not None else 0
            self._node.hooks.emit(ProxyRouteLoaded(topic, queues))
        return view

    async def view(self, topic: str) -> MessageQueueView:
        """What is known of a topic; MQClientException with TOPIC_NOT_EXIST when there is none.

        Java: org.apache.rocketmq.proxy.service.route.TopicRouteService.getAllMessageQueueView.
        """
        view = await self._cache.get(topic)
        if view is None:
            raise MQClientException(
                f"No topic route info in name server for the topic: {topic}{FAQ}", int(ResponseCode.TOPIC_NOT_EXIST)
            )
        return view

    async def broker_addr(self, broker_name: str) -> str | None:
        """Where a broker's master is, by the route of the topic that each broker has under its own name.

        Java: org.apache.rocketmq.proxy.service.route.ClusterTopicRouteService.getBrokerAddr.
        """
        return (await self.view(broker_name)).master_addr(broker_name)
