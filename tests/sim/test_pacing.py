"""Pacing: the same world, played from an asyncio loop at the speed of a person's eye."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Thread

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import Node, World, pacing
from mqlab.sim.pacing import play_in_real_time

FAST = 1_000_000


def ticking(node: Node) -> list[int]:
    """The times of a tick every 10 ms."""
    seen: list[int] = []
    node.schedule_at_fixed_rate(lambda: seen.append(node.now_us()), 10, 10, "tick")
    return seen


def test_a_paced_world_does_what_an_unpaced_one_does(world: World, node: Node) -> None:
    seen = ticking(node)
    assert asyncio.run(play_in_real_time(world, FAST, for_ms=1_000))
    assert world.now_us == 1_000_000
    assert seen == list(range(10_000, 1_000_001, 10_000))


def test_the_loop_is_free_between_two_frames(world: World, node: Node) -> None:
    ticking(node)
    turns: list[int] = []

    async def other_work() -> None:
        while True:
            turns.append(world.now_us)
            await asyncio.sleep(0)

    async def cell() -> None:
        other = asyncio.create_task(other_work())
        await play_in_real_time(world, 1_000, for_ms=150_000)
        other.cancel()

    asyncio.run(cell())
    assert len(set(turns)) > 1


def test_a_breakpoint_stops_the_play(world: World, node: Node) -> None:
    node.call_later(500, world.request_stop)
    assert not asyncio.run(play_in_real_time(world, FAST, for_ms=1_000))
    assert world.now_us == 500_000


def test_time_passes_at_the_speed_that_was_asked_for(world: World, node: Node) -> None:
    async def cell() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await play_in_real_time(world, 100, for_ms=20_000)
        return loop.time() - began

    assert 0.2 <= asyncio.run(cell()) < 5


def test_the_loop_sleeps_until_the_next_thing_is_due_and_no_longer_than_a_frame(
    world: World, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    now = [0.0]

    async def wait_for(event: Coroutine[None, None, bool], seconds: float) -> None:
        event.close()
        pauses.append(round(seconds, 4))
        now[0] += seconds
        raise TimeoutError

    async def cell() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        monkeypatch.setattr(asyncio, "wait_for", wait_for)
        await play_in_real_time(world, 1, for_ms=100)

    for ms in (7, 8, 70):
        node.call_later(ms, lambda: None)
    asyncio.run(cell())
    assert pauses == [0.007, 0.002, 0.05, 0.011, 0.05]


def test_a_command_of_another_thread_is_played_at_once(
    world: World, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "FRAME_SECONDS", 3_600)

    async def cell() -> bool:
        playing = asyncio.create_task(play_in_real_time(world))
        await asyncio.sleep(0)
        Thread(target=lambda: world.door.post(lambda: node.call_soon(world.request_stop))).start()
        return await asyncio.wait_for(playing, 60)

    assert not asyncio.run(cell())


@pytest.mark.parametrize("speed", [0, -1])
def test_a_speed_that_is_none_is_refused(world: World, speed: float) -> None:
    with pytest.raises(LearnerError, match=r"(?s)speed must be above 0.*slow motion"):
        asyncio.run(play_in_real_time(world, speed))
