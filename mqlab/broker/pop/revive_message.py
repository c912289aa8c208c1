"""Bringing back a message that was popped and never acknowledged: its copy for the retry topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.errors import RecordError
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.message import MessageConst
from mqlab.protocol.pop_check_point import REVIVE_GROUP, PopCheckPoint
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.record import decode_record
from mqlab.protocol.topics import is_retry_topic, pop_retry_topic
from mqlab.store import MessageExtBrokerInner
from mqlab.trace.events.pop import MessageNotRevived, MessageRevived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.message import MessageExt

RETRY_QUEUE_NUM = 1


def retry_copy(
    broker: BrokerParts, original: MessageExt, topic: str, group: str, pop_time: int
) -> MessageExtBrokerInner:
    """What is stored for the next try of a message that lies in `topic` and was popped at `pop_time` (ms since 1970).

    A message of a retry topic goes there again. The names of its properties stand in the order in which a Java broker
    reads one table and fills the other, which decides about the bytes.
    """
    if not is_retry_topic(topic):
        topic = pop_retry_topic(topic, group, broker.broker_config.enable_retry_topic_v2)
    properties = {MessageConst.TAGS: original.tags} if original.tags is not None else {}
    for name in java_map_order(original.properties, DECODED_MAP_CAPACITY):
        properties[name] = original.properties[name]
    if original.reconsume_times == 0 or MessageConst.FIRST_POP_TIME not in properties:
        properties[MessageConst.FIRST_POP_TIME] = str(pop_time)
    return MessageExtBrokerInner(
        topic,
        original.body,
        queue_id=0,
        flag=original.flag,
        sys_flag=original.sys_flag,
        properties=properties,
        properties_string=encode_properties(properties, NEW_MAP_CAPACITY),
        born_timestamp=original.born_timestamp,
        born_host=broker.store_host,
        store_host=broker.store_host,
        reconsume_times=original.reconsume_times + 1,
    )


class ReviveMessage:
    """Puts un-acknowledged messages into retry topics (PopReviveService.reviveRetry and what it calls).

    There is no last try and no dead letter here: who pops a message too often has to end it.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.reviveRetry.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self.broker = broker
        self._node = broker.node

    async def revive(self, ck: PopCheckPoint, offset: int) -> str:
        """Bring back the message at this offset of the check point's queue; why it has to be tried again, or "".

        For a message that is gone nothing has to be done.
        """
        if ck.broker_name != self.broker.broker_config.broker_name:
            return f"it lies on {ck.broker_name}"
        original = self.get_biz_message(ck, offset)
        if original is None:
            self.emit_not_revived(ck, offset, "it is no longer there")
            return ""
        copy = retry_copy(self.broker, original, ck.topic or "", ck.group or "", ck.pop_time)
        # A message that was delayed still says so: then the store parks its copy, under another topic.
        retry_topic = copy.topic
        self.add_retry_topic_if_not_exist(retry_topic, ck.group or "")
        result = await self.broker.message_store.put_and_wait(copy)
        if not result.is_stored:
            return f"its copy was not stored: {result.status.value}"
        self.broker.pop.pop_inflight_message_counter.decrement_check_point(ck)
        self.broker.stats.put(copy.topic, 1, result.wrote_bytes)
        self._emit_revived(ck, original, copy, retry_topic)
        return ""

    def get_biz_message(self, ck: PopCheckPoint, offset: int) -> MessageExt | None:
        """The message at this offset of the check point's queue; None when it is gone.

        As in RocketMQ it is the first one that can be read from there on: where the log has lost the message itself,
        but the queue still knows it, that is another one. Where an entry that a loss of power left points into the
        middle of a record, there is none (EscapeBridge.decodeMsgList).
        """
        result = self.broker.message_store.get_message(REVIVE_GROUP, ck.topic or "", ck.queue_id, offset, 1)
        if result is None or not result.messages:
            return None
        try:
            message = decode_record(result.messages[0], 0, decompress=False)
        except RecordError:
            return None
        message.queue_offset = result.queue_offsets[0]
        return message

    def add_retry_topic_if_not_exist(self, topic: str, group: str) -> None:
        """Create a group's retry topic, with the group at its beginning.

        Java: org.apache.rocketmq.broker.processor.PopReviveService.addRetryTopicIfNotExist.
        """
        topics, offsets = self.broker.topic_config_manager, self.broker.consumer_offset_manager
        if topics.select_topic_config(topic) is not None:
            return
        topics.create_pop_retry_topic(topic, RETRY_QUEUE_NUM)
        if offsets.query_offset(group, topic, 0) < 0:
            offsets.commit_offset(group, topic, 0, 0, "retry topic created")

    # -- events -----------------------------------------------------------------------------------------------------

    def _emit_revived(
        self, ck: PopCheckPoint, original: MessageExt, copy: MessageExtBrokerInner, retry_topic: str
    ) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                MessageRevived(
                    ck.group or "",
                    ck.topic or "",
                    ck.queue_id,
                    original.queue_offset,
                    copy.properties.get("UNIQ_KEY", ""),
                    ck.pop_time,
                    ck.invisible_time,
                    retry_topic,
                    copy.reconsume_times,
                    self._node.now_ms() - ck.revive_time,
                )
            )

    def emit_not_revived(self, ck: PopCheckPoint, offset: int, reason: str) -> None:
        """Say in the trace that the message at this offset of the check point's queue is not brought back."""
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(MessageNotRevived(ck.group or "", ck.topic or "", ck.queue_id, offset, ck.pop_time, reason))
