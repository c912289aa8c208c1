"""The tree of a condition. Each node gives a value for the properties of one message; NULL (None) means "not known".

`str()` of a node is Java's `toString`, which stands in error texts. Nodes that are true, false or not known are
`BooleanExpression`s; only these may stand where a condition is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.filter.java_values import Long, Value, java_text


class Expression:
    """Something that has a value for each message (org.apache.rocketmq.filter.expression.Expression)."""

    __slots__ = ("depth",)

    def __init__(self, *parts: Expression) -> None:
        self.depth: int = 1 + max((part.depth for part in parts), default=0)

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        """The value for a message with these properties; FilterEvaluationError where there can be none."""
        raise NotImplementedError(f"{type(self).__name__} must define evaluate()")


class BooleanExpression(Expression):
    """An expression that is true, false or not known."""

    __slots__ = ()


class PropertyExpression(Expression):
    """A property by its name; NULL where the message has none."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        return properties.get(self.name)

    def __str__(self) -> str:
        return self.name


class ConstantExpression(Expression):
    """A number or a text that was written down."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        return self.value

    def __str__(self) -> str:
        return constant_text(self.value)


class BooleanConstantExpression(BooleanExpression):
    """TRUE, FALSE or NULL."""

    __slots__ = ("value",)

    def __init__(self, value: bool | None) -> None:
        super().__init__()
        self.value = value

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        return self.value

    def __str__(self) -> str:
        return constant_text(self.value)


def constant_text(value: Value) -> str:
    """A value as it is written in an expression."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return java_text(value)


class BooleanCast(BooleanExpression):
    """A property that stands alone as a condition: properties are texts, so it is false, or NULL if it is missing."""

    __slots__ = ("part",)

    def __init__(self, part: PropertyExpression) -> None:
        super().__init__(part)
        self.part = part

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        return None if self.part.evaluate(properties) is None else False

    def __str__(self) -> str:
        return str(self.part)


class Not(BooleanExpression):
    """The opposite; not known stays not known."""

    __slots__ = ("part",)

    def __init__(self, part: BooleanExpression) -> None:
        super().__init__(part)
        self.part = part

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        value = self.part.evaluate(properties)
        return None if value is None else not value

    def __str__(self) -> str:
        return f"(NOT {self.part})"


class Negate(Expression):
    """A number with the other sign; NULL for whatever is none, and so for every property."""

    __slots__ = ("part",)

    def __init__(self, part: Expression) -> None:
        super().__init__(part)
        self.part = part

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        value = self.part.evaluate(properties)
        if value is None or isinstance(value, bool | str):
            return None
        return Long(-value) if isinstance(value, Long) else -value

    def __str__(self) -> str:
        return f"(- {self.part})"


class LogicExpression(BooleanExpression):
    """Conditions that are joined by AND or by OR, looked at from the left until one of them decides.

    `decides` is the value that decides: FALSE of an AND, TRUE of an OR. Else one that is not known makes all not known.
    """

    __slots__ = ("decides", "parts")

    def __init__(self, parts: list[BooleanExpression], decides: bool) -> None:
        super().__init__(*parts)
        self.parts = parts
        self.decides = decides

    def evaluate(self, properties: Mapping[str, str]) -> Value:
        unknown = False
        for part in self.parts:
            value = part.evaluate(properties)
            if value is None:
                unknown = True
            elif value == self.decides:
                return self.decides
        return None if unknown else not self.decides

    def __str__(self) -> str:
        sign = "||" if self.decides else "&&"
        first, *others = map(str, self.parts)
        return "(" * len(others) + first + "".join(f" {sign} {other})" for other in others)


def joined(left: BooleanExpression, right: BooleanExpression, *, decides: bool) -> LogicExpression:
    """LogicExpression.createAND (decided by False) and createOR (by True).

    A chain of either becomes one node: it means the same, and however long it is, it is not deep.
    """
    if isinstance(left, LogicExpression) and left.decides == decides:
        return LogicExpression([*left.parts, right], decides)
    return LogicExpression([left, right], decides)
