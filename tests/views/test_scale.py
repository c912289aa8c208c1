"""Scales: places on an axis, and round numbers along it."""

from __future__ import annotations

import pytest

from mqlab.views.round_numbers import round_step
from mqlab.views.scale import Scale, height_scale, number, value_scale


def test_a_scale_places_its_ends_and_its_middle() -> None:
    scale = Scale(10, 20, 100, 300)
    assert [scale(10), scale(15), scale(20)] == [100, 200, 300]


def test_a_logarithmic_scale_places_factors() -> None:
    scale = Scale(0.1, 1000, 0, 400, log=True)
    assert [scale(0.1), scale(1), scale(1000)] == [0, 100, 400]
    assert scale.ticks() == [0.1, 1, 10, 100, 1000]


@pytest.mark.parametrize(("least", "step"), [(1, 1), (1.1, 2), (3, 5), (6, 10), (0.03, 0.05), (1_000, 1_000)])
def test_steps_are_round(least: float, step: float) -> None:
    assert round_step(least) == pytest.approx(step)


def test_ticks_are_round_and_few() -> None:
    assert Scale(14.5, 20.5, 0, 1).ticks() == [15, 16, 17, 18, 19, 20]
    assert Scale(0, 0.3, 0, 1).ticks() == [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    assert len(Scale(1e-9, 1e12, 0, 1, log=True).ticks()) <= 8


def test_heights_begin_at_zero_and_end_above_the_tallest() -> None:
    scale = height_scale([3, 124], 200, 0)
    assert (scale.low, scale.high) == (0, 140)
    assert height_scale([0], 200, 0).high > 0


def test_values_have_room_on_both_sides() -> None:
    assert value_scale([0.5, 2315], 0, 1, log=True)[:2] == (0.1, 10_000)
    assert value_scale([1, 10], 0, 1, log=True)[:2] == (1, 10)
    assert value_scale([5, 5], 0, 1, log=True)[:2] == (1, 10)
    low, high, *_ = value_scale([-3, 12], 0, 1, log=False)
    assert low <= -3
    assert high >= 12


def test_numbers_are_written_for_people() -> None:
    assert [number(n) for n in (0, 20, 1500, 0.25, 2315.375, 1e6)] == [
        "0",
        "20",
        "1,500",
        "0.25",
        "2,315.38",
        "1,000,000",
    ]
