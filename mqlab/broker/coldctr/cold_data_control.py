"""What a pull has to pass where cold data control is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.coldctr.cold_data_cg_ctr_service import ColdDataCgCtrService, is_sys_consumer_group_pull_message
from mqlab.broker.coldctr.cold_data_pull_request_hold_service import NO_SUSPEND_KEY, ColdDataPullRequestHoldService
from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.filter.message_filter import MessageFilter
from mqlab.broker.pull_request import PullRequest
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.heartbeat import ConsumeType
from mqlab.trace.events.broker import ColdDataPullHeld

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pull_message_processor import PullMessageProcessor
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.headers import PullMessageRequestHeader
    from mqlab.remoting import Channel
    from mqlab.store import GetMessageResult
    from mqlab.trace.bus import Bus

READS_COLD_DATA = "This consumer group is reading cold data. It has been flow control"
_PHYSICAL_OFFSET = slice(28, 36)
"""Where a record says at which offset of the log it lies."""


class ColdDataControl:
    """Both threads of cold data control, and what pulls are asked by it.

    Old messages are those that lie further from the end of the log than accessMessageInMemoryHotRatio of the machine's
    memory (26 %). As in RocketMQ only a broker that was started with coldDataFlowControlEnable counts them, since it
    asks for the size of a page at its start; one that is switched off counts no longer.

    Java: org.apache.rocketmq.broker.processor.PullMessageProcessor.processRequest,
    org.apache.rocketmq.store.CommitLog.ColdDataCheckService. Differs from RocketMQ: no scan finds out which pages are
    really in memory (coldDataScanEnable); what lies far from the end is taken to be on the disk.
    """

    def __init__(self, broker: BrokerParts, pulls: PullMessageProcessor) -> None:
        self._broker = broker
        self._pulls = pulls
        self._node = broker.node
        self._page_size_is_known = False
        self.cg_ctr_service = ColdDataCgCtrService(broker.node, broker.broker_config)
        self.hold_service = ColdDataPullRequestHoldService(broker.node, pulls.execute_request_when_wakeup)

    def start(self) -> None:
        """Let both threads turn, on the grid of the broker's own."""
        for service in (self.hold_service, self.cg_ctr_service):
            service.start()
            service.set_origin(self._broker.start_us)

    def begin(self) -> None:
        """The broker starts with coldDataFlowControlEnable."""
        self._page_size_is_known = True
        self.follow_settings()

    def shutdown(self) -> None:
        """Stop both threads; pulls that are held are never answered."""
        self.hold_service.shutdown()
        self.cg_ctr_service.shutdown()

    def follow_settings(self) -> None:
        """Ask pulls from now on, or no longer, as the settings say."""
        is_on = self._page_size_is_known and self._broker.message_store_config.cold_data_flow_control_enable
        self._pulls.pass_pull = self.pass_pull if is_on else None
        self.cg_ctr_service.wakeup_for_work()

    def pass_pull(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        message_filter: MessageFilter,
    ) -> tuple[PullMessageRequestHeader, MessageFilter] | None:
        """How a pull goes on, so that what it reads from the disk is counted; None when it is held.

        A push consumer whose group has read too much is refused (RequestError, SYSTEM_BUSY). A pull consumer waits, and
        then gets one message.
        """
        group = header.consumer_group
        if self.cg_ctr_service.is_cg_need_cold_data_flow_ctr(group) and self._is_msg_in_cold_area(header):
            members = self._broker.consumer_manager.get_consumer_group_info(group)
            if members is None:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"java.lang.NullPointerException: nobody is in {group}")
            if members.consume_type == ConsumeType.CONSUME_PASSIVELY:
                raise RequestError(ResponseCode.SYSTEM_BUSY, READS_COLD_DATA)
            if NO_SUSPEND_KEY not in (request.ext_fields or {}):
                self._hold(channel, request, header, message_filter)
                return None
            header = header._replace(max_msg_nums=1)
        if is_sys_consumer_group_pull_message(group):
            return header, message_filter
        return header, _CountingFilter(message_filter, self, group)

    def count(self, group: str, record: bytes) -> None:
        """A group has read this record: if it was on the disk, add it to what the group has read from there."""
        if self._is_cold(int.from_bytes(record[_PHYSICAL_OFFSET], "big")):
            self.cg_ctr_service.cold_acc(group, len(record))

    def _is_msg_in_cold_area(self, header: PullMessageRequestHeader) -> bool:
        queue = self._broker.message_store.find_consume_queue(header.topic, header.queue_id)
        units = queue.iterate_from(header.queue_offset, 1) if queue is not None else None
        unit = next(units, None) if units is not None else None
        return unit is not None and self._is_cold(unit.pos)

    def _is_cold(self, commit_log_offset: int) -> bool:
        memory = self._node.spec.memory_bytes
        hot = memory * self._broker.message_store_config.access_message_in_memory_hot_ratio // 100
        return self._broker.message_store.max_phy_offset - commit_log_offset > hot

    def _hold(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: PullMessageRequestHeader,
        message_filter: MessageFilter,
    ) -> None:
        held = PullRequest(request, header, channel, 1_000, self._node.now_us(), message_filter)
        if not self.hold_service.suspend_cold_data_read_request(held):
            lost = RequestError(ResponseCode.SYSTEM_BUSY, "there is no room for one more held request, which is lost")
            rejected(self._node.hooks, channel, request, lost)
        elif self._node.hooks.on:
            self._node.hooks.emit(
                ColdDataPullHeld(
                    header.consumer_group, header.topic, header.queue_id, header.queue_offset, request.opaque,
                    channel.remote_address,
                )
            )  # fmt: skip


class _CountingFilter(MessageFilter):
    """The filter of a pull, which counts what is read from the disk, whether it is wanted or not."""

    __slots__ = ("_control", "_filter", "_group")

    def __init__(self, message_filter: MessageFilter, control: ColdDataControl, group: str) -> None:
        self._filter = message_filter
        self._control = control
        self._group = group

    @property
    def wants_all(self) -> bool:
        """It wants to see all."""
        return False

    def is_matched_by_consume_queue(
        self, tags_code: int | None, msg_store_time: int = 0, filter_bit_map: bytes | None = None
    ) -> bool:
        """As the filter says."""
        return self._filter.is_matched_by_consume_queue(tags_code, msg_store_time, filter_bit_map)

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        """As the filter says, after the record was counted."""
        self._control.count(self._group, record)
        return self._filter.is_matched_by_commit_log(record)

    def is_matched_by_properties(self, properties: Mapping[str, str]) -> bool:
        """As the filter says."""
        return self._filter.is_matched_by_properties(properties)

    def tell_read(self, hooks: Bus, topic: str, queue_id: int, offset: int, result: GetMessageResult) -> None:
        """As the filter does."""
        self._filter.tell_read(hooks, topic, queue_id, offset, result)
