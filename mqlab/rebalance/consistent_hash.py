"""Consistent hashing: when a member leaves, only its own queues move."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from mqlab.errors import LearnerError
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance.strategy import AllocateMessageQueueStrategy


def md5_hash(key: str) -> int:
    """The first four bytes of the key's MD5, as an unsigned number: a place on the ring."""
    from hashlib import md5

    return int.from_bytes(md5(key.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")


class AllocateMessageQueueConsistentHash(AllocateMessageQueueStrategy):
    """Puts members and queues on a ring of hashes; a queue belongs to the next member on the ring.

    Each member has `virtual_node_count` places on the ring, so that shares become more even. Java:
    org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash and
    org.apache.rocketmq.common.consistenthash.ConsistentHashRouter.
    """

    name = "CONSISTENT_HASH"

    def __init__(self, virtual_node_count: int = 10, hash_function: Callable[[str], int] = md5_hash) -> None:
        if virtual_node_count < 0:
            raise LearnerError(f"illegal virtualNodeCnt :{virtual_node_count}", "give 0 or more")
        self.virtual_node_count = virtual_node_count
        self.hash_function = hash_function

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        places: dict[int, str] = {}
        for cid in cid_all:
            for replica in range(self.virtual_node_count):
                places[self.hash_function(f"{cid}-{replica}")] = cid
        if not places:
            return []
        ring = sorted(places)
        return [
            queue
            for queue in mq_all
            if places[ring[bisect_left(ring, self.hash_function(str(queue))) % len(ring)]] == current_cid
        ]
