"""Text from outside as it can be shown and stored anywhere: names of directories, bets, errors, answers, outputs.

Whoever prints, stores or draws what a student has written takes it from here. What is left of it does nothing to a
terminal, hides nothing, turns nothing round, and can be encoded as UTF-8.
"""

from __future__ import annotations

import unicodedata
from typing import Any

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control codes, marks that turn text round or have no width, halves of surrogate pairs, separators of lines."""
_JOINERS = frozenset("\u200c\u200d")
"""Persian and the languages of India are not written without these two; they hide nothing."""
LARGEST = 10**4000
CUT = " ..."
"""Where a text was too long."""


def printable(text: str, *, lines: bool = False, most: int | None = None) -> str:
    r"""The text with what can't be seen written as Python writes it: `\x1b`, `\u202e`, `\udcff`.

    It is one line, unless `lines` keeps line breaks and tabs; longer than `most` characters it is cut off.
    """
    if most is not None and len(text) > most:
        text = text[:most] + CUT
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(each if each in kept or not _is_unseen(each) else _escaped(each) for each in text)


def all_printable(value: Any, most: int | None = None) -> Any:
    """A value as JSON has it, with every text in it, keys too, made `printable`; line breaks stay.

    An integer that Python would not write in decimal becomes a text.
    """
    if isinstance(value, str):
        return printable(value, lines=True, most=most)
    if type(value) is int and not -LARGEST < value < LARGEST:
        return printable(hex(value), most=most)
    if isinstance(value, dict):
        return {all_printable(name, most): all_printable(each, most) for name, each in value.items()}
    if isinstance(value, list | tuple):
        made = [all_printable(each, most) for each in value]
        return tuple(made) if isinstance(value, tuple) else made
    return value


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN and character not in _JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
