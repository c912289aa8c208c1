"""Rebalance: which member of a consumer group gets which queues, as pure functions that every member computes alone."""

from mqlab.rebalance.averagely import AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle
from mqlab.rebalance.by_config import AllocateMessageQueueByConfig
from mqlab.rebalance.consistent_hash import AllocateMessageQueueConsistentHash
from mqlab.rebalance.machine_room import (
    AllocateMachineRoomNearby,
    AllocateMessageQueueByMachineRoom,
    MachineRoomResolver,
)
from mqlab.rebalance.strategy import AllocateMessageQueueStrategy, allocate_to_all, strategy_named

__all__ = [
    "AllocateMachineRoomNearby",
    "AllocateMessageQueueAveragely",
    "AllocateMessageQueueAveragelyByCircle",
    "AllocateMessageQueueByConfig",
    "AllocateMessageQueueByMachineRoom",
    "AllocateMessageQueueConsistentHash",
    "AllocateMessageQueueStrategy",
    "MachineRoomResolver",
    "allocate_to_all",
    "strategy_named",
]
