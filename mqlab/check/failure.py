"""A world in which somebody's function failed, to be played again without that function: with what it has answered.

The answers of a function are numbers, words and lists of them, call by call. With them, the check's name and the seed
the same world comes out anywhere, and no program of anybody's is run for it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from mqlab.check.found import Right, Wrong
from mqlab.check.patience import EndlessLoop
from mqlab.errors import LearnerError
from mqlab.lab import Lab, noting_labs

if TYPE_CHECKING:
    from mqlab.check.registry import LabCheck

Answers = list[list[Any]]
"""For each function that was given: what it has answered, in the order of its calls."""

_PLAIN = (bool, int, float, str, type(None))


_DEEPEST = 20
"""Lists in lists of an answer."""


class Failure(NamedTuple):
    """Which check has failed with which seed; `answers()` is what the functions answered then, LearnerError where that
    is no data. `actions` is how often something had been done to its world when it was opened.
    """

    check: str
    seed: int
    answers: Callable[[], Answers]
    actions: int


_failures: WeakKeyDictionary[Lab, Failure] = WeakKeyDictionary()


def note_failure(lab: Lab, check: str, seed: int, answers: Callable[[], Answers]) -> None:
    """This world is that of a failed check."""
    _failures[lab] = Failure(check, seed, answers, len(lab.actions))


def failure_of(lab: Lab) -> Failure | None:
    """The failed check of which this is the world, if it is one."""
    return _failures.get(lab)


def answers_in(check: LabCheck, given: tuple[Any, ...], seed: int) -> Answers:
    """Judge these functions once more with a seed, and note what they answer."""
    answers: Answers = []
    noted: list[Callable[..., Any]] = []
    for function in given:
        if isinstance(function, type):
            raise LearnerError(
                "a link holds what a function has answered, and this answer is a class", "share it as a notebook"
            )
        answers.append([])
        noted.append(_noting(function, answers[-1]))
    _judge(check, tuple(noted), seed)
    if any(answer is _NO_DATA for said in answers for answer in said):
        raise LearnerError(
            "a link holds numbers, words and lists, and your function has answered something else",
            "share it as a notebook",
        )
    return answers


def _noting(function: Callable[..., Any], said: list[Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        # As it is now: whoever gave a list may change it later.
        said.append(_data(answer))
        return answer

    return noted


_NO_DATA = object()


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


def _judge(check: LabCheck, given: tuple[Callable[..., Any], ...], seed: int) -> Right | Wrong | None:
    """Judge, and play the world that the judge names, if it does: what it asks then counts, too."""
    with suppress(EndlessLoop), redirect_stdout(io.StringIO()):
        found = check.judge_one(given, seed)
        if isinstance(found, Wrong) and found.world is not None:
            found.world()
        return found
    return Wrong("it does not come to an end")


def open_failure(check: LabCheck, answers: Answers, seed: int) -> Lab:
    """The world in which functions with these answers fail a check, its cursor at the end.

    LearnerError when they do not fail it, or when it plays no world.
    """
    given = tuple(_answering(iter(said)) for said in answers)
    with noting_labs(keep_history=True) as made:
        found = _judge(check, given, seed)
    if not isinstance(found, Wrong):
        raise LearnerError(f"with these answers {check.name} does not fail with seed {seed}", "ask for another link")
    lab = shown_of(made, check.name)
    note_failure(lab, check.name, seed, lambda: answers)
    return lab


def shown_of(made: list[Lab], check: str) -> Lab:
    """Of the worlds that a check has played, the newest one in which something has happened."""
    if not made:
        raise LearnerError(f"{check} plays no world", "what the verdict shows is all that there is")
    return max(reversed(made), key=lambda lab: bool(len(lab.history)))


def _answering(said: Iterator[Any]) -> Callable[..., Any]:
    def answered(*_: Any, **__: Any) -> Any:
        try:
            return next(said)
        except StopIteration:
            raise LearnerError(
                "the link has fewer answers than it is asked for", "ask for one that was made with this version"
            ) from None

    return answered
