"""Parts of a broker or a client with real bugs in them, as RocketMQ once had them, or still has; and parts that mend.

Each is a subclass or a function that is put in its place: in a broker by `Lab.broker(prepare=...)`, in a consumer when
it has started. Their own code knows nothing of them. What each one was, and which worlds show it, stands in
docs/museum.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mqlab.broker.pop.revive_message import ReviveMessage
from mqlab.broker.pop.revive_scan import ReviveScan, deliver_time_ms
from mqlab.client.consumer.pop.consume_message_pop_concurrently_service import POP_DELAY_LEVEL, delay_s
from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageConst
from mqlab.protocol.pop_check_point import CK_TAG, is_revive_topic

if TYPE_CHECKING:
    from mqlab.broker.broker_controller import BrokerController
    from mqlab.broker.pop.pop_services import PopServices
    from mqlab.broker.pop.pop_work import PopWork
    from mqlab.client.consumer.pop.pop_loop import PopLoop
    from mqlab.protocol.message import MessageExt
    from mqlab.protocol.pop_check_point import PopCheckPoint

EARLIER_MS = 1_000
"""So much before the end of the invisible time a check point is to be read, and with it each of its acks
(PopMessageProcessor.buildCkMsg)."""
Prepare = Callable[["BrokerController"], None]
"""Puts a part into a broker that has not started yet."""
PrepareConsumer = Callable[["PopLoop"], None]
"""Puts a part into a consumer that has not popped yet."""


# -- 3787 and 4153: delay levels in place of the timer ----------------------------------------------------------------


class DeliveredWhenStored(ReviveScan):
    """A check point or an ack that waited by its delay level was due when it came: it says nothing else."""

    def due_ms(self, message: MessageExt) -> int:
        """When the message came into the revive queue."""
        return message.store_timestamp


def delay_levels(broker: BrokerController) -> None:
    """Check points and acks wait by one of 18 delay levels: the next one above the time that they should wait.

    Java: org.apache.rocketmq.broker.util.MsgUtil.setMessageDeliverTime, until 5.0.0.
    """

    def by_level(message: MessageExt) -> None:
        due = message.properties.get(MessageConst.TIMER_DELIVER_MS)
        if due is not None and is_revive_topic(message.topic):
            wait_ms, delays_ms = int(due) - broker.node.now_ms(), broker.message_store.delays_ms
            levels = (level for level, delay_ms in enumerate(delays_ms, 1) if wait_ms < delay_ms)
            message.properties[MessageConst.DELAY_TIME_LEVEL] = str(next(levels, len(delays_ms)))
            del message.properties[MessageConst.TIMER_DELIVER_MS]

    broker.message_store.put_message_hooks.insert(0, by_level)
    broker.change_pop = _reads_with(DeliveredWhenStored)


# -- 3507: the end time counts the wait twice -------------------------------------------------------------------------


class CountsTheWaitTwice(ReviveScan):
    """The time of delivery plus the time that the message waited for it, which had passed already."""

    def due_ms(self, message: MessageExt) -> int:
        """Too late by as much as the message waited."""
        due_ms = deliver_time_ms(message)
        return due_ms + max(0, due_ms - message.born_timestamp)


def counts_the_wait_twice(broker: BrokerController) -> None:
    """A reviver believes that it has read more than it has (PopReviveService.consumeReviveMessage of 5.0.0-ALPHA)."""
    broker.change_pop = _reads_with(CountsTheWaitTwice)


# -- 7914: what was stored behind the pop time is skipped -------------------------------------------------------------


class SkipsWhatWasStoredLater(ReviveMessage):
    """A message that was stored behind the pop time is taken for one of another time, and not brought back."""

    async def revive(self, ck: PopCheckPoint, offset: int) -> str:
        """Look at the store time first."""
        original = self.get_biz_message(ck, offset)
        if original is not None and ck.pop_time < original.store_timestamp:
            self.emit_not_revived(ck, offset, "its check point is from an earlier time")
            return ""
        return await super().revive(ck, offset)


def skips_what_was_stored_later(broker: BrokerController) -> None:
    """A reviver compares store time and pop time (PopReviveService.reviveMsgFromCk until 5.2.0)."""
    broker.change_pop = _revives_with(SkipsWhatWasStoredLater)


# -- 8479: an offset that the queue does not have is asked for again --------------------------------------------------


class AsksAgainForWhatIsGone(ReviveMessage):
    """An offset behind the end of the queue is taken for a read that failed."""

    async def revive(self, ck: PopCheckPoint, offset: int) -> str:
        """Say that it has to be tried again."""
        end = self.broker.message_store.get_max_offset_in_queue(ck.topic or "", ck.queue_id)
        if offset >= end:
            return f"the queue ends at {end}"
        return await super().revive(ck, offset)


def asks_again_for_what_is_gone(broker: BrokerController) -> None:
    """A reviver does not tell "not there" from "not now" (PopReviveService.reviveMsgFromCk until 5.3.0)."""
    broker.change_pop = _revives_with(AsksAgainForWhatIsGone)


# -- 8472: a pop that found nothing waits although something is left --------------------------------------------------


def wakes_behind_what_was_found(broker: BrokerController) -> None:
    """Only a pop that found something looks whether more is left (PopMessageProcessor.processRequest until 5.3.0)."""
    broker.change_pop = _wakes_if(lambda work: bool(work.records) and work.rest > 0)


# -- 8332: only a failure is counted ----------------------------------------------------------------------------------


def gives_whatever_comes(popping: PopLoop) -> None:
    """Each message goes to the listener (DefaultMQPushConsumerImpl.processPopResult until 5.3.0)."""
    popping.may_try = lambda reconsume_times, most: True


# -- 4815: the delays of Pop are counted as those of push -------------------------------------------------------------


def begins_in_the_fourth_row(popping: PopLoop) -> None:
    """The first three delays are left out (ConsumeMessagePopConcurrentlyService.changePopInvisibleTime of
    5.0.0-PREVIEW).
    """
    popping.consume_message_pop_service.delay_s = lambda asked, times: delay_s(asked or 3 + times, times)


# -- 7724: the mended part --------------------------------------------------------------------------------------------


class LooksAtTheOffset(ReviveMessage):
    """A message is what was popped only when it lies where that lay."""

    def get_biz_message(self, ck: PopCheckPoint, offset: int) -> MessageExt | None:
        """The message at the offset, None when there is another one."""
        message = super().get_biz_message(ck, offset)
        return message if message is not None and message.queue_offset == offset else None


def looks_at_the_offset(broker: BrokerController) -> None:
    """A reviver compares offsets, as a change to RocketMQ that was never merged does."""
    broker.change_pop = _revives_with(LooksAtTheOffset)


# -- 11062: the mended part -------------------------------------------------------------------------------------------


def compares_ms_with_ms(popping: PopLoop) -> None:
    """A consumer takes both times as what they are, as a change to RocketMQ that is not merged does."""
    popping.consume_message_pop_service.timed_out = lambda cost_ms, invisible_ms: cost_ms >= invisible_ms


# -- a decision of one's own ------------------------------------------------------------------------------------------

Decision = Callable[[int, int | None, int, int | None, int, bool], object]
"""What becomes of a message, from: the offset asked for, the one found, pop time, store time, the queue's end, and
whether the store reads. "back", "gone" or "later"."""


def decided_by(decide: Decision) -> Prepare:
    """A reviver that asks somebody what shall become of each message."""

    class Decided(ReviveMessage):
        async def revive(self, ck: PopCheckPoint, offset: int) -> str:
            store, topic = self.broker.message_store, ck.topic or ""
            message = self.get_biz_message(ck, offset)
            found = (message.queue_offset, message.store_timestamp) if message is not None else (None, None)
            end = store.get_max_offset_in_queue(topic, ck.queue_id)
            said = decide(offset, found[0], ck.pop_time, found[1], end, store.running_flags.is_readable)
            if said == "later":
                return "it was said to be tried again"
            if said == "gone":
                self.emit_not_revived(ck, offset, "it was said to be gone")
                return ""
            return await super().revive(ck, offset) if said == "back" else f"it was said to be {said!r}"

    def prepare(broker: BrokerController) -> None:
        broker.change_pop = _revives_with(Decided)

    return prepare


DeliverAt = Callable[[str, int, int, Sequence[int]], object]
"""When a note is put into the revive queue, from: "ck" or "ack", the end of the invisible time, now, and the delay
levels, all in ms."""


def delivered_at(decide: DeliverAt) -> Prepare:
    """A broker that asks somebody when each check point and each ack shall be put into the revive queue."""

    def prepare(broker: BrokerController) -> None:
        def ask(message: MessageExt) -> None:
            due = message.properties.get(MessageConst.TIMER_DELIVER_MS)
            if due is not None and is_revive_topic(message.topic):
                kind = "ck" if message.tags == CK_TAG else "ack"
                until_ms = int(due) + (EARLIER_MS if kind == "ck" else 0)
                said = decide(kind, until_ms, broker.node.now_ms(), tuple(broker.message_store.delays_ms))
                message.properties[MessageConst.TIMER_DELIVER_MS] = str(_number(said))

        broker.message_store.put_message_hooks.insert(0, ask)

    return prepare


def read_up_to(decide: Callable[[int, int], object]) -> Prepare:
    """A reviver that asks somebody up to which time it has read, from when a message was to be delivered (ms since
    1970) and for how long it waited for that (ms).
    """

    class Asks(ReviveScan):
        def due_ms(self, message: MessageExt) -> int:
            due_ms = deliver_time_ms(message)
            return _number(decide(due_ms, max(0, due_ms - message.born_timestamp)))

    def prepare(broker: BrokerController) -> None:
        broker.change_pop = _reads_with(Asks)

    return prepare


def passes_acks(decide: Callable[[int, int], object], patience_ms: int) -> Prepare:
    """A reviver that asks somebody whether an ack without a check point is passed, from how long ago it was due and for
    how long it should wait (ms).
    """

    class Asks(ReviveScan):
        def passes(self, waited_ms: int) -> bool:
            return bool(decide(waited_ms, patience_ms))

    def prepare(broker: BrokerController) -> None:
        broker.change_pop = _reads_with(Asks)

    return prepare


def wakes_another(decide: Callable[[int, int], object]) -> Prepare:
    """A broker that asks somebody whether the next request is woken when a pop is through, from how many messages it
    found and how many are left.
    """

    def wakes(work: PopWork) -> bool:
        said = bool(decide(work.messages, work.rest))
        if said and not work.records and not work.rest:
            raise LearnerError(
                "a request that found nothing was woken with nothing left: it finds nothing again, is woken, and so on",
                "wake nobody when nothing is left",
            )
        return said

    def prepare(broker: BrokerController) -> None:
        broker.change_pop = _wakes_if(wakes)

    return prepare


def may_try(decide: Callable[[int, int], object]) -> PrepareConsumer:
    """A consumer that asks somebody whether its listener gets a message, from how often it was delivered again and how
    often it may be.
    """

    def prepare(popping: PopLoop) -> None:
        popping.may_try = lambda reconsume_times, most: bool(decide(reconsume_times, most))

    return prepare


def delayed_by(decide: Callable[[int, int, Sequence[int]], object]) -> PrepareConsumer:
    """A consumer that asks somebody in how many seconds a message comes again, from the level that its listener asked
    for (0: none), how often it was delivered again, and the delays.
    """

    def prepare(popping: PopLoop) -> None:
        popping.consume_message_pop_service.delay_s = lambda asked, times: _number(
            decide(asked, times, POP_DELAY_LEVEL)
        )

    return prepare


def timed_out(decide: Callable[[int, int], object]) -> PrepareConsumer:
    """A consumer that asks somebody whether a call timed out, from how long it took, and the invisible time (ms)."""

    def prepare(popping: PopLoop) -> None:
        popping.consume_message_pop_service.timed_out = lambda cost_ms, invisible_ms: bool(
            decide(cost_ms, invisible_ms)
        )

    return prepare


def _number(said: object) -> int:
    """A time that somebody's function has said."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise LearnerError(f"{said!r} is no time", "return a number of ms")
    return round(said)


# -- putting them in --------------------------------------------------------------------------------------------------


def _reads_with(scan_class: type[ReviveScan]) -> Callable[[PopServices], None]:
    def change(services: PopServices) -> None:
        for service in services.ack_message_processor.revive_services:
            service.scan_class = scan_class

    return change


def _revives_with(reviver_class: type[ReviveMessage]) -> Callable[[PopServices], None]:
    def change(services: PopServices) -> None:
        for service in services.ack_message_processor.revive_services:
            service.check_points.reviver = reviver_class(services.broker)

    return change


def _wakes_if(wakes: Callable[[PopWork], bool]) -> Callable[[PopServices], None]:
    def change(services: PopServices) -> None:
        services.pop_message_processor.wakes_another = wakes

    return change
