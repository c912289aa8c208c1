"""The cache behind a proxy's routes and settings: when it loads, loads anew, keeps what is old, and forgets."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.errors import MqlabError
from mqlab.proxy.loading_cache import LoadingCache
from mqlab.sim import World

S = 1_000_000


class Source:
    """Counts how often it is asked; the answer is the number, half a second later, or an error while it is down."""

    def __init__(self) -> None:
        self.world = World(1)
        self.node = self.world.node("proxy")
        self.cache: LoadingCache[int] = LoadingCache(self.node, "numbers", self.load, 20, 100)
        self.asked = 0
        self.is_down = False

    async def load(self, key: str) -> int:
        self.asked += 1
        answer = self.asked
        await self.node.sleep(500)
        if self.is_down:
            raise MqlabError("down")
        return answer

    def get(self) -> Any:
        return self.world.wait_for(self.node.spawn(self.cache.get("key"), "get").join())

    def get_after(self, seconds: float) -> Any:
        self.world.run_for(int(seconds * S))
        return self.get()


@pytest.fixture
def source() -> Source:
    return Source()


def test_it_is_loaded_anew_every_time_that_it_is_too_old(source: Source) -> None:
    assert source.get() == 1
    for turn in range(1, 6):
        assert source.get_after(20) == turn, "the old one is given out once more"
        assert source.get_after(1) == turn + 1
    assert source.asked == 6


def test_what_is_young_is_not_loaded_again(source: Source) -> None:
    assert [source.get(), source.get_after(10), source.get_after(9)] == [1, 1, 1]
    assert source.asked == 1


def test_who_asks_while_it_is_loaded_waits_for_the_same_load(source: Source) -> None:
    tasks = [source.node.spawn(source.cache.get("key"), "get") for _ in range(3)]
    assert [source.world.wait_for(task.join()) for task in tasks] == [1, 1, 1]
    assert source.asked == 1


def test_one_refresh_is_under_way_at_a_time(source: Source) -> None:
    source.get()
    assert [source.get_after(20), source.get_after(0.1), source.get_after(0.1)] == [1, 1, 1]
    assert source.asked == 2


def test_a_refresh_that_fails_leaves_the_old_value_for_another_period(source: Source) -> None:
    source.get()
    source.is_down = True
    assert source.get_after(20) == 1
    assert [source.get_after(1), source.get_after(10)] == [1, 1]
    assert source.asked == 2, "not again at once"
    source.is_down = False
    assert source.get_after(10) == 1
    assert source.get_after(1) == 3


def test_a_first_load_that_fails_leaves_nothing(source: Source) -> None:
    source.is_down = True
    for _ in range(2):
        with pytest.raises(MqlabError, match="down"):
            source.get()
    source.is_down = False
    assert source.get() == 3


def test_what_nobody_asks_for_is_forgotten_and_each_question_counts(source: Source) -> None:
    source.get()
    assert source.get_after(99) == 1, "the old one, while a new one is loaded"
    assert source.get_after(99) == 2, "asked for 99 s ago: still there"
    assert source.get_after(100) == 4, "forgotten: who asks waits for a new one"
