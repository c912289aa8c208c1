"""Messages that nobody acknowledged in time go from their queue into the retry topic of their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord
from mqlab.broker.pop.revive_message import retry_copy
from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageExt
from mqlab.protocol.pop_check_point import REVIVE_GROUP
from mqlab.protocol.record import decode_record
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import TopicConfig
from mqlab.sim import Future
from mqlab.store import MessageExtBrokerInner, PutMessageResult
from mqlab.trace.events.pop import MessageNotRevived, MessageRevived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts


class PopConsumerReviver:
    """Puts the messages of records into retry topics (PopConsumerService.revive, .reviveRetry).

    Java: org.apache.rocketmq.broker.pop.PopConsumerService.reviveRetry. Differs from RocketMQ: only this broker's own
    store is read, as there is no slave that stands in for its master.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node

    def revive(self, record: PopConsumerRecord) -> bool | Future[bool]:
        """Put a record's message into the retry topic; False when the store does not take it.

        A message that is no longer there needs no retry. With synchronous flush a Future tells.
        """
        message = self._read(record)
        if message is None:
            self._not_revived(record, "the queue does not have it")
            return True
        retry = retry_copy(self._broker, message, record.topic, record.group, record.pop_time)
        # A message that was delayed still says so: then the store parks its copy, under another topic.
        retry_topic = retry.topic
        self._create_retry_topic_if_needed(record.group, retry_topic)
        result = self._broker.message_store.put_message(retry)
        if isinstance(result, PutMessageResult):
            return self._was_put(record, retry, retry_topic, result)
        revived: Future[bool] = self._node.future(f"{record.topic} {record.queue_id} {record.offset} to be revived")
        result.add_done_callback(
            lambda put: revived.set_result(self._was_put(record, retry, retry_topic, put.result()))
        )
        return revived

    def _read(self, record: PopConsumerRecord) -> MessageExt | None:
        store = self._broker.message_store
        result = store.get_message(REVIVE_GROUP, record.topic, record.queue_id, record.offset, 1)
        if result is None or not result.messages:
            return None
        try:
            return decode_record(result.messages[0], decompress=False)
        except RecordError:
            # An entry of zeros, as a loss of power may leave one.
            return None

    def _create_retry_topic_if_needed(self, group: str, topic: str) -> None:
        topics = self._broker.topic_config_manager
        if topic in topics.topic_config_table:
            return
        topics.update_topic_config(TopicConfig(topic, 1, 1, PermName.READ_WRITE))
        offsets = self._broker.consumer_offset_manager
        if offsets.query_offset(group, topic, 0) < 0:
            offsets.commit_offset(group, topic, 0, 0, "popped")

    def _was_put(
        self, record: PopConsumerRecord, retry: MessageExtBrokerInner, retry_topic: str, result: PutMessageResult
    ) -> bool:
        if not result.wrote_bytes:
            self._not_revived(record, f"{result.status.value}: {result.remark}")
            return False
        self._broker.stats.put(retry.topic, 1, result.wrote_bytes)
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                MessageRevived(
                    record.group,
                    record.topic,
                    record.queue_id,
                    record.offset,
                    retry.properties.get("UNIQ_KEY", ""),
                    record.pop_time,
                    record.invisible_time,
                    retry_topic,
                    retry.reconsume_times,
                    self._node.now_ms() - record.visibility_timeout,
                )
            )
        return True

    def _not_revived(self, record: PopConsumerRecord, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                MessageNotRevived(
                    record.group, record.topic, record.queue_id, record.offset, record.pop_time, reason.rstrip(": ")
                )
            )
