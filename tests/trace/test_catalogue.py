"""The index of event kinds."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from mqlab.errors import LearnerError
from mqlab.trace import catalogue, events
from mqlab.trace.bus import COMMON_FIELDS
from mqlab.trace.catalogue import CATALOGUE, CatalogueError
from mqlab.trace.events.broker import PullHeld, PullWoken

ROOT = Path(__file__).parents[2]


def area(name: str, **kinds: Any) -> ModuleType:
    """A file of events that is only made for a test: kind name -> list of (field, type)."""
    module = ModuleType(f"events.{name}")
    for kind, fields in kinds.items():
        made = NamedTuple(kind, fields)  # type: ignore[misc]
        made.__module__ = module.__name__
        setattr(module, kind, made)
    return module


def test_every_file_of_events_is_in_the_index() -> None:
    files = {module.name for module in pkgutil.iter_modules(events.__path__)}
    assert files == set(catalogue.AREAS)


def test_kinds_stand_in_the_order_of_their_files() -> None:
    names = list(CATALOGUE)
    assert names[0] == "NodeStarted"
    assert names.index("PullHeld") + 1 == names.index("PullWoken")
    assert CATALOGUE["PullHeld"] is PullHeld


def test_the_fields_of_a_kind_come_by_name_or_class() -> None:
    assert catalogue.fields_of("PullHeld") == catalogue.fields_of(PullHeld) == PullHeld._fields
    assert catalogue.columns_of(PullHeld) == COMMON_FIELDS + PullHeld._fields


def test_every_field_has_one_type_and_every_kind_is_explained() -> None:
    types = catalogue.field_types()
    assert types["topic"] == "str"
    assert types["queue_offset"] == "int"
    assert set(types.values()) <= {"int", "str", "bool"}
    for kind in CATALOGUE:
        assert catalogue.about(kind).endswith("."), kind
        assert not catalogue.about(kind).startswith(f"{kind}("), f"{kind} has no docstring"


def test_a_field_with_two_types_is_refused_with_both_places() -> None:
    kinds = catalogue.index(
        [area("broker", Held=[("group", str)]), area("client", Pulled=[("size", int), ("group", int)])]
    )
    with pytest.raises(
        CatalogueError, match=r"'group' is str in broker.py:Held.group and int in client.py:Pulled.group"
    ):
        catalogue.types_of_fields(kinds)


@pytest.mark.parametrize(
    ("field", "kind", "reason"),
    [
        ("node", str, "every event has already"),
        ("cause", int, "every event has already"),
        ("delay", float, "must be int, str or bool"),
    ],
)
def test_a_field_that_no_trace_can_hold_is_refused(field: str, kind: type, reason: str) -> None:
    with pytest.raises(CatalogueError, match=reason):
        catalogue.types_of_fields(catalogue.index([area("broker", Held=[(field, kind)])]))


def test_two_kinds_of_one_name_are_refused_with_both_places() -> None:
    with pytest.raises(CatalogueError, match=r"two event kinds are called Held: broker.py:Held and client.py:Held"):
        catalogue.index([area("broker", Held=[]), area("client", Held=[])])


def test_an_unknown_kind_is_answered_with_what_comes_near() -> None:
    with pytest.raises(LearnerError, match="did you mean PullHeld"):
        catalogue.kind_name("PullHold")
    with pytest.raises(LearnerError, match="did you mean topic"):
        catalogue.check_field("topik", "PullHeld")
    with pytest.raises(LearnerError, match="no event has a field 'colour'"):
        catalogue.check_field("colour")


class Code(IntEnum):
    FOUND = 0


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (("g", "t", 0, 0, Code.FOUND, 1, "c"), "PullHeld.hold_ms is .*, a Code; it must be exactly int"),
        (("g", "t", 0, 0, True, 1, "c"), "PullHeld.hold_ms is True, a bool"),
        (("g", None, 0, 0, 1, 1, "c"), "PullHeld.topic is None"),
        (("g", "t"), "has 10 atoms instead of 15"),
    ],
)
def test_a_row_that_does_not_keep_its_promise_is_found(event: tuple[Any, ...], reason: str) -> None:
    catalogue.check_row((1, 0, 5, "broker-a", "x", -1, -1, "PullHeld", "g", "t", 0, 0, 15_000, 1, "c"))
    with pytest.raises(CatalogueError, match=reason):
        catalogue.check_row((1, 0, 5, "broker-a", "x", -1, -1, "PullHeld", *event))


def test_the_schema_names_every_kind_and_field() -> None:
    schema = json.loads(catalogue.schema_text())
    assert schema["version"] == catalogue.SCHEMA_VERSION
    assert [column["name"] for column in schema["common"]] == list(COMMON_FIELDS)
    assert schema["fields"] == dict(catalogue.field_types())
    woken = next(kind for kind in schema["kinds"] if kind["name"] == "PullWoken")
    assert woken["area"] == "broker"
    assert woken["fields"] == list(PullWoken._fields)


@pytest.mark.parametrize(
    ("path", "text"), [("docs/events.md", catalogue.page()), ("datasets/schema.json", catalogue.schema_text())]
)
def test_what_is_generated_is_up_to_date(path: str, text: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text, "run: python -m mqlab.trace.catalogue"


def test_the_index_is_written_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "datasets").mkdir()
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "mqlab.trace.catalogue"],
        cwd=tmp_path,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert (tmp_path / "docs/events.md").read_text(encoding="utf-8") == catalogue.page()
    assert (tmp_path / "datasets/schema.json").read_text(encoding="utf-8") == catalogue.schema_text()


def test_the_command_says_where_it_wants_to_be_run(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="in the root of the repository"):
        catalogue.main(str(tmp_path))
