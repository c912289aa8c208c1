"""Boards that have followed a history up to a place in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from mqlab import Lab
from mqlab_widgets.boards.board import Board, Fold

B = TypeVar("B", bound=Board)


def folded(kind: type[B], lab: Lab, place: int | None = None) -> B:
    """A board behind so many events of a world, or behind all of them."""
    board = kind(lab)
    Fold(lab.history, [board]).go_to(len(lab.history) if place is None else place)
    return board


def expect_the_same_whichever_way(lab: Lab, kinds: Sequence[type[Board]], places: Iterable[int]) -> None:
    """Boards that go from one of these places to the next show there what fresh ones do."""
    there = Fold(lab.history, [kind(lab) for kind in kinds])
    for place in places:
        there.go_to(place)
        for kind, mine in zip(kinds, there.boards, strict=True):
            fresh = folded(kind, lab, place)
            assert mine.text() == fresh.text()
            assert mine.html() == fresh.html()
