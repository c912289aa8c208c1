"""What a subscription by SQL92 wants, judged by SQLite: by somebody who has nothing to do with mqlab's own filter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_TEXT = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WORDS = frozenset(("AND", "BETWEEN", "IN", "IS", "NOT", "NULL", "OR"))
_OTHERS = frozenset(("CONTAINS", "ENDSWITH", "FALSE", "STARTSWITH", "TRUE"))
"""Words of RocketMQ's conditions that mean nothing to SQLite, or something else."""


class Condition:
    """One condition; `is_true` says whether a message with these properties is wanted.

    A property is a number where it reads as one, as in RocketMQ. The two differ where a property that is missing stands
    on the right of a `=` that is negated, and in what cannot be compared: a scenario that explores neither is judged.
    """

    def __init__(self, text: str) -> None:
        """LookupError for a condition that SQLite does not know."""
        import sqlite3

        words = dict.fromkeys(_NAME.findall(_TEXT.sub("''", text)))
        self._names = [word for word in words if word.upper() not in _WORDS]
        if not self._names or any(word.upper() in _OTHERS for word in words):
            raise LookupError(text)
        self._question = f"SELECT ({text}) FROM m"  # noqa: S608  # a scenario's own condition
        self._known: dict[tuple[str | None, ...], bool] = {}
        self._messages = sqlite3.connect(":memory:", check_same_thread=False)
        columns = ", ".join(f'"{name}" NUMERIC' for name in self._names)
        try:
            self._messages.execute(f"CREATE TABLE m ({columns})")
            self._messages.execute(self._question)
        except sqlite3.Error as error:
            raise LookupError(text) from error

    def is_true(self, properties: Mapping[str, str]) -> bool:
        """Is it true, and not just not known?"""
        values = tuple(properties.get(name) for name in self._names)
        if values not in self._known:
            run = self._messages.execute
            run("DELETE FROM m")
            run(f"INSERT INTO m VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608  # question marks alone
            self._known[values] = run(self._question).fetchone()[0] == 1
        return self._known[values]


@cache
def condition_of(text: str) -> Condition | None:
    """The condition with this text; None for one that SQLite cannot judge, which then nobody does."""
    try:
        return Condition(text)
    except LookupError:
        return None
