"""What one round of a reviver has read: check points, with a bit for each message that was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.pop_check_point import ACK_TAG, BATCH_ACK_TAG, CK_TAG, AckMsg, BatchAckMsg, PopCheckPoint
from mqlab.trace.events.pop import ReviveAckRead, ReviveCheckPointRead

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.message import MessageExt


class ReviveScan:
    """The check points and acks of one round, and what its loop knows.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.ConsumeReviveObj.

    `old_offset` is where the round before ended, `offset` what is read next. `first_revive_time` is that of the first
    check point, `end_time` the newest time of delivery (both ms since 1970, 0 while there is none): what came due up
    to then has been read. `empty_reads` counts the reads that found nothing, one after the other.
    """

    def __init__(self, broker: BrokerParts, revive_qid: int, old_offset: int, empty_reads: int) -> None:
        self._broker = broker
        self._revive_qid = revive_qid
        self.old_offset = old_offset
        self.offset = old_offset + 1
        self.check_points: dict[str, PopCheckPoint] = {}
        self.acks = 0
        self.end_time = 0
        self.first_revive_time = 0
        self.empty_reads = empty_reads
        self._due_ms: list[int] = []
        self._mocks: dict[str, PopCheckPoint] = {}

    def take(self, messages: list[MessageExt]) -> None:
        """Note what these messages of the revive topic say; BodyError at one that cannot be read."""
        for message in messages:
            tag = message.tags
            if tag == CK_TAG:
                self._take_check_point(PopCheckPoint.decode(message.body), message.queue_offset)
            elif tag == ACK_TAG:
                self._take_ack(AckMsg.decode(message.body), message)
            elif tag == BATCH_ACK_TAG:
                self._take_ack(BatchAckMsg.decode(message.body), message)
            due_ms = self.due_ms(message)
            self._due_ms.append(due_ms)
            self.end_time = max(self.end_time, due_ms)
        self.offset += len(messages)

    def sorted_check_points(self) -> list[PopCheckPoint]:
        """The check points in the order of the revive queue."""
        return sorted({**self.check_points, **self._mocks}.values(), key=lambda point: point.revive_offset)

    def due_ms(self, message: MessageExt) -> int:
        """When this message was to be delivered, ms since 1970."""
        return deliver_time_ms(message)

    def passes(self, waited_ms: int) -> bool:
        """Whether an ack that was due so long ago need not wait for its check point any more."""
        config = self._broker.broker_config
        return config.enable_skip_long_awaiting_ack and waited_ms > config.revive_ack_wait_ms

    def oldest_behind_ms(self, offset: int) -> int:
        """When the oldest of what was read behind an offset of the revive queue was due, ms since 1970; 0: nothing."""
        return min(self._due_ms[offset - self.old_offset :], default=0)

    def _take_check_point(self, point: PopCheckPoint, revive_offset: int) -> None:
        if point.topic is None or point.group is None:
            return
        self.check_points[point.merge_key] = point
        point.revive_offset = revive_offset
        if not self.first_revive_time:
            self.first_revive_time = point.revive_time
        hooks = self._broker.node.hooks
        if hooks.on:
            hooks.emit(
                ReviveCheckPointRead(
                    point.group,
                    point.topic,
                    point.queue_id,
                    point.start_offset,
                    point.pop_time,
                    point.invisible_time,
                    point.num,
                    ",".join(map(str, point.offsets())),
                    self._revive_qid,
                    revive_offset,
                )
            )

    def _take_ack(self, ack: AckMsg, message: MessageExt) -> None:
        self.acks += 1
        if not (ack.broker_name or "").strip():
            ack.broker_name = self._broker.broker_config.broker_name
        point = self.check_points.get(ack.merge_key)
        bits: list[int] = []
        if point is not None:
            bits = [bit for bit in map(point.index_of_ack, ack.offsets()) if bit >= 0]
            for bit in bits:
                point.bit_map |= 1 << bit
        else:
            self._take_lone_ack(ack, message)
        hooks = self._broker.node.hooks
        if hooks.on:
            hooks.emit(
                ReviveAckRead(
                    ack.group or "",
                    ack.topic or "",
                    ack.queue_id,
                    ack.start_offset,
                    ack.pop_time,
                    ",".join(map(str, bits)),
                    self._revive_qid,
                    message.queue_offset,
                )
            )

    def _take_lone_ack(self, ack: AckMsg, message: MessageExt) -> None:
        """An ack without its check point has no effect; if it was due long ago, it stands for one without messages, so
        that the reviver gets past it (PopReviveService.mockCkForAck).
        """
        if not self.passes(self._broker.node.now_ms() - self.due_ms(message)):
            return
        mock = PopCheckPoint(
            start_offset=ack.start_offset,
            pop_time=ack.pop_time,
            queue_id=ack.queue_id,
            topic=ack.topic,
            group=ack.group,
            revive_offset=message.queue_offset,
            broker_name=ack.broker_name,
        )
        self._mocks[ack.merge_key] = mock
        if not self.first_revive_time:
            self.first_revive_time = mock.revive_time


def deliver_time_ms(message: MessageExt) -> int:
    """When a timer message was to be delivered, ms since 1970; 0 when it does not say so (Message.getDeliverTimeMs)."""
    return int(message.properties.get("TIMER_DELIVER_MS", "0"))
