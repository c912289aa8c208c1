"""docs/fidelity.md: what mqlab has of RocketMQ, made from docs/fidelity.toml, from docstrings and from the tests.

`python -m tests.fidelity.page` writes the page. What a mechanism answers to in Java, and in what it differs, is read
from the docstring of its code (`Java: ...` and `Differs from RocketMQ: ...`), so the page and the code say the same.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "fidelity.toml"
PAGE = ROOT / "docs" / "fidelity.md"

JAVA_NAME = re.compile(r"org\.apache\.rocketmq(?:\.[a-z0-9]+)+(?:\.[A-Z]\w*)+(?:\.[a-z]\w*)?")
MODULES = (
    "auth", "broker", "client", "common", "container", "controller", "filter", "namesrv", "proxy", "store",
    "tieredstore", "tools",
)  # fmt: skip
"""Folders of the Java sources named as the first package under org.apache.rocketmq; all else is in remoting."""

DIFFERS = re.compile(r"Differs\s+from\s+RocketMQ:\s+")

HEAD = """\
# What is RocketMQ here, and what is not

Written by `python -m tests.fidelity.page` from docs/fidelity.toml, from the docstrings of the code and from the tests;
do not edit it. A Java path is that of Apache RocketMQ 5.3: module, then the file below
`src/main/java/org/apache/rocketmq`.

**same**: the same steps, numbers, texts and bytes, as far as the tests look. **simplified**: it differs as the row
says. **absent**: mqlab does not have it, for the reason in the row.
"""


SESSIONS = "Recorded sessions"
"""The area of docs/fidelity.toml that lists in what our proxy answered otherwise than the real one did: not mechanisms,
but patterns of differences with a reason, which tests/proxy compares with what it finds.
"""


class PageError(Exception):
    """A row of docs/fidelity.toml names what does not exist, or lacks what it needs."""


class Mechanism(NamedTuple):
    """One row: a mechanism of RocketMQ, where it is, how true it is, and which tests prove it."""

    area: str
    name: str
    code: tuple[str, ...]
    java: tuple[str, ...]
    status: str
    remark: str
    tests: tuple[str, ...]


def read() -> list[Mechanism]:
    """All rows in the order of the file; PageError names the first that is wrong."""
    return [
        _mechanism(area, name, row) for area, rows in _table().items() for name, row in rows.items() if area != SESSIONS
    ]


SESSIONS_HEAD = """\
Sessions of official 5.x clients (Python, Node, Java, and requests made by hand) with a real proxy were recorded message
by message. Their clients' side is said to our proxy, and its answers are compared, field by field. This is all that
differs (session: step: call field; `*` is whatever). tests/proxy/test_golden_sessions.py fails for a difference that is
not here, and for one that is here and is no more."""


class Named(NamedTuple):
    """Differences that are known: in a word, why they are there, and the patterns that name them."""

    name: str
    because: str
    differs: tuple[str, ...]


def named_differences() -> list[Named]:
    """What is known to differ in recorded sessions; PageError for a row without a reason or a pattern."""
    found = []
    for name, row in _table().get(SESSIONS, {}).items():
        if set(row) != {"because", "differs"} or not row["because"] or not row["differs"]:
            raise PageError(f"{name!r} in {SESSIONS!r} has `because` and `differs`, and nothing else")
        found.append(Named(name, str(row["because"]), tuple(row["differs"])))
    return found


def _table() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))


def _mechanism(area: str, name: str, row: dict[str, object]) -> Mechanism:
    def texts(key: str) -> tuple[str, ...]:
        value = row.get(key, [])
        return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]

    unknown = set(row) - {"absent", "code", "java", "tests"}
    if unknown:
        raise PageError(f"{name!r} has a key {sorted(unknown)[0]!r}: use code, tests, java or absent")
    absent, code, java, tests = row.get("absent", ""), texts("code"), list(texts("java")), texts("tests")
    if absent:
        if code or not java:
            raise PageError(f"{name!r} is absent: it has a `java` name and no `code`")
        return Mechanism(area, name, (), tuple(java), "absent", str(absent), tests)
    if not code or not tests:
        raise PageError(f"{name!r} needs `code` and `tests`, or a reason why it is `absent`")
    remarks = []
    for place in code:
        text = docstring(place)
        java += [found for found in JAVA_NAME.findall(text) if found not in java]
        _, *differs = DIFFERS.split(text, maxsplit=1)
        remarks += [remark.split("\n\n")[0].replace("\n", " ").strip() for remark in differs]
    if not java:
        raise PageError(f"{name!r}: the docstring of {code[0]} names no Java class (Java: org.apache.rocketmq...)")
    for test in tests:
        if test not in known_tests(test.partition("::")[0]):
            raise PageError(f"{name!r}: there is no test {test}")
    return Mechanism(area, name, code, tuple(java), "simplified" if remarks else "same", " ".join(remarks), tests)


def docstring(place: str) -> str:
    """The docstring of "package.module:Class.method" (or of "package.module"), without its indentation."""
    module_name, _, qualified = place.partition(":")
    try:
        found = importlib.import_module(module_name)
        for part in filter(None, qualified.split(".")):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise PageError(f"there is no {place}: {error}") from None
    return inspect.cleandoc(found.__doc__ or "")


@cache
def known_tests(path: str) -> frozenset[str]:
    """The node ids of the tests in a file, without their parameters."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        f"{path}::{node.name}" for node in tree.body if isinstance(node, functions) and node.name.startswith("test_")
    )


def java_path(name: str) -> str:
    """ "client/…/impl/consumer/PullRequest" of the full name of a class (or of a method in one)."""
    parts = name.split(".")[3:]
    module = parts[0] if parts[0] in MODULES else "remoting"
    first_class = next(index for index, part in enumerate(parts) if part[0].isupper())
    return f"{module}: {'/'.join(parts[: first_class + 1])}.java" + "".join(f" {p}" for p in parts[first_class + 1 :])


def page() -> str:
    """The whole page."""
    rows = read()
    counts = {status: sum(row.status == status for row in rows) for status in ("same", "simplified", "absent")}
    lines = [HEAD, f"{len(rows)} mechanisms: " + ", ".join(f"{n} {status}" for status, n in counts.items()) + "."]
    for area in dict.fromkeys(row.area for row in rows):
        lines += ["", f"## {area}", "", "| mechanism | Java | here | how true | proved by |", "|---|---|---|---|---|"]
        lines += [_row(row) for row in rows if row.area == area]
    named = named_differences()
    if named:
        lines += ["", f"## {SESSIONS}", "", SESSIONS_HEAD, "", "| what differs | why | where |", "|---|---|---|"]
        lines += [_cells(each.name, each.because, "<br>".join(f"`{one}`" for one in each.differs)) for each in named]
    return "\n".join(lines) + "\n"


def _row(row: Mechanism) -> str:
    how_true = f"**{row.status}**" + (f": {row.remark}" if row.remark else "")
    return _cells(
        row.name,
        "<br>".join(f"`{java_path(name)}`" for name in row.java),
        "<br>".join(f"`{place}`" for place in row.code) or "-",
        how_true,
        "<br>".join(f"`{test}`" for test in row.tests) or "-",
    )


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
