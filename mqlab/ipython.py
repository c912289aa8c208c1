"""`%load_ext mqlab`: the `%%scenario` cell, and errors of mqlab shown in full sentences instead of tracebacks.

Top-level `await` needs nothing of this: IPython runs such a cell on its own loop, and a `Call` plays the world without
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from mqlab.arguments import check_number
from mqlab.errors import LearnerError, MqlabError
from mqlab.views.of_parts import VIEWS


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython on `%load_ext mqlab`; calling it again changes nothing."""
    shell.register_magic_function(scenario_cell, "cell", "scenario")
    shell.set_custom_exc((MqlabError,), _show_error)
    for (module, name), view in VIEWS.items():
        _show_as(shell, module, name, view)
    if hasattr(shell, "kernel"):
        bundles = shell.display_formatter.mimebundle_formatter
        bundles.for_type_by_name("mqlab.check.verdict", "Verdict", _verdict_bundle)


def _show_as(shell: Any, module: str, name: str, view: Callable[[Any], Any]) -> None:
    """Let a notebook show the objects of a class as their view, in HTML and as text."""
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name(module, name, lambda thing: view(thing)._repr_html_())
    formatters["text/plain"].for_type_by_name(module, name, lambda thing, page, cycle: page.text(str(view(thing))))


def _verdict_bundle(verdict: Any, include: Any = None, exclude: Any = None) -> Any:
    """A failed check in a notebook is a card with a button, where there are widgets."""
    from importlib import import_module
    from importlib.util import find_spec

    if verdict.has_world and find_spec("ipywidgets") and find_spec("anywidget"):
        # By name: this module is loaded with mqlab itself, which knows nothing of the views.
        return import_module("mqlab_widgets.check_card").bundle_of(verdict)
    return verdict._repr_mimebundle_(include, exclude)


def unload_ipython_extension(shell: Any) -> None:
    """Called by IPython on `%unload_ext mqlab`."""
    shell.set_custom_exc((), None)


def scenario_cell(line: str, cell: str) -> None:
    """Make a scenario of this cell: `%%scenario NAME [seconds=10] [parameter=value ...]`.

    The cell is written as others are, with `lab` already there; it runs when the scenario is built:
    `lab = mqlab.scenarios.get("NAME").build(seed=7)`.
    """
    from mqlab.scenarios.source import PLAY_SECONDS, add_from_source

    try:
        words = shlex.split(line)
    except ValueError as error:
        raise LearnerError(f"the line of %%scenario cannot be read: {error}", "close each quote") from None
    if not words or "=" in words[0]:
        raise LearnerError("%%scenario needs a name", "write: %%scenario my-scenario messages=10")
    parameters: dict[str, Any] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise LearnerError(f"{word!r} is not a parameter", "write: %%scenario my-scenario messages=10")
        parameters[name] = _literal(value)
    seconds = parameters.pop("seconds", PLAY_SECONDS)
    check_number("seconds", seconds, "write: %%scenario my-scenario seconds=10")
    made = add_from_source(words[0], cell, parameters, float(seconds))
    print(f"scenario {made.name!r} is registered: mqlab.scenarios.get({made.name!r}).build(seed=7)")


def _literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _show_error(shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None) -> None:
    """Show where in the cells it happened, and the sentence; the inside of mqlab is left out."""
    import sys

    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(("<ipython", "<scenario")) or "ipykernel_" in code.co_filename:
            frames.append((code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    where = f" ({_place(frames[0][0], *frames[-1])})" if frames else ""
    print(f"{kind.__name__}{where}: {error}", file=sys.stderr)


def _place(this_cell: str, file: str, line: int) -> str:
    if file.startswith("<scenario"):
        return f"in the cell of {file.strip('<>')}, line {line}"
    return f"in this cell, line {line}" if file == this_cell else f"in an earlier cell, line {line}"
