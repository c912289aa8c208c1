"""The checks of lab 07: one's own share, what comes twice, when a member is dropped, and a whole member of a group."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from mqlab.check import Cases, Right, Wrong, lab_check
from mqlab.exercises.handed_over import handed_over
from mqlab.lab import Lab
from mqlab.protocol.message import MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from mqlab.scenarios.membership import packer, spawn_orders
from mqlab.trace.events.broker import OffsetCommitted
from mqlab.trace.events.client import (
    ClientStarted,
    ClientStopped,
    ConsumeFinished,
    ConsumeStarted,
    QueueAllocated,
    QueueDropped,
)

OwnShare = Callable[[str, list[MessageQueue], list[str]], list[MessageQueue]]
TOPIC, BROKER, GROUP = "Orders", "broker-a", "packers"
SILENT_MS, LOOK_MS = 120_000, 10_000
LINES = 14


@lab_check("07/own-share", points=1)
def own_share(answer: OwnShare, *, seed: int) -> Wrong | None:
    """Each member of a group computes its share: the blocks that AllocateMessageQueueAveragely gives out."""
    draw, cases = random.Random(f"07/own-share/{seed}"), Cases()
    members = sorted(f"10.0.0.{host}@{draw.randint(100, 9_999)}" for host in draw.sample(range(2, 250), 1 + seed % 9))
    queues = [MessageQueue(TOPIC, BROKER, number) for number in range(draw.randint(1, 24))]
    for client_id in members:
        got = answer(client_id, list(queues), list(members))
        want = AllocateMessageQueueAveragely().divide(client_id, queues, members)
        if not isinstance(got, list) or any(not isinstance(queue, MessageQueue) for queue in got):
            return Wrong("own_share must return a list of queues, and yours returned something else")
        place = members.index(client_id) + 1
        told = f"{len(queues)} queues, {len(members)} members: number {place} takes {_numbers(want)}"
        world = partial(_shop, answer, len(queues), len(members), seed)
        cases.note(want, got == want or Wrong(f"{told}, and yours takes {_numbers(got)}", world=world))
    return cases.result


class _OwnShare(AllocateMessageQueueStrategy):
    """The student's function as the strategy of a member."""

    name = "OWN_SHARE"

    def __init__(self, answer: OwnShare) -> None:
        self._answer = answer

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        return self._answer(current_cid, list(mq_all), list(cid_all))


def _shop(answer: OwnShare, queues: int, members: int, seed: int) -> Lab:
    """A real group whose members share the queues in this way: who owns what, and what nobody owns."""
    lab = _opened(seed, queues)
    for name in "ABCDEFGHI"[:members]:
        lab.run(packer(lab, name, allocate_message_queue_strategy=_OwnShare(answer)).start())
    return lab.run_for(seconds=25)


def _opened(seed: int, queues: int, *, started_after_ms: int = 0) -> Lab:
    """A name server, a broker that starts so much later, and the topic Orders."""
    lab = Lab(seed)
    lab.name_server()
    lab.run_for(ms=started_after_ms)
    lab.broker(BROKER)
    lab.create_topic(TOPIC, queues)
    return lab


@lab_check("07/come-twice", points=1)
def come_twice(answer: Callable[[dict[int, int], dict[int, int]], int], *, seed: int) -> Right | Wrong:
    """A member is killed: what it had done and the broker does not know comes twice, in the queues that it owned."""
    draw = random.Random(f"07/come-twice/{seed}")
    queues = draw.randint(4, 10)
    lab = _opened(seed, queues)
    shop = lab.producer("shop")
    lab.run(shop.start())
    a, b = packer(lab, "A", packing_ms=20), packer(lab, "B", packing_ms=20)
    lab.run(a.start())
    lab.run(b.start())
    lab.run_for(seconds=4)
    for _ in range(draw.randint(1, 3)):
        spawn_orders(shop, orders=draw.randint(queues, 40), queues=queues, every_ms=draw.choice((0, 0, 30)))
        lab.run_for(ms=draw.randint(1_500, 4_000))
    store = b.impl.offset_store
    in_memory = {queue.queue_id: store.read_from_memory(queue) for queue in b.process_queues if queue.topic == TOPIC}
    reported = lab.brokers[0].running().consumer_offset_manager
    known = {queue: reported.query_offset(GROUP, TOPIC, queue) for queue in range(queues)}
    at_broker = {queue: offset for queue, offset in known.items() if offset >= 0}
    got = answer(dict(in_memory), dict(at_broker))
    lab.crash("B")
    killed_ms = lab.now_ms
    lab.run_for(seconds=3)
    again = lab.history.find("ConsumeStarted", node="A", topic=TOPIC)
    want = sum(event.ts_ms > killed_ms and event.queue_offset < in_memory.get(event.queue_id, 0) for event in again)
    if got != want:
        return Wrong(
            f"{want} messages came twice, and yours says {got!r}", f"in memory {in_memory}\nat broker {at_broker}"
        )
    return Right({"messages": {"done by those that were killed": sum(in_memory.values()), "came twice": want}})


@lab_check("07/dropped", points=1)
def dropped(answer: Callable[[int, int], int], *, seed: int) -> Right | Wrong:
    """A member falls silent: the first look of the broker that comes more than 120 s later drops it."""
    draw = random.Random(f"07/dropped/{seed}")
    lab = _opened(seed, 4, started_after_ms=draw.randint(0, LOOK_MS))
    lab.run_for(ms=draw.randint(0, LOOK_MS))
    member = packer(lab, "D")
    lab.run(member.start())
    lab.run_for(ms=draw.randint(2_000, 70_000))
    lab.freeze("D")
    dropped_ms = round(lab.run_until_event("ClientExpired", role="consumer").ts_ms)
    beats = lab.history.find("RequestReceived", node=BROKER, request_name="HEART_BEAT")
    heartbeat_ms = round([event for event in beats if event.remote.startswith(member.node.spec.ip)][-1].ts_ms)
    some_look_ms = dropped_ms % LOOK_MS + LOOK_MS * draw.randint(0, 30)
    # No real heartbeat comes in the millisecond of a look: the last case asks for it.
    looks = ((some_look_ms, dropped_ms), (heartbeat_ms % LOOK_MS, heartbeat_ms + SILENT_MS + LOOK_MS))
    for look_ms, want in looks:
        got = answer(heartbeat_ms, look_ms)
        if got != want:
            return Wrong(
                f"the last heartbeat came at {heartbeat_ms} ms, a look at {look_ms} ms, the others every {LOOK_MS} ms "
                f"before and after it: the look at {want} ms drops the member, {want - heartbeat_ms} ms after the "
                f"heartbeat, and yours says {got!r}"
            )
    return Right({"ms of silence": {"allowed": SILENT_MS, "until they were dropped": dropped_ms - heartbeat_ms}})


# -- a whole member -------------------------------------------------------------------------------------------------


class Member(Protocol):
    """What the world asks of a member."""

    offsets: dict[MessageQueue, int]

    def packed(self, queue: MessageQueue) -> None: ...
    def rebalance(self, queues: list[MessageQueue], members: list[str]) -> None: ...
    def every_5_s(self) -> None: ...
    def leave(self) -> None: ...


@handed_over
class Offsets:
    """The group's offsets at the broker: it believes the last one who speaks, as ConsumerOffsetManager does."""

    def __init__(self, tell: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._known: dict[MessageQueue, int] = {}
        self._tell = tell
        self.commits = 0

    def offset(self, queue: MessageQueue) -> int:
        """How far the group is with a queue; 0 if nobody has ever reported."""
        return self._known.get(queue, 0)

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """All messages before `offset` are done."""
        self.commits += 1
        self._known[queue] = offset
        self._tell(BROKER, OffsetCommitted(GROUP, queue.topic, queue.queue_id, offset, "a report"))


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
    """A group's life, second by second: messages come, members come and go, and each packs what it believes to own.

    It is played on the machines of a `Lab`, which keeps what happened as the events of real consumers.
    """

    SECONDS, CATCHING_UP = 60, 200
    PER_SECOND = 3
    """How many messages of each of its queues a member packs in a second."""

    def __init__(self, answer: Callable[[str, Offsets], Member], seed: int) -> None:
        self._answer = answer
        self._draw = random.Random(f"07/member/{seed}")
        self._lab = Lab(seed, history=False)
        self._machines = {BROKER: self._lab.node(BROKER)}
        self.broker = Offsets(self._tell)
        self._queues = [MessageQueue(TOPIC, BROKER, number) for number in range(self._draw.randint(3, 8))]
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
        try:
            self._live()
        finally:
            self._lab.run_for(ms=1)

    def _live(self) -> None:
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
            self._tell(who, ClientStopped(who, GROUP, "consumer"))
        if what == "is killed":
            self._lab.crash(self._machines[who].name)
        if what == "hangs":
            self._hung[who] = second + self._draw.randint(5, 20), member
            self._lab.freeze(self._machines[who].name)
        return self._rebalance(f"{second:>3} s  {who} {what}")

    def _join(self, second: int) -> None:
        self._started += 1
        name = f"10.0.0.{self._started}@{1_000 + self._started}"
        self._machines[name] = self._lab.node(f"member-{self._started}")
        self._tell(name, ClientStarted(name, GROUP, "consumer"))
        self._members[name] = self._answer(name, self.broker)
        return self._rebalance(f"{second:>3} s  {name} joins")

    def _wake(self, second: int) -> None:
        for name in [name for name, (until, _) in self._hung.items() if until <= second]:
            self._members[name] = self._hung.pop(name)[1]
            self._lab.thaw(self._machines[name].name)
            self._rebalance(f"{second:>3} s  {name} has hung, and goes on")

    def _rebalance(self, why: str) -> None:
        self.lines.append(why)
        names = sorted(self._members)
        for name in self._draw.sample(names, len(names)):
            before = set(self._members[name].offsets)
            self._members[name].rebalance(list(self._queues), list(names))
            self._tell_owned(name, before)
        for name, member in self._members.items():
            share = AllocateMessageQueueAveragely().divide(name, self._queues, names)
            self.lines.append(f"         {name} owns {_held(member)}")
            if sorted(member.offsets) != share:
                has = _numbers(sorted(member.offsets))
                raise _Failure(f"{why.strip()}: the share of {name} is {_numbers(share)}, and it has {has}")

    def _tell_owned(self, name: str, before: set[MessageQueue]) -> None:
        offsets = self._members[name].offsets
        for queue in sorted(before - set(offsets)):
            self._tell(name, QueueDropped(name, GROUP, queue.topic, queue.broker_name, queue.queue_id, "given up"))
        for queue in sorted(set(offsets) - before):
            place = (queue.topic, queue.broker_name, queue.queue_id, offsets[queue])
            self._tell(name, QueueAllocated(name, GROUP, *place))

    def _tell(self, name: str, event: tuple[Any, ...]) -> None:
        """What happens on a machine, as an event of the world (if anybody listens)."""
        node = self._machines[name]
        if node.hooks.on:
            node.call_soon(node.hooks.emit, event)

    # -- work --

    def _work(self, second: int) -> None:
        self._lab.run_for(seconds=1)
        for name, member in list(self._members.items()):
            for queue in sorted(member.offsets):
                for _ in range(self.PER_SECOND):
                    offset = member.offsets[queue]
                    if offset >= self._stored[queue]:
                        break
                    self._packed[queue, offset] += 1
                    place = (GROUP, queue.topic, queue.broker_name, queue.queue_id, offset, f"message-{offset}")
                    self._tell(name, ConsumeStarted(*place, 1, 0))
                    member.packed(queue)
                    self._tell(name, ConsumeFinished(*place, "CONSUME_SUCCESS", 0))
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
