"""What becomes of a check point whose acks have all been read: its other messages come back, or it is put off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop import revive_log
from mqlab.broker.pop.revive_message import ReviveMessage
from mqlab.protocol.pop_check_point import PopCheckPoint
from mqlab.protocol.topics import parse_normal_topic
from mqlab.trace.events.pop import CheckPointPutAgain, CheckPointSettled, MessageNotRevived

if TYPE_CHECKING:
    from mqlab.broker.whole_broker import WholeBroker

CK_REWRITE_INTERVALS_S = (
    10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip


class ReviveCheckPoint:
    """Settles check points for the reviver of one revive queue.

    Java: org.apache.rocketmq.broker.processor.PopReviveService.reviveMsgFromCk and rePutCK. Differs from RocketMQ: a
    message that lies on another broker is not fetched from there, but put off, as if that broker could not be found;
    so there is never more than one check point in work.
    """

    def __init__(self, broker: WholeBroker, revive_qid: int) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._revive_qid = revive_qid
        self.reviver = ReviveMessage(broker)

    async def settle(self, point: PopCheckPoint) -> bool:
        """Bring back every message without an ack; False when topic or group are gone, and with them the messages."""
        assert point.topic is not None
        assert point.group is not None
        topics, groups = self._broker.topic_config_manager, self._broker.subscription_group_manager
        if topics.select_topic_config(parse_normal_topic(point.topic, point.group)) is None:
            self._emit_settled(point, "topic gone")
            return False
        if groups.find_subscription_group_config(point.group) is None:
            self._emit_settled(point, "group gone")
            return False
        put_again = False
        for index in range(point.num):
            if point.bit_map >> index & 1:
                continue
            offset = point.ack_offset_by_index(index)
            failure = await self.reviver.revive(point, offset)
            if failure:
                put_again = True
                await self._re_put_ck(point, offset, failure)
        missing = point.num - point.bit_map.bit_count()
        self._emit_settled(point, "put again" if put_again else "revived" if missing else "all acked")
        return True

    async def _re_put_ck(self, point: PopCheckPoint, offset: int, reason: str) -> None:
        """Make a new check point for one message, due later the more often that was done.

        As in RocketMQ nobody looks whether the store takes it.
        """
        times = point.parse_re_put_times()
        if times >= len(CK_REWRITE_INTERVALS_S) and self._config.skip_when_ck_re_put_reach_max_times:
            self._emit_given_up(point, offset, f"its check point was put again {times} times")
            return
        again = PopCheckPoint(
            start_offset=offset,
            pop_time=point.pop_time,
            invisible_time=point.invisible_time,
            num=1,
            queue_id=point.queue_id,
            topic=point.topic,
            group=point.group,
            queue_offset_diff=[0],
            broker_name=point.broker_name,
            re_put_times=str(times + 1),
        )
        if point.revive_time <= self._node.now_ms():
            again.invisible_time += CK_REWRITE_INTERVALS_S[min(times, len(CK_REWRITE_INTERVALS_S) - 1)] * 1_000
        message = revive_log.ck_message(self._broker, again, self._revive_qid)
        result = await self._broker.message_store.put_and_wait(message)
        if not result.is_stored:
            self._emit_given_up(point, offset, f"its new check point was not stored: {result.status.value}")
        elif self._node.hooks.on:
            self._node.hooks.emit(
                CheckPointPutAgain(
                    point.group or "",
                    point.topic or "",
                    point.queue_id,
                    offset,
                    again.pop_time,
                    again.invisible_time,
                    times + 1,
                    reason,
                )
            )

    # -- events -----------------------------------------------------------------------------------------------------

    def _emit_settled(self, point: PopCheckPoint, reason: str) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                CheckPointSettled(
                    point.group or "",
                    point.topic or "",
                    point.queue_id,
                    point.start_offset,
                    point.pop_time,
                    point.num,
                    point.bit_map.bit_count(),
                    self._revive_qid,
                    point.revive_offset,
                    reason,
                )
            )

    def _emit_given_up(self, point: PopCheckPoint, offset: int, reason: str) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                MessageNotRevived(point.group or "", point.topic or "", point.queue_id, offset, point.pop_time, reason)
            )
