"""The settings of a store, with RocketMQ's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from mqlab.arguments import check_least
from mqlab.errors import LearnerError
from mqlab.store.dispatch_request import delay_level_table

EnumT = TypeVar("EnumT", bound=Enum)

CQ_STORE_UNIT_SIZE = 20
"""Bytes of a consume queue entry."""

BATCH_CQ_STORE_UNIT_SIZE = 46
"""Bytes of a batch consume queue entry."""

CQ_EXT_LEAST_BYTES = 20 + 4
"""A unit of an extended queue without bits, and what stays free at the end of a file."""

TIMER_LOG_LEAST_BYTES = 52 + 16
"""A record of the timer log and the blank at the end of a file."""

_AT_LEAST_1 = (
    "mapped_file_size_commit_log",
    "flush_interval_commit_log",
    "flush_commit_log_thorough_interval",
    "flush_interval_consume_queue",
    "flush_consume_queue_thorough_interval",
    "flush_delay_offset_interval",
    "clean_resource_interval",
    "max_hash_slot_num",
    "timer_flush_interval_ms",
    "ha_send_heartbeat_interval",
    "ha_housekeeping_interval",
    "ha_transfer_batch_size",
)

TIMER_PRECISIONS_MS = (100, 200, 500, 1_000)


class FlushDiskType(Enum):
    """When a message counts as safe: once the disk has it, or as soon as the page cache has it."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


class BrokerRole(Enum):
    """Whether a broker takes messages, and whether it waits for its slaves."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


SLAVE = BrokerRole.SLAVE


@dataclass
class MessageStoreConfig:
    """Settings of a store (org.apache.rocketmq.store.config.MessageStoreConfig).

    Sizes are bytes, times ms unless the name says otherwise. `store_path_root_dir` is a path on the node's disk; an
    empty one is the disk's root. For a member of an enumeration its name can be given. Settings of parts that are
    not here are absent.
    """

    store_path_root_dir: str = "store"
    mapped_file_size_commit_log: int = 1024 * 1024 * 1024
    mapped_file_size_consume_queue: int = 300_000 * CQ_STORE_UNIT_SIZE
    mapper_file_size_batch_consume_queue: int = 300_000 * BATCH_CQ_STORE_UNIT_SIZE
    enable_consume_queue_ext: bool = False
    """Keep beside each queue entry which filters its message has passed."""
    mapped_file_size_consume_queue_ext: int = 48 * 1024 * 1024
    flush_disk_type: FlushDiskType | str = FlushDiskType.ASYNC_FLUSH
    flush_interval_commit_log: int = 500
    flush_commit_log_least_pages: int = 4
    flush_commit_log_thorough_interval: int = 10_000
    flush_interval_consume_queue: int = 1_000
    flush_consume_queue_least_pages: int = 2
    flush_consume_queue_thorough_interval: int = 60_000
    sync_flush_timeout: int = 5_000
    os_page_cache_busy_time_out_mills: int = 1_000
    max_message_size: int = 4 * 1024 * 1024
    check_crc_on_recover: bool = True
    message_index_enable: bool = True
    message_index_safe: bool = False
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 5_000_000 * 4
    max_msgs_num_batch: int = 64
    broker_role: BrokerRole | str = BrokerRole.ASYNC_MASTER
    offset_check_in_slave: bool = False
    ha_master_address: str = ""
    """Of a slave: where its master gives its log away; empty, as name servers say."""
    ha_send_heartbeat_interval: int = 5_000
    ha_housekeeping_interval: int = 20_000
    ha_transfer_batch_size: int = 32 * 1024
    in_sync_replicas: int = 1
    """How many brokers, the master included, must have a message before a SYNC_MASTER says that all is well."""
    slave_timeout: int = 3_000
    ha_max_gap_not_in_sync: int = 256 * 1024 * 1024
    """How many bytes a slave may be behind and still counts as in sync when somebody asks."""
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    flush_delay_offset_interval: int = 10_000
    delete_when: str = "04"
    file_reserved_time: int = 72
    """Hours that a commit-log file is kept after its last change."""
    clean_resource_interval: int = 10_000
    delete_commit_log_files_interval: int = 100
    delete_consume_queue_files_interval: int = 100
    delete_file_batch_max: int = 10
    clean_file_forcibly_enable: bool = True
    disk_max_used_space_ratio: int = 75
    """Percent of the disk in use from which expired files go at once."""
    disk_space_clean_forcibly_ratio: int = 85
    """Percent from which files go even if they have not expired."""
    disk_space_warning_level_ratio: int = 90
    """Percent from which no message is taken any more."""
    max_transfer_bytes_on_message_in_memory: int = 256 * 1024
    max_transfer_count_on_message_in_memory: int = 32
    max_transfer_bytes_on_message_in_disk: int = 64 * 1024
    max_transfer_count_on_message_in_disk: int = 8
    access_message_in_memory_max_ratio: int = 40
    """Percent of the machine's memory that the newest messages are taken to lie in."""
    cold_data_flow_control_enable: bool = False
    """Hold groups back that read much of what no longer lies in memory."""
    access_message_in_memory_hot_ratio: int = 26
    """Percent of the machine's memory behind which a message counts as cold then."""
    max_filter_message_size: int = 16_000
    """Bytes of queue entries that one pull looks at."""
    timer_wheel_enable: bool = True
    mapped_file_size_timer_log: int = 100 * 1024 * 1024
    timer_precision_ms: int = 1_000
    """How long a slot of the timer wheel lasts: 100, 200, 500 or 1000."""
    timer_roll_window_slot: int = 3_600 * 24 * 2
    """A message that is due so many slots from now, or later, is put on the wheel more than once."""
    timer_flush_interval_ms: int = 1_000
    timer_put_message_thread_num: int = 3
    timer_max_delay_sec: int = 3_600 * 24 * 3
    timer_congest_num_each_slot: int = (1 << 31) - 1
    """Messages in one slot from which some are refused; at twice as many all are."""
    timer_stop_enqueue: bool = False
    timer_stop_dequeue: bool = False
    timer_skip_unknown_error: bool = False
    timer_enable_retry_until_success: bool = False
    """Try to store a message that is due until the store takes it; else three times, and then it is lost."""

    def __post_init__(self) -> None:
        self.flush_disk_type = _member(FlushDiskType, self.flush_disk_type)
        self.broker_role = _member(BrokerRole, self.broker_role)
        check_least(self, 1, *_AT_LEAST_1)
        check_least(self, CQ_STORE_UNIT_SIZE, "mapped_file_size_consume_queue")
        check_least(self, CQ_EXT_LEAST_BYTES, "mapped_file_size_consume_queue_ext")
        check_least(self, TIMER_LOG_LEAST_BYTES, "mapped_file_size_timer_log")
        check_least(self, BATCH_CQ_STORE_UNIT_SIZE, "mapper_file_size_batch_consume_queue")
        delay_level_table(self.message_delay_level)
        self.timer_precision_ms = max(
            (ms for ms in TIMER_PRECISIONS_MS if ms <= self.timer_precision_ms), default=TIMER_PRECISIONS_MS[0]
        )

    def path(self, *parts: str) -> str:
        """A path inside the store directory."""
        return "/".join((self.store_path_root_dir, *parts) if self.store_path_root_dir else parts)


def _member(kind: type[EnumT], value: EnumT | str) -> EnumT:
    """The setting as a member of its enum; configuration files and scenarios give its name. LearnerError if unknown."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(member.name for member in kind)
        raise LearnerError(f"{value!r} is no {kind.__name__}", f"use one of {names}") from None
