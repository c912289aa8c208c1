"""Answering the one question that clients ask a name server: where are the queues of this topic?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.namesrv.kv_config_manager import ORDER_TOPIC_CONFIG
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import GetRouteInfoRequestHeader
from mqlab.remoting import Channel, RequestProcessor
from mqlab.trace.events.namesrv import RouteQueried

if TYPE_CHECKING:
    from mqlab.namesrv.kv_config_manager import KVConfigManager
    from mqlab.namesrv.namesrv_config import NamesrvConfig
    from mqlab.namesrv.route_info_manager import RouteInfoManager
    from mqlab.sim import Node

STRICT_JSON_VERSION = 401
"""V4_9_4: from here on clients read JSON in which all keys are quoted."""

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


class ClientRequestProcessor(RequestProcessor):
    """GET_ROUTEINFO_BY_TOPIC (org.apache.rocketmq.namesrv.processor.ClientRequestProcessor).

    It has threads of its own, so that clients' questions and brokers' reports do not wait for each other.
    """

    def __init__(self, node: Node, config: NamesrvConfig, routes: RouteInfoManager, kv: KVConfigManager) -> None:
        self._node = node
        self._config = config
        self._routes = routes
        self._kv = kv
        self._started_ms = node.now_ms()

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """The route of the topic, 17 without one."""
        header = request.header_as(GetRouteInfoRequestHeader)
        config = self._config
        if config.need_wait_for_service:
            waited_ms = self._node.now_ms() - self._started_ms
            if waited_ms < config.wait_seconds_for_service * 1_000:
                return self._answer(header.topic, channel, ResponseCode.SYSTEM_ERROR, "name server not ready")
        route = self._routes.pick_up_topic_route_data(header.topic)
        if route is None:
            remark = f"No topic route info in name server for the topic: {header.topic}{FAQ}"
            return self._answer(header.topic, channel, ResponseCode.TOPIC_NOT_EXIST, remark)
        if config.order_message_enable:
            route.order_topic_conf = self._kv.get_kv_config(ORDER_TOPIC_CONFIG, header.topic)
        route.broker_datas = [broker.seen_from(channel.outer_address) for broker in route.broker_datas]
        strict = bool(header.accept_standard_json_only) or request.version >= STRICT_JSON_VERSION
        response = self._answer(header.topic, channel, ResponseCode.SUCCESS, None, len(route.broker_datas))
        response.body = route.encode_standard() if strict else route.encode()
        return response

    def _answer(
        self, topic: str, channel: Channel, code: ResponseCode, remark: str | None, brokers: int = 0
    ) -> RemotingCommand:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(RouteQueried(topic, int(code), brokers, channel.remote_address))
        return RemotingCommand.response(code, remark)
