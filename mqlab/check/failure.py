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

from mqlab.check.found import Wrong
from mqlab.check.patience import EndlessLoop
from mqlab.errors import LearnerError
from mqlab.lab import Lab, noting_labs

if TYPE_CHECKING:
    from mqlab.check.registry import LabCheck

Answers = list[list[Any]]
"""For each function that was given: what it has answered, in the order of its calls."""

MOST_ANSWERS = 20_000
_PLAIN = (bool, int, float, str, type(None))


class Failure(NamedTuple):
    """Which check has failed with which seed; `answers()` is what the functions answered then, LearnerError where that
    is no data.
    """

    check: str
    seed: int
    answers: Callable[[], Answers]


_failures: WeakKeyDictionary[Lab, Failure] = WeakKeyDictionary()


def note_failure(lab: Lab, failure: Failure) -> None:
    """This world is that of a failed check."""
    _failures[lab] = failure


def failure_of(lab: Lab) -> Failure | None:
    """The failed check of which this is the world, if it is one."""
    return _failures.get(lab)


def answers_in(check: LabCheck, given: tuple[Any, ...], seed: int) -> Answers:
    """Judge these functions once more with a seed, and note what they answer."""
    answers: Answers = []
    noted = []
    for function in given:
        if isinstance(function, type):
            raise LearnerError(
                "a link holds what a function has answered, and this answer is a class", "share it as a notebook"
            )
        answers.append([])
        noted.append(_noting(function, answers[-1]))
    with suppress(EndlessLoop):
        check.judge_one(tuple(noted), seed)
    if not all(_is_data(answer) for said in answers for answer in said):
        raise LearnerError(
            "a link holds numbers, words and lists, and your function has answered something else",
            "share it as a notebook",
        )
    return answers


def _noting(function: Callable[..., Any], said: list[Any]) -> Callable[..., Any]:
    def noted(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        said.append(answer)
        return answer

    return noted


def _is_data(value: object) -> bool:
    """Whether it is the same after it was written as JSON."""
    if type(value) is list:
        return all(map(_is_data, value))
    if type(value) is dict:
        return all(type(key) is str and _is_data(one) for key, one in value.items())
    return type(value) in _PLAIN


def open_failure(check: LabCheck, answers: Answers, seed: int) -> Lab:
    """The world in which functions with these answers fail a check, its cursor at the end.

    LearnerError when they do not fail it, or when it plays no world.
    """
    given = tuple(_answering(iter(said)) for said in answers)
    with noting_labs(keep_history=True) as made, suppress(EndlessLoop), redirect_stdout(io.StringIO()):
        found = check.judge_one(given, seed)
        if isinstance(found, Wrong) and found.world is not None:
            found.world()
    if not isinstance(found, Wrong):
        raise LearnerError(f"with these answers {check.name} does not fail with seed {seed}", "ask for another link")
    lab = shown_of(made, check.name)
    note_failure(lab, Failure(check.name, seed, lambda: answers))
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
            raise LearnerError("the link has no more answers", "it was made with another version, or changed") from None

    return answered
