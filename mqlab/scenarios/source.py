"""Scenarios from text: what a `%%scenario` cell holds."""

from __future__ import annotations

import linecache
import textwrap
from typing import Any

from mqlab.errors import LearnerError
from mqlab.scenarios.registry import Scenario, add

PLAY_SECONDS = 10.0


def add_from_source(
    name: str, source: str, parameters: dict[str, Any] | None = None, seconds: float = PLAY_SECONDS
) -> Scenario:
    """Make a scenario of a cell's text, written as cells are: `lab` is there, and `await` works at its top level.

    `parameters` are the scenario's parameters with their defaults; inside they are plain variables.
    """
    given = parameters or {}
    body = textwrap.indent(source.strip("\n"), "    ") or "    pass"
    keywords = "".join(f", {key}={value!r}" for key, value in given.items())
    head = f"async def scenario(lab, *{keywords}):\n" if given else "async def scenario(lab):\n"
    text = f"{head}{body}\n"
    try:
        code = compile(text, f"<scenario {name}>", "exec")
    except SyntaxError as error:
        # The text has one line more than the cell: the head of the function.
        line = (error.lineno or 1) - 1
        raise LearnerError(
            f"line {max(line, 1)} of scenario {name!r} is not Python: {error.msg}",
            "every name of mqlab is there already, without an import"
            if "import *" in error.msg
            else "correct the cell and run it again",
        ) from None
    # Tracebacks then show the cell's own lines.
    linecache.cache[code.co_filename] = (len(text), None, text.splitlines(keepends=True), code.co_filename)
    namespace: dict[str, Any] = {}
    exec(code, _names_of_mqlab(namespace))  # noqa: S102 - a cell of the user, run in their own process
    made = Scenario(name, namespace["scenario"], seconds, source)
    made.function.__doc__ = f"A scenario of a cell: {name}."
    add(made)
    return made


def _names_of_mqlab(namespace: dict[str, Any]) -> dict[str, Any]:
    import mqlab

    namespace.update({public: getattr(mqlab, public) for public in mqlab.__all__})
    return namespace
