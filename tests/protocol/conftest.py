"""Recorded frames and vectors of a real RocketMQ, and the settings of property tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parents[1] / "golden"

settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("deterministic")


class Frame(NamedTuple):
    """One recorded frame; `request_code` is its own code, or for a response that of the request it answers."""

    label: str
    kind: str
    request_code: int
    code: int
    data: bytes


@pytest.fixture(scope="session")
def frames() -> list[Frame]:
    """Every recorded frame, of all four recordings."""
    return [frame for path in sorted((GOLDEN / "frames").glob("*.jsonl")) for frame in _recording(path)]


def _recording(path: Path) -> list[Frame]:
    codes: dict[int, int] = {}
    recorded = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        code = row["header"].get("code", 0)
        codes[row["seq"]] = code
        request_code = codes[row["answers"]] if row["kind"] == "response" else code
        label = f"{path.stem} {row['seq']} {row['name']} {row['kind']}"
        recorded.append(Frame(label, row["kind"], request_code, code, base64.b64decode(row["frame"])))
    return recorded


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], list[dict[str, Any]]]:
    """The rows of a vector file by its name."""

    def load(name: str) -> list[dict[str, Any]]:
        text = (GOLDEN / "vectors" / f"{name}.json").read_text(encoding="utf-8")
        rows: list[dict[str, Any]] = json.loads(text)["rows"]
        return rows

    return load


@pytest.fixture(scope="session")
def config_files() -> dict[str, bytes]:
    """Configuration files as a real broker wrote them, by name."""
    return {path.name: path.read_bytes() for path in sorted((GOLDEN / "vectors" / "config").iterdir())}
