"""A client's standing stream to a proxy, on which they agree on settings, and the proxy asks about transactions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.client.v5.errors import ClientException
from mqlab.protocol.v2 import service
from mqlab.rpc import RpcError
from mqlab.sim import Future, WaitTimeout

if TYPE_CHECKING:
    from mqlab.client.v5.client_impl import ClientImpl
    from mqlab.protocol.v2.definition import Endpoints
    from mqlab.rpc.client import ClientStream

RENEW_DELAY_MS = 1_000
"""A stream that has ended is opened again after this time."""

SETTINGS_INITIALIZATION_TIMEOUT_MS = 3_000


class ClientSession:
    """A telemetry stream, opened again whenever it ends (org.apache.rocketmq.client.java.impl.ClientSessionImpl)."""

    def __init__(self, client: ClientImpl, endpoints: Endpoints) -> None:
        self._client = client
        self._endpoints = endpoints
        self._stream: ClientStream | None = None
        self._opening = False
        self._released = False
        self._first_settings: Future[None] = Future(f"the settings from {endpoints}")

    async def sync_settings(self) -> None:
        """Say what the client is, and wait for the first answer; ClientException when none comes in time."""
        self.write_settings()
        limit_ms = SETTINGS_INITIALIZATION_TIMEOUT_MS + self._client.config.request_timeout
        try:
            await self._client.node.wait(self._first_settings, limit_ms)
        except WaitTimeout as error:
            raise ClientException(str(error)) from None

    def write_settings(self) -> None:
        """Say what the client is, on the stream if there is one, else on a new one."""
        if self._released:
            return
        command = service.TelemetryCommand(settings=self._client.settings())
        if self._stream is not None and not self._stream.ended:
            # A stream that is about to end will be opened again.
            with suppress(RpcError):
                self._stream.write(command)
        elif not self._opening:
            self._opening = True
            self._client.node.spawn(self._open(command), "open telemetry")

    async def _open(self, command: service.TelemetryCommand) -> None:
        client = self._client
        try:
            self._stream = await client.rpc.open(
                str(self._endpoints),
                service.TELEMETRY,
                command,
                client.config.request_timeout,
                self._heard,
                self._ended,
            )
        except RpcError as error:
            self._opening = False
            self._ended(error)
            return
        self._opening = False

    def _heard(self, command: Any) -> None:
        if command.settings is not None:
            self._client.take_settings(command.settings)
            self._first_settings.try_set_result(None)
        elif command.recover_orphaned_transaction_command is not None:
            self._client.recover_orphaned_transaction(self._endpoints, command.recover_orphaned_transaction_command)

    def _ended(self, error: RpcError | None) -> None:
        self._stream = None
        if self._released:
            return
        if not self._client.is_running:
            if not self._first_settings.done:
                self._first_settings.set_exception(ClientException(str(error or "the stream was closed")))
            return
        self._client.node.call_later(RENEW_DELAY_MS, self.write_settings, name="renew telemetry")

    def release(self) -> None:
        """End the stream for good."""
        self._released = True
        if self._stream is not None:
            self._stream.complete()
