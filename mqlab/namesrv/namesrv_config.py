"""The settings of a name server, under RocketMQ's names and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass

from mqlab.arguments import check_least


@dataclass
class NamesrvConfig:
    """What can be set on a name server (org.apache.rocketmq.common.namesrv.NamesrvConfig).

    Times end in their unit. The last group is not RocketMQ's: how long a request keeps a thread of the pool busy.
    """

    listen_port: int = 9876
    kv_config_path: str = "namesrv/kvConfig.json"
    order_message_enable: bool = False
    enable_all_topic_list: bool = True
    enable_topic_list: bool = True
    need_wait_for_service: bool = False
    wait_seconds_for_service: int = 45
    return_order_topic_config_to_broker: bool = True
    scan_not_active_broker_interval: int = 5_000
    default_broker_channel_expired_time: int = 120_000
    un_register_broker_queue_capacity: int = 3_000
    notify_min_broker_id_changed: bool = False
    """Tell the brokers of a group when another one of them has the smallest id."""
    default_thread_pool_nums: int = 16
    default_thread_pool_queue_capacity: int = 10_000
    client_request_thread_pool_nums: int = 8
    client_request_thread_pool_queue_capacity: int = 50_000

    route_service_us: int = 20
    default_service_us: int = 30

    def __post_init__(self) -> None:
        check_least(self, 1, "scan_not_active_broker_interval")
