"""`import mqlab` is light: it takes the standard library and sortedcontainers, and starts nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROBE = """
import json, sys
before = set(sys.modules)
{statement}
import threading
print(json.dumps([sorted(set(sys.modules) - before - {{"threading"}}), threading.active_count()]))
"""
WORKSHOPS = {"asyncio", "concurrent", "multiprocessing", "selectors", "socket", "subprocess"}
"""Parts of the standard library that a world has no use for, and that a browser's Python lacks or pays for."""

EVERYTHING = "from mqlab import *"


def loaded_by(statement: str) -> tuple[set[str], int]:
    """The top-level modules that a statement loads in a new Python, and how many threads run after it."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)], capture_output=True, text=True, check=True
    )
    modules, threads = json.loads(answer.stdout)
    return {name.partition(".")[0] for name in modules}, threads


@pytest.mark.parametrize("statement", ["import mqlab", EVERYTHING])
def test_import_loads_nothing_but_the_standard_library_and_sortedcontainers(statement: str) -> None:
    modules, _ = loaded_by(statement)
    assert modules - sys.stdlib_module_names - {"__mp_main__"} <= {"mqlab", "sortedcontainers"}


@pytest.mark.parametrize("statement", ["import mqlab", EVERYTHING])
def test_import_starts_no_thread_and_loads_no_machinery_for_them(statement: str) -> None:
    modules, threads = loaded_by(statement)
    assert modules & WORKSHOPS == set()
    assert threads == 1


def test_every_public_name_is_there() -> None:
    modules, _ = loaded_by(EVERYTHING)
    assert "mqlab" in modules
