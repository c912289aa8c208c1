"""A slave's side of replication: connects to its master, appends what comes, and says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.broker.ha.stream import TransferReader, encode_report
from mqlab.protocol.bodies import HAClientRuntimeInfo
from mqlab.sim import Cancelled, ConnectionRefused, ConnectTimeout, DiskFull, Future
from mqlab.trace.events.ha import MasterConnected, MasterConnectFailed, MasterDisconnected, ReplicaDataAppended

if TYPE_CHECKING:
    from mqlab.sim import Node, Task, Timer, Transport
    from mqlab.store import DefaultMessageStore

RETRY_MS = 5_000
CONNECT_TIMEOUT_MS = 5_000


class DefaultHAClient:
    """Follows the log of a master (org.apache.rocketmq.store.ha.DefaultHAClient).

    It reports the end of its own log after each piece, and when it has not reported for 5 s; the first report of a
    connection decides from where the master sends. A frame that does not begin where the own log ends breaks the
    connection, and after 5 s the slave tries again: nothing is ever cut off.
    """

    def __init__(self, node: Node, store: DefaultMessageStore, appended: Callable[[], None]) -> None:
        self.node = node
        self.store = store
        self._appended = appended
        """Called when the own log has grown."""
        self.config = store.config
        self.ha_master_address: str | None = store.config.ha_master_address or None
        self.current_reported_offset = 0
        self._transport: Transport | None = None
        self._reader = TransferReader()
        self._last_read_us = 0
        self._last_write_us = node.now_us()
        self._report_timer: Timer | None = None
        self._end: Future[str] = Future("the end of the connection to the master")
        self._task: Task | None = None

    @property
    def is_connected(self) -> bool:
        """Is there a connection to the master?"""
        return self._transport is not None

    def update_ha_master_address(self, address: str | None) -> None:
        """Connect to this address from the next attempt on, or with None to nobody; a connection that is there stays.
        """
        self.ha_master_address = address

    def runtime_info(self, max_offset: int) -> HAClientRuntimeInfo:
        """How the connection to the master is doing; its times are 0 before anything was read."""
        ago_ms = [(self.node.now_us() - us) // 1_000 for us in (self._last_read_us, self._last_write_us)]
        now_ms = self.node.now_ms()
        read_ms = now_ms - ago_ms[0] if self._last_read_us else 0
        return HAClientRuntimeInfo(read_ms, now_ms - ago_ms[1], self.ha_master_address, 0, max_offset)

    def start(self) -> None:
        """Look for the master from now on."""
        self._task = self.node.spawn(self._run(), "DefaultHAClient")

    def shutdown(self) -> None:
        """Leave the master, and come back no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._close_master("the slave shuts down")

    async def _run(self) -> None:
        try:
            while True:
                if not await self._connect_master():
                    await self.node.sleep(RETRY_MS)
                    continue
                reason = await self._end
                self._close_master(reason)
                if reason != EXPIRED:
                    await self.node.sleep(RETRY_MS)
        except Cancelled:
            return

    async def _connect_master(self) -> bool:
        """Connect if it is known where to; whether there is a connection now."""
        address = self.ha_master_address
        if address is None:
            return False
        try:
            transport = await self.node.connect(address, CONNECT_TIMEOUT_MS)
        except (ConnectionRefused, ConnectTimeout) as problem:
            if self.node.hooks.on:
                self.node.hooks.emit(MasterConnectFailed(address, str(problem)))
            return False
        self._transport = transport
        self._reader = TransferReader()
        self._end = Future("the end of the connection to the master")
        self._last_read_us = self.node.now_us()
        self.current_reported_offset = self.store.max_phy_offset
        if self.node.hooks.on:
            self.node.hooks.emit(MasterConnected(address, self.current_reported_offset))
        transport.on_close = lambda: self._ends("the master is gone")
        transport.on_frame = self._read
        self._report_in_time()
        self._look_for_silence(transport)
        return True

    def _ends(self, reason: str) -> None:
        self._end.try_set_result(reason)

    def _close_master(self, reason: str) -> None:
        transport, self._transport = self._transport, None
        if self._report_timer is not None:
            self._report_timer.cancel()
            self._report_timer = None
        if transport is None:
            return
        transport.close()
        if self.node.hooks.on:
            self.node.hooks.emit(MasterDisconnected(transport.remote, self.store.max_phy_offset, reason))

    # -- reports ----------------------------------------------------------------------------------------------------

    def _report_in_time(self) -> None:
        """Report if the last report is 5 s old, and look again when the last one will be."""
        if self._transport is None:
            return
        interval_us = self.config.ha_send_heartbeat_interval * 1_000
        if self.node.now_us() - self._last_write_us >= interval_us:
            self._report(self.current_reported_offset)
        left_us = self._last_write_us + interval_us - self.node.now_us()
        self._report_timer = self.node.call_later(left_us / 1_000, self._report_in_time, name="DefaultHAClient")

    def _report(self, max_offset: int) -> None:
        assert self._transport is not None
        self._last_write_us = self.node.now_us()
        if self._transport.open:
            data = encode_report(max_offset)
            self._transport.send(data, len(data))

    def _look_for_silence(self, transport: Transport) -> None:
        if self._transport is not transport:
            return
        left_us = self._last_read_us + self.config.ha_housekeeping_interval * 1_000 - self.node.now_us()
        if left_us > 0:
            self.node.call_later(left_us / 1_000, self._look_for_silence, transport, name="DefaultHAClient")
        else:
            self._ends(EXPIRED)

    # -- data -------------------------------------------------------------------------------------------------------

    def _read(self, data: Any) -> None:
        """Append what has come whole; after what breaks the connection nothing more is read from it."""
        if self._end.done:
            return
        self._last_read_us = self.node.now_us()
        self._reader.feed(data)
        store = self.store
        while (offset := self._reader.next_offset()) is not None:
            end = store.max_phy_offset
            if end not in (0, offset):
                self._ends(f"the master sends from {offset} on, this log ends at {end}")
                return
            if self._reader.is_damaged():
                self._ends("the master sends what is no piece of a log")
                return
            frame = self._reader.next_frame()
            if frame is None:
                return
            if frame.body and not self._append(frame.physic_offset, frame.body):
                return
            if store.max_phy_offset > self.current_reported_offset:
                self.current_reported_offset = store.max_phy_offset
                self._report(self.current_reported_offset)

    def _append(self, offset: int, body: bytes) -> bool:
        try:
            appended = self.store.append_to_commit_log(offset, body)
        except DiskFull as problem:
            self._ends(f"no space left for {problem.path}")
            return False
        if not appended:
            self._ends(f"{len(body)} bytes at {offset} do not continue the log")
            return False
        if self.node.hooks.on:
            self.node.hooks.emit(ReplicaDataAppended(offset, len(body)))
        self._appended()
        return True

    def __repr__(self) -> str:
        state = "connected" if self.is_connected else "not connected"
        return f"<DefaultHAClient of {self.node.name}: {state}, reported {self.current_reported_offset}>"


EXPIRED = "nothing from the master for too long"
"""After this a slave connects again at once, after all else in 5 s."""
