"""Rebalance: which member of a consumer group gets which queues, as pure functions that every member computes alone."""

from .averagely import AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle
from .by_config import AllocateMessageQueueByConfig
from .consistent_hash import AllocateMessageQueueConsistentHash
from .machine_room import AllocateMachineRoomNearby, AllocateMessageQueueByMachineRoom, MachineRoomResolver
from .strategy import AllocateMessageQueueStrategy, allocate_to_all, strategy_named

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
