"""What comes off the wheel: recalled, rolled, or stored again where it belongs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.store.put_message import MessageExtBrokerInner, PutMessageResult, PutMessageStatus
from mqlab.store.timer.timer_message import NEVER_ENQUEUED, build_delete_key, convert
from mqlab.trace.events.timer import (
    TimerMessageDelivered,
    TimerMessageDropped,
    TimerMessageRecalled,
    TimerMessageRolled,
    TimerPutRefused,
    TimerStalled,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.store.timer.timer_log import TimerRecord
    from mqlab.store.timer.timer_message_store import TimerMessageStore

HOLD_MS = 50
"""How long the timer waits after an error that it does not understand."""

_ATTEMPTS = 3
_RETRY_MS = 500
_HOPELESS = frozenset(
    {
        PutMessageStatus.MESSAGE_ILLEGAL,
        PutMessageStatus.PROPERTIES_SIZE_EXCEEDED,
        PutMessageStatus.WHEEL_TIMER_NOT_ENABLE,
        PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL,
    }
)
"""What the store will say of a message whenever it is asked."""


class Due:
    """A message that is due, as it is to be stored, and how often the store has refused it."""

    def __init__(self, record: TimerRecord, message: MessageExtBrokerInner, slot_ms: int) -> None:
        self.record = record
        self.message = message
        self.slot_ms = slot_ms
        self.attempts = 0

    @property
    def topic(self) -> str:
        """The topic that it is for, also when it only rolls."""
        return self.message.properties.get(MessageConst.REAL_TOPIC, self.message.topic)

    @property
    def unique_key(self) -> str:
        """The name that its producer gave it."""
        return self.message.properties.get("UNIQ_KEY", "")


class TimerDelivery:
    """The threads behind the reading of the wheel, as they store what is due.

    Java: org.apache.rocketmq.store.timer.TimerMessageStore.TimerDequeueGetMessageService and
    TimerDequeuePutMessageService. Differs from RocketMQ: while the store takes everything no thread is needed, as a put
    takes no time; what it refuses is tried again by as many threads as there are in Java.
    """

    def __init__(self, timer: TimerMessageStore, count_put: Callable[[str, int, int], None]) -> None:
        self._timer = timer
        self._node = timer.node
        self._count_put = count_put

    def recalled(self, records: list[TimerRecord]) -> set[str]:
        """The messages that these records recall."""
        messages = [self._timer.message_at(record.offset_py, record.size_py) for record in records]
        keys = [message.properties.get(MessageConst.TIMER_DEL_UNIQKEY) for message in messages if message is not None]
        return {key for key in keys if key is not None}

    def messages_of(self, records: list[TimerRecord], recalled: set[str]) -> list[tuple[TimerRecord, MessageExt]]:
        """The messages of these records, without those that are recalled or gone."""
        found = []
        for record in records:
            message = self._timer.message_at(record.offset_py, record.size_py)
            if message is None:
                self._drop("", "", f"the commit log does not have the message at {record.offset_py}")
                continue
            topic, key = message.properties.get(MessageConst.REAL_TOPIC, ""), message.properties.get("UNIQ_KEY", "")
            if key and build_delete_key(topic, key) in recalled:
                if self._node.hooks.on:
                    self._node.hooks.emit(TimerMessageRecalled(topic, key, record.slot_ms))
                continue
            found.append((record, message))
        return found

    async def deliver(self, due: list[tuple[TimerRecord, MessageExt]]) -> None:
        """Store all of them, and wait until each is stored or given up.

        One that does not say where it belongs keeps its thread for good, or is given up with timerSkipUnknownError.
        """
        timer = self._timer
        threads = free = max(1, timer.config.timer_put_message_thread_num)
        waiting: deque[Due] = deque()
        for record, message in due if timer.is_running else ():
            try:
                waiting.append(self._converted(record, message))
            except ValueError as error:
                if timer.config.timer_skip_unknown_error:
                    self._drop(message.topic, message.properties.get("UNIQ_KEY", ""), str(error))
                    continue
                if self._node.hooks.on:
                    self._node.hooks.emit(TimerStalled(message.queue_offset, str(error)))
                free -= 1
                if not free:
                    break
        while waiting and await self._put(waiting[0]):
            waiting.popleft()
        tasks = [
            self._node.spawn(self._put_all(waiting), f"TimerDequeuePutMessageService_{number}")
            for number in range(min(len(waiting), max(1, free)))
        ]
        for task in tasks:
            await task.join()
        while free < threads and timer.is_running:
            await self._node.sleep(HOLD_MS)

    def _converted(self, record: TimerRecord, message: MessageExt) -> Due:
        """The message as it is to be stored; ValueError when it does not say where it belongs."""
        if record.write_time_ms == NEVER_ENQUEUED:
            slot_ms = int(message.properties[MessageConst.TIMER_OUT_MS])
        else:
            slot_ms = record.slot_ms
            self._timer.count(message, -1)
        return Due(record, convert(message, record.write_time_ms, record.rolls, self._node.now_ms()), slot_ms)

    async def _put_all(self, waiting: deque[Due]) -> None:
        """One of the threads: store one message after the other, each up to three times."""
        timer = self._timer
        while waiting and timer.is_running:
            due = waiting.popleft()
            while timer.is_running and (due.attempts or not await self._put(due)):
                if due.attempts >= _ATTEMPTS and not timer.config.timer_enable_retry_until_success:
                    self._drop(due.topic, due.unique_key, f"the store has refused it {_ATTEMPTS} times")
                    break
                await self._node.sleep(_RETRY_MS * timer.precision_ms / 1_000)
                if await self._put(due):
                    break

    async def _put(self, due: Due) -> bool:
        """Store one message, unless it is hopeless; False when the store does not take it now."""
        message, timer = due.message, self._timer
        if not due.record.rolls and MessageConst.TIMER_DEL_UNIQKEY in message.properties:
            self._drop(due.topic, due.unique_key, "it came too late to recall another message")
            return True
        # With WAIT=false no put waits for a flush, but it may for the lock of a slow disk's log.
        result = await timer.message_store.put_and_wait(message)
        if result.is_ok:
            self._stored(due, result)
            return True
        if result.status in _HOPELESS:
            self._drop(due.topic, due.unique_key, result.remark or result.status.value)
            return True
        due.attempts += 1
        if self._node.hooks.on:
            self._node.hooks.emit(TimerPutRefused(due.topic, due.unique_key, result.status.value, due.attempts))
        return False

    def _stored(self, due: Due, result: PutMessageResult) -> None:
        message, hooks = due.message, self._node.hooks
        self._count_put(message.topic, result.msg_num, result.wrote_bytes)
        if not hooks.on:
            return
        if due.record.rolls:
            times = int(message.properties[MessageConst.TIMER_ROLL_TIMES])
            hooks.emit(TimerMessageRolled(due.topic, due.unique_key, due.slot_ms, times))
            return
        hooks.emit(
            TimerMessageDelivered(
                message.topic,
                message.queue_id,
                result.logics_offset,
                due.unique_key,
                due.slot_ms,
                self._node.now_ms() - due.slot_ms,
                due.record.write_time_ms != NEVER_ENQUEUED,
            )
        )

    def _drop(self, topic: str, unique_key: str, reason: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(TimerMessageDropped(topic, unique_key, reason))
