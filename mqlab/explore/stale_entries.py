"""Entries of a queue that belong to messages which a loss of power took: what RocketMQ's recovery leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.explore.ledger import Place

if TYPE_CHECKING:
    from mqlab.explore.ledger import Ledger
    from mqlab.lab import Lab

STALE = "stale queue entries"
STALE_TEXT = (
    "Recovery that cuts a queue moves its end and leaves the bytes behind it. When a machine that loses its power "
    "keeps entries of messages that it loses, a later restart takes them in again, also a clean one. By then the log "
    "has grown over their offsets: they point to other messages or to none, and messages in front of them that come "
    "later get no entry. A file whose only page was lost is cut to one entry of zeros; the next restart does not see "
    "that one, and the queue moves up."
)


def has_stale_entries(lab: Lab, ledger: Ledger, place: Place) -> bool:
    """Has the broker lost power, and does the queue of this place hold entries now that are not those of the messages
    which belong there? Then its offsets say little.
    """
    controller = next((broker.controller for broker in lab.brokers if broker.name == place.broker), None)
    if controller is None or place.broker not in ledger.power_lost_us:
        return False
    store = controller.message_store
    queue = store.find_consume_queue(place.topic, place.queue_id)
    if queue is None:
        return False
    for offset in range(queue.min_offset_in_queue, queue.max_offset_in_queue):
        unit = queue.get(offset)
        message = store.look_message_by_offset(unit.pos) if unit is not None and unit.size > 0 else None
        if message is None or (message.topic, message.queue_id, message.queue_offset) != (*place[1:3], offset):
            return True
    return False
