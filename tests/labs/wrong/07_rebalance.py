"""Plausible wrong solutions of lab 07_rebalance, each of which its check catches."""

from __future__ import annotations

from typing import Any

from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragely


def deals_like_cards(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """One queue to each in turn: even, and another strategy (AVG_BY_CIRCLE)."""
    return queues[members.index(client_id) :: len(members)]


def forgets_the_rest(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded down: what does not divide evenly belongs to nobody."""
    share = len(queues) // len(members)
    start = members.index(client_id) * share
    return queues[start : start + share]


def gives_the_rest_to_the_last(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded down, and all that is left over goes to the last member."""
    share = len(queues) // len(members)
    place = members.index(client_id)
    return queues[place * share :] if place == len(members) - 1 else queues[place * share : (place + 1) * share]


def rounds_up(client_id: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
    """Blocks of the size rounded up: the last members get too little, or nothing."""
    share = -(-len(queues) // len(members))
    start = members.index(client_id) * share
    return queues[start : start + share]


def one_for_each_queue(in_memory: dict[int, int], at_broker: dict[int, int]) -> int:
    """As it was with a busy topic: one message for each queue that moves."""
    return len(in_memory)


def of_all_queues(in_memory: dict[int, int], at_broker: dict[int, int]) -> int:
    """Walks through what the broker knows: the member's own new queues are missing, those of others are in."""
    return sum(in_memory.get(queue, known) - known for queue, known in at_broker.items())


def all_that_it_did(in_memory: dict[int, int], at_broker: dict[int, int]) -> int:
    """All of it, as if the broker had known nothing."""
    return sum(in_memory.values())


def after_120_seconds(heartbeat_ms: int, look_ms: int) -> int:
    """As if the broker looked all the time."""
    return heartbeat_ms + 120_000


def at_120_seconds_exactly(heartbeat_ms: int, look_ms: int) -> int:
    """120 s of silence are enough here; RocketMQ wants more than 120 s."""
    return heartbeat_ms + 120_000 + (look_ms - heartbeat_ms) % 10_000


def from_the_look_on(heartbeat_ms: int, look_ms: int) -> int:
    """Counts the 120 s from the look instead of from the heartbeat."""
    return look_ms + 120_000


class _Member:
    """What the wrong members share: it does everything right."""

    def __init__(self, client_id: str, broker: Any) -> None:
        self.client_id, self.broker = client_id, broker
        self.offsets: dict[MessageQueue, int] = {}

    def packed(self, queue: MessageQueue) -> None:
        self.offsets[queue] += 1

    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None:
        mine = AllocateMessageQueueAveragely().divide(self.client_id, queues, members)
        for queue in list(self.offsets):
            if queue not in mine:
                self.give_up(queue)
        for queue in mine:
            if queue not in self.offsets:
                self.offsets[queue] = self.broker.offset(queue)

    def give_up(self, queue: MessageQueue) -> None:
        self.broker.commit(queue, self.offsets.pop(queue))

    def every_5_s(self) -> None:
        for queue, offset in self.offsets.items():
            self.broker.commit(queue, offset)

    def leave(self) -> None:
        self.every_5_s()


class KeepsWhatItHas(_Member):
    """Takes what is new, and never gives a queue up."""

    def give_up(self, queue: MessageQueue) -> None:
        pass


class GivesUpInSilence(_Member):
    """Gives a queue up without a last report: the next owner begins too early."""

    def give_up(self, queue: MessageQueue) -> None:
        del self.offsets[queue]


class AsksForEverything(_Member):
    """Asks for the offsets of all its queues at each rebalance: work since the last report is done again."""

    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None:
        super().rebalance(queues, members)
        self.offsets = {queue: self.broker.offset(queue) for queue in self.offsets}


class RemembersOldOffsets(_Member):
    """Goes on from its own old number when a queue comes back, as if nobody had worked meanwhile."""

    def __init__(self, client_id: str, broker: Any) -> None:
        super().__init__(client_id, broker)
        self.old: dict[MessageQueue, int] = {}

    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None:
        before = set(self.offsets)
        super().rebalance(queues, members)
        for queue in set(self.offsets) - before:
            self.offsets[queue] = self.old.get(queue, self.offsets[queue])

    def give_up(self, queue: MessageQueue) -> None:
        self.old[queue] = self.offsets[queue]
        super().give_up(queue)


class LeavesInSilence(_Member):
    """Reports nothing when it leaves."""

    def leave(self) -> None:
        pass


class NeverReports(_Member):
    """Has no timer: when it is killed, all that it did since it took its queues is done again."""

    def every_5_s(self) -> None:
        pass


class ReportsOneTooMany(_Member):
    """Takes the offset for the last message that is done: one message of each queue is lost."""

    def give_up(self, queue: MessageQueue) -> None:
        self.broker.commit(queue, self.offsets.pop(queue) + 1)


WRONG = {
    "07/own-share": [deals_like_cards, forgets_the_rest, gives_the_rest_to_the_last, rounds_up],
    "07/come-twice": [one_for_each_queue, of_all_queues, all_that_it_did],
    "07/dropped": [after_120_seconds, at_120_seconds_exactly, from_the_look_on],
    "07/member": [
        KeepsWhatItHas,
        GivesUpInSilence,
        AsksForEverything,
        RemembersOldOffsets,
        LeavesInSilence,
        NeverReports,
        ReportsOneTooMany,
    ],
}
