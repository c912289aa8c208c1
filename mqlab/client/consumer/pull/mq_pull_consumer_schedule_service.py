"""The schedule service: it runs the application's pull task for each queue, and follows the rebalance."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.listener import warn_that_listener_raised
from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer
from mqlab.client.consumer.pull.pull_task import PullTaskCallback, PullTaskContext, PullTaskFunction, pull_task_function
from mqlab.client.consumer.scheduled_thread_pool import ScheduledThreadPool
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError, SimulationError
from mqlab.protocol.heartbeat import MessageModel
from mqlab.sim import public_call
from mqlab.trace.events.client import (
    PullTaskEnded,
    PullTaskFailed,
    PullTaskFinished,
    PullTaskScheduled,
    PullTaskStarted,
)

if TYPE_CHECKING:
    from mqlab.client.consumer.pull.default_mq_pull_consumer_impl import DefaultMQPullConsumerImpl
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import Node

DELAY_AFTER_EXCEPTION_MS = 1_000


class PullTaskImpl:
    """The pull task of one queue.

    Java: org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService.PullTaskImpl.
    """

    def __init__(self, service: MQPullConsumerScheduleService, message_queue: MessageQueue) -> None:
        self._service = service
        self._began_us = 0
        self.message_queue = message_queue
        self.cancelled = False

    def run(self) -> Coroutine[Any, Any, None] | None:
        """Call the application's task once; a coroutine keeps the thread until it has ended."""
        service = self._service
        if self.cancelled:
            service.report_ended(self, "it was cancelled")
            return None
        callback = service.callback_table.get(self.message_queue.topic)
        if callback is None:
            service.report_ended(self, "no callback is registered for the topic")
            return None
        context = PullTaskContext(service.default_mq_pull_consumer)
        self._began_us = service.node.now_us()
        if service.node.hooks.on:
            service.node.hooks.emit(PullTaskStarted(service.group_name, *self.message_queue))
        try:
            work = callback(self.message_queue, context)
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a task raises means: once more in a second
            self._failed(context, error)
            return None
        if isinstance(work, Awaitable):
            return self._wait(work, context)
        self._finished(context)
        return None

    async def _wait(self, work: Awaitable[object], context: PullTaskContext) -> None:
        try:
            await work
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # as above
            self._failed(context, error)
        else:
            self._finished(context)

    def _finished(self, context: PullTaskContext) -> None:
        service = self._service
        if service.node.hooks.on:
            cost_us = service.node.now_us() - self._began_us
            service.node.hooks.emit(PullTaskFinished(service.group_name, *self.message_queue, cost_us))
        self._once_more(context)

    def _failed(self, context: PullTaskContext, error: Exception) -> None:
        context.pull_next_delay_time_millis = DELAY_AFTER_EXCEPTION_MS
        self._service.report_failed(self, error, self._service.node.now_us() - self._began_us)
        self._once_more(context)

    def _once_more(self, context: PullTaskContext) -> None:
        if self.cancelled:
            self._service.report_ended(self, "it was cancelled while it ran")
        else:
            self._service.schedule(self, context.pull_next_delay_time_millis)

    def __repr__(self) -> str:
        return f"<PullTaskImpl {self.message_queue}{', cancelled' if self.cancelled else ''}>"


class MQPullConsumerScheduleService:
    """Runs a pull task for each queue of the consumer's share; 200 ms after its end a task begins again.

        service = MQPullConsumerScheduleService(node, "please_rename_group", namesrv_addr="10.0.0.1:9876")
        service.register_pull_task_callback("TopicTest", task)
        await service.start()

    `settings` are those of its pull consumer, which is `default_mq_pull_consumer`. Java:
    org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService. Differs from RocketMQ: a callback for a new topic
    is refused after the start, where it would wait for ever.
    """

    call_name = "service"

    def __init__(self, node: Node, consumer_group: str, *, pull_thread_nums: int = 20, **settings: Any) -> None:
        if type(pull_thread_nums) is not int or pull_thread_nums < 1:
            raise LearnerError(f"pull_thread_nums={pull_thread_nums!r} is not a number of threads", "give 1 or more")
        self.node = node
        self.pull_thread_nums = pull_thread_nums
        self.default_mq_pull_consumer = DefaultMQPullConsumer(node, consumer_group, **settings)
        self.callback_table: dict[str, PullTaskFunction] = {}
        """The application's task of each topic."""
        self._told: set[str] = set()
        self._begin_own_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this service was given, at each restart."""
        self.default_mq_pull_consumer.begin_life()
        self._begin_own_life()

    def _begin_own_life(self) -> None:
        self.task_table: dict[MessageQueue, PullTaskImpl] = {}
        """The tasks that run again and again, by queue."""
        self.scheduled_thread_pool: ScheduledThreadPool | None = None

    @property
    def group_name(self) -> str:
        return self.default_mq_pull_consumer.consumer_group

    @property
    def message_model(self) -> MessageModel:
        """Clustering: tasks for the consumer's share of the queues. Broadcasting: tasks for all."""
        return self.default_mq_pull_consumer.message_model

    @message_model.setter
    def message_model(self, model: MessageModel) -> None:
        self.default_mq_pull_consumer.message_model = model

    @property
    def impl(self) -> DefaultMQPullConsumerImpl:
        """What stands behind its consumer."""
        return self.default_mq_pull_consumer.impl

    # -- start and end ----------------------------------------------------------------------------------------------

    def register_pull_task_callback(self, topic: str, callback: PullTaskCallback | PullTaskFunction) -> None:
        """Run this task for the queues of a topic; a running service takes another task for a topic that it has.

        Java: org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService.registerPullTaskCallback.
        """
        function = pull_task_function(self.group_name, callback)
        if self.impl.service_state is ServiceState.RUNNING and topic not in self.callback_table:
            raise LearnerError(
                f"the service runs already, and would never run a task for {topic!r}",
                "register the tasks of all topics before the start",
            )
        self.default_mq_pull_consumer.register_message_queue_listener(topic)
        self.callback_table[topic] = function

    @public_call
    async def start(self) -> None:
        """Make the pool, listen to the rebalance, and start the consumer; tasks begin with the first rebalance."""
        name = f"PullMsgThread-{self.group_name}"
        self.scheduled_thread_pool = ScheduledThreadPool(self.node, name, self.pull_thread_nums)
        self.default_mq_pull_consumer.message_queue_listener = self._message_queue_changed
        await self.impl.start()

    @public_call
    async def shutdown(self) -> None:
        """End the service: no task begins again, and the consumer leaves.

        A task that waits for its time runs once more, as in RocketMQ; its consumer refuses it.

        Java: org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService.shutdown.
        """
        if self.scheduled_thread_pool is not None:
            self.scheduled_thread_pool.shutdown()
        await self.impl.shutdown()

    # -- tasks ------------------------------------------------------------------------------------------------------

    def _message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        self.put_task(topic, mq_all if self.message_model is MessageModel.BROADCASTING else mq_divided)

    def put_task(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Cancel the tasks of the topic's other queues, and start one at once for each queue that has none.

        Java: org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService.putTask.
        """
        wanted = set(queues)
        for queue in [queue for queue in self.task_table if queue.topic == topic and queue not in wanted]:
            self.task_table.pop(queue).cancelled = True
        for queue in queues:
            if queue not in self.task_table:
                task = self.task_table[queue] = PullTaskImpl(self, queue)
                self.schedule(task, 0)

    def schedule(self, task: PullTaskImpl, delay_ms: int) -> None:
        """Let a task run in `delay_ms`; after the shutdown it has ended."""
        pool = self.scheduled_thread_pool
        if pool is None or not pool.schedule(task.run, delay_ms):
            self.report_ended(task, "the service does not run")
        elif self.node.hooks.on:
            self.node.hooks.emit(PullTaskScheduled(self.group_name, *task.message_queue, delay_ms))

    # -- telling ----------------------------------------------------------------------------------------------------

    def report_ended(self, task: PullTaskImpl, reason: str) -> None:
        """Tell that a task will not run again."""
        if self.node.hooks.on:
            self.node.hooks.emit(PullTaskEnded(self.group_name, *task.message_queue, reason))

    def report_failed(self, task: PullTaskImpl, error: Exception, cost_us: int) -> None:
        """Tell that a task raised an error: the event each time, the warning once for each place."""
        if self.node.hooks.on:
            reason = f"{type(error).__name__}: {error}"
            self.node.hooks.emit(PullTaskFailed(self.group_name, *task.message_queue, reason, cost_us))
        if self.impl.service_state is ServiceState.RUNNING:
            hint = "RocketMQ only logs it, and runs the task again in 1 s."
            warn_that_listener_raised(self.group_name, error, self._told, "the pull task", hint)

    def __repr__(self) -> str:
        return (
            f"<MQPullConsumerScheduleService {self.group_name} on {self.node.name}: {self.impl.service_state}, "
            f"{len(self.task_table)} tasks>"
        )
