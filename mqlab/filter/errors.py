"""What is wrong with an expression, and what went wrong when a message was judged by it."""

from __future__ import annotations

from mqlab.errors import MqlabError


class MQFilterException(MqlabError):
    """An expression that cannot be read (org.apache.rocketmq.filter.expression.MQFilterException).

    `message` is the text that a broker gives to a client: the Java class that complained, and its words. `line` and
    `column` say where (from 1; 0 for an empty text). The text of the error shows the place below the expression.
    """

    def __init__(self, message: str, expression: str, line: int, column: int) -> None:
        lines = expression.splitlines() or [""]
        shown = lines[min(line, len(lines)) - 1] if line else lines[0]
        before = "".join(c if c == "\t" else " " for c in _up_to(shown, column))
        super().__init__(f"{message}\n  {shown}\n  {before}^")
        self.message = message
        self.expression = expression
        self.line = line
        self.column = column


TAB_SIZE = 8
"""A column counts a tab up to the next multiple of eight, as the reader of Java's parser does."""


def _up_to(text: str, column: int) -> str:
    """The characters of a line that stand before this column."""
    reached = 0
    for i, c in enumerate(text):
        reached = reached + TAB_SIZE - reached % TAB_SIZE if c == "\t" else reached + 1
        if reached >= column:
            return text[:i]
    return text


class FilterMakingError(Exception):
    """Parts that do not go together, as `'x' > 5`: `message` is what Java says; the parser adds the place."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class FilterEvaluationError(MqlabError):
    """A message that an expression cannot judge: its property is no number where one is needed.

    The text is Java's, with the class that complained. A broker takes it for "not wanted".
    """
