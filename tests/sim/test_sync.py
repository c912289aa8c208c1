"""Queue, semaphore and lock: first come, first served, and nothing is lost with a waiter that goes away."""

from __future__ import annotations

import pytest

from mqlab.errors import SimulationError
from mqlab.sim import Lock, Node, Queue, Semaphore, World


def test_a_queue_hands_items_out_in_order_to_takers_in_order(world: World, node: Node) -> None:
    queue: Queue[int] = Queue("requests")
    seen: list[tuple[str, int]] = []

    async def taker(name: str) -> None:
        seen.append((name, await queue.take()))

    for name in ("ann", "bob", "cid"):
        node.spawn(taker(name), name)
    world.run_for(0)
    for item in (1, 2, 3, 4):
        queue.put(item)
    world.run_for(0)
    assert seen == [("ann", 1), ("bob", 2), ("cid", 3)]
    assert len(queue) == 1


@pytest.mark.parametrize("when", ["before the item comes", "after the item came"])
def test_an_item_is_not_lost_with_a_taker_that_is_cancelled(world: World, node: Node, when: str) -> None:
    queue: Queue[int] = Queue("requests")
    seen: list[int] = []

    async def taker() -> None:
        seen.append(await queue.take())

    first = node.spawn(taker(), "first")
    node.spawn(taker(), "second")
    world.run_for(0)
    if when == "before the item comes":
        first.cancel()
        world.run_for(0)
        queue.put(1)
    else:
        queue.put(1)
        first.cancel()
    world.run_for(0)
    assert seen == [1]
    queue.put(2)
    assert len(queue) == 1


def test_an_item_given_back_is_the_first_again(world: World, node: Node) -> None:
    queue: Queue[int] = Queue("requests")

    async def taker() -> None:
        await queue.take()

    task = node.spawn(taker(), "taker")
    world.run_for(0)
    queue.put(1)
    queue.put(2)
    task.cancel()
    world.run_for(0)

    async def drain() -> list[int]:
        return [await queue.take(), await queue.take()]

    assert world.wait_for(node.spawn(drain(), "drain").join()) == [1, 2]


def test_a_killed_taker_takes_no_item_with_it(world: World, node: Node) -> None:
    queue: Queue[int] = Queue("requests")

    async def taker() -> None:
        await queue.take()

    task = node.spawn(taker(), "taker")
    world.run_for(0)
    task.kill()
    queue.put(1)
    assert len(queue) == 1


def test_a_semaphore_lets_in_as_many_as_it_has_permits_in_the_order_of_asking(world: World, node: Node) -> None:
    semaphore = Semaphore(2)
    seen: list[tuple[str, int]] = []

    async def worker(name: str) -> None:
        await semaphore.acquire()
        seen.append((name, world.now_us))
        await node.sleep(10)
        semaphore.release()

    for name in "abcd":
        node.spawn(worker(name), name)
    world.run_for(100_000)
    assert seen == [("a", 0), ("b", 0), ("c", 10_000), ("d", 10_000)]
    assert semaphore.permits == 2


def test_a_permit_does_not_go_to_one_who_tries_while_others_wait(world: World, node: Node) -> None:
    semaphore = Semaphore(1)
    assert semaphore.try_acquire()
    waiting = semaphore.acquire_later()
    semaphore.release()
    assert waiting.done
    assert not semaphore.try_acquire()


@pytest.mark.parametrize("when", ["before the permit comes", "after the permit came"])
def test_a_permit_is_not_lost_with_a_waiter_that_is_cancelled(world: World, node: Node, when: str) -> None:
    semaphore = Semaphore(1)
    assert semaphore.try_acquire()

    async def waiter() -> None:
        await semaphore.acquire()

    task = node.spawn(waiter(), "waiter")
    world.run_for(0)
    if when == "before the permit comes":
        task.cancel()
        world.run_for(0)
        semaphore.release()
    else:
        semaphore.release()
        task.cancel()
        world.run_for(0)
    assert semaphore.permits == 1


def test_giving_up_a_wait_for_a_permit_leaves_the_permit_to_the_next() -> None:
    semaphore = Semaphore(0)
    first, second = semaphore.acquire_later(), semaphore.acquire_later()
    semaphore.abandon(first)
    semaphore.release()
    assert (first.done, second.done) == (False, True)
    semaphore.abandon(second)
    assert semaphore.permits == 1


def test_a_lock_keeps_a_second_task_out_until_it_is_released(world: World, node: Node) -> None:
    lock = Lock()
    seen: list[tuple[str, int]] = []

    async def worker(name: str) -> None:
        async with lock:
            seen.append((name, world.now_us))
            await node.sleep(10)

    node.spawn(worker("a"), "a")
    node.spawn(worker("b"), "b")
    world.run_for(5_000)
    assert lock.locked
    assert not lock.try_acquire()
    world.run_for(100_000)
    assert seen == [("a", 0), ("b", 10_000)]
    assert not lock.locked


def test_releasing_a_lock_that_nobody_holds_is_an_error() -> None:
    with pytest.raises(SimulationError, match="route-lock was released but nobody holds it"):
        Lock("route-lock").release()


def test_whoever_waits_for_a_permit_gives_up_after_its_time(world: World, node: Node) -> None:
    semaphore = Semaphore(0)
    seen: list[tuple[bool, int]] = []

    async def waiter(ms: int) -> None:
        seen.append((await semaphore.acquire(1, ms), world.now_us))

    node.spawn(waiter(30), "in vain")
    node.spawn(waiter(0), "without waiting")
    world.run_for(40_000)
    assert seen == [(False, 0), (False, 30_000)]
    assert semaphore.waiting == 0
    node.spawn(waiter(30), "in time")
    node.call_later(10, semaphore.release)
    world.run_for(40_000)
    assert seen[-1] == (True, 50_000)
    assert semaphore.permits == 0


def test_a_permit_that_comes_at_the_instant_of_the_time_out_is_taken(world: World, node: Node) -> None:
    semaphore = Semaphore(0)
    seen: list[bool] = []

    async def waiter() -> None:
        seen.append(await semaphore.acquire(1, 10))

    node.spawn(waiter(), "waiter")
    world.run_for(0)
    node.call_later(10, semaphore.release)
    world.run_for(20_000)
    assert seen == [True]
    assert semaphore.permits == 0


def test_several_permits_come_together_and_those_behind_wait_with_them(world: World, node: Node) -> None:
    semaphore = Semaphore(3)
    seen: list[tuple[str, bool, int]] = []

    async def waiter(name: str, number: int, ms: int | None) -> None:
        seen.append((name, await semaphore.acquire(number, ms), world.now_us))

    assert semaphore.try_acquire(2)
    node.spawn(waiter("two", 2, 10), "two")
    node.spawn(waiter("one", 1, None), "one")
    world.run_for(5_000)
    assert seen == []
    assert not semaphore.try_acquire()
    world.run_for(10_000)
    assert seen == [("two", False, 10_000), ("one", True, 10_000)]
    node.spawn(waiter("three", 3, None), "three")
    semaphore.release(2)
    world.run_for(0)
    semaphore.release()
    world.run_for(0)
    assert seen[-1] == ("three", True, 15_000)
    assert semaphore.permits == 0


@pytest.mark.parametrize("when", ["before the permit comes", "after the permit came"])
def test_a_permit_is_not_lost_with_a_cancelled_waiter_that_had_a_time_out(
    world: World, node: Node, when: str
) -> None:
    semaphore = Semaphore(0)
    task = node.spawn(semaphore.acquire(1, 10), "waiter")
    world.run_for(0)
    if when == "before the permit comes":
        task.cancel()
        world.run_for(0)
        semaphore.release()
    else:
        semaphore.release()
        task.kill()
    assert semaphore.permits == 1
    assert not world.later()


def test_a_lock_is_waited_for_within_a_time(world: World, node: Node) -> None:
    lock = Lock("route-lock")
    assert lock.try_acquire()
    seen: list[bool] = []

    async def waiter() -> None:
        seen.append(await lock.acquire(10))

    task = node.spawn(waiter(), "waiter")
    world.run_for(1_000)
    assert task.describe_wait() == "waits for a permit of route-lock"
    world.run_for(20_000)
    assert seen == [False]
    lock.release()
    assert not lock.locked
