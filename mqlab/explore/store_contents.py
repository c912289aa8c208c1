"""What the brokers really hold when a world has settled: every message that can be read, and how far the delays are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Place
from mqlab.explore.stopped_timer import is_torn
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store import DefaultMessageStore


class Found(NamedTuple):
    """A message that a broker's store gave when asked for it."""

    place: Place
    queue_offset: int
    """The offset of which the record says that it is its own."""
    unique_key: str
    keys: str
    reconsume_times: int
    real_topic: str
    tags: str
    properties: dict[str, str]
    body: bytes
    is_torn: bool
    """Did a loss of power cost the message some of its properties?"""

    @property
    def is_parked(self) -> bool:
        """Does it wait, or did it wait, for its delay level?"""
        return self.place.topic == RMQ_SYS_SCHEDULE_TOPIC


class StoreContents:
    """All messages of all masters, read out of their stores, and the copies that slaves have of them."""

    def __init__(self, lab: Lab) -> None:
        self.found: dict[Place, Found] = {}
        self.unreadable: list[Place] = []
        self.due_up_to: dict[tuple[str, int], int] = {}
        """(broker, queue of the schedule topic) -> the offset up to which parked messages were delivered."""
        self.copies: dict[Place, list[Found]] = {}
        """What slaves have, by the place that it has at their master."""
        for broker in lab.masters:
            self._read(broker)
        for broker in lab.brokers:
            if broker.is_slave:
                self._read_copies(lab, broker)

    def _read_copies(self, lab: Lab, slave: BrokerProcess) -> None:
        store = slave.store
        group = slave.settings["broker_name"]
        master = next((broker.name for broker in lab.masters if broker.settings["broker_name"] == group), slave.name)
        for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
            for offset, found in _messages(store, Place(slave.name, topic, queue_id, 0)):
                if found is not None:
                    self.copies.setdefault(Place(master, topic, queue_id, offset), []).append(found)

    def _read(self, broker: BrokerProcess) -> None:
        controller = broker.running()
        store = controller.message_store
        for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
            for offset, found in _messages(store, Place(broker.name, topic, queue_id, 0)):
                place = Place(broker.name, topic, queue_id, offset)
                if found is None:
                    self.unreadable.append(place)
                else:
                    self.found[place] = found
        for level, offset in controller.schedule_message_service.offset_table.items():
            self.due_up_to[broker.name, level - 1] = offset


def _messages(store: DefaultMessageStore, queue_at: Place) -> Iterator[tuple[int, Found | None]]:
    """The messages of a queue by offset; None where none can be read."""
    queue = store.find_consume_queue(queue_at.topic, queue_at.queue_id)
    assert queue is not None
    for offset in range(queue.min_offset_in_queue, queue.max_offset_in_queue):
        unit = queue.get(offset)
        message = store.look_message_by_offset(unit.pos) if unit is not None else None
        if unit is None or message is None:
            yield offset, None
            continue
        properties = message.properties
        yield (
            offset,
            Found(
                queue_at._replace(queue_offset=offset),
                message.queue_offset,
                message.msg_id,
                properties.get(MessageConst.KEYS, ""),
                message.reconsume_times,
                properties.get(MessageConst.REAL_TOPIC, ""),
                properties.get(MessageConst.TAGS, ""),
                properties,
                message.body,
                is_torn(store, unit.pos, unit.size),
            ),
        )
