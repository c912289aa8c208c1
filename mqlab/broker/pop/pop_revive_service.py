"""The reviver of one revive queue: it finds out what was never acknowledged, and brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.revive_check_point import ReviveCheckPoint
from mqlab.broker.pop.revive_rounds import MOST_EMPTY_READS, MOVE_END_TIME_MS, ReviveRounds
from mqlab.broker.pop.revive_scan import ReviveScan
from mqlab.errors import ProtocolError
from mqlab.protocol.pop_check_point import ACK_TIME_INTERVAL_MS, REVIVE_GROUP, PopCheckPoint
from mqlab.protocol.record import decode_record
from mqlab.store import GetMessageResult, GetMessageStatus
from mqlab.trace.events.pop import (
    CheckPointWaits,
    ReviveOffsetCommitted,
    ReviveScanBegun,
    ReviveScanEnded,
    ReviveScanWaits,
)

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker
    from mqlab.protocol.message import MessageExt

READ_AHEAD = 32
ACKS_ARE_READ_MS = ACK_TIME_INTERVAL_MS + 1_000
"""What came due until so long behind the revive time of a check point includes all its acks."""


class PopReviveService(ReviveRounds):
    """Reads one queue of the revive topic, matches acks with check points, and brings back what has no ack.

    A round reads on from where the last one ended until what it has read is new enough to hold all acks of its first
    check point, and deals with the check points of which that is true; the others are read again in the next round.
    Only a master has rounds.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.
    """

    def __init__(self, broker: WholeBroker, revive_qid: int) -> None:
        super().__init__(broker, revive_qid)
        self.check_points = ReviveCheckPoint(broker, revive_qid)
        self.scan_class: type[ReviveScan] = ReviveScan
        """What notes the things that a round reads."""
        self.revive_offset = self._committed()
        """Up to here everything is dealt with; -1: nothing yet."""
        self.current_revive_message_timestamp = -1

    async def round(self, empty_reads: int) -> int:
        """One round; the time (us) from which the next one waits its interval."""
        node, hooks = self.node, self.node.hooks
        old_offset = max(self.revive_offset, self._committed())
        scan = self.scan_class(self._broker, self.revive_qid, old_offset, empty_reads)
        if hooks.on:
            hooks.emit(ReviveScanBegun(self.revive_qid, scan.offset))
        try:
            self._emit_ended(scan, await self._consume_revive_message(scan))
            points = scan.sorted_check_points()
            settled = await self._merge_and_revive(scan, points)
        except (ProtocolError, ValueError) as problem:
            # As in RocketMQ a message that cannot be read stops its queue: each round ends there.
            self._emit_ended(scan, f"unreadable: {problem}")
            return node.now_us()
        # An offset behind the end, as a loss of power leaves one, is corrected: nothing there was looked at.
        end = self._broker.message_store.get_max_offset_in_queue(self.topic, self.revive_qid)
        self._looked_to = min(scan.offset, end) if settled else 0
        self._lone_acks_from_ms = scan.oldest_behind_ms(self.revive_offset)
        if points:
            self.slow = 1
            self.current_revive_message_timestamp = points[0].revive_time
            return node.now_us()
        self.current_revive_message_timestamp = node.now_ms()
        rest_us = self.slow * self.interval_us
        if self.slow < self._config.revive_max_slow:
            self.slow += 1
        return node.now_us() + rest_us

    # -- reading ----------------------------------------------------------------------------------------------------

    async def _consume_revive_message(self, scan: ReviveScan) -> str:
        """Read until all acks of the first check point must have been read; why it stops.

        Java: org.apache.rocketmq.broker.processor.PopReviveService.consumeReviveMessage.
        """
        node, begin_ms = self.node, self.node.now_ms()
        waits_for = ""
        while True:
            messages = self._get_revive_message(scan.offset)
            if messages:
                scan.empty_reads, waits_for = 0, ""
                if node.now_ms() - begin_ms > self._config.revive_scan_time:
                    return "scan time over"
                scan.take(messages)
                continue
            behind = self._broker.timer_behind()
            if scan.end_time and node.now_ms() - scan.end_time > MOVE_END_TIME_MS and not behind:
                scan.end_time = node.now_ms()
            if scan.end_time - scan.first_revive_time > ACKS_ARE_READ_MS:
                return "long enough" if scan.check_points else "nothing more"
            scan.empty_reads += 1
            waits_for = self._emit_waits(scan, "the timer" if behind else "acks", waits_for)
            await self._until_next_look(scan)
            if scan.empty_reads >= MOST_EMPTY_READS:
                return "nothing more" if scan.end_time else "nothing there"

    def _get_revive_message(self, offset: int) -> list[MessageExt]:
        """Up to 32 messages of the queue; an offset that is neither in it nor its end is corrected for the next round.

        Java: org.apache.rocketmq.broker.processor.PopReviveService.getReviveMessage.
        """
        store = self._broker.message_store
        result = store.get_message(REVIVE_GROUP, self.topic, self.revive_qid, offset, READ_AHEAD)
        if result is None:
            return []
        if result.status is GetMessageStatus.FOUND:
            return _decoded(result)
        if result.status is not GetMessageStatus.NO_MESSAGE_IN_QUEUE and offset != result.max_offset:
            self._commit(result.next_begin_offset - 1)
        return []

    # -- dealing with check points ------------------------------------------------------------------------------------

    async def _merge_and_revive(self, scan: ReviveScan, points: list[PopCheckPoint]) -> bool:
        """Deal with the check points whose acks must have been read; False when some are left to the next round.

        Java: org.apache.rocketmq.broker.processor.PopReviveService.mergeAndRevive.
        """
        new_offset, settled = scan.old_offset, True
        for point in points:
            if scan.end_time - point.revive_time <= ACKS_ARE_READ_MS:
                self._emit_point_waits(point, scan.end_time)
                settled = False
                break
            if await self.check_points.settle(point):
                self._commit(point.revive_offset)
            new_offset = point.revive_offset
        if new_offset > scan.old_offset and new_offset != self._committed():
            self._commit(new_offset)
        self.revive_offset = new_offset
        return settled

    def _committed(self) -> int:
        return self._broker.consumer_offset_manager.query_offset(REVIVE_GROUP, self.topic, self.revive_qid)

    def _commit(self, offset: int) -> None:
        offsets = self._broker.consumer_offset_manager
        offsets.commit_offset(REVIVE_GROUP, self.topic, self.revive_qid, offset, "revived")
        if self.node.hooks.on:
            self.node.hooks.emit(ReviveOffsetCommitted(self.revive_qid, offset))

    # -- events -----------------------------------------------------------------------------------------------------

    def _emit_ended(self, scan: ReviveScan, reason: str) -> None:
        hooks = self.node.hooks
        if hooks.on:
            points = len(scan.check_points)
            hooks.emit(ReviveScanEnded(self.revive_qid, scan.offset, points, scan.acks, scan.end_time, reason))

    def _emit_waits(self, scan: ReviveScan, waits_for: str, said: str) -> str:
        """Say once what a round waits for, and until when if nothing comes."""
        hooks = self.node.hooks
        if hooks.on and waits_for != said:
            until_ms = scan.end_time + MOVE_END_TIME_MS + 1 if scan.end_time else 0
            points = len(scan.check_points)
            hooks.emit(
                ReviveScanWaits(self.revive_qid, scan.offset, points, scan.acks, scan.end_time, until_ms, waits_for)
            )
        return waits_for

    def _emit_point_waits(self, point: PopCheckPoint, end_time: int) -> None:
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(
                CheckPointWaits(
                    point.group or "",
                    point.topic or "",
                    point.queue_id,
                    point.start_offset,
                    point.pop_time,
                    point.revive_time,
                    end_time,
                    self.revive_qid,
                    point.revive_offset,
                )
            )


def _decoded(result: GetMessageResult) -> list[MessageExt]:
    """The messages of an answer, each with the offset of its entry; what is no record is passed over, as in RocketMQ.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.decodeMsgList.
    """
    messages = []
    for record, queue_offset in zip(result.messages, result.queue_offsets, strict=True):
        try:
            message = decode_record(record)
        except ProtocolError:
            continue
        message.queue_offset = queue_offset
        messages.append(message)
    return messages
