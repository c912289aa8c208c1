"""The routes: which brokers are alive and which topics have queues on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mqlab.namesrv.batch_unregistration_service import BatchUnregistrationService, UnregisterBroker
from mqlab.namesrv.broker_report import BrokerAddrInfo, BrokerLiveInfo, BrokerReport, RegisterBrokerResult
from mqlab.protocol.headers.namesrv import NotifyMinBrokerIdChangeRequestHeader
from mqlab.protocol.route import MASTER_ID, BrokerData, QueueData, TopicRouteData
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import DataVersion, TopicConfig
from mqlab.trace.events.namesrv import (
    BrokerRegistered,
    BrokerRegistrationRefused,
    BrokerUnregistered,
    TopicRouteChanged,
    TopicRouteRemoved,
    WritePermChanged,
)

if TYPE_CHECKING:
    from mqlab.namesrv.namesrv_config import NamesrvConfig
    from mqlab.remoting import Channel
    from mqlab.sim import Node

ASKED = "asked"
CHANNEL_CLOSED = "channel closed"
EXPIRED = "expired"


class RouteInfoManager:
    """The tables of a name server (org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager).

    Nothing here is written to disk: a restarted name server knows what brokers report again, within 30 s. Nothing is
    taken back by a client's failure either: a route stays until its broker unregisters, its connection closes, or 120
    s pass, and until then it is stale. Differs from RocketMQ: no table of static topics, and no lock, since a slice
    is never interrupted.
    """

    def __init__(self, node: Node, config: NamesrvConfig) -> None:
        self._node = node
        self._config = config
        self.topic_queue_table: dict[str, dict[str, QueueData]] = {}
        self.broker_addr_table: dict[str, BrokerData] = {}
        self.cluster_addr_table: dict[str, dict[str, None]] = {}
        self.broker_live_table: dict[BrokerAddrInfo, BrokerLiveInfo] = {}
        self.filter_server_table: dict[BrokerAddrInfo, list[str]] = {}
        self.send_notice: Callable[[str, NotifyMinBrokerIdChangeRequestHeader], None] | None = None
        """How a notice of the smallest broker id goes to the broker at an address; None sends none."""
        self.unregister_service = BatchUnregistrationService(
            node, config.un_register_broker_queue_capacity, self.unregister_brokers
        )

    # -- registration -----------------------------------------------------------------------------------------------

    def register_broker(self, report: BrokerReport, channel: Channel) -> RegisterBrokerResult | None:
        """Take over what a broker reports; None means refused.

        A single topic is refused while the broker itself is unknown: it changes a full report, which must come first.
        """
        broker = self.broker_addr_table.get(report.broker_name)
        known = broker is not None and report.broker_id in broker.broker_addrs
        if not known and len(report.topics.topic_config_table) == 1:
            self._refused(report, "a single topic before the first full report")
            return None
        self.cluster_addr_table.setdefault(report.cluster_name, {})[report.broker_name] = None
        first = broker is None
        if broker is None:
            broker = BrokerData(report.cluster_name, report.broker_name, {})
            self.broker_addr_table[report.broker_name] = broker
        broker.enable_acting_master = bool(report.enable_acting_master)
        addresses = broker.broker_addrs
        is_smaller = bool(addresses) and report.broker_id < min(addresses)
        for broker_id in [i for i, addr in addresses.items() if addr == report.broker_addr and i != report.broker_id]:
            del addresses[broker_id]
        if self._holder_is_newer(report, addresses.get(report.broker_id)):
            self.broker_live_table.pop(BrokerAddrInfo(report.cluster_name, report.broker_addr), None)
            self._refused(report, "another address holds this id with a newer state version")
            return RegisterBrokerResult()
        first = first or not addresses.get(report.broker_id)
        addresses[report.broker_id] = report.broker_addr
        if self._speaks_for_topics(report, addresses):
            self._take_topics(report, first)
        self._note_alive(report, channel)
        if is_smaller:
            self._notify_min_broker_id_changed(addresses, None, report.ha_server_addr)
        if self._node.hooks.on:
            self._node.hooks.emit(
                BrokerRegistered(
                    report.cluster_name,
                    report.broker_name,
                    report.broker_id,
                    report.broker_addr,
                    len(report.topics.topic_config_table),
                    first,
                )
            )
        return self._master_of(report, addresses)

    def _refused(self, report: BrokerReport, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                BrokerRegistrationRefused(
                    report.cluster_name, report.broker_name, report.broker_id, report.broker_addr, reason
                )
            )

    def _holder_is_newer(self, report: BrokerReport, holder: str | None) -> bool:
        if holder is None or holder == report.broker_addr:
            return False
        live = self.broker_live_table.get(BrokerAddrInfo(report.cluster_name, holder))
        return live is not None and live.data_version.state_version > report.topics.data_version.state_version

    @staticmethod
    def _speaks_for_topics(report: BrokerReport, addresses: dict[int, str]) -> bool:
        if report.broker_id == MASTER_ID:
            return True
        return report.enable_acting_master is not None and report.broker_id == min(addresses)

    def _take_topics(self, report: BrokerReport, first: bool) -> None:
        info = BrokerAddrInfo(report.cluster_name, report.broker_addr)
        changed = self.is_broker_topic_config_changed(info, report.topics.data_version)
        acting = report.broker_id != MASTER_ID and bool(report.enable_acting_master)
        for topic, config in report.topics.topic_config_table.items():
            if first or changed or report.broker_name not in self.topic_queue_table.get(topic, {}):
                perm = config.perm & ~PermName.WRITE if acting else config.perm
                self._update_queue_data(report.broker_name, topic, config, perm)

    def _update_queue_data(self, broker_name: str, topic: str, config: TopicConfig, perm: int) -> None:
        new = QueueData(broker_name, config.read_queue_nums, config.write_queue_nums, perm, config.topic_sys_flag)
        queues = self.topic_queue_table.setdefault(topic, {})
        if queues.get(broker_name) == new:
            return
        queues[broker_name] = new
        if self._node.hooks.on:
            self._node.hooks.emit(
                TopicRouteChanged(topic, broker_name, new.read_queue_nums, new.write_queue_nums, perm)
            )

    def _note_alive(self, report: BrokerReport, channel: Channel) -> None:
        info = BrokerAddrInfo(report.cluster_name, report.broker_addr)
        timeout_ms = report.timeout_ms
        if timeout_ms is None:
            timeout_ms = self._config.default_broker_channel_expired_time
        self.broker_live_table[info] = BrokerLiveInfo(
            self._node.now_ms(), timeout_ms, report.topics.data_version, channel, report.ha_server_addr
        )
        if report.filter_servers:
            self.filter_server_table[info] = report.filter_servers
        else:
            self.filter_server_table.pop(info, None)

    def _master_of(self, report: BrokerReport, addresses: dict[int, str]) -> RegisterBrokerResult:
        master_addr = addresses.get(MASTER_ID)
        if report.broker_id == MASTER_ID or master_addr is None:
            return RegisterBrokerResult()
        live = self.broker_live_table.get(BrokerAddrInfo(report.cluster_name, master_addr))
        return RegisterBrokerResult(live.ha_server_addr, master_addr) if live is not None else RegisterBrokerResult()

    def is_broker_topic_config_changed(self, info: BrokerAddrInfo, data_version: DataVersion) -> bool:
        """Is this another version of the broker's topics than the one known here? Unknown brokers count as changed."""
        live = self.broker_live_table.get(info)
        return live is None or live.data_version != data_version

    def query_broker_topic_config(self, info: BrokerAddrInfo) -> DataVersion | None:
        """The version of the broker's topics known here."""
        live = self.broker_live_table.get(info)
        return live.data_version if live is not None else None

    def update_broker_info_update_timestamp(self, info: BrokerAddrInfo) -> None:
        """A short sign of life of a known broker."""
        live = self.broker_live_table.get(info)
        if live is not None:
            live.last_update_ms = self._node.now_ms()

    # -- leaving ----------------------------------------------------------------------------------------------------

    def submit_unregister_broker_request(self, request: UnregisterBroker) -> bool:
        """Queue a departure; False when too many are queued."""
        return self.unregister_service.submit(request)

    def on_channel_destroy(self, channel: Channel) -> None:
        """A connection has ended: the broker that reported itself over it leaves at once."""
        for info, live in list(self.broker_live_table.items()):
            if live.channel is channel:
                self._leave_because(info, CHANNEL_CLOSED)

    def scan_not_active_broker(self) -> None:
        """Drop every broker that was silent for longer than it may be, and close its connection.

        Java: org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager.scanNotActiveBroker.
        """
        now_ms = self._node.now_ms()
        for info, live in list(self.broker_live_table.items()):
            if live.last_update_ms + live.heartbeat_timeout_ms < now_ms:
                self._leave_because(info, EXPIRED)
                live.channel.close()

    def _leave_because(self, info: BrokerAddrInfo, reason: str) -> None:
        for broker in self.broker_addr_table.values():
            for broker_id, addr in broker.broker_addrs.items():
                if addr == info.broker_addr and broker.cluster == info.cluster_name:
                    leaving = UnregisterBroker(info.cluster_name, addr, broker.broker_name, broker_id, reason)
                    self.submit_unregister_broker_request(leaving)
                    return
        self.broker_live_table.pop(info, None)

    def unregister_brokers(self, requests: list[UnregisterBroker]) -> None:
        """Take these brokers out of all tables; what was unregistered already is passed over."""
        removed: list[str] = []
        reduced: list[str] = []
        without_smallest: dict[str, str] = {}
        for request in requests:
            info = BrokerAddrInfo(request.cluster_name, request.broker_addr)
            self.broker_live_table.pop(info, None)
            self.filter_server_table.pop(info, None)
            broker = self.broker_addr_table.get(request.broker_name)
            if broker is None or request.broker_addr not in broker.broker_addrs.values():
                continue
            was_smallest = request.broker_id == min(broker.broker_addrs)
            for broker_id in [i for i, addr in broker.broker_addrs.items() if addr == request.broker_addr]:
                del broker.broker_addrs[broker_id]
            if self._node.hooks.on:
                self._node.hooks.emit(
                    BrokerUnregistered(
                        request.cluster_name,
                        request.broker_name,
                        request.broker_id,
                        request.broker_addr,
                        request.reason,
                    )
                )
            if broker.broker_addrs:
                reduced.append(request.broker_name)
                if was_smallest:
                    without_smallest[request.broker_name] = request.broker_addr
            else:
                removed.append(request.broker_name)
                self._forget_broker_name(request.cluster_name, request.broker_name)
        self._clean_topics(removed, reduced)
        for broker_name, offline_addr in without_smallest.items():
            left = self.broker_addr_table.get(broker_name)
            if left is not None and left.enable_acting_master:
                self._notify_min_broker_id_changed(left.broker_addrs, offline_addr, None)

    def _notify_min_broker_id_changed(
        self, addresses: dict[int, str], offline_addr: str | None, ha_addr: str | None
    ) -> None:
        """Tell the brokers of a group who has the smallest id now: all of them when one has left or is alone, else all
        others.

        Java: org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager.notifyMinBrokerIdChanged.
        """
        if not self._config.notify_min_broker_id_changed or self.send_notice is None:
            return
        smallest = min(addresses)
        notice = NotifyMinBrokerIdChangeRequestHeader(smallest, None, addresses[smallest], offline_addr, ha_addr)
        for broker_id, addr in sorted(addresses.items()):
            if offline_addr is not None or len(addresses) == 1 or broker_id != smallest:
                self.send_notice(addr, notice)

    def _forget_broker_name(self, cluster_name: str, broker_name: str) -> None:
        del self.broker_addr_table[broker_name]
        names = self.cluster_addr_table.get(cluster_name)
        if names is not None:
            names.pop(broker_name, None)
            if not names:
                del self.cluster_addr_table[cluster_name]

    def _clean_topics(self, removed: list[str], reduced: list[str]) -> None:
        for topic, queues in list(self.topic_queue_table.items()):
            for broker_name in removed:
                if queues.pop(broker_name, None) is not None and self._node.hooks.on:
                    self._node.hooks.emit(TopicRouteRemoved(topic, broker_name))
            if not queues:
                del self.topic_queue_table[topic]
                continue
            for broker_name in reduced:
                queue = queues.get(broker_name)
                broker = self.broker_addr_table.get(broker_name)
                if queue is not None and broker is not None and self._acts_without_master(broker):
                    queues[broker_name] = replace(queue, perm=queue.perm & ~PermName.WRITE)

    @staticmethod
    def _acts_without_master(broker: BrokerData) -> bool:
        return broker.enable_acting_master and MASTER_ID not in broker.broker_addrs

    # -- asking -----------------------------------------------------------------------------------------------------

    def pick_up_topic_route_data(self, topic: str) -> TopicRouteData | None:
        """The route of a topic as it is known now; None when it has no queue on a broker that is alive."""
        queues = self.topic_queue_table.get(topic)
        if not queues:
            return None
        brokers: list[BrokerData] = []
        filter_servers: dict[str, list[str]] = {}
        for broker_name in queues:
            broker = self.broker_addr_table.get(broker_name)
            if broker is None:
                continue
            brokers.append(replace(broker, broker_addrs=dict(sorted(broker.broker_addrs.items()))))
            for addr in broker.broker_addrs.values():
                servers = self.filter_server_table.get(BrokerAddrInfo(broker.cluster, addr))
                if servers is not None:
                    filter_servers[addr] = list(servers)
        if not brokers:
            return None
        return TopicRouteData(list(queues.values()), brokers, filter_servers)

    def get_all_topic_list(self) -> list[str]:
        """Every topic that has a route."""
        return list(self.topic_queue_table)

    def get_topics_by_cluster(self, cluster: str) -> list[str]:
        """The topics with queues on a broker of the cluster."""
        names = self.cluster_addr_table.get(cluster, {})
        return [topic for topic, queues in self.topic_queue_table.items() if any(name in queues for name in names)]

    def get_system_topic_list(self) -> tuple[list[str], str | None]:
        """The topics named after clusters and brokers, and the address of one broker that has them."""
        topics = [name for cluster, names in self.cluster_addr_table.items() for name in (cluster, *names)]
        for broker in self.broker_addr_table.values():
            for addr in broker.broker_addrs.values():
                return topics, addr
        return topics, None

    # -- administration ---------------------------------------------------------------------------------------------

    def register_topic(self, topic: str, queues: list[QueueData]) -> None:
        """Give a topic queues on brokers that are known; those of unknown brokers are passed over."""
        for queue in queues:
            if queue.broker_name in self.broker_addr_table:
                self.topic_queue_table.setdefault(topic, {})[queue.broker_name] = queue
                if self._node.hooks.on:
                    self._node.hooks.emit(
                        TopicRouteChanged(
                            topic, queue.broker_name, queue.read_queue_nums, queue.write_queue_nums, queue.perm
                        )
                    )

    def delete_topic(self, topic: str, cluster_name: str | None = None) -> None:
        """Remove a topic's route, everywhere or on one cluster; a broker that still has the topic brings it back."""
        queues = self.topic_queue_table.get(topic)
        if queues is None:
            return
        names = self.cluster_addr_table.get(cluster_name, {}) if cluster_name else dict.fromkeys(queues)
        for broker_name in names:
            if queues.pop(broker_name, None) is not None and self._node.hooks.on:
                self._node.hooks.emit(TopicRouteRemoved(topic, broker_name))
        if not queues:
            del self.topic_queue_table[topic]

    def wipe_write_perm_of_broker(self, broker_name: str) -> int:
        """Take the write bit from all routes of a broker; returns how many topics it has."""
        return self._change_write_perm(broker_name, writeable=False)

    def add_write_perm_of_broker(self, broker_name: str) -> int:
        """Make all routes of a broker readable and writeable; returns how many topics it has."""
        return self._change_write_perm(broker_name, writeable=True)

    def _change_write_perm(self, broker_name: str, *, writeable: bool) -> int:
        count = 0
        for queues in self.topic_queue_table.values():
            queue = queues.get(broker_name)
            if queue is not None:
                perm = PermName.READ_WRITE if writeable else queue.perm & ~PermName.WRITE
                queues[broker_name] = replace(queue, perm=perm)
                count += 1
        if self._node.hooks.on:
            self._node.hooks.emit(WritePermChanged(broker_name, writeable, count))
        return count

    # -- looking ----------------------------------------------------------------------------------------------------

    def show(self) -> list[dict[str, str | int]]:
        """The brokers as this name server sees them, one row each: also those that are gone and not yet noticed.

        `silent_ms` is the time since the last report, `expires_in_ms` the time until the broker is dropped without
        another.
        """
        now_ms = self._node.now_ms()
        rows: list[dict[str, str | int]] = []
        for broker in self.broker_addr_table.values():
            for broker_id, addr in sorted(broker.broker_addrs.items()):
                live = self.broker_live_table.get(BrokerAddrInfo(broker.cluster, addr))
                topics = sum(broker.broker_name in queues for queues in self.topic_queue_table.values())
                rows.append({
                    "cluster": broker.cluster,
                    "broker": broker.broker_name,
                    "id": broker_id,
                    "address": addr,
                    "topics": topics,
                    "silent_ms": now_ms - live.last_update_ms if live else -1,
                    "expires_in_ms": live.last_update_ms + live.heartbeat_timeout_ms - now_ms if live else -1,
                })  # fmt: skip
        return rows

    def show_topics(self) -> list[dict[str, str | int | bool]]:
        """The queues of all topics as this name server sees them, one row for each broker that is said to hold some.

        `broker_known` is False for a broker whose addresses are all gone.
        """
        return [
            {
                "topic": topic,
                "broker": broker_name,
                "read_queues": queue.read_queue_nums,
                "write_queues": queue.write_queue_nums,
                "perm": PermName.text(queue.perm),
                "broker_known": broker_name in self.broker_addr_table,
            }
            for topic, queues in sorted(self.topic_queue_table.items())
            for broker_name, queue in queues.items()
        ]
