"""Asking producers what became of half messages that nobody has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.transaction.half_messages import (
    NO_NEW_MESSAGE,
    OFFSET_SEPARATOR,
    REMOVE_TAG,
    check_times_of,
    number,
    real_topic_of,
    unique_key_of,
)
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, RMQ_SYS_TRANS_OP_HALF_TOPIC
from mqlab.sim.service import ServiceThread
from mqlab.store import GetMessageStatus
from mqlab.trace.events.transaction import HalfMessageStoredAgain, TransactionRoundEnded

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.transaction.check_listener import DefaultTransactionalMessageCheckListener
    from mqlab.broker.transaction.half_messages import HalfMessages
    from mqlab.store import GetMessageResult

MAX_PROCESS_TIME_LIMIT_MS = 60_000
OP_MSG_PULL_NUMS = 32
SLEEP_WHILE_NO_OP_MS = 1_000
STORE_REFUSES_MS = 1_000


class TransactionalMessageCheckService(ServiceThread):
    """Compares half messages with op messages, 30 s after it last did.

    Java: org.apache.rocketmq.broker.transaction.TransactionalMessageCheckService.

    Differs from RocketMQ: a round that would find nothing is left out.
    """

    def __init__(
        self, broker: BrokerParts, half_messages: HalfMessages, listener: DefaultTransactionalMessageCheckListener
    ) -> None:
        config = broker.broker_config
        super().__init__(broker.node, "TransactionalMessageCheckService", config.transaction_check_interval)
        self._broker = broker
        self._half_messages = half_messages
        self._listener = listener

    def has_work(self) -> bool:
        """Is there a half message, or an op message, that no round has passed?"""
        return self._half_messages.are_left()

    def next_tick_us(self) -> int:
        """A whole period behind the thread's beginning, or the end of its last round, at the earliest."""
        return max(super().next_tick_us(), self._origin_us + self.period_ms * 1_000)

    def arrived(self) -> None:
        """A half or an op message is stored."""
        self.wakeup_for_work()

    async def run(self) -> None:
        """Play round after round until the broker is shut down."""
        while not self.stopped:
            await self.wait_for_running()
            await CheckRound(self._broker, self._half_messages, self._listener).play()
            self.set_origin(self.node.now_us())


class CheckRound:
    """One look through the half messages that no round has passed yet, from the oldest on.

    Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.check. Differs from RocketMQ:
    where the store refuses a half message that is to be stored again it is tried once a second, not without a pause.
    """

    def __init__(
        self, broker: BrokerParts, half_messages: HalfMessages, listener: DefaultTransactionalMessageCheckListener
    ) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._half_messages = half_messages
        self._listener = listener
        self._begin_ms = self._node.now_ms()
        self._first = half_messages.offset(RMQ_SYS_TRANS_HALF_TOPIC)
        self._first_op = half_messages.offset(RMQ_SYS_TRANS_OP_HALF_TOPIC)
        self._next_op = self._first_op
        self._removed: dict[int, int] = {}
        """Of each half message that is done with, by offset: the op message that says so."""
        self._left_of_op: dict[int, set[int]] = {}
        """Of each op message the half messages in it that this round has not passed yet."""
        self._done_ops: list[int] = []
        self._last_op_born_ms: int | None = None
        """When the last op message of the last read was made; None when it found none."""
        self._asked = 0

    async def play(self) -> None:
        """Look at half message after half message, until one is too young; then note how far both topics are done."""
        self._read_ops()
        offset = await self._look_through()
        if offset != self._first:
            self._half_messages.commit(RMQ_SYS_TRANS_HALF_TOPIC, offset)
        op_offset = self._first_op
        for done in sorted(self._done_ops):
            if done != op_offset:
                break
            op_offset += 1
        if op_offset != self._first_op:
            self._half_messages.commit(RMQ_SYS_TRANS_OP_HALF_TOPIC, op_offset)
        if self._node.hooks.on:
            took_ms = self._node.now_ms() - self._begin_ms
            self._node.hooks.emit(TransactionRoundEnded(self._first, offset, op_offset, self._asked, took_ms))

    async def _look_through(self) -> int:
        """The offset of the first half message that this round has not passed."""
        offset, misses = self._first, 0
        while self._node.now_ms() - self._begin_ms <= MAX_PROCESS_TIME_LIMIT_MS:
            if offset in self._removed:
                self._pass_over(offset)
                offset += 1
                continue
            result, found = self._half_messages.read(RMQ_SYS_TRANS_HALF_TOPIC, offset, 1)
            if not found:
                misses += 1
                if misses > 1 or result is None or result.status in NO_NEW_MESSAGE:
                    return offset
                offset = result.next_begin_offset
                continue
            half = found[0]
            if self._is_given_up(half):
                await self._listener.resolve_discard_msg(half)
                offset += 1
                continue
            if half.store_timestamp >= self._begin_ms:
                return offset
            age_ms = self._node.now_ms() - half.born_timestamp
            own_immunity = half.properties.get(MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS)
            immune_ms = self._config.transaction_time_out
            if own_immunity is not None:
                seconds = number(own_immunity)
                immune_ms = immune_ms if seconds == -1 else seconds * 1_000
                if age_ms < immune_ms and await self._put_off(half):
                    offset += 1
                    continue
            elif 0 <= age_ms < immune_ms:
                return offset
            if self._is_to_be_asked_about(age_ms, immune_ms):
                if await self._store_again(half, offset):
                    self._asked += 1
                    self._listener.resolve_half_msg(half)
                    offset += 1
            elif not self._read_ops():
                await self._node.sleep(SLEEP_WHILE_NO_OP_MS)
        return offset

    def _pass_over(self, offset: int) -> None:
        op_offset = self._removed.pop(offset)
        left = self._left_of_op[op_offset]
        left.discard(offset)
        if not left:
            del self._left_of_op[op_offset]
            self._done_ops.append(op_offset)

    def _is_given_up(self, half: MessageExt) -> bool:
        """Was it asked about often enough (else it says once more from now on), or is it older than files become?

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.needDiscard, needSkip.
        """
        times = check_times_of(half)
        if times >= self._config.transaction_check_max:
            return True
        half.properties[MessageConst.TRANSACTION_CHECK_TIMES] = str(times + 1)
        kept_ms = self._broker.message_store_config.file_reserved_time * 3_600_000
        return self._node.now_ms() - half.born_timestamp > kept_ms

    def _is_to_be_asked_about(self, age_ms: int, immune_ms: int) -> bool:
        """Is it sure by now that no op message speaks of it, or does its producer's clock go wrong?"""
        last_ms = self._last_op_born_ms
        if last_ms is None:
            return age_ms > immune_ms or age_ms <= -1
        return last_ms - self._begin_ms > self._config.transaction_time_out or age_ms <= -1

    # -- op messages ------------------------------------------------------------------------------------------------

    def _read_ops(self) -> bool:
        """Read up to 32 op messages more; False when there are none.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.fillOpRemoveMap.
        """
        result, ops = self._half_messages.read(RMQ_SYS_TRANS_OP_HALF_TOPIC, self._next_op, OP_MSG_PULL_NUMS)
        self._last_op_born_ms = ops[-1].born_timestamp if ops else None
        for op in ops:
            self._note(op)
        if result is not None:
            self._next_op = result.next_begin_offset
            self._correct(result)
        return bool(ops)

    def _correct(self, result: GetMessageResult) -> None:
        """Go on where the queue begins or ends, if the place is not in it."""
        if result.status is not GetMessageStatus.FOUND and result.status not in NO_NEW_MESSAGE:
            self._half_messages.commit(RMQ_SYS_TRANS_OP_HALF_TOPIC, result.next_begin_offset)

    def _note(self, op: MessageExt) -> None:
        """Take over what an op message says; one about half messages behind which the round begins is done with."""
        left = set()
        if op.properties.get(MessageConst.TAGS) == REMOVE_TAG:
            for text in op.body.decode("utf-8", "replace").split(OFFSET_SEPARATOR):
                offset = number(text)
                if text and offset >= self._first:
                    self._removed[offset] = op.queue_offset
                    left.add(offset)
        if left:
            self._left_of_op[op.queue_offset] = left
        else:
            self._done_ops.append(op.queue_offset)

    # -- storing again ----------------------------------------------------------------------------------------------

    async def _put_off(self, half: MessageExt) -> bool:
        """Let a half message that is not to be asked about yet out of the way; False if the store refuses it.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.checkPrepareQueueOffset.
        """
        first_text = half.properties.get(MessageConst.TRANSACTION_PREPARED_QUEUE_OFFSET)
        if first_text is not None:
            first = number(first_text)
            if first == -1:
                return False
            if first in self._removed:
                # As in RocketMQ the op message counts as done with, though it may speak of others, too.
                self._done_ops.append(self._removed.pop(first))
                return True
        old = half.queue_offset
        result = await self._half_messages.put_and_wait(self._half_messages.renewed_as_immune(half))
        if result.is_ok:
            self._emit_stored_again(half, old, result.logics_offset, "immune")
        return result.is_ok

    async def _store_again(self, half: MessageExt, offset: int) -> bool:
        """Store a half message again and give it its new place; wait a second and say False if the store refuses it.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.putBackHalfMsgQueue.
        """
        result = await self._half_messages.put_and_wait(self._half_messages.renewed(half))
        if not result.is_ok:
            await self._node.sleep(STORE_REFUSES_MS)
            return False
        half.queue_offset, half.commit_log_offset = result.logics_offset, result.wrote_offset
        self._emit_stored_again(half, offset, half.queue_offset, "asked")
        return True

    def _emit_stored_again(self, half: MessageExt, old: int, new: int, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                HalfMessageStoredAgain(
                    real_topic_of(half), unique_key_of(half), old, new, check_times_of(half), reason
                )
            )
