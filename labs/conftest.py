"""nbval compares what is committed of a live view: its text, and not the picture, which each new drawing changes.

The Spark labs have a mark of their own: they take minutes, and `make spark-slow-test` runs them.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import nbval.kernel
import pytest

from mqlab.labs.execute import SMALL_DATA, TRUTHS_SHOWN
from mqlab.labs.kernels import with_sockets_of_its_own
from mqlab.labs.slides_page import needs_spark

PICTURE = "text/html"
TEXT = "text/plain"


os.environ.setdefault(*SMALL_DATA)
os.environ.setdefault(*TRUTHS_SHOWN)

nbval.kernel.KernelManager = with_sockets_of_its_own(nbval.kernel.KernelManager)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Where an output is committed as text alone, the picture beside it is not compared."""
    for item in items:
        if item.path.suffix == ".ipynb" and needs_spark(item.path):
            item.add_marker(pytest.mark.slow)
        cell = getattr(item, "cell", None) or {}
        kept = [set(output.get("data", ())) for output in cell.get("outputs", ())]
        if {TEXT} in kept and not any(PICTURE in data for data in kept):
            item.compare_outputs = partial(item.compare_outputs, skip_compare=(*item.parent.skip_compare, PICTURE))
