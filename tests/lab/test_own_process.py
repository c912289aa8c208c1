"""Classes of every kind work in a process of their own as they did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar

import pytest

from mqlab.check.own_process import in_own_process

T = TypeVar("T")


class State(Enum):
    IDLE = 1


class Marks(IntFlag):
    SEEN = 1
    DONE = 2


class Note(TypedDict):
    text: str


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.kept: list[T] = []


class IntStack(Stack[int]):
    pass


class Place(NamedTuple):
    number: int

    def next(self) -> int:
        return self.number + 1


@dataclass(frozen=True, slots=True, order=True)
class Offset:
    value: int = 0


@dataclass
class Batch:
    state: State = State.IDLE
    kept: list[int] = field(default_factory=list)


class Clock(Protocol):
    def now(self) -> int: ...


class Base(ABC):
    @abstractmethod
    def now(self) -> int: ...


class Fixed(Base, Clock):
    def now(self) -> int:
        return 7


class TooLate(Exception):
    pass


def raised() -> str:
    try:
        raise TooLate("by far")
    except TooLate as error:
        return str(error)


@pytest.mark.parametrize(
    ("use", "gives"),
    [
        (lambda: Batch().state is State.IDLE, True),
        (lambda: (Marks.SEEN | Marks.DONE).value, 3),
        (lambda: Note(text="a"), {"text": "a"}),
        (lambda: Stack().kept + IntStack().kept, []),
        (lambda: Place(3).next(), 4),
        (lambda: Offset(3) < Offset(4), True),
        (lambda: Batch().kept, []),
        (lambda: Fixed().now(), 7),
        (raised, "by far"),
    ],
)
def test_a_class_may_use_classes_of_every_kind(use: Callable[[], Any], gives: object) -> None:
    class Answer:
        def told(self) -> Any:
            return use()

    assert in_own_process(Answer, 7)().told() == gives
