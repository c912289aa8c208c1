"""The pull thread of a client instance: it only sends requests, so one thread serves all queues of all consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mqlab.sim import Queue, Task

if TYPE_CHECKING:
    from mqlab.client.consumer.push.message_request import MessageRequest
    from mqlab.client.consumer.push.pull_request import MQPushConsumerInner
    from mqlab.client.mq_client_instance import MQClientInstance


class PullMessageService:
    """Takes requests for messages off its queue and lets each have its turn at its consumer.

    Java: org.apache.rocketmq.client.impl.consumer.PullMessageService.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance
        self._node = instance.node
        self._requests: Queue[MessageRequest] = Queue("the pull request queue")
        self._task: Task | None = None
        self.stopped = False

    def start(self) -> None:
        self._task = self._node.spawn(self._run(), "PullMessageService")

    def shutdown(self) -> None:
        """End the thread; requests that wait, and those put off, disappear."""
        self.stopped = True
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def execute_pull_request_immediately(self, request: MessageRequest) -> None:
        """Let a request have its turn as soon as the thread is free."""
        if not self.stopped:
            self._requests.put(request)

    def execute_pull_request_later(self, request: MessageRequest, delay_ms: int) -> None:
        """Let a request have its turn after a while."""
        if not self.stopped:
            self._node.timeout(delay_ms, self.execute_pull_request_immediately, request, name="pull later")

    async def _run(self) -> None:
        consumers = self._instance.consumer_table
        while True:
            request = await self._requests.take()
            consumer = consumers.get(request.consumer_group)
            if consumer is not None:
                # Only push consumers make such requests.
                await request.take_turn(cast("MQPushConsumerInner", consumer))

    def __len__(self) -> int:
        return len(self._requests)
