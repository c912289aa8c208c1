"""The store of a broker: commit log, consume queues, index, flushing, recovery and deletion, byte for byte RocketMQ's.

What a broker uses:

    store = DefaultMessageStore(node, MessageStoreConfig(...), is_batch_topic=lambda topic: False)
    store.load() -> Recovery             opens config.store_path_root_dir on node.disk; StoreError if it can't be
    store.start(); store.shutdown()      threads on the node; abort file made and removed

    store.put_message(MessageExtBrokerInner) -> PutMessageResult, or a Future of it that waits for a flush
    store.put_messages(batch: MessageExtBrokerInner with a batch body) -> the same; result.msg_num, .msg_offsets
        result.status (PutMessageStatus), .wrote_offset, .wrote_bytes, .logics_offset (first queue offset), .msg_id,
        .store_timestamp, .remark, .is_ok, .is_stored; a status that stored nothing has wrote_bytes 0
    store.put_message_hooks: list of (message) -> PutMessageResult | None      refuse or rewrite before storing
    store.handle_ha = (message, result) -> Future of a PutMessageStatus, or None    lets the answer to a put wait
    store.append_to_commit_log(start_offset, data) -> bool                         bytes of a master's log
    store.dispatcher_list: list of (DispatchRequest) -> None                       shown each message of the log
    store.message_arriving_listener =
        (topic, queue_id, queue_offset + 1, tags_code, store_timestamp, None, properties) -> anything

    store.get_message(group, topic, queue_id, offset, max_msg_nums, message_filter=None, max_total_msg_size=...)
        -> GetMessageResult (status, next_begin_offset, min_offset, max_offset, messages: list of raw records,
           queue_offsets, message_count, buffer_total_size, body, suggest_pulling_from_slave),
           or None when the store does not read
        message_filter: .is_matched_by_consume_queue(tags_code) and .is_matched_by_commit_log(record)
    store.get_max_offset_in_queue(topic, queue_id, committed=True)
    store.get_min_offset_in_queue(topic, queue_id)  (-1: unknown)
    store.get_offset_in_queue_by_time(topic, queue_id, timestamp, BoundaryType.LOWER | UPPER)
    store.get_message_store_timestamp(topic, queue_id, queue_offset)
    store.get_earliest_message_time(topic=None, queue_id=0)
    store.get_commit_log_offset_in_queue(topic, queue_id, queue_offset); store.find_consume_queue(topic, queue_id)
    store.look_message_by_offset(commit_log_offset) -> MessageExt | None
    store.select_one_message_by_offset(commit_log_offset) -> bytes | None
    store.query_message(topic, key, max_num, begin, end)
        -> QueryMessageResult (messages, index_last_update_timestamp, index_last_update_phyoffset, body)
    store.check_in_mem_by_consume_offset(topic, queue_id, queue_offset)
    store.is_os_page_cache_busy(); .dispatch_behind_bytes; .min_phy_offset; .max_phy_offset; .running_flags
    store.delete_topics([topic, ...]); store.consume_queue_store.topics() -> {topic: [queue ids]}

To look into a directory without a world: `ReadableStore(DiskHost(MemoryDisk.over_directory(path)), config).load()`,
or `open_store(path)`, which reads the file sizes off the files.
"""

from mqlab.store.batch_consume_queue import BatchConsumeQueue
from mqlab.store.commit_log import CommitLog
from mqlab.store.consume_queue import ConsumeQueue, CqUnit
from mqlab.store.consume_queue_store import ConsumeQueueStore
from mqlab.store.default_message_store import ArrivingListener, DefaultMessageStore
from mqlab.store.dispatch_request import RMQ_SYS_SCHEDULE_TOPIC, DispatchRequest, delay_level_table
from mqlab.store.errors import RecordTooLarge, StoreError
from mqlab.store.get_message import MAX_PULL_MSG_SIZE, GetMessageResult, GetMessageStatus, MessageFilter
from mqlab.store.host import DiskHost, Host
from mqlab.store.index_file import IndexFile
from mqlab.store.index_service import IndexService
from mqlab.store.mapped_file import MappedFile, MappedFileQueue
from mqlab.store.message_store_config import BrokerRole, FlushDiskType, MessageStoreConfig
from mqlab.store.put_message import PUT_OK, MessageExtBrokerInner, PutMessageResult, PutMessageStatus
from mqlab.store.query_message import QueryMessageResult
from mqlab.store.readable_store import CommitLogDispatcher, ReadableStore
from mqlab.store.recovery import Recovery
from mqlab.store.running_flags import RunningFlags
from mqlab.store.search_by_time import BoundaryType
from mqlab.store.store_checkpoint import StoreCheckpoint
from mqlab.store.store_directory import (
    Damage,
    Stretch,
    find_store,
    list_records,
    log_stretches,
    open_store,
    record_fields,
    stretch_records,
)
from mqlab.store.writable_store import HandleHA, PutMessageHook, WritableStore

__all__ = [
    "MAX_PULL_MSG_SIZE",
    "PUT_OK",
    "RMQ_SYS_SCHEDULE_TOPIC",
    "ArrivingListener",
    "BatchConsumeQueue",
    "BoundaryType",
    "BrokerRole",
    "CommitLog",
    "CommitLogDispatcher",
    "ConsumeQueue",
    "ConsumeQueueStore",
    "CqUnit",
    "Damage",
    "DefaultMessageStore",
    "DiskHost",
    "DispatchRequest",
    "FlushDiskType",
    "GetMessageResult",
    "GetMessageStatus",
    "HandleHA",
    "Host",
    "IndexFile",
    "IndexService",
    "MappedFile",
    "MappedFileQueue",
    "MessageExtBrokerInner",
    "MessageFilter",
    "MessageStoreConfig",
    "PutMessageHook",
    "PutMessageResult",
    "PutMessageStatus",
    "QueryMessageResult",
    "ReadableStore",
    "RecordTooLarge",
    "Recovery",
    "RunningFlags",
    "StoreCheckpoint",
    "StoreError",
    "Stretch",
    "WritableStore",
    "delay_level_table",
    "find_store",
    "list_records",
    "log_stretches",
    "open_store",
    "record_fields",
    "stretch_records",
]
