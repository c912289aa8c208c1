"""Where queues are, and which of them a consumer shall receive from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.v2.definition import (
    Address,
    AddressScheme,
    Assignment,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    Resource,
    Status,
)
from mqlab.protocol.v2.service import (
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryRouteRequest,
    QueryRouteResponse,
)
from mqlab.proxy.cluster_metadata_service import DELAY, FIFO, MIXED, NORMAL, TRANSACTION
from mqlab.proxy.grpc_validator import validate_consumer_group, validate_topic
from mqlab.proxy.message_queue_selector import ANY_QUEUE
from mqlab.proxy.response_builder import OK

if TYPE_CHECKING:
    from mqlab.protocol.route import QueueData, TopicRouteData
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.proxy.topic_route_service import TopicRouteService

_ACCEPTED = {
    NORMAL: (MessageType.NORMAL,),
    FIFO: (MessageType.FIFO,),
    TRANSACTION: (MessageType.TRANSACTION,),
    DELAY: (MessageType.DELAY,),
    MIXED: (MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION),
}


class RouteActivity:
    """Answers QueryRoute and QueryAssignment (org.apache.rocketmq.proxy.grpc.v2.route.RouteActivity).

    In an answer each broker has the addresses under which the client reaches its proxies: no client ever speaks to a
    broker. An assignment is nobody's own: every member of a group gets the same, and Pop shares the messages out.
    """

    def __init__(self, config: ProxyConfig, routes: TopicRouteService, metadata: ClusterMetadataService) -> None:
        self._config = config
        self._routes = routes
        self._metadata = metadata

    async def query_route(self, ctx: ProxyContext, request: QueryRouteRequest) -> QueryRouteResponse:
        """The queues of a topic, one by one."""
        validate_topic(request.topic)
        topic = request.topic.name
        route = (await self._routes.view(topic)).route
        brokers = self._brokers(ctx, route, request.endpoints)
        accepted = _ACCEPTED.get(await self._metadata.topic_message_type(topic), (MessageType.UNSPECIFIED,))
        queues: list[MessageQueue] = []
        for data in route.queue_datas:
            if data.broker_name not in brokers:
                break
            for broker in brokers[data.broker_name].values():
                queues += _queues_of(data, request.topic, accepted, broker)
        return QueryRouteResponse(OK, tuple(queues))

    async def query_assignment(self, ctx: ProxyContext, request: QueryAssignmentRequest) -> QueryAssignmentResponse:
        """All readable brokers, each as one queue with the id -1; in a group with order, all readable queues."""
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        route = (await self._routes.view(request.topic.name)).route
        group = await self._metadata.subscription_group_config(request.group.name)
        fifo = group is not None and group.consume_message_orderly
        brokers = self._brokers(ctx, route, request.endpoints)
        assignments: list[Assignment] = []
        for data in route.queue_datas:
            broker = brokers.get(data.broker_name, {}).get(MASTER_ID)
            if broker is None or not PermName.is_readable(data.perm) or data.read_queue_nums <= 0:
                continue
            permission = permission_of(data.perm)
            for queue_id in range(data.read_queue_nums) if fifo else (ANY_QUEUE,):
                assignments.append(Assignment(MessageQueue(request.topic, queue_id, permission, broker)))
        if not assignments:
            return QueryAssignmentResponse(Status(Code.FORBIDDEN, "no readable queue"))
        return QueryAssignmentResponse(OK, tuple(assignments))

    def _brokers(
        self, ctx: ProxyContext, route: TopicRouteData, endpoints: Endpoints
    ) -> dict[str, dict[int, Broker]]:
        """Broker name -> broker id -> the broker, with addresses of proxies: from outside, those that the client has
        used.
        """
        keep_port = self._config.use_endpoint_port_from_request or ctx.stream.connection.endpoint.is_outside
        reached = Endpoints(
            endpoints.scheme if endpoints.addresses else AddressScheme.IPV4,
            tuple(
                Address(address.host, address.port if keep_port else self._config.grpc_server_port)
                for address in endpoints.addresses
            ),
        )
        return {
            data.broker_name: {
                broker_id: Broker(data.broker_name, broker_id, reached) for broker_id in data.broker_addrs
            }
            for data in route.broker_datas
        }


def permission_of(perm: int) -> Permission:
    """What a queue's permission bits allow."""
    readable, writeable = PermName.is_readable(perm), PermName.is_writeable(perm)
    if readable and writeable:
        return Permission.READ_WRITE
    if readable:
        return Permission.READ
    return Permission.WRITE if writeable else Permission.NONE


def _queues_of(
    data: QueueData, topic: Resource, accepted: tuple[MessageType, ...], broker: Broker
) -> list[MessageQueue]:
    """The queues of one broker: first those only to read, then those only to write, then those for both.

    Java: org.apache.rocketmq.proxy.grpc.v2.route.RouteActivity.genMessageQueueFromQueueData.
    """
    readable, writeable = PermName.is_readable(data.perm), PermName.is_writeable(data.perm)
    reads = data.read_queue_nums if readable else 0
    writes = data.write_queue_nums if writeable else 0
    both = min(reads, writes)
    none = 0 if readable or writeable else max(1, data.write_queue_nums, data.read_queue_nums)
    permissions = [
        *[Permission.READ] * (reads - both),
        *[Permission.WRITE] * (writes - both),
        *[Permission.READ_WRITE] * both,
        *[Permission.NONE] * none,
    ]
    return [
        MessageQueue(topic, queue_id, permission, broker, accepted) for queue_id, permission in enumerate(permissions)
    ]
