"""Whether a row's numbers stand in its tests: a constant that no test names is not proved by them.

A number counts when a cited test, or what it uses of its own file, has it as a literal (in any unit), in a text, in its
name, or as the value of a response code that it names.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mqlab.protocol.codes import ResponseCode

ROOT = Path(__file__).parents[2]

NUMBER = re.compile(
    r"(?<![\w.%-])(\d[\d,]*(?:\.\d+)?)(?:[ -]?(us|ms|s|min|minutes?|hours?|h|days?|KiB|MiB|GiB)\b)?(?![\w%]|\.\d)"
)
_HOUR = (1, 60, 3_600, 3_600_000)
_MINUTE = (1, 60, 60_000, 60_000_000)
UNITS: dict[str, tuple[int, ...]] = {
    "ms": (1, 1_000),
    "s": (1, 1_000, 1_000_000),
    "min": _MINUTE, "minute": _MINUTE, "minutes": _MINUTE,
    "h": _HOUR, "hour": _HOUR, "hours": _HOUR,
    "day": (1, 24), "days": (1, 24),
    "KiB": (1, 1_024),
    "MiB": (1, 1_024, 1_024**2),
    "GiB": (1, 1_024**3),
}  # fmt: skip
"""Unit -> what a number in it may be multiplied with where code has it in a smaller one."""

WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "sixteen": 16, "eighteen": 18, "twenty": 20, "thirty": 30,
    "sixty": 60, "second": 1, "minute": 1, "hour": 1,
}  # fmt: skip

LENIENT = 1.003
"""A test may allow a little more than the number: 20,050 ms where the row says 20 s."""

_SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow}


def numbers_of(text: str) -> Iterator[tuple[str, set[float]]]:
    """Each number of a sentence as it is written, with what it may be in code."""
    for found in NUMBER.finditer(text):
        number = float(found[1].replace(",", ""))
        yield found[0], {number * factor for factor in UNITS.get(found[2] or "", (1,))}


def missing_numbers(text: str, tests: tuple[str, ...]) -> list[str]:
    """The numbers of a sentence that none of the tests ("path::name") has."""
    known: set[float] = set()
    for test in tests:
        path, _, name = test.partition("::")
        known |= _numbers_in(path, name)
    return [
        written
        for written, meant in numbers_of(text)
        if not any(number <= value <= number * LENIENT for number in meant for value in known)
    ]


@cache
def _definitions(path: str) -> dict[str, ast.AST]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined: dict[str, ast.AST] = {node.name: node for node in ast.walk(tree) if isinstance(node, functions)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            defined |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined[node.target.id] = node
    return defined


@cache
def _numbers_in(path: str, name: str) -> frozenset[float]:
    """All numbers in a function or constant of a file, and in what it uses of that file."""
    defined = _definitions(path)
    found: set[float] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        place = waiting.pop()
        if place in seen or place not in defined:
            continue
        seen.add(place)
        found |= {WORDS[word] for word in place.split("_") if word in WORDS}
        found |= {float(digits) for digits in re.findall(r"\d+", place)}
        for node in ast.walk(defined[place]):
            found |= _literals(node)
            if isinstance(node, ast.Name):
                waiting.append(node.id)
            elif isinstance(node, ast.Attribute):
                waiting.append(node.attr)
                if node.attr in ResponseCode.__members__:
                    found.add(float(ResponseCode[node.attr]))
    return frozenset(found)


def _literals(node: ast.AST) -> set[float]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return {float(node.value)}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {float(digits.replace(",", "")) for digits in re.findall(r"\d[\d,]*(?:\.\d+)?", node.value)}
    if isinstance(node, ast.BinOp):
        value = _computed(node)
        return set() if value is None else {value}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        end = _computed(node.args[-1])
        return set() if end is None else {end - 1}
    return set()


def _computed(node: ast.AST) -> float | None:
    """The value of an expression of literals, like 4 * 1024 * 1024."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        left, right = _computed(node.left), _computed(node.right)
        return None if left is None or right is None else float(_SUMS[type(node.op)](left, right))
    return None
