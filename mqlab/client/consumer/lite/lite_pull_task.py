"""The pull loop of one queue of a lite pull consumer: it checks, asks, takes in, and comes again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.lite.assigned_message_queue import UNKNOWN
from mqlab.client.consumer.lite.consume_request_cache import LiteConsumeRequest
from mqlab.client.consumer.pull_api_wrapper import PullResult, PullStatus
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ExpressionType
from mqlab.protocol.message import MEBIBYTE
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.trace.events.client import FlowControlled, MessagesCached, PullPutOff, PullRequested

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.default_lite_pull_consumer_impl import DefaultLitePullConsumerImpl
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import Task

PULL_DELAY_CACHE_FLOW_CONTROL_MS = 50
PULL_DELAY_BROKER_FLOW_CONTROL_MS = 20
PULL_DELAY_PAUSED_MS = 1_000
PULL_DELAY_NO_OFFSET_MS = 3_000

NO_BYTE_LIMIT = 0x7FFF_FFFF


class LitePullTask:
    """Pulls one queue, turn by turn, on a thread of the pull pool: a pull that the broker holds keeps its thread.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.PullTaskImpl. Differs from RocketMQ: an
    interrupt hits only the pull of its own queue; in Java it may hit another one that has got the thread meanwhile.
    """

    def __init__(self, owner: DefaultLitePullConsumerImpl, queue: MessageQueue) -> None:
        self._owner = owner
        self._node = owner.node
        self.message_queue = queue
        self.cancelled = False
        self._waiting: Task | None = None

    def interrupt(self) -> None:
        """Cancel this task, and end the pull that it waits for."""
        self.cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def run(self) -> None:
        """Take one turn, and have the next one scheduled unless this was the last."""
        delay_ms = await self._turn()
        if delay_ms is not None and not self.cancelled:
            self._owner.pull_pool.schedule(self.run, delay_ms)

    async def _turn(self) -> int | None:
        """One turn; the delay until the next, None if there shall be none."""
        owner, queue = self._owner, self.message_queue
        if self.cancelled:
            return None
        if owner.assigned_message_queue.is_paused(queue):
            return self._put_off(PULL_DELAY_PAUSED_MS, "the queue is paused, or not assigned")
        process_queue = owner.assigned_message_queue.process_queue(queue)
        if process_queue is None or process_queue.dropped:
            return None
        process_queue.last_pull_us = self._node.now_us()
        if self._is_flow_controlled(process_queue):
            return PULL_DELAY_CACHE_FLOW_CONTROL_MS
        try:
            offset = await owner.offsets.next_pull_offset(queue)
        except (RemotingException, MQBrokerException, MQClientException) as error:
            return self._put_off(PULL_DELAY_NO_OFFSET_MS, f"no offset to pull from: {error}")
        if self.cancelled or process_queue.dropped:
            return None
        try:
            result = await self._pull(offset)
        except (RemotingException, MQBrokerException, MQClientException) as error:
            return self._put_off(self._delay_after(error), str(error))
        if self.cancelled or process_queue.dropped:
            return None
        await self._take_in(result, process_queue)
        return 0

    # -- before the pull --------------------------------------------------------------------------------------------

    def _is_flow_controlled(self, process_queue: ProcessQueue) -> bool:
        consumer = self._owner.consumer
        cached_mib = process_queue.msg_size // MEBIBYTE
        for reason, cached, limit in (
            ("all", len(self._owner.consume_request_cache) * consumer.pull_batch_size, consumer.pull_threshold_for_all),
            ("count", process_queue.msg_count, consumer.pull_threshold_for_queue),
            ("size", cached_mib, consumer.pull_threshold_size_for_queue),
            ("span", process_queue.max_span(), consumer.consume_max_span),
        ):
            if cached > limit:
                self._owner.flow_control_times[reason] += 1
                if self._node.hooks.on:
                    group = self._owner.group_name
                    self._node.hooks.emit(FlowControlled(group, *self.message_queue, reason, cached, limit))
                return True
        return False

    def _put_off(self, delay_ms: int, reason: str) -> int:
        if self._node.hooks.on:
            self._node.hooks.emit(PullPutOff(self._owner.group_name, *self.message_queue, reason, delay_ms))
        return delay_ms

    def _delay_after(self, error: Exception) -> int:
        if isinstance(error, MQBrokerException) and error.response_code == ResponseCode.FLOW_CONTROL:
            return PULL_DELAY_BROKER_FLOW_CONTROL_MS
        return self._owner.consumer.pull_time_delay_mills_when_exception

    # -- the pull ---------------------------------------------------------------------------------------------------

    async def _pull(self, offset: int) -> PullResult:
        owner, queue = self._owner, self.message_queue
        if offset < 0:
            raise MQClientException("offset < 0: the stored offset could not be read")
        subscription = owner.subscription_of(queue.topic)
        if subscription is None:
            raise MQClientException(f"there is no subscription of topic {queue.topic}")
        result = await self._pull_sync(subscription, offset)
        return owner.pull_api_wrapper.process_pull_result(queue, result, subscription)

    async def _pull_sync(self, subscription: SubscriptionData, offset: int) -> PullResult:
        owner, queue = self._owner, self.message_queue
        consumer, wrapper = owner.consumer, owner.pull_api_wrapper
        found = await wrapper.find_broker_surely(queue)
        header = wrapper.pull_header(
            found,
            queue,
            subscription.sub_string,
            subscription.expression_type,
            0 if ExpressionType.is_tag_type(subscription.expression_type) else subscription.sub_version,
            offset,
            consumer.pull_batch_size,
            NO_BYTE_LIMIT,
            PullSysFlag.build(commit_offset=False, suspend=True, subscription=True, lite_pull=True),
            0,
            consumer.broker_suspend_max_time_millis,
        )
        if self._node.hooks.on:
            self._node.hooks.emit(PullRequested(owner.group_name, *queue, offset, 0, header.sys_flag))
        self._waiting = self._node.world.current
        try:
            return await wrapper.pull_sync(found, header, consumer.consumer_timeout_millis_when_suspend)
        finally:
            self._waiting = None

    async def _take_in(self, result: PullResult, process_queue: ProcessQueue) -> None:
        owner, queue = self._owner, self.message_queue
        assigned = owner.assigned_message_queue
        messages = result.msg_found_list
        if result.pull_status is PullStatus.FOUND and messages and assigned.seek_offset(queue) == UNKNOWN:
            process_queue.put_message(messages)
            owner.consume_request_cache.put(LiteConsumeRequest(messages, queue, process_queue))
            if self._node.hooks.on:
                self._node.hooks.emit(
                    MessagesCached(
                        owner.group_name, *queue, len(messages), process_queue.msg_count, process_queue.msg_size
                    )
                )
        await self._node.preempt("lite-pull.messages-cached")
        assigned.update_pull_offset(queue, result.next_begin_offset, process_queue)

    def __repr__(self) -> str:
        return f"<LitePullTask {self.message_queue}{', cancelled' if self.cancelled else ''}>"
