"""Transactions of a proxy's producers: brokers are told that they can be asked, and their questions are handed on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mqlab.client.mq_client_api import MQClientAPIImpl
from mqlab.errors import MqlabError, RemotingException
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import MessageIdError, RecordError
from mqlab.protocol.headers import CheckTransactionStateRequestHeader, HeartbeatRequestHeader
from mqlab.protocol.heartbeat import HeartbeatData, ProducerData
from mqlab.protocol.message import MessageConst
from mqlab.protocol.message_id import decode_message_id
from mqlab.protocol.record import decode_record
from mqlab.protocol.v2.service import RecoverOrphanedTransactionCommand, TelemetryCommand
from mqlab.proxy.grpc_converter import build_message
from mqlab.proxy.transaction_data_manager import TransactionData, TransactionDataManager
from mqlab.remoting import Channel, RequestProcessor
from mqlab.sim.service import ServiceThread
from mqlab.trace.events.transaction import OrphanedTransactionRelayed

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.client.producer.send_result import SendResult
    from mqlab.protocol.route import BrokerData
    from mqlab.proxy.client_manager import ClientManager
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.topic_route_service import TopicRouteService
    from mqlab.sim import Node

TRANS_HEARTBEAT_CLIENT_ID = "rmq-proxy-producer-client"
"""As whom a proxy is known to brokers; all proxies have the same name, and brokers tell them by their connections."""

HEARTBEAT_TIMEOUT_MS = 3_000


class ClusterTransactionService(RequestProcessor):
    """What a proxy does for transactions, made when a producer of a topic for them, or a half message, first comes.

    A 5.x producer has no group: its topic stands for one. A topic is announced only if it was made with
    `message.type=TRANSACTION`: a half message in a topic of type MIXED is asked about at nobody. Java:
    org.apache.rocketmq.proxy.service.transaction.ClusterTransactionService, and for the questions
    org.apache.rocketmq.proxy.service.client.ProxyClientRemotingProcessor and
    org.apache.rocketmq.proxy.service.relay.AbstractProxyRelayService. Differs from RocketMQ: no pool of threads for
    heartbeats, which are one-way.
    """

    def __init__(
        self, node: Node, config: ProxyConfig, routes: TopicRouteService, clients: ClientManager, settings: ClientConfig
    ) -> None:
        self._node = node
        self._batch_num = config.transaction_heartbeat_batch_num
        self._routes = routes
        self._clients = clients
        self._remoting_client = MQClientAPIImpl(node, settings).remoting_client
        """Over channels of their own, since a broker closes the one of a producer from which it hears no more."""
        self._group_cluster_data: dict[str, dict[str, None]] = {}
        """Group (a topic) -> the clusters that it is in."""
        self._broker_names: dict[str, str] = {}
        """Address -> name of each broker that the last heartbeat went to."""
        self._data = TransactionDataManager(node, config)
        self._heartbeats = TxHeartbeatService(node, self, config.transaction_heartbeat_period_second * 1_000)

    def start(self, origin_us: int) -> None:
        """Hear questions, and begin the threads, whose turns count from the start of the proxy."""
        self._remoting_client.register_processor(RequestCode.CHECK_TRANSACTION_STATE, self)
        for thread in (self._heartbeats, self._data.cleaner):
            thread.start()
            thread.set_origin(origin_us)

    def shutdown(self) -> None:
        """End the threads."""
        self._heartbeats.shutdown()
        self._data.cleaner.shutdown()

    # -- heartbeats: brokers shall know whom to ask -------------------------------------------------------------------

    @property
    def has_groups(self) -> bool:
        """Whether there is anything to tell brokers."""
        return bool(self._group_cluster_data)

    async def add_transaction_subscription(self, group: str, topic: str) -> None:
        """Tell the brokers of the topic's clusters, at each heartbeat from the next one on, of this group.

        Java: org.apache.rocketmq.proxy.service.transaction.ClusterTransactionService.addTransactionSubscription.
        """
        try:
            brokers = (await self._routes.view(topic)).route.broker_datas
        except MqlabError:
            # Its producers come again with their next heartbeat.
            return
        self._group_cluster_data.setdefault(group, {}).update(dict.fromkeys(broker.cluster for broker in brokers))
        self._heartbeats.wakeup_for_work()

    async def scan_producer_heart_beat(self) -> None:
        """Send the heartbeats; a group of which no producer is here any more is forgotten.

        Java: org.apache.rocketmq.proxy.service.transaction.ClusterTransactionService.scanProducerHeartBeat.
        """
        groups_of: dict[str, list[str]] = {}
        for group, clusters in list(self._group_cluster_data.items()):
            if not self._clients.group_online(group):
                del self._group_cluster_data[group]
                continue
            for cluster in clusters:
                groups_of.setdefault(cluster, []).append(group)
        if not groups_of:
            return
        names: dict[str, str] = {}
        self._broker_names = names
        for cluster, groups in groups_of.items():
            for first in range(0, len(groups), self._batch_num):
                producers = [ProducerData(group) for group in groups[first : first + self._batch_num]]
                # Without a route of the cluster its brokers hear nothing this time.
                with suppress(MqlabError):
                    await self._send_heart_beat_to_cluster(cluster, producers, names)

    async def _send_heart_beat_to_cluster(
        self, cluster: str, producers: list[ProducerData], names: dict[str, str]
    ) -> None:
        body = HeartbeatData(TRANS_HEARTBEAT_CLIENT_ID, producers).encode()
        for broker in (await self._routes.view(cluster)).route.broker_datas:
            address = self._select_broker_addr(broker)
            names[address] = broker.broker_name
            request = RemotingCommand.request(RequestCode.HEART_BEAT, HeartbeatRequestHeader(), body)
            # The next heartbeat may get through.
            with suppress(RemotingException):
                self._remoting_client.invoke_oneway(address, request, HEARTBEAT_TIMEOUT_MS)

    def _select_broker_addr(self, broker: BrokerData) -> str:
        """The master, or any slave (org.apache.rocketmq.remoting.protocol.route.BrokerData.selectBrokerAddr)."""
        slaves = list(broker.broker_addrs.values())
        return broker.master_addr or slaves[self._node.choose(f"tx-heartbeat/{broker.broker_name}", len(slaves))]

    # -- half messages ------------------------------------------------------------------------------------------------

    def half_message_sent(self, group: str, broker_name: str, sent: SendResult) -> None:
        """Know where a half message lies that was just stored.

        Java: org.apache.rocketmq.proxy.processor.ProducerProcessor.fillTransactionData.
        """
        # A batch has several ids, and as in RocketMQ nothing is known of it.
        with suppress(MessageIdError):
            offset = decode_message_id(sent.offset_msg_id).offset
            self._data.add(group, sent.transaction_id or "", broker_name, sent.queue_offset, offset)

    def take(self, group: str, transaction_id: str) -> TransactionData | None:
        """Where the newest half message of a transaction lies; None when it is not known, or not any more."""
        return self._data.poll(group, transaction_id)

    # -- questions of brokers -----------------------------------------------------------------------------------------

    def process_request(self, channel: Channel, request: RemotingCommand) -> None:
        """A broker asks what became of a transaction: any producer of its topic is asked over its standing stream.

        Java: org.apache.rocketmq.proxy.service.client.ProxyClientRemotingProcessor.checkTransactionState.
        """
        header = request.header_as(CheckTransactionStateRequestHeader)
        try:
            message = decode_record(request.body or b"", decompress=False)
        except RecordError:
            return
        group = message.properties.get(MessageConst.PRODUCER_GROUP, "")
        producer = self._clients.available_producer(group)
        broker_name = self._broker_names.get(channel.remote_address, "")
        asked = producer is not None and broker_name != ""
        if self._node.hooks.on:
            client_id = producer.client_id if producer is not None and asked else ""
            self._node.hooks.emit(
                OrphanedTransactionRelayed(
                    message.topic, message.msg_id, group, header.tran_state_table_offset, broker_name, client_id
                )
            )
        if producer is None or not asked:
            return
        transaction_id = header.transaction_id or ""
        self._data.add(
            group, transaction_id, broker_name, header.tran_state_table_offset, header.commit_log_offset
        )
        question = RecoverOrphanedTransactionCommand(build_message(message, self._node.now_ms()), transaction_id)
        producer.write_telemetry_command(TelemetryCommand(recover_orphaned_transaction_command=question))


class TxHeartbeatService(ServiceThread):
    """Tells brokers every 20 s of the topics of transactions (ClusterTransactionService.TxHeartbeatServiceThread)."""

    def __init__(self, node: Node, transactions: ClusterTransactionService, period_ms: int) -> None:
        super().__init__(node, "TxHeartbeatServiceThread", period_ms)
        self._transactions = transactions

    def has_work(self) -> bool:
        """Is there a topic to tell of?"""
        return self._transactions.has_groups

    async def run(self) -> None:
        """The loop of the thread."""
        while not self.stopped:
            await self.wait_for_running()
            await self._transactions.scan_producer_heart_beat()
