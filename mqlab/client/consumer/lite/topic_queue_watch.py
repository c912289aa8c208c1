"""Watching the queues of topics: a lite pull consumer with assigned queues is told when there are others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.service_state import ServiceState
from mqlab.errors import MQClientException
from mqlab.trace.events.client import RouteMissing, TopicQueuesChanged

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.default_lite_pull_consumer_impl import DefaultLitePullConsumerImpl
    from mqlab.client.consumer.lite.what_to_pull import TopicMessageQueueChangeListener
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import PeriodicTask

FIRST_LOOK_MS = 10_000


class TopicQueueWatch:
    """Asks the name server for the queues of watched topics, every 30 s, and compares.

    Java: the part of org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl around
    MonitorMessageQueueChangeThread.
    """

    def __init__(self, owner: DefaultLitePullConsumerImpl) -> None:
        self._owner = owner
        self._node = owner.node
        self.listeners = owner.wanted.topic_listeners
        self._queues: dict[str, list[MessageQueue]] = {}
        self._thread: PeriodicTask | None = None

    def start(self) -> None:
        """Begin to look, after 10 s."""
        interval_ms = self._owner.consumer.topic_metadata_check_interval_millis
        self._thread = self._node.schedule_at_fixed_rate(
            self._look, FIRST_LOOK_MS, interval_ms, "MonitorMessageQueueChangeThread"
        )

    def shutdown(self) -> None:
        """Stop looking whether the queues of a topic have changed."""
        if self._thread is not None:
            self._thread.cancel()

    async def look_first(self) -> None:
        """Note the queues that the watched topics have at the start; MQClientException when one has none."""
        for topic in list(self.listeners):
            self._queues[topic] = await self._owner.fetch_message_queues(topic)

    async def register(self, topic: str, listener: TopicMessageQueueChangeListener) -> None:
        """Watch a topic; a new listener takes the place of the one before."""
        if not topic or listener is None:
            raise MQClientException("Topic or listener is null")
        async with self._owner.monitor:
            self.listeners[topic] = listener
            if self._owner.service_state is ServiceState.RUNNING:
                self._queues[topic] = await self._owner.fetch_message_queues(topic)

    async def _look(self) -> None:
        owner = self._owner
        async with owner.monitor:
            for topic, listener in list(self.listeners.items()):
                try:
                    queues = await owner.fetch_message_queues(topic)
                except MQClientException as error:
                    # As in RocketMQ the topics behind this one wait for the next time, too.
                    if self._node.hooks.on:
                        self._node.hooks.emit(RouteMissing(owner.instance.client_id, topic, str(error)))
                    return
                if queues != self._queues.get(topic):
                    self._queues[topic] = queues
                    if self._node.hooks.on:
                        self._node.hooks.emit(TopicQueuesChanged(owner.group_name, topic, len(queues)))
                    await owner.tell(listener, topic, list(queues))
