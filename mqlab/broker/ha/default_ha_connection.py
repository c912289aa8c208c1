"""A master's side of one slave's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.broker.ha.stream import ReportReader, encode_frame
from mqlab.sim import ServiceThread
from mqlab.trace.events.ha import (
    ReplicaAcked,
    ReplicaDataSent,
    ReplicaDisconnected,
    ReplicaHeartbeatSent,
    ReplicationBegun,
)

if TYPE_CHECKING:
    from mqlab.broker.ha.default_ha_service import DefaultHAService
    from mqlab.sim import Transport

POLL_MS = 100
"""How often a master that has nothing to send looks whether its log has grown, unless a put wakes it."""

SOCKET_BYTES = 4 * 1024 * 1024
"""What the sockets and the slave's buffer hold; with so much on its way nothing more is written."""


class DefaultHAConnection:
    """A slave that follows this broker's log (org.apache.rocketmq.store.ha.DefaultHAConnection).

    Differs from RocketMQ: no limit of bytes per second (haFlowControlEnable=false). A connection that is silent is
    closed when its time is over, there up to a second later.
    """

    def __init__(self, service: DefaultHAService, transport: Transport) -> None:
        self.service = service
        self.client_address = transport.remote
        self.slave_request_offset = -1
        """The slave's first report; -1 until it has come."""
        self.slave_ack_offset = -1
        self.open = True
        self._transport = transport
        self._node = service.node
        self._reader = ReportReader()
        self._last_read_us = self._node.now_us()
        self.write_socket_service = WriteSocketService(self)
        transport.on_close = self._ended
        transport.on_frame = self._read

    def start(self) -> None:
        """Take reports in, and send when the first one has come."""
        self.write_socket_service.start()
        self._watch(self.service.config.ha_housekeeping_interval)

    @property
    def can_send(self) -> bool:
        """Is the connection still there? A process that was frozen hears of its end a moment after it goes on."""
        return self.open and self._transport.open

    def send(self, data: bytes) -> None:
        """Send bytes to the slave."""
        self._transport.send(data, len(data))

    # -- reports ----------------------------------------------------------------------------------------------------

    def _read(self, data: Any) -> None:
        self._last_read_us = self._node.now_us()
        reports = self._reader.feed(data)
        if not reports:
            return
        # As in RocketMQ of several that have come together only the last one counts.
        self.slave_ack_offset = reports[-1]
        if self._node.hooks.on:
            self._node.hooks.emit(ReplicaAcked(self.client_address, self.slave_ack_offset))
        if self.slave_request_offset < 0:
            self.slave_request_offset = self.slave_ack_offset
            self.write_socket_service.wakeup()
        self.write_socket_service.acked()
        self.service.notify_transfer_some(self.slave_ack_offset)

    def _watch(self, ms: float) -> None:
        self._node.call_later(ms, self._look_for_silence, name="ReadSocketService")

    def _look_for_silence(self) -> None:
        if not self.open:
            return
        left_us = self._last_read_us + self.service.config.ha_housekeeping_interval * 1_000 - self._node.now_us()
        if left_us > 0:
            self._watch(left_us / 1_000)
        else:
            self.close("no report for too long")

    # -- the end ----------------------------------------------------------------------------------------------------

    def _ended(self) -> None:
        self._end("the slave is gone")

    def close(self, reason: str) -> None:
        """Close the connection; the slave will come again."""
        if self.open:
            self._transport.close()
            self._end(reason)

    def _end(self, reason: str) -> None:
        if not self.open:
            return
        self.open = False
        self.write_socket_service.shutdown()
        self.service.remove_connection(self)
        if self._node.hooks.on:
            number = self._transport.connection_id
            self._node.hooks.emit(ReplicaDisconnected(self.client_address, number, self.slave_ack_offset, reason))

    def __repr__(self) -> str:
        return f"<DefaultHAConnection {self.client_address}: acknowledged {self.slave_ack_offset}>"


class WriteSocketService(ServiceThread):
    """Sends a slave what the log has got, and a sign of life when that is nothing for a while.

    It looks 100 ms after it has looked last; a put that waits for copies wakes it.

    Java: org.apache.rocketmq.store.ha.DefaultHAConnection.WriteSocketService.
    """

    def __init__(self, connection: DefaultHAConnection) -> None:
        super().__init__(connection.service.node, period_ms=POLL_MS)
        self.next_transfer_from_where = -1
        self._connection = connection
        self._service = connection.service
        self._begun_at = 0
        self._last_write_us = self.node.now_us()
        self._expects_data = False
        """Whether the armed turn is one that will find something to send."""

    def has_work(self) -> bool:
        """Once the slave has reported there is always something to send in the end, if only a heartbeat."""
        return self._connection.slave_request_offset >= 0

    def next_tick_us(self) -> int:
        """The next look if there is something to send now, else the one at which a heartbeat is due."""
        self._expects_data = self._has_data()
        if self._expects_data:
            return super().next_tick_us()
        return self.tick_at(self._last_write_us + self._service.config.ha_send_heartbeat_interval * 1_000)

    def _has_data(self) -> bool:
        return 0 <= self.next_transfer_from_where < self._service.max_phy_offset and self._has_room()

    def _has_room(self) -> bool:
        had = max(self._connection.slave_ack_offset, self._begun_at)
        return self.next_transfer_from_where - had < SOCKET_BYTES

    def appended(self) -> None:
        """The log has grown."""
        if not self._expects_data:
            self.rearm()

    def acked(self) -> None:
        """The slave has taken something in: where the sockets were full, go on at once."""
        if not self._expects_data and self._has_data():
            self.wakeup()

    def tick(self) -> None:
        """Send what there is, as far as the sockets hold it."""
        if not self._connection.can_send:
            return
        if self.next_transfer_from_where < 0:
            self._begin()
        config = self._service.config
        silent_us = self.node.now_us() - self._last_write_us
        if silent_us >= config.ha_send_heartbeat_interval * 1_000:
            self._send(b"")
        while self._has_data():
            body = self._service.get_commit_log_data(self.next_transfer_from_where, config.ha_transfer_batch_size)
            if not body:
                # The slave is further than this log, or asks for what was deleted.
                break
            self._send(body)
            self.next_transfer_from_where += len(body)
        self.set_origin(self.node.now_us())

    def _begin(self) -> None:
        asked = self._connection.slave_request_offset
        end = self._service.max_phy_offset
        start = end - end % self._service.config.mapped_file_size_commit_log if asked == 0 else asked
        self.next_transfer_from_where = self._begun_at = start
        if self.node.hooks.on:
            self.node.hooks.emit(ReplicationBegun(self._connection.client_address, asked, start))

    def _send(self, body: bytes) -> None:
        self._last_write_us = self.node.now_us()
        offset, slave = self.next_transfer_from_where, self._connection.client_address
        if self.node.hooks.on:
            sent = ReplicaDataSent(slave, offset, len(body)) if body else ReplicaHeartbeatSent(slave, offset)
            self.node.hooks.emit(sent)
        self._connection.send(encode_frame(offset, body))
