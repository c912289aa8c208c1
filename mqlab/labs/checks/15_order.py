"""The checks of lab 15: a queue for each order, what order costs, an old lock, whose turn it is, a day in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from mqlab.check import Cases, Right, Wrong, is_number, lab_check
from mqlab.check.own_process import in_own_process
from mqlab.exercises.order_day import STEPS, OrderDay
from mqlab.lab import Lab
from mqlab.protocol.message import MessageQueue
from mqlab.scenarios.order_steps import BROKER, GROUP, TOPIC, Shop, open_shop

ORDERS = 600
MOST, LEAST = 1.8, 1 / 3
"""So many times its share of many orders a queue gets at most and at least: more than six standard deviations off."""
LOCK_MS = 60_000
WORK_SLACK_MS = 20


class Sharding(Protocol):
    """A rule that says which queue an order's steps go to."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue: ...


def _queues(count: int) -> list[MessageQueue]:
    return [MessageQueue(TOPIC, BROKER, number) for number in range(count)]


def _orders(random: Random) -> list[str]:
    """Names of many orders, as a shop gives them."""
    first = random.randrange(1_000, 900_000)
    word = random.choice(("order", "web", "shop-3", "de"))
    return [f"{word}-{first + number}" for number in range(ORDERS)]


class _Rule:
    """A student's rule on several machines, asked about many orders."""

    def __init__(self, answer: type[Sharding]) -> None:
        self._machines = [in_own_process(answer, salt)() for salt in (1, 2)]

    def places(self, queues: list[MessageQueue], orders: Sequence[str]) -> dict[str, int] | Wrong:
        """Order -> its queue, as the first machine says; or what is wrong with that."""
        places: dict[str, int] = {}
        for order in orders:
            said = [machine.queue_of(list(queues), order) for machine in self._machines]
            for queue in said:
                if not isinstance(queue, MessageQueue) or queue not in queues:
                    return Wrong(f"queue_of must return one of the queues it was given, and yours returned {queue!r}")
            one, other = said
            if one != other:
                return Wrong(
                    f"{order} goes to queue {one.queue_id} on one machine and to queue {other.queue_id} on another: "
                    "each is a process of its own, with a memory and a hash() of its own"
                )
            places[order] = one.queue_id
        for order in orders[:: ORDERS // 8]:
            again = self._machines[0].queue_of(list(queues), order)
            if again != queues[places[order]]:
                return Wrong(f"{order} went to queue {places[order]} at first, and to queue {again.queue_id} later")
        return places


def _uneven(places: dict[str, int], queues: int) -> Wrong | None:
    """Does a queue get far more than its share, or far less?"""
    load = Counter(places.values())
    share = len(places) / queues
    for queue in range(queues):
        if not LEAST * share <= load[queue] <= MOST * share:
            steps = "\n".join(f"queue {each}: {load[each]} orders" for each in range(queues))
            told = f"of {len(places)} orders {load[queue]} go to queue {queue}"
            return Wrong(f"{told}, and a fair share of {queues} queues is {share:.0f}", steps)
    return None


@lab_check("15/queue-of", points=1)
def queue_of(answer: type[Sharding], *, seed: int) -> Wrong | None:
    """An order has the same queue on two machines, and many orders are spread over all queues."""
    random = Random(f"15/queue-of/{seed}")
    queues = _queues(random.randint(2, 9))
    places = _Rule(answer).places(queues, _orders(random))
    return places if isinstance(places, Wrong) else _uneven(places, len(queues))


@lab_check("15/how-long", points=1)
def how_long(answer: Callable[[list[int], int, int], tuple[float, float]], *, seed: int) -> Wrong | None:
    """Queues are worked off by an orderly and by a concurrent consumer: both take as long as was foretold."""
    random, cases = Random(f"15/how-long/{seed}"), Cases()
    counts = [random.randint(2, 30) for _ in range(random.randint(2, 5))]
    threads, work_ms = random.randint(len(counts), 24), random.randrange(100, 400, 10)
    got = answer(list(counts), threads, work_ms)
    if not isinstance(got, tuple | list) or len(got) != 2 or not all(is_number(ms) for ms in got):
        return Wrong(f"how_long({counts}, {threads}, {work_ms}) must give two numbers, and yours gives {got!r}")
    for told, in_order, said in (("an orderly", True, got[0]), ("a concurrent", False, got[1])):
        took_ms = _worked_off(seed, counts, threads, work_ms, in_order=in_order)
        want = round(took_ms / work_ms) * work_ms
        asked = f"queues with {counts} messages, {threads} threads, {work_ms} ms each"
        wrong = Wrong(f"{asked}: with {told} listener it took {took_ms:.0f} ms, and yours says {said:g}")
        cases.note((in_order, want), abs(said - took_ms) <= WORK_SLACK_MS or wrong)
    return cases.result


def _worked_off(seed: int, counts: Sequence[int], threads: int, work_ms: int, *, in_order: bool) -> float:
    """How many ms a consumer with so many threads takes for queues that hold so many messages."""
    lab = Lab(seed, history=False)
    opened: list[Shop] = []

    async def build() -> None:
        opened.append(await open_shop(lab, queues=len(counts)))
        await opened[0].fill(counts)
        await opened[0].clerk("A", work_ms=work_ms, threads=threads, in_order=in_order)

    lab.finish_building(build())
    book = opened[0].book
    lab.run_until(lambda: len(book.entries) == sum(counts))
    lab.run_for(ms=work_ms + WORK_SLACK_MS)
    return book.took_ms()


@lab_check("15/gets-it", points=1)
def gets_it(answer: Callable[[list[int], list[int]], int | None], *, seed: int) -> Wrong | None:
    """An owner renews its lock and falls silent; another member asks, and a broker's table of locks decides."""
    random, cases = Random(f"15/gets-it/{seed}"), Cases()
    for what in ("early", "on the edge", "late", "never"):
        first_ms = random.randrange(1_000, 400_000)
        renewed_ms = [first_ms + 20_000 * n for n in range(random.randint(1, 6))]
        asks_ms = _asks(random, renewed_ms[-1], what)
        want = _decided(seed, renewed_ms, asks_ms)
        got = answer(list(renewed_ms), list(asks_ms))
        told = f"gets_it({renewed_ms}, {asks_ms}) is {want}, and yours says {got!r}"
        steps = [f"{at_ms} ms: the owner renews" for at_ms in renewed_ms]
        steps += [f"{at_ms} ms: asked, {at_ms - renewed_ms[-1]} ms after the last renewal" for at_ms in asks_ms]
        cases.note((what, want), got == want or Wrong(told, "\n".join(steps)))
    return cases.result


def _asks(random: Random, last_ms: int, what: str) -> list[int]:
    """When another member asks: about once a second, and what happens at 60 s."""
    begin_ms = last_ms + random.randrange(55_000, 58_500)
    if what == "on the edge":
        return [last_ms + LOCK_MS - 1_000, last_ms + LOCK_MS, last_ms + LOCK_MS + 1, last_ms + LOCK_MS + 1_001]
    if what == "never":
        return [begin_ms - 10_000 + 1_000 * n for n in range(8)]
    if what == "late":
        return [last_ms + LOCK_MS + random.randrange(2, 30_000) + 1_000 * n for n in range(3)]
    return [begin_ms + random.randrange(1_001, 1_080) * n for n in range(9)]


def _decided(seed: int, renewed_ms: Sequence[int], asks_ms: Sequence[int]) -> int | None:
    """When a broker gives the lock to the second member."""
    lab = Lab(seed, history=False)
    locks = lab.broker(BROKER).running().rebalance_lock_manager
    zero_ms = renewed_ms[0] - round(lab.now_ms)
    for at_ms in renewed_ms:
        lab.run_for(ms=at_ms - zero_ms - lab.now_ms)
        locks.try_lock_batch(GROUP, _queues(1), "the owner")
    for at_ms in asks_ms:
        lab.run_for(ms=at_ms - zero_ms - lab.now_ms)
        if locks.try_lock_batch(GROUP, _queues(1), "another member"):
            return at_ms
    return None


@lab_check("15/turn", points=1)
def turn(answer: Callable[[int, int], str], *, seed: int) -> Wrong | None:
    """Steps of orders with long lives come in turn, too early and twice."""
    random, cases = Random(f"15/turn/{seed}"), Cases()
    for _ in range(3):
        done = random.choice((0, random.randrange(1, 10**9)))
        asked = [(done + 1, "do"), (done + 2, "wait"), (done + random.randrange(2, 10**6), "wait")]
        if done:
            asked += [(done, "skip"), (done - random.randrange(done), "skip")]
        for step, want in asked:
            got = answer(done, step)
            cases.note(
                want, got == want or Wrong(f"{done} steps are done: step {step} is to {want}, yours says {got!r}")
            )
    return cases.result


@lab_check("15/in-turn", points=3)
def in_turn(shards: type[Sharding], clerk: type, *, seed: int) -> Right | Wrong:
    """Queues are added while clerks join, are killed or hang: each order's steps are done once, and in turn."""
    day = OrderDay(
        lambda process: in_own_process(shards, process)(),
        lambda process, book: in_own_process(clerk, process)(book),
        seed,
    ).play()
    if day.wrong:
        return Wrong(day.wrong, day.story(day.about))
    for order in day.orders:
        done = day.book.done.get(order, 0)
        if done != STEPS:
            return Wrong(f"of {order} {done} steps are done in the end, and not {STEPS}", day.story(order))
    return _moved(shards, seed) or Right(
        {
            "steps worked on": {"yours": day.book.works, "there were": STEPS * len(day.orders)},
            "messages told to wait": {"yours": day.waits},
        }
    )


def _moved(shards: type[Sharding], seed: int) -> Wrong | None:
    """When queues are added, do orders only move to the new ones, and does everybody get a share?"""
    random = Random(f"15/in-turn/{seed}")
    before = random.randint(2, 5)
    after = before + random.randint(1, 3)
    rule, orders = _Rule(shards), _orders(random)
    old, new = rule.places(_queues(before), orders), rule.places(_queues(after), orders)
    if isinstance(old, Wrong):
        return old
    if isinstance(new, Wrong):
        return new
    for order in orders:
        if new[order] != old[order] and new[order] < before:
            moved = sum(new[each] != old[each] for each in orders)
            needed = ORDERS * (after - before) // after
            told = f"{before} queues become {after}, and {order} moves from queue {old[order]} to queue {new[order]}"
            return Wrong(f"{told}, which is no new one; {moved} of {ORDERS} orders move, and about {needed} have to")
    return _uneven(old, before) or _uneven(new, after)
