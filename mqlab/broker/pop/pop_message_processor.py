"""Handing out messages for a while: POP_MESSAGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from functools import lru_cache
from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.filter.filter_for import filter_of_pop
from mqlab.broker.filter.message_filter import MessageFilter
from mqlab.broker.pop.pop_checks import AskedQueue, check_asked, check_broker, fill_born_time, negative_capacity
from mqlab.broker.pop.pop_from_queue import PopFromQueue
from mqlab.broker.pop.pop_long_polling_service import (
    LEFT_OVER,
    UNBLOCKED,
    PollingResult,
    PopLongPollingService,
)
from mqlab.broker.pop.pop_work import PopWork
from mqlab.errors import LearnerError
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PopMessageRequestHeader, PopMessageResponseHeader
from mqlab.protocol.heartbeat import (
    ConsumeType,
    MessageModel,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.pop_check_point import POP_ORDER_REVIVE_QUEUE
from mqlab.protocol.topics import pop_retry_topic
from mqlab.remoting import Channel, RequestProcessor
from mqlab.sim.eager import play_at_once
from mqlab.store import GetMessageStatus
from mqlab.trace.events.pop import PopAnswered, PopReceived

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.broker.pop.pop_request import PopRequest
    from mqlab.protocol.topic_config import TopicConfig
    from mqlab.remoting.processor import Processed

MAX_MSG_NUMS = 32
"""A check point has so many bits."""

TOO_OLD_MS = 500
_REFUSED = PopMessageResponseHeader(0, 0, 0, 0)


class PopMessageProcessor(RequestProcessor):
    """POP_MESSAGE (org.apache.rocketmq.broker.processor.PopMessageProcessor).

    A request takes messages from all queues of its topic, or from one, and from the group's retry topic: from that
    first in one request of five, else if the other queues did not fill the batch. All get one pop time. A request that
    finds nothing waits, and is processed from the start when it is woken.
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self._services = services
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._topics = broker.topic_config_manager
        self._consumers = broker.consumer_manager
        self._queue = PopFromQueue(services)
        self._ck_message_number = 0
        self.pop_long_polling_service = PopLongPollingService(broker, self._execute_request_when_wakeup)
        self.waiting: Sized = self.pop_long_polling_service.polling_map
        self.wakes_another: Callable[[PopWork], bool] = something_is_left
        """Whether the next one that waits is woken when a pop is through."""

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Answer a pop that has just come; None when it waits."""
        return self.process(channel, request, first_pass=True)

    def process(self, channel: Channel, request: RemotingCommand, *, first_pass: bool) -> Processed:
        """Answer a pop; None when it waits, a coroutine when a check point's flush has to be waited for."""
        node = self._node
        fill_born_time(request, node.now_ms())
        header = request.header_as(PopMessageRequestHeader)
        if node.hooks.on:
            node.hooks.emit(
                PopReceived(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    header.max_msg_nums,
                    header.invisible_time,
                    header.poll_time,
                    bool(header.order),
                    header.attempt_id or "",
                    request.opaque,
                    channel.remote_address,
                    first_pass,
                )
            )
        self._consumers.compensate_basic_consumer_info(
            header.consumer_group, ConsumeType.CONSUME_POP, MessageModel.CLUSTERING
        )
        try:
            topic_config = self._check(channel, header)
            message_filter = self._filter(header)
        except RequestError as error:
            response = rejected(node.hooks, channel, request, error)
            response.header = _REFUSED
            return response
        if header.max_msg_nums < 0:
            return rejected(node.hooks, channel, request, negative_capacity(header.max_msg_nums))
        revive_qid = self._next_revive_qid(header)
        work = PopWork(channel, request, header, topic_config, message_filter, revive_qid, node.now_ms())
        return play_at_once(self._pop(work))

    # -- checks -----------------------------------------------------------------------------------------------------

    def _check(self, channel: Channel, header: PopMessageRequestHeader) -> TopicConfig:
        """The topic to pop from; RequestError, in RocketMQ's order, with its codes and texts.

        The age of a request is counted from when its client says that it made it: where the broker's clock is ahead by
        more than the polling time, all are refused at once, and a client of RocketMQ pops again without a pause.
        """
        broker, ip = self._broker, self._broker.broker_ip
        if self._node.now_ms() - header.born_time - header.poll_time > TOO_OLD_MS:
            raise RequestError(ResponseCode.POLLING_TIMEOUT, f"the broker[{ip}] pop message is timeout too much")
        check_broker(broker, "pop message")
        if header.max_msg_nums > MAX_MSG_NUMS:
            raise RequestError(
                ResponseCode.INVALID_PARAMETER, f"the broker[{ip}] pop message's num is greater than {MAX_MSG_NUMS}"
            )
        if not broker.message_store_config.timer_wheel_enable:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the broker[{ip}] pop message is forbidden because timerWheelEnable is false",
            )
        return check_asked(broker, channel, AskedQueue(header.consumer_group, header.topic, header.queue_id))

    def _filter(self, header: PopMessageRequestHeader) -> MessageFilter | None:
        """What the group wants, None when that is everything; its subscriptions to topic and retry topic are noted."""
        topic, group = header.topic, header.consumer_group
        try:
            subscription = _subscription(topic, header.exp or "*", header.exp_type if header.exp else None)
        except LearnerError:
            raise _not_parsed() from None
        self._consumers.compensate_subscribe_data(group, topic, subscription)
        retry_topic = self._retry_topic(header)
        kind = header.exp_type if header.exp else None
        self._consumers.compensate_subscribe_data(group, retry_topic, _subscription(retry_topic, "*", kind))
        message_filter = filter_of_pop(self._broker, group, subscription)
        return None if message_filter.wants_all else message_filter

    def _next_revive_qid(self, header: PopMessageRequestHeader) -> int:
        """The revive queue of the request's check points: each in turn; pops in order have none, nor have records."""
        if header.order:
            return POP_ORDER_REVIVE_QUEUE
        if self._config.pop_consumer_kv_service_enable:
            return 0
        number = self._ck_message_number
        self._ck_message_number += 1
        return number % self._config.revive_queue_num

    def _retry_topic(self, header: PopMessageRequestHeader) -> str:
        return pop_retry_topic(header.topic, header.consumer_group, self._config.enable_retry_topic_v2)

    # -- popping ----------------------------------------------------------------------------------------------------

    async def _pop(self, work: PopWork) -> RemotingCommand | None:
        config, header = self._config, work.header
        if config.pop_consumer_kv_service_enable:
            from mqlab.broker.pop.kv.record_requests import take

            service = self._services.pop_consumer_service
            assert service is not None
            return self._answer(work) if await take(service, work, config) else None
        random_q = self._node.choose("pop-random-q", 100)
        need_retry = random_q < config.pop_from_retry_probability
        if need_retry and not work.order:
            await self._pop_retry_topic(work, random_q)
        if header.queue_id < 0:
            await self._pop_topic(work, work.topic_config, random_q, is_retry=False)
        else:
            await self._queue.pop(work, header.topic, header.queue_id, is_retry=False)
        if not need_retry and not work.order and work.room > 0:
            await self._pop_retry_topic(work, random_q)
        return self._answer(work)

    async def _pop_retry_topic(self, work: PopWork, random_q: int) -> None:
        """Pop what was revived, if anything ever was; of two forms of retry topics the older one in every other pop."""
        config = self._config
        older = config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1 and not random_q % 2
        name = pop_retry_topic(work.header.topic, work.group) if older else self._retry_topic(work.header)
        topic_config = self._topics.topic_config_table.get(name)
        if topic_config is not None:
            await self._pop_topic(work, topic_config, random_q, is_retry=True)

    async def _pop_topic(self, work: PopWork, topic_config: TopicConfig, random_q: int, *, is_retry: bool) -> None:
        """Pop all queues of a topic, from a random one on."""
        queues = topic_config.read_queue_nums
        for place in range(queues):
            await self._queue.pop(work, topic_config.topic_name, (random_q + place) % queues, is_retry=is_retry)

    # -- answering --------------------------------------------------------------------------------------------------

    def _answer(self, work: PopWork) -> RemotingCommand | None:
        """What the request is answered with, or None when it waits."""
        header = work.header
        code, status = ResponseCode.SUCCESS, GetMessageStatus.FOUND
        if not work.records:
            result = self.pop_long_polling_service.polling(work.channel, work.request, header, work.message_filter)
            if result is PollingResult.POLLING_SUC:
                self._wake_another(work)
                return None
            full = result is PollingResult.POLLING_FULL
            code = ResponseCode.POLLING_FULL if full else ResponseCode.POLLING_TIMEOUT
            status = GetMessageStatus.NO_MESSAGE_IN_QUEUE
        else:
            self._wake_another(work)
        response_header = PopMessageResponseHeader(
            work.pop_time,
            header.invisible_time,
            work.revive_qid,
            work.rest,
            ";".join(work.start_offset_info),
            ";".join(work.msg_offset_info),
            self._order_count_info(work),
        )
        if self._node.hooks.on:
            self._node.hooks.emit(
                PopAnswered(
                    work.group,
                    header.topic,
                    header.queue_id,
                    work.messages,
                    work.rest,
                    int(code),
                    work.request.opaque,
                    work.channel.remote_address,
                )
            )
        return RemotingCommand.response(code, status.value, response_header, b"".join(work.records))

    def _order_count_info(self, work: PopWork) -> str | None:
        """How often messages popped in order were out before; with records nothing at all where there is none."""
        if not work.order or (self._config.pop_consumer_kv_service_enable and not work.order_count_info):
            return None
        return ";".join(work.order_count_info)

    def _wake_another(self, work: PopWork) -> None:
        """Something is left: let the next one have it that waits for the same queue (or for any)."""
        if self.wakes_another(work):
            header = work.header
            self.pop_long_polling_service.notify_message_arriving(
                header.topic, header.queue_id, work.group, reason=LEFT_OVER
            )

    # -- requests that wait -------------------------------------------------------------------------------------------

    def notify_message_arriving(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tags_code: int | None = None,
        properties: Mapping[str, str] | None = None,
        msg_store_time: int = 0,
        filter_bit_map: bytes | None = None,
    ) -> None:
        """A message has arrived; the queue now reaches up to `max_offset`."""
        self.pop_long_polling_service.notify_message_arriving_with_retry_topic(
            topic, queue_id, max_offset, tags_code, properties, msg_store_time, filter_bit_map
        )

    def notify_queue_is_free(self, topic: str, group: str, queue_id: int) -> bool:
        """A queue is no longer blocked for pops in order: wake one that waits for just this queue."""
        return self.pop_long_polling_service.notify_message_arriving(topic, queue_id, group, reason=UNBLOCKED)

    def notify_long_polling_request_if_need(self, topic: str, group: str, queue_id: int) -> None:
        """Wake one that waits for any queue, else one that waits for this one, if the group has something left there.

        Java: org.apache.rocketmq.broker.processor.PopMessageProcessor.notifyLongPollingRequestIfNeed.
        """
        services, service = self._services, self.pop_long_polling_service
        offset = max(
            services.pop_buffer_merge_service.get_latest_offset(f"{topic}@{group}@{queue_id}"),
            self._broker.consumer_offset_manager.query_offset(group, topic, queue_id),
        )
        if self._broker.message_store.get_max_offset_in_queue(topic, queue_id) <= offset:
            return
        if not service.notify_message_arriving(topic, -1, group, reason=UNBLOCKED):
            service.notify_message_arriving(topic, queue_id, group, reason=UNBLOCKED)
        services.notification_processor.notify_message_arriving(topic, queue_id, -1)

    def _execute_request_when_wakeup(self, waiting: PopRequest) -> None:
        """Process a request that waited once more."""
        self._services.execute_when_wakeup(self._process_again, waiting)

    def _process_again(self, waiting: PopRequest) -> Coroutine[Any, Any, None] | None:
        return self._services.respond(waiting, self.process(waiting.channel, waiting.request, first_pass=False))


def something_is_left(work: PopWork) -> bool:
    """Whether messages lie behind the place up to which a pop has looked."""
    return work.rest > 0


def _not_parsed() -> RequestError:
    return RequestError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")


@lru_cache(maxsize=1024)
def _subscription(topic: str, expression: str, expression_type: str | None) -> SubscriptionData:
    """The subscription that an expression describes; nobody changes it, so many pops share it."""
    return build_subscription_data(topic, expression, expression_type)
