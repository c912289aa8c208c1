"""Pools: threads that are busy for a service time, and the queue before them."""

from __future__ import annotations

import pytest

from mqlab.errors import SimulationError
from mqlab.sim import Node, World
from mqlab.trace.events.world import ActionTaken


def test_a_job_runs_at_the_end_of_its_service_time(world: World, node: Node) -> None:
    seen: list[int] = []
    pool = node.pool("SendMessageThread", 1)
    assert pool.submit(lambda: seen.append(world.now_us), service_us=300)
    assert pool.busy == 1
    world.run_for(1_000)
    assert (seen, pool.busy, pool.completed) == ([300], 0, 1)


def test_jobs_wait_for_a_free_thread_in_the_order_in_which_they_came(world: World, node: Node) -> None:
    seen: list[tuple[str, int]] = []
    pool = node.pool("SendMessageThread", 2)
    for name in "abcde":
        pool.submit(lambda name=name: seen.append((name, world.now_us)), service_us=100)
    assert len(pool.queue) == 3
    world.run_for(1_000)
    assert seen == [("a", 100), ("b", 100), ("c", 200), ("d", 200), ("e", 300)]


def test_a_job_without_service_time_runs_in_a_slice_of_its_own_at_once(world: World, node: Node) -> None:
    seen: list[int] = []
    pool = node.pool("AdminBrokerThread", 1)
    pool.submit(lambda: seen.append(world.now_us))
    assert seen == []
    world.run_for(0)
    assert seen == [0]


def test_a_full_queue_refuses_the_job(world: World, node: Node) -> None:
    pool = node.pool("SendMessageThread", 1, capacity=2)
    taken = [pool.submit(lambda: None, service_us=100) for _ in range(5)]
    assert taken == [True, True, True, False, False]
    assert pool.rejected == 2
    world.run_for(1_000)
    assert pool.completed == 3
    assert pool.submit(lambda: None)


def test_a_coroutine_keeps_its_thread_until_it_has_ended(world: World, node: Node) -> None:
    seen: list[tuple[str, int]] = []
    pool = node.pool("ConsumeMessageThread", 1)

    async def slow() -> None:
        await node.sleep(5)
        seen.append(("slow", world.now_us))

    pool.submit(slow, service_us=1_000)
    pool.submit(lambda: seen.append(("next", world.now_us)))
    world.run_for(100_000)
    assert seen == [("slow", 6_000), ("next", 6_000)]
    assert pool.busy == 0


def test_a_job_that_raises_stops_the_world_by_name_and_frees_its_thread(world: World, node: Node) -> None:
    pool = node.pool("SendMessageThread", 1)

    def explode() -> None:
        raise OSError("no disk")

    pool.submit(explode)
    with pytest.raises(SimulationError, match="'SendMessageThread' on alpha raised OSError: no disk"):
        world.run_for(0)
    assert pool.busy == 0


def test_a_coroutine_job_that_raises_stops_the_world_by_name_and_frees_its_thread(world: World, node: Node) -> None:
    pool = node.pool("SendMessageThread", 1)

    async def explode() -> None:
        await node.sleep(1)
        raise OSError("no disk")

    pool.submit(explode)
    with pytest.raises(SimulationError, match=r"'SendMessageThread' on alpha .*OSError: no disk"):
        world.run_for(1_000)
    assert pool.busy == 0


def test_the_oldest_wait_is_that_of_the_head_of_the_queue(world: World, node: Node) -> None:
    pool = node.pool("SendMessageThread", 1)
    assert pool.oldest_wait_us() == 0
    pool.submit(lambda: None, service_us=1_000)
    assert pool.oldest_wait_us() == 0
    pool.submit(lambda: None, service_us=1_000)
    world.run_for(250)
    pool.submit(lambda: None, service_us=1_000)
    world.run_for(250)
    assert pool.oldest_wait_us() == 500


def test_jobs_that_have_waited_too_long_are_taken_out_and_never_run(world: World, node: Node) -> None:
    """What BrokerFastFailure does with requests older than 200 ms."""
    seen: list[str] = []
    pool = node.pool("SendMessageThread", 1)
    pool.submit(lambda: None, service_us=300_000)
    pool.submit(seen.append, "old")
    world.run_for(100_000)
    pool.submit(seen.append, "young")
    world.run_for(100_000)
    assert [job.args for job in pool.take_older_than(200_000)] == [("old",)]
    assert pool.take_older_than(200_000) == []
    world.run_for(1_000_000)
    assert seen == ["young"]


def test_a_closed_pool_drops_what_waits_and_refuses_what_comes(world: World, node: Node) -> None:
    seen: list[str] = []
    pool = node.pool("SendMessageThread", 1)
    pool.submit(seen.append, "running", service_us=100)
    pool.submit(seen.append, "waiting")
    pool.close()
    assert not pool.submit(seen.append, "late")
    world.run_for(1_000)
    assert seen == ["running"]


def test_the_cause_of_what_a_job_does_is_what_submitted_it_even_when_it_had_to_wait(world: World, node: Node) -> None:
    rows: list[tuple[object, ...]] = []
    world.hooks.attach(rows.append)
    pool = node.pool("SendMessageThread", 1)

    def request(name: str) -> None:
        node.hooks.emit(ActionTaken(f"submit {name}", ""))
        pool.submit(lambda: node.hooks.emit(ActionTaken(f"run {name}", "")), service_us=1_000)

    node.call_later(1, request, "a")
    node.call_later(1.5, request, "b")
    world.run_for(10_000)
    at = {row[8]: (row[0], row[1]) for row in rows}
    causes = {row[8]: (row[5], row[6]) for row in rows}
    assert causes["run a"] == at["submit a"]
    assert causes["run b"] == at["submit b"]
