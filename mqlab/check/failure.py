"""A failed check and its world, which can be played again: by the functions that have failed, or by what they answered.

The answers of a function are numbers, words and lists of them, call by call. With them, the check's name and the seed
the same world comes out anywhere, and no program of anybody's is run for it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from mqlab.check.found import Right, Wrong
from mqlab.check.patience import EndlessLoop
from mqlab.errors import LearnerError
from mqlab.lab import Lab, noting_labs

if TYPE_CHECKING:
    from mqlab.check.registry import LabCheck

Answers = list[list[Any]]
"""For each function that was given: what it has answered, in the order of its calls."""

_PLAIN = (bool, int, float, str, type(None))
_NO_DATA = object()
_DEEPEST = 20
"""Lists in lists of an answer."""


class Failure:
    """A check that has failed with a seed: with these functions, or (`said`) with functions that answered so."""

    def __init__(
        self, check: LabCheck, seed: int, given: tuple[Any, ...] = (), said: Answers | None = None
    ) -> None:
        self.check = check
        self.seed = seed
        self.actions = 0
        """How often something had been done to its world when it was opened."""
        self._given = given
        self._said = said

    @property
    def name(self) -> str:
        """Of the check."""
        return self.check.name

    def open(self) -> Lab:
        """Play it once more: the newest of the check's worlds in which something has happened, its cursor at the end.

        LearnerError when it plays no world, or when these answers do not fail.
        """
        given = self._given if self._said is None else tuple(_answering(iter(said)) for said in self._said)
        with noting_labs(keep_history=True) as made:
            found = self._judge(given)
        if self._said is not None and not isinstance(found, Wrong):
            raise LearnerError(
                f"with these answers {self.name} does not fail with seed {self.seed}", "ask for another link"
            )
        if not made:
            raise LearnerError(f"{self.name} plays no world", "what the verdict shows is all that there is")
        lab = max(reversed(made), key=lambda lab: bool(len(lab.history)))
        lab.failure, self.actions = self, len(lab.actions)
        return lab

    def answers(self) -> Answers:
        """What the functions answer when they are judged once more. LearnerError where that is no data."""
        if self._said is not None:
            return self._said
        if any(isinstance(function, type) for function in self._given):
            raise LearnerError(
                "a link holds what a function has answered, and this answer is a class", "share it as a notebook"
            )
        answers: Answers = [[] for _ in self._given]
        self._judge(tuple(map(_noting, self._given, answers)))
        if any(answer is _NO_DATA for said in answers for answer in said):
            raise LearnerError(
                "a link holds numbers, words and lists, and your function has answered something else",
                "share it as a notebook",
            )
        return answers

    def _judge(self, given: tuple[Any, ...]) -> Right | Wrong | None:
        """Judge, and play the world that the judge names, if it does: what it asks then counts, too."""
        with suppress(EndlessLoop), redirect_stdout(io.StringIO()):
            found = self.check.judge_one(given, self.seed)
            if isinstance(found, Wrong) and found.world is not None:
                found.world()
            return found
        return Wrong("it does not come to an end")


def _noting(function: Callable[..., Any], said: list[Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        # As it is now: whoever gave a list may change it later.
        said.append(_data(answer))
        return answer

    return noted


def _data(value: object, depth: int = 0) -> object:
    """A copy of a value that is the same after it was written as JSON; of another one, `_NO_DATA`."""
    if depth > _DEEPEST:
        return _NO_DATA
    if type(value) is list:
        items = [_data(one, depth + 1) for one in value]
        return _NO_DATA if any(one is _NO_DATA for one in items) else items
    if type(value) is dict:
        named = {key: _data(one, depth + 1) for key, one in value.items()}
        fits = all(type(key) is str and one is not _NO_DATA for key, one in named.items())
        return named if fits else _NO_DATA
    return value if type(value) in _PLAIN else _NO_DATA


def _answering(said: Iterator[Any]) -> Callable[..., Any]:
    def answered(*_: Any, **__: Any) -> Any:
        try:
            return next(said)
        except StopIteration:
            raise LearnerError(
                "the link has fewer answers than it is asked for", "ask for one that was made with this version"
            ) from None

    return answered
