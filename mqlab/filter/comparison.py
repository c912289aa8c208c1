"""Comparisons: =, <>, orders, BETWEEN, IN, IS NULL, and parts of texts; and which parts do not go together.

Java: org.apache.rocketmq.filter.expression.ComparisonExpression and UnaryInExpression. What makes a comparison raises
`FilterMakingError`, with Java's words, for parts that cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.filter.errors import FilterEvaluationError, FilterMakingError
from mqlab.filter.expression import (
    BooleanConstantExpression,
    BooleanExpression,
    ConstantExpression,
    Expression,
    LogicExpression,
    Not,
    PropertyExpression,
    joined,
)
from mqlab.filter.java_values import Value, compare, compare_texts_as_numbers, equals, java_text
from mqlab.protocol.hashing import java_map_order

RUNTIME = "java.lang.RuntimeException"
CONSTANTS = (ConstantExpression, BooleanConstantExpression)


class Equal(BooleanExpression):
    """Are both the same? A text is read as what the other side is. Also `IS NULL`, which is `= NULL`.

    A left side that is missing makes it NULL, a right side that is missing makes it false, both make it true.
    """

    __slots__ = ("left", "right")

    def __init__(self, left: Expression, right: Expression) -> None:
        super().__init__(left, right)
        self.left = left
        self.right = right

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        left, right = self.left.evaluate(properties), self.right.evaluate(properties)
        if left is None:
            return True if right is None else None
        if right is None:
            return False
        return equals(left, right) or compare(left, right) == 0

    def __str__(self) -> str:
        return f"({self.left} == {self.right})"


ORDERS = {
    ">": (False, True),
    ">=": (True, True),
    "<": (False, False),
    "<=": (True, False),
}
"""Sign -> does it hold for equal values, and does it ask for the larger left side."""


class Ordered(BooleanExpression):
    """Is one side larger than the other? NULL where one is missing; two texts are compared as numbers."""

    __slots__ = ("larger", "left", "or_equal", "right", "sign")

    def __init__(self, left: Expression, sign: str, right: Expression) -> None:
        super().__init__(left, right)
        self.left = left
        self.sign = sign
        self.right = right
        self.or_equal, self.larger = ORDERS[sign]

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        if right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            order = compare_texts_as_numbers(left, right)
        else:
            order = compare(left, right)
        if order == 0:
            return self.or_equal
        return (order > 0) == self.larger

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


class PartOfText(BooleanExpression):
    """CONTAINS, STARTSWITH, ENDSWITH and their opposites: false, never NULL, for what is no text or missing.

    An empty text is in nothing, and also not "not in" anything.
    """

    __slots__ = ("negated", "part", "search", "word")

    def __init__(self, part: Expression, word: str, search: str, negated: bool) -> None:
        super().__init__(part)
        self.part = part
        self.word = word
        self.search = search
        self.negated = negated

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        value = self.part.evaluate(properties)
        if not self.search or not isinstance(value, str):
            return False
        if self.word == "CONTAINS":
            found = self.search in value
        elif self.word == "STARTSWITH":
            found = value.startswith(self.search)
        else:
            found = value.endswith(self.search)
        return found != self.negated

    def __str__(self) -> str:
        return f"({'NOT ' if self.negated else ''}{self.word} {self.part})"


class In(BooleanExpression):
    """Is a property one of these texts? NULL where it is missing."""

    __slots__ = ("_known", "elements", "negated", "part")

    def __init__(self, part: PropertyExpression, elements: list[str], negated: bool) -> None:
        super().__init__(part)
        self.part = part
        self.elements = elements
        self._known = frozenset(elements)
        self.negated = negated

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        value = self.part.evaluate(properties)
        return None if value is None else (value in self._known) != self.negated

    def __str__(self) -> str:
        elements = self.elements
        if len(elements) >= MANY_ELEMENTS:
            # A HashSet is made with room for its elements.
            elements = java_map_order(dict.fromkeys(elements), max(int(len(elements) / 0.75) + 1, 16))
        return f"{self.part} {'NOT ' if self.negated else ''}IN ( {', '.join(elements)} )"


MANY_ELEMENTS = 5
"""From so many on, Java keeps the elements of an IN in a HashSet, whose order its `toString` shows."""


def equal(left: Expression, right: Expression) -> Equal:
    """`left = right`; what is written down may not be NULL, and TRUE and FALSE on the left ask for such a right."""
    for side in (left, right):
        if isinstance(side, CONSTANTS) and side.value is None:
            raise FilterMakingError(f"{RUNTIME}: '{side}' cannot be compared.")
    if isinstance(left, BooleanConstantExpression) and isinstance(right, ConstantExpression):
        raise FilterMakingError(f"{RUNTIME}: '{left}' cannot be compared with '{right}'")
    return Equal(left, right)


def not_equal(left: Expression, right: Expression) -> Not:
    """`left <> right`."""
    return Not(equal(left, right))


def is_null(value: Expression) -> Equal:
    """`value IS NULL`."""
    return Equal(value, BooleanConstantExpression(None))


def ordered(left: Expression, sign: str, right: Expression) -> Ordered:
    """`left > right` and so on; neither side may be a condition, a text or TRUE."""
    for side in (left, right):
        is_text = isinstance(side, ConstantExpression) and isinstance(side.value, str)
        if is_text or isinstance(side, BooleanExpression):
            raise FilterMakingError(f"{RUNTIME}: Value '{side}' cannot be compared.")
    return Ordered(left, sign, right)


def between(value: Expression, low: Expression, high: Expression) -> LogicExpression:
    """`value BETWEEN low AND high`; two values that were written down may not be in the wrong order."""
    if isinstance(low, CONSTANTS) and isinstance(high, CONSTANTS):
        if low.value is None or high.value is None:
            raise FilterMakingError(f"{RUNTIME}: Illegal values of between, values can not be null!")
        try:
            order = compare(high.value, low.value)
        except FilterEvaluationError as error:
            raise FilterMakingError(str(error)) from None
        if order < 0:
            raise FilterMakingError(
                f"{RUNTIME}: Illegal values of between, left value({java_text(low.value)}) "
                f"must less than or equal to right value({java_text(high.value)})"
            )
    return joined(ordered(value, ">=", low), ordered(value, "<=", high), decides=False)


def not_between(value: Expression, low: Expression, high: Expression) -> LogicExpression:
    """`value NOT BETWEEN low AND high`."""
    return joined(ordered(value, "<", low), ordered(value, ">", high), decides=True)


def in_list(value: Expression, elements: list[str], negated: bool) -> In:
    """`value IN ('a', 'b')`, for a property only."""
    if not isinstance(value, PropertyExpression):
        raise FilterMakingError(f"{RUNTIME}: Expected a property for In expression, got: {value}")
    return In(value, elements, negated)
