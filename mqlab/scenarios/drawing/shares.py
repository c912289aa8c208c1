"""How the members of a group of a drawn world share its queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash,
    MachineRoomResolver,
)

ROOMS = ("a", "b")
"""The rooms in which there are clients."""


class _Rooms(MachineRoomResolver):
    """Every broker has a room of its own; clients stand in two of them, by turns of their addresses."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        """The last letter of a broker's name."""
        return queue.broker_name[-1]

    def consumer_deploy_in(self, client_id: str) -> str:
        """One of two rooms, by the last number of the address."""
        return ROOMS[int(client_id.partition("@")[0].rpartition(".")[2]) % len(ROOMS)]


def sharing(says: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of a consumer whose line says how its group shares; none for what RocketMQ does by itself."""
    match says.get("shares"):
        case "AVG_BY_CIRCLE":
            return {"allocate_message_queue_strategy": AllocateMessageQueueAveragelyByCircle()}
        case "CONSISTENT_HASH":
            return {"allocate_message_queue_strategy": AllocateMessageQueueConsistentHash()}
        case "MACHINE_ROOM_NEARBY":
            nearby = AllocateMachineRoomNearby(AllocateMessageQueueAveragely(), _Rooms())
            return {"allocate_message_queue_strategy": nearby}
    return {}
