"""The settings of a proxy, under RocketMQ's names and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.arguments import check_least


@dataclass
class ProxyConfig:
    """What can be set on a proxy in cluster mode (org.apache.rocketmq.proxy.config.ProxyConfig).

    Times are in ms unless the name says otherwise; `namesrv_addr` is a list of addresses joined by `;`. A thread number
    of 0 means one for each core of the node. Differs from RocketMQ: local mode (a proxy inside of a broker), the
    remoting port for 4.x clients, TLS and metrics are absent. The last group is not RocketMQ's: how
    long a call keeps a thread of its pool busy, in us.
    """

    rocket_mq_cluster_name: str = "DefaultCluster"
    namesrv_addr: str = ""
    grpc_server_port: int = 8081
    use_endpoint_port_from_request: bool = False

    max_message_size: int = 4 * 1024 * 1024
    enable_message_body_empty_check: bool = True
    max_user_property_size: int = 16 * 1024
    user_property_max_num: int = 128
    max_message_group_size: int = 64
    max_delay_time_mills: int = 24 * 3_600_000
    max_transaction_recovery_second: int = 3_600
    enable_topic_message_type_check: bool = True
    use_delay_level: bool = False
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

    default_invisible_time_mills: int = 60_000
    min_invisible_time_mills_for_recv: int = 10_000
    max_invisible_time_mills: int = 12 * 3_600_000

    grpc_client_producer_max_attempts: int = 3
    grpc_client_producer_backoff_initial_millis: int = 10
    grpc_client_producer_backoff_max_millis: int = 1_000
    grpc_client_producer_backoff_multiplier: int = 2
    grpc_client_consumer_min_long_polling_timeout_millis: int = 5_000
    grpc_client_consumer_max_long_polling_timeout_millis: int = 20_000
    grpc_client_consumer_long_polling_batch_size: int = 32

    topic_route_service_cache_expired_seconds: int = 300
    topic_route_service_cache_refresh_seconds: int = 20
    topic_config_cache_expired_seconds: int = 300
    topic_config_cache_refresh_seconds: int = 20
    subscription_group_config_cache_expired_seconds: int = 300
    subscription_group_config_cache_refresh_seconds: int = 20
    user_cache_expired_seconds: int = 300
    user_cache_refresh_seconds: int = 20
    acl_cache_expired_seconds: int = 300
    acl_cache_refresh_seconds: int = 20

    enable_proxy_auto_renew: bool = True
    max_renew_retry_times: int = 3
    renew_thread_pool_nums: int = 2
    renew_thread_pool_queue_capacity: int = 300
    renew_ahead_time_millis: int = 10_000
    renew_max_time_millis: int = 3 * 3_600_000
    renew_schedule_period_millis: int = 5_000
    invisible_time_millis_when_clear: int = 1_000
    channel_expired_timeout: int = 120_000

    transaction_heartbeat_period_second: int = 20
    transaction_heartbeat_batch_num: int = 100
    transaction_data_expire_scan_period_millis: int = 10_000
    transaction_data_expire_millis: int = 30_000
    transaction_data_max_num: int = 15

    grpc_producer_thread_pool_nums: int = 0
    grpc_producer_thread_queue_capacity: int = 10_000
    grpc_consumer_thread_pool_nums: int = 0
    grpc_consumer_thread_queue_capacity: int = 10_000
    grpc_route_thread_pool_nums: int = 0
    grpc_route_thread_queue_capacity: int = 10_000
    grpc_client_manager_thread_pool_nums: int = 0
    grpc_client_manager_thread_queue_capacity: int = 10_000
    grpc_transaction_thread_pool_nums: int = 0
    grpc_transaction_thread_queue_capacity: int = 10_000

    route_service_us: int = 40
    producer_service_us: int = 40
    consumer_service_us: int = 40
    client_manager_service_us: int = 20
    transaction_service_us: int = 40

    def __post_init__(self) -> None:
        check_least(
            self,
            1,
            "renew_schedule_period_millis",
            "transaction_heartbeat_period_second",
            "transaction_heartbeat_batch_num",
            "transaction_data_expire_scan_period_millis",
        )
