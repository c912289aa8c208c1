"""Who of a group should have which queue: RocketMQ's strategies of sharing read a second time, to judge by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Any

from mqlab.protocol.message import MessageQueue

Queues = Sequence[MessageQueue]


def share_of(strategy: Any, me: str, members: Sequence[str], queues: Queues) -> list[MessageQueue] | None:
    """What a member has when all have shared `queues`, in order; None of a strategy that is not one of RocketMQ's.

    `strategy` is the AllocateMessageQueueStrategy of the member, `me` and `members` are client ids.
    """
    members, queues = sorted(members), sorted(queues)
    if hasattr(strategy, "resolver"):
        return _nearby(strategy, me, members, queues)
    divide = _DIVIDED.get(strategy.name)
    return None if divide is None else sorted(divide(members.index(me), members, queues))


def _averagely(index: int, members: Sequence[str], queues: Queues) -> list[MessageQueue]:
    """One stretch each, the longer ones first."""
    return [queue for place, queue in enumerate(queues) if _owner(place, len(members), len(queues)) == index]


def _owner(place: int, members: int, queues: int) -> int:
    least, longer = divmod(queues, members)
    in_longer = longer * (least + 1)
    return place // (least + 1) if place < in_longer else longer + (place - in_longer) // least


def _by_circle(index: int, members: Sequence[str], queues: Queues) -> list[MessageQueue]:
    """By turns."""
    return [queue for place, queue in enumerate(queues) if place % len(members) == index]


def _by_ring(index: int, members: Sequence[str], queues: Queues) -> list[MessageQueue]:
    """Each to whoever is next on a ring on which every member has ten places (AllocateMessageQueueConsistentHash)."""
    ring = [(_place(f"{member}-{n}"), member) for member in members for n in range(10)]

    def owner(queue: MessageQueue) -> str:
        at = _place(str(queue))
        return min(ring, key=lambda place: (place[0] < at, place[0]))[1]

    return [queue for queue in queues if owner(queue) == members[index]]


def _place(text: str) -> int:
    return int(md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)


def _nearby(strategy: Any, me: str, members: Sequence[str], queues: Queues) -> list[MessageQueue] | None:
    """Those of the same room among the members there, and those of rooms without members among all."""
    rooms = {member: strategy.resolver.consumer_deploy_in(member) for member in members}
    mine: list[MessageQueue] = []
    for room in sorted({strategy.resolver.broker_deploy_in(queue) for queue in queues}):
        there = [member for member in members if rooms[member] == room] or members
        if me in there:
            here = [queue for queue in queues if strategy.resolver.broker_deploy_in(queue) == room]
            share = share_of(strategy.inner, me, there, here)
            if share is None:
                return None
            mine += share
    return sorted(mine)


_DIVIDED: dict[str, Callable[[int, Sequence[str], Queues], list[MessageQueue]]] = {
    "AVG": _averagely, "AVG_BY_CIRCLE": _by_circle, "CONSISTENT_HASH": _by_ring,
}  # fmt: skip
