"""Numbers of a student's own: drawn from the seed, so that another student's answers are other ones.

    draw = draws_for(seed)
    limit = draw.between("limit", 12, 40)
    brokers = draw.one_of("brokers", [2, 3, 4])
    say(f"The limit is {limit}, and there are {brokers} brokers.")

Each draw has a name and depends on nothing but the seed and the name: a draw that is added, moved or taken out changes
no other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

from mqlab.errors import LearnerError

T = TypeVar("T")


class Draws:
    """What one seed draws, by name."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def between(self, name: str, lowest: int, highest: int, step: int = 1) -> int:
        """A whole number from `lowest` to `highest`, both included, in steps."""
        if step < 1 or highest < lowest:
            raise LearnerError(f"there is no number from {lowest} to {highest} in steps of {step}", "turn them round")
        return lowest + step * self._below(name, (highest - lowest) // step + 1)

    def one_of(self, name: str, values: Sequence[T]) -> T:
        """One of the values."""
        if not values:
            raise LearnerError(f"the draw {name!r} has nothing to choose from", "give it some values")
        return values[self._below(name, len(values))]

    def shuffled(self, name: str, values: Sequence[T]) -> list[T]:
        """The values in another order."""
        left, drawn = list(values), []
        while left:
            drawn.append(left.pop(self._below(f"{name}/{len(left)}", len(left))))
        return drawn

    def _below(self, name: str, count: int) -> int:
        digest = blake2b(f"{self._seed}/{name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % count


def draws_for(seed: int) -> Draws:
    """The draws of a seed: `draw = draws_for(seed)`, in the cell behind that with the seed."""
    return Draws(seed)


@dataclass(frozen=True, slots=True)
class Said:
    """A text with numbers in it that looks like the texts around it."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def say(text: str) -> Said:
    """Show a text (Markdown) that was written with the variables of the lab, as the last line of a cell.

    Text cells cannot hold variables: `say(f"The limit is **{limit}**.")` stands in for one.
    """
    return Said(text)
