"""What a client asks of name servers and brokers about queues: which there are, and their offsets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.route import queues_to_subscribe

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.message import MessageQueue

CALL_TIMEOUT_MS = 6_000


class MQAdminImpl:
    """Questions about queues, each asked anew whenever it is put.

    Java: org.apache.rocketmq.client.impl.MQAdminImpl. Differs from RocketMQ: topics are created and messages queried
    elsewhere (a broker of a Lab, its message store), not by clients.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance

    async def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted, as the name server tells them now; MQClientException if none."""
        try:
            route = await self._instance.api.get_topic_route_info_from_name_server(topic, CALL_TIMEOUT_MS)
        except (MQClientException, RemotingException) as error:
            raise MQClientException(
                f"Can not find Message Queue for this topic, {topic}. What to do: create the topic, or see why no "
                f"broker has registered it ({error})."
            ) from error
        queues = sorted(queues_to_subscribe(topic, route))
        if not queues:
            raise MQClientException(f"Can not find Message Queue for this topic, {topic} Namesrv return empty")
        return queues

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the offset of the last message of a queue."""
        api = self._instance.api
        return await self._ask_master(queue, lambda address: api.get_max_offset(address, queue, CALL_TIMEOUT_MS))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message of a queue."""
        api = self._instance.api
        return await self._ask_master(queue, lambda address: api.get_min_offset(address, queue, CALL_TIMEOUT_MS))

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at that time, in ms since 1970, or after it."""
        api = self._instance.api
        return await self._ask_master(
            queue, lambda address: api.search_offset(address, queue, timestamp_ms, CALL_TIMEOUT_MS)
        )

    async def earliest_msg_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message of a queue was stored, in ms since 1970; -1 for an empty queue."""
        api = self._instance.api
        return await self._ask_master(
            queue, lambda address: api.get_earliest_msg_storetime(address, queue, CALL_TIMEOUT_MS)
        )

    async def _ask_master(self, queue: MessageQueue, ask: Callable[[str], Coroutine[Any, Any, int]]) -> int:
        """The answer of the queue's master; MQClientException when it is not known or does not answer."""
        routes = self._instance.routes
        address = routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            await routes.refresh(queue.topic)
            address = routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            raise MQClientException(f"The broker[{queue.broker_name}] not exist")
        try:
            return await ask(address)
        except (RemotingException, MQBrokerException) as error:
            raise MQClientException(f"Invoke Broker[{address}] exception: {error}") from error
