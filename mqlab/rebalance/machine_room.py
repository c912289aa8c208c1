"""Strategies that know in which room a machine stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance.strategy import AllocateMessageQueueStrategy


class AllocateMessageQueueByMachineRoom(AllocateMessageQueueStrategy):
    """Gives out only queues of brokers in the configured rooms; brokers are named "room@broker".

    Java: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom.
    """

    name = "MACHINE_ROOM"

    def __init__(self, consumer_idcs: Iterable[str] = ()) -> None:
        self.consumer_idcs = frozenset(consumer_idcs)

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        rooms = [queue.broker_name.split("@") for queue in mq_all]
        near = [
            queue
            for queue, parts in zip(mq_all, rooms, strict=True)
            if len(parts) == 2 and parts[0] in self.consumer_idcs
        ]
        share, rest = divmod(len(near), len(cid_all))
        index = cid_all.index(current_cid)
        mine = near[index * share : (index + 1) * share]
        if index < rest:
            mine.append(near[index + share * len(cid_all)])
        return mine


class MachineRoomResolver:
    """Says in which room things stand (AllocateMachineRoomNearby.MachineRoomResolver)."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        """The room of the broker that holds a queue."""
        raise NotImplementedError(f"{type(self).__name__} must define broker_deploy_in()")

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of a member."""
        raise NotImplementedError(f"{type(self).__name__} must define consumer_deploy_in()")


class AllocateMachineRoomNearby(AllocateMessageQueueStrategy):
    """Lets each room consume its own queues; rooms without members are shared out among all.

    Within a room `inner` divides. Java: org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby.
    """

    def __init__(self, inner: AllocateMessageQueueStrategy, resolver: MachineRoomResolver) -> None:
        self.inner = inner
        self.resolver = resolver
        self.name = f"MACHINE_ROOM_NEARBY-{inner.name}"

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        queues: dict[str, list[MessageQueue]] = {}
        for queue in mq_all:
            queues.setdefault(self._room(self.resolver.broker_deploy_in(queue), f"{queue}"), []).append(queue)
        members: dict[str, list[str]] = {}
        for cid in cid_all:
            members.setdefault(self._room(self.resolver.consumer_deploy_in(cid), cid), []).append(cid)
        room = self.resolver.consumer_deploy_in(current_cid)
        mine: list[MessageQueue] = []
        if room in queues:
            mine += self.inner.divide(current_cid, queues[room], members[room])
        for other in sorted(queues):
            if other not in members:
                mine += self.inner.divide(current_cid, queues[other], cid_all)
        return mine

    @staticmethod
    def _room(room: str, whose: str) -> str:
        if not room or not room.strip():
            raise LearnerError(f"Machine room is null for {whose}", "let the resolver name a room for everything")
        return room
