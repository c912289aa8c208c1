"""Keys of code: which changes make tables anew, and which do not."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import mqlab_spark
from mqlab_spark import code_keys

TABLE = """\"\"\"A table.\"\"\"

from mqlab_spark.odd_helper import RATE

LIMIT = 3
\"\"\"What nobody exceeds.\"\"\"


def query(rows: int) -> int:
    \"\"\"So many.\"\"\"
    return rows * RATE + LIMIT
"""
HELPER = "RATE = 2\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory whose modules belong to mqlab_spark."""
    monkeypatch.setattr(mqlab_spark, "__path__", [*mqlab_spark.__path__, str(tmp_path)])
    return tmp_path


def key(place: Path, table: str = TABLE, helper: str = HELPER) -> str:
    """The key of a module and the one that it imports, with this code."""
    (place / "odd_table.py").write_text(table)
    (place / "odd_helper.py").write_text(helper)
    importlib.invalidate_caches()
    code_keys.code_key.cache_clear()
    code_keys._tree.cache_clear()
    return code_keys.code_key("mqlab_spark.odd_table")


def test_texts_that_are_no_values_are_no_part_of_a_key(place: Path) -> None:
    before = key(place)
    texts = {"A table.": "Another one.", "What nobody": "What each", "So many.": "Few.", "\n\n\n": "\n\n# Why.\n"}
    for old, new in texts.items():
        assert old in TABLE
        assert key(place, TABLE.replace(old, new)) == before


@pytest.mark.parametrize(("old", "new"), [("rows * RATE", "rows + RATE"), ("LIMIT = 3", "LIMIT = 4")])
def test_what_a_module_does_is(place: Path, old: str, new: str) -> None:
    assert key(place, TABLE.replace(old, new)) != key(place)


def test_so_is_what_the_modules_do_that_it_imports(place: Path) -> None:
    assert key(place, helper="RATE = 3\n") != key(place)


def test_each_table_has_the_modules_that_it_is_made_with() -> None:
    assert code_keys.code_key("mqlab_spark.tables.gold.audit") != code_keys.code_key("mqlab_spark.tables.gold.lag")
