"""The questions of a lab's bets, as its source says them without being run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from mqlab.check.bets import Bet
from mqlab.errors import LearnerError
from mqlab.grading.printable import printable
from mqlab.labs.source import LabSource, text_argument

LARGEST = 1e15
"""A number beyond it is counted as none."""
NO_NUMBER, NO_CHOICE, A_TEXT = "not a number", "none of the choices", "a text"
"""How is counted what nobody shall read on the wall."""


@dataclass(frozen=True, slots=True)
class Question:
    """A bet of a lab, as far as its source says it without being run."""

    lab: LabSource
    name: str
    choices: tuple[str, ...]
    """The texts of the choices; empty where they are made while the notebook runs, and for numbers."""
    unit: str
    chosen: bool
    """Whether one of some choices is asked for, whether or not their texts are known."""
    text: str
    """What is asked; what a notebook puts in while it runs is three dots."""

    @property
    def title(self) -> str:
        """The lab's number, the bet's name, and what is asked."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.lab.number} {self.name}: {self.text}{unit}"

    def answer(self, said: Any) -> str:
        """What was bet, as it is counted: of a choice its letter and text. What does not fit the question is not shown:
        a class looks on.
        """
        text = printable(" ".join(str(said).split()))
        if isinstance(said, str) and len(text) == 1 and text in ascii_lowercase[: len(self.choices)]:
            return f"{text}) {self.choices[ascii_lowercase.index(text)]}"
        if text in self.choices:
            return f"{ascii_lowercase[self.choices.index(text)]}) {text}"
        if self.choices:
            return NO_CHOICE
        if self.chosen:
            return text if isinstance(said, str) and len(text) == 1 and text in ascii_lowercase else NO_CHOICE
        if self.unit:
            return f"{said:g}" if is_number(said) else NO_NUMBER
        return A_TEXT

    def told(self, said: Any) -> str:
        """What was bet, in the words in which the notebook's `reveal` would tell it; "" where nothing was bet.

        Of a choice whose text is made while the notebook runs it is the letter, and of what does not fit the question
        what stands in the notebook.
        """
        if said is None:
            return ""
        bet = Bet(self.name, self.text, self.choices, self.unit)
        try:
            bet.answer = bet.read(said)
        except LearnerError:
            return printable(" ".join(str(said).split()))
        return printable(bet.said)


def question_of(lab: LabSource, call: ast.Call) -> Question:
    """What a call of `predict` in the lab's source asks."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    unit = next(iter(_texts(given.get("unit"))), "")
    name, choices = text_argument(call) or "", _texts(given.get("choices"))
    return Question(lab, name, choices, unit, "choices" in given, _asked(call))


def _asked(call: ast.Call) -> str:
    node = call.args[1] if len(call.args) > 1 else None
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts)


def _texts(node: ast.expr | None) -> tuple[str, ...]:
    try:
        value = ast.literal_eval(node) if node is not None else ()
    except ValueError:
        return ()
    return tuple(str(text) for text in value) if isinstance(value, list | tuple) else (str(value),)


def is_number(said: Any) -> bool:
    """Whether it is a number that can be drawn on a scale with others."""
    return isinstance(said, int | float) and not isinstance(said, bool) and -LARGEST < said < LARGEST
