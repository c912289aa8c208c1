"""A class in a process of its own shares nothing with its twin in another one, and works as it did."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, ClassVar

import pytest

from mqlab.check.own_process import in_own_process
from mqlab.rebalance import AllocateMessageQueueStrategy

SEEN: list[int] = []


def note(number: int) -> int:
    """A function of the module that a class below calls."""
    SEEN.append(number)
    return len(SEEN)


@cache
def once(number: int) -> list[int]:
    """What is cached lives as long as its process."""
    return [number]


class ByModule:
    def told(self) -> int:
        return note(1)


class ByAnyModule:
    def told(self) -> int:
        sys.__dict__["seen"] = sys.__dict__.get("seen", 0) + 1
        return int(sys.__dict__["seen"])


class ByImport:
    def told(self) -> int:
        import builtins

        import mqlab.lab as lab

        for module in (builtins, lab):
            vars(module)["seen"] = vars(module).get("seen", 0) + 1
        return max(builtins.seen, lab.seen)  # type: ignore[attr-defined]


class ByClass:
    seen: ClassVar[list[int]] = []

    def told(self) -> int:
        type(self).seen.append(1)
        return len(ByClass.seen)


class ByDefault:
    def told(self, seen: list[int] = []) -> int:  # noqa: B006  # the trap is the point
        seen.append(1)
        return len(seen)


class ByCache:
    def told(self) -> int:
        once(1).append(1)
        return len(once(1))


def by_closure() -> type:
    seen: list[int] = []

    class ByClosure:
        def told(self) -> int:
            seen.append(1)
            return len(seen)

    return ByClosure


@pytest.mark.parametrize("answer", [ByModule, ByAnyModule, ByImport, ByClass, ByDefault, by_closure()])
def test_what_one_process_keeps_the_other_does_not_see(answer: type[Any]) -> None:
    first, second = in_own_process(answer, 1)(), in_own_process(answer, 2)()
    assert [first.told(), first.told(), second.told(), second.told()] == [1, 2, 1, 2]
    assert SEEN == []


def test_nothing_is_cached_for_another_process() -> None:
    first, second = in_own_process(ByCache, 1)(), in_own_process(ByCache, 2)()
    assert [first.told(), second.told()] == [1, 1]


def test_two_objects_of_one_process_share_what_they_should() -> None:
    here = in_own_process(ByModule, 1)
    assert [here().told(), here().told()] == [1, 2]


class Below:
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def doubled(self) -> int:
        return 2 * self.number

    @staticmethod
    def of(number: int) -> Below:
        return Below(number)


class Above(Below):
    def __init__(self, number: int) -> None:
        super().__init__(number + 1)


def test_it_works_as_it_did() -> None:
    here = in_own_process(Above, 1)
    assert (here(4).doubled, here.of(4).number) == (10, 4)


class Hashes(AllocateMessageQueueStrategy):
    name = "HASHES"

    def divide(self, current_cid: str, mq_all: Any, cid_all: Any) -> list[Any]:
        return [hash("a text")]


def test_each_process_has_a_hash_of_its_own_and_abstract_classes_may_be_copied() -> None:
    found = [in_own_process(Hashes, salt)().divide("", [], []) for salt in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
