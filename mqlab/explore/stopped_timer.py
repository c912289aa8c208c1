"""A timer that gets no further after a loss of power, since a message does not say where it belongs or when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Place
from mqlab.explore.stale_entries import STALE
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import TIMER_TOPIC
from mqlab.store.timer.timer_wheel import NEVER

if TYPE_CHECKING:
    from mqlab.explore.ledger import StoreBook
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store import ReadableStore
    from mqlab.store.timer.timer_message_store import TimerMessageStore

TORN = "a torn record"
TORN_TEXT = (
    "The checksum of a record covers its body alone. When the machine loses power and the page with the end of a "
    "record is gone, recovery takes it for whole, and its properties (id, keys, tags) are "
    "zeros, or those of a message that lay there before an earlier loss of power. So is its beginning where that page "
    "is gone. The place in a queue that such a record names may be another message's by then. The timer stops for good "
    "at a message that says no more where it belongs or when (timerSkipUnknownError is off), so that an "
    "acknowledgement behind it never comes to its check point, and a reviver at one of its queue that it cannot read. "
    "About a half message without its properties nobody is asked."
)
WHEEL_AHEAD = "a wheel that knows more than the log"
WHEEL_AHEAD_TEXT = (
    "The timer flushes its own log every second and does not wait for the commit log, which without SYNC_FLUSH is "
    "flushed when four pages are full. When the machine loses power, the wheel may keep records of messages that are "
    "lost, and takes what is stored in their place for them. Another timer message comes out in their slots, too; "
    "one that is no timer message stops the timer for good (timerSkipUnknownError is off)."
)


class Standing(NamedTuple):
    """Why a timer stands, and what waits for good: what is on the wheel from `slot_ms` on, and what is not on it from
    `queue_offset` of the timer's queue on.
    """

    off: str
    """Why nothing comes off the wheel any more; "" when it does."""
    onto: str
    """Why nothing goes onto the wheel any more; "" when it does."""
    slot_ms: int
    queue_offset: int

    @property
    def reason(self) -> str:
        """Why it stands."""
        return self.off or self.onto

    def holds(self, slot_ms: int, queue_offset: int) -> bool:
        """Is this message among those that wait for good?"""
        return self.slot_ms <= slot_ms or self.queue_offset <= queue_offset


def is_torn(store: ReadableStore, pos: int, size: int) -> bool:
    """Is the end of a record, where its properties are, gone? Properties end with a separator, never with a zero."""
    data = store.commit_log.get_message(pos, size)
    return data is not None and data.endswith(b"\0")


def standing(stores: StoreBook, broker: BrokerProcess) -> Standing | None:
    """Why the timer of a broker gets no further, as far as RocketMQ's does not either; None when it goes on."""
    timer = broker.running().timer if broker.is_up() else None
    if timer is None or timer.config.timer_skip_unknown_error:
        return None
    off, onto = _off_the_wheel(stores, broker.name, timer), _onto_the_wheel(stores, broker.name, timer)
    if not off and not onto:
        return None
    return Standing(off, onto, timer.curr_read_time_ms if off else NEVER, timer.curr_queue_offset if onto else NEVER)


def _off_the_wheel(stores: StoreBook, broker: str, timer: TimerMessageStore) -> str:
    """Why nothing comes off the wheel; "" when it does."""
    for record in timer.chain(timer.timer_wheel.get_slot(timer.curr_read_time_ms)):
        message = timer.message_at(record.offset_py, record.size_py)
        if message is None or message.properties.get(MessageConst.REAL_QUEUE_ID, "").isdigit():
            continue
        is_of_torn = any("\0" in value for value in message.properties.values())
        # One that was rolled is stored again, with what it had kept of its properties.
        if is_of_torn or is_torn(timer.message_store, record.offset_py, record.size_py):
            return TORN
        if (broker, record.offset_py) in stores.taken_over:
            return WHEEL_AHEAD
    return ""


def _onto_the_wheel(stores: StoreBook, broker: str, timer: TimerMessageStore) -> str:
    """Why nothing goes onto the wheel; "" when it does."""
    queue = timer.message_store.find_consume_queue(TIMER_TOPIC, 0)
    unit = queue.get(timer.curr_queue_offset) if queue is not None else None
    message = timer.message_at(unit.pos, unit.size) if unit is not None else None
    if unit is None or message is None or message.properties.get(MessageConst.TIMER_OUT_MS, "").isdigit():
        return ""
    if is_torn(timer.message_store, unit.pos, unit.size):
        return TORN
    # The entry of a lost message points to another one.
    place = Place(broker, TIMER_TOPIC, 0, unit.queue_offset)
    return STALE if unit.pos in stores.remains.get(place, ()) else ""
