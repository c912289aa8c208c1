"""Notebooks for a Python in the browser: another kernel, and each text in one piece, as JupyterLite's pages want it."""

from __future__ import annotations

from typing import Any

KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}


def for_lite(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook as JupyterLite reads it: a server would have joined the lines of a text, and here is none."""
    cells = [_joined(cell, ("source",)) for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [_whole(output) for output in cell["outputs"]]
    return {**notebook, "cells": cells, "metadata": {**notebook["metadata"], "kernelspec": KERNEL}}


def _whole(output: dict[str, Any]) -> dict[str, Any]:
    """An output with each of its texts in one piece."""
    if "data" in output:
        return {**output, "data": _joined(output["data"], tuple(output["data"]))}
    return _joined(output, ("text",)) if "text" in output else dict(output)


def _joined(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: "".join(value) if name in names and _is_lines(value) else value for name, value in record.items()}


def _is_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)
