"""Outputs that may be committed: the same on every machine, in every run, and small."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlab.labs.errors import LabError
from mqlab.labs.notebook import Notebook, code_cells
from mqlab.labs.source import place_of

LIMIT_BYTES = 200_000
IGNORED = "nbval-ignore-output"
WIDGET = "application/vnd.jupyter.widget-view+json"
TEXT = "text/plain"
_SCRIPTS = (
    "application/javascript",
    "application/vnd.bokehjs_load.v0+json",
    "application/vnd.bokehjs_exec.v0+json",
)
_LIVE = (WIDGET, "application/vnd.bokehjs_exec.v0+json")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_REFUSED = {
    "a path of this machine": re.compile(
        r"(?<![\w.-])/(?:home|Users|root|tmp|private|var/folders)/[\w.-]+|[A-Z]:\\\\?Users\\|site-packages|ipykernel_\d+"
    ),
    "an address in memory": re.compile(r"\bat 0x[0-9a-fA-F]{4,}|\b0x[0-9a-fA-F]{9,14}\b"),
    "a random id": re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b"),
}


def settle_outputs(name: str, notebook: Notebook) -> None:
    """Keep of the outputs what may be committed; raise LabError with every output that may not.

    Outputs of cells tagged `nbval-ignore-output` are not kept, since they differ from run to run. Of a widget its text
    stays, so that a new way of drawing changes no notebook. A traceback is cut to its last line: the frames name files
    of this machine.
    """
    problems: list[str] = []
    cells = code_cells(notebook)
    for at, cell in enumerate(cells):
        place = "code " + place_of(at + 1, cell["source"])
        live = any(mime in output.get("data", {}) for output in cell["outputs"] for mime in _LIVE)
        if IGNORED in cell["metadata"].get("tags", ()):
            cell["outputs"] = []
            if live and not (at + 1 < len(cells) and cells[at + 1]["outputs"]):
                problems.append(
                    f"{place}: its live picture is not kept; show a static one of the same data in the next cell"
                )
            continue
        problems += [f"{place}: {problem}" for output in cell["outputs"] for problem in _settle(output)]
        size = len(json.dumps(cell["outputs"]).encode())
        if size > LIMIT_BYTES:
            problems.append(f"{place}: its outputs have {size:,} bytes; at most {LIMIT_BYTES:,} are kept")
    counts = [cell["execution_count"] for cell in cells]
    if counts != list(range(1, len(cells) + 1)):
        problems.append(f"the cells did not run once each, from the top: {counts}")
    if problems:
        raise LabError(name, problems, "change what the cell shows; docs/labs.md says which outputs can be committed")


def _settle(output: dict[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    scripts = [mime for mime in _SCRIPTS if mime in data]
    if scripts:
        yield f"shows a script ({scripts[0]}), which is never kept; tag the cell `{IGNORED}`"
        return
    if WIDGET in data:
        for mime in [mime for mime in data if mime != TEXT]:
            del data[mime]
        if not data:
            yield "shows a widget without a twin in text; give it a text/plain"
    if output["output_type"] == "error":
        output["evalue"] = _COLOURS.sub("", output["evalue"])
        output["traceback"] = [f"{output['ename']}: {output['evalue']}"]
    for text in _texts(output):
        for what, pattern in _REFUSED.items():
            found = pattern.search(text)
            if found:
                yield f"shows {what} ({found.group()!r}), which differs from machine to machine or from run to run"
        for here in _this_machine():
            if here in text:
                yield f"shows a path of this machine ({here!r})"


def _texts(output: dict[str, Any]) -> Iterator[str]:
    """Everything readable in an output; pictures made of bytes are not."""
    yield output.get("text", "")
    yield output.get("evalue", "")
    for mime, value in sorted(output.get("data", {}).items()):
        if not mime.startswith("image/") or mime == "image/svg+xml":
            yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _this_machine() -> list[str]:
    """Directories that only this machine has; a root or a short name like /usr says nothing."""
    places = {str(Path.home()), str(Path.cwd()), sys.prefix}
    return sorted(place for place in places if place.count("/") > 1)
