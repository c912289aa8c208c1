"""The checks of lab 08: where a group begins, who is called, what has moved, and a strategy that moves few queues."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from mqlab.check import Cases, Right, Wrong, lab_check
from mqlab.check.own_process import in_own_process
from mqlab.client import ConsumeConcurrentlyStatus, MessageModel
from mqlab.lab import Lab
from mqlab.protocol.message import Message, MessageExt, MessageQueue
from mqlab.rebalance import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from mqlab.scenarios.membership import packer

GROUP = "packers"
ALLOWED = 0.85
"""The part of what AllocateMessageQueueAveragely moves that a good strategy may move."""

QUEUES = 12
"""How many queues move about in 08/moved."""
BeginAt = Callable[[int | None, str, int, int], int]

Shares = dict[str, list[MessageQueue]]
"""What each member takes: client id -> queues."""
StrategyClass = type[AllocateMessageQueueStrategy]


class _Failure(Exception):
    """A rule is broken."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(wrong.explanation)
        self.wrong = wrong


class _Member(NamedTuple):
    """A process of the group: its client id, and a strategy object of a class that is its own."""

    client_id: str
    strategy: AllocateMessageQueueStrategy


class _Round(NamedTuple):
    """A moment in the life of a group: who is there, and what each takes."""

    what: str
    shares: Shares


@lab_check("08/begin-at", points=1)
def begin_at(answer: BeginAt, *, seed: int) -> Right | Wrong:
    """A group begins with a queue: known or new, young or old, from the first or from the last message."""
    draw, cases = random.Random(f"08/begin-at/{seed}"), Cases()
    in_queues, for_groups = 0, 0
    young, old = 0, draw.randint(1, 500)
    for oldest, where in draw.sample([(young, "FIRST"), (young, "LAST"), (old, "FIRST"), (old, "LAST")], 4):
        end = oldest + draw.randint(1, 300)
        known = draw.choice((None, None, 0, draw.randint(oldest, end)))
        # What the broker knows comes first, then its answer for a young queue, and the setting last.
        by_setting = oldest if where == "FIRST" or oldest == 0 else end
        want = by_setting if known is None else known
        got = answer(known, where, oldest, end)
        group = "a new group" if known is None else f"a group with the offset {known} at the broker"
        told = f"{group}, {where}, and a queue with messages {oldest} to {end - 1}: it begins at {want}"
        cases.note(want, got == want or Wrong(f"{told}, and yours says {got!r}"))
        in_queues, for_groups = in_queues + end - oldest, for_groups + end - max(want, oldest)
    return cases.result or Right({"messages": {"in the queues": in_queues, "for the groups": for_groups}})


@lab_check("08/calls", points=1)
def calls(answer: Callable[[str, int, int, int], int], *, seed: int) -> Wrong | None:
    """Members share or broadcast, some messages fail once: the listeners are called as often as was foretold."""
    draw = random.Random(f"08/calls/{seed}")
    model, members, messages = draw.choice(("CLUSTERING", "BROADCASTING")), draw.randint(2, 4), draw.randint(3, 12)
    failing = draw.sample(range(messages), draw.randint(0, messages // 2))
    foretold = answer(model, messages, members, len(failing))
    lab = Lab(seed)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("Prices", 4)
    shop = lab.producer("shop")
    lab.run(shop.start())

    def listener(shown: Sequence[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        fails = int(shown[0].body) in failing and shown[0].reconsume_times == 0
        return ConsumeConcurrentlyStatus.RECONSUME_LATER if fails else ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    for _ in range(members):
        member = lab.consumer("windows", message_model=MessageModel(model))
        member.subscribe("Prices", "*")
        member.register_message_listener(listener)
        lab.run(member.start())
    lab.run_for(seconds=25)  # a new group gets its retry queue with the second rebalance
    for number in range(messages):
        lab.run(shop.send(Message("Prices", b"%d" % number)))
    lab.run_for(seconds=15)
    was = sum(1 for _ in lab.history.find("ConsumeStarted"))
    if foretold == was:
        return None
    told = f"calls({model!r}, messages={messages}, members={members}, failing={len(failing)})"
    return Wrong(f"{told} is {foretold!r}, and the listeners were called {was} times")


@lab_check("08/moved", points=1)
def moved(answer: Callable[[dict[str, list[int]], dict[str, list[int]]], int], *, seed: int) -> Right | Wrong:
    """Members leave and join: how many queues have another owner than before?"""
    draw = random.Random(f"08/moved/{seed}")
    before = _deal(draw, draw.sample("ABCDEF", draw.randint(2, 5)))
    after = _deal(draw, draw.sample("ABCDEF", draw.randint(2, 5)))
    want = sum(1 for who, mine in after.items() for queue in mine if queue not in before.get(who, ()))
    got = answer({who: list(mine) for who, mine in before.items()}, {who: list(mine) for who, mine in after.items()})
    if got != want:
        return Wrong(f"{want} queues have moved, and yours says {got!r}", f"before {before}\nafter  {after}")
    return Right({"queues": {"in all topics": QUEUES, "have moved": want}})


def _deal(draw: random.Random, members: list[str]) -> dict[str, list[int]]:
    """Each queue to a member by chance; nobody goes without an entry."""
    owner = [draw.choice(members) for _ in range(QUEUES)]
    return {who: [queue for queue, owned in enumerate(owner) if owned == who] for who in members}


@lab_check("08/fewest-moves", points=3)
def fewest_moves(answer: StrategyClass, *, seed: int) -> Right | Wrong:
    """Each member of two groups leaves once and comes back: all queues owned, once, evenly, and few of them moved."""
    if not (inspect.isclass(answer) and issubclass(answer, AllocateMessageQueueStrategy)):
        return Wrong(f"{answer!r} is no class of a strategy: give the class, check('08/fewest-moves', FewestMoves)")
    draw = random.Random(f"08/fewest-moves/{seed}")
    moved = averagely = least = 0
    worst: tuple[int, _Round, _Round] | None = None
    try:
        _play(answer, _draw_members(draw), _small_topic(draw))
        for _ in range(2):
            members, queues = _draw_members(draw), _draw_queues(draw)
            for before, after in _play(answer, members, queues):
                moves = _moves(before.shares, after.shares)
                moved += moves
                if worst is None or moves > worst[0]:
                    worst = moves, before, after
            averagely += sum(
                _moves(before.shares, after.shares)
                for before, after in _play(AllocateMessageQueueAveragely, members, queues)
            )
            least += len(queues)
    except _Failure as failure:
        return replace(failure.wrong, world=partial(_shop, answer, seed))
    if worst is None or moved <= ALLOWED * averagely:
        counts = {"yours": moved, "AllocateMessageQueueAveragely": averagely, "had to": least}
        return Right({"queues moved when members left": counts})
    return Wrong(
        f"{moved} queues moved while each member left once. {least} had to, since they belonged to the one that left; "
        f"AllocateMessageQueueAveragely moves {averagely}, and more than {ALLOWED:.0%} of that is too many. "
        f"The worst departure moved {worst[0]}",
        f"{_told(worst[1])}\n{_told(worst[2], worst[1].shares)}",
        world=partial(_shop, answer, seed),
    )


def _shop(answer: StrategyClass, seed: int) -> Lab:
    """A real group whose members have this strategy: one after the other joins, and then one leaves."""
    draw = random.Random(f"08/fewest-moves/{seed}")
    lab = Lab(seed)
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("Orders", draw.randint(16, 24))
    members = [
        packer(lab, name, allocate_message_queue_strategy=in_own_process(answer, salt)())
        for salt, name in enumerate("ABCDEFGH"[: draw.randint(5, 8)], 1)
    ]
    for member in members:
        lab.run(member.start())
    lab.run_for(seconds=25)
    lab.run(draw.choice(members).shutdown())
    return lab.run_for(seconds=5)


def _draw_members(draw: random.Random) -> list[str]:
    """Client ids as RocketMQ makes them: address, process, start."""
    count = draw.randint(5, 8)
    hosts = draw.sample(range(2, 250), count)
    return [f"10.0.0.{host}@{draw.randint(100, 9_999)}#{draw.randint(10**9, 10**10)}" for host in hosts]


def _draw_queues(draw: random.Random) -> list[MessageQueue]:
    """A topic on two or three brokers."""
    brokers = ("broker-a", "broker-b", "broker-c")[: draw.randint(2, 3)]
    return [MessageQueue("Orders", broker, number) for broker in brokers for number in range(draw.choice((8, 10, 12)))]


def _small_topic(draw: random.Random) -> list[MessageQueue]:
    """A topic with fewer queues than members."""
    return [MessageQueue("Returns", "broker-a", number) for number in range(draw.randint(1, 3))]


# -- playing --------------------------------------------------------------------------------------------------------


def _play(answer: StrategyClass, ids: Sequence[str], queues: Sequence[MessageQueue]) -> list[tuple[_Round, _Round]]:
    """Everybody is there; then each member leaves, and comes back as a new process. Before and after of each leave."""
    members = {client_id: _Member(client_id, in_own_process(answer, salt)()) for salt, client_id in enumerate(ids, 1)}
    departures = []
    present = _ask("all are there", members, queues)
    for salt, client_id in enumerate(ids, len(ids) + 1):
        del members[client_id]
        departures.append((present, _ask(f"{client_id} has left", members, queues)))
        members[client_id] = _Member(client_id, in_own_process(answer, salt)())
        present = _ask(f"{client_id} has come back", members, queues)
    return departures


def _ask(what: str, members: dict[str, _Member], queues: Sequence[MessageQueue]) -> _Round:
    """Let each member compute its share for itself, and see whether the shares fit together."""
    shares: Shares = {}
    for member in members.values():
        taken = member.strategy.allocate(GROUP, member.client_id, sorted(queues), sorted(members))
        if not isinstance(taken, list):
            raise _Failure(Wrong(f"divide must return a list of queues, and returned a {type(taken).__name__}"))
        shares[member.client_id] = taken
    seen = _Round(what, shares)
    _judge(seen, queues)
    return seen


def _judge(seen: _Round, queues: Sequence[MessageQueue]) -> None:
    owners: dict[MessageQueue, list[str]] = {queue: [] for queue in queues}
    for client_id, taken in seen.shares.items():
        for queue in taken:
            if queue not in owners:
                raise _Failure(Wrong(f"{client_id} takes {queue}, which is no queue of the topic", _told(seen)))
            owners[queue].append(client_id)
    for queue, found in owners.items():
        name = _name(queue)
        if len(found) > 1:
            both = f"{found[0]} twice" if found[0] == found[1] else f"{found[0]} and by {found[1]}"
            raise _Failure(
                Wrong(
                    f"{seen.what}, and queue {name} is taken by {both}. The members do not talk to each other: "
                    "all must compute the same from the two lists alone",
                    _told(seen),
                )
            )
        if not found:
            raise _Failure(
                Wrong(
                    f"{seen.what}, and nobody takes queue {name}: its messages wait for ever. Either the shares do not "
                    "add up, or the members do not compute the same: each is a process of its own, with a memory of "
                    "its own and with a hash() of its own",
                    _told(seen),
                )
            )
    sizes = {client_id: len(taken) for client_id, taken in seen.shares.items()}
    most, fewest = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[most] - sizes[fewest] > 1:
        raise _Failure(
            Wrong(
                f"{seen.what}, and {most} has {sizes[most]} queues where {fewest} has {sizes[fewest]}: "
                "the shares may differ by one",
                _told(seen),
            )
        )


# -- telling --------------------------------------------------------------------------------------------------------


def _moves(before: Shares, after: Shares) -> int:
    """How many queues have another owner than before."""
    owner = _owners(before)
    return sum(owner[queue] != client_id for queue, client_id in _owners(after).items())


def _owners(shares: Shares) -> dict[MessageQueue, str]:
    return {queue: client_id for client_id, taken in shares.items() for queue in taken}


def _name(queue: MessageQueue) -> str:
    return f"{queue.broker_name.removeprefix('broker-')}{queue.queue_id}"


def _told(seen: _Round, before: Shares | None = None) -> str:
    """The shares as text; with `before`, a star marks what has another owner than then."""
    was = _owners(before) if before is not None else {}
    lines = [f"{seen.what}:"]
    for client_id, taken in sorted(seen.shares.items()):
        names = [_name(queue) + ("*" if before and was.get(queue) != client_id else "") for queue in taken]
        lines.append(f"  {client_id:<28} {len(taken):>2}: {' '.join(names)}")
    return "\n".join(lines + (["  * moved"] if before else []))
