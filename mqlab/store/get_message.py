"""Reading messages for a consumer: from a queue offset on, so many as one answer may hold."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from mqlab.store.commit_log import CommitLog
from mqlab.store.consume_queue import MAX_ADDR, ConsumeQueue
from mqlab.store.message_store_config import BrokerRole, MessageStoreConfig

if TYPE_CHECKING:
    from mqlab.store.consume_queue_ext import CqExtUnit

MAX_PULL_MSG_SIZE = 128 * 1024 * 1024
_MIN_PULL_SIZE = 100


class GetMessageStatus(Enum):
    """What reading found (org.apache.rocketmq.store.GetMessageStatus)."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_RESET = "OFFSET_RESET"


class MessageFilter(Protocol):
    """What a consumer wants to have (org.apache.rocketmq.store.MessageFilter)."""

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """Could a message with this tags code be wanted? Asked before the message is read.

        None is a code that nobody knows; the others are what an extended queue knows of the message.
        """
        ...

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """Is the message with these bytes wanted?"""
        ...


class GetMessageResult:
    """The messages found, as raw records, and where to read on (org.apache.rocketmq.store.GetMessageResult).

    `queue_offsets` are those of the records; `message_count` counts the messages of a batch one by one.
    """

    __slots__ = ("buffer_total_size", "max_offset", "message_count", "messages", "min_offset", "next_begin_offset",
                 "queue_offsets", "status", "suggest_pulling_from_slave")  # fmt: skip

    def __init__(
        self, status: GetMessageStatus, next_begin_offset: int, min_offset: int = 0, max_offset: int = 0
    ) -> None:
        self.status = status
        self.next_begin_offset = next_begin_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.messages: list[bytes] = []
        self.queue_offsets: list[int] = []
        self.buffer_total_size = 0
        self.message_count = 0
        self.suggest_pulling_from_slave = False

    @property
    def body(self) -> bytes:
        """The records one behind the other: the body of a pull response."""
        return b"".join(self.messages)

    def __repr__(self) -> str:
        return (
            f"<GetMessageResult {self.status.value}: {self.message_count} messages, next {self.next_begin_offset}, "
            f"queue [{self.min_offset}, {self.max_offset})>"
        )


def in_memory_bytes(config: MessageStoreConfig, memory_bytes: int) -> int:
    """How many bytes behind the end of the commit log are taken to lie in memory."""
    return memory_bytes * config.access_message_in_memory_max_ratio // 100


def get_message(
    queue: ConsumeQueue,
    log: CommitLog,
    config: MessageStoreConfig,
    memory_bytes: int,
    offset: int,
    max_msg_nums: int,
    max_total_msg_size: int,
    message_filter: MessageFilter | None,
) -> GetMessageResult:
    """Read messages of a queue from an offset on (DefaultMessageStore.getMessage).

    Java: org.apache.rocketmq.store.DefaultMessageStore.getMessage. Differs from RocketMQ: an entry of zeros, as a loss
    of power may leave one, is found with no bytes and passed over. In 5.3.3 the broker fails over it when it reads the
    store time of what was found (DefaultPullMessageResultHandler.readGetMessageResult), inside of a future whose error
    nobody sees: the pull is never answered, and a consumer without a filter by tags asks again after each time-out.
    """
    min_offset, max_offset = queue.min_offset_in_queue, queue.max_offset_in_queue
    result = _out_of_range(config, offset, min_offset, max_offset)
    if result is not None:
        return result
    result = GetMessageResult(GetMessageStatus.NO_MATCHED_MESSAGE, offset, min_offset, max_offset)
    log_end = log.max_offset
    near = in_memory_bytes(config, memory_bytes)
    scan_limit = max(config.max_filter_message_size, max_msg_nums * queue.unit_size)
    max_size = min(max(max_total_msg_size, _MIN_PULL_SIZE), MAX_PULL_MSG_SIZE)
    most_units = -(-scan_limit // queue.unit_size)
    units = queue.iterate_from(offset, most_units)
    if units is None:
        result.status = GetMessageStatus.OFFSET_FOUND_NULL
        result.next_begin_offset = corrected(config, offset, queue.roll_next_file(offset))
        return result
    end_offset = min(max_offset, offset + most_units)
    last_scanned = 0
    next_file_start = -1
    total_size = count = 0
    from_memory, from_disk = _limits(config, max_size)
    messages, queue_offsets = result.messages, result.queue_offsets
    for queue_offset, pos, size, tags_code, batch_num, ext in units:
        if queue_offset >= end_offset:
            break
        most_bytes, most_messages = from_memory if log_end - pos <= near else from_disk
        if messages and (
            total_size + size > most_bytes or count >= most_messages or count + batch_num > max_msg_nums
        ):
            break
        last_scanned = pos
        result.next_begin_offset = queue_offset + batch_num
        if pos < next_file_start:
            continue
        if message_filter is not None and not _may_match(message_filter, tags_code, ext):
            continue
        record = log.get_message(pos, size)
        if record is None:
            if not messages:
                result.status = GetMessageStatus.MESSAGE_WAS_REMOVING
            next_file_start = log.roll_next_file(pos)
            continue
        if message_filter is not None and not message_filter.is_matched_by_commit_log(record):
            if not messages:
                result.status = GetMessageStatus.NO_MATCHED_MESSAGE
            continue
        messages.append(record)
        queue_offsets.append(queue_offset)
        total_size += len(record)
        count += batch_num
        next_file_start = -1
    result.buffer_total_size, result.message_count = total_size, count
    if messages:
        result.status = GetMessageStatus.FOUND
    result.suggest_pulling_from_slave = log_end - last_scanned > near
    return result


def _may_match(message_filter: MessageFilter, tags_code: int, ext: CqExtUnit | None) -> bool:
    if ext is not None:
        return message_filter.is_matched_by_consume_queue(tags_code, ext.msg_store_time, ext.filter_bit_map)
    # The address of a unit that is not there says nothing.
    return message_filter.is_matched_by_consume_queue(tags_code if tags_code > MAX_ADDR else None)


def _out_of_range(config: MessageStoreConfig, offset: int, min_offset: int, max_offset: int) -> GetMessageResult | None:
    if max_offset == 0:
        status, correct = GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0
    elif offset < min_offset:
        status, correct = GetMessageStatus.OFFSET_TOO_SMALL, min_offset
    elif offset == max_offset:
        status, correct = GetMessageStatus.OFFSET_OVERFLOW_ONE, offset
    elif offset > max_offset:
        status, correct = GetMessageStatus.OFFSET_OVERFLOW_BADLY, max_offset
    else:
        return None
    return GetMessageResult(status, corrected(config, offset, correct), min_offset, max_offset)


def corrected(config: MessageStoreConfig, asked: int, correct: int) -> int:
    """A slave that does not check offsets leaves the one asked for as it is: it may simply be behind its master."""
    return asked if config.broker_role is BrokerRole.SLAVE and not config.offset_check_in_slave else correct


def _limits(config: MessageStoreConfig, max_size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many bytes and messages one answer may have of those that lie in memory, and of those from the disk, which
    are given out in smaller lots (DefaultMessageStore.isTheBatchFull).
    """
    return (
        (
            min(max_size, config.max_transfer_bytes_on_message_in_memory),
            config.max_transfer_count_on_message_in_memory,
        ),
        (min(max_size, config.max_transfer_bytes_on_message_in_disk), config.max_transfer_count_on_message_in_disk),
    )
