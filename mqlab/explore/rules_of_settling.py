"""The rule of settling: when nothing goes wrong any more, everything is consumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ..protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, is_dlq_topic, retry_topic
from .readers import Reader, progress, readers_of
from .rule import Rule

NO_MEMBER = "a group without members"


class EverythingSettles(Rule):
    """When the faults are over, groups with a running member consume all that is there, and nothing stays parked."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {
        NO_MEMBER: (
            "A group in which nobody runs any more leaves what it has not consumed where it is; so does a lite pull "
            "consumer that was started again without the application that polls it."
        )
    }

    def at_end(self) -> None:
        """Say what is left."""
        if len(self.case.readers) > len(readers_of(self.case.lab, running=True)):
            self.excuse(NO_MEMBER)
        for text in self.left_over():
            self.found(None, f"in the end, with nothing going wrong any more, {text}")

    def has_settled(self, quiet_us: int) -> bool:
        """Is all consumed, and was nothing stored for so long?"""
        case = self.case
        if case.lab.world.now_us - case.ledger.last_stored_us < quiet_us or not case.brokers_are_up:
            return False
        return next(self.left_over(), None) is None

    def left_over(self) -> Iterator[str]:
        """What waits, a sentence for each queue."""
        lab = self.case.lab
        readers = readers_of(lab, running=True)
        for broker in lab.brokers:
            if not broker.is_up():
                yield f"{broker.name} is not up"
                continue
            store = broker.store
            due = broker.running().schedule_message_service.offset_table
            for topic, queue_id in sorted(store.consume_queue_store.consume_queue_table):
                end = store.get_max_offset_in_queue(topic, queue_id)
                if topic == RMQ_SYS_SCHEDULE_TOPIC:
                    if due.get(queue_id + 1, 0) < end:
                        yield f"{broker.name} still has messages parked for delay level {queue_id + 1}"
                elif not is_dlq_topic(topic):
                    yield from self._behind(readers, broker.name, topic, queue_id, end)

    def _behind(
        self, readers: dict[str, Reader], broker: str, topic: str, queue_id: int, end: int
    ) -> Iterator[str]:
        for reader in readers.values():
            if topic in reader.topics or topic == retry_topic(reader.group):
                at = progress(self.case.lab, reader, broker, topic, queue_id)
                if at < end:
                    yield f"{reader.name} stands at offset {at} of {end} in {broker} {topic} queue {queue_id}"
