"""Bets: what you expect is stored before you look, and shown again beside what was seen."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from string import ascii_lowercase
from types import EllipsisType
from typing import Any

from mqlab.check import show
from mqlab.errors import LearnerError

REVEAL_MIME = "application/vnd.mqlab.reveal+json"
REVEALED_MIME = "application/vnd.mqlab.revealed+json"
Answer = str | int | float
NO_BET = "no prediction yet"
IN_THE_REPORT = "told in your report"
BET_FIRST = "bet first: write your answer in place of the dots, run that cell, and then this one again"
AFTERWARDS = " (written after the truth was shown)"
OPEN = "MQLAB_TRUTHS"
"""The environment variable with which truths are shown to whoever has bet nothing: where labs are built, compared with
what is committed, and marked."""


def _singular(unit: str) -> str:
    """ "request" of "requests"; units like ms and s have none."""
    if len(unit) <= 2:
        return unit
    return unit.removesuffix("ies") + "y" if unit.endswith("ies") else unit.removesuffix("s")


def tells_of_bets(output: Mapping[str, Any]) -> bool:
    """Whether an output of a notebook is what `reveal` shows."""
    return not {REVEAL_MIME, REVEALED_MIME}.isdisjoint(output.get("data", {}))


@dataclass(slots=True)
class Bet:
    """One question and what the student expects; `answer` is None until there is one, `truth` until it is revealed."""

    name: str
    question: str
    choices: tuple[str, ...] = ()
    unit: str = ""
    answer: Answer | None = None
    truth: Answer | None = None
    why: str = ""
    afterwards: bool = False
    """Whether the answer was written when the truth had been shown already."""

    def read(self, answer: Answer) -> Answer:
        """The answer in its proper form: the text of a choice, a number, or free text. Raises LearnerError."""
        if self.choices:
            return self._choice(answer)
        if self.unit and (isinstance(answer, bool) or not isinstance(answer, int | float)):
            raise LearnerError(
                f"{answer!r} is no prediction for {self.name!r}",
                f"write a number ({self.unit}), for example prediction=3",
            )
        return answer

    def _choice(self, answer: Answer) -> str:
        if answer in self.choices:
            return str(answer)
        letters = ascii_lowercase[: len(self.choices)]
        if isinstance(answer, str) and len(answer) == 1 and answer in letters:
            return self.choices[letters.index(answer)]
        raise LearnerError(
            f"{answer!r} is none of the choices of {self.name!r}",
            f'write one of the letters {", ".join(letters)}, for example prediction="a"',
        )

    def _with_unit(self, answer: Answer) -> str:
        unit = _singular(self.unit) if answer == 1 else self.unit
        return f"{answer} {unit}" if unit else str(answer)

    @property
    def said(self) -> str:
        """What the student has bet, as text."""
        if self.answer is None:
            return NO_BET
        return self._with_unit(self.answer) + (AFTERWARDS if self.afterwards else "")

    @property
    def seen(self) -> str:
        """What is true, as text."""
        return "not revealed yet" if self.truth is None else self._with_unit(self.truth)

    @property
    def options(self) -> str:
        """The choices, one to a line, each with its letter."""
        return "\n".join(f"({letter}) {text}" for letter, text in zip(ascii_lowercase, self.choices, strict=False))

    def __repr__(self) -> str:
        rows = [f"Before you look: {self.question}"]
        if self.options:
            rows.append(show.indent(self.options, 2))
        return "\n".join([*rows, f"  your prediction: {self.said}"])

    def _repr_html_(self) -> str:
        return show.box(
            show.BLUE,
            f"Before you look: {self.question}",
            "".join(show.line("", option) for option in self.options.splitlines()),
            show.line("your prediction:", self.said),
        )


@dataclass(frozen=True, slots=True)
class Reveal:
    """A bet beside the truth, as it is at the moment of looking."""

    bet: str
    question: str
    said: str
    seen: str
    why: str

    def __repr__(self) -> str:
        rows = [self.question, f"  you said: {self.said}", f"  it is:    {self.seen}"]
        return "\n".join([*rows, f"  why:      {self.why}"] if self.why else rows)

    def _repr_html_(self) -> str:
        return show.box(
            show.BLUE,
            self.question,
            show.line("you said:", self.said),
            show.line("it is:", self.seen),
            show.line("why:", self.why),
        )

    @property
    def facts(self) -> dict[str, str]:
        """What is shown, for programs that read the notebook: `bet` is its name, and `why` may be empty."""
        return {"bet": self.bet, "question": self.question, "said": self.said, "truth": self.seen, "why": self.why}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self._repr_html_(), REVEAL_MIME: self.facts}


@dataclass(frozen=True, slots=True)
class Revealed:
    """All bets of a notebook beside what was seen."""

    rows: tuple[Reveal, ...]

    def __repr__(self) -> str:
        if not self.rows:
            return "no predictions in this notebook"
        return "\n".join(f"{row.question}\n  you said: {row.said}\n  it is:    {row.seen}" for row in self.rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr>{_cell('td', row.question)}{_cell('td', row.said)}{_cell('td', row.seen)}</tr>"
            for row in self.rows
        )
        head = f"<tr>{_cell('th', 'question')}{_cell('th', 'you said')}{_cell('th', 'it is')}</tr>"
        return f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        facts = {"bets": [row.facts for row in self.rows]}
        return {"text/plain": repr(self), "text/html": self._repr_html_(), REVEALED_MIME: facts}


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align:left">{escape(text)}</{tag}>'


class NotebookBets:
    """The bets of one notebook, in the order of their questions. Running a cell again replaces its answer."""

    def __init__(self) -> None:
        self._by_name: dict[str, Bet] = {}
        self._shown: set[str] = set()
        """The names of those whose truth was shown to somebody."""
        self.begun: datetime | None = None
        """When the first question was asked, by the clock of this machine."""
        self.sealed = False
        """Whether truths are kept for the report: in an exam."""

    def predict(
        self,
        name: str,
        question: str,
        prediction: Answer | EllipsisType | None = ...,
        *,
        choices: Sequence[str] = (),
        unit: str = "",
    ) -> Bet:
        """Store what you expect: in place of the dots a letter (with `choices`), a number (with `unit`), or a text.

        The dots mean that there is no bet yet. Raises LearnerError for an answer that does not fit the question.
        """
        if len(choices) > len(ascii_lowercase):
            raise LearnerError(f"{name!r} has {len(choices)} choices", "give at most 26")
        self.begun = self.begun or datetime.now(UTC)
        asked = Bet(name, question, tuple(choices), unit)
        if prediction is not None and not isinstance(prediction, EllipsisType):
            asked.answer = asked.read(prediction)
        before = self._by_name.get(name)
        if before is not None and name in self._shown:
            asked.afterwards = before.afterwards or before.answer != asked.answer
        self._by_name[name] = asked
        return asked

    def reveal(self, name: str | None = None, truth: Any = None, why: str = "") -> Reveal | Revealed:
        """Show a bet beside the truth; without a name, all of them again.

        `truth` is what was seen, in the form of an answer. While there is no bet, the truth is kept back. Raises
        LearnerError when that question was not asked.
        """
        if name is None:
            return Revealed(tuple(self._beside_the_truth(shown) for shown in self._by_name.values()))
        if name not in self._by_name:
            asked = ", ".join(self._by_name) or "none yet"
            raise LearnerError(
                f"the prediction {name!r} was not asked", f"run the notebook from its top (asked so far: {asked})"
            )
        if truth is None:
            raise LearnerError(f"reveal({name!r}) has no truth to show", f"write reveal({name!r}, what_was_seen)")
        shown = self._by_name[name]
        shown.truth, shown.why = shown.read(truth), why
        return self._beside_the_truth(shown)

    def _beside_the_truth(self, shown: Bet) -> Reveal:
        if self.sealed:
            return Reveal(shown.name, shown.question, shown.said, IN_THE_REPORT, "")
        if shown.answer is None and not os.environ.get(OPEN):
            return Reveal(shown.name, shown.question, shown.said, BET_FIRST, "")
        if shown.truth is not None:
            self._shown.add(shown.name)
        return Reveal(shown.name, shown.question, shown.said, shown.seen, shown.why)

    @property
    def asked(self) -> Mapping[str, Bet]:
        """The bets so far, by name."""
        return self._by_name

    def facts(self) -> list[dict[str, Any]]:
        """Of each bet that was made its name, question and answer, what was said and, where it was shown, the truth."""
        return [
            {
                "bet": made.name,
                "question": made.question,
                "answer": made.answer,
                "said": made.said,
                "truth": made.seen if made.name in self._shown else "",
            }
            for made in self._by_name.values()
            if made.answer is not None
        ]

    def take_all(self) -> dict[str, Bet]:
        """The bets so far, by name; none are left."""
        taken, self._by_name = self._by_name, {}
        return taken

    def put_back(self, taken: dict[str, Bet]) -> None:
        """What was taken is there again, and nothing else."""
        self._by_name = taken


notebook_bets = NotebookBets()
predict = notebook_bets.predict
reveal = notebook_bets.reveal
