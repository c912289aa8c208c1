"""Pacing: the same world played at the speed of a person's eye."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.sim.world import World

FRAME_SECONDS = 0.05
"""At least so often the world's clock follows, although nothing is due: for those who look at it or do something."""

LEAST_SECONDS = 0.002
"""What is due within this time is played together: the loop has other work, too."""


async def play_in_real_time(world: World, speed: float = 1.0, for_ms: int | None = None) -> bool:
    """Play the world from the running asyncio loop, `speed` seconds of its time per real second.

    What is due is played when it is due, and in between the loop is free, so that widgets and sockets are served; a
    command that another thread leaves (`world.door.post`), and what follows from it, is played at once. Ends after
    `for_ms` of the world's time, or when a breakpoint or `world.stop_requested` stops it: then it returns False.
    Which events happen, and when in the world's time, does not depend on the speed.
    """
    import asyncio

    if speed <= 0:
        raise LearnerError(f"speed must be above 0, not {speed}", "0.1 is slow motion, 10 is fast forward")
    loop = asyncio.get_running_loop()
    began_real, began_us = loop.time(), world.now_us
    end_us = None if for_ms is None else began_us + for_ms * 1_000
    posted = asyncio.Event()
    with world.door.posts_told(lambda: loop.call_soon_threadsafe(posted.set)):
        while True:
            target_us = began_us + int((loop.time() - began_real) * speed * 1_000_000)
            if end_us is not None:
                target_us = min(target_us, end_us)
            if not world.run_to(target_us):
                return False
            if world.now_us == end_us:
                return True
            posted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(posted.wait(), _pause_seconds(world, speed))


def _pause_seconds(world: World, speed: float) -> float:
    """Until the next thing is due, within bounds."""
    due_us = world.next_due_us()
    if due_us is None:
        return FRAME_SECONDS
    return min(FRAME_SECONDS, max(LEAST_SECONDS, (due_us - world.now_us) / speed / 1_000_000))
