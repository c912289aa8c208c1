"""Odd values earn nothing from any check, and are told in a sentence that is the same each time."""

from __future__ import annotations

import gc
import math
import warnings
from decimal import Decimal
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest

from mqlab.check import PUBLIC_SEEDS, find_check, is_number
from mqlab.check.given import NoAnswer, plain, taken
from mqlab.grading.judging import LEAST_SHARE
from mqlab.labs.build import read_lab
from mqlab.labs.reference import reference_answers

SOURCES = sorted((Path(__file__).parents[2] / "labs" / "sources").glob("[013]*.py"))
FEW = PUBLIC_SEEDS[:5]


class Sly(int):
    """An int that says of itself that it is equal to everything, and in any order with it."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __sub__(self, other: object) -> Sly:
        return Sly(0)

    __rsub__ = __sub__


ODD: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, True, 0, None, [], {}, (math.nan, math.nan), {"a": math.nan}, 10**400, 10**5_000,
    1j, Decimal("NaN"), "", "nan", Sly(0), [Sly(0)],
)  # fmt: skip


def always(value: Any, like: Any) -> Any:
    """A solution in the form of another one, which gives the same whatever it is asked."""
    if isinstance(like, type):

        class Odd:
            def __init__(self, *given: Any, **named: Any) -> None: ...

            def __getattr__(self, name: str) -> Any:
                if name.startswith("__"):
                    raise AttributeError(name)
                return lambda *given, **named: value

        return Odd
    if iscoroutinefunction(like):

        async def awaited(*given: Any, **named: Any) -> Any:
            return value

        return awaited
    return lambda *given, **named: value


@pytest.mark.parametrize("source", [pytest.param(path, id=path.stem) for path in SOURCES])
def test_an_odd_value_gets_no_point_from_any_check(source: Path) -> None:
    for name, answers in reference_answers(read_lab(source)).items():
        for value in ODD:
            odd = [always(value, answer) for answer in answers]
            assert earns_nothing(name, odd, FEW) or earns_nothing(name, odd, PUBLIC_SEEDS), (name, type(value))


def earns_nothing(name: str, answers: list[Any], seeds: range) -> bool:
    lost, check = 0.0, find_check(name)
    for seed in seeds:
        lost += 1 - check.play(*answers, seeds=[seed]).well
        if lost > (1 - LEAST_SHARE) * len(seeds):
            return True
    return False


@pytest.mark.parametrize("value", [math.nan, math.inf, (1, math.nan), {1: [math.inf]}, 1j, 10**101, -(10**101)])
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(NoAnswer):
        plain(value)


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NoAnswer):
        plain(endless)


def test_an_int_of_a_class_of_its_own_is_compared_as_an_int() -> None:
    assert taken(lambda: Sly(3))() != 5
    assert taken(lambda: [Sly(3)])() == [3]
    assert [is_number(each) for each in (3, 2.5, "3", None, True)] == [True, True, False, False, False]


def test_an_async_def_by_mistake_is_told_without_an_address() -> None:
    async def held_for(next_pass_ms: int, hold_ms: int) -> float:
        return 3.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = [repr(find_check("05/held-for").play(held_for, seeds=[1])) for _ in range(2)]
        gc.collect()
    assert told[0] == told[1]
    assert "your function begins with `async def`, and a plain `def` is wanted" in told[0]
    assert "0x" not in told[0]


@pytest.mark.parametrize("given", [object(), lambda: 3, (n for n in range(3)), [object()], iter([])])
def test_no_verdict_holds_an_address(given: Any) -> None:
    verdict = find_check("05/held-for").play(lambda *_: given, seeds=[1])
    assert "0x" not in repr(verdict)
    assert verdict.state == "wrong"


def test_not_a_number_is_told_as_such() -> None:
    verdict = find_check("19/scan").play(lambda *_: math.nan, seeds=[1])
    assert verdict.explanation.startswith("your code gives nan, which is no finite number")
