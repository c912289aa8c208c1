"""What an allocation strategy is, and how to ask it for a whole group."""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageQueue


class AllocateMessageQueueStrategy:
    """Divides queues among the members of a consumer group.

    Every member runs the strategy for itself over the same sorted lists, so it must depend on nothing else: then all
    agree without talking to each other. Subclasses write `divide`. Java:
    org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy and rebalance.AbstractAllocateMessageQueueStrategy.
    """

    name = ""
    """The name under which the strategy is known; all members of a group must use the same one."""

    def allocate(
        self,
        consumer_group: str,  # part of RocketMQ's contract; the strategies here need no name
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The queues of the member `current_cid`; nothing if it is not among the members.

        Both lists are sorted. Raises LearnerError when the id or one of the lists is empty.
        """
        if not current_cid:
            raise LearnerError("currentCID is empty", "give the client id of the member that asks")
        if not mq_all:
            raise LearnerError("mqAll is null or mqAll empty", "give the queues to divide")
        if not cid_all:
            raise LearnerError("cidAll is null or cidAll empty", "give the client ids of all members")
        if current_cid not in cid_all:
            return []
        return self.divide(current_cid, mq_all, cid_all)

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        """The queues of one member; the arguments have been checked."""
        raise NotImplementedError(f"{type(self).__name__} must define divide()")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def allocate_to_all(
    strategy: AllocateMessageQueueStrategy, consumer_group: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> dict[str, list[MessageQueue]]:
    """What each member would compute for itself: client id -> its queues. Sorts both lists as members do."""
    mq_all, cid_all = sorted(queues), sorted(members)
    return {cid: strategy.allocate(consumer_group, cid, mq_all, cid_all) for cid in cid_all}


def strategy_named(name: str) -> AllocateMessageQueueStrategy:
    """The strategy of that name, as brokers choose it: AVG, AVG_BY_CIRCLE or CONSISTENT_HASH."""
    from mqlab.rebalance.averagely import AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle
    from mqlab.rebalance.consistent_hash import AllocateMessageQueueConsistentHash

    strategies: list[type[AllocateMessageQueueStrategy]] = [
        AllocateMessageQueueAveragely,
        AllocateMessageQueueAveragelyByCircle,
        AllocateMessageQueueConsistentHash,
    ]
    for strategy in strategies:
        if strategy.name == name:
            return strategy()
    raise LearnerError(
        f"there is no allocation strategy {name!r}", "use one of " + ", ".join(known.name for known in strategies)
    )
