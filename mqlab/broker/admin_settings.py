"""What administrators ask of the broker itself: its settings, and how it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.errors import LearnerError
from mqlab.protocol import fastjson
from mqlab.protocol.codes import CURRENT_VERSION, RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import (
    GetBrokerConfigResponseHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    ResetMasterFlushOffsetHeader,
    ViewBrokerStatsDataRequestHeader,
)
from mqlab.protocol.java_properties import (
    decode_java_properties,
    encode_java_properties,
    settings_to_properties,
    update_settings,
)
from mqlab.protocol.topic_config import KVTable
from mqlab.sim import used_share
from mqlab.store import BrokerRole, FlushDiskType

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts, Handler
    from mqlab.remoting import Channel

CONFIG_BLACK_LIST = ("configBlackList", "brokerConfigPath")
FIXED = (
    "storePathRootDir",
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "enableConsumeQueueExt",
    "mappedFileSizeConsumeQueueExt",
    "mapperFileSizeBatchConsumeQueue",
    "maxHashSlotNum",
    "maxIndexNum",
    "mappedFileSizeTimerLog",
    "timerPrecisionMs",
)


class AdminSettings:
    """The settings requests of org.apache.rocketmq.broker.processor.AdminBrokerProcessor.

    Differs from RocketMQ: changed settings are not written to a file, a restarted process begins with those it was
    made with; and what no broker could work with is refused (a period of 0 ms, another place or size of the files, and
    what RocketMQ takes and has no thread for: SYNC_FLUSH in a broker that has begun without, another side of
    replication).
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker

    def handlers(self) -> dict[int, Handler]:
        """What this part answers, by request code."""
        return {
            RequestCode.UPDATE_BROKER_CONFIG: self._update_broker_config,
            RequestCode.GET_BROKER_CONFIG: self._get_broker_config,
            RequestCode.GET_BROKER_RUNTIME_INFO: self._get_broker_runtime_info,
            RequestCode.VIEW_BROKER_STATS_DATA: self._view_broker_stats_data,
            RequestCode.GET_BROKER_HA_STATUS: self._get_broker_ha_status,
            RequestCode.GET_TIMER_CHECK_POINT: self._get_timer_check_point,
            RequestCode.GET_TIMER_METRICS: self._get_timer_metrics,
            RequestCode.RESET_MASTER_FLUSH_OFFSET: self._reset_master_flush_offset,
            RequestCode.GET_BROKER_EPOCH_CACHE: self._get_broker_epoch_cache,
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: self._notify_min_broker_id_change,
        }

    def _update_broker_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        broker = self._broker
        properties = decode_java_properties((request.body or b"").decode("utf-8", "replace"))
        if any(name in CONFIG_BLACK_LIST for name in properties):
            raise RequestError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        if fixed := next((name for name in properties if name in FIXED), None):
            raise RequestError(ResponseCode.NO_PERMISSION, f"{fixed} shapes the files of the store, which is open")
        if refusal := self._needs_restart(properties):
            raise RequestError(ResponseCode.NO_PERMISSION, refusal)
        try:
            update_settings(properties, broker.broker_config, broker.message_store_config)
        except LearnerError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, error.message) from None
        broker.config_version.next_version(broker.node.now_ms())
        broker.follow_settings()
        if "brokerPermission" in properties:
            broker.topic_config_manager.data_version.next_version(broker.node.now_ms())
            broker.node.spawn(broker.register_broker_all(), "register broker")
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _needs_restart(self, properties: dict[str, str]) -> str:
        """Why settings that a broker's threads were made for cannot be changed so, and what to do; "" if they can."""
        store = self._broker.message_store
        in_groups = store.services is not None and store.services.group_commit is not None
        if properties.get("flushDiskType") == FlushDiskType.SYNC_FLUSH.value and not in_groups:
            return (
                "flushDiskType=SYNC_FLUSH: the broker has begun without the thread that synchronous flush needs "
                "(RocketMQ 5.3.3 takes the value; then each send fails by a ClassCastException, and yet is stored); "
                "start it anew with this setting"
            )
        role = properties.get("brokerRole")
        masters = (BrokerRole.ASYNC_MASTER.value, BrokerRole.SYNC_MASTER.value)
        is_slave = store.config.broker_role is BrokerRole.SLAVE
        if (role == BrokerRole.SLAVE.value and not is_slave) or (role in masters and is_slave):
            return (
                f"brokerRole={role}: a running broker does not change between master and slave (RocketMQ 5.3.3 "
                "takes the value, but nothing begins to copy, or ends); start it anew with brokerRole and brokerId"
            )
        return ""

    def _get_broker_config(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        broker = self._broker
        properties = settings_to_properties(broker.broker_config) | settings_to_properties(broker.message_store_config)
        text = encode_java_properties(dict(sorted(properties.items())))
        version = fastjson.dumps(broker.config_version.to_json())
        return RemotingCommand.response(
            ResponseCode.SUCCESS, None, GetBrokerConfigResponseHeader(version), text.encode("utf-8", "replace")
        )

    def _get_broker_runtime_info(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(ResponseCode.SUCCESS, body=KVTable(self.runtime_info()).encode())

    def _view_broker_stats_data(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        from mqlab.protocol.bodies import BrokerStatsData, BrokerStatsItem

        name, key = request.header_as(ViewBrokerStatsDataRequestHeader)
        stats = self._broker.stats
        item = stats.item(name, key)
        if item is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        over = (item.in_minute(stats.age_ms), item.in_hour(stats.age_ms), item.in_day(stats.age_ms))
        body = BrokerStatsData(*(BrokerStatsItem(*snapshot) for snapshot in over))
        return RemotingCommand.response(ResponseCode.SUCCESS, body=body.encode())

    def _get_broker_ha_status(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Which slaves the broker has, or how it follows its master; a master that never had a slave has none."""
        from mqlab.protocol.bodies import HARuntimeInfo

        service, end = self._broker.made_ha, self._broker.message_store.max_phy_offset
        alone = HARuntimeInfo(master=True, master_commit_log_max_offset=end)
        info = service.get_runtime_info() if service is not None else alone
        return RemotingCommand.response(ResponseCode.SUCCESS, body=info.encode())

    def _reset_master_flush_offset(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Let a slave think so much of its master's log is safe; a master answers, and does nothing."""
        header = request.header_as(ResetMasterFlushOffsetHeader)
        if self._broker.broker_config.broker_id and header.master_flush_offset is not None:
            self._broker.message_store.store_checkpoint.master_flushed_offset = header.master_flush_offset
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _get_broker_epoch_cache(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        raise RequestError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")

    def _notify_min_broker_id_change(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        notice = request.header_as(NotifyMinBrokerIdChangeRequestHeader)
        if notice.min_broker_id is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "java.lang.NullPointerException: no minBrokerId")
        self._broker.update_min_broker(
            notice.min_broker_id, notice.min_broker_addr, notice.offline_broker_addr, notice.ha_broker_addr
        )
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _get_timer_check_point(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """How far the timer is; as RocketMQ makes it at the start, it is made for this question."""
        if not self._broker.message_store_config.timer_wheel_enable:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
        checkpoint = self._broker.timer_message_store.timer_checkpoint
        return RemotingCommand.response(ResponseCode.SUCCESS, body=checkpoint.encode())

    def _get_timer_metrics(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        if not self._broker.message_store_config.timer_wheel_enable:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "The timer message store is null")
        metrics = self._broker.timer_message_store.timer_metrics
        return RemotingCommand.response(ResponseCode.SUCCESS, body=metrics.encode())

    def runtime_info(self) -> dict[str, str]:
        """How the broker is doing, under RocketMQ's names; a part of what a real one tells."""
        broker = self._broker
        store, stats = broker.message_store, broker.stats
        stats.turn_day()
        info: dict[str, object] = {
            "bootTimestamp": stats.boot_ms,
            "brokerActive": "true",
            "brokerVersion": CURRENT_VERSION,
            "brokerVersionDesc": "V5_3_3",
            "commitLogDiskRatio": used_share(broker.node.disk),
            "commitLogMinOffset": max(0, store.min_phy_offset),
            "commitLogMaxOffset": store.max_phy_offset,
            "dispatchBehindBytes": store.dispatch_behind_bytes,
            "earliestMessageTimeStamp": store.get_earliest_message_time(),
            "getTransferredTps": stats.transferred_tps,
            "msgGetTotalTodayMorning": stats.got_today_morning,
            "msgGetTotalYesterdayMorning": stats.got_yesterday_morning,
            "msgPutTotalTodayMorning": stats.put_today_morning,
            "msgPutTotalYesterdayMorning": stats.put_yesterday_morning,
            "putTps": stats.put_tps,
            "msgGetTotalTodayNow": stats.messages_got,
            "msgPutTotalTodayNow": stats.messages_put,
            "startAcceptSendRequestTimeStamp": broker.broker_config.start_accept_send_request_time_stamp,
        }
        info.update(broker.schedule_message_service.runtime_info())
        timer = broker.timer
        info["timerReadBehind"] = timer.dequeue_behind_s if timer is not None else 0
        info["timerOffsetBehind"] = timer.enqueue_behind_messages if timer is not None else 0
        info["timerCongestNum"] = timer.all_congest_num if timer is not None else 0
        pools = broker.executors
        for name, pool in (
            ("sendThreadPool", pools.send),
            ("pullThreadPool", pools.pull),
            ("litePullThreadPool", pools.lite_pull),
            ("queryThreadPool", pools.query),
            ("ackThreadPool", pools.ack),
        ):
            info[f"{name}QueueSize"] = len(pool.queue)
            info[f"{name}QueueCapacity"] = pool.capacity
            info[f"{name}QueueHeadWaitTimeMills"] = pool.oldest_wait_us() // 1_000
        return {name: str(value) for name, value in sorted(info.items())}
