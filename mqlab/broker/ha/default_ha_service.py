"""A broker's part in replication: the port for slaves, what waits for them, and in a slave the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.ha.default_ha_client import DefaultHAClient
from mqlab.broker.ha.default_ha_connection import DefaultHAConnection
from mqlab.broker.ha.group_transfer_service import GroupTransferService
from mqlab.protocol.bodies import HAConnectionRuntimeInfo, HARuntimeInfo
from mqlab.store import BrokerRole
from mqlab.trace.events.ha import ReplicaConnected

if TYPE_CHECKING:
    from mqlab.sim import Future, Node, Transport
    from mqlab.store import DefaultMessageStore, MessageExtBrokerInner, PutMessageResult
    from mqlab.store.put_message import PutMessageStatus


class DefaultHAService:
    """Replication of one store (org.apache.rocketmq.store.ha.DefaultHAService).

    A master has a connection for each slave, a slave (which has the same port) a client. Differs from RocketMQ: a
    master that waits for no copies has none of it before its first slave connects.
    """

    def __init__(self, node: Node, store: DefaultMessageStore) -> None:
        self.node = node
        self.store = store
        self.config = store.config
        self.connection_list: list[DefaultHAConnection] = []
        self.push_to_slave_max_offset = 0
        """The highest offset that any slave has reported (push2SlaveMaxOffset)."""
        self.group_transfer_service = GroupTransferService(node, self.replicas_at)
        is_slave = self.config.broker_role is BrokerRole.SLAVE
        self.ha_client = DefaultHAClient(node, store, self._appended) if is_slave else None
        store.handle_ha = self.handle_ha

    def start(self) -> None:
        """Let a slave look for its master; connections begin as they come."""
        if self.ha_client is not None:
            self.ha_client.start()

    def accept(self, transport: Transport) -> None:
        """Take in a slave's connection."""
        connection = DefaultHAConnection(self, transport)
        self.connection_list.append(connection)
        if self.node.hooks.on:
            self.node.hooks.emit(ReplicaConnected(transport.remote, transport.connection_id))
        connection.start()

    def remove_connection(self, connection: DefaultHAConnection) -> None:
        """Forget a connection that has ended."""
        self.connection_list.remove(connection)

    def shutdown(self) -> None:
        """Close all connections; puts that wait are not answered."""
        if self.ha_client is not None:
            self.ha_client.shutdown()
        for connection in list(self.connection_list):
            connection.close("the broker shuts down")
        self.group_transfer_service.shutdown()

    # -- the log ----------------------------------------------------------------------------------------------------

    @property
    def max_phy_offset(self) -> int:
        """The end of the commit log."""
        return self.store.max_phy_offset

    def get_commit_log_data(self, offset: int, most_bytes: int) -> bytes:
        """What the log has from an offset on, in one file; nothing where it ends before, or begins behind."""
        return self.store.commit_log.mapped_file_queue.read(offset, most_bytes)

    # -- puts -------------------------------------------------------------------------------------------------------

    def handle_ha(self, message: MessageExtBrokerInner, result: PutMessageResult) -> Future[PutMessageStatus] | None:
        """Tell the connections that the log has grown; what a synchronous master's producer has to wait for.

        `in_sync_replicas` counts the master itself, so with 1, the default, nobody waits; then, and for a message that
        does not want to wait, slaves get it when their connection looks next.
        Java: org.apache.rocketmq.store.CommitLog.handleHA.
        """
        config = self.config
        wants = config.broker_role is BrokerRole.SYNC_MASTER and message.wait_store_msg_ok
        if not wants or config.in_sync_replicas <= 1:
            self._appended()
            return None
        for connection in self.connection_list:
            connection.write_socket_service.wakeup()
        end = result.wrote_offset + result.wrote_bytes
        return self.group_transfer_service.put_request(end, config.in_sync_replicas, config.slave_timeout)

    def _appended(self) -> None:
        for connection in self.connection_list:
            connection.write_socket_service.appended()

    def replicas_at(self, offset: int) -> int:
        """How many brokers have all before an offset, this one included."""
        return 1 + sum(connection.slave_ack_offset >= offset for connection in self.connection_list)

    def notify_transfer_some(self, offset: int) -> None:
        """A slave has all before `offset`."""
        self.push_to_slave_max_offset = max(self.push_to_slave_max_offset, offset)
        self.group_transfer_service.notify_transfer_some()

    # -- who asks ---------------------------------------------------------------------------------------------------

    def get_runtime_info(self) -> HARuntimeInfo:
        """How replication is doing, as an administrator is told it.

        Java: org.apache.rocketmq.store.ha.DefaultHAService.getRuntimeInfo. Differs from RocketMQ: bytes per second are
        not counted.
        """
        end = self.max_phy_offset
        if self.ha_client is not None:
            return HARuntimeInfo(self.ha_client.runtime_info(end))
        info = HARuntimeInfo(master=True, master_commit_log_max_offset=end)
        for connection in self.connection_list:
            behind = end - connection.slave_ack_offset
            info.ha_connection_info.append(
                HAConnectionRuntimeInfo(
                    connection.client_address,
                    behind,
                    behind < self.config.ha_max_gap_not_in_sync,
                    connection.slave_ack_offset,
                    connection.write_socket_service.next_transfer_from_where,
                )
            )
        info.in_sync_slave_nums = sum(each.in_sync for each in info.ha_connection_info)
        return info

    def __repr__(self) -> str:
        return f"<DefaultHAService {self.node.name}: {len(self.connection_list)} slaves>"
