"""The values of an expression as Java has them: Integer, Long, Double, Boolean, String, and how texts become numbers.

An `int` is an Integer of Java, a `Long` one that was written outside of its range, a `float` a Double. Properties
are texts, always.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from mqlab.filter.errors import FilterEvaluationError

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


class Long(int):
    """A whole number of 64 bits (java.lang.Long)."""

    __slots__ = ()


Value: TypeAlias = bool | int | float | str | None
"""None is NULL: the property is not there, or nothing can be said."""

NUMBER_FORMAT = "java.lang.NumberFormatException"
CLASS_CAST = "java.lang.ClassCastException: java.lang.Boolean cannot be cast to java.lang.String"

_WHOLE = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<name>NaN|Infinity)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_BLANKS = "".join(map(chr, range(0x21)))


class NumberFormatError(ValueError):
    """A text that is no number of this kind; the text is Java's."""


def parse_whole(text: str, smallest: int, largest: int) -> int:
    """`Integer.valueOf` or `Long.valueOf`; NumberFormatError for another text, and outside of the range."""
    if _WHOLE.fullmatch(text):
        # Python refuses to read thousands of digits, and 20 without leading zeros are too many already.
        digits = text.lstrip("+-").lstrip("0")
        if len(digits) <= 20:
            number = int(text)
            if smallest <= number <= largest:
                return number
    raise NumberFormatError(f'For input string: "{text}"')


def parse_double(text: str) -> float:
    """`Double.valueOf`: blanks around it, f and d behind it, NaN, Infinity and hexadecimal numbers are fine."""
    trimmed = text.strip(_BLANKS)
    if not trimmed:
        raise NumberFormatError("empty String")
    found = _DOUBLE.fullmatch(trimmed)
    if found is None:
        raise NumberFormatError(f'For input string: "{trimmed}"')
    if found["name"]:
        number = math.nan if found["name"] == "NaN" else math.inf
    elif found["hex"]:
        try:
            number = float.fromhex(found["hex"])
        except OverflowError:
            number = math.inf
    else:
        number = float(found["decimal"])
    return -number if found["sign"] == "-" else number


def as_number_like(number: float, text: str) -> float:
    """A text as a number of the kind of `number`; NumberFormatError where it is none."""
    if isinstance(number, float):
        return parse_double(text)
    if isinstance(number, Long):
        return Long(parse_whole(text, LONG_MIN, LONG_MAX))
    return parse_whole(text, INT_MIN, INT_MAX)


def compare(left: bool | float | str, right: bool | float | str) -> int:
    """Below 0, 0 or above 0, after both have one type (ComparisonExpression.__compare); -1 for what has none.

    A text becomes what the other side is. Raises FilterEvaluationError where it cannot.
    """
    left_bool, right_bool = isinstance(left, bool), isinstance(right, bool)
    if isinstance(left, str):
        if isinstance(right, str):
            return _compare_texts(left, right)
        if right_bool:
            return int(left.lower() == "true") - int(right)
        return _compare_numbers(_number(right, left), right)
    if isinstance(right, str):
        if left_bool:
            # Java casts the wrong side.
            raise FilterEvaluationError(CLASS_CAST)
        return _compare_numbers(left, _number(left, right))
    if left_bool != right_bool:
        return -1
    return _compare_numbers(left, right)


def equals(left: Value, right: Value) -> bool:
    """`Object.equals`: values of two types are never equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and isinstance(right, float):
        return _compare_numbers(left, right) == 0
    return left == right


def _number(like: float, text: str) -> float:
    try:
        return as_number_like(like, text)
    except NumberFormatError as error:
        raise FilterEvaluationError(f"java.lang.RuntimeException: {NUMBER_FORMAT}: {error}") from None


def _compare_texts(left: str, right: str) -> int:
    first, second = left.encode("utf-16-be", "surrogatepass"), right.encode("utf-16-be", "surrogatepass")
    return (first > second) - (first < second)


def _compare_numbers(left: float, right: float) -> int:
    """As `Double.compareTo` where one side is a Double: NaN is above all, -0.0 below 0.0."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) - math.isnan(right)
        if left == right:
            return int(math.copysign(1, left) - math.copysign(1, right)) if left == 0 else 0
    return (left > right) - (left < right)


def compare_texts_as_numbers(left: str, right: str) -> int:
    """Two texts in an order are compared as Doubles; FilterEvaluationError where one is none."""
    try:
        return _compare_numbers(parse_double(left), parse_double(right))
    except NumberFormatError:
        raise FilterEvaluationError(
            "java.lang.RuntimeException: It's illegal to compare string by '>=', '>', '<', '<='. "
            f"lv={left}, rv={right}"
        ) from None


def java_text(value: Value) -> str:
    """`String.valueOf`: what Java prints for a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(number: float) -> str:
    """`Double.toString`: plain between 0.001 and ten millions, else with an exponent."""
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    size = abs(number)
    if math.isinf(size):
        return f"{sign}Infinity"
    if size == 0:
        return f"{sign}0.0"
    digits, power = _shortest_digits(size)
    if 1e-3 <= size < 1e7:
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}"
        whole = digits[: power + 1].ljust(power + 1, "0")
        return f"{sign}{whole}.{digits[power + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _shortest_digits(size: float) -> tuple[str, int]:
    """The digits that tell a positive number from its neighbours, and the power of ten of the first."""
    mantissa, _, exponent = repr(size).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    zeros = len(whole + rest) - len(digits)
    return digits.rstrip("0") or "0", len(whole) - 1 - zeros + int(exponent or 0)
