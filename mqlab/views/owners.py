"""Who owns which queue, as the consumers themselves believe."""

from __future__ import annotations

from mqlab.trace.record import Record
from mqlab.trace.state import State

Queue = tuple[str, int]
"""(broker name, queue id)"""
Read = tuple[str, str]
"""(group, topic)"""


class Owners(State):
    """The queues that each member of a group pulls.

    A queue is owned from the moment at which a consumer takes it into its table until it gives it up or its process
    ends. One that hangs has given nothing up.
    """

    def begin(self) -> None:
        """Nobody owns anything."""
        self.owned: dict[Read, dict[str, dict[Queue, None]]] = {}
        """(group, topic) -> member -> its queues."""
        self.known: dict[Read, dict[Queue, None]] = {}
        """(group, topic) -> all queues that somebody has owned."""

    def on_queue_allocated(self, record: Record) -> None:
        self._queues(record)[queue_of(record)] = None
        self.known.setdefault(read_of(record), {})[queue_of(record)] = None

    def on_queue_dropped(self, record: Record) -> None:
        self._queues(record).pop(queue_of(record), None)

    def on_rebalance_done(self, record: Record) -> None:
        self._queues(record)

    def on_client_stopped(self, record: Record) -> None:
        self._gone(record.node, record.group)

    def on_process_ended(self, record: Record) -> None:
        self._gone(record.target)

    def _gone(self, node: str, group: str = "") -> None:
        for read, members in self.owned.items():
            if group in ("", read[0]):
                members.pop(node, None)

    def _queues(self, record: Record) -> dict[Queue, None]:
        return self.owned.setdefault(read_of(record), {}).setdefault(record.node, {})

    def of(self, read: Read) -> dict[Queue, list[str]]:
        """Queue -> its owners, for one group and topic."""
        members = self.owned[read].items()
        return {queue: [name for name, has in members if queue in has] for queue in sorted(self.known[read])}


def read_of(record: Record) -> Read:
    """The group and topic that a consumer's event is about."""
    return record.group, record.topic


def queue_of(record: Record) -> Queue:
    """The queue that it is about."""
    return record.broker_name, record.queue_id
