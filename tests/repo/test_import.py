"""`import mqlab` is light: it takes the standard library alone, and starts nothing."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

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


FIRST_CELL = "import mqlab; from mqlab import Lab, Message, ConsumeConcurrentlyStatus"


def all_loaded_by(statement: str) -> tuple[set[str], int]:
    """The modules that a statement loads in a new Python, and how many threads run after it."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)], capture_output=True, text=True, check=True
    )
    modules, threads = json.loads(answer.stdout)
    return set(modules), threads


def loaded_by(statement: str) -> tuple[set[str], int]:
    """The same with the top-level modules alone."""
    modules, threads = all_loaded_by(statement)
    return {name.partition(".")[0] for name in modules}, threads


@pytest.mark.parametrize("statement", ["import mqlab", EVERYTHING])
def test_import_loads_nothing_but_the_standard_library(statement: str) -> None:
    modules, _ = loaded_by(statement)
    assert modules - sys.stdlib_module_names - {"__mp_main__"} <= {"mqlab"}


@pytest.mark.parametrize("statement", ["import mqlab", EVERYTHING])
def test_import_starts_no_thread_and_loads_no_machinery_for_them(statement: str) -> None:
    modules, threads = loaded_by(statement)
    assert modules & WORKSHOPS == set()
    assert threads == 1


def test_every_public_name_is_there() -> None:
    modules, _ = loaded_by(EVERYTHING)
    assert "mqlab" in modules


def test_a_first_cell_leaves_out_what_it_may_never_use() -> None:
    modules, _ = all_loaded_by(FIRST_CELL)
    heavy = {"mqlab.views", "mqlab.lab.inspectors", "mqlab.scenarios", "mqlab.explore", "mqlab.broker"}
    heavy |= {"mqlab.trace.events.broker", "mqlab.protocol.headers.pop", "html", "difflib", "pathlib", "hashlib"}
    pulling = {f"mqlab.client.consumer.default_{kind}_consumer" for kind in ("mq_pull", "lite_pull")}
    assert "mqlab.lab" in modules
    assert modules & (heavy | pulling | {"statistics"}) == set()


PUSH_WORLD = "from mqlab import scenarios; scenarios.get('steady-load').play(seconds=2)"
UNASKED = tuple(
    f"mqlab.{part}." for part in ("proxy", "rpc", "protocol.v2", "client.v5", "client.consumer.pop", "broker.pop")
)
"""Packages of which such a world has nothing."""


def test_a_world_of_push_loads_neither_proxies_nor_pop() -> None:
    modules, _ = all_loaded_by(PUSH_WORLD)
    assert {"mqlab.broker", "mqlab.scenarios.popping", "mqlab.client.consumer.push.pull_loop"} <= modules
    assert [name for name in sorted(modules) if f"{name}.".startswith(UNASKED)] == []


@pytest.mark.parametrize("part", ["mqlab", "mqlab.client", "mqlab.views"])
def test_names_that_are_imported_when_first_used_are_public_and_there(part: str) -> None:
    module = importlib.import_module(part)
    later = getattr(module, "_LATER", None) or module._HOME
    assert set(later) <= set(module.__all__)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert set(later) <= set(vars(module)), "what was asked for once is not looked for again"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018  # the access is what is tested


def test_a_header_of_any_area_is_found_by_its_name() -> None:
    headers = importlib.import_module("mqlab.protocol.headers")
    table = importlib.import_module("mqlab.protocol.headers.table")
    for header in {*table.REQUEST_HEADERS.values(), *table.RESPONSE_HEADERS.values()}:
        assert getattr(headers, header.__name__) is header
    with pytest.raises(AttributeError, match="has no attribute 'NothingRequestHeader'"):
        headers.NothingRequestHeader  # noqa: B018  # the access is what is tested


def test_every_header_belongs_to_a_code() -> None:
    table = importlib.import_module("mqlab.protocol.headers.table")
    known = {*table.REQUEST_HEADERS.values(), *table.RESPONSE_HEADERS.values()}
    areas = {importlib.import_module(header.__module__) for header in known}
    assert {value for area in areas for name, value in vars(area).items() if name.endswith("Header")} <= known


@pytest.mark.parametrize("part", ["mqlab.protocol", "mqlab.protocol.headers"])
def test_a_package_of_areas_has_what_they_have_and_nothing_else(part: str) -> None:
    package = importlib.import_module(part)
    tree = ast.parse(Path(package.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    areas = [node.module for node in imports if node.module and node.module.startswith(f"{part}.")]
    assert len(areas) >= 8
    for area in areas:
        home = importlib.import_module(area)
        own = [name for name, value in vars(home).items() if getattr(value, "__module__", "") == area]
        for name in [name for name in own if not name.startswith("_")]:
            assert getattr(package, name) is getattr(home, name)
            assert name in vars(package), "what was asked for once is not looked for again"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018  # the access is what is tested
