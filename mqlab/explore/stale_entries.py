"""Entries of a queue that belong to messages which a loss of power took: what RocketMQ's recovery leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.lab.processes import BrokerProcess

if TYPE_CHECKING:
    from mqlab.explore.ledger import StoreBook
    from mqlab.explore.places import Place
    from mqlab.lab import Lab
    from mqlab.store import ReadableStore
    from mqlab.store.consume_queue import ConsumeQueue, CqUnit

STALE = "stale queue entries"
STALE_TEXT = (
    "Recovery that cuts a queue moves its end and leaves the bytes behind it. When a machine that loses its power "
    "keeps entries of messages that it loses, a later restart takes them in again, also a clean one. By then the log "
    "has grown over their offsets: they point to other messages or to none, and messages in front of them that come "
    "later get no entry. A file whose only page was lost is cut to one entry of zeros; the next restart does not see "
    "that one, and the queue moves up. Recovery reads the last three files of a queue, up to the first blank entry: "
    "when that is the first of all, it takes the queue to be sound, and keeps what lies in front of these files. The "
    "first message of a queue is given an entry by every recovery that reads it, behind those that are there. A "
    "consumer that is given another message through such an entry commits the offset which that one has in its own "
    "queue, and may so pass messages here that it never gets. A broker that judges conditions fails where such an "
    "entry points to no whole record, and who reads by one stands there for good; so does a reviver that gets one "
    "message at a time."
)


def is_stale(lab: Lab, stores: StoreBook, place: Place) -> bool:
    """Has the broker lost power, and has the queue at this place now an entry that a lost message left, or none because
    what was stored here was passed over for such an entry?

    Where nothing was stored, an entry that stands elsewhere than its message says is one, too. It is not where
    something was: that the next entries have moved up does not say why a message has none.
    """
    broker = lab.processes.get(place.broker) if place.broker in stores.processes.power_lost_us else None
    if not isinstance(broker, BrokerProcess) or broker.controller is None:
        return False
    store = broker.controller.message_store
    queue = store.find_consume_queue(place.topic, place.queue_id)
    if queue is None or place in stores.passed_over:
        return queue is not None
    unit = queue.get(place.queue_offset)
    if unit is not None and (_is_left(stores, place, unit) or not unit.size):
        return True
    if place in stores.stored:
        return not _is_its_own(stores, place, unit) and is_passed_over(store, stores, place)
    message = store.look_message_by_offset(unit.pos) if unit is not None else None
    return message is not None and (message.topic, message.queue_id, message.queue_offset) != place[1:]


def is_passed_over(store: ReadableStore, stores: StoreBook, place: Place) -> bool:
    """Has the queue an entry left that points behind the message which was stored for this place? Then it takes itself
    to have an entry of that message, too.
    """
    queue = store.find_consume_queue(place.topic, place.queue_id)
    kept = stores.stored[place]
    if queue is not None and _has_entry_of_first(queue, stores, place):
        return True
    return queue is not None and any(
        unit.pos + unit.size >= kept.commit_log_offset + kept.size
        and _is_left(stores, place._replace(queue_offset=unit.queue_offset), unit)
        for unit in queue.units()
    )


def _has_entry_of_first(queue: ConsumeQueue, stores: StoreBook, place: Place) -> bool:
    """Does another entry of the queue's first message stand at this place?"""
    unit, first = queue.get(place.queue_offset), stores.stored.get(place._replace(queue_offset=0))
    return unit is not None and first is not None and place.queue_offset > 0 and unit.pos == first.commit_log_offset


def _is_its_own(stores: StoreBook, place: Place, unit: CqUnit | None) -> bool:
    kept = stores.stored.get(place)
    return unit is not None and kept is not None and (unit.pos, unit.size) == (kept.commit_log_offset, kept.size)


def _is_left(stores: StoreBook, place: Place, unit: CqUnit) -> bool:
    """Is this the entry of a message that was lost?"""
    return unit.pos in stores.remains.get(place, ()) and not _is_its_own(stores, place, unit)
