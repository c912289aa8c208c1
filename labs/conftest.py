"""nbval compares what is committed of a live view: its text, and not the picture, which each new drawing changes."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from mqlab.labs.execute import SMALL_DATA

PICTURE = "text/html"
TEXT = "text/plain"


os.environ.setdefault(*SMALL_DATA)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Where an output is committed as text alone, the picture beside it is not compared."""
    for item in items:
        cell = getattr(item, "cell", None) or {}
        kept = [set(output.get("data", ())) for output in cell.get("outputs", ())]
        if {TEXT} in kept and not any(PICTURE in data for data in kept):
            item.compare_outputs = partial(item.compare_outputs, skip_compare=(*item.parent.skip_compare, PICTURE))
