"""Choices: every decision by name, drawn from the seed, overridden, or taken by a policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import LearnerError
from mqlab.sim import Choices, World


def _draws(choices: Choices, point: str, count: int = 20) -> list[int]:
    return [choices.choose(point, 1_000) for _ in range(count)]


def test_the_same_seed_draws_the_same_and_another_seed_something_else() -> None:
    assert _draws(Choices(7), "link") == _draws(Choices(7), "link")
    assert _draws(Choices(7), "link") != _draws(Choices(8), "link")


def test_the_draws_of_a_seed_are_fixed_for_ever() -> None:
    assert _draws(Choices(7), "link:a>b", 8) == [237, 596, 200, 481, 425, 415, 468, 495]


def test_a_draw_at_one_point_moves_nothing_at_another() -> None:
    disturbed = Choices(7)
    drawn = []
    for _ in range(20):
        disturbed.choose("other", 5)
        drawn.append(disturbed.choose("link", 1_000))
    assert drawn == _draws(Choices(7), "link")


def test_an_override_changes_one_draw_and_no_other() -> None:
    expected = _draws(Choices(7), "link")
    expected[3] = 999
    assert _draws(Choices(7, {("link", 3): 999}), "link") == expected


def test_a_policy_decides_in_place_of_the_seed_and_an_override_in_place_of_the_policy() -> None:
    choices = Choices(7, {("link", 1): 5})
    asked: list[tuple[str, int, int]] = []

    def always_last(point: str, k: int, n: int, drawn: int) -> int:
        asked.append((point, k, n))
        return n - 1

    choices.policy = always_last
    assert [choices.choose("link", 10) for _ in range(3)] == [9, 5, 9]
    assert asked == [("link", 0, 10), ("link", 1, 10), ("link", 2, 10)]


def test_one_way_on_is_no_decision_and_draws_nothing() -> None:
    choices = Choices(7)
    assert choices.choose("link", 1) == 0
    assert choices.drawn() == {}


def test_nothing_to_choose_from_is_an_error() -> None:
    with pytest.raises(LearnerError, match="'link' offers nothing to choose from"):
        Choices(7).choose("link", 0)


@pytest.mark.parametrize("value", [-1, 3])
def test_an_override_that_is_not_possible_names_the_choice_and_the_limits(value: int) -> None:
    choices = Choices(7, {("link", 0): value})
    with pytest.raises(LearnerError, match=rf"\('link', 0\) was set to {value}, but only 0\.\.2 are possible"):
        choices.choose("link", 3)


def test_what_a_policy_decides_otherwise_plays_the_same_without_it() -> None:
    drawn = Choices(7)
    seeds_own = [drawn.choose("link", 3) for _ in range(9)]
    by_policy = Choices(7, {("link", 4): 0}, lambda point, k, n, value: 2 if k % 2 else value)
    decided = [by_policy.choose("link", 3) for _ in range(9)]
    assert decided == [2 if k % 2 else 0 if k == 4 else value for k, value in enumerate(seeds_own)]
    assert by_policy.deviations == {("link", k): 2 for k in (1, 3, 5, 7) if seeds_own[k] != 2}
    again = Choices(7, by_policy.overrides | by_policy.deviations)
    assert [again.choose("link", 3) for _ in range(9)] == decided


def test_the_world_counts_the_draws_of_each_point() -> None:
    world = World(7)
    node = world.node("alpha")
    node.choose("queue", 4)
    node.choose("queue", 4)
    assert world.choices.drawn() == {"alpha/queue": 2}


@given(st.integers(), st.text(max_size=5), st.integers(1, 1 << 40))
def test_every_draw_is_within_its_range(seed: int, point: str, n: int) -> None:
    assert 0 <= Choices(seed).choose(point, n) < n


def test_preempt_is_free_unless_ties_are_choices() -> None:
    world = World(7)
    node = world.node("alpha")

    async def handler() -> None:
        for _ in range(20):
            await node.preempt("ack.before-mark")

    node.spawn(handler(), "handler")
    world.run_for(0)
    assert world.slice_no == 1
    assert world.choices.drawn() == {}


@pytest.mark.parametrize(("value", "after_us"), [(0, 0), (1, 0), (2, 300), (3, 10_000)])
def test_where_ties_are_choices_a_preempted_task_lets_others_go_first(value: int, after_us: int) -> None:
    both = "ties/alpha: handler | alpha: other"
    overrides = {("alpha/preempt/ack.before-mark", 0): value, (both, 0): 0, (both, 1): 1}
    world = World(7, overrides=overrides, tie_is_choice=True)
    node = world.node("alpha")
    seen: list[str | int] = []

    async def handler() -> None:
        seen.append("before")
        await node.preempt("ack.before-mark")
        seen.append(world.now_us)

    node.spawn(handler(), "handler")
    node.call_soon(seen.append, "other", name="other")
    world.run_for(20_000)
    assert seen == (["before", 0, "other"] if value == 0 else ["before", "other", after_us])
