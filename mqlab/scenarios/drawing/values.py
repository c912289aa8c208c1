"""What a setting of a drawn world may be: a whole number within bounds, one of a few words, or a name."""

from __future__ import annotations

import re
from typing import NamedTuple

Value = int | str | bool

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_|*-]*|\*")
TRUTHS = {"true": True, "false": False}


class Number(NamedTuple):
    """A whole number from `least` to `most`; a seed draws one of `drawn`."""

    least: int
    most: int
    drawn: tuple[int, ...]

    @property
    def allowed(self) -> str:
        """What is legal, in words."""
        return f"a whole number from {self.least:,} to {self.most:,}"

    def value(self, text: str) -> Value:
        """The number in a text; ValueError if it is none, or not legal."""
        number = int(text)
        if not self.least <= number <= self.most:
            raise ValueError(text)
        return number


class Words(NamedTuple):
    """One of a few words, each of which a seed draws, the more often the more often it is there.

    `true` and `false` are the two values of a switch.
    """

    drawn: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """What is legal, in words."""
        return " or ".join(dict.fromkeys(self.drawn))

    def value(self, text: str) -> Value:
        """The word, or the value of a switch; ValueError for any other text."""
        if text not in self.drawn:
            raise ValueError(text)
        return TRUTHS.get(text, text)


class Name(NamedTuple):
    """A name: of a topic, or tags as a subscription writes them."""

    drawn: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """What is legal, in words."""
        return f"a name, like {self.drawn[0]}"

    def value(self, text: str) -> Value:
        """The name; ValueError for a text that is none."""
        if not NAME.fullmatch(text):
            raise ValueError(text)
        return text


Legal = Number | Words | Name
SWITCH = Words(("true", "false"))


def number(least: int, most: int, *drawn: int) -> Number:
    """A whole number from `least` to `most`, of which a seed draws one of `drawn`."""
    return Number(least, most, drawn)


def words(*drawn: str) -> Words:
    """One of these words."""
    return Words(drawn)


def value_text(value: Value) -> str:
    """A value as a line of a world writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
