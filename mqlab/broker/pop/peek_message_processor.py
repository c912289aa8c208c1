"""Showing what a pop would find, without handing it out: PEEK_MESSAGE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.pop.pop_checks import AskedQueue, check_asked, check_broker, negative_capacity
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import PeekMessageRequestHeader, PopMessageResponseHeader
from mqlab.protocol.topics import pop_retry_topic
from mqlab.remoting import Channel, RequestProcessor
from mqlab.store import GetMessageStatus

if TYPE_CHECKING:
    from mqlab.broker.pop.pop_parts import PopParts
    from mqlab.protocol.topic_config import TopicConfig

_WRONG_OFFSET = (GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY)


class PeekMessageProcessor(RequestProcessor):
    """PEEK_MESSAGE (org.apache.rocketmq.broker.processor.PeekMessageProcessor).

    No lock, no check point, no offset moves, and nothing waits. What it shows of a retry topic keeps the retry topic's
    name. With the key-value engine it shows messages that are in hand, too: it looks from where the last pop began. The
    header of the answer says only how many messages there are.
    """

    def __init__(self, services: PopParts) -> None:
        broker = services.broker
        self._services = services
        self._broker = broker
        self._node = broker.node
        self._store = broker.message_store

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """What a pop of the group would find now."""
        header = request.header_as(PeekMessageRequestHeader)
        try:
            check_broker(self._broker)
            asked = AskedQueue(header.consumer_group, header.topic, header.queue_id)
            topic_config = check_asked(self._broker, channel, asked)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.header = PopMessageResponseHeader(0, 0, 0, 0)
            return response
        if header.max_msg_nums < 0:
            return rejected(self._node.hooks, channel, request, negative_capacity(header.max_msg_nums))
        records: list[bytes] = []
        rest = 0
        for topic, queue_id in self._queues(header, topic_config):
            if topic == header.topic or len(records) < header.max_msg_nums:
                rest += self._peek(header, topic, queue_id, records)
        if records:
            self._broker.stats.got(header.consumer_group, header.topic, len(records), sum(map(len, records)))
        code = ResponseCode.SUCCESS if records else ResponseCode.PULL_NOT_FOUND
        status = GetMessageStatus.FOUND if records else GetMessageStatus.NO_MESSAGE_IN_QUEUE
        return RemotingCommand.response(code, status.value, PopMessageResponseHeader(0, 0, 0, rest), b"".join(records))

    def _queues(self, header: PeekMessageRequestHeader, topic_config: TopicConfig) -> list[tuple[str, int]]:
        """The queues in the order in which they are looked at: the retry topic first in one request of five."""
        random_q = self._node.choose("peek-random-q", 100)
        normal = [(header.topic, header.queue_id)]
        if header.queue_id < 0:
            normal = _from(random_q, topic_config)
        retry_v2 = self._broker.broker_config.enable_retry_topic_v2
        retry_config = self._broker.topic_config_manager.topic_config_table.get(
            pop_retry_topic(header.topic, header.consumer_group, retry_v2)
        )
        retry = _from(random_q, retry_config) if retry_config is not None else []
        return [*retry, *normal] if random_q % 5 == 0 else [*normal, *retry]

    def _peek(self, header: PeekMessageRequestHeader, topic: str, queue_id: int, records: list[bytes]) -> int:
        """Add what a queue has to the records; how many messages the group has not popped there."""
        room = header.max_msg_nums - len(records)
        offset = self._services.pop_offsets.peeked_offset(topic, header.consumer_group, queue_id)
        rest = self._store.get_max_offset_in_queue(topic, queue_id) - offset
        if room > 0:
            result = self._store.get_message(header.consumer_group, topic, queue_id, offset, room)
            if result is not None and result.status in _WRONG_OFFSET:
                offset = result.next_begin_offset
                result = self._store.get_message(header.consumer_group, topic, queue_id, offset, room)
            if result is not None:
                records += result.messages
        return rest


def _from(random_q: int, topic_config: TopicConfig) -> list[tuple[str, int]]:
    queues = topic_config.read_queue_nums
    return [(topic_config.topic_name, (random_q + place) % queues) for place in range(queues)]
