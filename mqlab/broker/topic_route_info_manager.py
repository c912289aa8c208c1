"""What a broker knows of the queues that a topic has on all brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, ProtocolError, RemotingException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.route import queues_to_subscribe
from mqlab.protocol.topics import is_retry_topic
from mqlab.sim import Lock

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.message import MessageQueue

GET_TOPIC_ROUTE_TIMEOUT_MS = 3_000
LOCK_TIMEOUT_MS = 3_000
FIRST_UPDATE_MS = 1_000


class TopicRouteInfoManager:
    """The routes of the topics that consumers asked about, renewed every 30 s; at most one question at a time.

    Java: org.apache.rocketmq.broker.topic.TopicRouteInfoManager. Differs from RocketMQ: made with the first question,
    it keeps the times that it would have had since the broker's start; what a broker sends to others for which it needs
    routes is absent.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._api = broker.broker_outer_api
        self._lock = Lock("the lock of the name server")
        self.topic_subscribe_info_table: dict[str, list[MessageQueue]] = {}
        period_ms = broker.broker_config.load_balance_poll_name_server_interval
        passed_ms = broker.node.now_ms() - broker.stats.boot_ms - FIRST_UPDATE_MS
        first_ms = period_ms - passed_ms % period_ms if passed_ms >= 0 else -passed_ms
        self._periodic = broker.node.schedule_at_fixed_rate(self._update_all, first_ms, period_ms, "topic routes")

    def shutdown(self) -> None:
        """Stop asking the name servers for routes."""
        self._periodic.cancel()

    async def get_topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """The readable queues of a topic on all brokers; None when no name server tells."""
        queues = self.topic_subscribe_info_table.get(topic)
        if not queues:
            await self._update(topic)
            queues = self.topic_subscribe_info_table.get(topic)
        return queues

    async def _update_all(self) -> None:
        for topic in list(self.topic_subscribe_info_table):
            await self._update(topic)

    async def _update(self, topic: str) -> None:
        """Ask a name server; a topic that it no longer knows is forgotten, unless it is a retry topic.

        Java: org.apache.rocketmq.broker.topic.TopicRouteInfoManager.updateTopicRouteInfoFromNameServer.
        """
        if not await self._lock.acquire(LOCK_TIMEOUT_MS):
            return
        try:
            route = await self._api.get_topic_route_info_from_name_server(topic, GET_TOPIC_ROUTE_TIMEOUT_MS)
            self.topic_subscribe_info_table[topic] = queues_to_subscribe(topic, route)
        except (RemotingException, ProtocolError):
            # As in RocketMQ what was known before goes on to count.
            return
        except MQBrokerException as error:
            if error.response_code == ResponseCode.TOPIC_NOT_EXIST and not is_retry_topic(topic):
                self.topic_subscribe_info_table.pop(topic, None)
        finally:
            self._lock.release()
