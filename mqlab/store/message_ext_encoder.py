"""From a message to the bytes of its record, and from a batch to the messages in it."""

from __future__ import annotations

from mqlab.protocol.batch import decode_batch
from mqlab.protocol.message import MessageExt
from mqlab.protocol.properties import decode_properties
from mqlab.protocol.record import encode_record
from mqlab.store.put_message import MessageExtBrokerInner


def encode_message(
    message: MessageExt, properties: str, queue_offset: int, store_timestamp: int, commit_log_offset: int
) -> bytes:
    """The record of a message at an offset of the commit log; its size does not depend on the three numbers.

    Java: org.apache.rocketmq.store.MessageExtEncoder.encode.
    """
    return encode_record(
        message.topic,
        message.body,
        properties,
        message.queue_id,
        queue_offset,
        commit_log_offset,
        store_timestamp,
        message.born_timestamp,
        message.born_host,
        message.store_host,
        message.flag,
        message.sys_flag,
        message.reconsume_times,
        message.prepared_transaction_offset,
    )


def messages_of_batch(batch: MessageExtBrokerInner) -> list[MessageExtBrokerInner]:
    """The messages in a batch body, each with the batch's properties behind its own; RecordError for a torn body.

    Java: org.apache.rocketmq.store.MessageExtEncoder.encode, for a MessageExtBatch.
    """
    messages = []
    shared = batch.stored_properties()
    for entry in decode_batch(batch.body):
        separator = "\x02" if entry.properties and shared and not entry.properties.endswith("\x02") else ""
        text = f"{entry.properties}{separator}{shared}"
        message = MessageExtBrokerInner(
            batch.topic,
            entry.body,
            queue_id=batch.queue_id,
            flag=entry.flag,
            sys_flag=batch.sys_flag,
            properties=decode_properties(text),
            properties_string=text,
            born_timestamp=batch.born_timestamp,
            born_host=batch.born_host,
            store_host=batch.store_host,
            reconsume_times=batch.reconsume_times,
        )
        messages.append(message)
    return messages
