"""Plausible wrong solutions of lab 08_where_to_begin, each of which its check catches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import (
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash,
    AllocateMessageQueueStrategy,
)

Queues = Sequence[MessageQueue]
Ids = Sequence[str]


def _score(client_id: str, queue: MessageQueue) -> str:
    return hashlib.md5(f"{client_id} {queue}".encode(), usedforsecurity=False).hexdigest()


class AsRocketmqDoes(AllocateMessageQueueAveragely):
    """The default: the blocks of all members behind the one that left are shifted."""


class DealsLikeCards(AllocateMessageQueueAveragelyByCircle):
    """One queue after the other in turn: nearly every queue moves when the number of members changes."""


class ConsistentHashAlone(AllocateMessageQueueConsistentHash):
    """Moves nothing but what must, and forgets that the shares have to be even."""


class HighestScoreWins(AllocateMessageQueueStrategy):
    """Each queue goes to the member with the highest score, however much that one has already."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        return [q for q in mq_all if max(cid_all, key=lambda cid: _score(cid, q)) == current_cid]


class RoundsUp(AllocateMessageQueueStrategy):
    """A limit of the share rounded up, for everybody: some come to the limit, and the last one gets little."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        limit = -(-len(mq_all) // len(cid_all))
        load = dict.fromkeys(cid_all, 0)
        mine = []
        for queue in mq_all:
            winner = max((cid for cid in cid_all if load[cid] < limit), key=lambda cid: _score(cid, queue))
            load[winner] += 1
            if winner == current_cid:
                mine.append(queue)
        return mine


class RoundsDown(AllocateMessageQueueStrategy):
    """A limit of the share rounded down: what does not divide evenly belongs to nobody."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        limit = len(mq_all) // len(cid_all)
        return sorted(mq_all, key=lambda queue: _score(current_cid, queue))[:limit]


class SaltedHash(AllocateMessageQueueStrategy):
    """Scores by Python's own `hash` of a text, which is another one in every process."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        share, rest = divmod(len(mq_all), len(cid_all))
        load = dict.fromkeys(cid_all, 0)
        mine = []
        for queue in mq_all:
            room = [cid for cid in cid_all if load[cid] < share or (load[cid] == share and rest)]
            winner = max(room, key=lambda cid: hash(f"{cid} {queue}"))
            rest -= load[winner] == share
            load[winner] += 1
            if winner == current_cid:
                mine.append(queue)
        return mine


class Remembers(AllocateMessageQueueStrategy):
    """Keeps what it had, and fills up with the rest: but the others do not know what it had."""

    def __init__(self) -> None:
        self.had: list[MessageQueue] = []

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        fair = AllocateMessageQueueAveragely().divide(current_cid, mq_all, cid_all)
        kept = [queue for queue in self.had if queue in mq_all]
        new = [queue for queue in fair if queue not in kept]
        self.had = (kept + new)[: len(fair)]
        return self.had


class BlocksInHashedOrder(AllocateMessageQueueStrategy):
    """Puts the members in an order that has nothing to do with their names: the blocks shift all the same."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        order = sorted(cid_all, key=lambda cid: hashlib.md5(cid.encode(), usedforsecurity=False).digest())
        return AllocateMessageQueueAveragely().divide(current_cid, mq_all, order)


def _sticky(had: dict[MessageQueue, str], queues: Queues, ids: Ids) -> dict[MessageQueue, str]:
    """Keep what each had as far as its share allows, and give the rest to those that have room."""
    share, rest = divmod(len(queues), len(ids))
    load = dict.fromkeys(ids, 0)
    owner = {}
    for queue in sorted(queues, key=lambda queue: queue not in had):
        open_ids = [cid for cid in ids if load[cid] < share] or [cid for cid in ids if load[cid] == share]
        first = had.get(queue)
        full = first not in load or load[first] > share or (load[first] == share and rest == 0)
        chosen = min(open_ids, key=lambda cid: load[cid]) if full or first is None else first
        rest -= load[chosen] == share
        load[chosen] += 1
        owner[queue] = chosen
    return owner


class TalksThroughItsClass(AllocateMessageQueueStrategy):
    """Keeps the owners in an attribute of the class, which all members share in one process, and in no other."""

    owners: ClassVar[dict[MessageQueue, str]] = {}

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        type(self).owners = _sticky(type(self).owners, mq_all, cid_all)
        return [queue for queue in mq_all if self.owners[queue] == current_cid]


_OWNERS: dict[MessageQueue, str] = {}


class TalksThroughItsModule(AllocateMessageQueueStrategy):
    """The same with a dictionary of the module."""

    def divide(self, current_cid: str, mq_all: Queues, cid_all: Ids) -> list[MessageQueue]:
        found = _sticky(_OWNERS, mq_all, cid_all)
        _OWNERS.clear()
        _OWNERS.update(found)
        return [queue for queue in mq_all if found[queue] == current_cid]


class TalksThroughADefault(AllocateMessageQueueStrategy):
    """The same with a default argument."""

    def divide(
        self,
        current_cid: str,
        mq_all: Queues,
        cid_all: Ids,
        had: dict[MessageQueue, str] = {},  # noqa: B006
    ) -> list[MessageQueue]:
        found = _sticky(had, mq_all, cid_all)
        had.clear()
        had.update(found)
        return [queue for queue in mq_all if found[queue] == current_cid]


def as_the_setting_says(known: int | None, where: str, oldest: int, end: int) -> int:
    """Believes the setting, also on a young queue."""
    if known is not None:
        return known
    return oldest if where == "FIRST" else end


def zero_is_nothing(known: int | None, where: str, oldest: int, end: int) -> int:
    """Takes an offset of 0 for none."""
    if known:
        return known
    return oldest if where == "FIRST" or oldest == 0 else end


def the_setting_counts_each_time(known: int | None, where: str, oldest: int, end: int) -> int:
    """Forgets that the broker may know the group."""
    return oldest if where == "FIRST" or oldest == 0 else end


def of_those_that_left(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    """Counts the queues of those that are gone, and no others."""
    return sum(len(mine) for who, mine in before.items() if who not in after)


def sizes_alone(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    """Compares how many queues each has, not which."""
    return sum(max(0, len(mine) - len(before.get(who, []))) for who, mine in after.items())


def both_ends(before: dict[str, list[int]], after: dict[str, list[int]]) -> int:
    """Counts a queue once where it was lost and once where it was got."""
    return sum(len(set(before.get(who, [])) ^ set(after.get(who, []))) for who in {*before, *after})


def every_failure_comes_again(model: str, messages: int, members: int, failing: int) -> int:
    """As if a message that failed came again in broadcasting, too."""
    return messages * members + failing * members if model == "BROADCASTING" else messages + failing


def everybody_shares(model: str, messages: int, members: int, failing: int) -> int:
    """One call for each message, whatever the model."""
    return messages + failing


def a_retry_for_each_member(model: str, messages: int, members: int, failing: int) -> int:
    """As if a message that failed came to every member of a group that shares."""
    return messages * members if model == "BROADCASTING" else messages + failing * members


WRONG = {
    "08/begin-at": [as_the_setting_says, zero_is_nothing, the_setting_counts_each_time],
    "08/calls": [every_failure_comes_again, everybody_shares, a_retry_for_each_member],
    "08/moved": [of_those_that_left, sizes_alone, both_ends],
    "08/fewest-moves": [
        AsRocketmqDoes,
        DealsLikeCards,
        ConsistentHashAlone,
        HighestScoreWins,
        RoundsUp,
        RoundsDown,
        SaltedHash,
        Remembers,
        BlocksInHashedOrder,
        TalksThroughItsClass,
        TalksThroughItsModule,
        TalksThroughADefault,
    ]
}
