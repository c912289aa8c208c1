"""What a slave fetches from its master besides the log: topics, groups, and how far consumers and delays have come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, ProtocolError, RemotingException
from mqlab.protocol.assignment import MessageRequestModeSerializeWrapper
from mqlab.protocol.codes import RequestCode, ResponseCode, code_name
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import GetAllTopicConfigRequestHeader
from mqlab.protocol.topic_config import (
    ConsumerOffsetSerializeWrapper,
    DelayOffsetSerializeWrapper,
    SubscriptionGroupWrapper,
    TopicConfigAndMappingSerializeWrapper,
)
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.trace.events.ha import SlaveSynchronized, SlaveSynchronizeFailed

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.codes import RequestCode as Code
    from mqlab.sim import PeriodicTask

FIRST_MS = 10_000
PERIOD_MS = 3_000
ALL_MS = 60_000
TIMEOUT_MS = 3_000


class SlaveSynchronize:
    """Fetches a master's tables (org.apache.rocketmq.broker.slave.SlaveSynchronize).

    It looks 10 s after the broker's start and then every 3 s; when the last time that it fetched everything is more
    than a minute ago it does so again, the first time 61 to 64 s after the start. Until then the slave knows no topics
    but RocketMQ's own. Tables of topics and groups are replaced, progress is added to what is there.

    Differs from RocketMQ: everything is asked at the master's own port (there topics and timers at the one for VIPs,
    two below), and a timer's progress only once the log has a timer message.
    """

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._node = broker.node
        self.master_addr: str | None = None
        self._last_sync_ms = self._node.now_ms()
        self._periodic: PeriodicTask | None = None

    def start(self) -> None:
        """Look for the first time in 10 s."""
        self._periodic = self._node.schedule_at_fixed_rate(self._look, FIRST_MS, PERIOD_MS, "slave synchronize")

    def shutdown(self) -> None:
        """Fetch nothing any more."""
        if self._periodic is not None:
            self._periodic.cancel()

    async def _look(self) -> None:
        if self._node.now_ms() - self._last_sync_ms > ALL_MS:
            await self.sync_all()
            self._last_sync_ms = self._node.now_ms()
        await self._sync_timer_check_point()

    async def sync_all(self) -> None:
        """Fetch every table, one after the other; what fails is left as it was."""
        await self._sync(RequestCode.GET_ALL_TOPIC_CONFIG, self._take_topics)
        await self._sync(RequestCode.GET_ALL_CONSUMER_OFFSET, self._take_consumer_offsets)
        await self._sync(RequestCode.GET_ALL_DELAY_OFFSET, self._take_delay_offsets)
        await self._sync(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._take_groups)
        await self._sync(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self._take_modes)
        if self._has_timer():
            await self._sync(RequestCode.GET_TIMER_METRICS, self._take_timer_metrics)

    async def _sync(self, code: Code, take: Callable[[bytes], int]) -> None:
        """Ask the master for one table, and take it over; `take` says how many entries it has."""
        address = self.master_addr
        if address is None:
            return
        header = GetAllTopicConfigRequestHeader() if code is RequestCode.GET_ALL_TOPIC_CONFIG else None
        request = RemotingCommand.request(code, header)
        try:
            client = self._broker.broker_outer_api.remoting_client
            response = await client.invoke_sync(address, request, TIMEOUT_MS)
            if response.code != ResponseCode.SUCCESS:
                raise MQBrokerException(response.code, response.remark or "", address)
            entries = take(response.body or b"")
        except (RemotingException, MQBrokerException, ProtocolError) as error:
            if self._node.hooks.on:
                self._node.hooks.emit(SlaveSynchronizeFailed(code_name(code), address, str(error)))
            return
        if self._node.hooks.on:
            self._node.hooks.emit(SlaveSynchronized(code_name(code), address, entries))

    # -- tables -----------------------------------------------------------------------------------------------------

    def _take_topics(self, body: bytes) -> int:
        wrapper = TopicConfigAndMappingSerializeWrapper.decode(body)
        topics = self._broker.topic_config_manager
        if topics.data_version != wrapper.data_version:
            topics.replace_all(wrapper.topic_config_table, wrapper.data_version)
        return len(wrapper.topic_config_table)

    def _take_groups(self, body: bytes) -> int:
        wrapper = SubscriptionGroupWrapper.decode(body)
        groups = self._broker.subscription_group_manager
        if groups.data_version != wrapper.data_version:
            groups.replace_all(wrapper)
        return len(wrapper.subscription_group_table)

    def _take_consumer_offsets(self, body: bytes) -> int:
        wrapper = ConsumerOffsetSerializeWrapper.decode(body)
        self._broker.consumer_offset_manager.put_all(wrapper)
        return len(wrapper.offset_table)

    def _take_delay_offsets(self, body: bytes) -> int:
        wrapper = DelayOffsetSerializeWrapper.decode(body)
        self._broker.schedule_message_service.replace_all(wrapper)
        return len(wrapper.offset_table)

    def _take_modes(self, body: bytes) -> int:
        modes = MessageRequestModeSerializeWrapper.decode(body).message_request_mode_map
        if modes:
            manager = self._broker.query_assignment_processor().message_request_mode_manager
            manager.message_request_mode_map.update(modes)
            manager.persist()
        return len(modes)

    # -- the timer --------------------------------------------------------------------------------------------------

    def _has_timer(self) -> bool:
        """Has the slave a timer? It gets one when the log brings the first message for it."""
        broker = self._broker
        if not broker.message_store_config.timer_wheel_enable:
            return False
        return broker.timer is not None or broker.message_store.get_max_offset_in_queue(TIMER_TOPIC, 0) > 0

    async def _sync_timer_check_point(self) -> None:
        if self._has_timer():
            await self._sync(RequestCode.GET_TIMER_CHECK_POINT, self._take_timer_check_point)

    def _take_timer_check_point(self, body: bytes) -> int:
        self._broker.timer_message_store.follow(body)
        return 1

    def _take_timer_metrics(self, body: bytes) -> int:
        return self._broker.timer_message_store.timer_metrics.replace(body)
