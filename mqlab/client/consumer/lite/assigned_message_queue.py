"""The queues that a lite pull consumer has at present, and how far it is with each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from mqlab.client.consumer.process_queue import ProcessQueue
from mqlab.protocol.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.sim import Node

UNKNOWN = -1


class MessageQueueState:
    """What a lite pull consumer knows of one queue; an offset of -1 is none.

    `pull_offset` is where the next pull begins, `consume_offset` is behind what the last `poll` handed out,
    `seek_offset` is where the application wants to go on and no pull has begun yet.
    """

    __slots__ = ("consume_offset", "paused", "process_queue", "pull_offset", "seek_offset")

    def __init__(self, process_queue: ProcessQueue) -> None:
        self.process_queue = process_queue
        self.paused = False
        self.pull_offset = UNKNOWN
        self.consume_offset = UNKNOWN
        self.seek_offset = UNKNOWN

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<pull {self.pull_offset}, consume {self.consume_offset}, seek {self.seek_offset}{paused}>"


class AssignedMessageQueue:
    """The state of every queue that was assigned, by hand or by rebalance.

    Java: org.apache.rocketmq.client.impl.consumer.AssignedMessageQueue.
    """

    def __init__(self, node: Node, held: Callable[[MessageQueue], ProcessQueue | None]) -> None:
        self._node = node
        self._held = held
        self._states: dict[MessageQueue, MessageQueueState] = {}

    def state(self, queue: MessageQueue) -> MessageQueueState | None:
        """What is known of a queue, None if it is not assigned."""
        return self._states.get(queue)

    def queues(self) -> list[MessageQueue]:
        """The assigned queues, sorted."""
        return sorted(self._states)

    def is_paused(self, queue: MessageQueue) -> bool:
        """Whether a queue is not to be pulled; one that is not assigned counts as paused."""
        state = self._states.get(queue)
        return state is None or state.paused

    def set_paused(self, queues: Iterable[MessageQueue], paused: bool) -> list[MessageQueue]:
        """Pause or resume queues; those whose state changed. Queues that are not assigned are passed over."""
        changed = []
        for queue in queues:
            state = self._states.get(queue)
            if state is not None and state.paused is not paused:
                state.paused = paused
                changed.append(queue)
        return changed

    def process_queue(self, queue: MessageQueue) -> ProcessQueue | None:
        """What is cached of a queue, None if it is not assigned."""
        state = self._states.get(queue)
        return state.process_queue if state is not None else None

    def seek_offset(self, queue: MessageQueue) -> int:
        """Where the application wants to go on, or -1."""
        state = self._states.get(queue)
        return state.seek_offset if state is not None else UNKNOWN

    def consume_offset(self, queue: MessageQueue) -> int:
        """The offset behind what the last poll handed out, or -1."""
        state = self._states.get(queue)
        return state.consume_offset if state is not None else UNKNOWN

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Note what was handed out."""
        state = self._states.get(queue)
        if state is not None:
            state.consume_offset = offset

    def update_pull_offset(self, queue: MessageQueue, offset: int, process_queue: ProcessQueue) -> None:
        """Note where the next pull begins, unless the queue was taken anew meanwhile or is to be sought in."""
        state = self._states.get(queue)
        if state is not None and state.process_queue is process_queue and state.seek_offset == UNKNOWN:
            state.pull_offset = offset

    def update_of_topic(self, topic: str, assigned: Collection[MessageQueue]) -> None:
        """Let these be the queues of one topic: the others of it are dropped, new ones begin."""
        self._drop([queue for queue in self._states if queue.topic == topic and queue not in assigned])
        self._add(assigned)

    def update(self, assigned: Collection[MessageQueue]) -> tuple[list[MessageQueue], list[MessageQueue]]:
        """Let these be all queues: the others are dropped, new ones begin. Returns the new and the dropped ones."""
        dropped = [queue for queue in self._states if queue not in assigned]
        self._drop(dropped)
        return self._add(assigned), dropped

    def remove_topic(self, topic: str) -> None:
        """Forget the queues of a topic; what is cached of them is dropped by the next rebalance."""
        for queue in [queue for queue in self._states if queue.topic == topic]:
            del self._states[queue]

    def _drop(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            self._states.pop(queue).process_queue.dropped = True

    def _add(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        new = [queue for queue in dict.fromkeys(queues) if queue not in self._states]
        for queue in new:
            self._states[queue] = MessageQueueState(self._held(queue) or ProcessQueue(self._node))
        return new

    def __repr__(self) -> str:
        return f"<AssignedMessageQueue: {len(self._states)} queues>"
