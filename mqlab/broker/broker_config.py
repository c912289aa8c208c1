"""The settings of a broker, under RocketMQ's names and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.arguments import check_least
from mqlab.errors import LearnerError
from mqlab.protocol.topic_config import check_queue_nums
from mqlab.protocol.topics import AUTO_CREATE_TOPIC_KEY_TOPIC, REVIVE_TOPIC_PREFIX


@dataclass
class ServiceTimes:
    """How long a request keeps its thread, in microseconds. Not RocketMQ's: there the machine decides, here you do."""

    send: int = 40
    pull: int = 40
    query: int = 60
    client_manage: int = 20
    heartbeat: int = 20
    consumer_manage: int = 20
    admin: int = 50
    pop: int = 60
    ack: int = 40
    assignment: int = 20
    end_transaction: int = 40


@dataclass
class BrokerConfig:
    """What can be set on a broker (org.apache.rocketmq.common.BrokerConfig).

    A broker's file also sets its NettyServerConfig, so the two settings of a graceful end are here, too. Times are in
    milliseconds unless the name says otherwise. `namesrv_addr` is a list of addresses joined by `;`. A thread number of
    0 is worked out from the cores of the node, as RocketMQ does. Settings of parts that are not here are absent.
    """

    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    broker_id: int = 0
    namesrv_addr: str = ""
    broker_ip1: str = ""
    listen_port: int = 10911
    ha_listen_port: int = 10912
    enable_shutdown_gracefully: bool = False
    """At a clean stop, answer GO_AWAY to every request for a while before the channels are closed."""
    shutdown_wait_time_seconds: int = 30
    region_id: str = "DefaultRegion"
    trace_on: bool = True

    broker_permission: int = 6
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    default_topic_queue_nums: int = 8
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"

    revive_queue_num: int = 8
    revive_interval: int = 1_000
    revive_max_slow: int = 3
    revive_scan_time: int = 10_000
    enable_skip_long_awaiting_ack: bool = False
    revive_ack_wait_ms: int = 180_000
    skip_when_ck_re_put_reach_max_times: bool = False
    enable_pop_log: bool = False
    """Accepted, and without effect: what a log would say stands in the trace."""
    enable_pop_buffer_merge: bool = False
    pop_ck_stay_buffer_time: int = 10_000
    pop_ck_stay_buffer_time_out: int = 3_000
    pop_ck_max_buffer_size: int = 200_000
    pop_ck_offset_max_queue_size: int = 20_000
    enable_pop_batch_ack: bool = False
    append_ck_async: bool = False
    append_ack_async: bool = False
    pop_from_retry_probability: int = 20
    """Per cent of the pops that look at the retry topic first."""
    enable_retry_topic_v2: bool = False
    retrieve_message_from_pop_retry_topic_v1: bool = True
    pop_response_return_actual_retry_topic: bool = False
    init_pop_offset_by_check_msg_in_mem: bool = True
    enable_pop_message_threshold: bool = False
    pop_inflight_message_threshold: int = 10_000
    pop_polling_size: int = 1_024
    """A queue (or any queue of a topic) keeps one pop more than this of each group."""
    max_pop_polling_size: int = 100_000
    pop_polling_map_size: int = 100_000
    pop_long_polling_force_notify_interval: int = 800
    enable_notify_after_pop_order_lock_release: bool = True
    pop_consumer_fs_service_init: bool = True
    """Whether the threads of check points (buffer, revivers) are started."""
    pop_consumer_kv_service_init: bool = False
    pop_consumer_kv_service_enable: bool = False
    pop_consumer_kv_service_log: bool = False
    pop_revive_max_return_size_per_read: int = 16 * 1024
    pop_revive_max_attempt_times: int = 16

    enable_property_filter: bool = False
    """Take subscriptions by SQL92 conditions."""
    filter_support_retry: bool = False
    enable_calc_filter_bit_map: bool = False
    """Judge each message by all filters of its topic when it is dispatched."""
    expect_consumer_num_use_filter: int = 32
    """How many groups a bit map is made for."""
    max_error_rate_of_bloom_filter: int = 20
    """Per cent of the messages that a bit map may wrongly let pass."""
    filter_data_clean_time_span: int = 24 * 3_600 * 1_000

    long_polling_enable: bool = True
    short_polling_time_mills: int = 1_000
    notify_consumer_ids_changed_enable: bool = True
    real_time_notify_consumer_change: bool = True
    reject_pull_consumer_enable: bool = False
    lite_pull_message_enable: bool = True
    slave_read_enable: bool = False
    enable_slave_acting_master: bool = False
    """Tell name servers that a slave without its master may stand for it, and follow their notices of the smallest
    broker id. What a slave does in place of its master is not here: it only serves what slaves serve.
    """
    use_server_side_reset_offset: bool = True
    """Whether the broker moves a group by itself; else it tells the group's members, which must be there."""
    enable_broadcast_offset_store: bool = True

    server_load_balancer_enable: bool = True
    """Share the queues out when a consumer asks for its queues; without it everybody gets all of them."""
    load_balance_poll_name_server_interval: int = 30_000
    default_message_request_mode: str = "PULL"
    """Whether consumers that leave it to the broker pull or pop where nobody has set it: "PULL" or "POP"."""
    default_pop_share_queue_num: int = -1

    register_broker_timeout_mills: int = 24_000
    register_name_server_period: int = 30_000
    flush_consumer_offset_interval: int = 5_000
    delay_offset_update_version_step: int = 200
    channel_expired_timeout: int = 120_000
    rebalance_lock_max_live_time: int = 60_000
    start_accept_send_request_time_stamp: int = 0
    store_reply_message_enable: bool = True
    """Whether a reply also goes to the log, beside being pushed to who asked."""
    recall_message_enable: bool = False
    allow_recall_when_broker_not_writeable: bool = True

    cold_ctr_strategy_enable: bool = False
    """Let the limits of groups that read cold data move with what all of them read."""
    use_pid_cold_ctr_strategy: bool = True
    cg_cold_read_threshold: int = 3 * 1024 * 1024
    """Bytes of cold data that a group may read in 5 s."""
    global_cold_read_threshold: int = 100 * 1024 * 1024
    """The same for all groups together."""

    reject_transaction_message: bool = False
    transaction_time_out: int = 6_000
    """How old (ms) a half message is before the broker asks what became of it, unless it says so itself."""
    transaction_check_max: int = 15
    """How often the broker asks before the message goes to TRANS_CHECK_MAX_TIME_TOPIC."""
    transaction_check_interval: int = 30_000
    transaction_op_msg_max_size: int = 4_096
    transaction_op_batch_interval: int = 3_000
    transaction_metric_flush_interval: int = 3_000

    send_message_thread_pool_nums: int = 0
    process_reply_message_thread_pool_nums: int = 0
    pull_message_thread_pool_nums: int = 0
    lite_pull_message_thread_pool_nums: int = 0
    query_message_thread_pool_nums: int = 0
    admin_broker_thread_pool_nums: int = 16
    client_manage_thread_pool_nums: int = 32
    consumer_manage_thread_pool_nums: int = 32
    load_balance_processor_thread_pool_nums: int = 32
    heartbeat_thread_pool_nums: int = 0
    end_transaction_thread_pool_nums: int = 0
    ack_message_thread_pool_nums: int = 16

    send_thread_pool_queue_capacity: int = 10_000
    reply_thread_pool_queue_capacity: int = 10_000
    pull_thread_pool_queue_capacity: int = 100_000
    lite_pull_thread_pool_queue_capacity: int = 100_000
    query_thread_pool_queue_capacity: int = 20_000
    client_manager_thread_pool_queue_capacity: int = 1_000_000
    consumer_manager_thread_pool_queue_capacity: int = 1_000_000
    heartbeat_thread_pool_queue_capacity: int = 50_000
    admin_broker_thread_pool_queue_capacity: int = 10_000
    end_transaction_pool_queue_capacity: int = 100_000
    load_balance_thread_pool_queue_capacity: int = 100_000
    ack_thread_pool_queue_capacity: int = 100_000

    broker_fast_failure_enable: bool = True
    wait_time_mills_in_send_queue: int = 200
    wait_time_mills_in_pull_queue: int = 5_000
    wait_time_mills_in_lite_pull_queue: int = 5_000
    wait_time_mills_in_heartbeat_queue: int = 31_000
    wait_time_mills_in_transaction_queue: int = 3_000
    wait_time_mills_in_ack_queue: int = 3_000
    wait_time_mills_in_admin_broker_queue: int = 5_000

    service_us: ServiceTimes = field(default_factory=ServiceTimes)

    def __post_init__(self) -> None:
        check_least(
            self,
            1,
            "short_polling_time_mills",
            "flush_consumer_offset_interval",
            "revive_interval",
            "load_balance_poll_name_server_interval",
        )
        check_least(self, 1, "expect_consumer_num_use_filter", "max_error_rate_of_bloom_filter")
        if self.max_error_rate_of_bloom_filter >= 100:
            raise LearnerError(
                f"max_error_rate_of_bloom_filter={self.max_error_rate_of_bloom_filter} is no rate of errors",
                "write per cent, from 1 to 99",
            )
        check_queue_nums(AUTO_CREATE_TOPIC_KEY_TOPIC, self.default_topic_queue_nums)
        check_queue_nums(REVIVE_TOPIC_PREFIX, self.revive_queue_num)
        if self.default_message_request_mode not in ("PULL", "POP"):
            raise LearnerError(
                f"default_message_request_mode={self.default_message_request_mode!r} is no message request mode",
                "write 'PULL' or 'POP'",
            )

    def namesrv_list(self) -> list[str]:
        """The addresses of the name servers, in the order given."""
        return [address.strip() for address in self.namesrv_addr.split(";") if address.strip()]

    def registration_period_ms(self) -> int:
        """How often the broker reports itself: the setting, held between 10 s and 60 s."""
        return max(10_000, min(self.register_name_server_period, 60_000))
