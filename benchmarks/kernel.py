"""The kernel against simpy: the same two programs on both."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import simpy

from benchmarks.harness import Figure, figure, operations_per_second
from mqlab.sim import Node, Queue, World

RING = 100
HOPS = 200_000
SLEEPERS = 100
SLEEPS = 2_000


def pause_us(sleeper: int, turn: int) -> int:
    """How long a sleeper sleeps: no two ever wake at the same time (their times differ modulo 100)."""
    return 100 * (1 + (turn * 37 + sleeper * 101) % 97) + (sleeper if turn == 0 else 0)


def hops_of_mqlab() -> Callable[[], int]:
    """One token goes round a ring of queues; a hop is one item taken and put into the next queue."""
    world = World(0, max_slices_per_instant=2 * HOPS)
    node = world.node("ring")
    queues: list[Queue[int]] = [Queue() for _ in range(RING)]

    async def station(here: Queue[int], following: Queue[int]) -> None:
        while True:
            hops = await here.take()
            if hops == HOPS:
                return
            following.put(hops + 1)

    for number in range(RING):
        node.spawn(station(queues[number], queues[(number + 1) % RING]), "station")
    queues[0].put(0)

    def run() -> int:
        world.run_for(1)
        return HOPS

    return run


def hops_of_simpy() -> Callable[[], int]:
    """The same ring with simpy's stores; a put is not waited for, since the stores have no limit."""
    environment = simpy.Environment()
    stores = [simpy.Store(environment) for _ in range(RING)]

    def station(here: simpy.Store, following: simpy.Store) -> Generator[Any, Any, None]:
        while True:
            hops = yield here.get()
            if hops == HOPS:
                return
            following.put(hops + 1)

    for number in range(RING):
        environment.process(station(stores[number], stores[(number + 1) % RING]))
    stores[0].put(0)

    def run() -> int:
        environment.run()
        return HOPS

    return run


def timers_of_mqlab() -> Callable[[], int]:
    """A hundred tasks sleep two thousand times each, no two of them until the same time."""
    world = World(0)
    node = world.node("sleepers")

    async def sleeper(node: Node, number: int) -> None:
        for turn in range(SLEEPS):
            await node.sleep_us(pause_us(number, turn))

    for number in range(SLEEPERS):
        node.spawn(sleeper(node, number), "sleeper")

    def run() -> int:
        world.run_for(SLEEPS * 10_000)
        return SLEEPERS * SLEEPS

    return run


def timers_of_simpy() -> Callable[[], int]:
    """The same sleepers as processes of simpy."""
    environment = simpy.Environment()

    def sleeper(number: int) -> Generator[Any, Any, None]:
        for turn in range(SLEEPS):
            yield environment.timeout(pause_us(number, turn))

    for number in range(SLEEPERS):
        environment.process(sleeper(number))

    def run() -> int:
        environment.run(until=SLEEPS * 10_000)
        return SLEEPERS * SLEEPS

    return run


def hops() -> Figure:
    """Hops of a token round a ring of queues, against simpy."""
    rates = operations_per_second({"mqlab": hops_of_mqlab, "simpy": hops_of_simpy})
    return figure("kernel hops / simpy", rates["mqlab"], "hops/s", versus=rates["simpy"], aim=4, better="higher")


def timers() -> Figure:
    """Sleeps with distinct times, against simpy."""
    rates = operations_per_second({"mqlab": timers_of_mqlab, "simpy": timers_of_simpy})
    return figure("kernel timers / simpy", rates["mqlab"], "timers/s", versus=rates["simpy"], aim=1, better="higher")
