"""Conditions that were put together at random are read as they were meant, and judged as three-valued logic says."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from mqlab.filter import MQFilterException, compile_filter

NAMES = st.sampled_from(["a", "b", "$c", "_d1"])
WHOLE = st.integers(-(2**31) + 1, 2**31 - 1)
TEXTS = st.text("abc'%_ \u4e2d", max_size=4)
PROPERTIES = st.dictionaries(NAMES, WHOLE.map(str))
Judge = Callable[[dict[str, str]], bool | None]


class Condition(NamedTuple):
    """A condition as text, and what it says of a message's properties."""

    text: str
    judge: Judge


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@st.composite
def words(draw: st.DrawFn, *parts: str) -> str:
    """Parts with white space and comments between them."""
    blanks = st.sampled_from([" ", "\t", "\n", "/* no */ ", "  "])
    return "".join(draw(blanks) + part for part in parts)


def order(sign: str) -> Callable[[int, int], bool]:
    signs: dict[str, Callable[[int, int], bool]] = {
        "=": lambda x, y: x == y,
        "<>": lambda x, y: x != y,
        ">": lambda x, y: x > y,
        ">=": lambda x, y: x >= y,
        "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y,
    }
    return signs[sign]


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    name, number, sign = draw(NAMES), draw(WHOLE), draw(st.sampled_from(["=", "<>", ">", ">=", "<", "<="]))
    compare = order(sign)
    text = draw(words(name, sign, str(number)))
    return Condition(text, lambda p: compare(int(p[name]), number) if name in p else None)


@st.composite
def ranges(draw: st.DrawFn) -> Condition:
    name, negated = draw(NAMES), draw(st.booleans())
    low, high = sorted(draw(st.tuples(WHOLE, WHOLE)))
    parts = (name, *(["nOT"] if negated else []), "Between", str(low), "and", str(high))
    return Condition(
        draw(words(*parts)), lambda p: (low <= int(p[name]) <= high) != negated if name in p else None
    )


@st.composite
def lists(draw: st.DrawFn) -> Condition:
    name, negated = draw(NAMES), draw(st.booleans())
    elements = draw(st.lists(TEXTS | WHOLE.map(str), min_size=1, max_size=7))
    inside = ",".join(map(quoted, elements))
    text = draw(words(name, *(["NOT"] if negated else []), "in", f"({inside})"))
    return Condition(text, lambda p: (p[name] in elements) != negated if name in p else None)


@st.composite
def parts_of_texts(draw: st.DrawFn) -> Condition:
    name, negated, search = draw(NAMES), draw(st.booleans()), draw(TEXTS | st.integers(0, 99).map(str))
    word, holds = draw(
        st.sampled_from([("contains", str.__contains__), ("StartsWith", str.startswith), ("ENDSWITH", str.endswith)])
    )
    text = draw(words(name, *(["NOT"] if negated else []), word, quoted(search)))
    return Condition(text, lambda p: name in p and search != "" and holds(p[name], search) != negated)


@st.composite
def nulls(draw: st.DrawFn) -> Condition:
    name, negated = draw(NAMES), draw(st.booleans())
    text = draw(words(name, "is", *(["not"] if negated else []), "null"))
    return Condition(text, lambda p: negated == (name in p))


CONSTANTS = st.sampled_from(
    [Condition("TRUE", lambda p: True), Condition("false", lambda p: False), Condition("Null", lambda p: None)]
)


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


@st.composite
def joined(draw: st.DrawFn, inner: st.SearchStrategy[Condition]) -> Condition:
    kind = draw(st.sampled_from(["AND", "or", "NOT"]))
    left = draw(inner)
    if kind == "NOT":
        return Condition(draw(words("not", f"({left.text})")), lambda p: opposite(left.judge(p)))
    right = draw(inner)
    text = draw(words(f"({left.text})", kind, f"({right.text})"))
    if kind == "AND":
        return Condition(text, lambda p: both(left.judge(p), right.judge(p)))
    return Condition(text, lambda p: opposite(both(opposite(left.judge(p)), opposite(right.judge(p)))))


SIMPLE = comparisons() | ranges() | lists() | parts_of_texts() | nulls() | CONSTANTS
CONDITIONS = st.recursive(SIMPLE, joined, max_leaves=8)


@given(CONDITIONS, st.lists(PROPERTIES, min_size=1, max_size=5))
def test_a_condition_means_what_three_valued_logic_says(condition: Condition, messages: list[dict[str, str]]) -> None:
    read = compile_filter("SQL92", condition.text)
    assert [read.evaluate(message) for message in messages] == [condition.judge(message) for message in messages]


SIGNS = st.lists(st.sampled_from(["AND", "OR"]), min_size=4, max_size=4)


@given(st.lists(SIMPLE, min_size=1, max_size=5), SIGNS, PROPERTIES)
def test_and_binds_tighter_than_or(parts: list[Condition], signs: list[str], message: dict[str, str]) -> None:
    text, groups = parts[0].text, [[parts[0]]]
    for part, sign in zip(parts[1:], signs, strict=False):
        text += f" {sign} {part.text}"
        if sign == "OR":
            groups.append([part])
        else:
            groups[-1].append(part)
    value: bool | None = False
    for group in groups:
        together: bool | None = True
        for part in group:
            together = both(together, part.judge(message))
        value = opposite(both(opposite(value), opposite(together)))
    assert compile_filter("SQL92", text).evaluate(message) == value


WORDS = "a b 5 5.5 'x' ( ) , + - = <> > >= < <= NOT AND OR BETWEEN IN IS NULL TRUE CONTAINS STARTSWITH . ' /* -- @"
PIECES = st.sampled_from([*WORDS.split(), "\n"])


@given(st.lists(PIECES, max_size=12).map(" ".join) | st.text(max_size=12))
def test_whatever_is_written_is_a_condition_or_is_refused_at_a_place(text: str) -> None:
    try:
        told = str(compile_filter("SQL92", text))
    except MQFilterException as refused:
        told = refused.message
        at_most = text.count("\n") + text.count("\r") + 2
        placed = 0 <= refused.line <= at_most
    else:
        placed = True
    assert told
    assert placed
