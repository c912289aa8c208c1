"""What a student's function gives, as a judge takes it: the one place through which every answer goes.

A number is a finite one: `nan` is unequal to everything, so it would lie in no range and outside of none. A value of a
class that is derived from a number, a text or a list becomes the plain one, so that it is compared as Python compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from types import CoroutineType
from typing import Any

from mqlab.errors import LearnerError

MOST_DIGITS = 100
"""A whole number with more digits is no answer to any exercise, and takes long to be shown."""
DEEPEST = 60
"""More lists within each other than this are no answer, either."""
_MOST = 10**MOST_DIGITS


class NoAnswer(LearnerError):
    """A function gave what can be no answer: a number that is not finite, or something endless."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.told = f"{message}: {hint}"
        """The sentence for a verdict."""


class ToBeAwaited:
    """What a function gives that begins with `async def`; where a plain value is wanted it says so itself."""

    def __init__(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return plain((yield from self._coroutine.__await__()))

    def __repr__(self) -> str:
        return "something to be awaited (your function begins with `async def`, and a plain `def` is wanted)"

    def __del__(self) -> None:
        # Nobody has awaited it: Python would warn of that, and the verdict says it.
        self._coroutine.close()


@dataclass(frozen=True, slots=True)
class _Taken:
    """A function of the student's. Two of them are equal when the function is one: a judge may keep what it gave."""

    answer: Callable[..., Any]

    def __call__(self, *given: Any, **named: Any) -> Any:
        return plain(self.answer(*given, **named))


def taken(answer: Any) -> Any:
    """The answer as a judge gets it: what a function gives comes as `plain` makes it. A class is handed on as it is."""
    return answer if isinstance(answer, type) or not callable(answer) else _Taken(answer)


def is_number(value: Any) -> bool:
    """Whether a judge may reckon with it: a whole number or a float, finite, and neither True nor False."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(plain(value))


def plain(value: Any, depth: int = 0) -> Any:
    """The value without what a class of the student's own says of it. NoAnswer if a number in it is not finite.

    What is no number, text or container stays as it is, and so does an enum's member.
    """
    if value is None or isinstance(value, bool | Enum):
        return value
    if isinstance(value, int):
        return _whole(int.__index__(value))
    if isinstance(value, float):
        return _finite(float.__float__(value))
    if isinstance(value, complex):
        raise NoAnswer(f"your code gives {value!r}, a complex number", "give a whole number or a float")
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, list | tuple | set | frozenset | dict):
        return _all(value, depth)
    # What lies in another process can be called and awaited alike, and stays as it is.
    return ToBeAwaited(value) if isinstance(value, CoroutineType) else value


def _whole(number: int) -> int:
    if not -_MOST < number < _MOST:
        raise NoAnswer(f"your code gives a number of more than {MOST_DIGITS} digits", "look for what grows without end")
    return number


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise NoAnswer(f"your code gives {number!r}, which is no finite number", "look for what is divided or compared")
    return number


def _all(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise NoAnswer(f"your code gives more than {DEEPEST} lists within each other", "look for one that holds itself")
    if isinstance(value, dict):
        pairs = [(plain(key, depth + 1), plain(of_key, depth + 1)) for key, of_key in dict.items(value)]
        return dict(pairs)
    kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
    items = [plain(item, depth + 1) for item in kind.__iter__(value)]
    # A NamedTuple is asked for its fields by name.
    return value if hasattr(value, "_fields") else kind(items)
