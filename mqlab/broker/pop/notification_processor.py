"""Telling clients that there is something to pop, without handing it out: NOTIFICATION."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.pop.pop_checks import AskedQueue, check_asked, check_broker, fill_born_time
from mqlab.broker.pop.pop_long_polling_service import PollingResult, PopLongPollingService
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import NotificationRequestHeader, NotificationResponseHeader
from mqlab.protocol.topics import pop_retry_topic
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.broker.pop.pop_request import PopRequest
    from mqlab.protocol.topic_config import TopicConfig

NO_REMARK_SET = "not set any response code"


class NotificationProcessor(RequestProcessor):
    """NOTIFICATION (org.apache.rocketmq.broker.processor.NotificationProcessor).

    The answer says whether any queue has something, in the order in which a pop would look at them; without anything
    the question waits as a pop does, but no filter keeps it from being woken. Clients that ask before they pop keep
    fewer pops waiting: one answer can start several.
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self._services = services
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._topics = broker.topic_config_manager
        self.pop_long_polling_service = PopLongPollingService(
            broker, self._execute_request_when_wakeup, notify_last=True
        )
        self.waiting: Sized = self.pop_long_polling_service.polling_map

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand | None:
        """The answer, or None when the question waits."""
        fill_born_time(request, self._node.now_ms())
        header = request.header_as(NotificationRequestHeader)
        try:
            check_broker(self._broker)
            asked = AskedQueue(header.consumer_group, header.topic, header.queue_id)
            topic_config = check_asked(self._broker, channel, asked)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.header = NotificationResponseHeader()
            return response
        has_msg, full = self._has_msg(header, topic_config), False
        if not has_msg:
            result = self.pop_long_polling_service.polling(channel, request, header)
            if result is PollingResult.POLLING_SUC:
                return None
            full = result is PollingResult.POLLING_FULL
        return RemotingCommand.response(ResponseCode.SUCCESS, NO_REMARK_SET, NotificationResponseHeader(has_msg, full))

    # -- looking ----------------------------------------------------------------------------------------------------

    def _has_msg(self, header: NotificationRequestHeader, topic_config: TopicConfig) -> bool:
        random_q = self._node.choose("notification-random-q", 100)
        retry_first = random_q % 5 == 0
        if retry_first and self._has_msg_to_retry(header, random_q):
            return True
        if header.queue_id < 0:
            found = self._has_msg_from_topic(topic_config, header, random_q)
        else:
            found = self._has_msg_from_queue(header.topic, header, header.queue_id)
        return found or (not retry_first and self._has_msg_to_retry(header, random_q))

    def _has_msg_to_retry(self, header: NotificationRequestHeader, random_q: int) -> bool:
        config, topic, group = self._config, header.topic, header.consumer_group
        names = [pop_retry_topic(topic, group, config.enable_retry_topic_v2)]
        if config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1:
            names.append(pop_retry_topic(topic, group))
        known = [self._topics.topic_config_table.get(name) for name in names]
        return any(retry is not None and self._has_msg_from_topic(retry, header, random_q) for retry in known)

    def _has_msg_from_topic(self, topic_config: TopicConfig, header: NotificationRequestHeader, random_q: int) -> bool:
        queues = topic_config.read_queue_nums
        return any(
            self._has_msg_from_queue(topic_config.topic_name, header, (random_q + place) % queues)
            for place in range(queues)
        )

    def _has_msg_from_queue(self, topic: str, header: NotificationRequestHeader, queue_id: int) -> bool:
        group = header.consumer_group
        if header.order and self._services.consumer_order_info_manager.check_block(
            header.attempt_id, header.topic, group, queue_id, 0
        ):
            return False
        offset = self._services.pop_offsets.known_offset(topic, group, queue_id)
        return self._broker.message_store.get_max_offset_in_queue(topic, queue_id) > offset

    # -- questions that wait ------------------------------------------------------------------------------------------

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

    def _execute_request_when_wakeup(self, waiting: PopRequest) -> None:
        self._services.execute_when_wakeup(self._process_again, waiting)

    def _process_again(self, waiting: PopRequest) -> Coroutine[Any, Any, None] | None:
        return self._services.respond(waiting, self.process_request(waiting.channel, waiting.request))
