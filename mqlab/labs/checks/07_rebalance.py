"""The check of lab 07: what a member takes when it computes its own share, as RocketMQ's default strategy does."""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlab.check import Wrong, lab_check
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragely

OwnShare = Callable[[str, list[MessageQueue], list[str]], list[MessageQueue]]


@lab_check("07/own-share", points=1)
def own_share(answer: OwnShare, *, seed: int) -> Wrong | None:
    """Each member of a group computes its share: the blocks that AllocateMessageQueueAveragely gives out."""
    draw = random.Random(f"07/own-share/{seed}")
    members = sorted(f"10.0.0.{host}@{draw.randint(100, 9_999)}" for host in draw.sample(range(2, 250), 1 + seed % 9))
    queues = [MessageQueue("Orders", "broker-a", number) for number in range(draw.randint(1, 24))]
    for client_id in members:
        got = answer(client_id, list(queues), list(members))
        want = AllocateMessageQueueAveragely().divide(client_id, queues, members)
        if not isinstance(got, list) or any(not isinstance(queue, MessageQueue) for queue in got):
            return Wrong("own_share must return a list of queues, and yours returned something else")
        if got != want:
            place = members.index(client_id) + 1
            return Wrong(
                f"{len(queues)} queues, {len(members)} members: number {place} takes {_numbers(want)}, "
                f"and yours takes {_numbers(got)}"
            )
    return None


def _numbers(queues: list[MessageQueue]) -> str:
    return ", ".join(str(queue.queue_id) for queue in queues) or "nothing"
