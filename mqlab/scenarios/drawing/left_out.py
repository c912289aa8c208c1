"""Every setting of mqlab that a drawn world does not have, and why."""

from __future__ import annotations

WHO_IT_IS = "it says who or where somebody is, and a world's lines say that"
A_PART_APART = "it belongs to a part that no line makes yet: Pop, transactions, timers"
ANOTHER_WORLD = "another value is another load, or another contract, which a line would have to say"
FOR_GOOD = (
    "RocketMQ itself may stand still with it for good: a rebalance that finds a heartbeat under way tells brokers "
    "nothing (sendHeartbeatToAllBrokerWithLockV2), later ones leave subscriptions out, and every pull is refused"
)
A_CONSTANT = "it is a price of this machine, a log, or a bound that no world of some dozen messages reaches"
IN_A_WORD = "a line says it in a word of its own: shares, runs"
NOT_JUDGED = "rules measure by RocketMQ's value of it, and another one needs rules that ask for it"
NOT_HERE = "nothing of it can be seen here, or nobody listens where it sends a client"

OF_BROKERS: dict[str, tuple[str, ...]] = {
    WHO_IT_IS: (
        "broker_cluster_name", "broker_name", "broker_id", "namesrv_addr", "broker_ip1", "listen_port",
        "ha_listen_port", "region_id", "store_path_root_dir", "msg_trace_topic_name", "ha_master_address",
    ),
    A_PART_APART: (
        "revive_max_slow", "revive_scan_time", "enable_skip_long_awaiting_ack", "revive_ack_wait_ms",
        "skip_when_ck_re_put_reach_max_times", "enable_pop_log", "pop_ck_offset_max_queue_size",
        "retrieve_message_from_pop_retry_topic_v1", "pop_response_return_actual_retry_topic", "pop_polling_size",
        "max_pop_polling_size", "pop_polling_map_size", "pop_long_polling_force_notify_interval",
        "enable_notify_after_pop_order_lock_release", "pop_consumer_fs_service_init", "pop_consumer_kv_service_init",
        "pop_consumer_kv_service_log", "pop_revive_max_attempt_times",
        "server_load_balancer_enable", "load_balance_poll_name_server_interval", "default_message_request_mode",
        "default_pop_share_queue_num", "load_balance_processor_thread_pool_nums",
        "load_balance_thread_pool_queue_capacity", "ack_thread_pool_queue_capacity", "wait_time_mills_in_ack_queue",
        "lite_pull_message_enable", "enable_slave_acting_master", "allow_recall_when_broker_not_writeable",
        "reject_transaction_message", "transaction_metric_flush_interval",
        "wait_time_mills_in_transaction_queue", "timer_wheel_enable", "mapped_file_size_timer_log",
        "timer_precision_ms", "timer_flush_interval_ms", "timer_put_message_thread_num",
        "timer_max_delay_sec", "timer_congest_num_each_slot", "timer_stop_enqueue", "timer_stop_dequeue",
        "timer_skip_unknown_error", "timer_enable_retry_until_success", "filter_support_retry",
        "expect_consumer_num_use_filter", "max_error_rate_of_bloom_filter", "filter_data_clean_time_span",
        "mapped_file_size_consume_queue_ext", "mapper_file_size_batch_consume_queue",
        "lite_pull_message_thread_pool_nums", "lite_pull_thread_pool_queue_capacity",
        "wait_time_mills_in_lite_pull_queue",
    ),
    ANOTHER_WORLD: (
        "broker_permission", "auto_create_topic_enable", "auto_create_subscription_group", "cluster_topic_enable",
        "broker_topic_enable", "reject_pull_consumer_enable", "start_accept_send_request_time_stamp",
        "max_message_size", "message_index_enable", "message_delay_level",
        "delete_file_batch_max", "clean_file_forcibly_enable", "disk_max_used_space_ratio",
        "disk_space_clean_forcibly_ratio", "disk_space_warning_level_ratio",
    ),
    A_CONSTANT: (
        "trace_on", "shutdown_wait_time_seconds", "service_us", "query_thread_pool_queue_capacity",
        "client_manager_thread_pool_queue_capacity", "consumer_manager_thread_pool_queue_capacity",
        "heartbeat_thread_pool_queue_capacity", "admin_broker_thread_pool_queue_capacity", "clean_resource_interval",
        "delete_commit_log_files_interval", "delete_consume_queue_files_interval",
        "max_transfer_bytes_on_message_in_disk", "max_transfer_count_on_message_in_disk",
        "access_message_in_memory_max_ratio",
    ),
    NOT_JUDGED: (
        "channel_expired_timeout", "flush_delay_offset_interval",
        "max_msgs_num_batch", "check_crc_on_recover",
    ),
}  # fmt: skip
"""BrokerConfig and MessageStoreConfig: why, and which."""

OF_CLIENTS: dict[str, tuple[str, ...]] = {
    WHO_IT_IS: (
        "namesrv_addr", "namesrv_domain", "client_ip", "unit_name", "trace_topic",
        "enable_stream_request_type", "create_topic_key", "credentials",
    ),
    A_PART_APART: (
        "client_rebalance", "pop_invisible_time", "pop_batch_nums", "pop_threshold_for_queue",
    ),
    ANOTHER_WORLD: (
        "message_model", "consume_timestamp", "consume_timeout", "compress_type",
        "max_message_size", "enable_rebalance", "max_reconsume_times",
    ),
    IN_A_WORD: ("allocate_message_queue_strategy", "instance_name"),
    A_CONSTANT: (
        "client_channel_max_idle_time_seconds", "poll_timeout_millis", "consumer_timeout_millis_when_suspend",
        "broker_suspend_max_time_millis", "consumer_pull_timeout_millis",
    ),
    NOT_JUDGED: ("heartbeat_broker_interval",),
    FOR_GOOD: ("use_heartbeat_v2",),
    NOT_HERE: (
        "vip_channel_enabled", "enable_heartbeat_channel_event_listener", "send_latency_enable",
        "start_detector_enable", "detect_timeout", "detect_interval",
    ),
}  # fmt: skip
"""ClientConfig, and what producers and consumers add to it; one in the table of a kind is left out of the others."""


OF_PROXIES: dict[str, tuple[str, ...]] = {
    WHO_IT_IS: (
        "rocket_mq_cluster_name", "namesrv_addr", "grpc_server_port", "use_endpoint_port_from_request",
    ),
    A_PART_APART: (
        "max_message_group_size", "max_delay_time_mills", "max_transaction_recovery_second", "use_delay_level",
        "message_delay_level", "transaction_heartbeat_period_second", "transaction_heartbeat_batch_num",
        "transaction_data_expire_scan_period_millis", "transaction_data_expire_millis", "transaction_data_max_num",
        "grpc_transaction_thread_pool_nums", "grpc_transaction_thread_queue_capacity", "transaction_service_us",
    ),
    ANOTHER_WORLD: (
        "max_message_size", "enable_message_body_empty_check", "max_user_property_size", "user_property_max_num",
        "enable_topic_message_type_check",
    ),
    A_CONSTANT: (
        "grpc_client_producer_backoff_initial_millis", "grpc_client_producer_backoff_max_millis",
        "grpc_client_producer_backoff_multiplier", "topic_route_service_cache_expired_seconds",
        "topic_config_cache_expired_seconds", "subscription_group_config_cache_expired_seconds",
        "grpc_producer_thread_pool_nums", "grpc_producer_thread_queue_capacity", "grpc_consumer_thread_pool_nums",
        "grpc_consumer_thread_queue_capacity", "grpc_route_thread_pool_nums", "grpc_route_thread_queue_capacity",
        "grpc_client_manager_thread_pool_nums", "grpc_client_manager_thread_queue_capacity", "route_service_us",
        "producer_service_us", "consumer_service_us", "client_manager_service_us",
    ),
    NOT_JUDGED: (
        "default_invisible_time_mills", "min_invisible_time_mills_for_recv", "max_invisible_time_mills",
        "grpc_client_consumer_min_long_polling_timeout_millis",
        "grpc_client_consumer_max_long_polling_timeout_millis", "enable_proxy_auto_renew",
        "renew_thread_pool_nums", "renew_thread_pool_queue_capacity", "renew_ahead_time_millis",
        "renew_schedule_period_millis", "invisible_time_millis_when_clear",
        "channel_expired_timeout",
    ),
    NOT_HERE: (
        "user_cache_refresh_seconds", "user_cache_expired_seconds", "acl_cache_refresh_seconds",
        "acl_cache_expired_seconds",
    ),
}  # fmt: skip
"""ProxyConfig."""

OF_CLIENTS_5: dict[str, tuple[str, ...]] = {
    WHO_IT_IS: ("credentials", "endpoints", "topics"),
    A_PART_APART: ("enable_fifo_consume_accelerator",),
    A_CONSTANT: ("max_startup_attempts",),
}
"""The configurations of the 5.x clients."""
