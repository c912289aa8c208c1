"""Names: which process the name of a broker stands for, and which reader a member of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.explore.readers import push_consumer_of, reader_name, readers_of, what_readers_are
from mqlab.lab.processes import BrokerProcess
from mqlab.protocol.route import MASTER_ID

if TYPE_CHECKING:
    from mqlab.client import DefaultMQPushConsumer
    from mqlab.explore.places import QueueKey
    from mqlab.explore.readers import Reader
    from mqlab.lab import Lab
    from mqlab.trace.bus import Row
    from mqlab.trace.record import Record


class Names:
    """Says whom the names in events stand for. Names of brokers it keeps, since they stay when processes end."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._broker_of: dict[tuple[str, int], str] = {}
        self._readers: dict[str, Reader] = {}
        self._of_group: dict[str, Reader] = {}
        self._readers_from: list[tuple[object, ...]] = []
        """What the readers were last worked out from."""
        self.at_event: Row | None = None
        """The event that is judged, while it is: nothing changes meanwhile, so the readers are worked out once."""
        self._worked_out_at: Row | None = None
        self._masters: dict[str, None] = {}
        """Processes that are no slaves."""

    def broker_of(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """The process of the broker that calls itself so; the master unless told, where messages are stored first."""
        if (broker_name, broker_id) not in self._broker_of:
            for broker in self._lab.brokers:
                if broker.controller is not None:
                    config = broker.controller.broker_config
                    self._broker_of[config.broker_name, config.broker_id] = broker.name
        return self._broker_of.get((broker_name, broker_id), broker_name)

    def queue_of(self, record: Record) -> QueueKey:
        """The queue of a group that an event of a consumer is about."""
        return record.group, self.broker_of(record.broker_name), record.topic, record.queue_id

    def original_of(self, process: str) -> str:
        """The process in whose store the messages of a broker's queues are put first: for a slave its master's."""
        if process not in self._masters:
            broker = self.broker(process)
            if broker is not None and broker.is_slave:
                return self.broker_of(str(broker.settings["broker_name"]))
            self._masters[process] = None
        return process

    def broker(self, process: str) -> BrokerProcess | None:
        """The broker of a process; None if that is no broker."""
        found = self._lab.processes.get(process)
        return found if isinstance(found, BrokerProcess) else None

    def copies_of(self, process: str) -> list[BrokerProcess]:
        """The broker of this process, and behind it its slaves."""
        brokers = [broker for broker in self._lab.brokers if self.original_of(broker.name) == process]
        return sorted(brokers, key=lambda broker: broker.name != process)

    def push_consumer(self, process: str, group: str) -> DefaultMQPushConsumer | None:
        """The push consumer of this group in this process."""
        return push_consumer_of(self._lab, process, group)

    def reader_of(self, group: str, process: str) -> str:
        """The reader for whom a member of a group consumes."""
        known = self.known(group)
        return reader_name(group, process, known is not None and known.member is not None)

    def known(self, group: str) -> Reader | None:
        """A reader of this group, as it is now; all of them have the same settings."""
        self._work_out_readers()
        return self._of_group.get(group)

    @property
    def readers(self) -> dict[str, Reader]:
        """Who is to get messages, by name. Rules ask for it at every other event, so it is kept while it is true.

        What a reader subscribes to no more it has still: it is consumed until its members rebalance.
        """
        self._work_out_readers()
        return self._readers

    def _work_out_readers(self) -> None:
        if self.at_event is not None and self.at_event is self._worked_out_at:
            return
        self._worked_out_at = self.at_event
        now_from = what_readers_are(self._lab)
        if now_from != self._readers_from:
            self._readers_from = now_from
            self._readers = {name: self._with_former_topics(now) for name, now in readers_of(self._lab).items()}
            self._of_group = {reader.group: reader for reader in self._readers.values()}

    def _with_former_topics(self, now: Reader) -> Reader:
        before = self._readers.get(now.name, now)
        return now._replace(
            topics={**before.topics, **now.topics},
            tags={**before.tags, **now.tags},
            conditions={**before.conditions, **now.conditions},
        )
