"""The checks of lab 07: one's own share, what comes twice, when a member is dropped, and a whole member of a group."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from mqlab.check import Right, Wrong, lab_check
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragely

OwnShare = Callable[[str, list[MessageQueue], list[str]], list[MessageQueue]]
SILENT_MS, LOOK_MS = 120_000, 10_000
LINES = 14


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


@lab_check("07/come-twice", points=1)
def come_twice(answer: Callable[[dict[int, int], dict[int, int]], int], *, seed: int) -> Right | Wrong:
    """A member is killed: what it had done and the broker does not know comes twice, in the queues that it owned."""
    draw = random.Random(f"07/come-twice/{seed}")
    at_broker = {queue: draw.randint(1, 90) for queue in range(draw.randint(4, 12)) if draw.random() < 0.8}
    owned = draw.sample(range(12), draw.randint(1, 4))
    in_memory = {queue: at_broker.get(queue, 0) + draw.choice((0, 1, 1, 20)) for queue in sorted(owned)}
    want = sum(in_memory.values()) - sum(at_broker.get(queue, 0) for queue in in_memory)
    got = answer(dict(in_memory), dict(at_broker))
    if got != want:
        return Wrong(
            f"{want} messages come twice, and yours says {got!r}", f"in memory {in_memory}\nat broker {at_broker}"
        )
    return Right({"messages": {"done by those that were killed": sum(in_memory.values()), "come twice": want}})


@lab_check("07/dropped", points=1)
def dropped(answer: Callable[[int, int], int], *, seed: int) -> Right | Wrong:
    """A member falls silent: the first look of the broker that comes more than 120 s later drops it."""
    draw = random.Random(f"07/dropped/{seed}")
    heartbeat_ms = draw.randint(0, 300_000)
    look_ms = draw.choice((heartbeat_ms % LOOK_MS, draw.randint(0, 600_000)))
    want = look_ms % LOOK_MS
    while want - heartbeat_ms <= SILENT_MS:
        want += LOOK_MS
    got = answer(heartbeat_ms, look_ms)
    if got != want:
        return Wrong(
            f"the last heartbeat came at {heartbeat_ms} ms, a look at {look_ms} ms, the others every {LOOK_MS} ms "
            f"before and after it: the look at {want} ms drops the member, {want - heartbeat_ms} ms after the "
            f"heartbeat, and yours says {got!r}"
        )
    return Right({"ms of silence": {"allowed": SILENT_MS, "until they were dropped": want - heartbeat_ms}})


# -- a whole member -------------------------------------------------------------------------------------------------


class Member(Protocol):
    """What the world asks of a member."""

    offsets: dict[MessageQueue, int]

    def packed(self, queue: MessageQueue) -> None: ...
    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None: ...
    def every_5_s(self) -> None: ...
    def leave(self) -> None: ...


class Offsets:
    """The group's offsets at the broker: it believes the last one who speaks, as ConsumerOffsetManager does."""

    def __init__(self) -> None:
        self._known: dict[MessageQueue, int] = {}
        self.commits = 0

    def offset(self, queue: MessageQueue) -> int:
        """How far the group is with a queue; 0 if nobody has ever reported."""
        return self._known.get(queue, 0)

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """All messages before `offset` are done."""
        self.commits += 1
        self._known[queue] = offset


class _AsRocketmqDoes:
    """What RocketMQ's member does: a last report for what it gives up, the broker's word for what it takes."""

    def __init__(self, client_id: str, broker: Offsets) -> None:
        self.client_id, self.broker = client_id, broker
        self.offsets: dict[MessageQueue, int] = {}

    def packed(self, queue: MessageQueue) -> None:
        self.offsets[queue] += 1

    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None:
        share = AllocateMessageQueueAveragely().divide(self.client_id, queues, members)
        for queue in [held for held in self.offsets if held not in share]:
            self.broker.commit(queue, self.offsets.pop(queue))
        self.offsets = {queue: self.offsets.get(queue, self.broker.offset(queue)) for queue in share}

    def every_5_s(self) -> None:
        for queue, offset in self.offsets.items():
            self.broker.commit(queue, offset)

    def leave(self) -> None:
        self.every_5_s()


class _Failure(Exception):
    """A rule is broken."""


class _Group:
    """A group's life, second by second: messages come, members come and go, and each packs what it believes to own."""

    SECONDS, CATCHING_UP = 60, 200
    PER_SECOND = 3
    """How many messages of each of its queues a member packs in a second."""

    def __init__(self, answer: Callable[[str, Offsets], Member], seed: int) -> None:
        self._answer = answer
        self._draw = random.Random(f"07/member/{seed}")
        self.broker = Offsets()
        self._queues = [MessageQueue("Orders", "broker-a", number) for number in range(self._draw.randint(3, 8))]
        self._stored = dict.fromkeys(self._queues, 0)
        self._packed: Counter[tuple[MessageQueue, int]] = Counter()
        self._members: dict[str, Member] = {}
        self._hung: dict[str, tuple[int, Member]] = {}
        """Who hangs, until when; the broker has dropped it."""
        self._started = 0
        self.lines: list[str] = []

    @property
    def twice(self) -> int:
        """How many messages were packed again."""
        return sum(times - 1 for times in self._packed.values())

    def play(self) -> None:
        """The whole life; raises a _Failure where a rule is broken."""
        self._join(0)
        for second in range(self.SECONDS):
            for queue in self._queues:
                self._stored[queue] += self._draw.choice((0, 1, 2))
            if second % 7 == 6:
                self._change(second)
            self._wake(second)
            self._work(second)
        self._wake(self.SECONDS + self.CATCHING_UP)
        for second in range(self.SECONDS, self.SECONDS + self.CATCHING_UP):
            self._work(second)
        for queue, end in self._stored.items():
            for offset in range(end):
                if not self._packed[queue, offset]:
                    raise _Failure(f"message {offset} of queue {queue.queue_id} was never packed")

    # -- members come and go --

    def _change(self, second: int) -> None:
        if len(self._members) == 1:
            return self._join(second)
        who = self._draw.choice(sorted(self._members))
        what = self._draw.choice(("joins", "joins", "leaves", "is killed", "hangs"))
        if what == "joins":
            return self._join(second)
        member = self._members.pop(who)
        if what == "leaves":
            member.leave()
        if what == "hangs":
            self._hung[who] = second + self._draw.randint(5, 20), member
        return self._rebalance(f"{second:>3} s  {who} {what}")

    def _join(self, second: int) -> None:
        self._started += 1
        name = f"10.0.0.{self._started}@{1_000 + self._started}"
        self._members[name] = self._answer(name, self.broker)
        return self._rebalance(f"{second:>3} s  {name} joins")

    def _wake(self, second: int) -> None:
        for name in [name for name, (until, _) in self._hung.items() if until <= second]:
            self._members[name] = self._hung.pop(name)[1]
            self._rebalance(f"{second:>3} s  {name} has hung, and goes on")

    def _rebalance(self, why: str) -> None:
        self.lines.append(why)
        names = sorted(self._members)
        for name in self._draw.sample(names, len(names)):
            self._members[name].rebalance(list(self._queues), list(names))
        for name, member in self._members.items():
            share = AllocateMessageQueueAveragely().divide(name, self._queues, names)
            self.lines.append(f"         {name} owns {_held(member)}")
            if sorted(member.offsets) != share:
                has = _numbers(sorted(member.offsets))
                raise _Failure(f"{why.strip()}: the share of {name} is {_numbers(share)}, and it has {has}")

    # -- work --

    def _work(self, second: int) -> None:
        for name, member in list(self._members.items()):
            for queue in sorted(member.offsets):
                for _ in range(self.PER_SECOND):
                    offset = member.offsets[queue]
                    if offset >= self._stored[queue]:
                        break
                    self._packed[queue, offset] += 1
                    member.packed(queue)
                    if member.offsets.get(queue) != offset + 1:
                        told = f"{name} has packed message {offset} of queue {queue.queue_id}"
                        raise _Failure(f"{told}, and does not go on with the next one")
            if second % 5 == 4:
                member.every_5_s()


@lab_check("07/member", points=3)
def member(answer: Callable[[str, Offsets], Member], *, seed: int) -> Right | Wrong:
    """Members join, leave, are killed, hang and go on: each queue with its owner, nothing lost, little packed twice."""
    usual, yours = _Group(_AsRocketmqDoes, seed), _Group(answer, seed)
    usual.play()
    try:
        yours.play()
    except _Failure as failure:
        return Wrong(str(failure), "\n".join(yours.lines[-LINES:]))
    if yours.twice > usual.twice:
        told = f"{yours.twice} messages were packed twice, and by RocketMQ's member in the same group {usual.twice}"
        return Wrong(told, "\n".join(yours.lines[-LINES:]))
    return Right(
        {
            "messages packed twice": {"yours": yours.twice, "RocketMQ's": usual.twice},
            "reports to the broker": {"yours": yours.broker.commits, "RocketMQ's": usual.broker.commits},
        }
    )


def _held(member: Member) -> str:
    held = sorted(member.offsets.items())
    return ", ".join(f"{queue.queue_id} from {offset}" for queue, offset in held) or "nothing"


def _numbers(queues: Any) -> str:
    return ", ".join(str(queue.queue_id) for queue in queues) or "nothing"
