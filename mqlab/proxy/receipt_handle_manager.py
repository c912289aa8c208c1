"""Handles of messages that clients still have: a proxy makes their invisible time longer for as long as a client lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import MqlabError
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.v2.definition import Code
from mqlab.proxy.client_manager import ClientKey
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.retry_policy import renew_delay_ms, retry_policy_of
from mqlab.trace.events.proxy import HandleGivenUp, HandleRenewed, HandleRenewFailed

if TYPE_CHECKING:
    from mqlab.proxy.client_manager import ClientManager
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.consumer_processor import ConsumerProcessor
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.sim import Node, PeriodicTask


class HandleKey(NamedTuple):
    """A delivery, whatever its handle is called meanwhile: a renewed one has the key of its first."""

    message_id: str
    broker_name: str
    queue_id: int
    queue_offset: int


class MessageReceiptHandle:
    """A handle and what was done for it (org.apache.rocketmq.proxy.common.MessageReceiptHandle)."""

    __slots__ = (
        "busy", "consumed_from_ms", "handle", "key", "reconsume_times", "renew_retry_times", "renew_times", "topic",
    )  # fmt: skip

    def __init__(self, message_id: str, topic: str, handle: ReceiptHandle, reconsume_times: int) -> None:
        self.key = key_of(message_id, handle)
        self.topic = topic
        self.handle = handle
        self.consumed_from_ms = handle.pop_time
        self.reconsume_times = reconsume_times
        self.renew_times = 0
        self.renew_retry_times = 0
        self.busy = False
        """Whether a renewal is under way: another one waits for the next scan."""


def key_of(message_id: str, handle: ReceiptHandle) -> HandleKey:
    """What a message is kept under."""
    return HandleKey(message_id, handle.broker_name, handle.queue_id, handle.queue_offset)


class ReceiptHandleManager:
    """Renews what comes due within 10 s, every 5 s.

    A renewal is a change of the invisible time, to 1, 3, 5, 10, 30 and then 60 minutes. It ends when the client settles
    the message or leaves, after three failures in a row, and three hours after the pop; then the group's retry policy
    says how long the message stays invisible.

    Java: org.apache.rocketmq.proxy.service.receipt.DefaultReceiptHandleManager with ReceiptHandleGroup and
    ReceiptHandleProcessor. Differs from RocketMQ: handles need no locks, since nothing happens between two awaits; a
    client that settles a message during its renewal goes on with the handle from before it, where a thread there
    waits for up to 3 s.
    """

    def __init__(
        self,
        node: Node,
        config: ProxyConfig,
        clients: ClientManager,
        metadata: ClusterMetadataService,
        consumers: ConsumerProcessor,
    ) -> None:
        self._node = node
        self._config = config
        self._clients = clients
        self._metadata = metadata
        self._consumers = consumers
        self._pool = node.pool(
            "RenewalWorkerThread", config.renew_thread_pool_nums, config.renew_thread_pool_queue_capacity
        )
        self.groups: dict[ClientKey, dict[HandleKey, MessageReceiptHandle]] = {}
        self._scan: PeriodicTask | None = None
        clients.consumer_left.append(self._client_left)

    def start(self) -> None:
        """Look from now on for handles that must be renewed."""
        self._scan = self._node.schedule_with_fixed_delay(
            self.schedule_renew_task, 0, self._config.renew_schedule_period_millis, "RenewalScheduledThread"
        )

    def shutdown(self) -> None:
        """Renew no more; what clients still have is given 1 s."""
        if self._scan is not None:
            self._scan.cancel()
        for key in list(self.groups):
            self._clear_group(key)

    def add(self, key: ClientKey, handle: MessageReceiptHandle) -> None:
        """Keep a handle from now on."""
        self.groups.setdefault(key, {})[handle.key] = handle

    def remove(self, key: ClientKey, message_id: str, handle: ReceiptHandle) -> ReceiptHandle:
        """Keep a handle no longer: the newest one of this delivery, which is the given one if none was kept."""
        kept = self.groups.get(key, {}).pop(key_of(message_id, handle), None)
        return kept.handle if kept is not None else handle

    def schedule_renew_task(self) -> None:
        """Look at all handles, and renew those that will run out soon.

        Java: org.apache.rocketmq.proxy.service.receipt.DefaultReceiptHandleManager.scheduleRenewTask.
        """
        soon_ms = self._node.now_ms() + self._config.renew_ahead_time_millis
        for key, handles in list(self.groups.items()):
            if not self._clients.is_consumer(key.group, key.client_id):
                self._clear_group(key)
                continue
            for handle in list(handles.values()):
                if handle.handle.expires_ms <= soon_ms and not handle.busy:
                    handle.busy = self._pool.submit(self._renew_message, key, handle)

    async def _renew_message(self, key: ClientKey, handle: MessageReceiptHandle) -> None:
        keep = await self._start_renew_message(key.group, handle)
        handle.busy = False
        handles = self.groups.get(key, {})
        if not keep and handles.get(handle.key) is handle:
            del handles[handle.key]

    async def _start_renew_message(self, group: str, handle: MessageReceiptHandle) -> bool:
        """Renew a message; False when it shall be kept no longer."""
        if handle.renew_retry_times >= self._config.max_renew_retry_times:
            self._give_up(group, handle, "too many failures", 0)
            return False
        if self._node.now_ms() - handle.consumed_from_ms >= self._config.renew_max_time_millis:
            await self._stop_renewing(group, handle)
            return False
        invisible_ms = renew_delay_ms(handle.renew_times)
        try:
            renewed = await self._consumers.change_invisible_time(handle.handle, handle.topic, group, invisible_ms)
        except MqlabError as error:
            self._failed(group, handle, str(error))
            if isinstance(error, GrpcProxyException) and error.code == Code.INVALID_RECEIPT_HANDLE:
                self._give_up(group, handle, "cannot be renewed", 0)
                return False
            handle.renew_retry_times += 1
            return True
        if renewed is None:
            self._failed(group, handle, "the broker refuses")
            self._give_up(group, handle, "cannot be renewed", 0)
            return False
        handle.handle = renewed
        handle.renew_retry_times = 0
        handle.renew_times += 1
        if self._node.hooks.on:
            self._node.hooks.emit(
                HandleRenewed(group, handle.topic, handle.key.message_id, invisible_ms, handle.renew_times)
            )
        return True

    async def _stop_renewing(self, group: str, handle: MessageReceiptHandle) -> None:
        config = await self._metadata.subscription_group_config(group)
        if config is None:
            self._give_up(group, handle, "too long", 0)
            return
        invisible_ms = retry_policy_of(config.group_retry_policy).next_delay_ms(handle.reconsume_times)
        self._give_up(group, handle, "too long", invisible_ms)
        await self._change(group, handle, invisible_ms)

    async def _change(self, group: str, handle: MessageReceiptHandle, invisible_ms: int) -> None:
        try:
            await self._consumers.change_invisible_time(handle.handle, handle.topic, group, invisible_ms)
        except MqlabError as error:
            self._failed(group, handle, str(error))

    def _client_left(self, group: str, client_id: str) -> None:
        self._clear_group(ClientKey(group, client_id))

    def _clear_group(self, key: ClientKey) -> None:
        """Let others have soon what a client can settle no more."""
        invisible_ms = self._config.invisible_time_millis_when_clear
        for handle in self.groups.pop(key, {}).values():
            self._give_up(key.group, handle, "client left", invisible_ms)
            self._node.spawn(self._change(key.group, handle, invisible_ms), "clear a handle")

    def _failed(self, group: str, handle: MessageReceiptHandle, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(HandleRenewFailed(group, handle.topic, handle.key.message_id, reason))

    def _give_up(self, group: str, handle: MessageReceiptHandle, reason: str, invisible_ms: int) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(HandleGivenUp(group, handle.topic, handle.key.message_id, reason, invisible_ms))
