"""The settings that a drawn world may have, with what is legal, under RocketMQ's names in Python's case.

`mqlab.scenarios.drawing.left_out` has every setting of mqlab that is not here, and why. Times are in ms, sizes in bytes
unless the name says otherwise.
"""

from __future__ import annotations

from mqlab.scenarios.drawing.values import SWITCH, Legal, number, words

HOUR_MS = 3_600_000
GIB = 1024 * 1024 * 1024
MOST = 1_000_000

BROKER: dict[str, Legal] = {
    "flush_disk_type": words("SYNC_FLUSH", "ASYNC_FLUSH"),
    "flush_interval_commit_log": number(1, HOUR_MS, 50, 200, 1_000),
    "flush_commit_log_least_pages": number(0, 1_000, 0, 1, 8),
    "flush_commit_log_thorough_interval": number(1, HOUR_MS, 1_000, 3_000),
    "flush_interval_consume_queue": number(1, HOUR_MS, 100, 3_000),
    "flush_consume_queue_least_pages": number(0, 1_000, 0, 1, 8),
    "flush_consume_queue_thorough_interval": number(1, HOUR_MS, 2_000, 10_000),
    "sync_flush_timeout": number(1, HOUR_MS, 200, 1_000),
    "mapped_file_size_commit_log": number(16_384, GIB, 16_384, 65_536, 1_048_576),
    "mapped_file_size_consume_queue": number(400, 300_000 * 20, 400, 2_000),
    "os_page_cache_busy_time_out_mills": number(1, HOUR_MS, 200, 3_000),
    "message_index_safe": SWITCH,
    "max_hash_slot_num": number(1, 5_000_000, 1, 100),
    "max_index_num": number(2, 20_000_000, 10, 400),
    "enable_consume_queue_ext": SWITCH,
    "max_transfer_count_on_message_in_memory": number(1, 1_000, 1, 4),
    "max_transfer_bytes_on_message_in_memory": number(1, GIB, 2_000, 8_000),
    "max_filter_message_size": number(20, 16_000 * 1_000, 20, 320),
    "default_topic_queue_nums": number(1, 64, 1, 2),
    "trace_topic_enable": SWITCH,
    "enable_property_filter": SWITCH,
    "enable_calc_filter_bit_map": SWITCH,
    "long_polling_enable": SWITCH,
    "short_polling_time_mills": number(1, HOUR_MS, 100, 2_000),
    "notify_consumer_ids_changed_enable": SWITCH,
    "real_time_notify_consumer_change": SWITCH,
    "use_server_side_reset_offset": SWITCH,
    "enable_broadcast_offset_store": SWITCH,
    "enable_shutdown_gracefully": SWITCH,
    "register_name_server_period": number(10_000, 60_000, 10_000, 60_000),
    "register_broker_timeout_mills": number(1, HOUR_MS, 1_000, 6_000),
    "flush_consumer_offset_interval": number(1, HOUR_MS, 500, 2_000),
    "delay_offset_update_version_step": number(1, MOST, 1, 10),
    "send_message_thread_pool_nums": number(0, 1_000, 1, 2),
    "pull_message_thread_pool_nums": number(0, 1_000, 1, 2),
    "query_message_thread_pool_nums": number(0, 1_000, 1),
    "admin_broker_thread_pool_nums": number(0, 1_000, 1),
    "client_manage_thread_pool_nums": number(0, 1_000, 1),
    "consumer_manage_thread_pool_nums": number(0, 1_000, 1),
    "heartbeat_thread_pool_nums": number(0, 1_000, 1),
    "send_thread_pool_queue_capacity": number(1, MOST, 2, 20),
    "pull_thread_pool_queue_capacity": number(1, MOST, 200),
    "broker_fast_failure_enable": SWITCH,
    "wait_time_mills_in_send_queue": number(1, HOUR_MS, 20, 1_000),
    "wait_time_mills_in_pull_queue": number(1, HOUR_MS, 100, 1_000),
    "wait_time_mills_in_heartbeat_queue": number(1, HOUR_MS, 1_000),
    "wait_time_mills_in_admin_broker_queue": number(1, HOUR_MS, 500),
    "enable_pop_buffer_merge": SWITCH,
    "pop_consumer_kv_service_enable": SWITCH,
    "revive_queue_num": number(1, 64, 1, 2),
    "pop_from_retry_probability": number(0, 100, 0, 50, 100),
    "enable_retry_topic_v2": SWITCH,
    "pop_ck_stay_buffer_time": number(1, HOUR_MS, 1_000, 5_000),
    "pop_ck_stay_buffer_time_out": number(1, HOUR_MS, 1_000),
    "pop_ck_max_buffer_size": number(1, MOST, 1, 10),
    "enable_pop_batch_ack": SWITCH,
    "append_ck_async": SWITCH,
    "append_ack_async": SWITCH,
    "init_pop_offset_by_check_msg_in_mem": SWITCH,
    "enable_pop_message_threshold": SWITCH,
    "pop_inflight_message_threshold": number(1, MOST, 4, 20),
    "pop_revive_max_return_size_per_read": number(1, MOST, 1, 4),
    "revive_interval": number(1, HOUR_MS, 200, 3_000),
    "rebalance_lock_max_live_time": number(31_000, HOUR_MS, 40_000, 60_000),
    "transaction_op_msg_max_size": number(1, MOST, 8, 100),
    "transaction_op_batch_interval": number(1, HOUR_MS, 500),
    "transaction_check_max": number(0, 100, 1, 3),
    "transaction_time_out": number(1, HOUR_MS, 1_000, 3_000),
    "transaction_check_interval": number(1, HOUR_MS, 5_000, 10_000),
    "store_reply_message_enable": SWITCH,
    "process_reply_message_thread_pool_nums": number(0, 1_000, 1),
    "reply_thread_pool_queue_capacity": number(1, MOST, 1, 10),
    "recall_message_enable": SWITCH,
    "timer_roll_window_slot": number(2, 7 * 86_400, 3, 5),
    "file_reserved_time": number(0, 1_000, 0, 72),
    "delete_when": words("04", "00"),
    "end_transaction_thread_pool_nums": number(0, 1_000, 1),
    "end_transaction_pool_queue_capacity": number(1, MOST, 2),
    "ack_message_thread_pool_nums": number(0, 1_000, 1),
    "cold_data_flow_control_enable": SWITCH,
    "access_message_in_memory_hot_ratio": number(0, 100, 1, 26),
    "cg_cold_read_threshold": number(0, GIB, 500, 5_000),
    "global_cold_read_threshold": number(0, GIB, 2_000, 20_000),
    "cold_ctr_strategy_enable": SWITCH,
    "use_pid_cold_ctr_strategy": SWITCH,
    "broker_role": words("ASYNC_MASTER", "SYNC_MASTER", "SYNC_MASTER"),
    "in_sync_replicas": number(1, 10, 1, 2, 2, 3),
    "slave_timeout": number(1, HOUR_MS, 200, 1_000),
    "slave_read_enable": SWITCH,
    "offset_check_in_slave": SWITCH,
    "ha_max_gap_not_in_sync": number(0, GIB, 500, 5_000),
    "ha_transfer_batch_size": number(1, GIB, 300, 5_000),
    "ha_send_heartbeat_interval": number(1, HOUR_MS, 500, 2_000),
    "ha_housekeeping_interval": number(1, HOUR_MS, 8_000),
}
"""BrokerConfig and MessageStoreConfig."""

OF_REPLICATION = (
    "broker_role", "in_sync_replicas", "slave_timeout", "slave_read_enable", "offset_check_in_slave",
    "ha_max_gap_not_in_sync", "ha_transfer_batch_size", "ha_send_heartbeat_interval", "ha_housekeeping_interval",
)  # fmt: skip
"""What only worlds with slaves have of these."""

_WHILE_IT_RUNS = (
    "flush_interval_commit_log", "flush_commit_log_least_pages", "flush_interval_consume_queue", "sync_flush_timeout",
    "os_page_cache_busy_time_out_mills", "max_transfer_count_on_message_in_memory",
    "max_transfer_bytes_on_message_in_memory", "max_filter_message_size", "short_polling_time_mills",
    "notify_consumer_ids_changed_enable", "use_server_side_reset_offset", "flush_consumer_offset_interval",
    "delay_offset_update_version_step", "broker_fast_failure_enable", "wait_time_mills_in_send_queue",
    "wait_time_mills_in_pull_queue", "wait_time_mills_in_heartbeat_queue", "wait_time_mills_in_admin_broker_queue",
    "enable_pop_buffer_merge", "pop_from_retry_probability", "transaction_time_out", "transaction_check_interval",
    "slave_timeout",
)  # fmt: skip
SET_BROKER: dict[str, Legal] = {key: BROKER[key] for key in _WHILE_IT_RUNS}
"""What an administrator changes of a broker that runs. Most of the others RocketMQ minds at the next start alone."""

_FOR_GOOD = (
    "mapped_file_size_commit_log", "mapped_file_size_consume_queue", "max_hash_slot_num", "max_index_num",
    "enable_consume_queue_ext", "enable_property_filter", "revive_queue_num", "pop_consumer_kv_service_enable",
    "enable_retry_topic_v2", "slave_read_enable",
)  # fmt: skip
RESTARTED_BROKER: dict[str, Legal] = {key: legal for key, legal in BROKER.items() if key not in _FOR_GOOD}
"""What a broker may be started with again. Files keep their sizes, what was stored for Pop its places, and
groups their conditions. Who is sent to a slave that refuses to be read from asks it for ever."""

_OF_SLAVES = (
    "flush_interval_commit_log", "flush_commit_log_least_pages", "flush_interval_consume_queue", "long_polling_enable",
    "short_polling_time_mills", "max_transfer_count_on_message_in_memory",
    "offset_check_in_slave", "ha_send_heartbeat_interval", "ha_housekeeping_interval",
)  # fmt: skip
SLAVE: dict[str, Legal] = {key: BROKER[key] for key in _OF_SLAVES}
"""What a slave sets of its own; it has all else of its master."""

CLIENT: dict[str, Legal] = {
    "client_callback_executor_threads": number(0, 1_000, 1, 2),
    "client_async_semaphore_value": number(1, 65_535, 20, 100),
    "client_oneway_semaphore_value": number(1, 65_535, 1, 5),
    "connect_timeout_millis": number(1, HOUR_MS, 500),
    "client_close_socket_if_timeout": SWITCH,
    "poll_name_server_interval": number(1_000, HOUR_MS, 2_000, 10_000),
    "pull_time_delay_mills_when_exception": number(0, HOUR_MS, 100, 3_000),
    "mq_client_api_timeout": number(1, HOUR_MS, 500, 1_000),
    "persist_consumer_offset_interval": number(1_000, HOUR_MS, 1_000, 3_000),
    "unit_mode": SWITCH,
    "enable_trace": SWITCH,
    "trace_msg_batch_num": number(1, 20, 1, 20),
}
"""ClientConfig: what every client has."""

PRODUCER: dict[str, Legal] = {
    **CLIENT,
    "send_latency_enable": SWITCH,
    "start_detector_enable": SWITCH,
    "detect_timeout": number(1, HOUR_MS, 100, 1_000),
    "detect_interval": number(1, HOUR_MS, 500, 5_000),
    "default_topic_queue_nums": number(1, 64, 1, 2),
    "send_msg_timeout": number(1, HOUR_MS, 200, 1_000, 10_000),
    "send_msg_max_timeout_per_request": number(-1, HOUR_MS, 100, 500),
    "retry_times_when_send_failed": number(0, 100, 0, 1, 5),
    "retry_times_when_send_async_failed": number(0, 100, 0, 1, 5),
    "retry_another_broker_when_not_store_ok": SWITCH,
    "compress_msg_body_over_howmuch": number(1, GIB, 50, 200),
    "compress_level": number(0, 9, 1, 9),
    "enable_backpressure_for_async_mode": SWITCH,
    "back_pressure_for_async_send_num": number(10, MOST, 10),
    "back_pressure_for_async_send_size": number(1024 * 1024, GIB, 1024 * 1024),
    "auto_batch": SWITCH,
    "batch_max_delay_ms": number(1, 30_000, 1, 100, 1_000),
    "batch_max_bytes": number(1, 4 * 1024 * 1024, 200, 1_000),
    "total_batch_max_bytes": number(1, GIB, 500, 5_000),
}
"""DefaultMQProducer."""

ASKER: dict[str, Legal] = {key: legal for key, legal in PRODUCER.items() if key != "auto_batch"}
ASKER["request_ends_when_sent"] = SWITCH
"""DefaultMQProducer that sends requests, none of which goes into an automatic batch."""

CONSUMER: dict[str, Legal] = {
    **CLIENT,
    "consume_from_where": words("CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_TIMESTAMP"),
}

PUSH: dict[str, Legal] = {
    **CONSUMER,
    "consume_thread_max": number(20, 1_000, 20, 64),
    "consume_thread_min": number(1, 20, 1, 2, 4),
    "consume_concurrently_max_span": number(1, 65_535, 2, 8),
    "pull_threshold_for_queue": number(1, 65_535, 1, 4, 16),
    "pull_threshold_size_for_queue": number(1, 1_024, 1),
    "pull_threshold_for_topic": number(1, 6_553_500, 4, 16),
    "pull_threshold_size_for_topic": number(1, 102_400, 1),
    "pull_interval": number(0, 65_535, 100, 1_000),
    "consume_message_batch_max_size": number(1, 1_024, 2, 8),
    "pull_batch_size": number(1, 1_024, 1, 4),
    "pull_batch_size_in_bytes": number(1, GIB, 300, 2_000),
    "post_subscription_when_pull": SWITCH,
    "max_reconsume_times": number(-1, 16, 1, 3),
    "suspend_current_queue_time_millis": number(10, 30_000, 10, 3_000),
}
"""DefaultMQPushConsumer."""

_ADJUSTED = (
    "consume_thread_max", "consume_thread_min", "consume_concurrently_max_span", "pull_threshold_for_queue",
    "pull_threshold_size_for_queue", "pull_threshold_for_topic", "pull_threshold_size_for_topic", "pull_interval",
    "consume_message_batch_max_size", "pull_batch_size", "pull_batch_size_in_bytes", "max_reconsume_times",
)  # fmt: skip
ADJUSTED: dict[str, Legal] = {key: PUSH[key] for key in _ADJUSTED}
"""What an application changes of a push consumer that runs."""

POP: dict[str, Legal] = {
    **CONSUMER,
    "consume_thread_max": number(20, 1_000, 20, 64),
    "consume_thread_min": number(1, 20, 1, 2, 4),
    "consume_message_batch_max_size": number(1, 1_024, 2, 8),
    "max_reconsume_times": number(-1, 16, 1, 3),
    "pop_invisible_time": number(5_000, 300_000, 5_000, 10_000),
    "pop_batch_nums": number(1, 32, 1, 4),
    "pop_threshold_for_queue": number(1, 65_535, 4, 16),
}
"""DefaultMQPushConsumer whose group pops."""

LITE: dict[str, Legal] = {
    **CONSUMER,
    "auto_commit": SWITCH,
    "auto_commit_interval_millis": number(1_000, HOUR_MS, 1_000, 2_000),
    "pull_thread_nums": number(1, 1_000, 20, 64),
    "pull_batch_size": number(1, 1_024, 1, 4, 32),
    "pull_threshold_for_all": number(0, MOST, 20, 100),
    "pull_threshold_for_queue": number(0, 65_535, 1, 8),
    "pull_threshold_size_for_queue": number(0, 1_024, 1),
    "consume_max_span": number(0, 65_535, 4, 20),
    "topic_metadata_check_interval_millis": number(1, HOUR_MS, 1_000),
    "broker_suspend_max_time_millis": number(0, 30_000, 1_000, 5_000),
}
"""DefaultLitePullConsumer."""

PULL: dict[str, Legal] = {
    **CLIENT,
    "consumer_pull_timeout_millis": number(1, HOUR_MS, 500, 2_000),
}
"""DefaultMQPullConsumer, and the schedule service over it."""

GROUP: dict[str, Legal] = {
    "retry_queue_nums": number(1, 64, 1, 2),
    "retry_max_times": number(0, 16, 1, 3),
    "consume_message_orderly": SWITCH,
}
"""SubscriptionGroupConfig."""

PROXY: dict[str, Legal] = {
    "grpc_client_producer_max_attempts": number(1, 100, 1, 5),
    "grpc_client_consumer_long_polling_batch_size": number(1, 32, 1, 4),
    "topic_route_service_cache_refresh_seconds": number(1, 3_600, 5),
    "subscription_group_config_cache_refresh_seconds": number(1, 3_600, 5),
    "topic_config_cache_refresh_seconds": number(1, 3_600, 5),
    "renew_max_time_millis": number(1, 24 * HOUR_MS, 60_000),
    "max_renew_retry_times": number(1, 100, 1, 5),
}
"""ProxyConfig."""

CLIENT_5: dict[str, Legal] = {"request_timeout": number(1, HOUR_MS, 1_000, 10_000)}
"""ClientConfiguration: what every 5.x client has."""

PUSH_5: dict[str, Legal] = {
    **CLIENT_5,
    "max_cache_message_count": number(1, MOST, 1, 8),
    "max_cache_message_size_in_bytes": number(1, GIB, 1_000),
    "consumption_thread_count": number(1, 1_000, 1, 2),
}
"""PushConsumer of the 5.x client."""

SIMPLE_5: dict[str, Legal] = {**CLIENT_5, "await_duration": number(1, HOUR_MS, 5_000, 10_000)}
"""SimpleConsumer of the 5.x client."""
