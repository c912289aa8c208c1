"""Waiting for a time of day on a machine whose clock may run wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError
from mqlab.sim import World


@given(
    ppm=st.integers(-999_000, 2_000_000),
    jump_ms=st.integers(-5_000, 5_000),
    began_us=st.integers(0, 3_000_000),
    waited_us=st.integers(0, 3_000_000),
    ahead_ms=st.integers(-1_000, 20_000),
)
def test_us_until_is_the_first_microsecond_at_which_the_clock_shows_the_time(
    ppm: int, jump_ms: int, began_us: int, waited_us: int, ahead_ms: int
) -> None:
    world = World(1)
    node = world.node("a")
    world.run_for(began_us)
    node.set_drift(ppm, jump_ms)
    world.run_for(waited_us)
    wall_ms = node.now_ms() + ahead_ms
    wait_us = node.us_until(wall_ms)
    if wait_us:
        world.run_for(wait_us - 1)
        assert node.now_ms() < wall_ms
        world.run_for(1)
    assert node.now_ms() >= wall_ms


def test_who_waits_for_a_time_of_day_hears_that_the_clock_was_set() -> None:
    node = World(1).node("a")
    heard: list[int] = []
    node.life.clock_listeners.append(lambda: heard.append(node.now_ms()))
    before_ms = node.now_ms()
    node.set_drift(0, 500)
    assert heard == [before_ms + 500]


def test_a_clock_can_neither_stand_still_nor_run_backwards() -> None:
    with pytest.raises(LearnerError, match="stand still"):
        World(1).node("a").set_drift(-1_000_000)
