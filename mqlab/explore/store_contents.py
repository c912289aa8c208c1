"""What the brokers really hold when a world has settled: every message that can be read, and how far the delays are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.explore.places import Place
from mqlab.explore.stopped_timer import is_torn
from mqlab.protocol.message import MessageConst
from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC

if TYPE_CHECKING:
    from mqlab.lab import Lab


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
    body: bytes
    is_torn: bool
    """Did a loss of power cost the message some of its properties?"""

    @property
    def is_parked(self) -> bool:
        """Does it wait, or did it wait, for its delay level?"""
        return self.place.topic == RMQ_SYS_SCHEDULE_TOPIC


class StoreContents:
    """All messages of all brokers, read out of their stores."""

    def __init__(self, lab: Lab) -> None:
        self.found: dict[Place, Found] = {}
        self.unreadable: list[Place] = []
        self.due_up_to: dict[tuple[str, int], int] = {}
        """(broker, queue of the schedule topic) -> the offset up to which parked messages were delivered."""
        for broker in lab.brokers:
            self._read(broker.name, lab)

    def _read(self, broker: str, lab: Lab) -> None:
        controller = next(b for b in lab.brokers if b.name == broker).running()
        store = controller.message_store
        for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
            queue = store.find_consume_queue(topic, queue_id)
            assert queue is not None
            for offset in range(queue.min_offset_in_queue, queue.max_offset_in_queue):
                place = Place(broker, topic, queue_id, offset)
                unit = queue.get(offset)
                message = store.look_message_by_offset(unit.pos) if unit is not None else None
                if unit is None or message is None:
                    self.unreadable.append(place)
                    continue
                properties = message.properties
                self.found[place] = Found(
                    place,
                    message.queue_offset,
                    message.msg_id,
                    properties.get(MessageConst.KEYS, ""),
                    message.reconsume_times,
                    properties.get(MessageConst.REAL_TOPIC, ""),
                    properties.get(MessageConst.TAGS, ""),
                    message.body,
                    is_torn(store, unit.pos, unit.size),
                )
        for level, offset in controller.schedule_message_service.offset_table.items():
            self.due_up_to[broker, level - 1] = offset
